//! Checks that `#[derive(ToolArgs)]` cannot make on the tokens of a type, made by the compiler in constants: an alias,
//! a newtype or an enum has its kind only here. Called by generated code.

use countersign_contract::{Cardinality, Parameter, ValueKind};

use super::{ArgType, ArgValue};

/// The type of one field, known to the compiler while it compiles.
#[derive(Debug, Clone, Copy)]
pub struct FieldType {
    kind: ValueKind,
    cardinality: Cardinality,
    range: Option<(i128, i128)>,
    members: &'static [&'static str],
    depth: usize,
    parameter: fn(&str, &str) -> Parameter,
}

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

/// Result of checking a setting; the error is a sentence for the compiler's message.
pub type Checked = Result<(), &'static str>;

impl FieldType {
    /// The facts about a type.
    pub const fn of<T: ArgType>() -> Self {
        Self {
            kind: T::Item::KIND,
            cardinality: T::CARDINALITY,
            range: T::Item::RANGE,
            members: T::Item::MEMBERS,
            // The compiler shows this line where it finds a cycle.
            depth: T::Item::DEPTH, // structs that contain each other cannot be declared
            parameter: T::parameter,
        }
    }

    /// The parameter that a field of this type declares.
    pub fn parameter(&self, name: &str, description: &str) -> Parameter {
        (self.parameter)(name, description)
    }

    /// Nesting depth of a struct with these fields.
    pub const fn depth_of_struct(mut fields: &[Self]) -> usize {
        let mut deepest = 0;
        while let [field, rest @ ..] = fields {
            if field.depth > deepest {
                deepest = field.depth;
            }
            fields = rest;
        }
        deepest + 1
    }

    /// Checks a `min` or `max`: it needs a number, and is itself a value of the field's type.
    pub const fn bounds_number(&self, bound: Literal) -> Checked {
        if matches!(self.kind, ValueKind::Integer | ValueKind::Number) {
            self.accepts_one(bound)
        } else {
            Err("`min` and `max` are for numbers, but the field is not a number")
        }
    }

    /// Checks that `min_length`, `max_length` and `pattern` are on a text.
    pub const fn bounds_text(&self) -> Checked {
        require(
            matches!(
                self.kind,
                ValueKind::String | ValueKind::Uri | ValueKind::AttachmentReference
            ),
            "`min_length`, `max_length` and `pattern` are for strings, but the field is not a string",
        )
    }

    /// Checks that `min_items` and `max_items` are on a list.
    pub const fn bounds_items(&self) -> Checked {
        let is_list = match self.cardinality {
            Cardinality::One | Cardinality::Optional => matches!(self.kind, ValueKind::Array),
            Cardinality::List { .. } => true,
            Cardinality::Map { .. } => false,
        };
        require(
            is_list,
            "`min_items` and `max_items` bound a list such as `Vec<T>`",
        )
    }

    /// Checks that `truncate` is on an integer.
    pub const fn truncates(&self) -> Checked {
        require(
            matches!(self.kind, ValueKind::Integer),
            "`truncate` is for integers, but the field is not an integer",
        )
    }

    /// Checks that `on_optional_error = "tell"` is on a field that may be left out.
    pub const fn may_be_absent(&self) -> Checked {
        require(
            !self.cardinality.is_required(),
            "`on_optional_error = \"tell\"` needs a field that may be left out: make it an `Option`, or give it a default",
        )
    }

    /// Checks that `case` is on an enum.
    pub const fn has_case(&self) -> Checked {
        require(
            matches!(self.kind, ValueKind::EnumToken),
            "`case` belongs to an enum that derives `ToolArgs`",
        )
    }

    /// Checks that a default or an example is a value of the field's type.
    pub const fn accepts(&self, literal: Literal) -> Checked {
        match (self.cardinality, literal) {
            (Cardinality::List { .. }, Literal::List(items))
            | (Cardinality::Map { .. }, Literal::Object(items)) => self.accepts_each(items),
            (Cardinality::List { .. }, _) => Err("the field is a list: write `[…]`"),
            (Cardinality::Map { .. }, _) => Err("the field is a map: write `{\"name\": …}`"),
            (Cardinality::One | Cardinality::Optional, literal) => self.accepts_one(literal),
        }
    }

    const fn accepts_each(&self, mut items: &[Literal]) -> Checked {
        while let [item, rest @ ..] = items {
            if let Err(problem) = self.accepts_one(*item) {
                return Err(problem);
            }
            items = rest;
        }
        Ok(())
    }

    const fn accepts_one(&self, literal: Literal) -> Checked {
        match (self.kind, literal) {
            (ValueKind::EnumToken, Literal::Text(text)) => self.has_member(text),
            (ValueKind::Integer, Literal::Whole(number)) => self.has_in_range(number),
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
            | (ValueKind::Object, Literal::Object(_)) => Ok(()),
            (
                ValueKind::String
                | ValueKind::Timestamp
                | ValueKind::Uri
                | ValueKind::AttachmentReference
                | ValueKind::EnumToken,
                _,
            ) => Err("the field is sent as text: write `\"…\"`"),
            (ValueKind::Integer, _) => Err("the field is an integer: write a whole number"),
            (ValueKind::Number, _) => Err("the field is a number: write one"),
            (ValueKind::Boolean, _) => Err("the field is a `bool`: write `true` or `false`"),
            (ValueKind::Array, _) => Err("the field is a list: write `[…]`"),
            (ValueKind::Object, _) => Err("the field is an object: write `{\"name\": …}`"),
        }
    }

    const fn has_in_range(&self, number: i128) -> Checked {
        match self.range {
            Some((minimum, maximum)) if number < minimum || number > maximum => {
                Err("the number is outside the range of the field's type")
            }
            Some(_) | None => Ok(()),
        }
    }

    const fn has_member(&self, text: &str) -> Checked {
        let mut members = self.members;
        while let [member, rest @ ..] = members {
            if same(member.as_bytes(), text.as_bytes()) {
                return Ok(());
            }
            members = rest;
        }
        Err("the text is not a value of the enum, as it is spelt in JSON")
    }
}

const fn require(holds: bool, problem: &'static str) -> Checked {
    if holds { Ok(()) } else { Err(problem) }
}

/// Compares two slices: `==` is not callable in a constant.
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
