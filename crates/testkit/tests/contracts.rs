//! The contract files in `contracts/` are those that the types make, and no others.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use countersign_contract::contracts::{ContractFile, files};

const MEND: &str =
    "run `cargo run -p countersign-contract --features schemars --example write_contracts`";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contracts")
}

/// Lists the faults of a folder of contract files.
fn complaints(folder: &Path, expected: &[ContractFile]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in expected {
        match std::fs::read_to_string(folder.join(file.name)) {
            Ok(text) if text == file.text => {}
            Ok(_) => complaints.push(format!(
                "contracts/{} differs from the types: {MEND}",
                file.name
            )),
            Err(_) => complaints.push(format!("contracts/{} is missing: {MEND}", file.name)),
        }
    }
    // The schema of the configuration file is made, and compared, by its own crate.
    let of_config = "config.schema.json";
    let known: BTreeSet<_> = expected.iter().map(|file| file.name).collect();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !known.contains(name.as_str()) && name != of_config {
            complaints.push(format!("contracts/{name} is made from no type: remove it"));
        }
    }
    complaints
}

/// A11: the files for other languages match the types.
#[test]
fn contract_files_are_up_to_date() {
    let complaints = complaints(&folder(), &files());
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn a_changed_a_missing_and_a_foreign_file_are_found() {
    let mut expected = files();
    expected[0].text.push(' ');
    expected[1].name = "absent.json";
    let found = complaints(&folder(), &expected);
    assert_eq!(
        found,
        [
            format!("contracts/request-envelope.schema.json differs from the types: {MEND}"),
            format!("contracts/absent.json is missing: {MEND}"),
            "contracts/reply-envelope.schema.json is made from no type: remove it".to_owned(),
        ]
    );
}
