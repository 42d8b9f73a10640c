//! The official JSON-Schema-Test-Suite, draft 2020-12: what the binder accepts is what the standard accepts, and what it cannot
//! check it refuses when the tool is registered. Prints the score.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use countersign_args::Binder;
use countersign_contract::parameter::Leniency;
use countersign_contract::tool::{BindPolicy, UnknownKeys};
use serde::Deserialize;
use serde_json::Value;

/// Cases about one schema.
#[derive(Deserialize)]
struct Group {
    description: String,
    schema: Value,
    tests: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    description: String,
    data: Value,
    valid: bool,
}

/// The least number of cases of which the verdict is that of the suite, and the most schemas that are refused when they are registered.
/// A change that makes either worse fails here.
const AGREED_MIN: usize = 1_000;
const REFUSED_MAX: usize = 97;

/// Values that the standard accepts and the binder refuses, by file, with the reason.
const STRICTER: [(&str, usize, &str); 4] = [
    ("format", 9, "a format is checked, not only noted"),
    ("type", 1, "1.0 is no integer unless repairs are allowed"),
    (
        "unevaluatedProperties",
        8,
        "members that a part of the schema accepts count as unknown",
    ),
    ("vocabulary", 1, "all keywords are in force"),
];

/// The folder of the suite, which `cargo xtask test` fetches.
fn suite() -> PathBuf {
    let named = std::env::var_os("COUNTERSIGN_TEST_SCHEMA_SUITE");
    let own = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../target/test-outside-suite/jsonschema-4.26.0/json");
    named.map_or(own, PathBuf::from)
}

fn groups(file: &Path) -> Vec<Group> {
    let text = fs::read_to_string(file).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// The standard's own verdicts: nothing is repaired, and unknown members are kept.
fn strictly() -> BindPolicy {
    BindPolicy {
        leniency: Leniency::Strict,
        unknown_keys: UnknownKeys::Keep,
        ..BindPolicy::default()
    }
}

#[derive(Default)]
struct Score {
    agreed: usize,
    /// Schemas that were refused, by the reason.
    refused: BTreeMap<String, usize>,
    /// Values that were refused and are valid, by file.
    stricter: BTreeMap<String, usize>,
    /// Values that were accepted and are not valid.
    wrong: Vec<String>,
}

impl Score {
    fn group(&mut self, file: &str, group: &Group) {
        let binder = match Binder::from_schema(&group.schema, strictly()) {
            Ok(binder) => binder,
            Err(error) => {
                let reason = error.message.replace(char::is_numeric, "");
                let reason: String = reason.chars().take(60).collect();
                *self.refused.entry(reason).or_default() += 1;
                return;
            }
        };
        for case in &group.tests {
            let bound = binder.bind(&case.data.to_string());
            match (bound.arguments.is_some(), case.valid) {
                (true, true) | (false, false) => self.agreed += 1,
                (false, true) => *self.stricter.entry(file.to_owned()).or_default() += 1,
                (true, false) => {
                    let (group, case) = (&group.description, &case.description);
                    self.wrong.push(format!("{file}: {group}: {case}"));
                }
            }
        }
    }

    fn refused(&self) -> usize {
        self.refused.values().sum()
    }

    fn text(&self) -> String {
        let mut text = format!(
            "JSON-Schema-Test-Suite 2020-12: {} cases agreed, {} wrongly accepted, {} refused although valid, \
             {} schemas refused at registration\n",
            self.agreed,
            self.wrong.len(),
            self.stricter.values().sum::<usize>(),
            self.refused()
        );
        for (reason, count) in &self.refused {
            writeln!(text, "  {count:>4}  {reason}").unwrap();
        }
        for wrong in &self.wrong {
            writeln!(text, "  accepted: {wrong}").unwrap();
        }
        text
    }
}

#[test]
fn verdicts_are_those_of_the_standard() {
    let folder = suite().join("tests/draft2020-12");
    let files = fs::read_dir(&folder).unwrap_or_else(|error| {
        panic!(
            "{}: {error}; `cargo xtask outside --set-up` fetches the suite",
            folder.display()
        )
    });
    let mut files: Vec<PathBuf> = files
        .map(|file| file.unwrap().path())
        .filter(|file| file.extension().is_some_and(|kind| kind == "json"))
        .collect();
    files.sort();
    assert!(files.len() >= 40, "{} files", files.len());
    let mut score = Score::default();
    for file in &files {
        let name = file.file_stem().unwrap().to_string_lossy();
        for group in groups(file) {
            score.group(&name, &group);
        }
    }
    let text = score.text();
    eprint!("{text}");
    assert_eq!(score.wrong.len(), 0, "{text}");
    let known = STRICTER.map(|(file, count, _)| (file.to_owned(), count));
    assert_eq!(score.stricter, BTreeMap::from(known), "{text}");
    assert!(score.agreed >= AGREED_MIN, "{text}");
    assert!(score.refused() <= REFUSED_MAX, "{text}");
}
