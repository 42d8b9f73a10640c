//! A call whose process was killed during an effect elsewhere, found by every key that people have at hand.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use countersign_testkit::patience::Watchdog;
use serde_json::Value;
use tempfile::TempDir;

struct Folder(TempDir);

impl Folder {
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
        command
            .args(words)
            .current_dir(self.0.path())
            .env("COUNTERSIGN_DATA", self.0.path().join("data"))
            .env_remove("COUNTERSIGN_STORE")
            .env_remove("COUNTERSIGN_MASTER_KEY");
        command
    }

    fn run(&self, words: &[&str]) -> (Option<i32>, String, String) {
        let output = self.command(words).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    }

    fn json(&self, words: &[&str]) -> Value {
        let (code, out, err) = self.run(&[words, &["--json"]].concat());
        assert_eq!(code, Some(0), "{words:?} {err}");
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out:?} {err}"))
    }
}

/// Waits for a request, and gives the idempotency key that came with it. The answer never comes.
fn key_of_request(listener: &TcpListener) -> (String, std::net::TcpStream) {
    let (stream, _) = listener.accept().unwrap();
    let reader = BufReader::new(stream.try_clone().unwrap());
    let mut key = None;
    for line in reader.lines() {
        let line = line.unwrap();
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("idempotency-key")
        {
            key = Some(value.trim().to_owned());
        }
        if line.is_empty() {
            break;
        }
    }
    (key.unwrap(), stream)
}

/// F8, A9, A16: the call has an intent and no final record. Its request id, the caller's key and the service's key find it,
/// and an operator settles it by the key of the service.
#[test]
fn a_call_that_was_killed_is_found_by_each_key() {
    let _watchdog = Watchdog::start();
    let folder = Folder(tempfile::tempdir().unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let config = format!(
        "[[upstream]]\nname = \"orders\"\nbase_url = \"http://{address}\"\nallow_private = [\"loopback\"]\n\n\
         [[tool]]\nname = \"orders.place\"\nupstream = \"orders\"\ndescription = \"Places an order.\"\n\
         effect = \"external\"\nparameters = [{{ name = \"sku\" }}]\n"
    );
    fs::write(folder.0.path().join("countersign.toml"), config).unwrap();
    let words = [
        "call",
        "orders.place",
        "--args",
        "{sku: 'a1'}",
        "--user",
        "u_7",
        "--key",
        "order-4711",
        "--request-id",
        "r_1",
    ];
    let mut child = folder
        .command(&words)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (service_key, _stream) = key_of_request(&listener);
    child.kill().unwrap();
    child.wait().unwrap();

    let claims = folder.json(&["claims", "list"]);
    let digest = claims[0]["key"].as_str().unwrap().to_owned();
    assert_eq!(claims[0]["service_key"], service_key.as_str());
    for key in ["order-4711", &service_key, &digest, &digest[..16]] {
        let found = folder.json(&["claims", "list", "--key", key]);
        assert_eq!(found, claims, "{key}");
        let shown = folder.json(&["call-show", key]);
        assert_eq!(shown[0]["kind"], "intent", "{key} {shown:#}");
        assert_eq!(shown[0]["act"]["tool"], "orders.place");
    }
    for id in [
        &["call-show", "r_1", "--user", "u_7"][..],
        &["call-show", "r_1"],
    ] {
        assert_eq!(folder.json(id)[0]["kind"], "intent");
    }
    let (_, shown, said) = folder.run(&["call-show", "order-4711"]);
    assert!(shown.contains("kind: intent"), "{shown}");
    assert!(said.contains("has no final record"), "{said}");
    let (code, _, said) = folder.run(&["call-show", "order-4712"]);
    assert_eq!(code, Some(1), "{said}");
    let found = folder.json(&["claims", "list", "--key", "order-4712"]);
    assert_eq!(found, serde_json::json!([]));
    // A call that has not ended is no call of the list.
    assert_eq!(folder.json(&["calls"]), serde_json::json!([]));
    folder.json(&["verify", "--all"]);
}

/// Answers a request with a JSON body, and closes the connection.
fn answer(listener: &TcpListener, body: &str) -> String {
    let (key, mut stream) = key_of_request(listener);
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    key
}

/// A17, T8: an operator has the tool asked what became of a call in doubt that no caller repeats. What it says settles the call, and its
/// record names the operator.
#[test]
fn an_operator_has_the_tool_asked() {
    let _watchdog = Watchdog::start();
    let folder = Folder(tempfile::tempdir().unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let config = format!(
        "[[upstream]]\nname = \"orders\"\nbase_url = \"http://{address}\"\nallow_private = [\"loopback\"]\n\n\
         [[tool]]\nname = \"orders.place\"\nupstream = \"orders\"\ndescription = \"Places an order.\"\n\
         effect = \"external\"\nparameters = [{{ name = \"sku\" }}]\nrecovery.reconcile.grace_seconds = 0\n"
    );
    fs::write(folder.0.path().join("countersign.toml"), config).unwrap();
    let call = [
        "call",
        "orders.place",
        "--args",
        "{sku: 'a1'}",
        "--user",
        "u_7",
    ];
    let service = std::thread::spawn(move || {
        let (lost, stream) = key_of_request(&listener);
        drop(stream);
        let unknown = answer(&listener, r#"{"outcome": "unknown"}"#);
        let found = answer(
            &listener,
            r#"{"outcome": "happened", "data": {"order": 7}}"#,
        );
        [lost, unknown, found]
    });
    let (code, _, said) = folder.run(&call);
    assert_eq!(code, Some(1), "{said}");
    let claims = folder.json(&["claims", "list", "--state", "in_doubt"]);
    let key = claims[0]["key"].as_str().unwrap().to_owned();
    let ask = ["claims", "resolve", "u_7", "orders.place", &key, "--ask"];
    let (code, _, said) = folder.run(&ask);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("could not tell"), "{said}");
    let settled = folder.json(&ask);
    assert_eq!(settled["happened"], true);
    let keys = service.join().unwrap();
    assert!(keys.iter().all(|own| *own == keys[0]), "{keys:?}");
    let claims = folder.json(&["claims", "list"]);
    assert_eq!(claims[0]["state"], "succeeded");
    let record = settled["evidence"].as_str().unwrap();
    let shown = folder.json(&["evidence", "show", record]);
    let actor = shown["record"]["actor"]["id"].as_str().unwrap();
    assert!(actor.starts_with("operator/"), "{shown:#}");
    let (code, _, said) = folder.run(&ask);
    assert_eq!(code, Some(2), "{said}");
    folder.json(&["verify", "--all"]);
}
