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

/// Members that a schema allows beside a union are allowed whichever branch fits: the branches say nothing about them.
#[test]
fn other_members_beside_a_union_are_allowed() {
    let branches = json!([
        { "type": "object", "properties": { "a": { "type": "string" } } },
        { "type": "object", "properties": { "b": { "type": "string" } } },
    ]);
    let status = |others: Option<Value>, text: &str| {
        let mut union = json!({ "type": "object", "anyOf": branches });
        if let Some(others) = others {
            union["additionalProperties"] = others;
        }
        let schema = json!({ "type": "object", "properties": { "v": union } });
        let binder = Binder::from_schema(&schema, BindPolicy::default()).unwrap();
        binder.bind(text).status
    };
    let other = r#"{"v": {"other": "x"}}"#;
    let text = || Some(json!({ "type": "string" }));
    assert_eq!(status(text(), other), BindStatus::Exact);
    assert_eq!(status(Some(json!(true)), other), BindStatus::Exact);
    assert_eq!(status(None, other), BindStatus::Refused);
    assert_eq!(
        status(text(), r#"{"v": {"other": {"x": 1}}}"#),
        BindStatus::Refused
    );
}

/// A duration has the form of ISO 8601, however long it is.
#[test]
fn durations_have_the_form_of_iso_8601() {
    let schema = json!({
        "type": "object",
        "properties": { "v": { "type": "string", "format": "duration" } },
    });
    let binder = Binder::from_schema(&schema, BindPolicy::default()).unwrap();
    let status = |text: &str| binder.bind(&json!({ "v": text }).to_string()).status;
    for right in [
        "P1D",
        "PT5M",
        "PT1H30M",
        "P1Y2M3W4DT5H6M7.5S",
        "P4W",
        "PT0S",
        "PT1.5H",
        "P625041115588589D",
        "PT6865757035H510605994481980683795798M",
    ] {
        assert_eq!(status(right), BindStatus::Exact, "{right}");
    }
    for wrong in [
        "P", "PT", "P1", "PD", "P1DT", "1D", "P1H", "PT1D", "P1D1Y", "PT1S1H", "P1D1D", "P1.5DT1H",
        "PT1.S", "PT.5S", "-P1D", "P-1D", "P1D ", "PT1H30",
    ] {
        assert_eq!(status(wrong), BindStatus::Refused, "{wrong}");
    }
}
