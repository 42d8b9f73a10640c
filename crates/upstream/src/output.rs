//! The declared schema of an answer, checked with the binder that checks arguments; nothing is repaired in an answer.

use countersign_args::Binder;
use countersign_contract::BindStatus;
use countersign_contract::parameter::Leniency;
use countersign_contract::tool::{BindPolicy, UnknownKeys};
use serde_json::{Value, json};

/// A prepared schema.
pub(crate) struct Output {
    binder: Binder,
    /// True if the answer is wrapped in an object, because it is not one itself.
    is_wrapped: bool,
}

/// The longest answer that is checked, in bytes: the binder is made for arguments.
const CHECKED_BYTES_MAX: usize = 512 * 1024;

impl Output {
    /// Prepares a schema; `None` if it cannot be checked.
    pub(crate) fn of(schema: &Value) -> Option<Self> {
        let policy = BindPolicy {
            leniency: Leniency::Strict,
            unknown_keys: UnknownKeys::Keep,
            ..BindPolicy::default()
        };
        let is_object = schema.get("type").and_then(Value::as_str) == Some("object");
        let has_reference = schema.to_string().contains("\"$ref\"");
        let wrapped = json!({
            "type": "object", "required": ["data"], "properties": { "data": schema },
        });
        let schema = match (is_object, has_reference) {
            (true, _) => schema,
            (false, false) => &wrapped,
            // A reference counts from the root, which would be another one.
            (false, true) => return None,
        };
        let binder = Binder::from_schema(schema, policy).ok()?;
        Some(Self {
            binder,
            is_wrapped: !is_object,
        })
    }

    /// Checks an answer; the error names the first place that does not fit, and no value.
    pub(crate) fn check(&self, data: &Value) -> Result<(), String> {
        if self.is_wrapped {
            self.check_object(&json!({ "data": data }).to_string())
        } else {
            self.check_object(&data.to_string())
        }
    }

    /// Checks an answer that is still text.
    pub(crate) fn check_text(&self, text: &str) -> Result<(), String> {
        if self.is_wrapped {
            self.check_object(&format!("{{\"data\":{text}}}"))
        } else {
            self.check_object(text)
        }
    }

    fn check_object(&self, text: &str) -> Result<(), String> {
        if text.len() > CHECKED_BYTES_MAX {
            return Ok(());
        }
        let bound = self.binder.bind(text);
        match bound.status {
            BindStatus::Exact => Ok(()),
            BindStatus::Repaired | BindStatus::Incomplete | BindStatus::Refused => {
                let first = bound.issues.first();
                Err(first.map_or_else(String::new, |issue| {
                    let place = issue.path.strip_prefix("/data").filter(|_| self.is_wrapped);
                    let place = place.unwrap_or(&issue.path);
                    format!("{} at {place:?}", issue.code.as_str())
                }))
            }
        }
    }
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Output")
    }
}
