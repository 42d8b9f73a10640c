//! A configuration with mistakes, for commands that do not need the part where they are.
//!
//! An operator must be able to answer an approval, revoke a key or verify the log while the file is being edited. A
//! running server has a configuration of its own, so a command beside it needs the data folder only. A command alone
//! also needs the keys and the times for which data is kept. A mistake in those parts stops it: a command that guesses
//! its data folder would work on the wrong data.

use std::path::Path;

use countersign_config::{Document, Mistake, Mistakes};

use super::{Texts, wrong};
use crate::failure::Failure;

/// Sections that say where the data is. Every command needs them.
const PLACE: &[&str] = &["store"];

/// Sections that a command needs that works on the data by itself.
const DATA: &[&str] = &["store", "keys", "log", "retention", "approvals"];

/// A file with mistakes.
pub(crate) struct Flawed {
    /// The document without its mistakes; `None` if the file has nothing that can be used.
    pub(crate) document: Option<Document>,
    /// All mistakes; at least one.
    pub(crate) mistakes: Vec<Mistake>,
    /// True if the section that was meant is unclear: an unknown one, or text outside of any.
    is_unclear: bool,
}

impl Flawed {
    /// Reads as much as possible of a file with mistakes; `None` if it has none.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>, Failure> {
        let texts =
            Texts::read(path).map_err(|error| Failure::unreadable(path.display(), error))?;
        let (document, mistakes) = texts.examine(path);
        if mistakes.is_empty() {
            return Ok(None);
        }
        // The key of a whole section, which is not one of those that there are.
        let is_section =
            |mistake: &Mistake| !mistake.key.is_empty() && !mistake.key.contains(['.', '[']);
        if document.is_some() {
            let is_unclear = mistakes.iter().any(is_section);
            return Ok(Some(Self {
                document,
                mistakes,
                is_unclear,
            }));
        }
        // The text is not valid TOML: each table is tried by itself.
        let (rest, dropped) = without_broken_tables(texts.own());
        let (document, further) = texts.with_own(rest).examine(path);
        let mut flawed = Self {
            document,
            is_unclear: further.iter().any(is_section)
                || dropped.iter().any(|table| table.name.is_empty()),
            mistakes,
        };
        flawed.blame(&dropped);
        Ok(Some(flawed))
    }

    /// Gives every syntax mistake the table that it is in as its key, because the parser names none.
    fn blame(&mut self, dropped: &[Dropped]) {
        for mistake in &mut self.mistakes {
            let table = dropped
                .iter()
                .find(|table| (table.first..table.end).contains(&mistake.line));
            if let Some(table) = table.filter(|_| mistake.key.is_empty()) {
                mistake.key.clone_from(&table.name);
            }
        }
        // A table that was dropped although no mistake is in it is named, so that nobody relies on it.
        for table in dropped {
            let is_known = |mistake: &Mistake| {
                mistake.key == table.name || (table.first..table.end).contains(&mistake.line)
            };
            if !self.mistakes.iter().any(is_known)
                && let Some(first) = self.mistakes.first().cloned()
            {
                self.mistakes.push(Mistake {
                    line: table.first,
                    column: 1,
                    key: table.name.clone(),
                    message: "this table cannot be read".to_owned(),
                    expected: None,
                    suggestion: None,
                    ..first
                });
            }
        }
    }

    /// True if a command beside a running server can do without the part with the mistakes. `is_named` says that the
    /// command line or the environment names the data folder.
    pub(crate) fn leaves_place(&self, is_named: bool) -> bool {
        is_named || self.spares(PLACE)
    }

    /// True if a command that works on the data by itself can do without that part.
    pub(crate) fn leaves_data(&self) -> bool {
        self.spares(DATA)
    }

    fn spares(&self, sections: &[&str]) -> bool {
        let concerns = |key: &str| {
            let section = key.split(['.', '[']).next().unwrap_or_default();
            sections.contains(&section)
        };
        self.document.is_some()
            && !self.is_unclear
            && !self.mistakes.iter().any(|mistake| {
                concerns(&mistake.key) || mistake.suggestion.as_deref().is_some_and(concerns)
            })
    }

    /// The mistakes, as the failure of a command that needs the file.
    pub(crate) fn failure(self) -> Failure {
        wrong(Mistakes(self.mistakes))
    }
}

/// A table that cannot be read.
#[derive(Debug, PartialEq, Eq)]
struct Dropped {
    name: String,
    /// First line, from 1.
    first: usize,
    /// First line after it.
    end: usize,
}

/// The text with every table blanked out that is not valid TOML by itself. Lines keep their numbers.
fn without_broken_tables(text: &str) -> (String, Vec<Dropped>) {
    let lines: Vec<&str> = text.lines().collect();
    let mut starts: Vec<usize> = vec![0];
    let heads = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.trim_start().starts_with('['));
    starts.extend(heads.map(|(number, _)| number).filter(|number| *number > 0));
    let mut kept = String::with_capacity(text.len());
    let mut dropped = Vec::new();
    for (index, &start) in starts.iter().enumerate() {
        let end = starts.get(index + 1).copied().unwrap_or(lines.len());
        let table = lines.get(start..end).unwrap_or_default();
        let alone = table.join("\n");
        if Document::is_toml(&alone) {
            kept.push_str(&alone);
            kept.push('\n');
            continue;
        }
        kept.extend(table.iter().map(|_| '\n'));
        dropped.push(Dropped {
            name: name_of(table.first().copied().unwrap_or_default()),
            first: start + 1,
            end: end + 1,
        });
    }
    (kept, dropped)
}

/// The name of a table, from its head; empty for what stands before the first one.
fn name_of(head: &str) -> String {
    let head = head.trim_start();
    let Some(name) = head.strip_prefix('[') else {
        return String::new();
    };
    let is_name = |c: &char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let name = name.trim_start_matches(['[', ' ', '"', '\'']);
    name.chars().take_while(is_name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Flawed {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("countersign.toml");
        std::fs::write(&path, text).unwrap();
        Flawed::read(&path).unwrap().unwrap()
    }

    #[test]
    fn a_mistake_stops_only_commands_that_need_its_section() {
        let check = |text: &str, place: bool, data: bool| {
            let flawed = read(text);
            let first = flawed.mistakes.first().unwrap();
            assert!(first.line > 0 && first.column > 0, "{first:?}");
            let found = (flawed.leaves_place(false), flawed.leaves_data());
            assert_eq!(found, (place, data), "{text:?}: {:?}", flawed.mistakes);
            assert!(flawed.leaves_place(true));
        };
        check("[server]\nlisten_on = 1\n", true, true);
        check("[server]\nlisten = \"127.0.0.1:1\n", true, true);
        check(
            "[server]\nlisten = \"127\n[store]\ndata = \"d\"\n",
            true,
            true,
        );
        check("[store]\ndata = \"d\"\n[server]\ndrain = = 3\n", true, true);
        check(
            "[[tool]]\nname = \n[keys]\nmaster = \"env:X\"\n",
            true,
            true,
        );
        check("[keys]\nmastr = \"env:X\"\n", true, false);
        check("[keys]\nmaster = \"env:X\n", true, false);
        check("[store]\ndat = \"d\"\n", false, false);
        check("[stor]\ndata = \"d\"\n", false, false);
        check("[store]\ndata = \"d\n", false, false);
        check("[store\ndata = \"d\"\n", false, false);
        check("store]\ndata = \"d\"\n", false, false);
        check("[sotre]\ndata = \"d\"\n", false, false);
        check("[warehouse]\ndata = \"d\"\n", false, false);
        check(
            "[server]\ndrain = 3 3\n[store.sqlite]\nreaders = \n",
            false,
            false,
        );
    }

    #[test]
    fn tables_that_can_be_read_are_kept_at_their_lines() {
        let text = "include = []\n[a]\nx = \n[b]\ny = 1\n";
        let (rest, dropped) = without_broken_tables(text);
        assert_eq!(rest, "include = []\n\n\n[b]\ny = 1\n");
        let a = Dropped {
            name: "a".to_owned(),
            first: 2,
            end: 4,
        };
        assert_eq!(dropped, [a]);
        assert_eq!(name_of(" [[ tool ]]"), "tool");
        assert_eq!(name_of("[store.sqlite"), "store.sqlite");
        assert_eq!(name_of("x = 1"), "");
    }
}
