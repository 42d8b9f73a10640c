//! The vectors in `docs/evidence-vectors/` are exactly those that the code generates.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::common::vectors::{VectorFile, files};

const MEND: &str = "run `cargo run -p countersign-evidence --example write_vectors`";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/evidence-vectors")
}

/// Returns the differences between a folder of vectors and the expected files.
fn complaints(folder: &Path, expected: &[VectorFile]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in expected {
        match std::fs::read_to_string(folder.join(&file.path)) {
            Ok(text) if text == file.text => {}
            Ok(_) => complaints.push(format!("{} differs: {MEND}", file.path)),
            Err(_) => complaints.push(format!("{} is missing: {MEND}", file.path)),
        }
    }
    let known: BTreeSet<PathBuf> = expected
        .iter()
        .map(|file| folder.join(&file.path))
        .collect();
    let entries = [folder.to_owned(), folder.join("bundles")]
        .into_iter()
        .flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten());
    for path in entries
        .map(|entry| entry.path())
        .filter(|path| path.is_file())
    {
        if !known.contains(&path) && !path.ends_with("README.md") {
            complaints.push(format!("{} is made by nothing: remove it", path.display()));
        }
    }
    complaints
}

#[test]
fn vectors_are_up_to_date() {
    let complaints = complaints(&folder(), &files());
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn a_changed_and_a_missing_file_are_found() {
    let mut expected = files();
    expected[0].text.push(' ');
    let foreign = std::mem::replace(&mut expected[1].path, "absent.json".to_owned());
    let found = complaints(&folder(), &expected);
    assert_eq!(found[0], format!("canonical.json differs: {MEND}"));
    assert_eq!(found[1], format!("absent.json is missing: {MEND}"));
    assert!(found[2].ends_with(&format!("{foreign} is made by nothing: remove it")));
    assert_eq!(found.len(), 3);
}
