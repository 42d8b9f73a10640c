//! The guarantees, tried on an operator's own configuration: `countersign drill`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::process::{Command, Output};

use countersign_testkit::patience::Watchdog;
use serde_json::Value;
use tempfile::TempDir;

const POLICY: &str = r#"
[defaults]
unlisted = "deny"
[[tools]]
match = "notes.*"
confirm = "always"
[[tools]]
match = "cart.*"
scopes = ["cart"]
"#;

/// Runs the command in a folder with these files; effects happen so often.
fn drill(folder: &TempDir, files: &[(&str, &str)], times: &str) -> Output {
    let _watchdog = Watchdog::start();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(["drill", "--json", "--junit", "drill.xml", "--times", times])
        .current_dir(folder.path())
        .env("COUNTERSIGN_DATA", folder.path().join("data"))
        .env_remove("COUNTERSIGN_STORE")
        .env_remove("COUNTERSIGN_MASTER_KEY")
        .output()
        .unwrap()
}

/// The outcomes, by guarantee.
#[track_caller]
fn outcomes(output: &Output, code: i32) -> Vec<(String, String)> {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |row: &Value, member: &str| row[member].as_str().unwrap().to_owned();
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| (text(row, "guarantee"), text(row, "outcome")))
        .collect()
}

/// A4, A13, A17, A18, A19, A22: everything holds on the shop and under a policy that denies, asks and wants scopes; the real folder is
/// not touched.
#[test]
fn the_guarantees_hold_on_any_configuration() {
    let shop = "[shop]\nenabled = true\n";
    let strict = format!("policy = \"policy.toml\"\n{shop}");
    for config in [shop, &strict] {
        let folder = tempfile::tempdir().unwrap();
        let files = [("countersign.toml", config), ("policy.toml", POLICY)];
        let output = drill(&folder, &files, "1");
        let outcomes = outcomes(&output, 0);
        assert_eq!(outcomes.len(), 15);
        for (guarantee, outcome) in outcomes {
            assert_eq!(outcome, "held", "{guarantee}");
        }
        assert!(
            !folder.path().join("data").exists(),
            "the real store is not opened"
        );
        let junit = std::fs::read_to_string(folder.path().join("drill.xml")).unwrap();
        assert!(
            junit.contains(r#"tests="15" failures="0" skipped="0""#),
            "{junit}"
        );
    }
}

/// A4, A13: also where every tool needs a confirmation, the race and the kill are tried: the drill confirms as the user does.
#[test]
fn a_tool_that_needs_a_confirmation_is_tried() {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        (
            "countersign.toml",
            "policy = \"policy.toml\"\n[shop]\nenabled = true\n",
        ),
        (
            "policy.toml",
            "[defaults]\nunlisted = \"deny\"\n[[tools]]\nmatch = \"notes.add\"\nconfirm = \"always\"\n",
        ),
    ];
    let outcomes = outcomes(&drill(&folder, &files, "1"), 0);
    for wanted in [
        "twenty calls at once with one key run once",
        "kill -9 loses and doubles nothing",
    ] {
        let found = outcomes.iter().find(|(guarantee, _)| guarantee == wanted);
        let outcome = found.map(|(_, outcome)| outcome.as_str());
        assert_eq!(outcome, Some("held"), "{wanted}");
    }
}

/// Tools that do everything twice are found out: the checks can fail.
#[test]
fn a_broken_guarantee_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let files = [("countersign.toml", "[shop]\nenabled = true\n")];
    let outcomes = outcomes(&drill(&folder, &files, "2"), 1);
    let broken = outcomes.iter().filter(|(_, outcome)| outcome == "broken");
    let broken: Vec<&str> = broken.map(|(guarantee, _)| guarantee.as_str()).collect();
    assert_eq!(
        broken,
        [
            "an unknown argument is refused",
            "a dry run changes nothing",
            "a repeated key runs once",
            "a key with other arguments is refused",
            "twenty calls at once with one key run once",
            "a call that needs a person waits for one",
            "kill -9 loses and doubles nothing",
        ]
    );
}

/// What cannot be tried is said, never passed over: a configuration without a tool that changes something.
#[test]
fn what_cannot_be_tried_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let outcomes = outcomes(&drill(&folder, &[("countersign.toml", "")], "1"), 0);
    let repeat = outcomes
        .iter()
        .find(|(guarantee, _)| guarantee == "a repeated key runs once");
    assert_eq!(
        repeat.map(|(_, outcome)| outcome.as_str()),
        Some("not checked")
    );
}

/// Runs the command on a folder with a shop.
fn run(folder: &TempDir, args: &[&str]) -> Output {
    let _watchdog = Watchdog::start();
    std::fs::write(
        folder.path().join("countersign.toml"),
        "[shop]\nenabled = true\n",
    )
    .unwrap();
    Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(args)
        .current_dir(folder.path())
        .env("COUNTERSIGN_DATA", folder.path().join("data"))
        .env_remove("COUNTERSIGN_STORE")
        .env_remove("COUNTERSIGN_MASTER_KEY")
        .output()
        .unwrap()
}

/// The newest backup of the real store is restored into the scratch folder and verified there, with the keys beside it or those of the
/// data folder; one with a changed byte is found out. The backup and the store stay as they are.
#[test]
fn the_newest_backup_is_restored() {
    let folder = tempfile::tempdir().unwrap();
    let backups = folder.path().join("backups");
    std::fs::create_dir(&backups).unwrap();
    let add = [
        "call",
        "notes.add",
        "--user",
        "ann",
        "--args",
        "{text: milk}",
    ];
    assert_eq!(run(&folder, &add).status.code(), Some(0));
    for args in [
        &["store", "backup", "backups/a.db"][..],
        &["store", "backup", "backups/b.db", "--with-keys"],
    ] {
        let made = run(&folder, args);
        assert_eq!(made.status.code(), Some(0), "{made:?}");
    }
    let newest = "the newest backup can be restored, and verifies";
    let drill = |backup: &str, code: i32| {
        let output = run(&folder, &["drill", "--json", "--backup", backup]);
        let outcomes = outcomes(&output, code);
        assert_eq!(outcomes.len(), 16);
        let found = outcomes
            .into_iter()
            .find(|(guarantee, _)| guarantee == newest);
        found.unwrap().1
    };
    let before = std::fs::read(backups.join("b.db")).unwrap();
    assert_eq!(drill("backups", 0), "held");
    assert_eq!(drill("backups/a.db", 0), "held");
    assert_eq!(std::fs::read(backups.join("b.db")).unwrap(), before);
    let mut damaged = before;
    let at = damaged
        .windows(8)
        .rposition(|bytes| bytes == b"\"request")
        .unwrap();
    *damaged.get_mut(at + 1).unwrap() ^= 1;
    std::fs::write(backups.join("b.db"), damaged).unwrap();
    assert_eq!(drill("backups", 1), "broken");
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    assert_eq!(drill("empty", 1), "broken");
}
