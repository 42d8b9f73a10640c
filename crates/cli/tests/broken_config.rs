//! A configuration with a mistake does not keep an operator from the commands that do not need it.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use countersign_testkit::patience::Watchdog;
use serde_json::Value;
use tempfile::TempDir;

const GOOD: &str = "\
[store]
data = \"data\"

[server]
listen = \"127.0.0.1:0\"

[shop]
enabled = true
";

/// A folder with a configuration, and commands that are run in it.
struct Folder {
    folder: TempDir,
    _watchdog: Watchdog,
}

#[derive(Debug)]
struct Seen {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Folder {
    fn new() -> Self {
        let folder = Self {
            folder: tempfile::tempdir().unwrap(),
            _watchdog: Watchdog::start(),
        };
        folder.write(GOOD);
        let made = folder.run(&["call", "notes.list", "--user", "u_7"]);
        assert_eq!(made.code, Some(0), "{made:?}");
        folder
    }

    fn write(&self, text: &str) {
        fs::write(self.folder.path().join("countersign.toml"), text).unwrap();
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
        command.args(words).current_dir(self.folder.path());
        // A folder that nobody may fall back to.
        command.env("HOME", "/nonexistent");
        for name in [
            "COUNTERSIGN_DATA",
            "COUNTERSIGN_STORE",
            "COUNTERSIGN_MASTER_KEY",
            "XDG_DATA_HOME",
        ] {
            command.env_remove(name);
        }
        command
    }

    fn run(&self, words: &[&str]) -> Seen {
        let output = self.command(words).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Seen {
            code: output.status.code(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    fn serve(&self) -> Server {
        let mut child = self
            .command(&["serve", "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = child.stdout.as_mut().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        assert!(said["url"].is_string(), "{said}");
        Server(child)
    }
}

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Commands that need the server, or only the data.
const AT_HAND: [&[&str]; 9] = [
    &["calls"],
    &["claims", "list"],
    &["approvals", "list"],
    &["keys", "list"],
    &["keys", "create", "--user", "ann"],
    &["evidence", "list"],
    &["evidence", "holds"],
    &["verify", "--all"],
    &["rules"],
];

/// Commands that need a server, or else the whole file.
const SERVER_OR_FILE: [&[&str]; 4] = [
    &["status"],
    &["replay", "--tool", "sample.vat"],
    &["call", "notes.list"],
    &["record", "--limit", "1"],
];

/// A mistake, and its place in the file.
const MISTAKES: [(&str, &str); 4] = [
    ("[server]\nlisten_on = 1\n", "countersign.toml:11:1:"),
    ("[telemetry]\nlog = \"info\n", "countersign.toml:11:"),
    ("[[tool]]\nname = \n", "countersign.toml:11:"),
    ("[catalog]\nfacade = \"maybe\"\n", "countersign.toml:11:"),
];

/// F1: beside a running server every command of an operator goes on, and says where the mistake is.
#[test]
fn commands_go_on_beside_a_server() {
    let folder = Folder::new();
    let _server = folder.serve();
    for (mistake, place) in MISTAKES {
        // A table that is there twice is a mistake of its own, so the server's table comes once.
        let good = if mistake.contains("[server]") {
            "[store]\ndata = \"data\"\n\n[shop]\nenabled = true\n\n\n\n\n"
        } else {
            "[store]\ndata = \"data\"\n\n[server]\nlisten = \"127.0.0.1:0\"\n\n[shop]\nenabled = true\n\n"
        };
        folder.write(&format!("{good}{mistake}"));
        for words in AT_HAND.iter().chain(&SERVER_OR_FILE) {
            let seen = folder.run(words);
            assert_eq!(seen.code, Some(0), "{words:?} {seen:?}");
            let is_told = seen.err.contains(&format!("warning: {place}"));
            assert!(is_told, "{words:?} {mistake:?} {seen:?}");
        }
        let doctor = folder.run(&["doctor", "--json"]);
        assert_eq!(doctor.code, Some(1), "{doctor:?}");
        let points: Vec<Value> = serde_json::from_str(&doctor.out).unwrap();
        let is_named = |point: &Value| {
            point["state"] == "wrong" && point["found"].as_str().unwrap().contains(place)
        };
        assert!(points.iter().any(is_named), "{points:#?}");
        assert!(points.iter().any(|point| point["what"] == "server"));
    }
}

/// F1: without a server, commands that need only the data go on; the others name the mistake.
#[test]
fn commands_go_on_with_the_data_alone() {
    let folder = Folder::new();
    folder.write(&format!("{GOOD}\n[telemetry]\nlog = \"info\n"));
    for words in AT_HAND {
        let seen = folder.run(words);
        assert_eq!(seen.code, Some(0), "{words:?} {seen:?}");
        assert!(
            seen.err.contains("warning: countersign.toml:11:"),
            "{seen:?}"
        );
    }
    for words in SERVER_OR_FILE {
        let seen = folder.run(words);
        assert_eq!(seen.code, Some(2), "{words:?} {seen:?}");
        assert!(seen.err.contains("countersign.toml:11:"), "{seen:?}");
    }
}

/// F1: no command guesses where the data is.
#[test]
fn a_mistake_in_the_store_stops_every_command() {
    let folder = Folder::new();
    let _server = folder.serve();
    for text in [
        "[store]\ndat = \"data\"\n",
        "[store]\ndata = \"data\n",
        "[sotre]\ndata = \"data\"\n",
        "[store\ndata = \"data\"\n",
    ] {
        folder.write(text);
        for words in AT_HAND {
            let seen = folder.run(words);
            assert_eq!(seen.code, Some(2), "{words:?} {text:?} {seen:?}");
            assert!(seen.err.contains("countersign.toml:"), "{seen:?}");
        }
        let doctor = folder.run(&["doctor"]);
        assert_eq!(doctor.code, Some(1), "{doctor:?}");
        assert!(doctor.out.contains("countersign.toml:"), "{doctor:?}");
    }
}
