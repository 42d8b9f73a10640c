//! Everything that an operator does, one command after the other, with what differs from run to run taken out.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use super::{Installation, Seen};

/// A command with its output and exit code, without the parts that differ from run to run.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) words: String,
    code: Option<i32>,
    out: String,
    err: String,
}

struct Play<'a> {
    installation: &'a Installation,
    steps: Vec<Step>,
}

/// Plays it all on one installation.
pub(super) fn play(installation: &Installation) -> Vec<Step> {
    let mut play = Play {
        installation,
        steps: Vec::new(),
    };
    let (record, request) = play.calls();
    play.evidence(&record, &request);
    play.approvals();
    play.grants();
    play.claims();
    play.keys();
    play.elsewhere(&record);
    play.verify();
    play.replay(&record, &request);
    play.record(&request);
    play.master(&record);
    play.erase(&record);
    play.run(&["rules"]);
    play.run(&["rules", "show", "vat"]);
    play.run(&["doctor"]);
    play.run(&["doctor", "--json"]);
    play.steps
}

impl Play<'_> {
    fn run(&mut self, words: &[&str]) -> Seen {
        let seen = self.installation.run(words);
        let folder = self.installation.folder.path().display().to_string();
        let steady = |text: &str| steady(&text.replace(&folder, "DIR"));
        self.steps.push(Step {
            words: steady(&words.join(" ")),
            code: seen.code,
            out: steady(&seen.out),
            err: steady(&seen.err),
        });
        seen
    }

    fn calls(&mut self) -> (String, String) {
        let add = ["call", "notes.add", "--user", "u_7", "--key", "k_1"];
        let add = [&add[..], &["--args", "{text: 'tea',}"]].concat();
        let made = self.run(&[&add[..], &["--json"]].concat()).ok().json();
        assert!(self.run(&add).ok().err.contains("stored answer"));
        let request = made["request_id"].as_str().unwrap().to_owned();
        let record = made["evidence"]["snapshot_id"].as_str().unwrap().to_owned();
        self.run(&["call", "notes.list", "--user", "u_7"]).ok();
        self.run(&[
            "call",
            "notes.add",
            "--user",
            "u_7",
            "--dry-run",
            "--args",
            "{\"text\": \"x\"}",
        ]);
        self.run(&["call", "notes.add", "--args", "{}"]).no();
        self.run(&["call", "notes.ad"]).no();
        let agent = [
            "--actor",
            "agent:a_7",
            "--session",
            "s_1",
            "--request-id",
            "r_1",
        ];
        let trace = [
            "--trace",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ];
        let vat = ["call", "sample.vat", "--user", "u_7", "--args"];
        let vat = [&vat[..], &["{\"net_cents\": 1000, \"country\": \"DE\"}"]].concat();
        self.run(
            &[
                &vat[..],
                &agent,
                &trace,
                &["--locale", "de-DE", "--client", "ios/4.2"],
            ]
            .concat(),
        );
        let rules = self.rules_folder();
        self.run(&[&vat[..], &["--rules", &rules, "--json"]].concat())
            .ok();
        self.run(&["calls", "--user", "u_7"]).ok();
        self.run(&[
            "calls", "--since", "1h", "--code", "OK", "--limit", "2", "--json",
        ])
        .ok();
        self.run(&["calls", "--code", "INVALID_ARGUMENT"]).ok();
        self.run(&["calls", "--tool", "none"]).ok();
        self.run(&["call-show", &request]).ok();
        self.run(&["call-show", &request, "--json"]).ok();
        self.run(&["call-show", "r_1", "--user", "u_7"]).ok();
        self.run(&["call-show", "req_none"]).no();
        (record, request)
    }

    /// Rules that differ from those of the program.
    fn rules_folder(&self) -> String {
        let folder = self.installation.folder.path().join("rules");
        let shown = self.installation.run(&["rules", "show", "fx"]).ok();
        fs::create_dir_all(folder.join("fx")).unwrap();
        let text = format!("{}\n# Another version.\n", shown.out);
        fs::write(folder.join("fx/2031-01-01.toml"), text).unwrap();
        folder.display().to_string()
    }

    /// A case, sealed and opened, for people and for programs, and as a file.
    fn case(&mut self, record: &str) {
        self.run(&["case", record]).ok();
        self.run(&["case", record, "--json"]).ok();
        self.run(&["case", record, "--reason", "dispute"]).ok();
        self.run(&["case", "order_none"]).no();
        let file = self.installation.folder.path().join("case.zip");
        let file = file.display().to_string();
        self.run(&[
            "case", record, "--reason", "dispute", "--zip", &file, "--json",
        ])
        .ok();
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    fn evidence(&mut self, record: &str, request: &str) {
        self.run(&["evidence", "list", "--kind", "call", "--user", "u_7"])
            .ok();
        self.run(&["evidence", "list", "--kind", "call", "--json"])
            .ok();
        self.run(&["evidence", "show", record]).ok();
        self.run(&["evidence", "show", request]);
        self.run(&["evidence", "show", record, "--json"]).ok();
        self.run(&["evidence", "show", "ev_none"]).no();
        self.run(&["evidence", "open", record, "--reason", "dispute"])
            .ok();
        self.run(&["evidence", "open", record, "--reason", ""]).no();
        // On PostgreSQL a command leaves the signing to the one before it for some seconds.
        if self.installation.store.is_none() {
            self.export(record);
            self.case(record);
        }
        self.run(&["evidence", "hold", "u_7", "--reason", "case 12"])
            .ok();
        self.run(&["evidence", "hold", record, "--reason", "case 13", "--json"])
            .ok();
        self.run(&["evidence", "holds"]).ok();
        self.run(&["evidence", "holds", "--json"]).ok();
        self.run(&["evidence", "erase", "u_7", "--reason", "asked"])
            .no();
        self.run(&["evidence", "release", record, "--reason", "closed"])
            .ok();
        self.run(&["evidence", "release", "u_7", "--reason", "closed"])
            .ok();
        self.run(&["evidence", "release", "u_7", "--reason", "x"])
            .no();
    }

    fn record(&mut self, request: &str) {
        let file = self.installation.folder.path().join("calls.jsonl");
        let path = file.display().to_string();
        self.run(&["record", "--user", "u_7", "-o", &path]).ok();
        let text = fs::read_to_string(&file).unwrap();
        assert!(countersign::contract::recording::Recording::parse(&text).is_ok());
        self.run(&["record", "--session", "s_1", "-o", &path]).ok();
        self.run(&["record", "--request", request, "--clear", "-o", &path])
            .no();
        self.run(&["record", "--request", "req_none", "-o", &path])
            .no();
        self.run(&["record", "--tool", "none"]).no();
    }

    fn export(&mut self, record: &str) {
        let bundle = self.run(&["evidence", "export", record]).ok();
        let file = self.installation.folder.path().join("bundle.json");
        let path = file.display().to_string();
        let held = self.installation.file("checkpoint").display().to_string();
        let export = ["evidence", "export", record, "-o", &path, "--held", &held];
        let opened = ["--content", "opened", "--reason", "dispute"];
        self.run(&[&export[..], &opened].concat()).ok();
        let key = self.installation.file("log.pub").display().to_string();
        self.run(&["verify", &path, "--key", &key]).ok();
        fs::write(&file, bundle.out).unwrap();
        self.run(&["verify", &path, "--key", &key, "--json"]).ok();
    }

    /// Evidence in the formats of others: what is binary is the same bytes on both ways.
    fn elsewhere(&mut self, record: &str) {
        let export = ["evidence", "export", record, "--format"];
        let to = |name: &str| {
            self.installation
                .folder
                .path()
                .join(name)
                .display()
                .to_string()
        };
        let statement = to("record.scitt");
        self.run(&[&export[..], &["scitt", "-o", &statement]].concat())
            .ok();
        let key = self.run(&["evidence", "key"]).ok().out;
        let verify = ["verify", &statement, "--key", key.trim(), "--json"];
        self.run(&verify).ok();
        self.run(&[&export[..], &["cose-receipt", "--json"]].concat())
            .ok();
        self.run(&[&export[..], &["scitt", "--content", "sealed"]].concat())
            .no();
        self.run(&["evidence", "key", "--pem"]).ok();
        self.run(&["evidence", "trail", "--limit", "1"]).ok();
        let events = ["--limit", "1", "--format", "ocsf"];
        self.run(&[&["evidence", "trail"], &events[..]].concat())
            .ok();
    }

    fn approvals(&mut self) {
        let clear = [
            "call",
            "notes.clear",
            "--user",
            "u_9",
            "--actor",
            "agent:a_1",
        ];
        let asked = self.run(&[&clear[..], &["--json"]].concat()).json();
        let id = asked["error"]["details"]["approval_id"].as_str().unwrap();
        self.run(&["approvals", "list"]).ok();
        self.run(&["attention"]).ok();
        self.run(&["attention", "--check", "--json"]).no();
        self.run(&["notify", "list", "--json"]).ok();
        self.run(&["notify", "retry", "ops", "--json"]).ok();
        self.run(&["approvals", "list", "--user", "u_9", "--json"])
            .ok();
        self.run(&["approvals", "show", id]).ok();
        self.run(&["approvals", "approve", "ap_"]).no();
        self.run(&["approvals", "approve", id, "--reason", "by phone"])
            .ok();
        self.run(&clear).ok();
        let second = [
            "call",
            "notes.clear",
            "--user",
            "u_8",
            "--actor",
            "agent:a_1",
            "--json",
        ];
        let asked = self.run(&second).json();
        let id = asked["error"]["details"]["approval_id"].as_str().unwrap();
        self.run(&["approvals", "deny", id, "--json"]).ok();
        self.run(&["approvals", "approve", id]).no();
        self.run(&["approvals", "list", "--state", "all"]).ok();
    }

    fn grants(&mut self) {
        let granting = [
            "grants",
            "make",
            "--user",
            "u_6",
            "--to",
            "agent:a_1",
            "--tool",
            "notes.clear",
            "--until",
            "7d",
        ];
        let made = self
            .run(&[&granting[..], &["--calls", "2", "--json"]].concat())
            .json();
        let id = made["id"].as_str().unwrap();
        self.run(&["grants", "list"]).ok();
        self.run(&["grants", "show", id]).ok();
        self.run(&[&granting[..], &["--parent", id, "--calls", "3"]].concat())
            .no();
        self.run(&["grants", "revoke", id, "--reason", "enough"])
            .ok();
        self.run(&[
            "grants", "list", "--state", "all", "--user", "u_6", "--json",
        ])
        .ok();
    }

    fn claims(&mut self) {
        self.run(&["claims", "list"]).ok();
        self.run(&[
            "claims",
            "list",
            "--state",
            "succeeded",
            "--user",
            "u_7",
            "--json",
        ])
        .ok();
        let resolve = [
            "claims",
            "resolve",
            "u_7",
            "notes.add",
            "00",
            "--reason",
            "r",
        ];
        let missing = self.run(&[&resolve[..], &["--did-not-happen"]].concat());
        assert_eq!(missing.code, Some(2), "{missing:?}");
        self.run(&[&resolve[..], &["--happened", "{"]].concat())
            .no();
        let ask = ["claims", "resolve", "u_7", "notes.add", "00", "--ask"];
        let missing = self.run(&ask);
        assert_eq!(missing.code, Some(2), "{missing:?}");
        let forget = ["claims", "forget", "--days", "400", "--reason", "r"];
        self.run(&forget).ok();
        self.run(&["store", "trust-clock", "--reason", "r"]).ok();
    }

    fn keys(&mut self) {
        let create = [
            "keys",
            "create",
            "--agent",
            "a_7",
            "--for",
            "u_1",
            "--scope",
            "tols:call",
        ];
        let made = self.run(&[&create[..], &["--json"]].concat()).ok().json();
        let id = made["key"]["id"].as_str().unwrap();
        self.run(&[
            "keys",
            "create",
            "--user",
            "ann",
            "--label",
            "Ann's",
            "--expires",
            "90d",
        ])
        .ok();
        self.run(&["keys", "create", "--user", "agent/x"]).no();
        self.run(&["keys", "list"]).ok();
        let rotated = self
            .run(&["keys", "rotate", id, "--grace", "1h", "--json"])
            .ok()
            .json();
        let id = rotated["key"]["id"].as_str().unwrap();
        self.run(&["keys", "revoke", id]).ok();
        self.run(&["keys", "rotate", id]).no();
        self.run(&["keys", "revoke", "0000000000000000"]).no();
        self.run(&["keys", "list", "--json"]).ok();
    }

    fn verify(&mut self) {
        self.run(&["verify", "--all"]).ok();
        self.run(&["verify", "--all", "--json"]).ok();
        self.run(&["verify", "--all", "--quick"]).ok();
        self.run(&["verify", "--all", "--thorough"]).ok();
        self.run(&["verify", "--all", "--resume"]).ok();
        let held = self.installation.file("checkpoint").display().to_string();
        let key = self.installation.file("log.pub").display().to_string();
        self.run(&["verify", "--all", "--held", &held, "--key", &key])
            .ok();
        let other = "example.com/log+9ade03f7+AacBhA8ZOJkC8aEXB2RJUEB7a7EBZ1j0LaW7VtTM5pXA";
        self.run(&["verify", "--all", "--key", other]);
        self.run(&["verify", "--all", "--key", "none"]).no();
    }

    fn replay(&mut self, record: &str, request: &str) {
        self.run(&["replay", record]);
        self.run(&["replay", request, "--user", "u_7", "--mode", "verify"])
            .ok();
        self.run(&["replay", "r_1", "--user", "u_7", "--json"]);
        self.run(&["replay", "--since", "1h", "--mode", "verify"])
            .ok();
        self.run(&["replay", "--since", "1h", "--tool", "sample.vat"])
            .ok();
        let file = self.installation.folder.path().join("rules.json");
        fs::write(&file, r#"{"vat": {"DE": 2000}}"#).unwrap();
        let path = file.display().to_string();
        let against = [
            "replay",
            "--since",
            "1h",
            "--tool",
            "sample.vat",
            "--mode",
            "against",
        ];
        self.run(&[&against[..], &["--rules", &path]].concat());
        let folder = self.rules_folder();
        self.run(&[&against[..], &["--rules", &folder]].concat())
            .ok();
        fs::write(&file, r#"{"vatt": {}}"#).unwrap();
        self.run(&[&against[..], &["--rules", &path]].concat()).no();
    }

    fn master(&mut self, record: &str) {
        self.run(&["keys", "rotate-master"]).ok();
        let finished = self.run(&["keys", "rotate-master", "--finish"]);
        // A file has one owner, so nothing is left to finish.
        let is_file = self.installation.store.is_none();
        assert_eq!(
            finished.code,
            Some(if is_file { 2 } else { 0 }),
            "{finished:?}"
        );
        assert!(!self.installation.file("master.key.old").exists());
        self.run(&["evidence", "open", record, "--reason", "after"])
            .ok();
        self.run(&["call", "notes.list", "--user", "u_new"]).ok();
    }

    fn erase(&mut self, record: &str) {
        self.run(&["evidence", "erase", "u_7", "--reason", "asked"])
            .ok();
        self.run(&["evidence", "open", record, "--reason", "x"])
            .no();
        self.run(&["evidence", "erase", "u_none", "--reason", "asked", "--json"])
            .no();
        self.run(&["call-show", "r_1", "--user", "u_7"]);
        self.run(&["verify", "--all"]).ok();
    }
}

/// Lists the records, oldest first: their event, their user and their actor. Those of the start of a server are its own.
pub(super) fn records(installation: &Installation) -> Vec<String> {
    let listed = installation.run(&["evidence", "list", "--limit", "1000", "--json"]);
    let listed = listed.ok().json();
    let mut records = Vec::new();
    for row in listed.as_array().unwrap() {
        let id = row["evidence"].as_str().unwrap();
        let shown = installation.run(&["evidence", "show", id, "--json"]).ok();
        let record = &shown.json()["record"];
        let event = record["act"]["event"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        if row["kind"] == "checkpoint" || event.starts_with("policy") {
            continue;
        }
        let actor = record["actor"]["id"].as_str().unwrap_or_default();
        let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
        let (kind, user, tool, code) = (text("kind"), text("user_id"), text("tool"), text("code"));
        // A digest of a name that was only said is under the user's own key.
        let actor = steady(actor);
        records.push(format!("{kind} {user} {tool} {code} {event} {actor}"));
    }
    assert!(records.len() > 30, "{records:#?}");
    records.sort();
    records
}

/// A text without what differs from run to run: names that were drawn, times, digests, numbers, and how wide a
/// table is for them.
fn steady(text: &str) -> String {
    if let Ok(value) = serde_json::from_str::<Value>(text)
        && (value.is_object() || value.is_array())
    {
        return serde_json::to_string_pretty(&steady_value(value)).unwrap();
    }
    // Only one of the two has a server, and only the other one can look whether its port is free.
    let is_compared = |line: &&str| !line.contains("works at ") && !line.contains(" port ");
    let lines = text.lines().filter(is_compared);
    let words = lines.map(|line| {
        line.split_whitespace()
            .map(word)
            .collect::<Vec<_>>()
            .join(" ")
    });
    words.collect::<Vec<_>>().join("\n")
}

fn steady_value(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(steady(&text)),
        Value::Number(_) => Value::String("#".to_owned()),
        Value::Array(values) => {
            let is_server = |value: &Value| value["what"] == "server" || value["what"] == "port";
            let values = values.into_iter().filter(|value| !is_server(value));
            Value::Array(values.map(steady_value).collect())
        }
        Value::Object(members) => {
            // Only a server has pages.
            let members = members
                .into_iter()
                .filter(|(name, _)| name != "approval_url");
            let steady = members.map(|(name, value)| {
                let value = if DRAWN.contains(&name.as_str()) && !value.is_null() {
                    Value::String("DRAWN".to_owned())
                } else {
                    steady_value(value)
                };
                // Documents are named by digests.
                (word(&name), value)
            });
            Value::Object(steady.collect())
        }
        Value::Null | Value::Bool(_) => value,
    }
}

/// Members that differ from run to run; the edge of a tree has as many nodes as its size has bits.
const DRAWN: [&str; 3] = ["secret", "id", "edge"];

/// A word whose runs of base64 are replaced, where they are too long to be words.
fn without_base64(word: &str) -> String {
    let is_base64 = |letter: char| letter.is_ascii_alphanumeric() || "+/=_-".contains(letter);
    let mut steady = String::new();
    let mut run = String::new();
    for letter in word.chars().chain(['\n']) {
        if is_base64(letter) {
            run.push(letter);
            continue;
        }
        steady.push_str(if run.len() >= 40 { "B" } else { &run });
        run.clear();
        steady.push(letter);
    }
    steady.truncate(steady.len() - 1);
    steady
}

/// Finds the position of the first UUID in a text.
fn uuid(text: &str) -> Option<usize> {
    let is_uuid = |window: &[u8]| {
        window.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
    };
    text.as_bytes().windows(36).position(is_uuid)
}

/// A word whose digits, and what looks like a name that was drawn, are replaced.
fn word(word: &str) -> String {
    if let Some(at) = uuid(word) {
        return format!(
            "{}U{}",
            self::word(&word[..at]),
            self::word(&word[at + 36..])
        );
    }
    let word = without_base64(word);
    let is_long = |part: &str| part.len() >= 8 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut steady = String::new();
    let mut part = String::new();
    for letter in word.chars().chain([' ']) {
        if letter.is_ascii_alphanumeric() {
            part.push(letter);
            continue;
        }
        if is_long(&part) {
            steady.push('H');
        } else {
            let mut letters = part.chars().peekable();
            while let Some(letter) = letters.next() {
                if letter.is_ascii_digit() {
                    while letters.next_if(char::is_ascii_digit).is_some() {}
                    steady.push('#');
                } else {
                    steady.push(letter);
                }
            }
        }
        part.clear();
        if letter != ' ' {
            steady.push(letter);
        }
    }
    // A time at a whole second is written without a fraction.
    steady.replace("#.#Z", "#Z")
}
