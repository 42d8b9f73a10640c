//! The binder case by case: status, value, and every change with its place.

#![expect(
    clippy::unwrap_used,
    clippy::too_many_lines,
    reason = "tables of cases"
)]

use countersign_args::{Binder, Bound, Limits, Reading};
use countersign_contract::parameter::{Leniency, Sensitivity};
use countersign_contract::tool::{BindPolicy, UnknownKeys};
use countersign_contract::{
    BindStatus, CaseRule, Input, IssueCode, Parameter, Severity, ValueKind,
};
use serde_json::{Value, json};

/// Formats a result as `status value [CODE path, …]`, the form of the expectations here.
fn shown(bound: &Bound) -> String {
    let status = serde_json::to_value(bound.status).unwrap();
    let value = bound
        .arguments
        .as_ref()
        .map_or("-", |arguments| arguments.as_json());
    let issues: Vec<String> = bound
        .issues
        .iter()
        .map(|issue| format!("{} {}", issue.code, issue.path))
        .collect();
    format!(
        "{} {value} [{}]",
        status.as_str().unwrap(),
        issues.join(", ")
    )
}

#[track_caller]
fn check(schema: &Value, raw: &str, expected: &str) {
    let binder = Binder::from_schema(schema, BindPolicy::default()).unwrap();
    assert_eq!(shown(&binder.bind(raw)), expected, "{raw}");
}

/// Checks one parameter `v`, bound from a whole text.
#[track_caller]
fn check_parameter(parameter: Parameter, raw: &str, expected: &str) {
    assert_eq!(shown(&binder_of([parameter]).bind(raw)), expected, "{raw}");
}

/// Checks one parameter `v`, bound from a JSON value.
#[track_caller]
fn check_kind(parameter: Parameter, value: &str, expected: &str) {
    check_parameter(parameter, &format!("{{\"v\":{value}}}"), expected);
}

/// What an effect changes is in `effects.rs`.
fn binder_of(parameters: impl IntoIterator<Item = Parameter>) -> Binder {
    let schema = Input::parameters(parameters).json_schema();
    Binder::from_schema(&schema, BindPolicy::default()).unwrap()
}

fn v(kind: ValueKind) -> Parameter {
    Parameter::new("v", kind, "")
}

fn object() -> Value {
    json!({
        "type": "object",
        "properties": {
            "city": { "type": "string" },
            "days": { "type": "integer" },
            "tags": { "type": "array", "items": { "type": "string" } },
            "unit": { "enum": ["celsius", "fahrenheit"] },
        },
        "required": ["city"],
    })
}

/// B6: text that is JSON and that the declaration accepts is not changed, to the byte.
#[test]
fn exact_texts_stay_as_they_are() {
    for raw in [
        r#"{"city":"true"}"#,
        r#"{ "city" : "007", "days" : 3 }"#,
        "{\"city\":\"a\\u00e9\\n\",\"tags\":[]}",
        r#"{"tags":["1","null"],"city":""}"#,
    ] {
        check(&object(), raw, &format!("exact {raw} []"));
    }
    let raw = r#"{"big":12345678901234567890123,"exact":1.10,"nested":{"a":[1e5]}}"#;
    check(
        &json!({ "type": "object" }),
        raw,
        &format!("exact {raw} []"),
    );
}

/// B6: booleans.
#[test]
fn booleans() {
    for (value, expected) in [
        ("true", r#"exact {"v":true} []"#),
        (r#""true""#, r#"repaired {"v":true} [TEXT_TO_BOOLEAN /v]"#),
        (r#""No""#, r#"repaired {"v":false} [TEXT_TO_BOOLEAN /v]"#),
        ("1", r#"repaired {"v":true} [NUMBER_TO_BOOLEAN /v]"#),
        ("0", r#"repaired {"v":false} [NUMBER_TO_BOOLEAN /v]"#),
        ("2", "refused - [TYPE_MISMATCH /v]"),
        (r#""maybe""#, "refused - [TYPE_MISMATCH /v]"),
        ("null", "refused - [TYPE_MISMATCH /v]"),
    ] {
        check_kind(v(ValueKind::Boolean), value, expected);
    }
    let issues = binder_of([v(ValueKind::Boolean)])
        .bind(r#"{"v": 1}"#)
        .issues;
    assert_eq!(issues[0].message, "number coerced to boolean");
}

/// B6: a string is never converted to another type, and another literal is kept as a string in its own
/// spelling.
#[test]
fn texts() {
    for (value, expected) in [
        (r#""42""#, r#"exact {"v":"42"} []"#),
        ("true", r#"repaired {"v":"true"} [BOOLEAN_TO_TEXT /v]"#),
        ("1.50", r#"repaired {"v":"1.50"} [NUMBER_TO_TEXT /v]"#),
        (
            "12345678901234567890",
            r#"repaired {"v":"12345678901234567890"} [NUMBER_TO_TEXT /v]"#,
        ),
        (
            r#"["only"]"#,
            r#"repaired {"v":"only"} [SINGLETON_UNWRAPPED /v]"#,
        ),
        (r#"{"a":1}"#, "refused - [TYPE_MISMATCH /v]"),
        ("null", "refused - [TYPE_MISMATCH /v]"),
    ] {
        check_kind(v(ValueKind::String), value, expected);
    }
    let issues = binder_of([v(ValueKind::String)]).bind(r#"{"v": 1}"#).issues;
    assert_eq!(issues[0].message, "non-string literal retained");
}

/// B6: integers go through decimal digits, never through a float.
#[test]
fn integers() {
    for (value, expected) in [
        (r#""42""#, r#"repaired {"v":42} [TEXT_TO_INTEGER /v]"#),
        ("3.0", r#"repaired {"v":3} [NUMBER_TO_INTEGER /v]"#),
        (
            r#""9007199254740993""#,
            r#"repaired {"v":9007199254740993} [TEXT_TO_INTEGER /v]"#,
        ),
        (r#""1,234""#, r#"repaired {"v":1234} [GROUPED_NUMBER /v]"#),
        ("3.7", "refused - [LOSSY /v]"),
        (r#""12abc""#, "refused - [TYPE_MISMATCH /v]"),
        ("true", "refused - [TYPE_MISMATCH /v]"),
        (r#""99999999999999999999""#, "refused - [CONSTRAINT /v]"),
    ] {
        check_kind(v(ValueKind::Integer), value, expected);
    }
    let cut = || v(ValueKind::Integer).truncate();
    check_kind(cut(), "3.7", r#"repaired {"v":3} [INTEGER_TRUNCATED /v]"#);
    check_kind(cut(), "-3.7", r#"repaired {"v":-3} [INTEGER_TRUNCATED /v]"#);
}

/// A value that is not an object is read as a whole, or not at all.
#[test]
fn roots_that_are_no_objects() {
    for (schema, raw, expected) in [
        ("number", "12,111.5", "repaired 12111.5 [TEXT_TO_NUMBER]"),
        ("number", "12 or 13", "refused -"),
        (
            "string",
            "plain words",
            "repaired \"plain words\" [VALUE_UNQUOTED ]",
        ),
        ("string", "'a' and 'b'", "refused -"),
        ("boolean", "True", "repaired true [PYTHON_LITERAL ]"),
    ] {
        let schema = json!({ "type": schema });
        let binder = Binder::from_schema(&schema, BindPolicy::default()).unwrap();
        let shown = shown(&binder.bind(raw));
        assert!(
            shown.starts_with(expected.split(" [").next().unwrap()),
            "{raw}: {shown}"
        );
    }
}

/// B6: numbers.
#[test]
fn numbers() {
    for (value, expected) in [
        (r#""3.14""#, r#"repaired {"v":3.14} [TEXT_TO_NUMBER /v]"#),
        ("7", r#"exact {"v":7} []"#),
        (r#""3,14""#, "refused - [TYPE_MISMATCH /v]"),
        (r#""$5""#, "refused - [TYPE_MISMATCH /v]"),
        (r#""42%""#, "refused - [TYPE_MISMATCH /v]"),
        ("1e999", "refused - [CONSTRAINT /v]"),
        (r#""NaN""#, "refused - [TYPE_MISMATCH /v]"),
    ] {
        check_kind(v(ValueKind::Number), value, expected);
    }
}

/// B3, B6: objects, arrays, times, URIs and attachments.
#[test]
fn the_other_kinds() {
    let time = ValueKind::Timestamp;
    for (kind, value, expected) in [
        (
            ValueKind::Object,
            r#""{\"a\":1}""#,
            r#"repaired {"v":{"a":1}} [CONTAINER_DECODED /v]"#,
        ),
        (
            ValueKind::Object,
            r#""{'a': 1}""#,
            r#"repaired {"v":{"a":1}} [QUOTE_STYLE , CONTAINER_DECODED /v]"#,
        ),
        (
            ValueKind::Object,
            r#""{broken""#,
            "refused - [TYPE_MISMATCH /v]",
        ),
        (
            ValueKind::Array,
            r#""[1, 2]""#,
            r#"repaired {"v":[1,2]} [CONTAINER_DECODED /v]"#,
        ),
        (
            time,
            r#""2024-01-02T03:04:05Z""#,
            r#"exact {"v":"2024-01-02T03:04:05Z"} []"#,
        ),
        (
            time,
            r#""2024/01/02 03:04:05Z""#,
            r#"repaired {"v":"2024-01-02T03:04:05Z"} [DATE_NORMALISED /v]"#,
        ),
        (time, r#""tomorrow""#, "refused - [CONSTRAINT /v]"),
        (
            time,
            "1700000000",
            "refused - [CONSTRAINT /v, NUMBER_TO_TEXT /v]",
        ),
        (
            ValueKind::Uri,
            r#""https://a.b/c""#,
            r#"exact {"v":"https://a.b/c"} []"#,
        ),
        (
            ValueKind::Uri,
            r#""/a/b""#,
            r#"repaired {"v":"/a/b"} [FORMAT_KEPT /v]"#,
        ),
        (
            ValueKind::AttachmentReference,
            r#""att_1""#,
            r#"exact {"v":"att_1"} []"#,
        ),
    ] {
        check_kind(v(kind), value, expected);
    }
}

/// B5: another spelling of a member is changed to the declared one; a violation is an error with the nearest
/// member.
#[test]
fn enum_tokens() {
    let token = || Parameter::one_of("v", ["Civil", "Wi-Fi"], "");
    check_kind(
        token(),
        r#""civil""#,
        r#"repaired {"v":"Civil"} [ENUM_FOLDED /v]"#,
    );
    check_kind(
        token(),
        r#""wi fi.""#,
        r#"repaired {"v":"Wi-Fi"} [ENUM_FOLDED /v]"#,
    );
    check_kind(token(), r#""civl""#, "refused - [ENUM_NO_MATCH /v]");
    let mut exact = token();
    exact.allowed.as_mut().unwrap().case = CaseRule::Exact;
    check_kind(exact, r#""civil""#, "refused - [ENUM_NO_MATCH /v]");
    let mut aliased = token();
    aliased.allowed.as_mut().unwrap().aliases = vec![("Wi-Fi".into(), "WLAN".into())];
    check_kind(
        aliased,
        r#""wlan""#,
        r#"repaired {"v":"Wi-Fi"} [ENUM_ALIAS /v]"#,
    );
    let bound = binder_of([token()]).bind(r#"{"v":"civl"}"#);
    assert_eq!(
        bound.issues[0].suggestion.as_deref(),
        Some("did you mean \"Civil\"?")
    );
}

/// B4, B6: the four cardinalities.
#[test]
fn cardinalities() {
    let list = || v(ValueKind::Integer).list();
    for (parameter, value, expected) in [
        (list(), "5", r#"repaired {"v":[5]} [SCALAR_WRAPPED /v]"#),
        (
            list(),
            r#"["1",2]"#,
            r#"repaired {"v":[1,2]} [TEXT_TO_INTEGER /v/0]"#,
        ),
        (
            list(),
            r#""1, 2""#,
            r#"repaired {"v":[1,2]} [LIST_SPLIT /v, TEXT_TO_INTEGER /v/0, TEXT_TO_INTEGER /v/1]"#,
        ),
        // Both readings fit, so neither runs.
        (list(), r#""1,234""#, "refused - [AMBIGUOUS /v]"),
        (
            list(),
            r#"["1","x"]"#,
            "refused - [TYPE_MISMATCH /v/1, TEXT_TO_INTEGER /v/0]",
        ),
        (
            v(ValueKind::String).list(),
            r#""San Francisco, CA""#,
            "refused - [AMBIGUOUS /v]",
        ),
        (
            v(ValueKind::Integer).map(),
            r#"{"a":"1"}"#,
            r#"repaired {"v":{"a":1}} [TEXT_TO_INTEGER /v/a]"#,
        ),
        (
            v(ValueKind::Integer).map(),
            "[1]",
            "refused - [TYPE_MISMATCH /v]",
        ),
    ] {
        check_kind(parameter, value, expected);
    }
    check_parameter(v(ValueKind::Integer).optional(), "{}", "exact {} []");
    check_parameter(list().optional(), "{}", "exact {} []");
    check_parameter(list(), "{}", "refused - [MISSING_REQUIRED /v]");
}

/// B10: absent, null and empty are three different things.
#[test]
fn absent_null_and_empty() {
    let text = || v(ValueKind::String).optional();
    let number = || v(ValueKind::Number).optional();
    for (parameter, value, expected) in [
        (text(), r#""""#, r#"exact {"v":""} []"#),
        (text(), r#""null""#, r#"exact {"v":"null"} []"#),
        (text(), "null", "repaired {} [NULL_DROPPED /v]"),
        (number(), "null", "repaired {} [NULL_DROPPED /v]"),
        (number(), r#""""#, "repaired {} [EMPTY_DROPPED /v]"),
        (number(), r#""None""#, "repaired {} [NULL_DROPPED /v]"),
        (
            v(ValueKind::String).list().optional(),
            r#""null""#,
            "repaired {} [NULL_DROPPED /v]",
        ),
        (
            v(ValueKind::Number),
            r#""""#,
            "refused - [TYPE_MISMATCH /v]",
        ),
    ] {
        check_kind(parameter, value, expected);
    }
}

/// Common mistakes of models in JSON are repaired.
#[test]
fn syntax_is_repaired() {
    for (raw, expected) in [
        (
            "{city: 'Paris'}",
            r#"repaired {"city":"Paris"} [KEY_UNQUOTED , QUOTE_STYLE ]"#,
        ),
        (
            "```json\n{\"city\": \"Paris\",}\n```",
            r#"repaired {"city":"Paris"} [TRAILING_COMMA , FENCE_STRIPPED ]"#,
        ),
        (
            r#"{} {"city": "Paris"}"#,
            r#"repaired {"city":"Paris"} [EXTRA_CLOSER ]"#,
        ),
        (
            "Sure, here it is:\n```json\n{\"city\": \"Paris\"}\n```\nDone.",
            r#"repaired {"city":"Paris"} [FENCE_STRIPPED , PROSE_SKIPPED ]"#,
        ),
        (
            r#"Sure: {"city": "Paris"} Done."#,
            r#"repaired {"city":"Paris"} [PROSE_SKIPPED ]"#,
        ),
        (
            r#"{"city": "Paris"}}}"#,
            r#"repaired {"city":"Paris"} [EXTRA_CLOSER ]"#,
        ),
        (
            r#"{"city": "Los "Angeles," CA", "days": 1}"#,
            r#"repaired {"city":"Los \"Angeles,\" CA","days":1} [INNER_QUOTE_ESCAPED ]"#,
        ),
        (
            r#""city": "Rome", "days": 2}"#,
            r#"repaired {"city":"Rome","days":2} [BRACES_ADDED ]"#,
        ),
        (
            "weather(city='Rome', days=2)",
            r#"repaired {"city":"Rome","days":2} [QUOTE_STYLE , CALL_SYNTAX , PROSE_SKIPPED ]"#,
        ),
        (
            r#"{\"city\": \"Rome\"}"#,
            r#"repaired {"city":"Rome"} [ROOT_DECODED ]"#,
        ),
        (
            r#""{\"city\": \"Rome\"}""#,
            r#"repaired {"city":"Rome"} [ROOT_DECODED ]"#,
        ),
        (
            r#"[{"city": "Rome"}]"#,
            r#"repaired {"city":"Rome"} [ROOT_LIST_UNWRAPPED ]"#,
        ),
        (
            r#"{"name": "weather", "arguments": {"city": "Rome"}}"#,
            r#"repaired {"city":"Rome"} [ARGUMENTS_UNWRAPPED ]"#,
        ),
        (
            r#"{"city": "Rome", "days": +2} // two"#,
            r#"repaired {"city":"Rome","days":2} [NUMBER_FORM , PROSE_SKIPPED ]"#,
        ),
        (
            r#"{"city": "C:\data"}"#,
            r#"repaired {"city":"C:\\data"} [ESCAPE_REPAIRED ]"#,
        ),
        (
            "{\"city\": \"a\nb\"}",
            r#"repaired {"city":"a\nb"} [CONTROL_CHAR ]"#,
        ),
        (
            r#"{"City": "Rome"}"#,
            r#"repaired {"city":"Rome"} [KEY_FOLDED /city]"#,
        ),
        (
            r#"{"city": "Rome", "tags": ["a" "b"]}"#,
            r#"repaired {"city":"Rome","tags":["a","b"]} [MISSING_COMMA /tags]"#,
        ),
    ] {
        check(&object(), raw, expected);
    }
}

/// No safe reading exists: nothing is guessed, nothing is dropped.
#[test]
fn refusals() {
    for (raw, expected) in [
        ("", "refused - [NOT_FOUND ]"),
        ("The weather is nice {today}.", "refused - [NOT_FOUND ]"),
        ("{}", "refused - [MISSING_REQUIRED /city]"),
        (r#"{"city": "a"} {"city": "b"}"#, "refused - [AMBIGUOUS ]"),
        (
            r#"[{"city": "a"}, {"city": "b"}]"#,
            "refused - [AMBIGUOUS ]",
        ),
        (
            r#"{"city": "a", "city": "b"}"#,
            "refused - [DUPLICATE_KEY /city]",
        ),
        (
            r#"{"city": "a", "citty": "b"}"#,
            "refused - [UNKNOWN_KEY /citty]",
        ),
        (
            "{city: 'a', citty: 'b'}",
            "refused - [UNKNOWN_KEY /citty, KEY_UNQUOTED , QUOTE_STYLE ]",
        ),
        (
            r#"{"city": "a", "tags": ["x", ...]}"#,
            "refused - [INCOMPLETE ]",
        ),
        (r#""Paris""#, "refused - [TYPE_MISMATCH ]"),
        (
            r#"{"city": "a", "$serde_json::private::RawValue": "1"}"#,
            "refused - [UNKNOWN_KEY ]",
        ),
        (
            r#"{city: "a", "$serde_json::private::Number": "1"}"#,
            "refused - [UNKNOWN_KEY ]",
        ),
    ] {
        check(&object(), raw, expected);
    }
    // Two equal documents count as one.
    check(
        &object(),
        r#"{"city": "a"} {"city": "a"}"#,
        r#"repaired {"city":"a"} [PROSE_SKIPPED , DUPLICATE_COLLAPSED ]"#,
    );
    check(
        &object(),
        r#"{"city": "a", "city": "a"}"#,
        r#"repaired {"city":"a"} [DUPLICATE_COLLAPSED ]"#,
    );
}

/// Texts that were once bound to a value that was not meant: now each is read as it was meant, or refused.
#[test]
fn no_guess_is_run() {
    let schema = json!({
        "type": "object",
        "properties": {
            "city": { "type": "string" },
            "days": { "type": "integer" },
            "unit": { "type": "string" },
            "tags": { "type": "array", "items": { "type": "string" } },
            "ids": { "type": "array", "items": { "type": "integer" } },
            "level": { "enum": ["1", "A"] },
            "parent": { "type": "object" },
        },
        "required": ["city"],
    });
    let binder = Binder::from_schema(&schema, BindPolicy::default()).unwrap();
    for (raw, expected) in [
        ("get(city='Paris')\nget(city='Rome')", None),
        (
            "first today(), then get(city='Paris')",
            Some(r#"{"city":"Paris"}"#),
        ),
        ("\"city\": \"Paris\"}\n{\"city\": \"Rome\"}", None),
        (r#"{"city":"a","parent":{"city":"b"}, ...}"#, None),
        (r#"{"city":"a","parent":{"city":"b"}, oops}"#, None),
        (r#"{"query": {"city":"Paris"}, "x": 1"#, None),
        (
            r#"{"city":"a","ids": [1, 2}, "days": 3}"#,
            Some(r#"{"city":"a","ids":[1,2],"days":3}"#),
        ),
        (
            r#"{"city": "Paris"} "days": 3}"#,
            Some(r#"{"city":"Paris","days":3}"#),
        ),
        ("{city: Paris}, days: 3}", None),
        (r#"{"city":"Paris"}{"days":3}"#, None),
        (r#"{"city": Hello {name}, welcome", "days": 3}"#, None),
        ("f(city=sin(x), days=2)", None),
        (r#"{"city": "{ y = "b"}; z", "days": 1}"#, None),
        (
            "{\"city\": #ff0000,\n \"days\": 2}",
            Some(r##"{"city":"#ff0000","days":2}"##),
        ),
        (
            r#"{"city"："Paris"，"days"：3}"#,
            Some(r#"{"city":"Paris","days":3}"#),
        ),
        (
            r#"{"tags": ["x", "y", "city": "Paris"}"#,
            Some(r#"{"tags":["x","y"],"city":"Paris"}"#),
        ),
        (r#"{"tags": "x", "y"], "city": "P"}"#, None),
        (r#"{"city": "a", "tags": ["red, "green", "blue"]}"#, None),
        (r#"{"city":: "Paris"}"#, Some(r#"{"city":"Paris"}"#)),
        ("{'city': b'Paris'}", Some(r#"{"city":"Paris"}"#)),
        (r#"{"city": f"Pa{x}"}"#, None),
        (r#"{"city": \"Paris\"}"#, None),
        (r#"{"city": "Paris', "days": 3}"#, None),
        (r#"{"city": 'Paris", "unit": 'c'}"#, None),
        (r#"{"city": "Par" + "is"}"#, None),
        (r#"{"city": "a", "ids": [1,000, 2,000,]}"#, None),
        (r#"{"city": "a", "ids": [1 000]}"#, None),
        (r#"{"city": "a", "level": -1}"#, None),
        (r#"{"city": "a", "level": "A-"}"#, None),
        (
            "{'city': 'a', 'tags': ('x', 'y')}",
            Some(r#"{"city":"a","tags":["x","y"]}"#),
        ),
        (r#"{"city": "a", "tags": "[\"x\", \"y\""}"#, None),
        (r#"{"city": "C:\dir\", "days": 3}"#, None),
        (r#"{"city": "C:\Users\name"}"#, None),
        (
            r#"Example: {"city":"Paris"}. Now: {"city":"Rome","days":"soon"}"#,
            None,
        ),
        ("get(city='Paris')\nget(town='Rome')", None),
        (r#"{"city":"Paris"} {"city": "#, None),
        (r#"search("cats", {"city": "Paris"})"#, None),
        (
            r#"{"city": "Paris",, "days": 3}"#,
            Some(r#"{"city":"Paris","days":3}"#),
        ),
        (r#"{"city": "Paris", "days" 3, "unit": "c"}"#, None),
        (r#"{"city": "Paris", "unit" = "c"}"#, None),
        (r#"{"city": "a", "tags": ["Lakers", Clippers"]}"#, None),
        (r#"{"city": "Paris" or "Rome"}"#, None),
        (r#"{"city": "Paris".strip(), "days": 3}"#, None),
        (r#"{"days": 1, "city": "Depp {"k"} x"}"#, None),
        (r#"f(city="say "hi") now", days=1)"#, None),
        (r#"{"city": «Paris»}"#, Some(r#"{"city":"Paris"}"#)),
        ("{city: &quot;Paris&quot;}", None),
        ("{city: a, tags: [x, y, days: 3}", None),
        (r#"{"city": ]}"#, None),
        (r#"{"city": r"C:\new\table"}"#, None),
        (r#"{"city": "1-5", "level": "1-"}"#, None),
        (r#"{"city": "", "unit": }"#, None),
    ] {
        let bound = binder.bind(raw);
        let runs = bound
            .is_executable()
            .then(|| bound.arguments.as_ref().unwrap().as_json());
        assert_eq!(runs, expected, "{raw} {:?}", bound.issues);
    }
}

/// However much was changed, the reason of a refusal is listed, and the policy sees every change.
#[test]
fn no_reason_is_left_out() {
    let schema = json!({
        "type": "object",
        "properties": { "n": { "type": "array", "items": { "type": "integer" } } },
        "additionalProperties": { "type": "integer" },
    });
    let numbers = vec!["\"1\""; 100].join(",");
    let refused = format!("{{\"n\":[{numbers}],\"z\":\"x\"}}");
    let policy = BindPolicy {
        max_severity: Severity::Retyped,
        ..BindPolicy::default()
    };
    let binder = Binder::from_schema(&schema, policy).unwrap();
    let bound = binder.bind(&refused);
    assert_eq!(bound.issues[0].code, IssueCode::TypeMismatch);
    assert_eq!(bound.issues.len(), Limits::default().issues_max + 1);
    let folded = format!("{{\"a\":[{numbers}],\"N\":[{numbers}]}}").replace("\"a\":", "\"n\":");
    assert_eq!(binder.bind(&folded).status, BindStatus::Refused);
    let folded = format!("{{\"N\":[{numbers}]}}");
    assert_eq!(
        binder.bind(&folded).issues[0].code,
        IssueCode::PolicyExceeded
    );
}

/// B9: every refusal has a code, a place, what was expected, what came and what to send instead.
#[test]
fn every_refusal_is_complete() {
    let binder = Binder::from_schema(&object(), BindPolicy::default()).unwrap();
    for raw in [
        "",
        "nothing here",
        "{}",
        r#"{"city": 5, "days": "x"}"#,
        r#"{"city": "a", "days": [1, 2]}"#,
        r#"{"city": "a", "unit": null, "tags": {"a": 1}}"#,
        r#"{"city": "a", "nope": 1}"#,
        r#"{"city": "a", "city": "b"}"#,
        r#"[{"city": "a"}, {"city": "b"}]"#,
        r#"{"city": "a"} {"city": "b"}"#,
        r#"{"city": "a" or "b"}"#,
        r#"{"city": "a", "tags": ["#,
        "{city: [[[[",
    ] {
        for issue in binder
            .bind(raw)
            .issues
            .iter()
            .filter(|i| i.severity == Severity::Error)
        {
            let came = issue.before.is_some()
                || matches!(
                    issue.code,
                    IssueCode::MissingRequired | IssueCode::Incomplete
                )
                || raw.is_empty();
            let whole = issue.expected.is_some() && issue.suggestion.is_some() && came;
            assert!(whole && issue.span.is_some(), "{raw}: {issue:?}");
        }
    }
}

/// A place inside a decoded string is reported as a place in the raw text, at a character boundary.
#[test]
fn places_lie_in_the_raw_text() {
    let long = format!("{{\"city\": \"a\", {}", "é".repeat(200));
    for raw in [
        "{\\\"a\\\": 1, \\\"ʣ\\\" [",
        "n[\\\"\\[\\\"u1ʣ[{n{[[",
        &long,
    ] {
        for binder in [
            Binder::from_schema(&object(), BindPolicy::default()).unwrap(),
            Binder::undeclared(),
        ] {
            for issue in binder.bind(raw).issues {
                let [start, end] = issue.span.unwrap_or_default();
                assert!(raw.get(start..end).is_some(), "{raw} {issue:?}");
            }
        }
    }
}

/// B9: a refusal says where, what was expected, what came, and what to send.
#[test]
fn a_refusal_can_be_acted_on() {
    let binder = Binder::from_schema(&object(), BindPolicy::default()).unwrap();
    let bound = binder.bind(r#"{"city": "Rome", "dayz": 3, "unit": "celcius"}"#);
    assert_eq!(
        serde_json::to_value(&bound.issues).unwrap(),
        json!([
            {
                "code": "UNKNOWN_KEY",
                "severity": "error",
                "path": "/dayz",
                "span": [25, 26],
                "before": "3",
                "expected": "one of the names city, days, tags, unit",
                "message": "unknown argument \"dayz\": allowed are city, days, tags, unit",
                "suggestion": "did you mean \"days\"?",
            },
            {
                "code": "ENUM_NO_MATCH",
                "severity": "error",
                "path": "/unit",
                "span": [36, 45],
                "before": "\"celcius\"",
                "expected": "one of \"celsius\", \"fahrenheit\"",
                "message": "the value is not one of those allowed: expected one of \"celsius\", \
                            \"fahrenheit\"",
                "suggestion": "did you mean \"celsius\"?",
            },
        ])
    );
}

/// B9: if a schema accepts no names, the refusal says so instead of listing none.
#[test]
fn what_takes_nothing_says_so() {
    let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let binder = Binder::from_schema(&schema, BindPolicy::default()).unwrap();
    let issues = binder.bind(r#"{"city": "Rome"}"#).issues;
    assert_eq!(
        issues.first().unwrap().message,
        "unknown argument \"city\": no arguments are allowed here"
    );
}

/// A text that ends inside something shows what arrived and never runs.
#[test]
fn incomplete_texts() {
    for (raw, expected) in [
        (
            r#"{"city": "Rome", "days": 2"#,
            r#"incomplete {"city":"Rome","days":2} [INCOMPLETE ]"#,
        ),
        (
            r#"{"city": "Ro"#,
            r#"incomplete {"city":"Ro"} [INCOMPLETE ]"#,
        ),
        (
            r#"{"city": "Rome}"#,
            r#"incomplete {"city":"Rome"} [INCOMPLETE ]"#,
        ),
        (r#"{"days": 2"#, "incomplete - [INCOMPLETE ]"),
        (
            r#"{"city": "Rome", ""#,
            r#"incomplete {"city":"Rome"} [INCOMPLETE ]"#,
        ),
        (
            r#"{"city": "Rome", "day"#,
            r#"incomplete {"city":"Rome"} [INCOMPLETE ]"#,
        ),
        (
            r#"{"city": "Rome", "days""#,
            r#"incomplete {"city":"Rome"} [INCOMPLETE ]"#,
        ),
    ] {
        check(&object(), raw, expected);
    }
}

/// B8: without a declaration the text is only parsed, with an issue that says so.
#[test]
fn undeclared_tools() {
    let bound = Binder::undeclared().bind("{a: 'x', b: [1, 2,]}");
    assert_eq!(
        shown(&bound),
        "repaired {\"a\":\"x\",\"b\":[1,2]} [TOOL_DEFINITION_MISSING , KEY_UNQUOTED , \
         QUOTE_STYLE , TRAILING_COMMA /b]"
    );
    assert_eq!(bound.issues[0].message, "tool_definition_missing");
}

/// Per tool: strict, the furthest severity, and unknown names. Per parameter: strict.
#[test]
fn policies() {
    let with = |policy| Binder::from_schema(&object(), policy).unwrap();
    let base = BindPolicy::default();
    let strict = with(BindPolicy {
        leniency: Leniency::Strict,
        ..base
    });
    let money = with(BindPolicy {
        max_severity: Severity::Retyped,
        ..base
    });
    let drop = with(BindPolicy {
        unknown_keys: UnknownKeys::Drop,
        ..base
    });
    let keep = with(BindPolicy {
        unknown_keys: UnknownKeys::Keep,
        ..base
    });
    for (binder, raw, expected) in [
        (&strict, r#"{"city":"a"}"#, r#"exact {"city":"a"} []"#),
        (
            &strict,
            r#"{"city":"a","days":"3"}"#,
            "refused - [TYPE_MISMATCH /days]",
        ),
        (&strict, r#"{"city":"a",}"#, "refused - [NOT_FOUND ]"),
        (
            &money,
            r#"{"city":"a","days":"3"}"#,
            r#"repaired {"city":"a","days":3} [TEXT_TO_INTEGER /days]"#,
        ),
        (
            &money,
            r#"{"City":"a"}"#,
            "refused - [POLICY_EXCEEDED /city, KEY_FOLDED /city]",
        ),
        (
            &drop,
            r#"{"city":"a","x":1}"#,
            r#"repaired {"city":"a"} [UNKNOWN_KEY_DROPPED /x]"#,
        ),
        (
            &keep,
            r#"{"city":"a","x":1}"#,
            r#"exact {"city":"a","x":1} []"#,
        ),
        (
            &keep,
            r#"{"City":"a","x":1}"#,
            r#"repaired {"city":"a","x":1} [KEY_FOLDED /city]"#,
        ),
    ] {
        assert_eq!(shown(&binder.bind(raw)), expected, "{raw}");
    }
    // Everything inside a strict value is strict too, and nothing around it is unwrapped.
    let declared = binder_of([v(ValueKind::Integer).strict()]);
    for raw in ["[5]", "[[5]]", r#"{"v":5}"#, r#""5""#] {
        let bound = declared.bind(&format!("{{\"v\": {raw}}}"));
        assert_eq!(bound.status, BindStatus::Refused, "{raw}");
    }
    // Money, ids and phone numbers: their own type, or a refusal.
    check_kind(
        v(ValueKind::String).strict(),
        "12.50",
        "refused - [TYPE_MISMATCH /v]",
    );
}

/// `locale` and `timezone` decide the meaning of strings that mean different things in different places.
#[test]
fn readings() {
    let schema = json!({
        "type": "object",
        "properties": { "n": { "type": "number" }, "t": { "type": "string", "format": "date-time" } },
    });
    let binder = Binder::from_schema(&schema, BindPolicy::default()).unwrap();
    let berlin = Reading::new(Some("de-DE"), Some("Europe/Berlin"));
    let bound = binder.bind_with(r#"{"n": "3,14", "t": "2024-07-01 08:00:00"}"#, &berlin);
    assert_eq!(
        bound.arguments.unwrap().as_json(),
        r#"{"n":3.14,"t":"2024-07-01T08:00:00+02:00"}"#
    );
    assert_eq!(binder.bind(r#"{"n": "3,14"}"#).status, BindStatus::Refused);
    assert_eq!(
        binder.bind_with(r#"{"n": "1,234"}"#, &berlin).status,
        BindStatus::Refused
    );
    let unknown = binder.bind(r#"{"n": "1,234"}"#);
    assert_eq!(unknown.status, BindStatus::Refused);
    assert_eq!(unknown.issues[0].code, IssueCode::Ambiguous);
    let english = Reading::new(Some("en-US"), None);
    let bound = binder.bind_with(r#"{"n": "1,234"}"#, &english);
    assert_eq!(bound.arguments.unwrap().as_json(), r#"{"n":1234}"#);
}

/// A21: sensitive values are never quoted, neither in a change nor in a refusal.
#[test]
fn sensitive_values_are_not_quoted() {
    let secret = v(ValueKind::Integer).sensitivity(Sensitivity::Secret);
    let note = Parameter::new("w", ValueKind::String, "").optional();
    let nested = Parameter::new("who", ValueKind::Object, "")
        .optional()
        .fields(vec![
            Parameter::new("phone", ValueKind::Integer, "").sensitivity(Sensitivity::Personal),
        ]);
    let binder = binder_of([secret, note, nested]);
    for raw in [
        r#"{"v": "4111111111111111"}"#,
        r#"{"v": "4111x"}"#,
        "{v: 4111.5}",
        r#"{"V": "4111", "w": 1}"#,
        r#"{"v": "4111"#,
        r#"prose 4111 {"v": 1}"#,
        r#"{"v": 1, "who": {"phone": "4111x"}}"#,
        r#"{"v": 1, "who": "{'phone': '4111'}"}"#,
        r#"{"v": 1, "who": {"fone": "4111"}}"#,
        r#"{"V": [4111], "who": {}}"#,
        r#"{"args": {"v": "4111 "}}"#,
    ] {
        let issues = serde_json::to_string(&binder.bind(raw).issues).unwrap();
        assert!(!issues.contains("4111"), "{raw}: {issues}");
    }
}

/// Every limit is data, is enforced, and is named in the refusal.
#[test]
fn limits() {
    let base = Limits {
        raw_bytes_max: 1 << 20,
        ..Limits::default()
    };
    let long = "[".repeat(100_000);
    for (limits, raw, name) in [
        (
            Limits {
                raw_bytes_max: 4,
                ..base
            },
            "{\"a\":1}",
            "raw_bytes_max",
        ),
        (
            Limits {
                depth_max: 3,
                ..base
            },
            "{\"a\":[[[1]]]}",
            "depth_max",
        ),
        (base, &long, "depth_max"),
        (base, &format!("{{a:{long}"), "depth_max"),
        (
            Limits {
                nodes_max: 3,
                ..base
            },
            "{\"a\":[1,2,3]}",
            "nodes_max",
        ),
        (
            Limits {
                nodes_max: 3,
                ..base
            },
            "{a:[1,2,3]}",
            "nodes_max",
        ),
        (
            Limits {
                members_max: 2,
                ..base
            },
            "{\"a\":1,\"b\":2,\"c\":3}",
            "members_max",
        ),
        (
            Limits {
                number_digits_max: 5,
                ..base
            },
            "{\"a\":123456}",
            "number_digits_max",
        ),
        (
            Limits {
                candidates_max: 2,
                ..base
            },
            "{\"a\":1} {\"a\":1} {\"a\":1}",
            "candidates_max",
        ),
        (
            Limits {
                lookaheads_max: 10,
                ..base
            },
            &format!("{{a:\"{}", "\" x".repeat(50)),
            "lookaheads_max",
        ),
    ] {
        let bound = Binder::undeclared().with_limits(limits).bind(raw);
        assert_eq!(bound.issues[0].code, IssueCode::LimitExceeded, "{name}");
        assert!(
            bound.issues[0].message.contains(&format!("{name} is ")),
            "{name}: {}",
            bound.issues[0].message
        );
        assert_eq!(bound.status, BindStatus::Refused, "{name}");
    }
    let many = json!({ "type": "object", "additionalProperties": { "type": "integer" } });
    let raw: Vec<String> = (0..100).map(|i| format!("\"k{i}\":\"{i}\"")).collect();
    let binder = Binder::from_schema(&many, BindPolicy::default()).unwrap();
    let bound = binder.bind(&format!("{{{}}}", raw.join(",")));
    assert_eq!(bound.issues.len(), Limits::default().issues_max + 1);
    assert_eq!(
        bound.issues.last().unwrap().message,
        "36 more issues are not listed"
    );
}

/// Depth is bounded, so a small stack is enough for the deepest text there can be.
#[test]
fn the_deepest_text_needs_little_stack() {
    let deep = json!({
        "$defs": { "t": { "anyOf": [
            { "type": "object", "properties": { "a": { "$ref": "#/$defs/t" } }, "required": ["a"] },
            { "type": "array", "items": { "$ref": "#/$defs/t" } },
            { "type": "integer" },
        ] } },
        "$ref": "#/$defs/t",
    });
    let limits = Limits {
        depth_max: usize::MAX,
        ..Limits::default()
    };
    let levels = Limits::DEPTH_HARD_MAX / 2 - 1;
    let raw = format!("{}\"7\"{}", "{\"a\":[".repeat(levels), "]}".repeat(levels));
    let thread = std::thread::Builder::new()
        .stack_size(1 << 20)
        .spawn(move || {
            let binder = Binder::from_schema(&deep, BindPolicy::default()).unwrap();
            binder.with_limits(limits).bind(&raw).status
        });
    assert_eq!(thread.unwrap().join().unwrap(), BindStatus::Repaired);
}
