//! Evidence in the formats of others, read by programs that others wrote: packages of the Python package index.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use countersign_testkit::patience::Watchdog;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The Python with the packages, which `cargo xtask test` makes.
fn python() -> PathBuf {
    let named = std::env::var_os("COUNTERSIGN_TEST_OUTSIDE_PYTHON");
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-outside-python");
    named.map_or_else(|| own.join("bin/python3"), PathBuf::from)
}

/// What the packages of others say.
fn others(words: &[&str]) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/outside/check.py");
    let output = Command::new(python())
        .arg(script)
        .args(words)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap_or_else(|error| {
            panic!("{error}: `cargo xtask outside --set-up` makes the Python that is needed")
        });
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A data folder with some calls in its log.
struct World {
    folder: TempDir,
    /// Ids of the records.
    records: Vec<String>,
    _watchdog: Watchdog,
}

impl World {
    fn new() -> Self {
        let mut world = Self {
            folder: tempfile::tempdir().unwrap(),
            records: Vec::new(),
            _watchdog: Watchdog::start(),
        };
        for (tool, words) in [
            ("notes.add", &["--args", r#"{"text": "tea"}"#][..]),
            ("notes.list", &[]),
            ("notes.add", &["--args", r#"{"text": 1.5e3}"#, "--dry-run"]),
            ("notes.add", &["--args", "{}"]),
            ("notes.add", &["--args", "no json"]),
            (
                "sample.vat",
                &["--args", r#"{"net_cents": 1000, "country": "DE"}"#],
            ),
            ("notes.list", &["--actor", "agent:a_7", "--session", "s_1"]),
        ] {
            let call = [&["call", tool, "--user", "u_7", "--json"], words].concat();
            let reply: Value = serde_json::from_slice(&world.run(&call).stdout).unwrap();
            let id = reply["evidence"]["snapshot_id"].as_str().unwrap();
            world.records.push(id.to_owned());
        }
        world.written(&["evidence", "key", "--pem"], "log.pem");
        world.written(&["evidence", "key"], "log.pub");
        world
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
        command
            .args(words)
            .current_dir(self.folder.path())
            .env("COUNTERSIGN_DATA", self.folder.path().join("data"))
            .env("COUNTERSIGN_OPERATOR", "tester")
            .env_remove("COUNTERSIGN_STORE")
            .env_remove("COUNTERSIGN_MASTER_KEY");
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// What a command writes, also as a file of this name.
    fn written(&self, words: &[&str], name: &str) -> Vec<u8> {
        let output = self.run(words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {said}");
        fs::write(self.path(name), &output.stdout).unwrap();
        output.stdout
    }

    fn export(&self, record: &str, format: &str, name: &str) -> Vec<u8> {
        let words = ["evidence", "export", record, "--format", format];
        self.written(&words, name)
    }

    fn verify(&self, name: &str) -> (Option<i32>, Value) {
        let output = self.run(&["verify", name, "--key", "log.pub", "--json"]);
        let said = String::from_utf8_lossy(&output.stdout);
        let report = serde_json::from_str(&said);
        (output.status.code(), report.unwrap_or_else(|_| json!(said)))
    }
}

/// Every record is a SCITT statement with a COSE receipt, which a package that others wrote verifies.
#[test]
fn others_verify_statements_and_receipts() {
    let world = World::new();
    let pem = world.path("log.pem");
    for record in &world.records {
        let statement = world.path("record.scitt");
        world.export(record, "scitt", "record.scitt");
        let said = others(&["scitt", &statement, &pem]);
        assert_eq!(said["verified"], true, "{said:#}");
        assert_eq!(said["subject"], record.as_str());
        assert_eq!(said["record"]["id"], record.as_str());
        assert_eq!(said["content_type"], "application/json");
        let [receipt] = said["receipts"].as_array().unwrap().as_slice() else {
            panic!("{said:#}");
        };
        assert_eq!(
            (&receipt["ok"], &receipt["subject"], &receipt["issuer"]),
            (&json!(true), &json!(record), &said["issuer"]),
            "{said:#}"
        );

        let (code, ours) = world.verify("record.scitt");
        assert_eq!((code, &ours["valid"]), (Some(0), &json!(true)), "{ours:#}");
        assert_eq!(
            (&ours["evidence"], &ours["index"], &ours["size"]),
            (
                &json!(record),
                &receipt["leaf_index"],
                &receipt["tree_size"]
            )
        );
        assert_eq!(
            ours["root"],
            format!("sha256:{}", receipt["root"].as_str().unwrap())
        );

        // The receipt alone, for the leaf that the trail of the record has.
        world.export(record, "cose-receipt", "record.receipt");
        let leaf = serde_json::to_string(&said["record"]).unwrap();
        fs::write(world.path("leaf"), leaf).unwrap();
        let alone = others(&[
            "receipt",
            &world.path("record.receipt"),
            &pem,
            &world.path("leaf"),
        ]);
        assert_eq!(&alone, receipt);
    }
    // The key id is the one that the command shows.
    let key: Value =
        serde_json::from_slice(&world.run(&["evidence", "key", "--json"]).stdout).unwrap();
    let said = others(&["scitt", &world.path("record.scitt"), &pem]);
    assert_eq!(said["receipts"][0]["kid"], key["kid"]);
}

/// A statement in which one byte differs is refused by us, and by others wherever they look.
#[test]
fn an_altered_statement_is_refused() {
    let world = World::new();
    let whole = world.export(&world.records[3], "scitt", "record.scitt");
    for at in [0, 5, 60, whole.len() / 2, whole.len() - 1] {
        let mut altered = whole.clone();
        altered[at] ^= 1;
        fs::write(world.path("altered.scitt"), &altered).unwrap();
        let (code, report) = world.verify("altered.scitt");
        assert_eq!(code, Some(3), "byte {at}: {report:#}");
    }
    let mut altered = whole;
    let at = altered.len() - 1;
    altered[at] ^= 1;
    fs::write(world.path("altered.scitt"), &altered).unwrap();
    let said = others(&[
        "scitt",
        &world.path("altered.scitt"),
        &world.path("log.pem"),
    ]);
    assert_eq!(said["verified"], false, "{said:#}");
}

/// A tlog-proof carries its record, and the command verifies it without the store.
#[test]
fn a_tlog_proof_stands_alone() {
    let world = World::new();
    let proof = world.export(&world.records[0], "tlog-proof", "record.tlog-proof");
    let text = String::from_utf8(proof).unwrap();
    assert!(text.starts_with("c2sp.org/tlog-proof@v1\nextra "), "{text}");
    let (code, report) = world.verify("record.tlog-proof");
    assert_eq!(
        (code, &report["valid"]),
        (Some(0), &json!(true)),
        "{report:#}"
    );
    assert_eq!(report["evidence"], world.records[0].as_str());
    let altered = text.replacen("index 0", "index 1", 1);
    assert_ne!(altered, text);
    fs::write(world.path("altered.tlog-proof"), altered).unwrap();
    let (code, report) = world.verify("altered.tlog-proof");
    assert_eq!(code, Some(3), "{report:#}");
    // Without a key there is nothing to believe.
    let output = world.run(&["verify", "record.tlog-proof"]);
    assert_eq!(output.status.code(), Some(2));
}

/// Every line of the trail is an API Activity event, by a model of the schema that others wrote, and has nothing else.
#[test]
fn others_read_the_trail_as_ocsf() {
    let world = World::new();
    let reason = ["--reason", "a look"];
    let open = ["evidence", "open", world.records[0].as_str()];
    world.run(&[&open[..], &reason].concat());
    world.run(&[&["evidence", "erase", "u_7"], &reason[..]].concat());
    let lines = world.written(
        &["evidence", "trail", "--format", "ocsf", "--users"],
        "events",
    );
    let said = others(&["ocsf", &world.path("events")]);
    assert_eq!(said["faults"], json!([]), "{said:#}");
    let count = String::from_utf8(lines).unwrap().lines().count();
    assert!(count >= world.records.len() + 2, "{count} lines");
    assert_eq!(said["events"], count);
}

/// A server gives the same bytes over HTTP as the command beside it: signatures are deterministic.
#[test]
fn a_server_gives_what_the_command_writes() {
    let world = World::new();
    let server = Server::start(&world);
    let record = &world.records[0];
    for (format, path) in [("scitt", "statement"), ("cose-receipt", "receipt")] {
        let written = world.export(record, format, "written");
        let (head, body) = server.get(&format!("/v1/evidence/{record}/{path}"));
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        let kind = format!("content-type: application/scitt-{path}+cose");
        assert!(head.to_lowercase().contains(&kind), "{head}");
        assert_eq!(body, written, "{format}");
    }
    let (head, _) = server.get("/v1/evidence/ev_none/statement");
    assert!(head.starts_with("HTTP/1.1 404 "), "{head}");
}

/// A server on the data folder of a world; it ends with the test.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(world: &World) -> Self {
        let words = ["serve", "--json", "--listen", "127.0.0.1:0"];
        let mut child = world
            .command(&words)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = child.stdout.as_mut().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        let url = said["url"].as_str().unwrap();
        let address = url.trim_start_matches("http://").to_owned();
        Self { child, address }
    }

    /// Head and body of an answer.
    fn get(&self, path: &str) -> (String, Vec<u8>) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let host = &self.address;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"
        )
        .unwrap();
        let mut wire = Vec::new();
        stream.read_to_end(&mut wire).unwrap();
        let end = wire
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .unwrap();
        let body = wire.split_off(end + 4);
        (String::from_utf8(wire).unwrap(), body)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended already, unless the test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Pieces of the trail, one after the other, are the trail.
#[test]
fn the_trail_goes_on_where_it_stopped() {
    let world = World::new();
    let whole = world.written(&["evidence", "trail"], "whole");
    let whole: Vec<Value> = lines(&whole);
    let (mut pieces, mut after) = (Vec::new(), None::<String>);
    loop {
        let mut words = vec!["evidence", "trail", "--limit", "3"];
        if let Some(after) = &after {
            words.extend(["--after", after]);
        }
        let piece = lines(&world.written(&words, "piece"));
        let Some(last) = piece.last() else { break };
        after = Some(last["index"].to_string());
        pieces.extend(piece);
    }
    assert!(whole.len() >= world.records.len());
    assert_eq!(pieces, whole);
}

fn lines(text: &[u8]) -> Vec<Value> {
    let text = str::from_utf8(text).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
