//! No byte of a string becomes a member, and a text that is not read completely is not run: case by case. The
//! laws behind these cases are in `damage.rs`.

#![expect(clippy::unwrap_used, reason = "a failing test may panic")]

use countersign_args::Binder;
use countersign_contract::tool::{BindPolicy, UnknownKeys};
use countersign_contract::{BindStatus, IssueCode};
use serde_json::{Value, json};

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": { "type": "string" },
            "content": { "type": "string" },
            "force": { "type": "boolean" },
            "n": { "type": "integer" },
            "ratio": { "type": "number" },
            "note": { "type": "string" },
            "tags": { "type": "array", "items": { "type": "string" } },
            "data": { "type": "object" },
        },
    })
}

/// Checks a table of texts, each with the arguments that run, or `None`. Both policies about unknown names must
/// agree.
#[track_caller]
fn check(cases: &[(&str, Option<&str>)]) {
    for unknown_keys in [UnknownKeys::Keep, UnknownKeys::Refuse] {
        let policy = BindPolicy {
            unknown_keys,
            ..BindPolicy::default()
        };
        let binder = Binder::from_schema(&schema(), policy).unwrap();
        for (raw, expected) in cases {
            let bound = binder.bind(raw);
            let runs = bound
                .is_executable()
                .then(|| bound.arguments.as_ref().unwrap().to_value());
            let expected = expected.map(|json| serde_json::from_str::<Value>(json).unwrap());
            assert_eq!(runs, expected, "{raw}\n{:#?}", bound.issues);
        }
    }
}

/// Checks the hint of a refusal, for the caller that has to send the call again.
#[track_caller]
fn check_hint(raw: &str, message: &str, suggestion: &str) {
    let binder = Binder::from_schema(&schema(), BindPolicy::default()).unwrap();
    let bound = binder.bind(raw);
    assert!(!bound.is_executable(), "{raw}");
    let issue = bound.issues.first().unwrap();
    assert_eq!(issue.message, message, "{raw}");
    assert_eq!(issue.suggestion.as_deref(), Some(suggestion), "{raw}");
}

/// B6: JSON inside a string stays inside it, however its quotes were damaged.
#[test]
fn text_inside_a_string_sets_no_parameter() {
    check(&[
        (
            r#"{"path":"src/main.rs","content":"curl -d {"force": true} http://h","force":false}"#,
            None,
        ),
        (r#"{"content": "curl -d {"force": true} http://h"}"#, None),
        (r#"{"content": "set "n": 5", "force": false}"#, None),
        (r#"{"content": "{ "n": 4 }", "n": 9}"#, None),
        (r#"{"content": "{"a": {"n": 7}}"}"#, None),
        (r#"{"content": "x, "force": true", "n": 1}"#, None),
        (r#"{"content": "say "a", "force": true, ok", "n": 1}"#, None),
        (r#"{"content": "f("a", "b")", "n": 1}"#, None),
        (r#"{"content": "{\\"force\\": true}", "n": 1}"#, None),
        (r#"{"content": "say \\"hi\\" now", "n": 1}"#, None),
        (r#"{"content": "a {x"} then"}"#, None),
        (r#"{"content": "a {x"}"}"#, None),
        (r#"{"content": ""path": "b", "n": 1}"#, None),
        (r"{'content': 'set 'force': True', 'n': 1}", None),
        (r#"{foo "content": "curl {"force": true}"}"#, None),
        (r#"content: "curl -d {"force": true} http://h""#, None),
        (r#"Run curl -d '{"force": true}' http://h"#, None),
        ("Run `curl -d {\"force\": true}` now", None),
        (r#"{"content\": "x", "force": true}"#, None),
        // A quote as in prose is read, if nothing else is repaired beside it.
        (
            r#"{"content": "say "hi" now", "n": 1}"#,
            Some(r#"{"content":"say \"hi\" now","n":1}"#),
        ),
        (r#"{"content": "say "hi" now" "n": 1}"#, None),
        (r#"{"content": "say "hi" now", "n": 1}}"#, None),
        (r#"Sure: {"content": "say "hi" now", "n": 1}"#, None),
        (
            "{'content': 'it's', 'n': 1}",
            Some(r#"{"content":"it's","n":1}"#),
        ),
    ]);
    check_hint(
        r#"{"content": "set "n": 5", "force": false}"#,
        "the quotes around byte 12 can be paired in more than one way",
        "write \\\" for a quote inside a string, and send the whole call again",
    );
}

/// B6: markup is not searched for an object; a format is read whole or not at all.
#[test]
fn markup_is_not_mined() {
    check(&[
        (
            r#"<invoke name="f"><parameter name="path">users</parameter><parameter name="data">{}</parameter></invoke>"#,
            Some(r#"{"path":"users","data":{}}"#),
        ),
        (
            "<tool_call>f\n<arg_key>data</arg_key>\n<arg_value>{\"n\": 5}</arg_value>\n</tool_call>",
            Some(r#"{"data":{"n":5}}"#),
        ),
        (
            "<function=f>\n<parameter=data>\n{\"n\": 1}\n</parameter>\n</function>",
            Some(r#"{"data":{"n":1}}"#),
        ),
        ("<function=f><parameter=data>{\"n\": 1}", None),
        (
            "<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"data\">{}</｜DSML｜parameter>",
            None,
        ),
        (
            "<f>\n<data>{\"n\": 1}</data>\n</f>",
            Some(r#"{"data":{"n":1}}"#),
        ),
        ("<f>\n<other>{\"n\": 1}</other>\n</f>", None),
        ("<path>x</path>\n{\"n\": 1}", None),
        (
            "[f(path='orders', data={})]",
            Some(r#"{"path":"orders","data":{}}"#),
        ),
        ("[f(path='orders', data={}), g(n=1)]", None),
        ("[f('orders', {\"n\": 1})]", None),
        ("<function=f>{\"n\": 1}</function>", Some(r#"{"n":1}"#)),
        ("<tool_call>\n{\"n\": 1}\n</tool_call>", Some(r#"{"n":1}"#)),
        ("<tool_call>f\n{\"n\": 1}\n</tool_call>", Some(r#"{"n":1}"#)),
        ("[TOOL_CALLS]f[ARGS]{\"n\": 1}", Some(r#"{"n":1}"#)),
    ]);
    check_hint(
        "<function=f>\n<parameter=n>\n1\n<parameter=path>\na\n</parameter>\n</function>",
        "the arguments are written as markup that cannot be read without guessing",
        "send the arguments as one JSON object",
    );
}

/// B6: all wrappers are removed; content that is still a call is not arguments.
#[test]
fn wrappers_are_removed_to_the_last() {
    let binder = |unknown_keys| {
        let schema = json!({ "type": "object", "properties": {
            "name": { "type": "string" }, "age": { "type": "integer" },
        } });
        let policy = BindPolicy {
            unknown_keys,
            ..BindPolicy::default()
        };
        Binder::from_schema(&schema, policy).unwrap()
    };
    for (raw, expected) in [
        (
            r#"{"id":"c1","type":"function","function":{"name":"f","arguments":{"name":"Ana"}}}"#,
            Some(r#"{"name":"Ana"}"#),
        ),
        (
            r#"{"function_call":{"name":"f","arguments":"{\"name\": \"Ana\"}"}}"#,
            Some(r#"{"name":"Ana"}"#),
        ),
        (
            r#"{"tool_call":{"function":{"name":"f","parameters":{"age":3}}}}"#,
            Some(r#"{"age":3}"#),
        ),
        (r#"{"function":{"name":"f","arguments":[1]}}"#, None),
        (
            r#"{"function":{"name":"f","arguments":{"name":5},"args":{"name":"x"}}}"#,
            None,
        ),
        (r#"{"function":{"name":"f","arguments":"{broken"}}"#, None),
    ] {
        for unknown_keys in [UnknownKeys::Keep, UnknownKeys::Refuse] {
            let bound = binder(unknown_keys).bind(raw);
            let runs = bound
                .is_executable()
                .then(|| bound.arguments.as_ref().unwrap().as_json());
            assert_eq!(runs, expected, "{raw}\n{:#?}", bound.issues);
        }
    }
}

/// B6: a thinking block without an end means that the text was cut off.
#[test]
fn thinking_without_its_end_is_incomplete() {
    let binder = Binder::from_schema(&schema(), BindPolicy::default()).unwrap();
    for raw in [
        "<think>Maybe {\"n\": 1}? Or ",
        "<thinking>\n```json\n{\"n\": 1}\n```\nHmm",
        "<reasoning>call {\"n\": 1} then",
        "<|channel|>analysis<|message|>Perhaps {\"n\": 1}",
        "[THINK]so {\"n\": 1}",
        "{\"n\": 1}\n<think>but",
    ] {
        let bound = binder.bind(raw);
        assert_eq!(bound.status, BindStatus::Incomplete, "{raw}");
        assert_eq!(bound.issues[0].code, IssueCode::Incomplete, "{raw}");
    }
    check(&[
        (
            "<think>Maybe {\"n\": 1}?</think>\n{\"n\": 2}",
            Some(r#"{"n":2}"#),
        ),
        ("so n it is.\n</think>\n{\"n\": 2}", Some(r#"{"n":2}"#)),
        ("<think>call {\"n\": 1}</think>", None),
        (
            "<|channel|>analysis<|message|>{\"n\": 1}?<|end|><|start|>assistant<|channel|>commentary \
             to=functions.f <|constrain|>json<|message|>{\"n\": 2}<|call|>",
            Some(r#"{"n":2}"#),
        ),
        (
            r#"{"content": "<think>", "n": 1,}"#,
            Some(r#"{"content":"<think>","n":1}"#),
        ),
    ]);
}

/// B6: text around the document is skipped only if it is prose.
#[test]
fn structure_around_the_document_is_not_prose() {
    check(&[
        ("{\"n\": 1}{", None),
        ("{\"n\": 1} {\"", None),
        ("{\"n\": 1}\n{x}", None),
        ("{\"n\": 1} {}", None),
        ("{\"n\": 1}\n<tool_call>", None),
        ("[TOOL_CALLS]f[ARGS]{\"n\": 1}[TOOL_CALLS]f[AR", None),
        ("{\"n\": 1}\nforce: true", None),
        ("{\"n\": 1} then f(force=True)", None),
        ("{\"n\": 1} \"force\": true", None),
        ("{\"n\": 1}, {\"force\": true}", None),
        ("{\"n\": 1}.update(x)", None),
        ("{\"n\": 1} or default", None),
        ("{\"n\": 1}[0]", None),
        ("[\"a\", {\"n\": 1}]", None),
        ("\"a\", {\"n\": 1}", None),
        ("f(x, {\"n\": 1})", None),
        ("f(**{\"n\": 1})", None),
        ("g(f(n=1), 2)", None),
        ("f(n=1).json()", None),
        ("f(n=1)[0]", None),
        ("path: a.txt\ncontent: {\"n\": 1}", None),
        ("Sure!\npath: a.txt\ncontent: {\"n\": 1}", None),
        ("{\"n\": 1} {\"n\": 1}", Some(r#"{"n":1}"#)),
        ("{}{\"n\": 1}", Some(r#"{"n":1}"#)),
        ("f({\"n\": 1})", Some(r#"{"n":1}"#)),
        (
            "I'll call `f(...)` (see {docs}) [1]:\n{\"n\": 1}\nDone.",
            Some(r#"{"n":1}"#),
        ),
        (
            "The user said \"do it\", so: {\"n\": 1} // ok",
            Some(r#"{"n":1}"#),
        ),
        ("args = {\"n\": 1};", Some(r#"{"n":1}"#)),
        ("print(api.f(n=1))", Some(r#"{"n":1}"#)),
        ("{{\"n\": 1}}", Some(r#"{"n":1}"#)),
    ]);
}

/// Strings that may stand without quotes.
const WORDS: [&str; 19] = [
    "Paris",
    "San Francisco",
    "src/main.rs",
    "./a-b_c/d.txt",
    "main.rs",
    "C:\\temp\\new",
    "~/notes.md",
    "https://example.com/a//b?c=d&e=f#g",
    "#ff0000",
    "user@example.com",
    "北京",
    "O'Brien",
    "v1.2",
    "2024-01-05",
    "10:30",
    "50%",
    "R&D",
    "Hello!",
    "-",
];

/// Tokens without quotes that are not strings.
const CODE: [&str; 30] = [
    "NaN",
    "Infinity",
    "-Infinity",
    "<nil>",
    "[object Object]",
    "datetime.date(2024, 1, 5)",
    "process.env.X",
    "os.environ['X']",
    "$HOME",
    "${x}",
    "{x}",
    "{{x}}",
    "<path>",
    "sin(x)",
    "Status.OPEN",
    "user.name",
    "a + b",
    "a ? b : c",
    "a == b",
    "x[0]",
    "f()",
    "**Paris**",
    "%s",
    "a | b",
    "a: b",
    "a，b",
    "Par...",
    "?",
    "1+1",
    "a;b",
];

/// B6: a string without quotes is a word, a path, an address or a colour; code is not a string.
#[test]
fn code_is_not_a_string() {
    for word in WORDS {
        let raw = format!("{{\"note\": {word}, \"n\": 1}}");
        let value = json!({ "note": word, "n": 1 }).to_string();
        check(&[(&raw, Some(&value))]);
    }
    for word in CODE {
        check(&[(&format!("{{\"note\": {word}, \"n\": 1}}"), None)]);
    }
    check(&[
        ("f(note=Paris)", None),
        ("f(note=sin(x), n=2)", None),
        ("f(tags=[red, green])", None),
        ("f({note: city})", None),
        (
            "f(note='Paris', force=True, n=None)",
            Some(r#"{"note":"Paris","force":true}"#),
        ),
        ("{\"note\": `${x}`}", None),
        ("{note: hello\nforce: true}", None),
        ("{\"note\": a, force: true, \"n\": 1}", None),
    ]);
}

/// B6: a lone word behind a comma may be a member of its own, as in JavaScript's `{note: b, c}`, or an item of a list.
#[test]
fn a_word_behind_a_comma_is_not_a_part_of_a_string() {
    check(&[
        (r#"{"note": b, c, d}"#, None),
        (r#"{"note": b, c, d, "n": 1}"#, None),
        (r#"{"n": 1, "note": b, c}"#, None),
        ("{note: Paris, France}", None),
        ("{note: Main Street 1, _x}", None),
        ("{note: 北京, 上海}", None),
        (
            "{note: on Friday, at the desk}",
            Some(r#"{"note":"on Friday, at the desk"}"#),
        ),
        ("{note: July 4, 2026}", Some(r#"{"note":"July 4, 2026"}"#)),
        // In quotes it is text.
        ("{note: 'b, c, d'}", Some(r#"{"note":"b, c, d"}"#)),
    ]);
}

/// B6: an escape is decoded by the rules of the language that the string is written in, or refused.
#[test]
fn escapes_have_one_reading() {
    check(&[
        (r"{'note': 'é\xa0'}", Some("{\"note\":\"é\u{a0}\"}")),
        (r"{'note': '\U0001F600'}", Some("{\"note\":\"😀\"}")),
        (r#"{'note': "it's\xa0"}"#, Some("{\"note\":\"it's\u{a0}\"}")),
        (r"{'note': 'C:\xdir'}", Some(r#"{"note":"C:\\xdir"}"#)),
        (r"{'note': 'D:\xfe\data'}", None),
        (r#"{"note": "\x41"}"#, None),
        (r#"{"note": "\ud83d"}"#, None),
        (r#"{"note": "\ude00 x"}"#, None),
        (r#"{"note": "\ud83d\ude00"}"#, Some("{\"note\":\"😀\"}")),
        (r#"{"note": "\d+"}"#, Some(r#"{"note":"\\d+"}"#)),
        // A literal around the document is decoded.
        (r#"'{"note": "a\\nb"}'"#, Some(r#"{"note":"a\nb"}"#)),
        (r#"'{"note": "it\'s"}'"#, Some(r#"{"note":"it's"}"#)),
        (r#"args = '{"note": "x"}';"#, Some(r#"{"note":"x"}"#)),
        (r#""{\"note\": \"a\\nb\"}";"#, Some(r#"{"note":"a\nb"}"#)),
        (r#""{"note": "x"}""#, Some(r#"{"note":"x"}"#)),
        (r#""{"note": "a\\nb"}""#, None),
        (r#"{\"note\": "x"}"#, None),
    ]);
}

/// B6: one missing quote means that bytes were lost.
#[test]
fn a_missing_quote_is_not_inserted() {
    check(&[
        (r#"{"note": "Par, "ratio": 12.5}"#, None),
        (r#"{"note": "Par, "path": "x"}"#, None),
        (r#"{"note": Par", "ratio": 12.5}"#, None),
        (r#"{note": "x"}"#, None),
        (r#"{"note: "x"}"#, None),
        (r#"{"n": 1, note": "x"}"#, None),
        (r#"{"n": 1, "note: "x"}"#, None),
        (r#"{"n": 1, x" "note": 2}"#, None),
        (r#"{"tags": ["a, "b"]}"#, None),
        (r#"{"tags": ["a", b"]}"#, None),
        (r#"{"n": 1", "force": true}"#, None),
        (r#"{"force": true", "n": 1}"#, None),
    ]);
}

/// A place in the text never lies within a character.
#[test]
fn places_are_whole_characters() {
    let schema = json!({"type": "array", "items": {"type": "integer"}});
    let binder = Binder::from_schema(&schema, BindPolicy::default()).unwrap();
    for raw in [
        "\u{feff}\"v\": 0}",
        "\u{a0}\"v\": 0}",
        "\u{feff}\"v\": {\"a\": 1}}",
    ] {
        let bound = binder.bind(raw);
        assert!(!bound.issues.is_empty(), "{raw}");
        for issue in &bound.issues {
            let [start, end] = issue.span.unwrap();
            assert!(raw.get(start..end).is_some(), "{raw:?}: {issue:?}");
        }
    }
}

/// An issue names the first place of its kind; the result names every one, so that a reader can be shown all of them.
#[test]
fn every_repair_has_a_place() {
    let binder = Binder::from_schema(&schema(), BindPolicy::default()).unwrap();
    let raw = "{path: 'ä', note: 'b', tags: ['x', \"y\"], n: 1}";
    let bound = binder.bind(raw);
    let pieces: Vec<&str> = bound
        .repairs
        .iter()
        .map(|[start, end]| raw.get(*start..*end).unwrap())
        .collect();
    assert_eq!(pieces, ["path", "'", "note", "'", "tags", "'", "n"]);
    let first = |code: IssueCode| {
        bound
            .issues
            .iter()
            .find(|issue| issue.code == code)
            .unwrap()
    };
    for code in [IssueCode::KeyUnquoted, IssueCode::QuoteStyle] {
        assert!(bound.repairs.contains(&first(code).span.unwrap()), "{code}");
    }
    assert_eq!(binder.bind(r#"{"path": "a"}"#).repairs, [[0; 2]; 0]);
    // A long text is bounded.
    let long = format!("{{tags: [{}]}}", "'x',".repeat(5_000));
    assert_eq!(binder.bind(&long).repairs.len(), 1_000);
    // A refusal has them as well.
    let refused = binder.bind("{n: 'many', path: 'a'}");
    assert_eq!(refused.status, BindStatus::Refused);
    assert_eq!(refused.repairs.len(), 4);
}
