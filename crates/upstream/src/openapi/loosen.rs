//! Entries that the catalog accepts: rules of a schema that the binder cannot check are taken out, one by one.

use std::collections::BTreeMap;

use countersign::catalog;
use serde_json::{Map, Value};

use super::Reason;
use super::schema::mark;
use crate::declare::{self, Undeclared};
use crate::manifest::{ToolEntry, complaints_about_request};

/// Most rules of one schema that are taken out.
const LOOSENINGS_MAX: usize = 64;

/// Makes sure that the entry is accepted. A rule of the schema that cannot be checked is taken out: the service has it still.
pub(crate) fn accepted(
    entry: &mut ToolEntry,
    unchecked: &mut BTreeMap<String, String>,
    notes: &mut Vec<String>,
) -> Result<(), Reason> {
    if let Some(input) = entry.input.as_mut().filter(|_| !unchecked.is_empty()) {
        drop_patterns(input, "", unchecked, notes);
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
        let Some(Taken { pointer, rule }) = taken else {
            return Err(Reason::Schema { path, message });
        };
        notes.push(mark::note(&pointer, &message));
        if let Value::String(pattern) = rule
            && pointer.ends_with("/pattern")
        {
            unchecked.insert(pattern, message);
        }
    }
    let message = format!("more than {LOOSENINGS_MAX} rules cannot be checked");
    Err(Reason::Schema {
        path: String::new(),
        message,
    })
}

/// A rule that was taken out.
struct Taken {
    /// Place of the change.
    pointer: String,
    rule: Value,
}

/// Takes a rule out of a schema, which takes more values without it and never fewer.
fn take_out(schema: &mut Map<String, Value>, path: &str) -> Option<Taken> {
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
    let (above, holder) = parent.rsplit_once('/')?;
    let is_in_list = pointed(schema, parent)?.is_array();
    // A member may have the name of a keyword.
    let is_keyword = !matches!(above.rsplit('/').next(), Some("properties" | "$defs"));
    match holder {
        // Without one of its branches a union would take less.
        "anyOf" | "oneOf" if is_in_list => {
            let rule = members(schema, above)?.remove(holder)?;
            let pointer = parent.to_owned();
            Some(Taken { pointer, rule })
        }
        "allOf" | "examples" if is_in_list => {
            let items = pointed(schema, parent)?.as_array_mut()?;
            let at = last.parse::<usize>().ok().filter(|at| *at < items.len())?;
            let rule = items.remove(at);
            if items.is_empty() {
                members(schema, above)?.remove(holder);
            }
            let pointer = path.to_owned();
            Some(Taken { pointer, rule })
        }
        "patternProperties" if is_keyword => {
            let rule = members(schema, parent)?.remove(&unescaped(last))?;
            // Names that only this pattern allows would be forbidden.
            let above = members(schema, above)?;
            if above.get("additionalProperties") == Some(&Value::Bool(false)) {
                above.remove("additionalProperties");
            }
            let pointer = path.to_owned();
            Some(Taken { pointer, rule })
        }
        _ if KEYWORDS.contains(&last) => {
            let rule = members(schema, parent)?.remove(last)?;
            let pointer = path.to_owned();
            Some(Taken { pointer, rule })
        }
        _ => None,
    }
}

fn unescaped(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

/// The object that a pointer leads to.
fn members<'s>(
    schema: &'s mut Map<String, Value>,
    pointer: &str,
) -> Option<&'s mut Map<String, Value>> {
    if pointer.is_empty() {
        return Some(schema);
    }
    pointed(schema, pointer)?.as_object_mut()
}

/// Resolves a JSON pointer, whose root is an object; `None` if it leads nowhere.
fn pointed<'s>(schema: &'s mut Map<String, Value>, pointer: &str) -> Option<&'s mut Value> {
    let rest = pointer.strip_prefix('/')?;
    let (first, rest) = rest
        .split_once('/')
        .map_or((rest, None), |(first, rest)| (first, Some(rest)));
    let place = schema.get_mut(&unescaped(first))?;
    match rest {
        None => Some(place),
        Some(rest) => place.pointer_mut(&format!("/{rest}")),
    }
}

/// Takes out patterns that cannot be checked, in the schema at this pointer and below.
fn drop_patterns(
    schema: &mut Map<String, Value>,
    pointer: &str,
    unchecked: &BTreeMap<String, String>,
    notes: &mut Vec<String>,
) {
    let pattern = schema.get("pattern").and_then(Value::as_str);
    if let Some(why) = pattern.and_then(|own| unchecked.get(own)) {
        notes.push(mark::note(&format!("{pointer}/pattern"), why));
        schema.remove("pattern");
    }
    for (name, value) in schema {
        let below = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
        match value {
            Value::Object(members) => drop_patterns(members, &below, unchecked, notes),
            Value::Array(items) => {
                for (at, item) in items.iter_mut().enumerate() {
                    if let Value::Object(item) = item {
                        drop_patterns(item, &format!("{below}/{at}"), unchecked, notes);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}
