//! Type of a field as its tokens show it: enough for clear errors at the right place.
//!
//! The traits decide in the end. A type that is unknown here (an alias, a newtype, an enum) is checked by the compiler in constants that
//! the expansion adds.

use quote::ToTokens;
use syn::{GenericArgument, Ident, PathArguments, PathSegment, Type};

use crate::ctxt::Ctxt;

/// A field's type, without the `Option` around it.
pub(crate) struct FieldType {
    pub(crate) shape: Shape,
    pub(crate) item: Item,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    One,
    List,
    Map,
    Unknown,
}

/// Type of one value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Item {
    Text,
    Boolean,
    Integer {
        name: &'static str,
        min: i128,
        max: i128,
    },
    Decimal,
    Unknown,
}

impl Item {
    /// Returns its noun, for a sentence.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Boolean => "a `bool`",
            Self::Integer { .. } => "an integer",
            Self::Decimal => "a number",
            Self::Unknown => "of a type of its own",
        }
    }
}

/// Reads a field's type; `owner` is the struct that it stands in.
pub(crate) fn classify(cx: &Ctxt, owner: &Ident, ty: &Type) -> FieldType {
    match container_of(ty) {
        Some((Container::Option, inner)) => match container_of(inner) {
            Some((Container::Option, _)) => {
                cx.error(
                    ty,
                    "an `Option` within an `Option` says nothing more: use one `Option`",
                );
                unknown()
            }
            Some((Container::List | Container::Map, _)) | None => required(cx, owner, inner),
        },
        Some((Container::List | Container::Map, _)) | None => required(cx, owner, ty),
    }
}

fn required(cx: &Ctxt, owner: &Ident, ty: &Type) -> FieldType {
    let (shape, value) = match container_of(ty) {
        // A list of anything is one value, of the kind `array`.
        Some((Container::List, inner)) if is_json_value(inner) => return unknown(),
        Some((Container::List, inner)) => (Shape::List, inner),
        Some((Container::Map, inner)) => (Shape::Map, inner),
        Some((Container::Option, _)) | None => (Shape::One, ty),
    };
    if shape != Shape::One && is_refused_within(cx, shape, value) {
        return unknown();
    }
    let item = item(cx, owner, value);
    match (shape, item) {
        // Behind a name of one's own there may be a list.
        (Shape::One, Item::Unknown) => unknown(),
        (shape, item) => FieldType { shape, item },
    }
}

fn is_refused_within(cx: &Ctxt, shape: Shape, value: &Type) -> bool {
    let outer = if shape == Shape::Map { "map" } else { "list" };
    match container_of(value) {
        Some((Container::Option, _)) => {
            cx.error(
                value,
                format!("a {outer} cannot hold an `Option`: leave absent values out, or make the whole {outer} optional"),
            );
            true
        }
        Some((Container::List, inner)) if is_json_value(inner) => false,
        Some((Container::List | Container::Map, _)) => {
            cx.error(
                value,
                format!("a {outer} cannot hold another list or map: put the inner one into a struct that derives `ToolArgs`, or use `Vec<serde_json::Value>` for anything"),
            );
            true
        }
        None => false,
    }
}

fn item(cx: &Ctxt, owner: &Ident, ty: &Type) -> Item {
    let hint = match ty {
        Type::Group(group) => return item(cx, owner, &group.elem),
        Type::Paren(paren) => return item(cx, owner, &paren.elem),
        Type::Reference(_) => "arguments own their values: use `String` for a text",
        Type::Array(_) => {
            "an array is sent as a list: use `Vec<T>` with `#[arg(min_items = …, max_items = …)]`"
        }
        Type::Tuple(_) => {
            "a tuple has no names that a model could send: use a struct that derives `ToolArgs`"
        }
        Type::Path(path) => return named_item(cx, owner, path),
        // Whatever else there is, the traits refuse.
        _ => return Item::Unknown,
    };
    cx.error(ty, hint);
    Item::Unknown
}

fn named_item(cx: &Ctxt, owner: &Ident, ty: &syn::TypePath) -> Item {
    let Some(segment) = ty.path.segments.last() else {
        return Item::Unknown;
    };
    let integer = |name, min, max| Item::Integer { name, min, max };
    let hint = match segment.ident.to_string().as_str() {
        "String" => return Item::Text,
        "bool" => return Item::Boolean,
        "f32" | "f64" => return Item::Decimal,
        "i8" => return integer("i8", i8::MIN.into(), i8::MAX.into()),
        "i16" => return integer("i16", i16::MIN.into(), i16::MAX.into()),
        "i32" => return integer("i32", i32::MIN.into(), i32::MAX.into()),
        "i64" => return integer("i64", i64::MIN.into(), i64::MAX.into()),
        "u8" => return integer("u8", u8::MIN.into(), u8::MAX.into()),
        "u16" => return integer("u16", u16::MIN.into(), u16::MAX.into()),
        "u32" => return integer("u32", u32::MIN.into(), u32::MAX.into()),
        "u64" => return integer("u64", u64::MIN.into(), u64::MAX.into()),
        "usize" => "`usize` differs between machines, a declaration must not: use `u32` or `u64`",
        "isize" => "`isize` differs between machines, a declaration must not: use `i32` or `i64`",
        "i128" | "u128" => {
            "an integer has at most 64 bits: use `i64` or `u64`, or `String` for longer numbers"
        }
        "char" => {
            "a `char` is sent as text: use `String` with `#[arg(min_length = 1, max_length = 1)]`"
        }
        "Value" if ty.path.segments.len() > 1 => {
            "a value of any kind declares nothing: use `serde_json::Map<String, Value>` for an object, `Vec<Value>` for a list, or a struct that derives `ToolArgs`"
        }
        name if name == "Self" || (*owner == name && ty.path.segments.len() == 1) => {
            "a parameter cannot contain itself, its description would never end: use `serde_json::Map<String, Value>`"
        }
        _ => return Item::Unknown,
    };
    cx.error(ty, hint);
    Item::Unknown
}

#[derive(Clone, Copy)]
enum Container {
    Option,
    List,
    Map,
}

/// The container that a type is by its name, and the type of the values in it.
fn container_of(ty: &Type) -> Option<(Container, &Type)> {
    let path = match ty {
        Type::Group(group) => return container_of(&group.elem),
        Type::Paren(paren) => return container_of(&paren.elem),
        Type::Path(path) => &path.path,
        _ => return None,
    };
    let segment = path.segments.last()?;
    let (container, position) = match segment.ident.to_string().as_str() {
        "Option" => (Container::Option, 0),
        "Vec" | "HashSet" | "BTreeSet" => (Container::List, 0),
        "HashMap" | "BTreeMap" => (Container::Map, 1),
        _ => return None,
    };
    Some((container, type_argument(segment, position)?))
}

fn type_argument(segment: &PathSegment, position: usize) -> Option<&Type> {
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else {
        return None;
    };
    let types = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    });
    types.into_iter().nth(position)
}

fn is_json_value(ty: &Type) -> bool {
    let name = ty.to_token_stream().to_string();
    name == "Value" || name.ends_with(":: Value")
}

fn unknown() -> FieldType {
    FieldType {
        shape: Shape::Unknown,
        item: Item::Unknown,
    }
}
