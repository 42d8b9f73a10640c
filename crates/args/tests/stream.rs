//! A call while it arrives: the order of events, and what is withheld until it is certain.

#![expect(clippy::unwrap_used, reason = "a failing test may panic")]

use countersign_args::{Binder, Limits, StopReason, StreamEvent};
use countersign_contract::tool::BindPolicy;
use countersign_contract::{BindStatus, IssueCode};
use serde_json::{Value, json};

fn binder() -> Binder {
    let schema = json!({
        "type": "object",
        "properties": {
            "city": { "type": "string" },
            "days": { "type": "integer" },
            "tags": { "type": "array", "items": { "type": "string" } },
            "unit": { "enum": ["celsius", "fahrenheit"] },
            "who": { "type": "object", "properties": { "name": { "type": "string" } } },
        },
    });
    Binder::from_schema(&schema, BindPolicy::default()).unwrap()
}

/// Checks the shown value after each piece.
#[track_caller]
fn check(pieces: &[&str], expected: &[Value]) {
    let mut stream = binder().stream();
    let shown: Vec<Value> = pieces
        .iter()
        .map(|piece| {
            stream.push(piece);
            stream.snapshot().unwrap_or_default()
        })
        .collect();
    assert_eq!(shown, expected);
    assert_eq!(stream.raw(), pieces.concat());
}

#[test]
fn texts_grow_and_everything_else_waits() {
    check(
        &[
            r#"{"ci"#,
            r#"ty": "Pa"#,
            r#"ris", "da"#,
            r#"ys": 1"#,
            "2",
            "}",
        ],
        &[
            json!({}),
            json!({ "city": "Pa" }),
            json!({ "city": "Paris" }),
            json!({ "city": "Paris" }),
            json!({ "city": "Paris" }),
            json!({ "city": "Paris", "days": 12 }),
        ],
    );
}

#[test]
fn half_an_escape_is_not_shown() {
    check(
        &[r#"{"city": "a\"#, r"ud8", r"3d\ud", "e00b"],
        &[
            json!({ "city": "a" }),
            json!({ "city": "a" }),
            json!({ "city": "a" }),
            json!({ "city": "a😀b" }),
        ],
    );
}

/// A value that will be converted, renamed or refused is not shown as it is.
#[test]
fn only_what_the_declaration_accepts_is_shown() {
    check(
        &[
            r#"{"days": "3", "#,
            r#""unit": "Cel"#,
            r#"sius", "Tags": [], "#,
            r#""city": "x"}"#,
        ],
        &[json!({}), json!({}), json!({}), json!({ "city": "x" })],
    );
    check(
        &[
            r#"{"tags": ["a", "#,
            r#"5, "b"], "#,
            r#""unit": "celsius"}"#,
        ],
        &[
            json!({ "tags": ["a"] }),
            json!({ "tags": ["a"] }),
            json!({ "tags": ["a"], "unit": "celsius" }),
        ],
    );
}

/// At the first byte that is not strict JSON the stream shows nothing more; `finish` decides.
#[test]
fn repairs_are_left_to_the_end() {
    let raw = r#"{"city": "Los "Angeles," CA", "days": 1}"#;
    let mut stream = binder().stream();
    stream.push(raw);
    assert_eq!(stream.snapshot(), Some(json!({ "city": "Los " })));
    let bound = stream.finish(StopReason::Complete);
    assert_eq!(bound.status, BindStatus::Repaired);
    assert_eq!(
        bound.arguments.unwrap().to_value(),
        json!({ "city": "Los \"Angeles,\" CA", "days": 1 })
    );
}

#[test]
fn events_tell_what_became_certain() {
    let mut stream = binder().stream();
    let mut events = stream.push(r#"{"who": {"name": "A"#);
    events.extend(stream.push(r#"da"}, "days": 3}"#));
    let path = |path: &str| path.to_owned();
    assert_eq!(
        events,
        [
            StreamEvent::KeyReady { path: path("/who") },
            StreamEvent::KeyReady {
                path: path("/who/name")
            },
            StreamEvent::TextAppended {
                path: path("/who/name"),
                text: "A".into()
            },
            StreamEvent::TextAppended {
                path: path("/who/name"),
                text: "da".into()
            },
            StreamEvent::ValueReady {
                path: path("/who/name"),
                json: "\"Ada\"".into()
            },
            StreamEvent::Closed { path: path("/who") },
            StreamEvent::KeyReady {
                path: path("/days")
            },
            StreamEvent::ValueReady {
                path: path("/days"),
                json: "3".into()
            },
            StreamEvent::Closed { path: path("") },
        ]
    );
}

/// A text that was cut off by a token limit is incomplete, even if it looks complete.
#[test]
fn a_truncated_call_never_runs() {
    let mut stream = binder().stream();
    stream.push(r#"{"city": "Paris"}"#);
    let bound = stream.finish(StopReason::Truncated);
    assert_eq!(bound.status, BindStatus::Incomplete);
    assert_eq!(bound.issues.first().unwrap().code, IssueCode::Incomplete);
}

#[test]
fn what_is_too_long_is_not_kept() {
    let limits = Limits {
        raw_bytes_max: 32,
        ..Limits::default()
    };
    let mut stream = binder().with_limits(limits).stream();
    for _ in 0..1000 {
        stream.push(r#"{"city": "中中中中中中中"#);
    }
    assert!(stream.raw().len() < 40, "{}", stream.raw().len());
    assert_eq!(
        stream.finish(StopReason::Complete).status,
        BindStatus::Refused
    );
}
