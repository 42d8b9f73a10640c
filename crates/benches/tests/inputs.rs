//! The inputs match their description: a measurement of something else would mislead.

use countersign::contract::BindStatus;
use countersign::contract::tool::BindPolicy;
use countersign_args::Binder;
use countersign_benches::damage::Damage;
use countersign_benches::{calls, damage, hostile};

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
