//! The places at which definitions of tools are not the approved ones.

use std::collections::BTreeSet;

use countersign::offer::DefinitionChange;
use serde_json::Value;

use crate::mcp::Definition;
use crate::mcp::pins::{Change, Difference, Pin};

/// Maximum number of places that are listed.
const TOLD_MAX: usize = 100;

/// The places at which the listed tools differ from the approved ones, tool by tool.
pub(super) fn changes(
    approved: Option<&Pin>,
    listed: &[Definition],
    differences: &[Difference],
) -> Vec<DefinitionChange> {
    let mut found = Vec::new();
    // Where nothing was approved yet, nothing has changed since.
    let Some(approved) = approved else {
        return found;
    };
    for difference in differences {
        let tool = &difference.tool;
        let before = approved.tools.get(tool).map(json);
        let after = listed.iter().find(|own| own.name == *tool).map(json);
        match &difference.change {
            Change::Renamed { from } => found.push(DefinitionChange {
                tool: tool.clone(),
                path: "/name".to_owned(),
                before: Some(from.as_str().into()),
                after: Some(tool.as_str().into()),
            }),
            Change::Added(_) | Change::Removed | Change::Changed(_) => {
                collect(
                    tool,
                    before.as_ref(),
                    after.as_ref(),
                    String::new(),
                    &mut found,
                );
            }
        }
    }
    found.truncate(TOLD_MAX);
    found
}

fn json(definition: &Definition) -> Value {
    serde_json::to_value(definition).unwrap_or_default()
}

fn collect(
    tool: &str,
    before: Option<&Value>,
    after: Option<&Value>,
    path: String,
    found: &mut Vec<DefinitionChange>,
) {
    if before == after || found.len() >= TOLD_MAX {
        return;
    }
    if let (Some(Value::Object(old)), Some(Value::Object(new))) = (before, after) {
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for name in names {
            let escaped = name.replace('~', "~0").replace('/', "~1");
            let path = format!("{path}/{escaped}");
            collect(tool, old.get(name), new.get(name), path, found);
        }
        return;
    }
    found.push(DefinitionChange {
        tool: tool.to_owned(),
        path,
        before: before.cloned(),
        after: after.cloned(),
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A place has its value before and after; a member that one side lacks has one of them.
    #[test]
    fn places_are_told_before_and_after() {
        let before =
            json!({"description": "a", "input_schema": {"properties": {"x": {"type": "string"}}}});
        let after =
            json!({"description": "b", "input_schema": {"properties": {"y": {"type": "string"}}}});
        let mut found = Vec::new();
        collect("t", Some(&before), Some(&after), String::new(), &mut found);
        let told: Vec<_> = found
            .iter()
            .map(|one| (one.path.as_str(), one.before.is_some(), one.after.is_some()))
            .collect();
        assert_eq!(
            told,
            [
                ("/description", true, true),
                ("/input_schema/properties/x", true, false),
                ("/input_schema/properties/y", false, true),
            ]
        );
    }
}
