//! Texts that are made to be expensive: work is counted in look-aheads, allocated bytes or stack frames, never
//! timed.

#![expect(clippy::unwrap_used, reason = "a failing test may panic")]

use countersign_args::{Binder, Bound, Limits, StreamEvent};
use countersign_contract::tool::BindPolicy;
use countersign_contract::{BindStatus, IssueCode, Severity};
use serde_json::{Value, json};

fn binder(schema: &Value) -> Binder {
    Binder::from_schema(schema, BindPolicy::default()).unwrap()
}

fn two_texts() -> Value {
    json!({
        "type": "object",
        "properties": { "a": { "type": "string" }, "b": { "type": "string" } },
    })
}

/// Binds a text and returns the allocated bytes for each byte of it.
fn bytes_per_byte(binder: &Binder, raw: &str) -> (Bound, u64) {
    let mut bound = None;
    let measured = allocation_counter::measure(|| bound = Some(binder.bind(raw)));
    (bound.unwrap(), measured.bytes_total / raw.len() as u64)
}

/// Closers without an opener are skipped one by one: a small stack is enough for many.
#[test]
fn closers_do_not_nest() {
    let run = || {
        let raw = format!("{{\"a\": 1{}}}", "]".repeat(100_000));
        let bound = binder(&two_texts()).bind(&raw);
        assert_eq!(bound.status, BindStatus::Repaired);
        assert_eq!(bound.issues[0].code, IssueCode::ExtraCloser);
    };
    let small = std::thread::Builder::new().stack_size(512 * 1024);
    small.spawn(run).unwrap().join().unwrap();
}

/// A comma that was written as an escape belongs to its string. The reader must neither go back to another
/// comma, which would read the member again and again, nor split the string at one.
#[test]
fn an_escaped_comma_separates_nothing() {
    for raw in [
        r#"{"a": "1", "b": "x\u002c "a": "2"}"#,
        r#"{"b": "x, y\u002c "a": "2"}"#,
        r#"{"b": "x,\n "a": "2"}"#,
    ] {
        let bound = binder(&two_texts()).bind(raw);
        assert_eq!(bound.status, BindStatus::Refused, "{raw}");
        assert_eq!(bound.issues[0].code, IssueCode::Ambiguous, "{raw}");
    }
}

/// One look-ahead serves a whole run of white space.
#[test]
fn white_space_in_a_list_is_looked_over_once() {
    let limits = Limits {
        lookaheads_max: 16,
        ..Limits::default()
    };
    let binder = binder(&json!({ "type": "object" })).with_limits(limits);
    let raw = format!("{{l: [x{}1]}}", " ".repeat(10_000));
    assert_eq!(binder.bind(&raw).status, BindStatus::Repaired);
}

/// No value of a limit makes arithmetic overflow.
#[test]
fn limits_may_be_anything() {
    let schema = json!({ "type": "object", "properties": {
        "a": { "anyOf": [{ "type": "integer" }, { "type": "boolean" }] },
    } });
    let raw = r#"{a: "1", "b": "x" y", }"#;
    for most in [0, 1, usize::MAX] {
        let limits = Limits {
            raw_bytes_max: most,
            depth_max: most,
            nodes_max: most,
            candidates_max: most,
            decode_nesting_max: most,
            lookahead_bytes_max: most,
            lookaheads_max: most,
            union_attempts_per_node_max: most,
            issues_max: most,
            number_digits_max: most,
            members_max: most,
        };
        let binder = binder(&schema).with_limits(limits);
        let mut stream = binder.stream();
        stream.push(raw);
        let bound = binder.bind(raw);
        assert_eq!(bound.issues.is_empty(), bound.status == BindStatus::Exact);
    }
}

/// The gravest issue is listed however many stand before it, so that a crowd cannot hide it from the policy,
/// and a refusal always has its reason.
#[test]
fn the_gravest_issue_is_always_listed() {
    let item = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    let schema = json!({ "type": "object", "properties": {
        "l": { "type": "array", "items": item },
    } });
    let crowd = r#"{"n": "1"}, "#.repeat(100);
    let policy = BindPolicy {
        max_severity: Severity::Retyped,
        ..BindPolicy::default()
    };
    for issues_max in [0, 64] {
        let limits = Limits {
            issues_max,
            ..Limits::default()
        };
        let binder = Binder::from_schema(&schema, policy)
            .unwrap()
            .with_limits(limits);
        // A name in another spelling is a graver change than a type.
        let bound = binder.bind(&format!(r#"{{"l": [{crowd}{{"N": 1}}]}}"#));
        assert_eq!(bound.status, BindStatus::Refused);
        assert_eq!(bound.issues[0].code, IssueCode::PolicyExceeded);
        let bound = binder.bind(&format!(r#"{{"l": [{crowd}{{"n": 1.5}}]}}"#));
        assert_eq!(bound.issues[0].code, IssueCode::Lossy);
        assert_eq!(bound.issues[0].path, "/l/100/n");
    }
}

/// A long name is written in the issues that are listed, not for every value below it.
#[test]
fn a_long_name_is_not_written_for_every_issue() {
    let schema = json!({ "type": "object", "additionalProperties": {
        "type": "array", "items": { "type": "integer" },
    } });
    let name = "k".repeat(20_000);
    let raw = format!("{{\"{name}\": [{}1]}}", "\"1\", ".repeat(4_000));
    let (bound, per_byte) = bytes_per_byte(&binder(&schema), &raw);
    assert_eq!(bound.status, BindStatus::Repaired);
    assert!(per_byte < 300, "{per_byte} bytes a byte");
}

/// Finding the path of a duplicate name writes only that path.
#[test]
fn a_long_name_is_not_written_for_every_container() {
    let name = "k".repeat(20_000);
    let lists = "[1], ".repeat(4_000);
    let raw = format!("{{\"b\": {{\"a\": 1, \"a\": 2}}, \"{name}\": [{lists}1]}}");
    let (bound, per_byte) = bytes_per_byte(&binder(&json!({ "type": "object" })), &raw);
    assert_eq!(bound.issues[0].code, IssueCode::DuplicateKey);
    assert_eq!(bound.issues[0].path, "/b/a");
    assert!(per_byte < 300, "{per_byte} bytes a byte");
}

/// Values under a long name are not shown while they arrive: every event has its path.
#[test]
fn a_long_name_is_not_streamed_for_every_value() {
    let name = "k".repeat(20_000);
    let members: Vec<String> = (0..4_000).map(|n| format!("\"m{n}\": {n}")).collect();
    let raw = format!(
        "{{\"first\": 1, \"{name}\": {{{}}}, \"last\": 2}}",
        members.join(", ")
    );
    let events = binder(&json!({ "type": "object" })).stream().push(&raw);
    let path = |event: &StreamEvent| match event {
        StreamEvent::KeyReady { path }
        | StreamEvent::TextAppended { path, .. }
        | StreamEvent::ValueReady { path, .. }
        | StreamEvent::Closed { path } => path.clone(),
    };
    let paths: Vec<String> = events.iter().map(path).collect();
    let written: usize = paths.iter().map(String::len).sum();
    assert!(written < raw.len(), "{written} bytes of paths");
    assert_eq!(paths, ["/first", "/first", "/last", "/last"]);
}

/// Similar names are searched a bounded number of times; the refusals stay the same.
#[test]
fn suggestions_have_an_end() {
    let names: Vec<String> = (0..200)
        .map(|n| format!("a_rather_long_name_{n}"))
        .collect();
    let schema = json!({ "type": "object", "properties": {
        "l": { "type": "array", "items": { "enum": names } },
    } });
    let raw = format!(
        "{{\"l\": [{}\"x\"]}}",
        "\"another_rather_long_name\", ".repeat(2_000)
    );
    let (bound, per_byte) = bytes_per_byte(&binder(&schema), &raw);
    assert_eq!(bound.status, BindStatus::Refused);
    assert_eq!(bound.issues[0].code, IssueCode::EnumNoMatch);
    assert!(per_byte < 1_000, "{per_byte} bytes a byte");
}
