//! JSON text that keeps its bytes: the text that was committed to, digit for digit.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// A JSON text, kept byte for byte. A `Value` would round large numbers.
///
/// # Example
///
/// ```
/// use countersign_contract::evidence::Exact;
///
/// let exact: Exact = serde_json::from_str(r#"{"n":1000000000000000000001}"#)?;
/// assert_eq!(exact.text(), r#"{"n":1000000000000000000001}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Exact(Box<RawValue>);

impl Exact {
    /// This text, which has to be JSON.
    pub fn new(text: String) -> Result<Self, serde_json::Error> {
        RawValue::from_string(text).map(Self)
    }

    /// The text.
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// The value; numbers beyond a double lose digits.
    pub fn value(&self) -> Result<Value, serde_json::Error> {
        serde_json::from_str(self.text())
    }
}

impl PartialEq for Exact {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

/// The text is a user's, so it isn't shown.
impl fmt::Debug for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Exact({} bytes)", self.text().len())
    }
}

#[cfg(feature = "schemars")]
impl schemars::JsonSchema for Exact {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        Value::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Value::json_schema(generator)
    }
}
