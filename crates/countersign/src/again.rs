//! The argument `again`: by it a model says that it means a write once more, because a repeat would get the first
//! answer.
//! The list of tools shows it (`dialect/tools.rs`), step 4 takes it away (`executor/unkeyed.rs`), and no tool gets it.

use countersign_args::Binder;
use countersign_contract::ToolSpec;
use countersign_contract::tool::{Change, KeyRule};
use serde_json::{Value, json};

/// The name of the argument.
pub(crate) const AGAIN: &str = "again";

/// The code of the warning that a write was not made again.
pub(crate) const REPEATED_CALL: &str = "REPEATED_CALL";

/// Adds the argument to the schema that a model is shown.
pub(crate) fn add_to(spec: &ToolSpec, schema: &mut Value) {
    let shown = json!({
        "type": "integer",
        "description": "2 or more: repeat on purpose.",
    });
    add(spec, schema, shown);
}

/// A binder that accepts the argument, in every form that a model gives it; `None` for a tool that does not have it.
pub(crate) fn binder(spec: &ToolSpec) -> Option<Binder> {
    let mut schema = spec.input.json_schema();
    let scalar = json!({ "type": ["boolean", "integer", "string", "null"] });
    add(spec, &mut schema, scalar)?;
    Binder::from_schema(&schema, spec.behaviour.binding).ok()
}

/// The number after the one that a call had; 2 if it had none.
pub(crate) fn next(again: Option<&str>) -> u64 {
    let number = again.and_then(|text| text.trim_matches('"').parse::<u64>().ok());
    number.map_or(2, |number| number.saturating_add(1)).max(2)
}

/// Adds the argument, if the tool writes, leaves keys to its callers and has no parameter of that name.
fn add(spec: &ToolSpec, schema: &mut Value, argument: Value) -> Option<()> {
    let is_free = spec.behaviour.idempotency.key == KeyRule::Optional
        && spec.behaviour.change != Change::Nothing;
    let properties = schema.get_mut("properties")?.as_object_mut()?;
    if !spec.behaviour.effect.changes_something() || !is_free || properties.contains_key(AGAIN) {
        return None;
    }
    properties.insert(AGAIN.to_owned(), argument);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_number_is_one_more() {
        let check = |again: Option<&str>, expected: u64| {
            assert_eq!(next(again), expected, "{again:?}");
        };
        check(None, 2);
        check(Some("2"), 3);
        check(Some("\"7\""), 8);
        check(Some("true"), 2);
        check(Some("\"once more\""), 2);
        check(Some("18446744073709551615"), u64::MAX);
    }
}
