//! What a tool does decides how far the binder goes (B6, B10): a read takes a change that loses something, with a warning;
//! what changes something, here or elsewhere, takes none that its parameter does not ask for.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use countersign_args::{Binder, Reading};
use countersign_contract::parameter::Parameter;
use countersign_contract::tool::Behaviour;
use countersign_contract::{Effect, Input, IssueCode, Severity, ToolName, ToolSpec, ValueKind};
use serde_json::{Value, json};

fn binder(effect: Effect, parameter: Parameter) -> Binder {
    let mut spec = ToolSpec::new(ToolName::new("test").unwrap(), "");
    spec = spec.input(Input::parameters([parameter]));
    spec.behaviour = Behaviour {
        effect,
        ..Behaviour::default()
    };
    Binder::new(&spec).unwrap()
}

fn v(kind: ValueKind) -> Parameter {
    Parameter::new("v", kind, "").optional()
}

/// Checks what a read gets, with the code of the warning, and that nothing else gets it.
#[track_caller]
fn check_read_only(parameter: &Parameter, value: &str, expected: &Value, code: IssueCode) {
    let raw = format!("{{\"v\": {value}}}");
    let bound = binder(Effect::Read, parameter.clone()).bind(&raw);
    assert!(bound.is_executable(), "{raw}\n{:#?}", bound.issues);
    let expected = match expected {
        Value::Null => json!({}),
        value => json!({ "v": value }),
    };
    assert_eq!(bound.arguments.unwrap().to_value(), expected, "{raw}");
    assert!(
        bound.issues.iter().any(|issue| issue.code == code),
        "{raw}\n{:#?}",
        bound.issues
    );
    for effect in [Effect::Write, Effect::External] {
        let bound = binder(effect, parameter.clone()).bind(&raw);
        assert!(
            !bound.is_executable(),
            "{effect:?} {raw}\n{:?}",
            bound.arguments
        );
        assert_eq!(bound.issues[0].severity, Severity::Error);
    }
}

#[test]
fn only_a_read_loses_something() {
    let list = &v(ValueKind::Integer).list();
    check_read_only(list, "\"1, 2\"", &json!([1, 2]), IssueCode::ListSplit);
    check_read_only(
        &v(ValueKind::Integer),
        "3.7",
        &json!(3),
        IssueCode::IntegerTruncated,
    );
    check_read_only(
        &v(ValueKind::Integer),
        "\"3.7\"",
        &json!(3),
        IssueCode::IntegerTruncated,
    );
    check_read_only(
        &v(ValueKind::Number),
        "\"1,234\"",
        &json!(1234),
        IssueCode::GroupingAssumed,
    );
    check_read_only(
        &v(ValueKind::Integer),
        "\"1,234\"",
        &json!(1234),
        IssueCode::GroupingAssumed,
    );
    check_read_only(
        &v(ValueKind::Integer),
        "\"\"",
        &Value::Null,
        IssueCode::EmptyDropped,
    );
    let day = &v(ValueKind::Timestamp);
    let midnight = json!("2025-10-13T00:00:00Z");
    check_read_only(day, "\"2025-10-13\"", &midnight, IssueCode::DateNormalised);
}

/// What loses nothing is the same for every tool.
#[test]
fn lossless_changes_are_for_all() {
    for effect in [Effect::Read, Effect::Write, Effect::External] {
        for (kind, value, expected) in [
            (ValueKind::Integer, "\"42\"", json!(42)),
            (ValueKind::Integer, "3.0", json!(3)),
            (ValueKind::Boolean, "\"yes\"", json!(true)),
            (ValueKind::Number, "\"1,234,567.5\"", json!(1_234_567.5)),
            (ValueKind::Integer, "\"1,234,567\"", json!(1_234_567)),
            (
                ValueKind::Timestamp,
                "\"20251013T120000Z\"",
                json!("2025-10-13T12:00:00Z"),
            ),
            (
                ValueKind::Timestamp,
                "\"20251013T120000+0200\"",
                json!("2025-10-13T12:00:00+02:00"),
            ),
            (ValueKind::String, "\"\"", json!("")),
        ] {
            let bound = binder(effect, v(kind)).bind(&format!("{{\"v\": {value}}}"));
            assert!(
                bound.is_executable(),
                "{effect:?} {value} {:#?}",
                bound.issues
            );
            assert_eq!(
                bound.arguments.unwrap().to_value(),
                json!({ "v": expected }),
                "{value}"
            );
        }
    }
}

/// A parameter may ask for it, whatever the tool does.
#[test]
fn a_parameter_may_allow_to_cut() {
    let mut cut = v(ValueKind::Integer);
    cut.truncate = true;
    for effect in [Effect::Read, Effect::Write, Effect::External] {
        let bound = binder(effect, cut.clone()).bind(r#"{"v": 3.7}"#);
        assert_eq!(
            bound.arguments.unwrap().to_value(),
            json!({ "v": 3 }),
            "{effect:?}"
        );
    }
}

/// In a known zone a date is midnight there, for every tool.
#[test]
fn a_date_in_a_known_zone_is_its_midnight() {
    let reading = Reading::new(None, Some("Europe/Berlin"));
    for effect in [Effect::Read, Effect::Write] {
        let bound =
            binder(effect, v(ValueKind::Timestamp)).bind_with(r#"{"v": "2025-10-13"}"#, &reading);
        let expected = json!({ "v": "2025-10-13T00:00:00+02:00" });
        assert_eq!(bound.arguments.unwrap().to_value(), expected);
    }
}

/// One rule for integers, written as a number or as a text: 64 bits, unless a bound says more.
#[test]
fn integers_have_64_bits() {
    let large = "18446744073709551616";
    for value in [
        large.to_owned(),
        format!("\"{large}\""),
        "9223372036854775808".to_owned(),
    ] {
        let bound =
            binder(Effect::Read, v(ValueKind::Integer)).bind(&format!("{{\"v\": {value}}}"));
        assert!(!bound.is_executable(), "{value}");
        assert_eq!(
            bound.issues[0].expected.as_deref(),
            Some("a 64-bit integer"),
            "{value}"
        );
    }
    let bound = binder(Effect::Read, v(ValueKind::Integer)).bind(r#"{"v": -9223372036854775808}"#);
    assert!(bound.is_executable());
    let bound = binder(Effect::Read, v(ValueKind::Number)).bind(r#"{"v": 1e999}"#);
    assert_eq!(
        bound.issues[0].expected.as_deref(),
        Some("a number that fits 64 bits")
    );
}

/// B6: a relative URI is kept with a warning, a number in its place too.
#[test]
fn what_became_a_uri_has_the_remark_of_one() {
    let bound = binder(Effect::Read, v(ValueKind::Uri)).bind(r#"{"v": 5}"#);
    let codes: Vec<_> = bound.issues.iter().map(|issue| issue.code).collect();
    assert!(codes.contains(&IssueCode::NumberToText), "{codes:?}");
    assert!(codes.contains(&IssueCode::FormatKept), "{codes:?}");
}

/// B5: allowed values of an integer are integers.
#[test]
fn allowed_integers_are_integers() {
    let mut level = v(ValueKind::Integer);
    level.allowed = Parameter::one_of("", ["1", "2"], "").allowed;
    let binder = binder(Effect::Write, level);
    assert_eq!(
        binder.bind(r#"{"v": 2}"#).arguments.unwrap().to_value(),
        json!({ "v": 2 })
    );
    let text = binder.bind(r#"{"v": "1"}"#);
    assert_eq!(text.arguments.unwrap().to_value(), json!({ "v": 1 }));
    assert_eq!(
        binder.bind(r#"{"v": 3}"#).issues[0].code,
        IssueCode::EnumNoMatch
    );
}
