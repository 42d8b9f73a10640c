//! A data folder that the program of version 1 wrote opens, verifies, and goes on with records of version 2.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// A copy of the folder, because every command writes to it.
struct Old(TempDir);

impl Old {
    fn copied() -> Self {
        let copy = tempfile::tempdir().unwrap();
        for file in fs::read_dir(original()).unwrap() {
            let file = file.unwrap().path();
            let to = copy.path().join(file.file_name().unwrap());
            fs::copy(&file, &to).unwrap();
            fs::set_permissions(&to, fs::Permissions::from_mode(0o600)).unwrap();
        }
        Self(copy)
    }

    fn run(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(args)
            .env("COUNTERSIGN_DATA", self.0.path())
            .env("COUNTERSIGN_OPERATOR", "tester")
            .env_remove("COUNTERSIGN_STORE")
            .env_remove("COUNTERSIGN_MASTER_KEY")
            .output()
            .expect("cargo has built the command before its tests")
    }

    #[track_caller]
    fn ask(&self, code: i32, args: &[&str]) -> Value {
        let output = self.run(&[args, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    /// The answer of a call that may be refused by now.
    #[track_caller]
    fn either(&self, args: &[&str]) -> Value {
        let output = self.run(&[args, &["--json"]].concat());
        serde_json::from_slice(&output.stdout).expect("a call answers")
    }

    #[track_caller]
    fn check_valid(&self) {
        let report = self.ask(0, &["verify", "--all"]);
        assert_eq!(report["valid"], true, "{report:#}");
        let unchecked = report["not_checked"].as_array().unwrap();
        let names_freshness = unchecked.iter().any(|what| what == "freshness");
        assert!(
            names_freshness,
            "version 1 says nothing about it: {report:#}"
        );
    }
}

fn original() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/folder-v1")
}

/// A16: old records keep verifying, also those that link an answer whose window was over, and new ones follow them.
#[test]
fn a_folder_of_version_1_goes_on() {
    let old = Old::copied();
    old.check_valid();
    let rows = old.ask(0, &["evidence", "list", "--limit", "50"]);
    let ids = rows.as_array().unwrap().iter();
    let of = |tool: &str| {
        let row = ids.clone().find(|row| row["tool"] == tool).unwrap();
        row["evidence"].as_str().unwrap().to_owned()
    };
    let (quote, late) = (
        of("pricing.get_realtime_quote"),
        of("evidence.create_snapshot"),
    );

    // What was sealed opens in the shape of today; what version 1 did not keep is not there.
    let payload = old.ask(0, &["evidence", "open", &quote, "--reason", "audit"]);
    assert_eq!(payload["v"], 1, "{payload:#}");
    assert_eq!(payload["arguments"]["items"][0]["sku"], "SKU-0001-01");
    assert_eq!(payload.get("raw"), None);
    let record = old.ask(0, &["evidence", "show", &late]);
    let link = &record["record"]["links"][0];
    assert_eq!(
        (&link["id"], link.get("role")),
        (&Value::from(quote.as_str()), None)
    );

    // The old key answers as it did for as long as its answer is kept, and is refused from then on; it never runs again. New records
    // join the old ones.
    let note = [
        "call",
        "notes.add",
        "--args",
        r#"{"text":"buy tea"}"#,
        "--user",
        "u_1",
    ];
    let again = old.either(&[&note[..], &["--key", "k1"]].concat());
    let is_replayed = again["replayed"] == true && again["data"]["id"] == "n_0001";
    let is_refused = again["error"]["details"]["reason"] == "key_expired";
    assert!(is_replayed || is_refused, "{again:#}");
    let reused = ["--key", "k1", "--args", r#"{"text":"buy coffee"}"#];
    let reused = old.ask(
        1,
        &[&["call", "notes.add", "--user", "u_1"][..], &reused].concat(),
    );
    let reason = &reused["error"]["details"]["reason"];
    assert!(
        *reason == "key_reused" || *reason == "key_expired",
        "{reused:#}"
    );
    let snapshot = format!(r#"{{"snapshot_ids":["{quote}"],"purpose":"dispute"}}"#);
    let dispute = [
        "call",
        "evidence.create_snapshot",
        "--user",
        "u_1",
        "--args",
        &snapshot,
    ];
    assert_eq!(old.ask(0, &dispute)["ok"], true);
    old.check_valid();

    // The old hold still holds; without it the user goes, and every proof stays.
    old.ask(1, &["evidence", "erase", "u_1", "--reason", "asked"]);
    old.ask(0, &["evidence", "release", "u_1", "--reason", "over"]);
    old.ask(0, &["evidence", "erase", "u_1", "--reason", "asked"]);
    old.check_valid();
}

/// A bundle of version 1 verifies, although its dispute bundle links a quote whose window was over.
#[test]
fn a_bundle_of_version_1_verifies() {
    let old = Old::copied();
    let path = |name: &str| old.0.path().join(name).to_string_lossy().into_owned();
    let (bundle, key) = (path("bundle.json"), path("log.pub"));
    let report = old.ask(0, &["verify", &bundle, "--key", &key]);
    assert_eq!(report["verdict"], "valid", "{report:#}");
    let unkeyed = old.ask(4, &["verify", &bundle]);
    assert_eq!(unkeyed["verdict"], "consistent", "{unkeyed:#}");
}
