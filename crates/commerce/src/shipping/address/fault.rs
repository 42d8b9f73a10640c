//! What is said about an address: changes and faults, by JSON pointer. None of them quotes it.

use crate::words::Say;
use countersign::ToolError;
use countersign::contract::{ErrorCode, Wording};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Something that was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct Change {
    /// JSON pointer.
    pub field: String,
    /// What was done, as a code that stays: such as `REGION_NAME_TO_CODE`.
    pub change: String,
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// JSON pointer.
    pub field: String,
    /// What kind of fault it is.
    pub problem: Problem,
    /// For people; it never quotes the address.
    pub message: String,
    /// What to do, with an example.
    pub hint: String,
}

/// What is wrong with a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Problem {
    /// The country needs it.
    Missing,
    /// There is no such country or region.
    Unknown,
    /// It does not look as it has to.
    Malformed,
    /// It does not go with another field.
    Mismatch,
}

/// Everything that is wrong with an address; at least one fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults(pub Vec<Fault>);

/// `ADDRESS_INVALID` with the first fault in `field` and all of them in `details.faults`.
impl From<Faults> for ToolError {
    fn from(Faults(faults): Faults) -> Self {
        let first = faults.first();
        // A fault is written in the caller's language already.
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
