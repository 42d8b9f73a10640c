//! Declared parameters from a Rust struct.
//!
//! [`ToolArgs`] is a whole argument object, [`ArgType`] the type of one field (`Option`, lists and
//! maps included), [`ArgValue`] one value in it. `#[derive(ToolArgs)]` joins the three.

pub mod check;
mod impls;
mod text;

use countersign_contract::{Cardinality, Parameter, ValueKind};
use serde::Deserialize;
use serde::de::DeserializeOwned;

pub use text::{Attachment, Uri};

/// The arguments of a tool: what it declares, and what its code receives.
///
/// Derive it together with `Deserialize`; see [the derive macro](derive@crate::ToolArgs).
/// `()` stands for a tool without parameters.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the arguments of a tool",
    label = "not a struct that derives `ToolArgs`",
    note = "write `#[derive(Deserialize, ToolArgs)]` on a struct with named fields; use `()` for a tool without parameters",
    note = "an enum that derives `ToolArgs` is the type of a field, not of the arguments as a whole"
)]
pub trait ToolArgs: DeserializeOwned + Send {
    /// The parameters that the fields declare, in their order.
    fn parameters() -> Vec<Parameter>;

    /// Reads bound arguments, a JSON object.
    ///
    /// # Errors
    ///
    /// If the text is not what [`Self::parameters`] declares; the binder prevents that.
    fn from_json(json: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }
}

impl ToolArgs for () {
    fn parameters() -> Vec<Parameter> {
        Vec::new()
    }

    // Serde reads `()` from `null`, but the arguments of a call are always an object.
    fn from_json(json: &str) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Nothing {}

        serde_json::from_str(json).map(|Nothing {}| ())
    }
}

/// One value of a parameter: text, a number, an enum, an object.
///
/// Implement it for a newtype of your own; `Option`, lists and maps of it then work by themselves.
///
/// # Example
///
/// ```
/// use countersign::contract::{Cardinality, ValueKind};
/// use countersign::{ArgType, ArgValue};
///
/// #[derive(serde::Deserialize)]
/// #[serde(transparent)]
/// struct Sku(String);
///
/// impl ArgValue for Sku {
///     const KIND: ValueKind = ValueKind::String;
/// }
///
/// let skus = Vec::<Sku>::parameter("skus", "the items to quote");
/// assert_eq!(skus.kind, ValueKind::String);
/// assert_eq!(skus.cardinality, Cardinality::List { required: true });
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a value of a tool's parameter",
    label = "no kind of parameter fits this type",
    note = "for a newtype of your own, implement `countersign::ArgValue`"
)]
pub trait ArgValue {
    /// Kind of the value.
    const KIND: ValueKind;

    /// The smallest and the largest whole number, if the type is narrower than its kind.
    const RANGE: Option<(i128, i128)> = None;

    /// The members of an enum, as spelled on the wire.
    const MEMBERS: &'static [&'static str] = &[];

    /// Nesting depth of objects: an object is one deeper than the deepest of its fields.
    ///
    /// A struct that contains itself has no depth, so it fails to compile here instead of declaring
    /// parameters without end.
    const DEPTH: usize = 0;

    /// Adds the type's own facts: fields, members, bounds that [`Self::RANGE`] cannot express.
    fn describe(parameter: Parameter) -> Parameter {
        parameter
    }
}

/// The type of a field: one [`ArgValue`], or an `Option`, a list or a map of it.
///
/// A list within a list and an `Option` within a list have no place in a [`Parameter`], and are
/// refused: put the inner list into a struct that derives `ToolArgs`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the type of a tool's parameter",
    label = "no parameter fits this type",
    note = "a value is a `String`, a `bool`, an integer of up to 64 bits, `f32`, `f64`, `jiff::Timestamp`, `countersign::Uri`, `countersign::Attachment`, or a struct or an enum that derives `ToolArgs`",
    note = "around a value there may be an `Option`, one list (`Vec`, `HashSet`, `BTreeSet`) or one map (`HashMap` or `BTreeMap` from `String`), no list within a list",
    note = "use `serde_json::Map<String, Value>` for any object, `Vec<serde_json::Value>` for any list",
    note = "for a newtype of your own, implement `countersign::ArgValue`"
)]
pub trait ArgType {
    /// The value inside.
    type Item: ArgValue;

    /// Cardinality of the value.
    const CARDINALITY: Cardinality;

    /// The parameter that a field of this type declares.
    fn parameter(name: &str, description: &str) -> Parameter {
        let mut parameter = Parameter::new(name, Self::Item::KIND, description);
        if let Some((minimum, maximum)) = Self::Item::RANGE {
            parameter.bounds.minimum = serde_json::Number::from_i128(minimum);
            parameter.bounds.maximum = serde_json::Number::from_i128(maximum);
        }
        parameter = Self::Item::describe(parameter);
        parameter.cardinality = Self::CARDINALITY;
        parameter
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use crate::ToolArgs;

    /// The derive names this crate from outside, and must work inside it as well.
    #[test]
    fn the_derive_works_in_this_crate() {
        #[derive(Deserialize, ToolArgs)]
        struct Args {
            /// Words to search for.
            query: String,
        }

        assert_eq!(Args::parameters()[0].name, "query");
        assert_eq!(Args::from_json(r#"{"query": "tax"}"#).unwrap().query, "tax");
    }
}
