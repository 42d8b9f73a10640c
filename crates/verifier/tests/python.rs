//! A second implementation, which shares no code with ours, comes to the same verdicts.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_evidence::bundle::Bundle;
use serde_json::{Value, json};

const LACKING: &str = "python3 with the package `cryptography` is needed: `pip install cryptography`, or \
                       `apt install python3-cryptography`; COUNTERSIGN_TEST_PYTHON names another python3";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn python(args: &[&str]) -> Output {
    let program = std::env::var("COUNTERSIGN_TEST_PYTHON");
    let program = program.unwrap_or_else(|_| "python3".to_owned());
    let output = Command::new(program)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(root())
        .arg("examples/verify_bundle.py")
        .args(args)
        .output()
        .unwrap_or_else(|error| panic!("{LACKING} ({error})"));
    // What Python itself has to say, such as that a package is missing, ends with 1.
    let said = String::from_utf8_lossy(&output.stderr);
    assert_ne!(output.status.code(), Some(1), "{LACKING}\n{said}");
    output
}

fn check_vectors(folder: &Path) {
    let output = python(&["--vectors", folder.to_str().unwrap()]);
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.success(), "{}", said.concat());
}

/// Everything that the specification defines: canonical JSON, tree, tiles, notes, seals, bundles.
#[test]
fn all_vectors_hold() {
    check_vectors(&root().join("docs/evidence-vectors"));
}

fn is_valid(bundle: &[u8], held: Option<&str>) -> bool {
    Bundle::parse(bundle).is_ok_and(|bundle| bundle.verify(None, held).is_valid())
}

/// Bundles that differ from a valid one in one place: a byte flipped, left out, or written twice.
fn tampered(bundle: &[u8], step: usize) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for at in (0..bundle.len()).step_by(step) {
        let mut flipped = bundle.to_vec();
        // Some of the flips exchange upper and lower case, which base64 and hexadecimal must see.
        flipped[at] ^= [0x01, 0x20, 0x02, 0x10][at % 4];
        all.push(flipped);
        let (before, after) = bundle.split_at(at);
        match at % 16 {
            0 => all.push([before, &after[1..]].concat()),
            1 => all.push([before, &after[..1], after].concat()),
            _ => {}
        }
    }
    all
}

#[test]
fn both_come_to_the_same_verdict_on_tampered_bundles() {
    let vectors = root().join("docs/evidence-vectors");
    let rows = std::fs::read_to_string(vectors.join("bundles.json")).unwrap();
    let rows: Vec<Value> = serde_json::from_str(&rows).unwrap();
    let mut cases = Vec::new();
    for (name, step) in [("valid-link-not-included", 1), ("held-grown", 5)] {
        let row = rows.iter().find(|row| row["name"] == name).unwrap();
        let bundle = std::fs::read(vectors.join(row["bundle"].as_str().unwrap())).unwrap();
        let held = row["held"].as_str();
        assert!(is_valid(&bundle, held), "{name}");
        let case = |(number, altered): (usize, Vec<u8>)| {
            json!({
                "name": format!("{name}, alteration {number}"),
                "bundle_base64": STANDARD.encode(&altered),
                "held": held,
                "valid": is_valid(&altered, held),
            })
        };
        cases.extend(tampered(&bundle, step).into_iter().enumerate().map(case));
    }
    let valid = cases.iter().filter(|case| case["valid"] == true).count();
    assert!(
        cases.len() > 3_000 && valid * 20 < cases.len(),
        "{valid} of {}",
        cases.len()
    );
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bundles.json"), json!(cases).to_string()).unwrap();
    check_vectors(folder.path());
}

/// A vector that does not hold is told, by the exit code too.
#[test]
fn a_wrong_vector_is_found() {
    let bundle = root().join("docs/evidence-vectors/bundles/valid-opened.json");
    let bundle = std::fs::read(bundle).unwrap();
    let case = json!([{"name": "wrong", "bundle_base64": STANDARD.encode(bundle), "valid": false}]);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bundles.json"), case.to_string()).unwrap();
    let output = python(&["--vectors", folder.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said.trim_end(), "bundles.json: wrong: found []");
}

/// The exit codes are those of `countersign-verify`.
#[test]
fn exit_codes_are_the_same() {
    for (args, code) in [
        (&["docs/evidence-vectors/bundles/valid-opened.json"][..], 0),
        (&["docs/evidence-vectors/bundles/value-altered.json"], 3),
        (&["docs/evidence-vectors/bundles/absent.json"], 2),
        (
            &[
                "docs/evidence-vectors/bundles/valid-opened.json",
                "--key",
                "no key",
            ],
            2,
        ),
        (&[], 2),
    ] {
        assert_eq!(python(args).status.code(), Some(code), "{args:?}");
        let own = Command::new(env!("CARGO_BIN_EXE_countersign-verify"))
            .current_dir(root())
            .args(args)
            .output();
        assert_eq!(own.unwrap().status.code(), Some(code), "{args:?}");
    }
}
