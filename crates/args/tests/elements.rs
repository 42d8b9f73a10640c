//! B6: calls whose parameters are elements of markup. Each published format gives back the value that it was written
//! from; what is cut off does not run; what has two readings is refused.

#![expect(
    clippy::unwrap_used,
    clippy::string_slice,
    reason = "a failing test may panic"
)]

use countersign_args::Binder;
use countersign_contract::tool::{BindPolicy, UnknownKeys};
use countersign_contract::{BindStatus, IssueCode};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn binder() -> Binder {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": { "type": "string" },
            "content": { "type": "string" },
            "count": { "type": "integer" },
            "ratio": { "type": "number" },
            "force": { "type": "boolean" },
            "unit": { "enum": ["celsius", "fahrenheit"] },
            "until": { "type": ["string", "null"] },
            "either": { "type": ["string", "integer"] },
            "tags": { "type": "array", "items": { "type": "string" } },
            "data": { "type": "object" },
        },
    });
    let policy = BindPolicy {
        unknown_keys: UnknownKeys::Keep,
        ..BindPolicy::default()
    };
    Binder::from_schema(&schema, policy).unwrap()
}

/// The published formats.
#[derive(Debug, Clone, Copy)]
enum Format {
    Qwen,
    QwenBare,
    Invoke,
    MiniMax,
    Dsml,
    Glm,
}

const FORMATS: [Format; 6] = [
    Format::Qwen,
    Format::QwenBare,
    Format::Invoke,
    Format::MiniMax,
    Format::Dsml,
    Format::Glm,
];

fn write(format: Format, arguments: &Map<String, Value>) -> String {
    let members = arguments.iter().map(|(name, value)| {
        let text = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        match format {
            Format::Qwen | Format::QwenBare => {
                format!("<parameter={name}>\n{text}\n</parameter>\n")
            }
            Format::Invoke | Format::MiniMax => {
                format!("<parameter name=\"{name}\">{text}</parameter>\n")
            }
            Format::Dsml => {
                let is_text = value.is_string();
                format!("<｜DSML｜parameter name=\"{name}\" string=\"{is_text}\">{text}</｜DSML｜parameter>\n")
            }
            Format::Glm => {
                format!("<arg_key>{name}</arg_key>\n<arg_value>{text}</arg_value>\n")
            }
        }
    });
    let members: String = members.collect();
    match format {
        Format::Qwen => format!("<tool_call>\n<function=f>\n{members}</function>\n</tool_call>"),
        Format::QwenBare => format!("<function=f>\n{members}</function>"),
        Format::Invoke => {
            format!("<function_calls>\n<invoke name=\"f\">\n{members}</invoke>\n</function_calls>")
        }
        Format::MiniMax => {
            format!(
                "<minimax:tool_call>\n<invoke name=\"f\">\n{members}</invoke>\n</minimax:tool_call>"
            )
        }
        Format::Dsml => format!(
            "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n{members}</｜DSML｜invoke>\n</｜DSML｜function_calls>"
        ),
        Format::Glm => format!("<tool_call>f\n{members}</tool_call>"),
    }
}

#[track_caller]
fn check(raw: &str, expected: Option<&str>) {
    let bound = binder().bind(raw);
    let runs = bound
        .is_executable()
        .then(|| bound.arguments.as_ref().unwrap().to_value());
    let expected = expected.map(|json| serde_json::from_str::<Value>(json).unwrap());
    assert_eq!(runs, expected, "{raw}\n{:#?}", bound.issues);
}

/// The declaration says what the content of an element is.
#[test]
fn values_have_their_declared_type() {
    let one = |name: &str, text: &str| {
        format!("<invoke name=\"f\"><parameter name=\"{name}\">{text}</parameter></invoke>")
    };
    for (name, text, expected) in [
        ("count", "3", Some(r#"{"count":3}"#)),
        ("path", "3", Some(r#"{"path":"3"}"#)),
        ("path", "true", Some(r#"{"path":"true"}"#)),
        ("path", " a ", Some(r#"{"path":" a "}"#)),
        ("path", "{\"a\": 1}", Some(r#"{"path":"{\"a\": 1}"}"#)),
        ("path", "&lt;b&gt;", Some(r#"{"path":"&lt;b&gt;"}"#)),
        ("force", "True", Some(r#"{"force":true}"#)),
        ("unit", "celsius", Some(r#"{"unit":"celsius"}"#)),
        ("until", "null", Some(r#"{"until":null}"#)),
        ("until", "2026-01-01", Some(r#"{"until":"2026-01-01"}"#)),
        ("tags", "[\"a\", 'b',]", Some(r#"{"tags":["a","b"]}"#)),
        ("data", "{}", Some(r#"{"data":{}}"#)),
        (
            "data",
            "{\"path\": \"x\"}",
            Some(r#"{"data":{"path":"x"}}"#),
        ),
        // A string as well as an integer.
        ("either", "5", None),
        ("either", "five", Some(r#"{"either":"five"}"#)),
        ("count", "three", None),
        ("other", "5", None),
    ] {
        check(&one(name, text), expected);
    }
}

/// What stands inside a value never becomes a member, and a format is read whole or not at all.
#[test]
fn what_has_two_readings_is_refused() {
    for raw in [
        // A closing tag is missing, or is that of another element.
        "<function=f>\n<parameter=path>\na\n<parameter=content>\nb\n</parameter>\n</function>",
        "<invoke name=\"f\"><parameter name=\"path\">a</content><parameter name=\"content\">b</parameter></invoke>",
        // Two values, two calls, text between the elements.
        "<function=f>\n<parameter=path>\na\n</parameter>\n<parameter=path>\nb\n</parameter>\n</function>",
        "<invoke name=\"f\"><parameter name=\"path\">a</parameter></invoke><invoke name=\"g\"><parameter name=\"path\">b</parameter></invoke>",
        "<invoke name=\"f\"><parameter name=\"path\">a</parameter> and <parameter name=\"content\">b</parameter></invoke>",
        // A line break on one side only.
        "<function=f>\n<parameter=path>\na</parameter>\n</function>",
        // Parameters without a call, and a document beside one.
        "<parameter name=\"path\">a</parameter>",
        "<invoke name=\"f\"><parameter name=\"path\">a</parameter></invoke>{\"force\": true}",
        "<invoke name=\"f\"><parameter name=\"path\">a</parameter></invoke> force: true",
    ] {
        check(raw, None);
    }
}

/// Qwen's template has a line break on each side of a value: exactly those are taken off, and reported. In other formats they
/// are a part of the value.
#[test]
fn line_breaks_of_the_format_are_reported() {
    for (raw, expected, is_reported) in [
        (
            "<function=f><parameter=path>\n\na\n</parameter></function>",
            "\na",
            true,
        ),
        (
            "<function=f><parameter=path>a</parameter></function>",
            "a",
            false,
        ),
        (
            "<invoke name=\"f\"><parameter name=\"path\">\na\n</parameter></invoke>",
            "\na\n",
            false,
        ),
        (
            "<tool_call>f<arg_key>path</arg_key><arg_value>\na\n</arg_value></tool_call>",
            "\na\n",
            false,
        ),
    ] {
        let bound = binder().bind(raw);
        let value = bound.arguments.as_ref().unwrap().to_value();
        assert_eq!(value, json!({ "path": expected }), "{raw}");
        let reported = bound
            .issues
            .iter()
            .any(|issue| issue.code == IssueCode::StrayText);
        assert_eq!(reported, is_reported, "{raw}");
    }
}

/// An element in a string of a document is a part of the string.
#[test]
fn markup_in_a_document_is_text() {
    let inner = "<invoke name='f'><parameter name='force'>true</parameter></invoke>";
    check(
        &json!({ "content": inner }).to_string(),
        Some(&json!({ "content": inner }).to_string()),
    );
    check(
        &format!("Sure: {{content: \"{inner}\"}}"),
        Some(&json!({ "content": inner }).to_string()),
    );
}

/// Thinking, prose, fences and end tokens around a call are skipped as around a document.
#[test]
fn prose_stays_prose() {
    let call = "<invoke name=\"f\"><parameter name=\"count\">3</parameter></invoke>";
    for raw in [
        format!("I'll look it up.\n\n{call}"),
        format!("He said \"go\".\n{call}"),
        format!("<think>so <parameter name=\"count\">1</parameter></think>\n{call}"),
        format!("```xml\n{call}\n```"),
        format!("{call}<|im_end|>"),
        "<function=f>\n<parameter=count>\n3\n</parameter>\n</function>\n</tool_call>".to_owned(),
        "<f>\n<count>3</count>\n</f>".to_owned(),
    ] {
        check(&raw, Some(r#"{"count":3}"#));
    }
    check("<tool_call>f</tool_call>", Some("{}"));
    check("<function=f>\n</function>", Some("{}"));
}

#[test]
fn a_call_that_is_cut_off_says_so() {
    let binder = binder();
    for raw in [
        "<tool_call>",
        "<tool_call>\n<fun",
        "<function_calls>\n<invoke n",
        "<tool_call>f\n<arg_key>path",
        "<tool_call>f\n</tool_call",
        "<function=f>\n<parameter=path>\na\n</par",
        "<function=f>\n<parameter=path>\na\n</parameter>\n",
        "<tool_call>\n<function=f>\n<parameter=path>\na\n</parameter>\n</function>\n",
    ] {
        let bound = binder.bind(raw);
        assert_eq!(bound.status, BindStatus::Incomplete, "{raw}");
        assert_eq!(bound.issues[0].code, IssueCode::Incomplete, "{raw}");
        assert!(
            bound
                .issues
                .iter()
                .all(|issue| issue.code != IssueCode::MissingRequired),
            "{raw}"
        );
    }
}

/// Strings without a tag of the formats, as people and programs write them.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -;=?-~é中]{1,24}",
        Just("a < b && c > d".to_owned()),
        Just("<a href=\"x\">link</a>".to_owned()),
        Just("line 1\nline 2".to_owned()),
        Just("{\"force\": true}".to_owned()),
        Just("[1, 2]".to_owned()),
        Just("007".to_owned()),
        Just("null".to_owned()),
    ]
}

fn arguments() -> impl Strategy<Value = Map<String, Value>> {
    (
        prop::option::of(text()),
        prop::option::of(text()),
        prop::option::of(any::<i32>()),
        prop::option::of(-1e6..1e6),
        prop::option::of(any::<bool>()),
        prop::option::of(prop::collection::vec(text(), 0..3)),
        prop::option::of(text()),
    )
        .prop_map(|(path, content, count, ratio, force, tags, inner)| {
            let members = [
                ("path", path.map(Value::from)),
                ("content", content.map(Value::from)),
                ("count", count.map(Value::from)),
                ("ratio", ratio.map(Value::from)),
                ("force", force.map(Value::from)),
                ("tags", tags.map(Value::from)),
                ("data", inner.map(|inner| json!({ "path": inner }))),
            ];
            let given = members.into_iter();
            given
                .filter_map(|(name, value)| Some((name.to_owned(), value?)))
                .collect()
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// Whatever is written in a published format is read as what it was written from.
    #[test]
    fn every_format_is_read_back(arguments in arguments(), format in 0..FORMATS.len()) {
        let raw = write(FORMATS[format], &arguments);
        let bound = binder().bind(&raw);
        prop_assert!(bound.is_executable(), "{raw}\n{:#?}", bound.issues);
        let value = bound.arguments.unwrap().to_value();
        prop_assert_eq!(value, Value::Object(arguments), "{}", raw);
    }

    /// A call that ends before its last tag never runs.
    #[test]
    fn a_cut_call_does_not_run(
        arguments in arguments(), format in 0..FORMATS.len(), cut in any::<prop::sample::Index>(),
    ) {
        let raw = write(FORMATS[format], &arguments);
        let mut end = cut.index(raw.len());
        while !raw.is_char_boundary(end) {
            end -= 1;
        }
        let bound = binder().bind(&raw[..end]);
        prop_assert!(!bound.is_executable(), "{}\n{:?}", &raw[..end], bound.arguments);
    }
}
