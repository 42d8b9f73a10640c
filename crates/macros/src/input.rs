//! The derive's input as a declaration: everything to expand, once it is checked.

use std::collections::BTreeMap;

use syn::ext::IdentExt;
use syn::{Data, DataEnum, DeriveInput, Fields, FieldsNamed, Ident, LitStr, Type};

use crate::attr::{Case, ContainerAttrs, FieldAttrs, VariantAttrs};
use crate::ctxt::Ctxt;
use crate::rename::RenameRule;
use crate::rules;
use crate::ty::{self, FieldType};

/// A struct that becomes parameters, or an enum that becomes a kind.
pub(crate) enum Declaration {
    Arguments {
        ident: Ident,
        fields: Vec<ArgField>,
    },
    Token {
        ident: Ident,
        case: Case,
        members: Vec<Member>,
    },
}

/// A field that is read from the wire.
pub(crate) struct ArgField {
    pub(crate) name: String,
    pub(crate) ident: Ident,
    pub(crate) ty: Type,
    pub(crate) shape: FieldType,
    pub(crate) attrs: FieldAttrs,
    pub(crate) is_optional: bool,
}

/// A variant that is read from the wire.
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) aliases: Vec<LitStr>,
}

impl Declaration {
    /// Reads a declaration; `None` only if an error was added.
    pub(crate) fn read(cx: &Ctxt, input: &DeriveInput) -> Option<Self> {
        let attrs = ContainerAttrs::parse(cx, &input.attrs);
        if !input.generics.params.is_empty() {
            cx.error(
                &input.generics,
                "a declaration is made once, so it cannot be generic: name the types, or write a struct for each",
            );
        }
        match &input.data {
            Data::Struct(data) => match &data.fields {
                Fields::Named(fields) => {
                    if let Some(case) = &attrs.case {
                        cx.error(
                            &case.at,
                            "`case` belongs to an enum, or to a field that holds one",
                        );
                    }
                    Some(arguments(cx, &input.ident, &attrs, fields))
                }
                Fields::Unnamed(fields) => {
                    cx.error(
                        fields,
                        "parameters have names, these fields do not: write `{ name: Type }`, or implement `countersign::ArgValue` for a newtype",
                    );
                    None
                }
                Fields::Unit => {
                    let ident = &input.ident;
                    cx.error(
                        ident,
                        format!("arguments are an object: write `struct {ident} {{}}`, or use `()` for a tool without parameters"),
                    );
                    None
                }
            },
            Data::Enum(data) => Some(token(cx, &input.ident, &attrs, data)),
            Data::Union(data) => {
                cx.error(
                    data.union_token,
                    "a union does not say which of its fields is there: use a struct with optional fields",
                );
                None
            }
        }
    }
}

fn arguments(
    cx: &Ctxt,
    ident: &Ident,
    container: &ContainerAttrs,
    fields: &FieldsNamed,
) -> Declaration {
    let fields: Vec<ArgField> = fields
        .named
        .iter()
        .filter_map(|field| argument(cx, ident, container, field))
        .collect();
    let mut names = Names::default();
    for field in &fields {
        names.add(cx, "parameter", &field.name, &field.ident);
    }
    for field in &fields {
        for alias in &field.attrs.aliases {
            names.add(cx, "parameter", &alias.value(), alias);
        }
    }
    Declaration::Arguments {
        ident: ident.clone(),
        fields,
    }
}

fn argument(
    cx: &Ctxt,
    owner: &Ident,
    container: &ContainerAttrs,
    field: &syn::Field,
) -> Option<ArgField> {
    let ident = field.ident.clone()?;
    let attrs = FieldAttrs::parse(cx, &field.attrs);
    if attrs.is_skipped {
        return None;
    }
    if attrs.description.is_empty() {
        cx.error(&ident, "the model needs a description: add a doc comment");
    }
    if let (Some(default), true) = (
        &attrs.default,
        container.has_default || attrs.serde_default.is_some(),
    ) {
        cx.error(
            default,
            "two defaults may disagree, and this one is filled in before serde looks: remove `#[serde(default)]`",
        );
    }
    let name = wire_name(&ident, attrs.rename.as_ref(), |name| {
        match container.rename_all {
            Some(rule) => rule.field(name),
            None => name.to_owned(),
        }
    });
    let shape = ty::classify(cx, owner, &field.ty);
    rules::check(cx, &attrs, &shape);
    Some(ArgField {
        name,
        ident,
        ty: field.ty.clone(),
        shape,
        is_optional: container.has_default || attrs.serde_default.is_some(),
        attrs,
    })
}

fn token(cx: &Ctxt, ident: &Ident, container: &ContainerAttrs, data: &DataEnum) -> Declaration {
    let case = container.case.as_ref().map_or(Case::Fold, |it| it.value);
    let mut names = Names {
        case,
        ..Names::default()
    };
    let mut members = Vec::new();
    for variant in &data.variants {
        let attrs = VariantAttrs::parse(cx, &variant.attrs);
        if attrs.is_skipped {
            continue;
        }
        if !matches!(variant.fields, Fields::Unit) {
            cx.error(
                &variant.ident,
                "a variant that holds data is no kind of parameter: use variants that hold nothing, or a struct with one optional field a case",
            );
            continue;
        }
        let rename = |name: &str| match container.rename_all {
            Some(rule) => RenameRule::variant(rule, name),
            None => name.to_owned(),
        };
        let name = wire_name(&variant.ident, attrs.rename.as_ref(), rename);
        names.add(cx, "member", &name, &variant.ident);
        members.push(Member {
            name,
            aliases: attrs.aliases,
        });
    }
    for member in &members {
        for alias in &member.aliases {
            names.add(cx, "member", &alias.value(), alias);
        }
    }
    if data.variants.is_empty() {
        cx.error(
            ident,
            "an enum without variants allows no value at all: add one",
        );
    }
    Declaration::Token {
        ident: ident.clone(),
        case,
        members,
    }
}

fn wire_name(
    ident: &Ident,
    rename: Option<&LitStr>,
    rename_all: impl Fn(&str) -> String,
) -> String {
    match rename {
        Some(name) => name.value(),
        None => rename_all(&ident.unraw().to_string()),
    }
}

/// The names that are taken; folded as the binder folds them, where it does.
struct Names {
    case: Case,
    taken: BTreeMap<String, String>,
}

impl Default for Names {
    fn default() -> Self {
        Self {
            case: Case::Exact,
            taken: BTreeMap::new(),
        }
    }
}

impl Names {
    fn add(&mut self, cx: &Ctxt, what: &str, name: &str, at: impl quote::ToTokens) {
        let key = match self.case {
            Case::Exact => name.to_owned(),
            Case::Fold => name
                .chars()
                .filter(|letter| !matches!(letter, ' ' | '_' | '-'))
                .flat_map(char::to_lowercase)
                .collect(),
        };
        match self.taken.get(&key) {
            Some(other) if other == name => {
                cx.error(at, format!("the {what} `{name}` is already there: rename one of them"));
            }
            Some(other) => cx.error(
                at,
                format!("the {what}s `{other}` and `{name}` are the same once case, spaces, `_` and `-` are folded: rename one, or write `#[arg(case = \"exact\")]` on the enum"),
            ),
            None => {
                self.taken.insert(key, name.to_owned());
            }
        }
    }
}
