//! Entries that the catalog accepts: rules of a schema that the binder cannot check are taken out, one by one.

use std::collections::BTreeSet;

use countersign::catalog;
use serde_json::{Map, Value};

use super::Reason;
use crate::declare::{self, Undeclared};
use crate::manifest::{ToolEntry, complaints_about_request};

/// Most rules of one schema that are taken out.
const LOOSENINGS_MAX: usize = 64;

/// Makes sure that the entry is accepted. A rule of the schema that cannot be checked is taken out: the service has it still.
pub(crate) fn accepted(
    entry: &mut ToolEntry,
    unchecked: &mut BTreeSet<String>,
    notes: &mut Vec<String>,
) -> Result<(), Reason> {
    if let Some(input) = &mut entry.input {
        let mut dropped = BTreeSet::new();
        drop_patterns(input, unchecked, &mut dropped);
        let dropped = dropped.into_iter();
        notes.extend(dropped.map(|pattern| format!("the pattern {pattern:?} is not checked")));
    }
    for _ in 0..LOOSENINGS_MAX {
        let spec = match declare::spec_of(entry) {
            Ok(spec) => spec,
            Err(Undeclared::Name(error)) => {
                return Err(Reason::Entry {
                    at: "name".to_owned(),
                    message: error.to_string(),
                });
            }
            Err(Undeclared::Argument { argument, message }) => {
                return Err(Reason::Entry {
                    at: argument,
                    message,
                });
            }
        };
        let source = match declare::probe(spec) {
            Ok(()) => {
                return match complaints_about_request(entry).into_iter().next() {
                    None => Ok(()),
                    Some(it) => Err(Reason::Entry {
                        at: it.to_string(),
                        message: it.message,
                    }),
                };
            }
            Err(catalog::Error::Schema { source, .. }) => source,
            Err(catalog::Error::SoundsLikePayment { .. } | catalog::Error::TakesMoney { .. }) => {
                return Err(Reason::Payment {
                    name: entry.name.clone(),
                });
            }
            Err(error) => {
                return Err(Reason::Entry {
                    at: "tool".to_owned(),
                    message: error.to_string(),
                });
            }
        };
        let (path, message) = (source.path, source.message);
        let taken = entry
            .input
            .as_mut()
            .and_then(|input| take_out(input, &path));
        match taken {
            Some(Value::String(pattern)) if path.ends_with("/pattern") => {
                notes.push(format!("the pattern at {path} is not checked: {message}"));
                unchecked.insert(pattern);
            }
            Some(_) => notes.push(format!("{path} is not checked: {message}")),
            None => return Err(Reason::Schema { path, message }),
        }
    }
    let message = format!("more than {LOOSENINGS_MAX} rules cannot be checked");
    Err(Reason::Schema {
        path: String::new(),
        message,
    })
}

/// Takes a rule out of a schema: a keyword, an item of a list, or a member. A list that gets empty goes too.
fn take_out(schema: &mut Map<String, Value>, path: &str) -> Option<Value> {
    /// Rules that can be removed without changing the arguments.
    const KEYWORDS: [&str; 10] = [
        "pattern",
        "examples",
        "default",
        "format",
        "multipleOf",
        "uniqueItems",
        "propertyNames",
        "contains",
        "not",
        "if",
    ];
    let (parent, last) = path.rsplit_once('/')?;
    let last = last.replace("~1", "/").replace("~0", "~");
    let holder = parent.rsplit('/').next().unwrap_or_default();
    let is_rule = KEYWORDS.contains(&last.as_str())
        || matches!(
            holder,
            "patternProperties" | "examples" | "anyOf" | "allOf" | "oneOf"
        );
    if !is_rule {
        return None;
    }
    let place = pointed(schema, parent)?;
    let taken = match place {
        Value::Object(members) => members.remove(&last)?,
        Value::Array(items) => {
            let at = last.parse::<usize>().ok().filter(|at| *at < items.len())?;
            items.remove(at)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
    };
    if place.as_array().is_some_and(Vec::is_empty)
        && let Some((above, name)) = parent.rsplit_once('/')
        && let Some(Value::Object(above)) = pointed(schema, above)
    {
        above.remove(name);
    }
    Some(taken)
}

/// Resolves a JSON pointer, whose root is an object; `None` if it leads nowhere.
fn pointed<'s>(schema: &'s mut Map<String, Value>, pointer: &str) -> Option<&'s mut Value> {
    let rest = pointer.strip_prefix('/')?;
    let (first, rest) = rest
        .split_once('/')
        .map_or((rest, None), |(first, rest)| (first, Some(rest)));
    let place = schema.get_mut(&first.replace("~1", "/").replace("~0", "~"))?;
    match rest {
        None => Some(place),
        Some(rest) => place.pointer_mut(&format!("/{rest}")),
    }
}

/// Takes out patterns that cannot be checked.
fn drop_patterns(
    schema: &mut Map<String, Value>,
    unchecked: &BTreeSet<String>,
    dropped: &mut BTreeSet<String>,
) {
    if unchecked.is_empty() {
        return;
    }
    let pattern = schema.get("pattern").and_then(Value::as_str);
    if let Some(pattern) = pattern.filter(|own| unchecked.contains(*own)) {
        dropped.insert(pattern.to_owned());
        schema.remove("pattern");
    }
    let lists = schema.values_mut().filter_map(|it| match it {
        Value::Array(items) => Some(items),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            None
        }
    });
    for item in lists.flatten().filter_map(Value::as_object_mut) {
        drop_patterns(item, unchecked, dropped);
    }
    for member in schema.values_mut().filter_map(Value::as_object_mut) {
        drop_patterns(member, unchecked, dropped);
    }
}
