//! The argument by which a model says that it means a write again, where a repeat would get the first answer.

use countersign_contract::ToolSpec;
use countersign_contract::tool::KeyRule;
use serde_json::{Value, json};

/// Its name.
pub(crate) const AGAIN: &str = "again";

/// The code of the warning that a write was not made again.
pub(crate) const REPEATED_CALL: &str = "REPEATED_CALL";

/// Whether a tool has it: it writes, leaves keys to its callers, and has no parameter of that name.
pub(crate) fn takes_again(spec: &ToolSpec) -> bool {
    spec.behaviour.effect.changes_something() && spec.behaviour.idempotency.key == KeyRule::Optional
}

/// Adds it to the schema that a model is shown.
pub(crate) fn add_to(spec: &ToolSpec, schema: &mut Value) {
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    if takes_again(spec) && !properties.contains_key(AGAIN) {
        let shown = json!({
            "type": "integer",
            "description": "2 or more: make the same call once more, on purpose.",
        });
        properties.insert(AGAIN.to_owned(), shown);
    }
}
