//! The rules of `docs/binder.md`, each with its example: the page and the binder say the same.

use countersign_args::Binder;
use countersign_contract::BindStatus;
use countersign_contract::tool::{BindPolicy, UnknownKeys};
use serde_json::{Value, json};

/// What has to become of an example.
#[derive(Debug)]
enum Read {
    As(Value),
    Refused,
    Incomplete,
}
use Read::{As, Incomplete, Refused};

/// An object of these properties.
fn object(properties: &Value) -> Value {
    json!({ "type": "object", "properties": properties })
}

/// An object with one property.
fn one(name: &str, schema: Value) -> Value {
    let mut properties = serde_json::Map::new();
    properties.insert(name.to_owned(), schema);
    object(&Value::Object(properties))
}

/// The examples in the order of the page: how the rule begins there, the schema, the text, and what it is read as.
fn examples() -> Vec<(&'static str, Value, &'static str, Read)> {
    let text = || json!({"type": "string"});
    let integer = || json!({"type": "integer"});
    let a = || one("a", integer());
    let texts = || json!({"type": "array", "items": {"type": "string"}});
    [by_layout(), by_wrapper()]
        .into_iter()
        .flatten()
        .chain([
            (
                "A list of one is not a map",
                one("m", json!({"type": "object", "additionalProperties": {"type": "string"}})),
                r#"{"m": [{"name": "X-Key", "value": "abc"}]}"#,
                Refused,
            ),
            (
                "A list of lists must have",
                one("m", json!({"type": "array", "items": {"type": "array", "items": {"type": "number"}}})),
                r#"{"m": [13.4, 52.5]}"#,
                Refused,
            ),
            ("A string with separators", one("m", texts()), r#"{"m": "a@x.org, b@x.org"}"#, Refused),
            ("A comma that may belong", one("m", json!({"type": "array", "items": integer()})), r#"{"m": "1,000, 2,000"}"#, Refused),
            ("A comma that may belong", one("m", json!({"type": "array", "items": {"type": "number"}})), r#"{"m": "1,5"}"#, Refused),
            ("A comma with nothing before it", one("m", json!({"type": "array", "items": integer()})), r#"{"m": [1,,2]}"#, Refused),
            ("A word behind a comma", one("note", text()), "{note: b, c}", Refused),
            ("Digits in a form", one("m", json!({"type": ["string", "integer"]})), r#"{"m": 007}"#, Refused),
            (
                "A string that is an enum member",
                one("m", json!({"anyOf": [{"enum": ["on", "off"]}, {"type": "boolean"}]})),
                r#"{"m": "ON"}"#,
                Refused,
            ),
            ("Separators in an enum member", one("m", json!({"enum": ["a.b", "ab"]})), r#"{"m": "a-b"}"#, Refused),
            (
                "An accented letter",
                one("m", json!({"enum": ["café"]})),
                r#"{"m": "cafe\u0301"}"#,
                As(json!({"m": "café"})),
            ),
            ("A `\\u` escape without", one("m", text()), r#"{"m": "caf\u00e"}"#, Refused),
            ("A tool's result", a(), r#"<tool_response>{"a": 1}</tool_response>"#, Refused),
            ("A tool's result", a(), r#"Observation: {"a": 1}"#, Refused),
            ("A call in a comment", a(), "# f(a=1)", Refused),
            ("A call in a comment", a(), "if ok: f(a=1)", Refused),
            ("An empty `{}` before", a(), r#"{} {"a": 1}"#, As(json!({"a": 1}))),
            (
                "A name and arguments with a parameter",
                object(&json!({"a": integer(), "dry_run": {"type": "boolean"}})),
                r#"{"name": "f", "arguments": {"a": 1}, "dry_run": true}"#,
                Refused,
            ),
            ("What a program's own object", one("host", text()), "{host: process.env.io}", Refused),
            ("Tokens that end a turn", a(), r#"{"a": 1}<end_of_turn>"#, As(json!({"a": 1}))),
            ("Thinking without its end", a(), r#"<|START_THINKING|>maybe {"a": 1}"#, Incomplete),
            ("A string that is the whole text", text(), r#""pay 50 to"#, Incomplete),
            ("Input that was plainly cut", one("a", text()), r#"<invoke name="f"><parameter name="a">x"#, Incomplete),
        ])
        .collect()
}

/// Rules about how a text is laid out.
fn by_layout() -> Vec<(&'static str, Value, &'static str, Read)> {
    let text = || json!({"type": "string"});
    let list = || {
        one(
            "a",
            json!({"type": "array", "items": {"type": ["string", "boolean"]}}),
        )
    };
    let count = "<invoke name=\"f\"><parameter name=\"count\">3</parameter></invoke>";
    let id = "<parameter name=\"id\">5</parameter>";
    vec![
        (
            "Strict first",
            list(),
            "Here: {\"a\": [\"2\",\ntrue]}",
            As(json!({"a": ["2", true]})),
        ),
        (
            "An element is read as",
            one("count", json!({"type": "integer"})),
            count,
            As(json!({"count": 3})),
        ),
        (
            "An element is read as",
            one("count", text()),
            count,
            As(json!({"count": "3"})),
        ),
        (
            "A string in an element",
            one("path", text()),
            "<function=f>\n<parameter=path>\na b\n</parameter>\n</function>",
            As(json!({"path": "a b"})),
        ),
        (
            "An element that can be",
            one("id", json!({"type": ["string", "integer"]})),
            id,
            Refused,
        ),
        (
            "A tag of the format",
            object(&json!({"a": text(), "b": text()})),
            "<function=f>\n<parameter=a>\nx\n<parameter=b>\ny\n</parameter>\n</function>",
            Refused,
        ),
    ]
}

/// Rules about what stands around arguments, and how they are encoded.
fn by_wrapper() -> Vec<(&'static str, Value, &'static str, Read)> {
    let text = || json!({"type": "string"});
    let integer = || json!({"type": "integer"});
    let a = || one("a", integer());
    let name = || one("name", text());
    let call = r#"{"name": "f", "arguments": {"name": "Ann"}}"#;
    let marked = r#"<tool_call>{"name": "f", "arguments": {"name": "Ann"}}</tool_call>"#;
    let rpc = r#"{"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "f", "arguments": {"a": 1}}}"#;
    let method = object(&json!({"method": text(), "a": integer()}));
    vec![
        ("A call object is unwrapped", a(), rpc, As(json!({"a": 1}))),
        (
            "A member beside wrapped",
            method,
            r#"{"method": "POST", "params": {"a": 1}}"#,
            Refused,
        ),
        (
            "A string that holds a document",
            a(),
            r#""{\"a\": 1}""#,
            As(json!({"a": 1})),
        ),
        (
            "Entities of HTML",
            a(),
            "{&quot;a&quot;: 1}",
            As(json!({"a": 1})),
        ),
        (
            "Full-width `：` and `，`",
            object(&json!({"a": integer(), "b": {"type": "boolean"}})),
            "{\"a\"：１２， \"b\"：true}",
            As(json!({"a": 12, "b": true})),
        ),
        (
            "Markdown's `\\_`",
            one("file_path", text()),
            r#"{"file\_path": "x"}"#,
            As(json!({"file_path": "x"})),
        ),
        (
            "A call that says it failed",
            a(),
            r#"{"name": "f", "arguments": {"a": 1}, "status": "failed"}"#,
            Refused,
        ),
        (
            "A name with two values",
            a(),
            r#"{"arguments": "{\"a\": 1, \"a\": 2}"}"#,
            Refused,
        ),
        (
            "In a mark for calls",
            name(),
            marked,
            As(json!({"name": "Ann"})),
        ),
        ("Without a mark", name(), call, Refused),
        (
            "Wrapped arguments that cannot",
            one("n", integer()),
            r#"{"arguments": {"n": "many"}}"#,
            Refused,
        ),
    ]
}

/// Every example is read as the page says.
#[test]
fn examples_are_read_as_the_page_says() {
    // As in `bind --schema`.
    let policy = BindPolicy {
        unknown_keys: UnknownKeys::Keep,
        ..BindPolicy::default()
    };
    for (rule, schema, raw, expected) in examples() {
        let binder = Binder::from_schema(&schema, policy).unwrap();
        let bound = binder.bind(raw);
        let status = bound.status;
        match expected {
            As(value) => {
                assert!(bound.is_executable(), "{rule}: {raw}\n{:?}", bound.issues);
                assert_eq!(bound.arguments.unwrap().to_value(), value, "{rule}: {raw}");
            }
            Refused => assert_eq!(status, BindStatus::Refused, "{rule}: {raw}"),
            Incomplete => assert_eq!(status, BindStatus::Incomplete, "{rule}: {raw}"),
        }
    }
}

/// Every rule of the page has an example here, and here is no other, in the same order.
#[test]
fn every_rule_of_the_page_has_an_example() {
    let page = include_str!("../../../docs/binder.md");
    let section = page.split("## Rules for what models write").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| "));
    let rules: Vec<&str> = rows
        .filter_map(|row| row.trim_start_matches("| ").split(" | ").next())
        .filter(|rule| *rule != "rule")
        .collect();
    let mut begun: Vec<&str> = examples().iter().map(|example| example.0).collect();
    begun.dedup();
    assert_eq!(rules.len(), begun.len(), "{rules:#?}");
    for (rule, begins) in rules.iter().zip(begun) {
        assert!(
            rule.starts_with(begins),
            "{rule:?} does not begin with {begins:?}"
        );
    }
}
