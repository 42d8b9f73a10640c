//! A call whose process was killed during an effect elsewhere, found by every key that people have at hand.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use std::fs;
use std::io::{BufRead as _, BufReader};
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
