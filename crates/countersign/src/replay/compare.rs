//! Comparison of two answers, member by member.

use std::fmt;

use countersign_contract::canonical;
use serde_json::Value;

/// Maximum number of differences that are reported for one answer.
pub const DIFFERENCES_MAX: usize = 100;

/// A place where two answers differ.
#[derive(Clone, PartialEq)]
pub struct Difference {
    /// Its JSON pointer.
    pub path: String,
    /// The recorded value; `None` if there was none.
    pub recorded: Option<Value>,
    /// The computed value; `None` if there is none.
    pub computed: Option<Value>,
}

/// Names the place only: the values are personal data.
impl fmt::Debug for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Difference({:?})", self.path)
    }
}

/// The places at which a computed answer differs from the recorded one, without volatile members.
pub(super) fn differences(
    recorded: &Value,
    computed: Value,
    volatile: &[String],
) -> Vec<Difference> {
    let (mut recorded, mut computed) = (recorded.clone(), normal(computed));
    for pointer in volatile {
        strike(&mut recorded, pointer);
        strike(&mut computed, pointer);
    }
    let mut found = Vec::new();
    collect(Some(&recorded), Some(&computed), String::new(), &mut found);
    found
}

/// A value with numbers spelled as in records: 1.0 is 1. A value without a canonical form stays as it is.
fn normal(value: Value) -> Value {
    canonical::to_string(&value)
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or(value)
}

/// Removes a member; an item becomes null, so that those behind it keep their places.
fn strike(value: &mut Value, pointer: &str) {
    let Some((parent, name)) = pointer.rsplit_once('/') else {
        return;
    };
    match value.pointer_mut(parent) {
        Some(Value::Object(members)) => {
            members.remove(&name.replace("~1", "/").replace("~0", "~"));
        }
        Some(Value::Array(items)) => {
            let item = name.parse().ok().and_then(|at: usize| items.get_mut(at));
            if let Some(item) = item {
                *item = Value::Null;
            }
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => {}
    }
}

fn collect(
    recorded: Option<&Value>,
    computed: Option<&Value>,
    path: String,
    found: &mut Vec<Difference>,
) {
    if recorded == computed || found.len() >= DIFFERENCES_MAX {
        return;
    }
    match (recorded, computed) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let added = new.keys().filter(|name| !old.contains_key(*name));
            for name in old.keys().chain(added) {
                let part = name.replace('~', "~0").replace('/', "~1");
                let path = format!("{path}/{part}");
                collect(old.get(name), new.get(name), path, found);
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) => {
            for at in 0..old.len().max(new.len()) {
                collect(old.get(at), new.get(at), format!("{path}/{at}"), found);
            }
        }
        (recorded, computed) => found.push(Difference {
            path,
            recorded: recorded.cloned(),
            computed: computed.cloned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(recorded: &Value, computed: &Value, volatile: &[&str], expected: &[&str]) {
        let volatile: Vec<_> = volatile.iter().map(|&pointer| pointer.to_owned()).collect();
        let found = differences(recorded, computed.clone(), &volatile);
        let paths: Vec<_> = found
            .iter()
            .map(|difference| difference.path.as_str())
            .collect();
        assert_eq!(paths, expected);
    }

    #[test]
    fn every_place_is_named_but_what_is_volatile() {
        let old = json!({"id": "q_1", "items": [{"n": 1}, {"n": 2}], "a/b": 1, "same": null});
        let new = json!({"id": "q_2", "items": [{"n": 1}, {"n": 3}, {}], "a/b": 2, "same": null});
        check(&old, &old, &[], &[]);
        check(&old, &new, &[], &["/a~1b", "/id", "/items/1/n", "/items/2"]);
        check(&old, &new, &["/id", "/a~1b", "/items/1/n"], &["/items/2"]);
        check(&json!([1, 2]), &json!([9, 2]), &["/0"], &[]);
        check(&json!({"id": 1}), &json!({}), &["/id"], &[]);
        check(&json!(1), &json!(1.0), &[], &[]);
        check(&json!(null), &json!({}), &[], &[""]);
        check(&json!({"a": null}), &json!({}), &[], &["/a"]);
    }

    #[test]
    fn the_debug_form_tells_no_value() {
        let found = differences(&json!({"name": "Alice"}), json!({"name": "Bob"}), &[]);
        assert_eq!(format!("{found:?}"), r#"[Difference("/name")]"#);
    }
}
