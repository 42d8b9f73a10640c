//! Any text against a dozen schemas: the binder never panics, and its statements about the text are true.
//!
//! The first byte chooses the schema, so that the text stays readable in a corpus.

#![no_main]

use std::sync::LazyLock;

use countersign_args::{Binder, Bound, Limits};
use countersign_contract::{BindStatus, IssueCode, Severity};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

/// The schemas, prepared once.
static BINDERS: LazyLock<Vec<Binder>> = LazyLock::new(|| {
    let mut binders: Vec<Binder> = schemas()
        .iter()
        .map(|schema| Binder::from_schema(schema, Default::default()).expect("the schema is good"))
        .collect();
    binders.push(Binder::undeclared());
    binders
});

fuzz_target!(|input: (u8, &str)| {
    let (choice, raw) = input;
    let binder = &BINDERS[usize::from(choice) % BINDERS.len()];
    let bound = binder.bind(raw);
    assert!(
        bound.issues.len() <= Limits::default().issues_max + 1,
        "too many issues"
    );
    for issue in &bound.issues {
        assert_eq!(issue.severity, issue.code.severity());
        assert!(is_pointer(&issue.path), "no JSON pointer: {:?}", issue.path);
        if let Some([start, end]) = issue.span {
            assert!(
                start <= end && end <= raw.len(),
                "a span outside of the text"
            );
            assert!(raw.is_char_boundary(start) && raw.is_char_boundary(end));
        }
    }
    let has_error = bound
        .issues
        .iter()
        .any(|issue| issue.severity == Severity::Error);
    match bound.status {
        BindStatus::Exact => {
            assert!(
                bound.issues.is_empty(),
                "exact with issues: {:?}",
                bound.issues
            );
            assert!(is_json(raw), "exact, but no JSON");
            assert_same_text(text_of(&bound), raw);
        }
        BindStatus::Repaired => {
            assert!(
                !bound.issues.is_empty() && !has_error,
                "repaired: {:?}",
                bound.issues
            );
            assert_settled(binder, &bound);
        }
        BindStatus::Incomplete => {
            let codes = bound.issues.iter().map(|issue| issue.code);
            assert!(codes.clone().any(|code| code == IssueCode::Incomplete));
            // Where nothing of the call has arrived, or not enough, there is no value.
            assert!(bound.arguments.is_none() || is_json(text_of(&bound)));
        }
        BindStatus::Refused => {
            assert!(has_error, "refused without a reason: {:?}", bound.issues);
            assert!(bound.arguments.is_none(), "refused, but with arguments");
        }
    }
});

/// Binding is idempotent: a second pass over a bound value finds nothing to change. Notes that change nothing (an undeclared tool, a kept
/// form) are repeated.
#[track_caller]
fn assert_settled(binder: &Binder, bound: &Bound) {
    let text = text_of(bound);
    let again = binder.bind(text);
    let remarks = again
        .issues
        .iter()
        .all(|issue| issue.severity == Severity::Note);
    assert!(
        again.is_executable() && remarks,
        "bound again it is {:?} with {:?}\nfirst: {text}\nby {:?}",
        again.status,
        again.issues,
        bound.issues,
    );
    assert_eq!(text_of(&again), text, "bound again it is another value");
}

/// Exact is the text itself. Where a kept form is looked for, it is written anew: the same value.
#[track_caller]
fn assert_same_text(text: &str, raw: &str) {
    if text != raw.trim_matches([' ', '\t', '\n', '\r']) {
        let value = |text| serde_json::from_str::<Value>(text).expect("it is JSON");
        assert_eq!(value(text), value(raw), "exact, but another value");
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

fn text_of(bound: &Bound) -> &str {
    bound
        .arguments
        .as_ref()
        .map_or("", |arguments| arguments.as_json())
}

/// RFC 6901: empty, or parts that each begin with a slash, in which a tilde is an escape.
fn is_pointer(path: &str) -> bool {
    let escaped = path
        .split('~')
        .skip(1)
        .all(|rest| rest.starts_with(['0', '1']));
    (path.is_empty() || path.starts_with('/')) && escaped
}

fn schemas() -> Vec<Value> {
    let object = |properties: Value, required: Value| {
        json!({
            "type": "object", "properties": properties, "required": required,
            "additionalProperties": false,
        })
    };
    vec![
        object(
            json!({"query": {"type": "string"}, "limit": {"type": "integer", "minimum": 1, "maximum": 50}}),
            json!(["query"]),
        ),
        object(
            json!({"on": {"type": "boolean"}, "ratio": {"type": "number"}, "n": {"type": ["integer", "null"]}}),
            json!([]),
        ),
        object(
            json!({"tags": {"type": "array", "items": {"type": "string"}},
                   "ids": {"type": "array", "items": {"type": "integer"}, "maxItems": 4}}),
            json!(["tags"]),
        ),
        object(
            json!({"unit": {"enum": ["celsius", "fahrenheit"], "x-enum-aliases": {"celsius": ["C"]}},
                   "mode": {"enum": ["Fast", "fast", 3, null]}}),
            json!(["unit"]),
        ),
        object(
            json!({"at": {"type": "string", "format": "date-time"}, "day": {"type": "string", "format": "date"},
                   "link": {"type": "string", "format": "uri"}, "mail": {"type": "string", "format": "email"}}),
            json!([]),
        ),
        object(
            json!({"value": {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "array",
                   "items": {"type": "boolean"}}]}}),
            json!(["value"]),
        ),
        object(
            json!({"shape": {"oneOf": [
                {"type": "object", "properties": {"kind": {"const": "circle"}, "r": {"type": "number"}},
                 "required": ["kind", "r"]},
                {"type": "object", "properties": {"kind": {"const": "box"}, "w": {"type": "number"}},
                 "required": ["kind", "w"]}]}}),
            json!(["shape"]),
        ),
        json!({
            "$ref": "#/$defs/node",
            "$defs": {"node": {"type": "object", "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}},
        }),
        object(
            json!({"labels": {"type": "object", "additionalProperties": {"type": "integer"}},
                   "extra": {"type": "object"}}),
            json!([]),
        ),
        json!({
            "type": "object",
            "properties": {"userId": {"type": "string", "x-aliases": ["uid"]}, "Count": {"type": "integer",
                           "x-truncate": true}, "secret": {"type": "string", "x-sensitivity": "secret"}},
            "patternProperties": {"^x_": {"type": "integer"}},
        }),
        object(
            json!({"a": {"allOf": [{"type": "string"}, {"minLength": 2}]},
                   "b": {"type": "string", "pattern": "^[a-z]+$"}, "c": {"not": {"type": "string"}}}),
            json!(["a"]),
        ),
        json!({"type": "array", "items": {"type": "integer"}}),
    ]
}
