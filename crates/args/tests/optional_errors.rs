//! B9: optional parameters that cannot be read. A call is refused, unless the declaration says `tell`: then the
//! parameter counts as absent, and the tool gets its errors and its text.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use countersign_args::{Binder, Bound, StopReason};
use countersign_contract::parameter::{OnOptionalError, Sensitivity};
use countersign_contract::tool::{BindPolicy, UnknownKeys};
use countersign_contract::{
    BindStatus, IssueCode, Parameter, Severity, ValueKind, parameter::Leniency, schema,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const TELL: BindPolicy = BindPolicy {
    leniency: Leniency::Lenient,
    max_severity: Severity::Lossy,
    unknown_keys: UnknownKeys::Refuse,
    on_optional_error: OnOptionalError::Tell,
};

/// A required string, and optional members of every shape.
fn properties() -> Value {
    json!({
        "city": { "type": "string" },
        "days": { "type": "integer", "minimum": 1, "maximum": 9 },
        "unit": { "enum": ["celsius", "fahrenheit"] },
        "tags": { "type": "array", "items": { "type": "integer" } },
        "area": {
            "type": "object",
            "properties": { "x": { "type": "integer" }, "y": { "type": "integer" } },
            "required": ["x"],
        },
    })
}

fn trip() -> Value {
    json!({"type": "object", "properties": properties(), "required": ["city"]})
}

/// `status value [CODE path, …] {path: text (CODE path, …), …}`.
fn shown(bound: &Bound) -> String {
    let value = bound.arguments.as_ref().map_or("-", |it| it.as_json());
    let codes = |issues: &[countersign_contract::Issue]| {
        let one = |issue: &countersign_contract::Issue| format!("{} {}", issue.code, issue.path);
        issues.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    let told: Vec<String> = bound
        .unreadable
        .iter()
        .map(|it| format!("{}: {} ({})", it.path, it.text, codes(&it.errors)))
        .collect();
    let status = bound.status.as_str();
    format!(
        "{status} {value} [{}] {{{}}}",
        codes(&bound.issues),
        told.join(", ")
    )
}

#[track_caller]
fn check(schema: &Value, policy: BindPolicy, raw: &str, expected: &str) {
    let bound = Binder::from_schema(schema, policy).unwrap().bind(raw);
    assert_eq!(shown(&bound), expected, "{raw}");
}

#[test]
fn an_error_refuses_unless_the_tool_asks_to_be_told() {
    let raw = r#"{"city": "Paris", "days": "soon"}"#;
    let refused = "refused - [TYPE_MISMATCH /days] {}";
    check(&trip(), BindPolicy::default(), raw, refused);
    let told = r#"repaired {"city":"Paris"} [OPTIONAL_UNREADABLE /days] {/days: "soon" (TYPE_MISMATCH /days)}"#;
    check(&trip(), TELL, raw, told);
}

/// B9: the original text is kept byte for byte, whatever the value is.
#[test]
fn every_kind_of_error_is_told_with_its_text() {
    for (member, text, codes) in [
        ("days", "\"soon\"", "TYPE_MISMATCH /days"),
        ("days", "3.7", "LOSSY /days"),
        ("days", "12", "CONSTRAINT /days"),
        ("days", "[1, 2]", "TYPE_MISMATCH /days"),
        ("days", "{ \"n\" : 1e2 }", "TYPE_MISMATCH /days"),
        ("unit", "\"kelvin\"", "ENUM_NO_MATCH /unit"),
        ("tags", "[1, \"two\", 3]", "TYPE_MISMATCH /tags/1"),
        (
            "area",
            "{\"x\": 1, \"y\": \"north\"}",
            "TYPE_MISMATCH /area/y",
        ),
        ("area", "{\"y\": 2}", "MISSING_REQUIRED /area/x"),
    ] {
        // An optional member of an inner object is reported before that object is.
        let expected = if codes.ends_with("/area/y") {
            format!(
                r#"repaired {{"city":"Rome","area":{{"x":1}}}} [OPTIONAL_UNREADABLE /area/y] {{/area/y: "north" ({codes})}}"#
            )
        } else {
            format!(
                r#"repaired {{"city":"Rome"}} [OPTIONAL_UNREADABLE /{member}] {{/{member}: {text} ({codes})}}"#
            )
        };
        let raw = format!(r#"{{"city": "Rome", "{member}": {text}}}"#);
        check(&trip(), TELL, &raw, &expected);
        // Sloppy text around it makes no difference.
        let raw = format!("Sure! ```json\n{{\"city\": \"Rome\", \"{member}\": {text},}}\n```");
        let bound = Binder::from_schema(&trip(), TELL).unwrap().bind(&raw);
        assert_eq!(bound.status, BindStatus::Repaired, "{raw}");
        assert_eq!(bound.unreadable.len(), 1, "{raw}");
        let told = &bound.unreadable[0];
        assert!(text.contains(&told.text), "{raw}: {told:?}");
    }
}

#[test]
fn a_text_within_a_text_is_told_as_the_json_it_holds() {
    let raw = r#""{\"city\": \"Rome\", \"days\": \"soon\"}""#;
    let told = r#"repaired {"city":"Rome"} [ROOT_DECODED , OPTIONAL_UNREADABLE /days] {/days: "soon" (TYPE_MISMATCH /days)}"#;
    check(&trip(), TELL, raw, told);
}

/// B9: never for a required parameter; and errors that are not about one parameter are still refused.
#[test]
fn everything_else_is_refused_as_before() {
    for (raw, expected) in [
        (
            r#"{"city": [1, 2], "days": 1}"#,
            "refused - [TYPE_MISMATCH /city] {}",
        ),
        (
            r#"{"days": "soon"}"#,
            "refused - [MISSING_REQUIRED /city, OPTIONAL_UNREADABLE /days] {}",
        ),
        (
            r#"{"city": "Rome", "dayz": 1, "x": 2}"#,
            "refused - [UNKNOWN_KEY /dayz, UNKNOWN_KEY /x] {}",
        ),
        (
            r#"{"city": "Rome", "days": 1, "days": 2}"#,
            "refused - [DUPLICATE_KEY /days] {}",
        ),
    ] {
        check(&trip(), TELL, raw, expected);
    }
    let bound = Binder::from_schema(&trip(), TELL)
        .unwrap()
        .bind(r#"{"city": "Rome", "days": "so"#);
    assert_eq!(bound.status, BindStatus::Incomplete);
    // The rules about the whole object are still checked.
    for rule in [
        json!({"minProperties": 2}),
        json!({"dependentRequired": {"city": ["days"]}}),
        json!({"allOf": [{"required": ["days"]}]}),
    ] {
        let mut schema = trip();
        schema
            .as_object_mut()
            .unwrap()
            .extend(rule.as_object().unwrap().clone());
        let bound = Binder::from_schema(&schema, TELL).unwrap();
        let bound = bound.bind(r#"{"city": "Rome", "days": "soon"}"#);
        assert_eq!(bound.status, BindStatus::Refused, "{rule}");
        assert_eq!(bound.unreadable, [], "{rule}");
    }
}

/// A parameter can override its tool's rule; a required one cannot.
#[test]
fn a_parameter_may_differ_from_its_tool() {
    let raw = r#"{"city": "Rome", "days": "soon", "unit": "kelvin"}"#;
    let mut schema = trip();
    schema["properties"]["days"]["x-on-optional-error"] = "tell".into();
    let refused = "refused - [ENUM_NO_MATCH /unit, OPTIONAL_UNREADABLE /days] {}";
    check(&schema, BindPolicy::default(), raw, refused);
    schema["properties"]["unit"]["x-on-optional-error"] = "refuse".into();
    check(&schema, TELL, raw, refused);
    schema["properties"]["unit"]["x-on-optional-error"] = "tell".into();
    let bound = Binder::from_schema(&schema, BindPolicy::default())
        .unwrap()
        .bind(raw);
    assert_eq!(bound.unreadable.len(), 2);

    schema["properties"]["city"]["x-on-optional-error"] = "tell".into();
    let error = Binder::from_schema(&schema, BindPolicy::default()).unwrap_err();
    assert_eq!(error.path, "/properties/city/x-on-optional-error");
    schema["properties"]["city"]["x-on-optional-error"] = "refuse".into();
    assert!(Binder::from_schema(&schema, TELL).is_ok());
    for wrong in [json!("ignore"), json!(true), Value::Null] {
        schema["properties"]["days"]["x-on-optional-error"] = wrong;
        assert!(Binder::from_schema(&schema, TELL).is_err());
    }
}

/// The declaration is the permission: the limit on repairs does not apply.
#[test]
fn it_does_not_count_against_the_furthest_change() {
    let raw = r#"{"city": "Rome", "days": "soon"}"#;
    for policy in [
        BindPolicy {
            max_severity: Severity::Note,
            ..TELL
        },
        BindPolicy {
            leniency: Leniency::Strict,
            ..TELL
        },
    ] {
        let bound = Binder::from_schema(&trip(), policy).unwrap().bind(raw);
        assert_eq!(bound.arguments.unwrap().as_json(), r#"{"city":"Rome"}"#);
        assert_eq!(bound.unreadable.len(), 1);
    }
}

/// A21: the warning about a sensitive parameter says no more than any other; only the tool gets the text.
#[test]
fn a_sensitive_text_is_for_the_tool_alone() {
    let born = Parameter::new("born", ValueKind::Timestamp, "")
        .optional()
        .sensitivity(Sensitivity::Personal)
        .on_optional_error(OnOptionalError::Tell);
    let schema = schema::of_parameters(&[born]);
    let binder = Binder::from_schema(&schema, BindPolicy::default()).unwrap();
    let bound = binder.bind(r#"{"born": "on a rainy day in May"}"#);
    assert_eq!(bound.unreadable[0].text, r#""on a rainy day in May""#);
    let said = serde_json::to_string(&(&bound.issues, &bound.unreadable[0].errors)).unwrap();
    assert!(!said.contains("rainy"), "{said}");
}

#[test]
fn the_warning_says_why_and_what_to_send() {
    let bound = Binder::from_schema(&trip(), TELL).unwrap();
    let bound = bound.bind(r#"{"city": "Rome", "days": "soon"}"#);
    let issue = &bound.issues[0];
    assert_eq!(issue.code, IssueCode::OptionalUnreadable);
    assert_eq!(issue.before.as_deref(), Some("\"soon\""));
    assert!(
        issue
            .message
            .starts_with("an optional parameter cannot be read and counts as absent: ")
    );
    assert!(
        issue.expected.is_some() && issue.suggestion.is_some(),
        "{issue:?}"
    );
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z0-9 ]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[xyz]", inner, 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Removes the member at a path of the bound value. The binder unwraps a list of one object if an object is
/// declared, so that the sent value may have lists on the way that the path does not name.
fn take(mut sent: &mut Value, path: &str) -> Option<Value> {
    let mut names = path.split('/').skip(1).peekable();
    while let Some(name) = names.next() {
        while let Value::Array(only) = sent {
            sent = only.first_mut()?;
        }
        let members = sent.as_object_mut()?;
        if names.peek().is_none() {
            return members.remove(name);
        }
        sent = members.get_mut(name)?;
    }
    None
}

#[test]
fn a_member_of_an_unwrapped_object_is_told() {
    let raw = r#"{"city": "Rome", "area": [{"x": 0, "y": false}]}"#;
    let told = r#"repaired {"city":"Rome","area":{"x":0}} [SINGLETON_UNWRAPPED /area, OPTIONAL_UNREADABLE /area/y] {/area/y: false (TYPE_MISMATCH /area/y)}"#;
    check(&trip(), TELL, raw, told);
}

proptest! {
    /// B9: whatever an optional parameter contains, the call runs, and is bound to the same arguments as
    /// without the unreadable part. What was shown while it arrived is never taken back.
    #[test]
    fn what_is_told_is_as_if_it_had_not_been_sent(
        name in prop::sample::select(vec!["days", "unit", "tags", "area"]),
        value in any_value(),
        cut in 0..200_usize,
    ) {
        let binder = Binder::from_schema(&trip(), TELL).unwrap();
        let raw = json!({"city": "Rome", name: value}).to_string();
        let bound = binder.bind(&raw);
        prop_assert!(bound.is_executable(), "{}", shown(&bound));
        let arguments = bound.arguments.unwrap().to_value();
        let mut sent: Value = serde_json::from_str(&raw).unwrap();
        for told in &bound.unreadable {
            prop_assert!(!told.errors.is_empty());
            prop_assert_eq!(arguments.pointer(&told.path), None);
            let original = take(&mut sent, &told.path);
            prop_assert_eq!(serde_json::from_str::<Value>(&told.text).ok(), original);
        }
        let without = binder.bind(&sent.to_string());
        prop_assert_eq!(without.unreadable, []);
        prop_assert_eq!(without.arguments.unwrap().to_value(), arguments.clone());

        let mut stream = binder.stream();
        stream.push(raw.get(..cut.min(raw.len())).unwrap_or(&raw));
        if let Some(Value::Object(certain)) = stream.snapshot() {
            for name in certain.keys() {
                prop_assert!(arguments.get(name).is_some(), "{} in {}", name, raw);
            }
        }
        stream.push(raw.get(cut.min(raw.len())..).unwrap_or_default());
        prop_assert_eq!(stream.finish(StopReason::Complete).arguments.map(|it| it.to_value()), Some(arguments));
    }
}
