//! Changes and faults of an address, by JSON pointer. None of them quotes it.

use crate::words::Say;
use countersign::ToolError;
use countersign::contract::{ErrorCode, Wording};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A change that was made to the address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct Change {
    /// Changed member, as a JSON pointer.
    pub field: String,
    /// Code of the change, such as `REGION_NAME_TO_CODE`. Codes do not change.
    pub change: String,
}

/// A fault of an address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The JSON pointer of the field.
    pub field: String,
    /// The kind of fault.
    pub problem: Problem,
    /// The message for people; it never quotes the address.
    pub message: String,
    /// The remedy, with an example.
    pub hint: String,
}

/// The kind of fault of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Problem {
    /// The country requires the field, and it is missing.
    Missing,
    /// The country or region is unknown. Usually its name is misspelt.
    Unknown,
    /// The field does not have the form of its country.
    Malformed,
    /// The field contradicts another one, such as a postal code of another region.
    Mismatch,
}

/// All faults of an address; at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults(pub Vec<Fault>);

/// `ADDRESS_INVALID` with the first fault in `field` and all of them in `details.faults`.
impl From<Faults> for ToolError {
    fn from(Faults(faults): Faults) -> Self {
        let first = faults.first();
        // The text of a fault is in the caller's language already.
        let message = first.map_or_else(
            || Say::AddressUnusable.into(),
            |fault| Wording::from(&fault.message),
        );
        let mut error = Self::new(ErrorCode::AddressInvalid, message);
        if let Some(first) = first {
            error = error.field(&first.field).hint(&first.hint);
        }
        error.detail("faults", json!(faults))
    }
}
