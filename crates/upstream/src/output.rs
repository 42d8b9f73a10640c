//! The declared schema of an answer, checked with the binder that checks arguments; nothing is repaired in an answer.

use countersign_args::{Binder, Limits};
use countersign_contract::parameter::Leniency;
use countersign_contract::tool::{BindPolicy, UnknownKeys};
use countersign_contract::{BindStatus, IssueCode};
use serde_json::{Map, Value, json};

/// A prepared schema.
pub(crate) struct Output {
    binder: Binder,
    /// True if the answer is wrapped in an object, because it is not one itself.
    is_wrapped: bool,
}

/// Result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The answer is as declared.
    Fits,
    /// The answer is not as declared: the first place that does not fit, without its value.
    Mismatch(String),
    /// The answer was not checked, with the reason.
    Unchecked(String),
}

/// The longest answer that is checked, in bytes: the binder is made for arguments.
const CHECKED_BYTES_MAX: usize = 512 * 1024;

/// Pointer of an answer in its wrapping.
const WRAPPED: &str = "/properties/data";

/// Returns the reason why answers cannot be checked against a schema; `None` if they can.
pub fn unchecked(schema: &Value) -> Option<String> {
    Output::of(schema).err()
}

impl Output {
    /// Prepares a schema. The error is the reason why it cannot be checked.
    pub(crate) fn of(schema: &Value) -> Result<Self, String> {
        let policy = BindPolicy {
            leniency: Leniency::Strict,
            unknown_keys: UnknownKeys::Keep,
            ..BindPolicy::default()
        };
        // The bound on an answer is its length alone.
        let limits = Limits {
            raw_bytes_max: 2 * CHECKED_BYTES_MAX,
            nodes_max: CHECKED_BYTES_MAX,
            members_max: CHECKED_BYTES_MAX,
            depth_max: Limits::DEPTH_HARD_MAX,
            ..Limits::default()
        };
        let is_object = schema.get("type").and_then(Value::as_str) == Some("object");
        let binder = if is_object {
            Binder::from_schema(schema, policy)
        } else {
            let mut data = moved(schema, WRAPPED);
            if let Value::Object(data) = &mut data {
                // These are the root's.
                data.remove("$id");
                data.remove("$schema");
            }
            let wrapped = json!({
                "type": "object", "required": ["data"], "properties": { "data": data },
            });
            Binder::from_schema(&wrapped, policy)
        };
        let binder = binder.map_err(|error| {
            let path = error.path.strip_prefix(WRAPPED).filter(|_| !is_object);
            let path = path.unwrap_or(&error.path);
            format!("the schema cannot be used at {path:?}: {}", error.message)
        })?;
        Ok(Self {
            binder: binder.with_limits(limits),
            is_wrapped: !is_object,
        })
    }

    /// Checks an answer.
    pub(crate) fn check(&self, data: &Value) -> Verdict {
        self.check_text(&data.to_string())
    }

    /// Checks an answer that is still text.
    pub(crate) fn check_text(&self, text: &str) -> Verdict {
        if text.len() > CHECKED_BYTES_MAX {
            return Verdict::Unchecked(format!("it has more than {CHECKED_BYTES_MAX} bytes"));
        }
        let bound = if self.is_wrapped {
            self.binder.bind(&format!("{{\"data\":{text}}}"))
        } else {
            self.binder.bind(text)
        };
        match bound.status {
            BindStatus::Exact => Verdict::Fits,
            BindStatus::Repaired | BindStatus::Incomplete | BindStatus::Refused => {
                let Some(issue) = bound.issues.first() else {
                    return Verdict::Mismatch(String::new());
                };
                let place = issue.path.strip_prefix("/data").filter(|_| self.is_wrapped);
                let place = place.unwrap_or(&issue.path);
                let why = format!("{} at {place:?}", issue.code.as_str());
                if issue.code == IssueCode::LimitExceeded {
                    return Verdict::Unchecked(why);
                }
                Verdict::Mismatch(why)
            }
        }
    }
}

/// A schema at another place of a document: references that count from its root count from there.
fn moved(schema: &Value, to: &str) -> Value {
    match schema {
        Value::Object(members) => {
            let members = members.iter().map(|(keyword, value)| {
                let value = match (keyword.as_str(), value) {
                    ("$ref", Value::String(reference)) => moved_reference(reference, to),
                    // These hold values, not schemas.
                    ("const" | "enum" | "default" | "examples", value) => value.clone(),
                    (
                        "properties" | "patternProperties" | "dependentSchemas" | "$defs"
                        | "definitions",
                        Value::Object(schemas),
                    ) => {
                        let schemas = schemas.iter();
                        let schemas = schemas.map(|(name, own)| (name.clone(), moved(own, to)));
                        Value::Object(schemas.collect::<Map<_, _>>())
                    }
                    (_, value) => moved(value, to),
                };
                (keyword.clone(), value)
            });
            Value::Object(members.collect())
        }
        Value::Array(items) => items.iter().map(|own| moved(own, to)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => schema.clone(),
    }
}

fn moved_reference(reference: &str, to: &str) -> Value {
    match reference.strip_prefix('#') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("#{to}{rest}").into(),
        // An anchor keeps its name, and a reference out of the document is refused.
        Some(_) | None => reference.into(),
    }
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Output")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(schema: &Value, data: &Value) -> Verdict {
        match Output::of(schema) {
            Ok(output) => output.check(data),
            Err(why) => Verdict::Unchecked(why),
        }
    }

    /// A reference at the root, or in a schema that is no object, is followed.
    #[test]
    fn references_are_followed() {
        let defs = json!({
            "Item": {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}},
            "Tree": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
        });
        let good = |id: Value| json!({"id": id});
        let wrong = |place: &str| Verdict::Mismatch(format!("TYPE_MISMATCH at {place:?}"));
        let root = json!({"$ref": "#/$defs/Item", "$defs": defs});
        assert_eq!(verdict(&root, &good(json!(1))), Verdict::Fits);
        assert_eq!(verdict(&root, &good(json!("1"))), wrong("/id"));
        let list = json!({
            "$id": "https://example.com/list", "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "array", "items": {"$ref": "#/$defs/Item"}, "$defs": defs,
        });
        assert_eq!(verdict(&list, &json!([good(json!(1))])), Verdict::Fits);
        assert_eq!(
            verdict(&list, &json!([good(json!(1)), good(json!(true))])),
            wrong("/1/id")
        );
        let itself = json!({"type": ["array", "null"], "items": {"$ref": "#"}});
        assert_eq!(verdict(&itself, &json!([[], null])), Verdict::Fits);
        assert_eq!(verdict(&itself, &json!([[1]])), wrong("/0/0"));
        let tree = json!({"$ref": "#/$defs/Tree", "$defs": defs});
        assert_eq!(verdict(&tree, &json!([[], [[]]])), Verdict::Fits);
        // A member of this name is a schema, and a value of this name is not.
        let named = json!({
            "type": "array",
            "items": {"type": "object", "properties": {"default": {"$ref": "#/$defs/Item"}}},
            "default": [{"$ref": "#/x"}], "$defs": defs,
        });
        assert_eq!(
            verdict(&named, &json!([{"default": {"id": "x"}}])),
            wrong("/0/default/id")
        );
    }

    /// A part that is not checked gets a warning, and counts as no match.
    #[test]
    fn what_is_not_checked_is_told() {
        let check = |schema: Value, data: Value| {
            let verdict = verdict(&schema, &data);
            assert!(matches!(verdict, Verdict::Unchecked(_)), "{verdict:?}");
        };
        let text = json!({"type": "string"});
        check(text.clone(), json!("x".repeat(CHECKED_BYTES_MAX)));
        check(
            json!({"type": "object", "unevaluatedItems": false, "$dynamicRef": "#x"}),
            json!({}),
        );
        check(json!({"$ref": "https://example.com/a.json"}), json!({}));
        check(json!({"type": "string", "pattern": "^(?=a)"}), json!("a"));
        let long = json!("x".repeat(CHECKED_BYTES_MAX - 2));
        assert_eq!(verdict(&text, &long), Verdict::Fits);
        let many = json!(vec![1; 200_000]);
        assert_eq!(verdict(&json!({"type": "array"}), &many), Verdict::Fits);
    }
}
