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
use countersign_evidence::bundle::{Bundle, Report, Verdict};
use countersign_evidence::note::VerifyingKey;
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

fn report(bundle: &[u8], key: Option<&str>, held: Option<&str>) -> Option<Report> {
    let key: Option<VerifyingKey> = key.map(|key| key.parse().unwrap());
    let bundle = Bundle::parse(bundle).ok()?;
    Some(bundle.verify(key.as_ref(), held))
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
    for (name, step) in [
        ("valid-link-not-included", 1),
        ("held-grown", 5),
        ("valid-key-of-the-bundle", 9),
        ("v2-valid-large-integer", 3),
        ("v2-valid-claim-outside", 5),
        ("v2-valid-raw-opened", 3),
    ] {
        let row = rows.iter().find(|row| row["name"] == name).unwrap();
        let bundle = std::fs::read(vectors.join(row["bundle"].as_str().unwrap())).unwrap();
        let (key, held) = (row["key"].as_str(), row["held"].as_str());
        let sound = report(&bundle, key, held).unwrap();
        assert_ne!(sound.verdict, Verdict::Invalid, "{name}");
        let case = |(number, altered): (usize, Vec<u8>)| {
            let report = report(&altered, key, held);
            let verdict = report
                .as_ref()
                .map_or(Verdict::Invalid, |report| report.verdict);
            let mut case = json!({
                "name": format!("{name}, alteration {number}"),
                "bundle_base64": STANDARD.encode(&altered),
                "key": key,
                "held": held,
                "verdict": verdict,
            });
            // What is left open depends on leaves that could be read, so it counts for sound bundles.
            if let Some(report) = report.filter(|report| report.findings.is_empty()) {
                case["not_checked"] = json!(report.not_checked);
            }
            case
        };
        cases.extend(tampered(&bundle, step).into_iter().enumerate().map(case));
    }
    let sound = cases.iter().filter(|case| case["verdict"] != "invalid");
    let sound = sound.count();
    assert!(
        cases.len() > 6_000 && sound * 20 < cases.len(),
        "{sound} of {}",
        cases.len()
    );
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bundles.json"), json!(cases).to_string()).unwrap();
    check_vectors(folder.path());
}

/// A vector that does not hold is reported, by the exit code too.
#[test]
fn a_wrong_vector_is_found() {
    let bundle = root().join("docs/evidence-vectors/bundles/valid-opened.json");
    let bundle = std::fs::read(bundle).unwrap();
    let bundle = STANDARD.encode(bundle);
    let case = json!([{"name": "wrong", "bundle_base64": bundle, "verdict": "invalid"}]);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bundles.json"), case.to_string()).unwrap();
    let output = python(&["--vectors", folder.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said.trim_end(), "bundles.json: wrong: consistent, found []");
}

fn rust(args: &[&str]) -> Output {
    let program = Command::new(env!("CARGO_BIN_EXE_countersign-verify"))
        .current_dir(root())
        .args(args)
        .output();
    program.unwrap()
}

/// A22: both programs have the same exit codes; without a trusted key nothing is valid.
#[test]
fn exit_codes_are_the_same() {
    const KEY: &str =
        "log.example.com/orders+c5fbb264+AWa+fjMsekUzMr2dCn99sFX1xe8aBq2mbZizn7aBDEc6";
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let key = file("log.pub", &format!("{KEY}\n"));
    let no_key = file("readme", "log.example.com\n");
    let good = "docs/evidence-vectors/bundles/valid-opened.json";
    let recent = "docs/evidence-vectors/bundles/v2-valid-everything.json";
    let altered = "docs/evidence-vectors/bundles/value-altered.json";
    let forged = "docs/evidence-vectors/bundles/key-exchanged.json";
    for (args, code) in [
        (&[good, "--key", KEY][..], 0),
        (&[good, "--key", &key], 0),
        (&[recent, "--key", &key], 0),
        (&[good], 4),
        (&[recent, "--json"], 4),
        (&[altered], 3),
        (&[altered, "--key", &key], 3),
        (&[forged], 3),
        (&["docs/evidence-vectors/bundles/not-json.json"], 3),
        (&["docs/evidence-vectors/bundles/absent.json"], 2),
        (&[good, "--key", "no key"], 2),
        (&[good, "--key", &no_key], 2),
        (&[good, "--key", ""], 2),
        (&[good, "--held", "absent"], 2),
        (&[], 2),
    ] {
        assert_eq!(python(args).status.code(), Some(code), "python {args:?}");
        assert_eq!(rust(args).status.code(), Some(code), "rust {args:?}");
    }
}

/// A22: what both say to programs is the same, as far as both say it.
#[test]
fn reports_are_the_same() {
    let vectors = root().join("docs/evidence-vectors/bundles");
    for name in [
        "valid-opened",
        "value-altered",
        "v2-valid-claim-outside",
        "claim-expired",
        "not-json",
    ] {
        let path = vectors.join(format!("{name}.json"));
        let args = [path.to_str().unwrap(), "--json"];
        let [theirs, mut ours] = [python(&args), rust(&args)].map(|output| -> Value {
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
        });
        for finding in ours["findings"].as_array_mut().unwrap() {
            *finding = json!({"code": finding["code"], "index": finding["index"]});
        }
        let theirs = theirs.as_object().unwrap();
        for (member, value) in theirs {
            assert_eq!(&ours[member], value, "{name}: {member}");
        }
        let both = theirs.contains_key("not_checked") == ours.get("not_checked").is_some();
        assert!(both && theirs.len() >= 3, "{name}");
    }
}
