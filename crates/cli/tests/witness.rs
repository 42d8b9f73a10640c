//! T19: a log that was put back or has a second history is noticed, by a witness that is a process of its own and by the
//! comparison at a start.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use countersign_evidence::checkpoint::Checkpoint;
use countersign_evidence::cosignature::WitnessKey;
use countersign_evidence::note::{Note, SigningKey};
use countersign_evidence::tile::{TileMap, TileWriter};
use countersign_evidence::tree::{consistency_proof, leaf_hash};
use countersign_evidence::witness::AddCheckpoint;
use countersign_testkit::patience::Watchdog;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A process that says in its first line where it listens.
struct Running {
    child: Child,
    said: Value,
    address: String,
}

impl Running {
    fn start(mut command: Command) -> Self {
        let mut child = command
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
        Self {
            child,
            said,
            address,
        }
    }

    /// Status and body of a request.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = self.send(method, path, body);
        let mut wire = String::new();
        stream.read_to_string(&mut wire).unwrap();
        let (head, body) = wire.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, body.to_owned())
    }

    fn send(&self, method: &str, path: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let (host, length) = (&self.address, body.len());
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        stream
    }

    fn stop(mut self) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(sent.unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already, unless the test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder with the data of a log, its configurations, and the folder of a witness.
struct World {
    folder: TempDir,
    _watchdog: Watchdog,
}

impl World {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            _watchdog: Watchdog::start(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
        command
            .args(words)
            .current_dir(self.folder.path())
            .env("COUNTERSIGN_DATA", self.path("data"))
            .env("COUNTERSIGN_OPERATOR", "tester")
            .env_remove("COUNTERSIGN_STORE")
            .env_remove("COUNTERSIGN_MASTER_KEY");
        command
    }

    #[track_caller]
    fn run(&self, code: i32, words: &[&str]) -> Output {
        let output = self.command(words).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{words:?}: {output:?}");
        output
    }

    #[track_caller]
    fn told(&self, code: i32, words: &[&str]) -> String {
        String::from_utf8(self.run(code, words).stderr).unwrap()
    }

    fn gateway(&self, config: &str) -> Running {
        let words = [
            "serve",
            "--json",
            "--listen",
            "127.0.0.1:0",
            "--config",
            config,
        ];
        Running::start(self.command(&words))
    }

    fn witness(&self, log: &str) -> Running {
        let words = [
            &[
                "witness",
                "--json",
                "--folder",
                "witness",
                "--listen",
                "127.0.0.1:0",
            ][..],
            &["--name", "witness.example/w1", "--log", log],
        ];
        Running::start(self.command(&words.concat()))
    }

    /// Puts one folder in the place of another, as a snapshot of a machine does.
    fn put_back(&self, from: &str, to: &str) {
        let _ = fs::remove_dir_all(self.path(to));
        let copied = Command::new("cp")
            .arg("-a")
            .args([self.path(from), self.path(to)])
            .status();
        assert!(copied.unwrap().success());
    }
}

#[track_caller]
fn note(gateway: &Running, text: &str) {
    let body = json!({"arguments": {"text": text}}).to_string();
    let (status, reply) = gateway.ask("POST", "/v1/tools/notes.add", &body);
    assert_eq!(status, 200, "{reply}");
}

/// Waits until the served checkpoint has more records than this and the witness's signature; returns it.
fn cosigned(gateway: &Running, key: &WitnessKey, more_than: u64) -> Checkpoint {
    loop {
        let (status, text) = gateway.ask("GET", "/v1/log/checkpoint", "");
        assert_eq!(status, 200, "{text}");
        let note = Note::parse(&text).unwrap();
        let checkpoint: Checkpoint = note.text.parse().unwrap();
        if checkpoint.size > more_than && key.verify(&note).is_ok() {
            return checkpoint;
        }
        std::thread::yield_now();
    }
}

/// The point of the doctor's answer with this name.
fn point(world: &World, config: &str, what: &str) -> Value {
    let mut doctor = world.command(&["doctor", "--offline", "--json", "--config", config]);
    let output = doctor.output().unwrap();
    let points: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut points = points.as_array().unwrap().iter();
    let found = points.find(|point| point["what"] == what);
    found.cloned().unwrap_or_default()
}

/// A gateway and a witness are two processes. The whole data folder is put back to an older copy and goes on: no start with the
/// copy of the checkpoint configured works, and without it the witness refuses every further checkpoint.
#[test]
#[expect(clippy::too_many_lines, reason = "one story, told in its order")]
fn a_folder_that_was_put_back_is_refused_at_the_start_and_by_the_witness() {
    let world = World::new();
    world.run(0, &["call", "notes.add", "--args", r#"{"text": "first"}"#]);
    let witness = world.witness("data/log.pub");
    let (url, key) = (&witness.said["url"], &witness.said["key"]);
    let copy = witness.said["copies"][0].as_str().unwrap().to_owned();
    let asked = format!("[shop]\nenabled = true\n[[witness]]\nurl = {url}\nkey = {key}\n");
    fs::write(world.path("witness.toml"), &asked).unwrap();
    let all = format!("{asked}[log]\ncopies = [\"{copy}\", \"file:missing\"]\n");
    fs::write(world.path("all.toml"), all).unwrap();
    let key: WitnessKey = key.as_str().unwrap().parse().unwrap();

    let gateway = world.gateway("all.toml");
    note(&gateway, "second");
    let before = cosigned(&gateway, &key, 0);
    assert_eq!(point(&world, "all.toml", "witness")["state"], "ok");
    let (_, metrics) = gateway.ask("GET", "/metrics", "");
    assert!(
        metrics.contains("countersign_log_copies_unread "),
        "{metrics}"
    );
    assert!(metrics.contains("countersign_log_witness_refuses{witness=\"witness.example/w1\"} 0"));
    gateway.stop();
    world.put_back("data", "old");
    let gateway = world.gateway("all.toml");
    note(&gateway, "third");
    let newest = cosigned(&gateway, &key, before.size);
    let kept = fs::read_to_string(world.path("data/checkpoint.cosigned")).unwrap();
    assert!(key.verify(&Note::parse(&kept).unwrap()).is_ok());
    gateway.stop();

    // The folder is whole and agrees with itself, so only the copy shows it.
    world.put_back("data", "new");
    world.put_back("old", "data");
    world.run(0, &["verify", "--all"]);
    let expected =
        format!("the log does not continue the checkpoint in {copy}: the log was rolled back");
    for words in [
        &["serve", "--listen", "127.0.0.1:0"][..],
        &["call", "notes.list"],
    ] {
        let told = world.told(3, &[words, &["--config", "all.toml"]].concat());
        assert!(
            told.contains(&expected) && told.contains("hint: "),
            "{told}"
        );
    }
    let report = world.run(3, &["verify", "--all", "--json", "--config", "all.toml"]);
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!(report["findings"][0]["code"], "copy", "{report}");
    assert_eq!(point(&world, "all.toml", "copy")["state"], "wrong");

    // Without the copy it starts, grows past the other history, and the witness cosigns none of it.
    let gateway = world.gateway("witness.toml");
    for text in ["other", "history", "of", "this", "log"] {
        note(&gateway, text);
    }
    while point(&world, "witness.toml", "witness")["state"] != "wrong" {
        std::thread::yield_now();
    }
    let (_, text) = gateway.ask("GET", "/v1/log/checkpoint", "");
    assert!(key.verify(&Note::parse(&text).unwrap()).is_err(), "{text}");
    let (_, metrics) = gateway.ask("GET", "/metrics", "");
    assert!(metrics.contains("countersign_log_witness_refuses{witness=\"witness.example/w1\"} 1"));
    let status = world.run(0, &["status", "--json"]);
    let status = String::from_utf8(status.stdout).unwrap();
    assert!(status.contains("witness_refuses"), "{status}");
    gateway.stop();
    let path = copy.split_once("/checkpoint/").unwrap().1;
    let (_, latest) = witness.ask("GET", &format!("/checkpoint/{path}"), "");
    assert!(latest.contains(&format!("\n{}\n", newest.size)), "{latest}");
    let told = world.told(3, &["call", "notes.list", "--config", "all.toml"]);
    assert!(told.contains("the log was rewritten"), "{told}");

    // A restore knows the copy too, so it sees what would be lost; the new log is another one, which the copy is not of.
    world.put_back("old", "data");
    let told = world.told(3, &["store", "restore", "--config", "all.toml"]);
    assert!(told.contains("--accept-loss"), "{told}");
    world.run(
        0,
        &["store", "restore", "--accept-loss", "--config", "all.toml"],
    );
    world.run(0, &["call", "notes.list", "--config", "all.toml"]);

    // The newest folder goes on where it was.
    world.put_back("new", "data");
    let gateway = world.gateway("all.toml");
    note(&gateway, "fourth");
    cosigned(&gateway, &key, newest.size);
    gateway.stop();
    witness.stop();
}

/// The tree of some leaves, and a request about it.
fn request(log: &SigningKey, leaves: &[&str], old_size: u64) -> String {
    let hashes: Vec<_> = leaves
        .iter()
        .map(|leaf| leaf_hash(leaf.as_bytes()))
        .collect();
    let mut writer = TileWriter::new();
    let tiles: TileMap = writer.append(&hashes).into_iter().collect();
    let frontier = writer.frontier();
    let checkpoint = Checkpoint::new(log.name(), frontier.size(), frontier.root());
    let request = AddCheckpoint {
        old_size,
        proof: consistency_proof(old_size, frontier.size(), &tiles).unwrap(),
        note: Note::parse(&checkpoint.sign(log).unwrap()).unwrap(),
    };
    request.to_string()
}

fn kept_size(folder: &Path) -> u64 {
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let mut files = files.filter(|path| path.extension().is_some_and(|it| it == "checkpoint"));
    let Some(file) = files.next() else { return 0 };
    let note = Note::parse(&fs::read_to_string(file).unwrap()).unwrap();
    note.text.parse::<Checkpoint>().unwrap().size
}

/// `kill -9` at any moment of a request, also between the write and the answer: what was kept counts, the log that asks again is
/// cosigned, and a second history never is.
#[test]
fn a_killed_witness_forgets_nothing() {
    let world = World::new();
    let log = SigningKey::from_seed("example.com/log", &[7; 32]).unwrap();
    let public = log.verifying_key().to_string();
    let leaves = ["a", "b", "c", "d", "e", "f"];
    for size in 1..=leaves.len() {
        let witness = world.witness(&public);
        let key: WitnessKey = witness.said["key"].as_str().unwrap().parse().unwrap();
        let (mine, old) = (&leaves[..size], size as u64 - 1);
        let unread = witness.send("POST", "/add-checkpoint", &request(&log, mine, old));
        // Every other time it is killed after the write, without its answer having been read.
        while size.is_multiple_of(2) && kept_size(&world.path("witness")) < size as u64 {
            std::thread::yield_now();
        }
        witness.kill();
        drop(unread);

        let witness = world.witness(&public);
        let (status, body) = witness.ask("POST", "/add-checkpoint", &request(&log, mine, old));
        if status == 409 {
            assert_eq!(body, format!("{size}\n"));
            assert_eq!(kept_size(&world.path("witness")), size as u64);
        } else {
            assert!(status == 200 && !size.is_multiple_of(2), "{status} {body}");
        }
        let again = request(&log, mine, size as u64);
        let (status, line) = witness.ask("POST", "/add-checkpoint", &again);
        assert_eq!(status, 200, "{line}");
        let (_, signed) = again.split_once("\n\n").unwrap();
        assert!(
            key.verify(&Note::parse(&format!("{signed}{line}")).unwrap())
                .is_ok()
        );
        let mut other = mine.to_vec();
        other[size - 1] = "another history";
        let (status, _) = witness.ask(
            "POST",
            "/add-checkpoint",
            &request(&log, &other, size as u64),
        );
        assert_eq!(status, 409);
        other.push("grown");
        let (status, _) = witness.ask(
            "POST",
            "/add-checkpoint",
            &request(&log, &other, size as u64),
        );
        assert_eq!(status, 422);
        // One folder has one witness.
        let words = [
            "witness",
            "--folder",
            "witness",
            "--listen",
            "127.0.0.1:0",
            "--log",
            &public,
        ];
        assert!(world.told(2, &words).contains("another witness runs in"));
        witness.stop();
    }
}
