//! The attributes of a container, a field and a variant: `#[arg(…)]`, doc comments, and serde's attributes that change the wire format.

mod arg;
mod docs;
mod serde;

use proc_macro2::TokenStream;
use syn::{Attribute, LitStr, Path};

use crate::ctxt::Ctxt;
use crate::literal::{Literal, Number};
use crate::rename::RenameRule;

/// A setting, and where it was written.
pub(crate) struct Set<T> {
    pub(crate) value: T,
    pub(crate) at: TokenStream,
}

/// The attributes of a struct or an enum.
#[derive(Default)]
pub(crate) struct ContainerAttrs {
    pub(crate) case: Option<Set<Case>>,
    pub(crate) rename_all: Option<RenameRule>,
    pub(crate) has_default: bool,
}

/// The attributes of a field.
#[derive(Default)]
pub(crate) struct FieldAttrs {
    pub(crate) description: String,
    pub(crate) example: Option<Literal>,
    pub(crate) default: Option<Literal>,
    pub(crate) min: Option<Set<Number>>,
    pub(crate) max: Option<Set<Number>>,
    pub(crate) min_length: Option<Set<u64>>,
    pub(crate) max_length: Option<Set<u64>>,
    pub(crate) pattern: Option<Set<String>>,
    pub(crate) min_items: Option<Set<u64>>,
    pub(crate) max_items: Option<Set<u64>>,
    pub(crate) leniency: Option<Set<Leniency>>,
    pub(crate) truncate: Option<Set<()>>,
    pub(crate) on_optional_error: Option<Set<OnOptionalError>>,
    pub(crate) sensitivity: Option<Set<Sensitivity>>,
    pub(crate) harmless: Option<Set<()>>,
    pub(crate) case: Option<Set<Case>>,
    pub(crate) aliases: Vec<LitStr>,
    pub(crate) rename: Option<LitStr>,
    pub(crate) is_skipped: bool,
    pub(crate) serde_default: Option<Path>,
}

/// The attributes of a variant.
#[derive(Default)]
pub(crate) struct VariantAttrs {
    pub(crate) aliases: Vec<LitStr>,
    pub(crate) rename: Option<LitStr>,
    pub(crate) is_skipped: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    Fold,
    Exact,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnOptionalError {
    Refuse,
    Tell,
}

#[derive(Clone, Copy)]
pub(crate) enum Leniency {
    Lenient,
    Strict,
}

#[derive(Clone, Copy)]
pub(crate) enum Sensitivity {
    Personal,
    Secret,
}

impl ContainerAttrs {
    pub(crate) fn parse(cx: &Ctxt, attributes: &[Attribute]) -> Self {
        let mut attrs = Self::default();
        arg::container(cx, attributes, &mut attrs);
        serde::container(cx, attributes, &mut attrs);
        attrs
    }
}

impl FieldAttrs {
    pub(crate) fn parse(cx: &Ctxt, attributes: &[Attribute]) -> Self {
        let mut attrs = Self {
            description: docs::text(attributes),
            ..Self::default()
        };
        arg::field(cx, attributes, &mut attrs);
        serde::field(cx, attributes, &mut attrs);
        attrs
    }
}

impl VariantAttrs {
    pub(crate) fn parse(cx: &Ctxt, attributes: &[Attribute]) -> Self {
        let mut attrs = Self::default();
        arg::variant(cx, attributes, &mut attrs);
        serde::variant(cx, attributes, &mut attrs);
        attrs
    }
}
