//! Expansion of a checked declaration into the impls.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{DeriveInput, Ident};

use crate::attr::{Case, FieldAttrs, Leniency, OnOptionalError, Sensitivity, Set};
use crate::ctxt::Ctxt;
use crate::input::{ArgField, Declaration, Member};
use crate::ty::{Item, Shape};

/// The impls, or every error there is.
pub(crate) fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    let cx = Ctxt::new();
    let declaration = Declaration::read(&cx, input);
    cx.check()?;
    Ok(match declaration {
        Some(Declaration::Arguments { ident, fields }) => arguments(&ident, &fields),
        Some(Declaration::Token {
            ident,
            case,
            members,
        }) => token(&ident, case, &members),
        None => TokenStream::new(),
    })
}

fn arguments(ident: &Ident, fields: &[ArgField]) -> TokenStream {
    let types: Vec<Ident> = (0..fields.len())
        .map(|index| format_ident!("FIELD_{index}"))
        .collect();
    // The bound on a field's type stands here and nowhere else, so that it is reported once; and at
    // the type, where the compiler then points when structs contain each other.
    let facts = fields.iter().zip(&types).map(|(field, name)| {
        let ty = &field.ty;
        quote_spanned! {ty.span()=>
            const #name: ::countersign::args::check::FieldType =
                ::countersign::args::check::FieldType::of::<#ty>();
        }
    });
    let fields = || fields.iter().zip(&types);
    let parameters = fields().map(|(field, ty)| parameter(field, ty));
    let checks = fields().flat_map(|(field, ty)| checks(field, ty));
    quote! {
        const _: () = {
            #(#facts)*

            #[automatically_derived]
            impl ::countersign::ToolArgs for #ident {
                fn parameters() -> ::std::vec::Vec<::countersign::__private::contract::Parameter> {
                    ::std::vec![#(#parameters),*]
                }
            }

            #[automatically_derived]
            impl ::countersign::ArgValue for #ident {
                const KIND: ::countersign::__private::contract::ValueKind =
                    ::countersign::__private::contract::ValueKind::Object;
                const DEPTH: usize =
                    ::countersign::args::check::FieldType::depth_of_struct(&[#(#types),*]);

                fn describe(
                    parameter: ::countersign::__private::contract::Parameter,
                ) -> ::countersign::__private::contract::Parameter {
                    parameter.fields(<Self as ::countersign::ToolArgs>::parameters())
                }
            }

            #(#checks)*
        };
    }
}

fn parameter(field: &ArgField, ty: &Ident) -> TokenStream {
    let (name, description) = (&field.name, &field.attrs.description);
    let made = quote!(#ty.parameter(#name, #description));
    let settings = settings(field);
    if settings.is_empty() {
        return made;
    }
    // A name with the macro's own hygiene cannot meet one of the user's.
    let parameter = Ident::new("parameter", Span::mixed_site());
    let settings = settings.into_iter().map(|setting| setting.with(&parameter));
    quote!({
        let mut #parameter = #made;
        #(#settings)*
        #parameter
    })
}

/// A statement about the parameter.
enum Setting {
    /// `parameter = parameter.…;`
    Method(TokenStream),
    /// `parameter.… = …;`
    Member(TokenStream),
    /// `if let Some(allowed) = &mut parameter.allowed { … }`
    Case(TokenStream),
}

impl Setting {
    fn with(self, parameter: &Ident) -> TokenStream {
        match self {
            Self::Method(call) => quote!(#parameter = #parameter.#call;),
            Self::Member(assignment) => quote!(#parameter.#assignment;),
            Self::Case(case) => quote! {
                if let ::std::option::Option::Some(allowed) = &mut #parameter.allowed {
                    allowed.case = #case;
                }
            },
        }
    }
}

fn settings(field: &ArgField) -> Vec<Setting> {
    let attrs = &field.attrs;
    let mut settings = Vec::new();
    let mut bound = |name: &str, value: Option<TokenStream>| {
        let name = Ident::new(name, Span::call_site());
        settings.extend(value.map(|value| Setting::Member(quote!(bounds.#name = #value))));
    };
    bound(
        "minimum",
        attrs.min.as_ref().map(|it| it.value.to_json_number()),
    );
    bound(
        "maximum",
        attrs.max.as_ref().map(|it| it.value.to_json_number()),
    );
    bound("min_length", attrs.min_length.as_ref().map(some));
    bound("max_length", attrs.max_length.as_ref().map(some));
    bound(
        "pattern",
        attrs.pattern.as_ref().map(|it| {
            let pattern = &it.value;
            quote!(::std::option::Option::Some(::std::string::String::from(#pattern)))
        }),
    );
    bound("min_items", attrs.min_items.as_ref().map(some));
    bound("max_items", attrs.max_items.as_ref().map(some));
    settings.extend(case_and_policy(attrs));
    if !attrs.aliases.is_empty() {
        let aliases = &attrs.aliases;
        settings.push(Setting::Member(quote! {
            aliases = ::std::vec![#(::std::string::String::from(#aliases)),*]
        }));
    }
    if let Some(example) = &attrs.example {
        let example = example.to_json_value();
        settings.push(Setting::Method(quote!(example(#example))));
    }
    if let Some(default) = &attrs.default {
        let default = default.to_json_value();
        settings.push(Setting::Method(quote!(default_value(#default))));
    } else if field.is_optional {
        settings.push(Setting::Method(quote!(optional())));
    }
    settings
}

fn case_and_policy(attrs: &FieldAttrs) -> Vec<Setting> {
    let mut settings = Vec::new();
    if let Some(case) = &attrs.case {
        settings.push(Setting::Case(case_rule(case.value)));
    }
    if let Some(leniency) = &attrs.leniency {
        let leniency = match leniency.value {
            Leniency::Lenient => quote!(Lenient),
            Leniency::Strict => quote!(Strict),
        };
        settings.push(Setting::Member(quote! {
            leniency = ::std::option::Option::Some(
                ::countersign::__private::contract::parameter::Leniency::#leniency
            )
        }));
    }
    if attrs.truncate.is_some() {
        settings.push(Setting::Method(quote!(truncate())));
    }
    if let Some(rule) = &attrs.on_optional_error {
        let rule = match rule.value {
            OnOptionalError::Refuse => quote!(Refuse),
            OnOptionalError::Tell => quote!(Tell),
        };
        settings.push(Setting::Method(quote! {
            on_optional_error(::countersign::__private::contract::parameter::OnOptionalError::#rule)
        }));
    }
    if let Some(sensitivity) = &attrs.sensitivity {
        let sensitivity = match sensitivity.value {
            Sensitivity::Personal => quote!(Personal),
            Sensitivity::Secret => quote!(Secret),
        };
        settings.push(Setting::Method(quote! {
            sensitivity(::countersign::__private::contract::parameter::Sensitivity::#sensitivity)
        }));
    }
    if attrs.harmless.is_some() {
        settings.push(Setting::Method(quote!(harmless())));
    }
    settings
}

fn some(count: &Set<u64>) -> TokenStream {
    let count = count.value;
    quote!(::std::option::Option::Some(#count))
}

fn case_rule(case: Case) -> TokenStream {
    let case = match case {
        Case::Fold => quote!(Fold),
        Case::Exact => quote!(Exact),
    };
    quote!(::countersign::__private::contract::CaseRule::#case)
}

/// Builds the checks of everything that the tokens of the type leave open, which the compiler decides.
fn checks(field: &ArgField, ty: &Ident) -> Vec<TokenStream> {
    let attrs = &field.attrs;
    let mut checks = Vec::new();
    let mut check = |at: &dyn ToTokens, call: TokenStream| {
        let span = at.to_token_stream().span();
        checks.push(quote_spanned! {span=>
            const _: () = if let ::std::result::Result::Err(problem) = #ty.#call {
                ::std::panic!("{}", problem)
            };
        });
    };
    if field.shape.shape == Shape::Unknown {
        for bound in [&attrs.min_items, &attrs.max_items].into_iter().flatten() {
            check(&bound.at, quote!(bounds_items()));
        }
    }
    if let Some(rule) = &attrs.on_optional_error
        && rule.value == OnOptionalError::Tell
        && attrs.default.is_none()
        && !field.is_optional
    {
        check(&rule.at, quote!(may_be_absent()));
    }
    if field.shape.item != Item::Unknown {
        return checks;
    }
    for bound in [&attrs.min, &attrs.max].into_iter().flatten() {
        let value = bound.value.to_checked();
        check(&bound.at, quote!(bounds_number(#value)));
    }
    for bound in [&attrs.min_length, &attrs.max_length].into_iter().flatten() {
        check(&bound.at, quote!(bounds_text()));
    }
    if let Some(pattern) = &attrs.pattern {
        check(&pattern.at, quote!(bounds_text()));
    }
    if let Some(truncate) = &attrs.truncate {
        check(&truncate.at, quote!(truncates()));
    }
    if let Some(case) = &attrs.case {
        check(&case.at, quote!(has_case()));
    }
    for literal in [&attrs.default, &attrs.example].into_iter().flatten() {
        let value = literal.to_checked();
        check(literal, quote!(accepts(#value)));
    }
    checks
}

fn token(ident: &Ident, case: Case, members: &[Member]) -> TokenStream {
    let names: Vec<&String> = members.iter().map(|member| &member.name).collect();
    let case = case_rule(case);
    let aliases = members.iter().flat_map(|member| {
        let name = &member.name;
        member.aliases.iter().map(move |alias| {
            quote!((::std::string::String::from(#name), ::std::string::String::from(#alias)))
        })
    });
    quote! {
        #[automatically_derived]
        impl ::countersign::ArgValue for #ident {
            const KIND: ::countersign::__private::contract::ValueKind =
                ::countersign::__private::contract::ValueKind::EnumToken;
            const MEMBERS: &'static [&'static str] = &[#(#names),*];

            fn describe(
                mut parameter: ::countersign::__private::contract::Parameter,
            ) -> ::countersign::__private::contract::Parameter {
                parameter.allowed = ::std::option::Option::Some(
                    ::countersign::__private::contract::AllowedValues {
                        values: ::std::vec![#(::std::string::String::from(#names)),*],
                        case: #case,
                        aliases: ::std::vec![#(#aliases),*],
                    },
                );
                parameter
            }
        }
    }
}
