//! The arguments that a filled form makes.

use std::collections::BTreeMap;

use jiff::civil::DateTime;
use serde_json::Value;

use super::{INDEX_MAX, digits};

/// The arguments that the fields of a form make. An empty field is left out.
pub(crate) fn arguments(fields: &[(String, String)]) -> Value {
    let named = || {
        fields.iter().filter_map(|(name, text)| {
            let (mark, pointer) = name.split_once(':')?;
            pointer.starts_with('/').then_some((mark, pointer, text))
        })
    };
    let keys: BTreeMap<&str, &str> = named()
        .filter(|(mark, _, _)| *mark == "k")
        .map(|(_, pointer, text)| (pointer, text.trim()))
        .collect();
    let mut root = Place::Members(Vec::new());
    for (mark, pointer, text) in named() {
        let is_empty = text.trim().is_empty();
        let (mark, or_null) = match mark.strip_suffix('?') {
            Some(mark) => (mark, true),
            None => (mark, false),
        };
        if mark == "k" || (is_empty && !or_null) {
            continue;
        }
        let (mark, key) = match mark.strip_prefix('k') {
            Some(mark) => (mark, Some(keys.get(pointer).copied().unwrap_or_default())),
            None => (mark, None),
        };
        let value = if is_empty {
            Some(Value::Null)
        } else {
            written(mark, text)
        };
        let Some(value) = value else { continue };
        let mut steps: Vec<Step> = pointer.split('/').skip(1).map(Step::read).collect();
        if let Some(key) = key {
            steps.pop();
            steps.push(Step::Member(key.to_owned()));
        }
        root.put(steps, value);
    }
    root.value().unwrap_or_default()
}

/// The value of a text by the mark of its field; none if there is no such mark.
fn written(mark: &str, text: &str) -> Option<Value> {
    let lines = || {
        text.lines()
            .map(str::trim_end)
            .filter(|line| !line.is_empty())
    };
    Some(match mark {
        "s" => Value::from(text),
        "t" => Value::from(in_utc(text.trim()).unwrap_or_else(|| text.to_owned())),
        "n" => number(text),
        "b" => match text {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            text => Value::from(text),
        },
        "l" => lines().collect(),
        "r" => lines().map(number).collect(),
        "j" => digits::read(text).unwrap_or_else(|_| Value::from(text)),
        _ => return None,
    })
}

/// A text that is a number in JSON, digit for digit; anything else is for the binder.
fn number(text: &str) -> Value {
    digits::number(text).unwrap_or_else(|| Value::from(text))
}

/// `2026-11-17T14:41` as an input of a browser writes it, with the zone that the form says.
fn in_utc(text: &str) -> Option<String> {
    let formats = [super::LOCAL, "%Y-%m-%dT%H:%M"];
    let mut read = formats
        .iter()
        .map(|format| DateTime::strptime(format, text));
    let time = read.find_map(Result::ok)?;
    Some(format!("{}Z", time.strftime(super::LOCAL)))
}

/// A step from a value to one in it.
enum Step {
    Item(usize),
    Member(String),
}

impl Step {
    fn read(part: &str) -> Self {
        match part.parse::<usize>() {
            Ok(index) if index <= INDEX_MAX => Self::Item(index),
            _ => Self::Member(part.replace("~1", "/").replace("~0", "~")),
        }
    }
}

/// A value while fields are put into it.
enum Place {
    /// Nothing yet.
    Empty,
    Written(Value),
    Members(Vec<(String, Self)>),
    Items(BTreeMap<usize, Self>),
}

impl Place {
    /// Puts a value at a place, and makes what has to be around it. Of two fields that contradict each other the first counts.
    fn put(&mut self, steps: Vec<Step>, value: Value) {
        let mut place = self;
        for step in steps {
            if matches!(place, Self::Empty) {
                *place = match step {
                    Step::Item(_) => Self::Items(BTreeMap::new()),
                    Step::Member(_) => Self::Members(Vec::new()),
                };
            }
            place = match (place, step) {
                (Self::Items(items), Step::Item(index)) => {
                    items.entry(index).or_insert(Self::Empty)
                }
                (Self::Members(members), step) => {
                    let name = match step {
                        Step::Item(index) => index.to_string(),
                        Step::Member(name) => name,
                    };
                    let known = members.iter().position(|(known, _)| *known == name);
                    let at = known.unwrap_or(members.len());
                    if known.is_none() {
                        members.push((name, Self::Empty));
                    }
                    match members.get_mut(at) {
                        Some((_, member)) => member,
                        None => return,
                    }
                }
                _ => return,
            };
        }
        if matches!(place, Self::Empty) {
            *place = Self::Written(value);
        }
    }

    /// The value; `None` if nothing was filled in, so that a list has no gaps.
    fn value(self) -> Option<Value> {
        match self {
            Self::Empty => None,
            Self::Written(value) => Some(value),
            Self::Members(members) => {
                let filled = members
                    .into_iter()
                    .filter_map(|(name, member)| Some((name, member.value()?)));
                Some(Value::Object(filled.collect()))
            }
            Self::Items(items) => Some(items.into_values().filter_map(Self::value).collect()),
        }
    }
}
