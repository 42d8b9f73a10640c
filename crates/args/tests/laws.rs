//! Laws for every text: proptest searches for counterexamples.

#![expect(clippy::unwrap_used, reason = "a failing test may panic")]

use countersign_args::{Binder, StopReason};
use countersign_contract::tool::BindPolicy;
use countersign_contract::{BindStatus, IssueCode, Severity};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// A schema with something of everything, all of it optional.
fn binder() -> Binder {
    let schema = json!({
        "type": "object",
        "properties": {
            "text": { "type": "string" },
            "count": { "type": "integer", "minimum": -5 },
            "ratio": { "type": "number" },
            "flag": { "type": "boolean" },
            "tags": { "type": "array", "items": { "type": "string" } },
            "unit": { "enum": ["celsius", "fahrenheit", 3] },
            "day": { "type": "string", "format": "date" },
            "either": { "anyOf": [{ "type": "integer" }, { "type": "array", "items": { "type": "integer" } }] },
            "inner": { "type": "object", "properties": { "a": { "type": "integer" } }, "required": ["a"] },
            "free": { "type": "object" },
        },
    });
    Binder::from_schema(&schema, BindPolicy::default()).unwrap()
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{0,6}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Arguments that the schema accepts as they are.
fn accepted() -> impl Strategy<Value = Value> {
    let text = "[ -~é中]{0,16}";
    (
        prop::option::of(text),
        prop::option::of(-5..1000_i64),
        prop::option::of(-1e6..1e6),
        prop::option::of(any::<bool>()),
        prop::option::of(prop::collection::vec(text, 0..4)),
        prop::option::of(-9..9_i64),
    )
        .prop_map(|(text, count, ratio, flag, tags, a)| {
            let mut map = Map::new();
            let mut put = |key: &str, value: Option<Value>| {
                if let Some(value) = value {
                    map.insert(key.to_owned(), value);
                }
            };
            put("text", text.map(Value::from));
            put("count", count.map(Value::from));
            put("ratio", ratio.map(Value::from));
            put("flag", flag.map(Value::from));
            put("tags", tags.map(Value::from));
            put("inner", a.map(|a| json!({ "a": a })));
            Value::Object(map)
        })
}

/// True if `part` can grow into `whole` by adding only at its ends.
fn grows_into(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => part
            .iter()
            .all(|(key, value)| whole.get(key).is_some_and(|whole| grows_into(value, whole))),
        (Value::Array(part), Value::Array(whole)) => {
            part.len() <= whole.len() && part.iter().zip(whole).all(|(p, w)| grows_into(p, w))
        }
        (Value::String(part), Value::String(whole)) => whole.starts_with(part.as_str()),
        (part, whole) => part == whole,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// B6: every JSON object is exact if nothing is declared about it, and stays unchanged.
    #[test]
    fn json_is_exact_without_rules(value in any_json()) {
        let raw = json!({ "v": value }).to_string();
        let schema = json!({ "type": "object" });
        let bound = Binder::from_schema(&schema, BindPolicy::default()).unwrap().bind(&raw);
        prop_assert_eq!(bound.status, BindStatus::Exact);
        let arguments = bound.arguments.unwrap();
        prop_assert_eq!(arguments.as_json(), raw);
    }

    /// Every answer is well formed: a refusal has a reason and no arguments, arguments that may run have no
    /// error, exact ones have no issue, and spans lie inside the text.
    #[test]
    fn every_text_gets_a_well_formed_answer(raw in r#"[{}\[\]:,"'a-f0-9 \\./#*()=`<>\n-]{0,60}"#) {
        let bound = binder().bind(&raw);
        let errors = bound.issues.iter().filter(|issue| issue.severity == Severity::Error).count();
        match bound.status {
            BindStatus::Exact => prop_assert!(bound.issues.is_empty()),
            BindStatus::Repaired => prop_assert!(errors == 0 && !bound.issues.is_empty()),
            BindStatus::Incomplete => prop_assert!(errors > 0),
            BindStatus::Refused => prop_assert!(errors > 0 && bound.arguments.is_none()),
        }
        for issue in &bound.issues {
            let [start, end] = issue.span.unwrap_or([0, 0]);
            prop_assert!(start <= end && end <= raw.len());
            prop_assert!(raw.is_char_boundary(start) && raw.is_char_boundary(end));
        }
    }

    /// Binding is idempotent: arguments that may run are exact when they are bound again.
    #[test]
    fn binding_is_idempotent(raw in r#"\{(("(text|count|flag)"|text|ratio|tags): ?("[a-z ,]{0,6}"|'[a-z]{0,5}'|[0-9]{1,2}|[0-9]\.[0-9]|true|None|\[1,"2"\]), ?){0,3}\}"#) {
        let binder = binder();
        let bound = binder.bind(&raw);
        prop_assume!(bound.is_executable());
        let arguments = bound.arguments.unwrap();
        let again = binder.bind(arguments.as_json());
        prop_assert_eq!(again.status, BindStatus::Exact);
        prop_assert_eq!(again.arguments.unwrap(), arguments);
    }

    /// A call that is cut off anywhere never runs, and is reported as cut, not as one that lacks parameters.
    #[test]
    fn a_cut_text_never_runs(value in accepted(), at in any::<prop::sample::Index>()) {
        let raw = value.to_string();
        let mut cut = at.index(raw.len());
        while !raw.is_char_boundary(cut) {
            cut -= 1;
        }
        let bound = binder().bind(&raw[..cut]);
        prop_assert!(!bound.is_executable(), "{} {:?}", &raw[..cut], bound);
        // Behind a whole name the value may have been left out.
        if cut > 0 && !raw[cut..].starts_with(':') {
            let is_missed = bound.issues.iter().any(|issue| issue.code == IssueCode::MissingRequired);
            prop_assert!(bound.status == BindStatus::Incomplete && !is_missed, "{} {:?}", &raw[..cut], bound);
        }
    }

    /// While a call arrives, the shown part only grows into the final one, wherever the pieces are cut.
    #[test]
    fn a_stream_shows_nothing_that_changes(
        value in accepted(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let raw = serde_json::to_string_pretty(&value).unwrap();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(raw.len() + 1)).collect();
        cuts.push(raw.len());
        cuts.sort_unstable();
        let mut stream = binder().stream();
        let mut from = 0;
        for cut in cuts {
            if !raw.is_char_boundary(cut) {
                continue;
            }
            stream.push(&raw[from..cut]);
            from = cut;
            if let Some(shown) = stream.snapshot() {
                prop_assert!(grows_into(&shown, &value), "{} is not in {}", shown, value);
            }
        }
        prop_assert_eq!(stream.snapshot(), Some(value.clone()));
        prop_assert_eq!(stream.finish(StopReason::Complete).arguments.unwrap().to_value(), value);
    }
}
