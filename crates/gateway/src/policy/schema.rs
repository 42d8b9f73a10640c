//! The JSON Schema of a policy file. The comments on the members of its types are the reference, as in `countersign.toml`.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::PolicyFile;

/// The JSON Schema of a policy file.
///
/// # Example
///
/// ```
/// let schema = countersign_gateway::policy::schema();
/// assert!(schema["properties"]["issuers"].is_object());
/// ```
pub fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12().for_deserialize();
    let generator = settings.into_generator();
    generator.into_root_schema_for::<PolicyFile>().to_value()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Policy;

    /// Every member of the schema, with its place and its text.
    fn members<'s>(schema: &'s Value, place: &str, found: &mut Vec<(String, &'s Value)>) {
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            for (name, own) in properties {
                found.push((format!("{place}/{name}"), own));
            }
        }
        if let Some(definitions) = schema.get("$defs").and_then(Value::as_object) {
            for (name, own) in definitions {
                members(own, name, found);
            }
        }
    }

    /// Each setting is documented, in a sentence.
    #[test]
    fn each_member_has_a_text() {
        let schema = schema();
        let mut found = Vec::new();
        members(&schema, "", &mut found);
        assert!(found.len() > 60, "{}", found.len());
        for (place, own) in found {
            let text = own.get("description").and_then(Value::as_str);
            assert!(
                text.is_some_and(|text| text.ends_with('.')),
                "{place}: {own}"
            );
        }
    }

    /// The schema and the parser know the same members: an unknown one is refused by both, and what the parser expects is in the schema.
    #[test]
    fn the_schema_knows_the_members_of_the_parser() {
        let schema = schema();
        let check = |toml: &str, place: &str| {
            let error = Policy::parse(toml).unwrap_err().to_string();
            let expected = error.split("expected").nth(1).unwrap_or_default();
            let expected: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
            assert!(expected.len() > 1, "{error}");
            let own = if place.is_empty() {
                &schema
            } else {
                &schema["$defs"][place]
            };
            let known = own["properties"].as_object().unwrap();
            let mut known: Vec<&str> = known.keys().map(String::as_str).collect();
            let mut expected = expected;
            known.sort_unstable();
            expected.sort_unstable();
            assert_eq!(known, expected, "{place}");
            assert_eq!(own["additionalProperties"], false, "{place}");
        };
        check("x = 1", "");
        check("[defaults]\nx = 1", "Defaults");
        check("[[tools]]\nx = 1", "ToolRule");
        check("[[agents]]\nx = 1", "AgentRule");
        check("[[rules]]\nx = 1", "CallRule");
        check("[[issuers]]\nx = 1", "IssuerRule");
        check("[approvals]\nx = 1", "Approvals");
        check("[limits]\nx = 1", "Limits");
        check("[limits.user]\nx = 1", "Rate");
        check("[limits.tools.\"a\"]\nx = 1", "ToolRate");
        check("[breaker]\nx = 1", "Breaker");
        check("[[budgets]]\nx = 1", "Budget");
        check(
            "[[budgets]]\nname = \"a\"\n[[budgets.tools]]\nx = 1",
            "Spender",
        );
    }
}
