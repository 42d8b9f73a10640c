//! The difference of two imports of a document: operations that came, went, or are another request or another schema now.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::operation::digest;
use crate::manifest::{Manifest, ToolEntry};

/// Longest value that is shown, in characters.
const SHOWN_CHARS: usize = 60;

/// The difference of two imports.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Tools that are new.
    pub added: Vec<Named>,
    /// Tools whose operation is not in the document any more, or is refused now.
    pub removed: Vec<Named>,
    /// Tools that have changed.
    pub changed: Vec<Changed>,
    /// Tools of the old file that were edited by hand: the edits would be lost.
    pub edited: Vec<Named>,
}

/// A tool and its operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Named {
    /// Name of the tool.
    pub tool: String,
    /// Method and path.
    pub operation: String,
}

/// A tool that has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// Name of the tool.
    pub tool: String,
    /// Method and path.
    pub operation: String,
    /// The members that differ.
    pub members: Vec<MemberChange>,
}

/// A member of an entry that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemberChange {
    /// The member, such as `input.properties.limit.maximum`.
    pub at: String,
    /// The value that it had, cut if it is long; none if it was not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The value that it has now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

impl Difference {
    /// True if nothing differs.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

/// The difference of two manifests, by operation. Entries that were not imported are not looked at.
pub fn between(old: &Manifest, new: &Manifest) -> Difference {
    let (before, after) = (by_operation(old), by_operation(new));
    let mut difference = Difference::default();
    for (operation, entry) in &before {
        let named = || Named {
            tool: entry.name.clone(),
            operation: (*operation).to_owned(),
        };
        if is_edited(entry) {
            difference.edited.push(named());
        }
        let Some(newer) = after.get(operation) else {
            difference.removed.push(named());
            continue;
        };
        let mut members = Vec::new();
        compare(&value(entry), &value(newer), "", &mut members);
        if !members.is_empty() {
            difference.changed.push(Changed {
                tool: newer.name.clone(),
                operation: (*operation).to_owned(),
                members,
            });
        }
    }
    let fresh = after
        .iter()
        .filter(|(operation, _)| !before.contains_key(*operation));
    difference.added = fresh
        .map(|(operation, entry)| Named {
            tool: entry.name.clone(),
            operation: (*operation).to_owned(),
        })
        .collect();
    difference
}

/// The names of the imported tools, by operation.
pub fn names(manifest: &Manifest) -> BTreeMap<String, String> {
    let named = |(operation, entry): (&str, &ToolEntry)| (operation.to_owned(), entry.name.clone());
    by_operation(manifest).into_iter().map(named).collect()
}

fn by_operation(manifest: &Manifest) -> BTreeMap<&str, &ToolEntry> {
    let imported = manifest
        .tool
        .iter()
        .filter_map(|it| Some((it.imported.as_ref()?, it)));
    imported
        .map(|(imported, entry)| (imported.operation.as_str(), entry))
        .collect()
}

/// True if an imported entry has been edited since the import.
fn is_edited(entry: &ToolEntry) -> bool {
    entry
        .imported
        .as_ref()
        .is_some_and(|it| it.digest != digest(entry))
}

fn value(entry: &ToolEntry) -> Value {
    let bare = ToolEntry {
        imported: None,
        ..entry.clone()
    };
    serde_json::to_value(bare).unwrap_or_default()
}

fn compare(old: &Value, new: &Value, at: &str, found: &mut Vec<MemberChange>) {
    if let (Value::Object(old), Value::Object(new)) = (old, new) {
        let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
        names.sort();
        names.dedup();
        for name in names {
            let below = if at.is_empty() {
                name.clone()
            } else {
                format!("{at}.{name}")
            };
            match (old.get(name), new.get(name)) {
                (Some(old), Some(new)) => compare(old, new, &below, found),
                (before, after) => found.push(MemberChange {
                    at: below,
                    before: before.map(shown),
                    after: after.map(shown),
                }),
            }
        }
    } else if old != new {
        found.push(MemberChange {
            at: at.to_owned(),
            before: Some(shown(old)),
            after: Some(shown(new)),
        });
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= SHOWN_CHARS {
        return text;
    }
    let cut: String = text.chars().take(SHOWN_CHARS).collect();
    format!("{cut}…")
}
