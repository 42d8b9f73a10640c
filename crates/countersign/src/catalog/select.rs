//! Selecting tools from a list by name and by pattern, for surfaces that offer only some of them.

use std::sync::Arc;

use super::Entry;
use crate::pattern::fits;

/// The error for a name or pattern that matches nothing in the list. Usually it is mistyped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unmatched {
    /// A name that no tool has. Usually it is misspelt, or the shop is off.
    #[error("there is no tool {0:?}")]
    Name(String),
    /// A pattern that no tool fits. Usually the shell has expanded its star, or the shop is off.
    #[error("no tool fits the pattern {0:?}")]
    Pattern(String),
}

impl Unmatched {
    /// The name or pattern that was asked for.
    pub fn asked(&self) -> &str {
        match self {
            Self::Name(asked) | Self::Pattern(asked) => asked,
        }
    }

    /// Every text that would have matched something, for a suggestion: names for a name, `area.*` for a
    /// pattern.
    pub fn alternatives(&self, entries: &[Arc<Entry>]) -> Vec<String> {
        let names = entries.iter().map(|entry| entry.name().as_str());
        match self {
            Self::Name(_) => names.map(str::to_owned).collect(),
            Self::Pattern(_) => {
                let mut areas: Vec<String> = names
                    .filter_map(|name| Some(format!("{}.*", name.split_once('.')?.0)))
                    .collect();
                areas.dedup();
                areas
            }
        }
    }
}

/// The entries that any of the names and patterns asks for, each once, in the order of `entries`. A name is
/// canonical or a provider alias; a pattern has `*` for any characters.
///
/// # Errors
///
/// The first name or pattern that matches nothing: a tool is never left out silently.
///
/// # Example
///
/// ```
/// use countersign::Catalog;
/// use countersign::catalog::select;
/// use countersign::sample::{AddNote, Diagnostics, ListNotes};
///
/// let catalog = Catalog::builder().tool(AddNote).tool(ListNotes).tool(Diagnostics).build()?;
/// let notes = select(&catalog.list(), ["notes.*"])?;
/// assert_eq!(notes.len(), 2);
/// assert!(select(&catalog.list(), ["notes.*", "note.add"]).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn select<'a>(
    entries: &[Arc<Entry>],
    asked: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<Arc<Entry>>, Unmatched> {
    let mut is_chosen = vec![false; entries.len()];
    for asked in asked {
        let mut is_matched = false;
        for (entry, is_chosen) in entries.iter().zip(&mut is_chosen) {
            // A name has no star, so as a pattern it fits itself alone.
            if fits(asked, entry.name().as_str()) || fits(asked, entry.alias()) {
                is_matched = true;
                *is_chosen = true;
            }
        }
        if !is_matched {
            let asked = asked.to_owned();
            return Err(if asked.contains('*') {
                Unmatched::Pattern(asked)
            } else {
                Unmatched::Name(asked)
            });
        }
    }
    let chosen = entries.iter().zip(is_chosen);
    Ok(chosen
        .filter(|(_, is_chosen)| *is_chosen)
        .map(|(entry, _)| entry.clone())
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::sample::{AddNote, ClearNotes, Diagnostics, ListNotes, MemorySearch};

    fn entries() -> Vec<Arc<Entry>> {
        let catalog = Catalog::builder()
            .tool(MemorySearch::new(["milk"]))
            .tool(Diagnostics)
            .tool(AddNote)
            .tool(ClearNotes)
            .tool(ListNotes)
            .build();
        catalog.unwrap().list()
    }

    #[track_caller]
    fn check(asked: &[&str], expected: Result<&[&str], &str>) {
        let entries = entries();
        let found = select(&entries, asked.iter().copied());
        let names = |found: Vec<Arc<Entry>>| -> Vec<String> {
            found.iter().map(|entry| entry.name().to_string()).collect()
        };
        let found = found.map(names).map_err(|error| error.to_string());
        let expected = expected.map(|names| names.iter().map(ToString::to_string).collect());
        assert_eq!(found, expected.map_err(str::to_owned), "{asked:?}");
    }

    /// B17: each tool once, in the list's order, whatever order and form it is asked for in.
    #[test]
    fn names_aliases_and_patterns_pick_tools() {
        check(&[], Ok(&[]));
        check(&["notes.add"], Ok(&["notes.add"]));
        check(&["notes_add"], Ok(&["notes.add"]));
        check(
            &["notes.list", "memory.search", "notes.list", "notes_list"],
            Ok(&["memory.search", "notes.list"]),
        );
        check(
            &["notes.*", "notes.add"],
            Ok(&["notes.add", "notes.clear", "notes.list"]),
        );
        check(&["*.add", "*_search"], Ok(&["memory.search", "notes.add"]));
        check(&["note.add"], Err("there is no tool \"note.add\""));
        check(
            &["notes.*", "nope.*"],
            Err("no tool fits the pattern \"nope.*\""),
        );
        check(&[""], Err("there is no tool \"\""));
    }

    #[test]
    fn alternatives_are_of_the_form_that_was_asked_for() {
        let entries = entries();
        let name = Unmatched::Name("note.add".to_owned());
        assert_eq!(name.alternatives(&entries).len(), entries.len());
        let pattern = Unmatched::Pattern("note.*".to_owned());
        assert_eq!(
            pattern.alternatives(&entries),
            ["diagnostics.*", "memory.*", "notes.*"]
        );
    }
}
