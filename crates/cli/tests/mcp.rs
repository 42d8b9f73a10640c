//! `countersign mcp` as a client starts it: a process, lines in, lines out.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

fn countersign(data: &std::path::Path, words: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .arg("--data")
        .arg(data)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

/// It ends with its input, writes nothing but messages, and what was done is in the signed log.
#[test]
fn a_client_that_hangs_up_gets_its_answers() {
    let data = tempfile::tempdir().unwrap();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "dev.countersign/idempotency_key": "k_1",
    });
    let call = |id: u32| {
        let params = json!({ "_meta": meta, "name": "notes_add", "arguments": "{text: 'milk'}" });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    let input = format!("noise\n{}\n{}\n", call(1), call(2));
    let output = countersign(data.path(), &["mcp", "--user", "u_7"], &input);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers.len(), 2, "{text}");
    for answer in &answers {
        assert_eq!(
            answer["result"]["structuredContent"]["id"], "n_0001",
            "{answer}"
        );
    }
    let verified = countersign(data.path(), &["verify", "--all"], "");
    assert!(verified.status.success(), "{verified:?}");
    let calls = countersign(data.path(), &["calls", "--user", "u_7", "--json"], "");
    let calls = String::from_utf8(calls.stdout).unwrap();
    assert_eq!(calls.matches("notes.add").count(), 2, "{calls}");
}
