//! Every command with `--json`: what is on stdout is JSON, a value a line.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use countersign_testkit::patience::Watchdog;
use serde_json::Value;
use tempfile::TempDir;

/// Commands that talk to another program on stdout, or run until they are stopped. Tests of their own play them.
const NOT_HERE: [&str; 5] = ["help", "mcp", "serve", "witness", "wrap"];

/// The arguments of every command but for [`NOT_HERE`]; `{}` stands for the id of a record, `{key}` for that of an API key,
/// `{dir}` for a folder.
const CASES: [&str; 65] = [
    "approvals list",
    "approvals show ap_000000000000",
    "approvals approve ap_000000000000",
    "approvals deny ap_000000000000",
    "attention",
    "grants list --user ann",
    "grants make --user ann --to agent:shopper --tool notes.clear --calls 3 --until 7d",
    "grants revoke gr_000000000000 --reason none",
    "grants show gr_000000000000",
    "bind memory.search --args {query:'x'}",
    "call notes.list",
    "calls",
    "call-show {}",
    "case {}",
    "claims list",
    "claims forget --days 30 --reason x",
    "claims resolve u_7 notes.add 00000000 --did-not-happen --reason x",
    "claims resolve u_7 notes.add 00000000 --ask",
    "completions bash",
    "config show",
    "config schema",
    "console",
    "demo --pace fast",
    "doctor",
    "drill",
    "evidence list",
    "evidence show {}",
    "evidence open {} --reason x",
    "evidence export {}",
    "evidence key",
    "evidence trail",
    "evidence hold u_local --reason x",
    "evidence holds",
    "evidence release u_local --reason x",
    "import openapi tests/cmd/pets.openapi.yaml",
    "import mcp --offline -- cat",
    "init --yes --config {dir}/countersign.toml",
    "keys create --user ann",
    "keys list",
    "keys rotate {key}",
    "keys revoke {key}",
    "keys rotate-master",
    "lint {dir}/countersign.toml",
    "man {dir}/man",
    "notify list",
    "notify test",
    "notify retry ops",
    "policy check",
    "policy explain {}",
    "policy replay --policy {dir}/none.toml",
    "policy report",
    "policy test {dir}/none.toml",
    "record",
    "replay",
    "rules",
    "rules show vat",
    "status",
    "store trust-clock --reason x",
    "store backup {dir}/backup.db",
    "store migrate --to postgres://nobody@127.0.0.1:1/none",
    "tools",
    "top --once",
    "upstreams list",
    "upstreams diff none",
    "upstreams approve none",
];

/// Further ones, at the end, because they end what the others need.
const LAST: [&str; 3] = [
    "verify --all",
    "evidence erase u_local --reason x",
    "store restore {dir}/backup.db",
];

struct Place {
    folder: TempDir,
}

impl Place {
    fn run(&self, words: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(words)
            .env("COUNTERSIGN_DATA", self.folder.path().join("data"))
            .env_remove("COUNTERSIGN_STORE")
            .env_remove("COUNTERSIGN_MASTER_KEY")
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    fn json(&self, words: &[&str]) -> Vec<Value> {
        let output = self.run(&[&["--json"], words].concat());
        let out = String::from_utf8(output.stdout).unwrap();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!err.contains("unexpected argument"), "{words:?}: {err}");
        let parsed = out.lines().map(|line| {
            serde_json::from_str(line)
                .unwrap_or_else(|error| panic!("{words:?}: {error} in {line:?}, {err}"))
        });
        let parsed: Vec<Value> = parsed.collect();
        // Whoever gets no JSON gets an error, and an exit code that says so.
        let is_answered = !parsed.is_empty();
        let is_error = !output.status.success() && err.contains("error: ");
        assert!(is_answered || is_error, "{words:?}: {out:?} {err:?}");
        parsed
    }

    /// The commands that the help of a command lists; none if it has no subcommands.
    fn below(&self, command: &[&str]) -> Vec<String> {
        let output = self.run(&[command, &["--help"]].concat());
        let help = String::from_utf8(output.stdout).unwrap();
        let Some((_, list)) = help.split_once("Commands:\n") else {
            return Vec::new();
        };
        let lines = list.lines().take_while(|line| line.starts_with("  "));
        // A long description goes on in a line that is indented deeper.
        let names = lines.filter(|line| !line.starts_with("    "));
        let names = names.filter_map(|line| line.split_whitespace().next());
        names.map(str::to_owned).collect()
    }

    /// All commands that can be run.
    fn leaves(&self, command: &[&str], found: &mut BTreeSet<String>) {
        let below = self.below(command);
        let is_optional = command == ["rules"];
        if below.is_empty() || is_optional {
            found.insert(command.join(" "));
        }
        for name in below.iter().filter(|name| *name != "help") {
            self.leaves(&[command, &[name.as_str()]].concat(), found);
        }
    }
}

fn words_of(case: &str, record: &str, key: &str, folder: &Path) -> Vec<String> {
    let folder = folder.display().to_string();
    let word = |word: &str| match word {
        "{}" => record.to_owned(),
        "{key}" => key.to_owned(),
        word => word.replace("{dir}", &folder),
    };
    case.split(' ').map(word).collect()
}

/// U4: every command writes JSON with `--json`. A new command needs a line in this test.
#[test]
fn every_command_writes_json() {
    let _watchdog = Watchdog::start();
    let place = Place {
        folder: tempfile::tempdir().unwrap(),
    };
    let mut leaves = BTreeSet::new();
    place.leaves(&[], &mut leaves);
    assert!(leaves.len() > 40, "{leaves:?}");
    let played: BTreeSet<String> = leaves
        .iter()
        .filter(|leaf| {
            let is_case = |case: &&str| **case == **leaf || case.starts_with(&format!("{leaf} "));
            CASES.iter().chain(&LAST).any(is_case)
        })
        .cloned()
        .collect();
    let missing: Vec<_> = leaves.difference(&played).collect();
    let missing: Vec<_> = missing
        .into_iter()
        .filter(|leaf| !NOT_HERE.contains(&leaf.as_str()))
        .collect();
    assert!(missing.is_empty(), "no case for {missing:?}");

    let made = place.json(&["call", "notes.add", "--args", "{text: 'tea'}"]);
    let made = made.first().unwrap();
    let record = made.pointer("/evidence/snapshot_id").unwrap();
    let key = place.json(&["keys", "create", "--user", "bob"]);
    let key = key.first().unwrap().pointer("/key/id").unwrap();
    for case in CASES.iter().chain(&LAST) {
        let words = words_of(
            case,
            record.as_str().unwrap(),
            key.as_str().unwrap(),
            place.folder.path(),
        );
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        place.json(&words);
    }
}
