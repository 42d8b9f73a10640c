//! The examples in the help are run as they stand, so that none of them fails.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;
use std::process::{Command, Output};

use countersign_testkit::patience::Watchdog;

/// The commands whose help has examples, in an order in which they work in one folder.
const COMMANDS: [&str; 16] = [
    "call",
    "bind",
    "tools",
    "calls",
    "approvals list",
    "claims list",
    "evidence list",
    "evidence hold",
    "evidence release",
    "replay",
    "rules",
    "demo",
    "keys create",
    "keys rotate-master",
    "doctor",
    "serve",
];

/// Marks of examples that need something only their reader has: a name from another answer, another program, a secret, or no end.
const NEEDS_MORE: [&str; 6] = [
    " ev_01",
    " order_0123",
    "$NEW",
    "| jq",
    "--rules new-rules",
    "curl ",
];

fn shell(folder: &Path, line: &str) -> Output {
    let _watchdog = Watchdog::start();
    let bin = Path::new(env!("CARGO_BIN_EXE_countersign"));
    let path = std::env::var("PATH").unwrap();
    Command::new("sh")
        .args(["-c", line])
        .current_dir(folder)
        .env(
            "PATH",
            format!("{}:{path}", bin.parent().unwrap().display()),
        )
        .env("COUNTERSIGN_DATA", folder.join("data"))
        .env("COUNTERSIGN_OPERATOR", "tester")
        .env("TMPDIR", folder)
        .env_remove("COUNTERSIGN_STORE")
        .env_remove("COUNTERSIGN_MASTER_KEY")
        .output()
        .unwrap()
}

#[test]
fn examples_in_the_help_work() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let policy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/policy.toml");
    std::fs::copy(policy, folder.join("policy.toml")).unwrap();
    let schema = r#"{"type": "object", "properties": {"query": {"type": "string"}}}"#;
    std::fs::write(folder.join("search.json"), schema).unwrap();
    std::fs::write(folder.join("answer.txt"), "{query: 'milk'}").unwrap();
    let message =
        r#"<tool_call>{"name": "memory.search", "arguments": {"query": "milk"}}</tool_call>"#;
    std::fs::write(folder.join("message.txt"), message).unwrap();
    let line = r#"{"schema": null, "raw": "{query: 1}"}"#;
    std::fs::write(folder.join("calls.jsonl"), format!("{line}\n")).unwrap();
    // Something that can be held and released.
    assert!(
        shell(
            folder,
            "countersign call notes.list --user u_7 --request-id order-4711"
        )
        .status
        .success()
    );

    let mut count = 0;
    for command in COMMANDS {
        let help = shell(folder, &format!("countersign {command} --help"));
        let help = String::from_utf8(help.stdout).unwrap();
        let examples = help
            .lines()
            .skip_while(|line| !line.starts_with("Example"))
            .skip(1)
            .take_while(|line| line.starts_with("  "));
        for example in examples.map(str::trim) {
            let is_endless = command == "serve" && !example.ends_with("--check");
            if is_endless || NEEDS_MORE.iter().any(|more| example.contains(more)) {
                continue;
            }
            let output = shell(folder, example);
            assert!(output.status.success(), "{example}\n{output:?}");
            count += 1;
        }
    }
    assert!(count >= 20, "{count} examples");
}
