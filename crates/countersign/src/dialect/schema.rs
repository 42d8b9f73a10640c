//! A tool's JSON Schema as a provider accepts it.
//!
//! The binder always checks against the declaration itself, so a schema for a provider may accept more than the
//! declaration (with a note about it), but never makes a model leave out something that the declaration accepts.

mod brief;
mod describe;
mod limits;
mod openapi;
mod refs;
mod root;
mod strict;
mod types;
mod walk;

use serde_json::{Map, Value};

use limits::Counted;
use refs::Refs;

/// The form of a schema that a provider accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// JSON Schema 2020-12, whole: only the extension keywords of the declaration go.
    Verbatim,
    /// The form that every provider accepts: an object root without composition, one type a node.
    Portable,
    /// Closed objects, everything required, optional members nullable.
    OpenAiStrict,
    /// Closed objects, few keywords.
    AnthropicStrict,
    /// The subset of `OpenAPI` 3.0 that Gemini reads.
    OpenApi,
}

/// The rule for names of properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PropertyNames {
    /// Any.
    Any,
    /// `^[A-Za-z0-9_.-]{1,64}$`.
    Dotted,
    /// `^[A-Za-z_][A-Za-z0-9_]{0,63}$`.
    Identifier,
}

/// A schema made ready for a provider.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Prepared {
    /// The schema.
    pub(super) schema: Value,
    /// True if the provider can enforce it.
    pub(super) strict: bool,
    /// Text for the description: the constraints that the schema no longer has.
    pub(super) remark: Option<String>,
    /// Notes about constraints that were given up.
    pub(super) notes: Vec<NoteKind>,
}

/// A constraint that a provider's form could not express.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoteKind {
    /// Strict was requested, but this keyword, at this place, does not allow it.
    NotStrict {
        /// JSON pointer into the schema.
        path: String,
        /// The keyword, or what is missing.
        keyword: String,
    },
    /// A composition was replaced by a schema that accepts more; the binder still refuses the rest.
    Widened {
        /// JSON pointer into the schema.
        path: String,
        /// The keyword that was removed.
        keyword: String,
    },
}

/// Problems of a schema that cannot be shown to a provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaProblem {
    /// The root is not an object schema, which every provider requires. Usually a tool declares a bare list or value.
    #[error("the root is not an object schema; wrap the value in one property")]
    RootNotObject,
    /// A composition at the root cannot be merged into one object.
    /// Usually two of its branches declare one member differently.
    #[error("{keyword} at the root cannot be merged because of {conflict}; declare one object")]
    RootKeyword {
        /// The composition.
        keyword: String,
        /// The keyword that stands in the way.
        conflict: String,
    },
    /// A reference leads to another document. Usually the schema was taken out of a larger document.
    #[error("$ref {reference:?} is not a local pointer; copy the definition into $defs")]
    RemoteRef {
        /// The reference as written.
        reference: String,
    },
    /// A reference leads to nothing. Usually the name of the definition is mistyped.
    #[error("$ref {reference:?} points to nothing")]
    MissingRef {
        /// The reference as written.
        reference: String,
    },
    /// A definition contains itself, but the provider has no references.
    /// Usually it is a tree, such as a menu or a filter.
    #[error("$ref {reference:?} is recursive, which this provider cannot express")]
    Recursive {
        /// The reference as written.
        reference: String,
    },
    /// A keyword beside `$ref` contradicts its target. Usually a generator has written both.
    #[error("{keyword} beside $ref {reference:?} contradicts its target")]
    RefSibling {
        /// The reference as written.
        reference: String,
        /// The keyword.
        keyword: String,
    },
    /// The provider refuses the name of a property. Usually it has a dot, a space or a character outside of ASCII.
    #[error("the property name {name:?} is refused by this provider, which allows {rule}")]
    PropertyName {
        /// The name.
        name: String,
        /// The rule that the provider has.
        rule: &'static str,
    },
    /// The schema is larger than a provider, or we, read. Usually it has long enumerations or deep objects.
    #[error("it has {found} {what}, the limit is {limit}")]
    Limit {
        /// The unit of the limit.
        what: &'static str,
        /// The number that was found; counting stops one past the limit for depth and nodes.
        found: usize,
        /// The maximum number.
        limit: usize,
    },
}

/// A problem, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Located {
    pub(super) path: String,
    pub(super) problem: SchemaProblem,
}

/// Makes the schema of a tool ready for a provider.
pub(super) fn prepare(
    source: &Value,
    form: Form,
    names: PropertyNames,
) -> Result<Prepared, Located> {
    limits::bounded(source)?;
    let mut prepared = Prepared {
        schema: source.clone(),
        strict: false,
        remark: None,
        notes: Vec::new(),
    };
    walk::strip_extensions(&mut prepared.schema);
    match form {
        Form::Verbatim => require_object_root(&mut prepared.schema)?,
        Form::Portable => portable(&mut prepared, Refs::Keep)?,
        Form::OpenApi => {
            portable(&mut prepared, Refs::Inline)?;
            openapi::rewrite(&mut prepared.schema);
        }
        Form::OpenAiStrict => prepared = strict_or_portable(prepared, strict::OPENAI)?,
        Form::AnthropicStrict => prepared = strict_or_portable(prepared, strict::ANTHROPIC)?,
    }
    walk::check_names(&prepared.schema, names)?;
    Ok(prepared)
}

/// A whole argument object put together from the examples of the parameters; `None` if that is not possible.
pub(super) fn example(schema: &Value) -> Option<Value> {
    describe::example_object(schema.as_object()?)
}

/// Drops the keywords that a model has no use for. `names_tool` is true if a description names another tool.
pub(super) fn brief(schema: &mut Value, names_tool: &dyn Fn(&str) -> bool) {
    brief::rewrite(schema, names_tool);
}

/// The members that an answer always has, and their types, without what is inside them.
pub(super) fn outline(output: &Value) -> Value {
    brief::outline(output)
}

/// Removes every `examples` keyword.
pub(super) fn strip_examples(schema: &mut Value) {
    walk::each(schema, &mut |node| {
        node.remove("examples");
        node.remove("example");
    });
}

/// Rewrites every description; the number is its depth, 0 being the root and 1 a parameter.
pub(super) fn rewrite_descriptions(
    schema: &mut Value,
    rewrite: &mut dyn FnMut(usize, String) -> Option<String>,
) {
    walk::descriptions(schema, 0, rewrite);
}

fn portable(prepared: &mut Prepared, refs: Refs) -> Result<(), Located> {
    walk::strip_identity(&mut prepared.schema);
    refs::resolve(&mut prepared.schema, refs)?;
    require_object_root(&mut prepared.schema)?;
    root::flatten(prepared)?;
    types::one_per_node(&mut prepared.schema, "", &mut prepared.notes);
    Ok(())
}

/// Makes the strict form. A schema that cannot be strict gets the portable form, with a note that gives the reason.
fn strict_or_portable(source: Prepared, rules: strict::Rules) -> Result<Prepared, Located> {
    let mut portable_form = source.clone();
    portable(&mut portable_form, Refs::Keep)?;
    let mut prepared = source;
    let refused = match portable(&mut prepared, rules.refs) {
        Ok(()) => strict::rewrite(&mut prepared.schema, rules).err(),
        Err(located) => match located.problem {
            SchemaProblem::Recursive { .. } => Some((located.path, "recursive $ref".to_owned())),
            _ => return Err(located),
        },
    };
    if let Some((path, keyword)) = refused {
        portable_form
            .notes
            .push(NoteKind::NotStrict { path, keyword });
        return Ok(portable_form);
    }
    if rules.counted == Counted::Yes {
        limits::openai_strict(&prepared.schema)?;
    }
    prepared.strict = true;
    Ok(prepared)
}

/// Makes the root say that it is an object, which providers require; refuses a root that cannot be one.
fn require_object_root(schema: &mut Value) -> Result<(), Located> {
    let refused = Located {
        path: String::new(),
        problem: SchemaProblem::RootNotObject,
    };
    let Value::Object(root) = schema else {
        return Err(refused);
    };
    match root.get("type") {
        None => {
            root.insert("type".into(), "object".into());
            Ok(())
        }
        Some(Value::String(name)) if name == "object" => Ok(()),
        Some(Value::Array(names)) if names.iter().any(|name| name == "object") => {
            root.insert("type".into(), "object".into());
            Ok(())
        }
        Some(_) => Err(refused),
    }
}

/// The text that a node carries for the model.
fn description(node: &Map<String, Value>) -> &str {
    node.get("description")
        .and_then(Value::as_str)
        .unwrap_or("")
}
