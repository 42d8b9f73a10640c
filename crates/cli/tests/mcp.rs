//! `countersign mcp` as a client starts it: a process, lines in, lines out.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use countersign_testkit::patience::Watchdog;
use serde_json::{Value, json};

fn countersign(data: &Path, words: &[&str], input: &str) -> Output {
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
    let _watchdog = Watchdog::start();
    child.wait_with_output().unwrap()
}

/// It ends with its input, writes nothing but messages, and its calls are in the signed log.
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

/// A client that stays connected, as they do.
struct Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    _watchdog: Watchdog,
}

impl Client {
    fn start(data: &Path) -> Self {
        let watchdog = Watchdog::start();
        let mut child = Command::new(env!("CARGO_BIN_EXE_countersign"))
            .arg("--data")
            .arg(data)
            .args(["mcp", "--user", "u_7"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            input,
            output,
            _watchdog: watchdog,
        }
    }

    /// Calls `notes.clear`, and returns the answer in the next line.
    fn clear(&mut self) -> Value {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({ "_meta": meta, "name": "notes_clear", "arguments": {} });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        writeln!(self.input, "{call}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Hangs up; nothing but its answers was on stdout.
    fn hang_up(mut self) {
        drop(self.input);
        let mut rest = String::new();
        self.output.read_line(&mut rest).unwrap();
        assert_eq!(rest, "");
        assert!(self.child.wait().unwrap().success());
    }
}

/// A13: a call is confirmed from another process while the client is connected, and only the operator gets in by that door.
#[test]
fn a_confirmation_is_given_while_the_client_is_connected() {
    let folder = tempfile::tempdir().unwrap();
    // Where a path is too long for a socket, the door is a port of this machine.
    for data in ["data".to_owned(), "d".repeat(120)] {
        confirm_in(&folder.path().join(data));
    }
}

fn confirm_in(data: &Path) {
    let mut client = Client::start(data);
    let refused = client.clear();
    assert_eq!(refused["result"]["isError"], true, "{refused}");

    let announced = data.join("server.json");
    let door: Value = serde_json::from_slice(&std::fs::read(&announced).unwrap()).unwrap();
    let key = countersign(data, &["keys", "create", "--user", "u_7"], "");
    assert!(key.status.success(), "{key:?}");
    let key = String::from_utf8(key.stdout).unwrap();
    let socket = data.join("countersign.sock");
    assert_eq!(socket.exists(), door["url"].is_null(), "{door}");
    for path in ["/v1/tools", "/v1/calls", "/mcp"] {
        let Some(url) = door["url"].as_str() else {
            break;
        };
        let address = url.trim_start_matches("http://");
        assert!(address.starts_with("127.0.0.1:"), "{address}");
        let bearer = format!("authorization: Bearer {}", key.trim());
        for header in ["x-none: none", &bearer] {
            assert_eq!(status(address, path, header), 401, "{path} {header}");
        }
    }

    let listed = countersign(data, &["approvals", "list", "--json"], "");
    assert!(listed.status.success(), "{listed:?}");
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let id = listed[0]["id"].as_str().unwrap();
    let said = countersign(data, &["approvals", "approve", id], "");
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(
        said.contains("approved: the call of notes.clear of u_7"),
        "{said}"
    );
    let done = client.clear();
    assert_eq!(done["result"]["structuredContent"]["cleared"], 0, "{done}");
    let calls = countersign(data, &["calls", "--json", "--tool", "notes.clear"], "");
    let calls: Value = serde_json::from_slice(&calls.stdout).unwrap();
    assert_eq!(calls.as_array().unwrap().len(), 2, "{calls}");

    client.hang_up();
    assert!(!announced.exists() && !socket.exists());
    let verified = countersign(data, &["verify", "--all"], "");
    assert!(verified.status.success(), "{verified:?}");
}

fn status(address: &str, path: &str, header: &str) -> u16 {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: {address}\r\n{header}\r\nconnection: close\r\n\r\n"
    )
    .unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line.split(' ').nth(1).unwrap().parse().unwrap()
}
