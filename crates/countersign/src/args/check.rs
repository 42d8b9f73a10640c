//! What `#[derive(ToolArgs)]` cannot see in the tokens, checked by the compiler in constants: a type
//! alias or a newtype has its kind only here. Called by generated code.

#![expect(
    clippy::panic,
    reason = "evaluated by the compiler only, as an error at the attribute"
)]

use countersign_contract::{Cardinality, ValueKind};

use super::{ArgType, ArgValue};

/// A value written in an attribute.
#[derive(Debug, Clone, Copy)]
pub enum Literal {
    /// A text.
    Text(&'static str),
    /// A whole number.
    Whole(i128),
    /// A number with a decimal point.
    Decimal,
    /// `true` or `false`.
    Boolean,
    /// `[…]`.
    List(&'static [Literal]),
    /// `{…}`, its values only: the names of a map are free.
    Object(&'static [Literal]),
}

/// Forces the type to have a cardinality and a depth; both are constants that fail to compile.
pub const fn depth<T: ArgType>() -> usize {
    match T::CARDINALITY {
        Cardinality::One
        | Cardinality::Optional
        | Cardinality::List { .. }
        | Cardinality::Map { .. } => T::Item::DEPTH,
    }
}

/// The depth of a struct with fields of these depths.
pub const fn deeper_than(mut fields: &[usize]) -> usize {
    let mut deepest = 0;
    while let [depth, rest @ ..] = fields {
        if *depth > deepest {
            deepest = *depth;
        }
        fields = rest;
    }
    deepest + 1
}

/// `min` and `max` need a number.
pub const fn range<T: ArgType>() {
    assert!(
        matches!(T::Item::KIND, ValueKind::Integer | ValueKind::Number),
        "`min` and `max` bound a number: use `min_length` or `max_length` for a text, `min_items` or `max_items` for a list"
    );
}

/// `min_length`, `max_length` and `pattern` need a text.
pub const fn text<T: ArgType>() {
    assert!(
        matches!(
            T::Item::KIND,
            ValueKind::String | ValueKind::Uri | ValueKind::AttachmentReference
        ),
        "`min_length`, `max_length` and `pattern` bound a text: use `min` or `max` for a number"
    );
}

/// `min_items` and `max_items` need a list.
pub const fn items<T: ArgType>() {
    assert!(
        matches!(T::CARDINALITY, Cardinality::List { .. }) || is_array::<T>(),
        "`min_items` and `max_items` bound a list such as `Vec<T>`"
    );
}

/// `truncate` needs an integer.
pub const fn truncate<T: ArgType>() {
    assert!(
        matches!(T::Item::KIND, ValueKind::Integer),
        "`truncate` cuts a decimal to an integer: the field is not an integer"
    );
}

/// `case` needs an enum.
pub const fn case<T: ArgType>() {
    assert!(
        matches!(T::Item::KIND, ValueKind::EnumToken),
        "`case` belongs to an enum that derives `ToolArgs`"
    );
}

/// A default or an example must be a value of the field's type.
pub const fn literal<T: ArgType>(literal: Literal) {
    match (T::CARDINALITY, literal) {
        (Cardinality::List { .. }, Literal::List(items))
        | (Cardinality::Map { .. }, Literal::Object(items)) => every::<T::Item>(items),
        (Cardinality::List { .. }, _) => panic!("the field is a list: write `[…]`"),
        (Cardinality::Map { .. }, _) => panic!("the field is a map: write `{{\"name\": …}}`"),
        (Cardinality::One | Cardinality::Optional, literal) => single::<T::Item>(literal),
    }
}

const fn is_array<T: ArgType>() -> bool {
    matches!(T::Item::KIND, ValueKind::Array)
}

const fn every<T: ArgValue>(mut items: &[Literal]) {
    while let [item, rest @ ..] = items {
        single::<T>(*item);
        items = rest;
    }
}

const fn single<T: ArgValue>(literal: Literal) {
    match (T::KIND, literal) {
        (ValueKind::EnumToken, Literal::Text(text)) => assert!(
            is_member(T::MEMBERS, text),
            "this is not a member of the enum, as it stands on the wire"
        ),
        (ValueKind::Integer, Literal::Whole(number)) => {
            if let Some((minimum, maximum)) = T::RANGE {
                assert!(
                    minimum <= number && number <= maximum,
                    "this number is outside the range of the field's type"
                );
            }
        }
        (
            ValueKind::String
            | ValueKind::Timestamp
            | ValueKind::Uri
            | ValueKind::AttachmentReference,
            Literal::Text(_),
        )
        | (ValueKind::Number, Literal::Whole(_) | Literal::Decimal)
        | (ValueKind::Boolean, Literal::Boolean)
        | (ValueKind::Array, Literal::List(_))
        | (ValueKind::Object, Literal::Object(_)) => {}
        (
            ValueKind::String
            | ValueKind::Timestamp
            | ValueKind::Uri
            | ValueKind::AttachmentReference
            | ValueKind::EnumToken,
            _,
        ) => panic!("the field is sent as text: write `\"…\"`"),
        (ValueKind::Integer, _) => panic!("the field is an integer"),
        (ValueKind::Number, _) => panic!("the field is a number"),
        (ValueKind::Boolean, _) => panic!("the field is a `bool`: write `true` or `false`"),
        (ValueKind::Array, _) => panic!("the field is a list: write `[…]`"),
        (ValueKind::Object, _) => panic!("the field is an object: write `{{\"name\": …}}`"),
    }
}

const fn is_member(mut members: &[&str], text: &str) -> bool {
    while let [member, rest @ ..] = members {
        if same(member.as_bytes(), text.as_bytes()) {
            return true;
        }
        members = rest;
    }
    false
}

const fn same(mut left: &[u8], mut right: &[u8]) -> bool {
    loop {
        match (left, right) {
            ([], []) => return true,
            ([a, left_rest @ ..], [b, right_rest @ ..]) if *a == *b => {
                left = left_rest;
                right = right_rest;
            }
            ([], [_, ..]) | ([_, ..], [] | [_, ..]) => return false,
        }
    }
}
