//! Bound arguments: strict JSON that the declaration accepts.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Arguments after binding: strict JSON text that the tool's declaration accepts.
///
/// The text keeps every number as it was spelt, so nothing goes through a float.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arguments {
    json: Arc<str>,
}

impl Arguments {
    /// For the binder, which has just checked the text.
    pub(crate) fn from_checked(json: impl Into<Arc<str>>) -> Self {
        Self { json: json.into() }
    }

    /// The JSON text.
    pub fn as_json(&self) -> &str {
        &self.json
    }

    /// As a typed value.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.json)
    }

    /// As a JSON value; integers beyond 64 bits and long decimals are rounded here, and only here.
    pub fn to_value(&self) -> Value {
        serde_json::from_str(&self.json).unwrap_or(Value::Null)
    }
}
