//! Schemas that cannot be used: each is refused when it is compiled, with the place.

#![expect(clippy::unwrap_used, reason = "a failing test may panic")]

use countersign_args::Binder;
use countersign_contract::BindStatus;
use countersign_contract::tool::BindPolicy;
use serde_json::{Value, json};

/// Checks the place and a part of the message.
#[track_caller]
fn check_refused(schema: &Value, path: &str, message: &str) {
    let error = Binder::from_schema(schema, BindPolicy::default()).unwrap_err();
    assert_eq!(error.path, path, "{schema}");
    assert!(error.message.contains(message), "{schema}: {error}");
}

#[test]
fn what_cannot_be_checked_is_refused() {
    let within = |schema: Value| json!({ "type": "object", "properties": { "a": schema } });
    for (schema, path, message) in [
        (
            json!({ "unevaluatedItems": false }),
            "/properties/a",
            "unevaluatedItems is not supported",
        ),
        (
            json!({ "$dynamicRef": "#x" }),
            "/properties/a",
            "$dynamicRef is not supported",
        ),
        (
            json!({ "$recursiveRef": "#" }),
            "/properties/a",
            "$recursiveRef is not supported",
        ),
        (
            json!({ "anyOf": [true], "unevaluatedProperties": false }),
            "/properties/a",
            "unevaluatedProperties is supported as",
        ),
        (
            json!({ "$ref": "https://example.org/a.json" }),
            "/properties/a",
            "remote references are not followed",
        ),
        (
            json!({ "$id": "https://example.org/a.json" }),
            "/properties/a",
            "at the root only",
        ),
        (
            json!({ "pattern": "^(?!x)" }),
            "/properties/a/pattern",
            "look-around",
        ),
        (
            json!({ "pattern": r"(a)\1" }),
            "/properties/a/pattern",
            "backreferences",
        ),
        (
            json!({ "exclusiveMinimum": true }),
            "/properties/a/exclusiveMinimum",
            "must be a number",
        ),
    ] {
        check_refused(&within(schema), path, message);
    }
}

/// The root's pointer is empty; messages call it the root.
#[test]
fn the_root_has_a_name() {
    let error = Binder::from_schema(&json!([]), BindPolicy::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the schema cannot be used at its root: a schema is an object, true or false"
    );
}

/// Defaults and examples are checked only on request: a third party's schema may show a wrong one.
#[test]
fn shown_values_are_checked_on_request() {
    for (schema, path) in [
        (json!({ "type": "integer", "default": "x" }), "/default"),
        (
            json!({ "type": "integer", "examples": [1, 2.5] }),
            "/examples/1",
        ),
    ] {
        let binder = Binder::from_schema(&schema, BindPolicy::default()).unwrap();
        assert_eq!(binder.check_shown().unwrap_err().path, path);
    }
    let right = json!({ "type": "integer", "default": 1, "examples": [2] });
    let binder = Binder::from_schema(&right, BindPolicy::default()).unwrap();
    assert_eq!(binder.check_shown(), Ok(()));
}

/// Known formats are rules here, not annotations; an unknown one is an annotation.
#[test]
fn formats_are_asserted() {
    for (format, status) in [
        ("date-time", BindStatus::Refused),
        ("date", BindStatus::Refused),
        ("time", BindStatus::Refused),
        ("duration", BindStatus::Refused),
        ("email", BindStatus::Refused),
        ("hostname", BindStatus::Refused),
        ("ipv4", BindStatus::Refused),
        ("ipv6", BindStatus::Refused),
        ("uuid", BindStatus::Refused),
        ("uri", BindStatus::Repaired),
        ("colour", BindStatus::Exact),
    ] {
        let schema = json!({
            "type": "object",
            "properties": { "v": { "type": "string", "format": format } },
        });
        let binder = Binder::from_schema(&schema, BindPolicy::default()).unwrap();
        let bound = binder.bind(r#"{"v": "no such thing"}"#);
        assert_eq!(bound.status, status, "{format}");
    }
}
