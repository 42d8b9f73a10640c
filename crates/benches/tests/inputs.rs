//! The inputs match their description: a measurement of something else would mislead.

use countersign::contract::BindStatus;
use countersign::contract::tool::BindPolicy;
use countersign_args::Binder;
use countersign_benches::damage::Damage;
use countersign_benches::{calls, damage, declarations, hostile, written};

fn binders() -> Vec<Binder> {
    let prepare = |schema| Binder::from_schema(schema, BindPolicy::default());
    let binders: Result<_, _> = calls::schemas().iter().map(prepare).collect();
    binders.expect("every schema can be prepared")
}

/// Both sides accept every well-formed call as it is.
#[test]
fn calls_are_exact_and_valid() {
    let binders = binders();
    let validators: Vec<_> = calls::schemas()
        .iter()
        .map(|schema| jsonschema::validator_for(schema).unwrap())
        .collect();
    for call in calls::all() {
        let bound = binders[call.tool].bind(&call.text);
        assert_eq!(
            bound.status,
            BindStatus::Exact,
            "{}\n{:?}",
            call.text,
            bound.issues
        );
        assert!(validators[call.tool].is_valid(&call.value), "{}", call.text);
    }
}

/// Every damaged call is bound to its original arguments; one that ends early is not run.
#[test]
fn damage_is_undone() {
    let binders = binders();
    let calls = calls::all();
    for (call, (kind, text)) in calls.iter().zip(damage::all(&calls)) {
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_err() || kind == Damage::Texts);
        let bound = binders[call.tool].bind(&text);
        let expected = match kind {
            Damage::Open => BindStatus::Incomplete,
            _ => BindStatus::Repaired,
        };
        assert_eq!(
            bound.status, expected,
            "{kind:?}: {text}\n{:?}",
            bound.issues
        );
        assert_eq!(
            bound.arguments.unwrap().to_value(),
            call.value,
            "{kind:?}: {text}"
        );
    }
}

/// Each is about as long as it says, and its schema is one that can be prepared.
#[test]
fn hostile_texts_are_long() {
    for hostile in hostile::all() {
        Binder::from_schema(&hostile.schema, BindPolicy::default()).unwrap();
        let length = hostile.text.len();
        let near = (hostile::BYTES - 8 * 1024..=hostile::BYTES).contains(&length);
        assert!(near, "{} has {length} bytes", hostile.name);
    }
}

/// Every text has its call behind the reasoning, or is one that has none.
#[test]
fn whole_texts_have_calls() {
    let texts = written::texts().unwrap();
    let calls = texts.iter().map(|text| {
        let written = countersign::dialect::written::read(text, None).unwrap();
        usize::from(!written.calls.is_empty())
    });
    let (calls, all) = (calls.sum::<usize>(), texts.len());
    assert!(all >= 30 && calls * 4 >= all * 3, "{calls} of {all}");
    for marks in written::marks() {
        let length = marks.text.len();
        let near = (written::MARKS_BYTES - 64..=written::MARKS_BYTES).contains(&length);
        assert!(near, "{} has {length} bytes", marks.name);
    }
}

/// A corpus gives one well-formed call for each declaration, from its text or from what is expected of it.
#[test]
fn corpora_give_a_call_for_each_declaration() {
    let schema = |name: &str| serde_json::json!({"type": "object", "properties": {name: {"type": "integer"}}});
    let lines = [
        serde_json::json!({"schema": schema("a"), "raw": "{\"a\": 1}", "expected": {"a": 1}}),
        // The same declaration once more.
        serde_json::json!({"schema": schema("a"), "raw": "{\"a\": 2}", "expected": {"a": 2}}),
        serde_json::json!({"schema": schema("b"), "raw": "{b: 1", "expected": {"b": 1}}),
        serde_json::json!({"schema": schema("c"), "raw": "?", "expect": {"status": "refuse"}}),
        serde_json::json!({"schema": null, "raw": "{}", "expected": {}}),
    ];
    let file = tempfile::NamedTempFile::new().unwrap();
    let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
    std::fs::write(file.path(), text.join("\n")).unwrap();
    let (schemas, calls) = declarations::read(&[file.path()]).unwrap();
    assert_eq!(schemas, [schema("a"), schema("b")]);
    let texts: Vec<&str> = calls.iter().map(|call| call.text.as_str()).collect();
    assert_eq!(texts, ["{\"a\": 1}", "{\"b\":1}"]);
}
