//! Texts with two readings: they are refused, whatever one of the readings would be.

#![expect(clippy::unwrap_used, reason = "a failing test may panic")]

use countersign_args::{Binder, Bound};
use countersign_contract::parameter::{Leniency, OnOptionalError};
use countersign_contract::tool::{BindPolicy, UnknownKeys};
use countersign_contract::{IssueCode, Severity};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A bare schema: unknown names are kept, and what may lose something is tried.
const BARE: BindPolicy = BindPolicy {
    leniency: Leniency::Lenient,
    max_severity: Severity::Lossy,
    unknown_keys: UnknownKeys::Keep,
    on_optional_error: OnOptionalError::Refuse,
};

fn bind(schema: &Value, raw: &str) -> Bound {
    Binder::from_schema(schema, BARE).unwrap().bind(raw)
}

/// Binds a text and returns the value that would run.
fn runs(schema: &Value, raw: &str) -> Option<String> {
    let bound = bind(schema, raw);
    let runs = bound.is_executable();
    runs.then(|| bound.arguments.unwrap().as_json().to_owned())
}

#[track_caller]
fn check(schema: &Value, cases: &[(&str, Option<&str>)]) {
    for (raw, expected) in cases {
        assert_eq!(runs(schema, raw).as_deref(), *expected, "{raw}");
    }
}

fn one(name: &str, schema: &Value) -> Value {
    json!({ "type": "object", "properties": { name: schema }, "required": [name] })
}

/// A value in every kind of text that is decoded: as it is, as a string, as a string in a string, as arguments.
fn layers(json: &str) -> Vec<String> {
    let text = json!(json).to_string();
    let call = json!({ "name": "t", "arguments": json }).to_string();
    vec![
        json.to_owned(),
        json!(text).to_string(),
        json!({ "arguments": json }).to_string(),
        format!("<tool_call>{call}</tool_call>"),
        json!({ "type": "function", "function": { "name": "t", "arguments": json } }).to_string(),
        call,
        text,
    ]
}

#[test]
fn a_name_twice_is_refused_in_decoded_text_too() {
    let open = json!({ "type": "object", "properties": { "to": { "type": "string" } } });
    for json in [
        r#"{"to":"a","to":"b"}"#,
        r#"{"to":"a","\u0074o":"b"}"#,
        "{'to':'a','to':'b'}",
    ] {
        for raw in layers(json) {
            let bound = bind(&open, &raw);
            assert!(!bound.is_executable(), "{raw}");
        }
    }
    let inner = one(
        "o",
        &json!({ "type": "object", "additionalProperties": {} }),
    );
    for (raw, path) in [
        (r#"{"o": "{\"a\":1,\"a\":2}"}"#, "/o/a"),
        (r#"{"o": "{\"b\":[{\"a\":1,\"a\":2}]}"}"#, "/o/b/0/a"),
    ] {
        let bound = bind(&inner, raw);
        assert_eq!(bound.issues[0].code, IssueCode::DuplicateKey, "{raw}");
        assert_eq!(bound.issues[0].path, path, "{raw}");
    }
    // The same value twice is one.
    check(
        &inner,
        &[(r#"{"o": "{\"a\":1,\"a\":1}"}"#, Some(r#"{"o":{"a":1}}"#))],
    );
}

#[test]
fn a_call_in_a_mark_is_the_call() {
    let schema = json!({
        "type": "object",
        "properties": { "name": { "type": "string" }, "email": { "type": "string" } },
        "required": ["name"],
    });
    let ann = Some(r#"{"name":"Ann","email":"a@x.y"}"#);
    let call = r#"{"name": "create", "arguments": {"name": "Ann", "email": "a@x.y"}}"#;
    let text = r#"{"name": "create", "arguments": "{\"name\": \"Ann\", \"email\": \"a@x.y\"}"}"#;
    let cases = [
        (format!("<tool_call>\n{call}\n</tool_call>"), ann),
        (format!("<tool_call>{text}</tool_call>"), ann),
        (format!("<|python_tag|>{call}<|eom_id|>"), ann),
        (format!("<function_call>{call}</function_call>"), ann),
        (format!("```tool_call\n{call}\n```"), ann),
        // Without a mark it is a call as well as arguments.
        (call.to_owned(), None),
        (format!("```json\n{call}\n```"), None),
        (
            r#"{"type": "tool_use", "id": "t1", "name": "create", "input": {"name": "Ann"}}"#
                .to_owned(),
            Some(r#"{"name":"Ann"}"#),
        ),
        // Arguments in a mark stay arguments.
        (
            r#"<tool_call>{"name": "Ann"}</tool_call>"#.to_owned(),
            Some(r#"{"name":"Ann"}"#),
        ),
    ];
    for (raw, expected) in &cases {
        assert_eq!(runs(&schema, raw).as_deref(), *expected, "{raw}");
    }
    // Where both names are declared, it is nothing but the arguments.
    let both = json!({
        "type": "object",
        "properties": { "name": { "type": "string" }, "arguments": { "type": "string" } },
    });
    let raw = r#"<tool_call>{"name": "f", "arguments": "{\"q\": 1}"}</tool_call>"#;
    let plain = r#"{"name":"f","arguments":"{\"q\": 1}"}"#;
    assert_eq!(runs(&both, raw).as_deref(), Some(plain));
    // The same holds where the schema itself is open.
    let open = json!({
        "type": "object",
        "properties": { "name": { "type": "string" } },
        "additionalProperties": true,
    });
    let binder = Binder::from_schema(&open, BindPolicy::default()).unwrap();
    assert!(!binder.bind(call).is_executable());
}

/// A call whose arguments cannot be read is not a call without arguments.
#[test]
fn wrapped_arguments_that_cannot_be_read_are_not_dropped() {
    let open = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    check(
        &open,
        &[
            (r#"{"arguments": "{\"n\": "}"#, None),
            (r#"{"arguments": {"n": "many"}}"#, None),
            (r#"{"arguments": "{\"n\": 3}"}"#, Some(r#"{"n":3}"#)),
            (r#"{"input": "x"}"#, Some(r#"{"input":"x"}"#)),
        ],
    );
}

#[test]
fn a_list_of_one_is_not_a_free_map() {
    let map = one(
        "h",
        &json!({ "type": "object", "additionalProperties": { "type": "string" } }),
    );
    let object = one(
        "h",
        &json!({ "type": "object", "properties": { "a": { "type": "integer" } } }),
    );
    check(
        &map,
        &[
            (r#"{"h": [{"name": "X-Key", "value": "abc"}]}"#, None),
            (
                r#"{"h": "[{\"name\": \"X-Key\", \"value\": \"abc\"}]"}"#,
                None,
            ),
            (
                r#"{"h": {"X-Key": "abc"}}"#,
                Some(r#"{"h": {"X-Key": "abc"}}"#),
            ),
        ],
    );
    check(
        &object,
        &[(r#"{"h": [{"a": 1}]}"#, Some(r#"{"h":{"a":1}}"#))],
    );
}

#[test]
fn a_string_with_separators_is_not_one_item() {
    let list = one(
        "v",
        &json!({ "type": "array", "items": { "type": "string" } }),
    );
    let places = one(
        "v",
        &json!({ "type": "array", "items": { "enum": ["Paris, TX", "null"] } }),
    );
    check(
        &list,
        &[
            (r#"{"v": "ann@x.org, bob@x.org"}"#, None),
            (r#"{"v": "ann@x.org bob@x.org"}"#, None),
            (r#"{"v": "a;b"}"#, None),
            (r#"{"v": "a、b"}"#, None),
            (r#"{"v": "- a\n- b"}"#, None),
            (r#"{"v": "null"}"#, None),
            (r#"{"v": "None"}"#, None),
            (
                r#"{"v": "San Francisco"}"#,
                Some(r#"{"v":["San Francisco"]}"#),
            ),
        ],
    );
    check(
        &places,
        &[
            (r#"{"v": "Paris, TX"}"#, Some(r#"{"v":["Paris, TX"]}"#)),
            (r#"{"v": "null"}"#, Some(r#"{"v":["null"]}"#)),
        ],
    );
}

#[test]
fn digits_that_are_no_number_of_json_may_be_a_string() {
    for schema in [
        json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }] }),
        json!({ "type": ["number", "string"] }),
    ] {
        for token in ["007", "0049301234", "+49301234", "1_000", "0x10"] {
            let raw = format!("{{\"v\": {token}}}");
            assert_eq!(runs(&one("v", &schema), &raw), None, "{raw}");
        }
        let raw = r#"{"v": 7, }"#;
        assert_eq!(runs(&one("v", &schema), raw).unwrap(), r#"{"v":7}"#);
    }
    let integer = one("v", &json!({ "type": "integer" }));
    let text = one("v", &json!({ "type": "string" }));
    check(
        &integer,
        &[
            ("{\"v\": 007}", Some(r#"{"v":7}"#)),
            (r#"{"v": "1.000"}"#, None),
        ],
    );
    check(&text, &[("{\"v\": 007}", Some(r#"{"v":"007"}"#))]);
}

#[test]
fn a_word_that_is_a_member_and_a_boolean_is_refused() {
    let switch = one(
        "v",
        &json!({ "anyOf": [{ "enum": ["on", "off"] }, { "type": "boolean" }] }),
    );
    let mixed = one("v", &json!({ "enum": [true, "yes"] }));
    check(
        &switch,
        &[
            (r#"{"v": "ON"}"#, None),
            (r#"{"v": "on"}"#, Some(r#"{"v": "on"}"#)),
            (r#"{"v": "yes"}"#, Some(r#"{"v":true}"#)),
        ],
    );
    check(
        &mixed,
        &[
            (r#"{"v": "Yes"}"#, None),
            (r#"{"v": "yes"}"#, Some(r#"{"v": "yes"}"#)),
        ],
    );
}

#[test]
fn members_that_differ_by_punctuation_are_not_mixed_up() {
    let member = |members: Value| one("v", &json!({ "enum": members }));
    check(
        &member(json!(["a.b", "ab"])),
        &[
            (r#"{"v": "a-b"}"#, None),
            (r#"{"v": "A.B"}"#, Some(r#"{"v":"a.b"}"#)),
        ],
    );
    check(
        &member(json!(["C", "C++"])),
        &[(r#"{"v": "c"}"#, Some(r#"{"v":"C"}"#))],
    );
    check(
        &member(json!(["credit_card"])),
        &[(r#"{"v": "Credit Card"}"#, Some(r#"{"v":"credit_card"}"#))],
    );
    check(
        &member(json!(["caf\u{e9}"])),
        &[("{\"v\": \"cafe\u{301}\"}", Some("{\"v\":\"caf\u{e9}\"}"))],
    );
}

#[test]
fn what_a_tool_or_another_speaker_says_is_no_call() {
    let schema = one("city", &json!({ "type": "string" }));
    let rome = Some(r#"{"city":"Rome"}"#);
    let cases = [
        ("<tool_response>{}</tool_response>", None),
        ("<function_results>\n{}\n</function_results>", None),
        ("[TOOL_RESULTS] {} [/TOOL_RESULTS]", None),
        ("<|im_start|>user\n{}<|im_end|>", None),
        ("<|im_start|>tool\n{}<|im_end|>", None),
        (
            "<|start_header_id|>ipython<|end_header_id|>\n\n{}<|eot_id|>",
            None,
        ),
        ("<｜tool▁output▁begin｜>{}<｜tool▁output▁end｜>", None),
        ("<|observation|>\n{}", None),
        ("Observation: {}", None),
        ("**Tool result:**\n```json\n{}\n```", None),
        ("<|im_start|>assistant\n{}<|im_end|>", rome),
        ("Observation: it rains.\nAction Input: {}", rome),
        ("<|observation|>it rains<|assistant|>\n{}", rome),
        ("{}<end_of_turn>", rome),
        ("{}<eos>", rome),
    ];
    for (text, expected) in cases {
        let raw = text.replace("{}", r#"{"city":"Rome"}"#);
        assert_eq!(runs(&schema, &raw).as_deref(), expected, "{raw}");
    }
}

#[test]
fn a_call_that_is_commented_out_or_conditional_does_not_run() {
    let schema = one("path", &json!({ "type": "string" }));
    let x = Some(r#"{"path":"x"}"#);
    check(
        &schema,
        &[
            ("# w(path='x')", None),
            ("# w({\"path\":\"x\"})", None),
            ("// w({\"path\":\"x\"})", None),
            ("/* w(path='x') */", None),
            ("<!-- w(path='x') -->", None),
            ("not w(path='x')", None),
            ("if ok: w({\"path\":\"x\"})", None),
            ("if ok:\n    w(path='x')", None),
            ("def w(path='x'):", None),
            ("w(path='x')", x),
            ("# The call\nw(path='x')", x),
            ("If you agree: w(path='x')", x),
        ],
    );
}

#[test]
fn thinking_without_an_end_is_incomplete() {
    let schema = one("city", &json!({ "type": "string" }));
    for (open, close) in [
        ("<|START_THINKING|>", "<|END_THINKING|>"),
        ("<unused94>thought\n", "<unused95>"),
        ("<|channel>thought\n", "<channel|>"),
    ] {
        let raw = format!("{open}maybe {{\"city\":\"Rome\"}}");
        let bound = bind(&schema, &raw);
        assert_eq!(
            bound.status,
            countersign_contract::BindStatus::Incomplete,
            "{raw}"
        );
        let raw = format!("{open}maybe {{\"city\":\"Rome\"}}{close}{{\"city\":\"Oslo\"}}");
        assert_eq!(
            runs(&schema, &raw).as_deref(),
            Some(r#"{"city":"Oslo"}"#),
            "{raw}"
        );
    }
}

#[test]
fn one_value_for_lists_of_two_ranks_is_refused() {
    let list = json!({ "type": "array", "items": { "type": "integer" } });
    let lists = json!({ "type": "array", "items": list });
    let schema = one("v", &json!({ "anyOf": [list, lists] }));
    check(
        &schema,
        &[
            (r#"{"v": "1"}"#, None),
            (r#"{"v": ["1"]}"#, Some(r#"{"v":[1]}"#)),
        ],
    );
}

#[test]
fn a_comma_may_be_the_decimal_mark_of_a_number() {
    let list = json!({ "type": "array", "items": { "type": "number" } });
    let either = one("v", &json!({ "anyOf": [{ "type": "number" }, list] }));
    check(
        &either,
        &[
            (r#"{"v": "3,14"}"#, None),
            (r#"{"v": "3"}"#, Some(r#"{"v":3}"#)),
        ],
    );
}

#[test]
fn a_broken_escape_is_not_a_text() {
    let schema = one("t", &json!({ "type": "string" }));
    check(
        &schema,
        &[
            (r#"{"t": "\u12"}"#, None),
            (r#"{"t": "caf\u00e"}"#, None),
            (r#"{"t": "\u{1F600}"}"#, None),
            (r#"{"t": "C:\Users"}"#, Some(r#"{"t":"C:\\Users"}"#)),
        ],
    );
}

/// OpenAPI 3.0 has the boolean form of draft 4.
#[test]
fn a_boolean_makes_the_bound_beside_it_exclusive() {
    let schema = |exclusive: bool| {
        one(
            "n",
            &json!({ "type": "number", "minimum": 0, "exclusiveMinimum": exclusive }),
        )
    };
    check(&schema(false), &[(r#"{"n": 0}"#, Some(r#"{"n": 0}"#))]);
    check(
        &schema(true),
        &[(r#"{"n": 0}"#, None), (r#"{"n": 1}"#, Some(r#"{"n": 1}"#))],
    );
}

fn numbers() -> impl Strategy<Value = Vec<i32>> {
    proptest::collection::vec(any::<i32>(), 1..5)
}

proptest! {
    /// However deep it is encoded, a name with two values does not run.
    #[test]
    fn no_layer_hides_a_second_value(name in "[a-z]{1,6}", first in any::<i32>(), second in any::<i32>()) {
        prop_assume!(first != second);
        let schema = json!({ "type": "object", "properties": { name.clone(): { "type": "integer" } } });
        let twice = format!("{{\"{name}\":{first},\"{name}\":{second}}}");
        for raw in layers(&twice) {
            prop_assert!(!bind(&schema, &raw).is_executable(), "{}", raw);
        }
        let member = one("o", &json!({ "type": "object" }));
        let raw = json!({ "o": twice }).to_string();
        prop_assert!(!bind(&member, &raw).is_executable(), "{}", raw);
    }

    /// A list with an item that is not a list is no list of lists.
    #[test]
    fn no_rank_is_guessed(flat in numbers(), inner in numbers(), as_text in any::<bool>()) {
        let schema = one("v", &json!({
            "type": "array",
            "items": { "type": "array", "items": { "type": "integer" } },
        }));
        let mut mixed: Vec<Value> = flat.iter().map(|n| json!(n)).collect();
        mixed.push(json!(inner));
        for list in [json!(flat), json!(mixed)] {
            let value = if as_text { json!(list.to_string()) } else { list };
            let raw = json!({ "v": value }).to_string();
            prop_assert!(!bind(&schema, &raw).is_executable(), "{}", raw);
        }
    }

    /// A hole in a list may be an item that is missing.
    #[test]
    fn no_hole_is_closed(before in 0..4_usize, behind in 1..4_usize, spaced in any::<bool>()) {
        let schema = one("v", &json!({ "type": "array", "items": { "type": "integer" } }));
        let hole = if spaced { " , " } else { "," };
        let raw = format!("{{\"v\": [{}{hole}{}1]}}", "1,".repeat(before), "1,".repeat(behind));
        prop_assert!(!bind(&schema, &raw).is_executable(), "{}", raw);
    }

    /// Items that were joined are never one item.
    #[test]
    fn no_enumeration_is_one_item(
        items in proptest::collection::vec("[a-z]{1,8}", 2..5),
        separator in prop_oneof![Just(", "), Just(","), Just(";"), Just("、"), Just("，"), Just("\n"), Just("\n- ")],
    ) {
        let schema = one("v", &json!({ "type": "array", "items": { "type": "string" } }));
        let raw = json!({ "v": items.join(separator) }).to_string();
        prop_assert!(!bind(&schema, &raw).is_executable(), "{}", raw);
    }

    /// Whatever stands between the letters, a member is not taken for another with the same letters.
    #[test]
    fn no_separator_chooses_a_member(first in "[._/ -]?", second in "[._/ -]?", sent in "[._/ -]?") {
        let spelt = |separator: &str| format!("foo{separator}bar");
        prop_assume!(first != second && sent != first && sent != second);
        let schema = one("v", &json!({ "enum": [spelt(&first), spelt(&second)] }));
        let raw = json!({ "v": spelt(&sent) }).to_string();
        prop_assert!(!bind(&schema, &raw).is_executable(), "{}", raw);
    }
}
