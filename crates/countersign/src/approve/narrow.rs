//! Narrowing: an approver may make a call smaller before it runs (lower a number, leave out items of a list or members
//! of an object). Only if the tool declares it, and never the other way: the stored answer names what to leave out of
//! the arguments as they were asked, so that nothing can be added.

use std::collections::BTreeMap;

use countersign_contract::approval::ApprovalNarrowed;
use countersign_contract::tool::{Narrower, Narrowing};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::terms::Decimal;
use crate::defaults::Members;

/// One parameter that was made smaller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cut {
    pointer: String,
    to: CutTo,
}

/// The part of a parameter that is left, in terms of what was asked. Closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CutTo {
    /// At most this number, as JSON.
    Lower(String),
    /// The items at these places.
    Items(Vec<usize>),
    /// The members of these names.
    Members(Vec<String>),
}

impl Cut {
    /// JSON pointer to the parameter.
    pub(super) fn pointer(&self) -> &str {
        &self.pointer
    }
}

impl CutTo {
    /// True if nothing is made smaller by it.
    fn leaves_all(&self, asked: &Value) -> bool {
        match (self, asked) {
            (Self::Lower(most), asked) => is_at_most(&asked.to_string(), most),
            (Self::Items(places), Value::Array(asked)) => places.len() == asked.len(),
            (Self::Members(names), Value::Object(asked)) => names.len() == asked.len(),
            (Self::Items(_) | Self::Members(_), _) => false,
        }
    }
}

/// The reason why arguments are not narrower. The pointer is what was sent, bounded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotNarrower {
    pub(crate) pointer: String,
    /// True if the tool declares the parameter, and the value is not a narrower one.
    pub(crate) is_declared: bool,
}

/// The cuts that make the asked arguments these narrower ones. `before` are cuts of another approver; they can only
/// grow.
pub(crate) fn cuts(
    declared: &[Narrowing],
    asked: &Value,
    before: &[Cut],
    wanted: &BTreeMap<String, Value>,
) -> Result<Vec<Cut>, NotNarrower> {
    let current = narrowed_value(asked, before).unwrap_or(Value::Null);
    let mut cuts = before.to_vec();
    for (pointer, wanted) in wanted {
        let not = |is_declared| NotNarrower {
            pointer: pointer.chars().take(POINTER_CHARS_SHOWN).collect(),
            is_declared,
        };
        let rule = declared.iter().find(|rule| rule.pointer == *pointer);
        let rule = rule.ok_or_else(|| not(false))?;
        let places = current.pointer(pointer).zip(asked.pointer(pointer));
        let (now, first) = places.ok_or_else(|| not(true))?;
        // Narrower than what there is now, and written in terms of what was asked.
        cut_to(rule.to, now, wanted).ok_or_else(|| not(true))?;
        let to = cut_to(rule.to, first, wanted).ok_or_else(|| not(true))?;
        cuts.retain(|cut| cut.pointer != *pointer);
        if !to.leaves_all(first) {
            let pointer = pointer.clone();
            cuts.push(Cut { pointer, to });
        }
    }
    Ok(cuts)
}

/// Maximum number of characters of an undeclared pointer that are shown.
const POINTER_CHARS_SHOWN: usize = 64;

fn cut_to(rule: Narrower, asked: &Value, wanted: &Value) -> Option<CutTo> {
    match (rule, asked, wanted) {
        (Narrower::Lower, Value::Number(_), Value::Number(_))
        | (Narrower::Lower, Value::String(_), Value::String(_)) => {
            let (asked, wanted) = (asked.to_string(), wanted.to_string());
            is_at_most(&wanted, &asked).then_some(CutTo::Lower(wanted))
        }
        (Narrower::Fewer, Value::Array(asked), Value::Array(wanted)) => {
            let mut asked = asked.iter().enumerate();
            let place = |item: &Value| asked.find(|(_, asked)| *asked == item).map(|(at, _)| at);
            let places: Option<Vec<_>> = wanted.iter().map(place).collect();
            places.map(CutTo::Items)
        }
        (Narrower::Subset, Value::Array(asked), Value::Array(wanted)) => {
            let mut places: Vec<usize> = Vec::new();
            for item in wanted {
                let free = |(at, asked): &(usize, &Value)| *asked == item && !places.contains(at);
                let (at, _) = asked.iter().enumerate().find(free)?;
                places.push(at);
            }
            places.sort_unstable();
            Some(CutTo::Items(places))
        }
        (Narrower::Subset, Value::Object(asked), Value::Object(wanted)) => {
            let is_asked = |(name, value): (&String, &Value)| asked.get(name) == Some(value);
            let names = wanted.keys().cloned().collect();
            wanted.iter().all(is_asked).then_some(CutTo::Members(names))
        }
        (Narrower::Lower | Narrower::Fewer | Narrower::Subset, _, _) => None,
    }
}

/// True if an amount, a JSON number or a decimal as JSON text, is not more than another; false if one is not a plain
/// decimal.
fn is_at_most(amount: &str, most: &str) -> bool {
    let plain = |json: &str| json.trim_matches('"').to_owned();
    let (amount, most) = (plain(amount), plain(most));
    let both = Decimal::read(&amount).zip(Decimal::read(&most));
    both.is_some_and(|(amount, most)| amount.compare(&most).is_le())
}

/// The arguments after these cuts, each number in its own spelling; `None` if they are not the arguments that were cut.
pub(crate) fn narrowed(arguments: &str, cuts: &[Cut]) -> Option<String> {
    cuts.iter().try_fold(arguments.to_owned(), |json, cut| {
        let steps: Vec<String> = cut.pointer.split('/').skip(1).map(unescaped).collect();
        replaced(&json, &steps, &cut.to)
    })
}

/// The same for a value.
pub(super) fn narrowed_value(arguments: &Value, cuts: &[Cut]) -> Option<Value> {
    if cuts.is_empty() {
        return Some(arguments.clone());
    }
    serde_json::from_str(&narrowed(&arguments.to_string(), cuts)?).ok()
}

/// The values before and after, for people.
pub(crate) fn changes(asked: &Value, cuts: &[Cut]) -> Vec<ApprovalNarrowed> {
    let after = narrowed_value(asked, cuts).unwrap_or(Value::Null);
    let at = |value: &Value, pointer: &str| value.pointer(pointer).cloned().unwrap_or_default();
    let change = |cut: &Cut| ApprovalNarrowed {
        pointer: cut.pointer.clone(),
        before: at(asked, &cut.pointer),
        after: at(&after, &cut.pointer),
    };
    cuts.iter().map(change).collect()
}

fn unescaped(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

fn replaced(json: &str, steps: &[String], to: &CutTo) -> Option<String> {
    let Some((step, rest)) = steps.split_first() else {
        return cut(json, to);
    };
    let members: Members<'_> = serde_json::from_str(json).ok()?;
    let mut is_there = false;
    let mut written = Vec::with_capacity(members.0.len());
    for (name, value) in &members.0 {
        let value = if **name == **step {
            is_there = true;
            replaced(value.get(), rest, to)?
        } else {
            value.get().to_owned()
        };
        written.push(member(name, &value));
    }
    is_there.then(|| format!("{{{}}}", written.join(",")))
}

fn cut(json: &str, to: &CutTo) -> Option<String> {
    match to {
        CutTo::Lower(most) => {
            let is_text = |json: &str| json.trim_start().starts_with('"');
            let is_same_kind = is_text(json) == is_text(most);
            (is_same_kind && is_at_most(most, json)).then(|| most.clone())
        }
        CutTo::Items(places) => {
            let items: Vec<&RawValue> = serde_json::from_str(json).ok()?;
            let kept: Option<Vec<&str>> = places
                .iter()
                .map(|at| items.get(*at).map(|item| item.get()))
                .collect();
            Some(format!("[{}]", kept?.join(",")))
        }
        CutTo::Members(names) => {
            let members: Members<'_> = serde_json::from_str(json).ok()?;
            let kept = members
                .0
                .iter()
                .filter(|(name, _)| names.iter().any(|kept| *kept == **name))
                .map(|(name, value)| member(name, value.get()));
            let kept: Vec<String> = kept.collect();
            Some(format!("{{{}}}", kept.join(",")))
        }
    }
}

fn member(name: &str, value: &str) -> String {
    format!("{}:{value}", Value::from(name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn declared() -> Vec<Narrowing> {
        [
            ("/amount", Narrower::Lower),
            ("/text", Narrower::Lower),
            ("/items", Narrower::Fewer),
            ("/to/who", Narrower::Subset),
            ("/map", Narrower::Subset),
        ]
        .into_iter()
        .map(|(pointer, to)| Narrowing {
            pointer: pointer.to_owned(),
            to,
        })
        .collect()
    }

    #[track_caller]
    fn check(pointer: &str, wanted: &Value, expected: Option<&Value>) {
        let asked = json!({
            "amount": 150, "text": "12.50", "items": ["a", "b", "a"],
            "to": {"who": ["x", "y"], "n": 1}, "map": {"p": 1, "q": [2]}, "other": 7,
        });
        let sent = BTreeMap::from([(pointer.to_owned(), wanted.clone())]);
        let cuts = cuts(&declared(), &asked, &[], &sent).ok();
        let after = cuts.and_then(|cuts| narrowed_value(&asked, &cuts));
        let after = after.map(|after| after.pointer(pointer).cloned().unwrap_or_default());
        assert_eq!(after.as_ref(), expected, "{pointer} {wanted}");
    }

    /// Narrower values, and values that are not, in each direction (A13).
    #[test]
    fn what_is_narrower() {
        for (pointer, wanted, is_narrower) in [
            ("/amount", json!(150), true),
            ("/amount", json!(149), true),
            ("/amount", json!(0), true),
            ("/amount", json!(151), false),
            ("/amount", json!(-1), false),
            ("/amount", json!("100"), false),
            ("/amount", json!(null), false),
            ("/text", json!("12.5"), true),
            ("/text", json!("12.51"), false),
            ("/text", json!(12), false),
            ("/text", json!("1e1"), false),
            ("/items", json!(["a", "a"]), true),
            ("/items", json!([]), true),
            ("/items", json!(["b", "a"]), true),
            ("/items", json!(["b", "b"]), false),
            ("/items", json!(["a", "a", "b"]), false),
            ("/items", json!(["c"]), false),
            ("/to/who", json!(["y", "x"]), true),
            ("/to/who", json!(["x", "x"]), false),
            ("/map", json!({"q": [2]}), true),
            ("/map", json!({"q": [3]}), false),
            ("/map", json!({"r": 1}), false),
            ("/other", json!(6), false),
            ("/to/n", json!(0), false),
            ("", json!({}), false),
        ] {
            let expected = is_narrower.then(|| match (pointer, &wanted) {
                // A set stays in the order in which it was asked.
                ("/to/who", _) => json!(["x", "y"]),
                // The same number is no change, however it is spelt.
                ("/text", _) => json!("12.50"),
                (_, wanted) => wanted.clone(),
            });
            check(pointer, &wanted, expected.as_ref());
        }
    }

    /// Numbers that are not narrowed keep every digit.
    #[test]
    fn other_arguments_keep_their_spelling() {
        let asked = r#"{"n": 123456789012345678901234567890, "amount": 1.50, "m": {"d": 0.10}}"#;
        let sent = BTreeMap::from([("/amount".to_owned(), json!(1))]);
        let value: Value = serde_json::from_str(asked).unwrap();
        let cuts = cuts(&declared(), &value, &[], &sent).unwrap();
        assert_eq!(
            narrowed(asked, &cuts).as_deref(),
            Some(r#"{"n":123456789012345678901234567890,"amount":1,"m":{"d": 0.10}}"#)
        );
        // They are cuts of other arguments: nothing is guessed.
        assert_eq!(narrowed(r#"{"amount": 0.5}"#, &cuts), None);
        assert_eq!(narrowed("{}", &cuts), None);
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            (-3..6_i64).prop_map(Value::from),
            "[0-9.]{0,3}".prop_map(Value::from),
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
        ];
        leaf.prop_recursive(2, 12, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[pq]", inner, 0..3)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn any_arguments() -> impl Strategy<Value = Value> {
        let amount = prop_oneof![(0..6_i64).prop_map(Value::from), any_value()];
        let list = || prop::collection::vec(any_value(), 0..4).prop_map(Value::from);
        let map = prop::collection::btree_map("[pq]", any_value(), 0..3)
            .prop_map(|map| Value::Object(map.into_iter().collect()));
        (amount, any_value(), list(), list(), map, any_value()).prop_map(
            |(amount, text, items, who, map, other)| {
                json!({
                    "amount": amount, "text": text, "items": items,
                    "to": {"who": who, "n": 1}, "map": map, "other": other,
                })
            },
        )
    }

    fn any_wanted() -> impl Strategy<Value = BTreeMap<String, Value>> {
        let pointer = prop::sample::select(vec![
            "/amount", "/text", "/items", "/to/who", "/map", "/other", "/to", "",
        ]);
        let pointer = pointer.prop_map(str::to_owned);
        prop::collection::btree_map(pointer, any_value(), 0..4)
    }

    /// Not more than it was, by a rule of its own.
    fn is_narrower(rule: Narrower, asked: &Value, after: &Value) -> bool {
        let count = |items: &[Value], item: &Value| items.iter().filter(|it| *it == item).count();
        match (rule, asked, after) {
            (_, asked, after) if asked == after => true,
            (Narrower::Lower, Value::Number(asked), Value::Number(after)) => {
                after.as_f64() <= asked.as_f64() && after.as_f64() >= Some(0.0)
            }
            (Narrower::Lower, Value::String(asked), Value::String(after)) => {
                let number = |text: &str| text.parse::<f64>().unwrap();
                number(after) <= number(asked)
            }
            (Narrower::Fewer | Narrower::Subset, Value::Array(asked), Value::Array(after)) => after
                .iter()
                .all(|item| count(after, item) <= count(asked, item)),
            (Narrower::Subset, Value::Object(asked), Value::Object(after)) => after
                .iter()
                .all(|(name, value)| asked.get(name) == Some(value)),
            _ => false,
        }
    }

    proptest! {
        /// Whatever two approvers send one after the other, the call runs with at most the asked values in the declared
        /// parameters, and with exactly the asked values everywhere else (A13).
        #[test]
        fn nothing_is_ever_widened(
            asked in any_arguments(),
            first in any_wanted(),
            second in any_wanted(),
        ) {
            let declared = declared();
            let mut before = Vec::new();
            let mut last = asked.clone();
            for wanted in [first, second] {
                let Ok(made) = cuts(&declared, &asked, &before, &wanted) else { continue };
                let after = narrowed_value(&asked, &made);
                prop_assert!(after.is_some(), "what is accepted can be applied");
                let after = after.unwrap_or_default();
                let (mut rest, mut expected) = (after.clone(), asked.clone());
                for rule in &declared {
                    let at = |value: &Value| value.pointer(&rule.pointer).cloned().unwrap_or_default();
                    prop_assert!(is_narrower(rule.to, &at(&asked), &at(&after)), "{} {}", asked, after);
                    prop_assert!(is_narrower(rule.to, &at(&last), &at(&after)), "{} {}", last, after);
                    for value in [&mut rest, &mut expected] {
                        if let Some(place) = value.pointer_mut(&rule.pointer) {
                            *place = Value::Null;
                        }
                    }
                }
                prop_assert_eq!(rest, expected, "and nothing else has changed");
                before = made;
                last = after;
            }
        }
    }
}
