//! Laws of an import that hold for every document: legal and unique names, the same result for the same document, and a file that says
//! all of it.

use std::collections::{BTreeMap, BTreeSet};

use countersign::contract::ToolName;
use countersign_upstream::openapi::{Import, Options, diff, import, write};
use serde_json::Value;

/// Longest name of a tool and of an argument that every provider takes.
const NAME_CHARS_MAX: usize = 64;

/// The laws that an import of this text breaks.
pub(crate) fn broken(text: &str, first: &Import) -> Vec<String> {
    let mut broken = names(first);
    broken.extend(arguments(first));
    let counted = first.report.tools.len() + first.report.refused.len();
    if first.report.operations != counted || first.manifest.tool.len() != first.report.tools.len() {
        let said = first.report.operations;
        broken.push(format!("{said} operations, but {counted} are reported"));
    }
    broken.extend(again(text, first));
    match write::read(&write::toml(first, &[])) {
        Err(error) => broken.push(format!("the file cannot be read: {error}")),
        Ok(read) => {
            if read != first.manifest {
                broken.push("the file says something else".to_owned());
            }
            let complaints = read.check();
            broken.extend(complaints.iter().take(3).map(|it| format!("check: {it}")));
        }
    }
    broken
}

/// Names that are too long, that a provider refuses, or that two tools have.
fn names(import: &Import) -> Vec<String> {
    let mut broken = Vec::new();
    let mut aliases = BTreeSet::new();
    for entry in &import.manifest.tool {
        let name = &entry.name;
        let Ok(legal) = ToolName::new(name) else {
            broken.push(format!("{name:?} is no name"));
            continue;
        };
        let alias = countersign::alias::alias(&legal);
        let is_legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        if name.len() > NAME_CHARS_MAX
            || alias.len() > NAME_CHARS_MAX
            || !alias.bytes().all(is_legal)
        {
            broken.push(format!("{name:?} is not legal for every provider"));
        }
        if !aliases.insert(alias.to_ascii_lowercase()) {
            broken.push(format!("two tools are {name:?}"));
        }
    }
    broken
}

/// Arguments with a name that a provider refuses.
fn arguments(import: &Import) -> Vec<String> {
    let is_legal = |name: &str| {
        (1..=NAME_CHARS_MAX).contains(&name.len())
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
    };
    let mut broken = Vec::new();
    for entry in &import.manifest.tool {
        let properties = entry.input.as_ref().and_then(|it| it.get("properties"));
        let names = properties.and_then(Value::as_object).into_iter().flatten();
        for (name, _) in names.filter(|(name, _)| !is_legal(name)) {
            broken.push(format!("the argument {name:?} of {}", entry.name));
        }
    }
    broken
}

/// Differences of a second import: without the first one, and with the names of it.
fn again(text: &str, first: &Import) -> Vec<String> {
    let mut broken = Vec::new();
    for names in [BTreeMap::default(), diff::names(&first.manifest)] {
        let is_kept = !names.is_empty();
        let options = Options {
            names,
            ..Options::default()
        };
        match import(text, &options) {
            Err(error) => broken.push(format!("the second import: {error}")),
            Ok(second) => {
                let difference = diff::between(&first.manifest, &second.manifest);
                if !difference.is_empty()
                    || !difference.edited.is_empty()
                    || second.manifest != first.manifest
                {
                    let shown: String = format!("{difference:?}").chars().take(600).collect();
                    broken.push(format!(
                        "another import differs (names kept: {is_kept}): {shown}"
                    ));
                }
            }
        }
    }
    broken
}
