//! The server as its users run it: a process that listens, answers, and stops on a signal.

#![expect(
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use countersign::contract::Digest;
use countersign_testkit::patience::Watchdog;
use serde_json::{Value, json};
use tempfile::TempDir;

#[path = "serve/sessions.rs"]
mod sessions;

/// A server on a folder of its own.
struct Running {
    folder: TempDir,
    child: Child,
    address: String,
    _watchdog: Watchdog,
}

fn command(folder: &TempDir, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command
        .args(words)
        .env("COUNTERSIGN_DATA", folder.path().join("data"))
        .env("COUNTERSIGN_OPERATOR", "tester")
        .env_remove("COUNTERSIGN_STORE")
        .env_remove("COUNTERSIGN_MASTER_KEY");
    command
}

impl Running {
    fn start(words: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        Self::start_in(folder, words)
    }

    fn start_in(folder: TempDir, words: &[&str]) -> Self {
        let watchdog = Watchdog::start();
        let words = [&["serve", "--json", "--listen", "127.0.0.1:0"], words].concat();
        let mut child = command(&folder, &words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("cargo has built the command before its tests");
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("it is piped");
        BufReader::new(stdout)
            .read_line(&mut line)
            .expect("it can be read");
        let said: Value = serde_json::from_str(&line).expect("the first line is JSON");
        let url = said["url"].as_str().expect("it says where it listens");
        let address = url.trim_start_matches("http://").to_owned();
        assert_eq!(said["mcp_url"], format!("{url}/mcp"));
        Self {
            folder,
            child,
            address,
            _watchdog: watchdog,
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join("data").join(name)
    }

    /// Status and body of a request.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        self.ask_with("x-none: none", method, path, body)
    }

    /// Sends a request with one more header.
    fn ask_with(&self, header: &str, method: &str, path: &str, body: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {}\r\n{header}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}",
            self.address
        )
        .expect("it takes requests");
        let mut wire = String::new();
        stream.read_to_string(&mut wire).expect("it answers");
        let (head, body) = wire.split_once("\r\n\r\n").expect("an answer has a head");
        let status = head.split(' ').nth(1).and_then(|text| text.parse().ok());
        let body = serde_json::from_str(body).unwrap_or_else(|_| json!(body));
        (status.expect("a head has a status"), body)
    }

    fn run(&self, words: &[&str]) -> Output {
        command(&self.folder, words).output().expect("it runs")
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([name, &pid]).status();
        assert!(sent.expect("kill is there").success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already, unless the test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A call is answered and found again by commands while the server holds the store; after SIGTERM
/// everything is signed.
#[test]
fn a_server_is_asked_and_stopped() {
    let mut running = Running::start(&[]);
    let mode = std::fs::metadata(running.file("server.json")).expect("it is there");
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    let body = r#"{"arguments": "{text: 'tea'}", "idempotency_key": "k_1"}"#;
    let (status, reply) = running.ask("POST", "/v1/tools/notes.add", body);
    assert_eq!((status, &reply["ok"]), (200, &json!(true)), "{reply}");
    assert_eq!(running.ask("GET", "/readyz", ""), (200, json!("ready\n")));

    let calls = running.run(&["calls", "--json", "--since", "1h", "--tool", "notes.add"]);
    let calls: Value = serde_json::from_slice(&calls.stdout).expect("one line of JSON");
    assert_eq!(calls[0]["request_id"], reply["request_id"]);
    let other = running.run(&["call", "notes.list", "--json"]);
    let listed: Value = serde_json::from_slice(&other.stdout).expect("one line of JSON");
    assert_eq!(listed["data"][0]["text"], "tea", "{listed}");

    running.signal("-TERM");
    let status = running.child.wait().expect("it ends");
    assert_eq!(status.code(), Some(0));
    assert!(!running.file("server.json").exists());
    let verified = running.run(&["verify", "--all"]);
    assert_eq!(verified.status.code(), Some(0), "{verified:?}");
    let id = reply["evidence"]["snapshot_id"].as_str().expect("a name");
    let export = running.run(&["evidence", "export", id]);
    assert_eq!(export.status.code(), Some(0), "{export:?}");
}

/// The end is announced before it comes: `/readyz` and the status say that the server stops, calls are still answered, and a probe is
/// not counted as a refusal. A second signal ends the notice at once.
#[test]
fn a_second_signal_ends_the_notice() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let config = folder.path().join("countersign.toml");
    let text = "[server]\ndrain_notice = \"1h\"\n[shop]\nenabled = true\n";
    std::fs::write(&config, text).expect("it can be written");
    let config = config.to_str().expect("a path of ours").to_owned();
    let mut running = Running::start_in(folder, &["--config", &config]);
    let stopping = || {
        let (_, status) = running.ask("GET", "/v1/status", "");
        let problems = status["problems"].as_array().cloned().unwrap_or_default();
        problems.iter().any(|problem| problem["code"] == "stopping")
    };
    assert!(!stopping());
    running.signal("-TERM");
    // The watchdog is the deadline.
    while running.ask("GET", "/readyz", "").0 != 503 {}
    assert!(stopping());
    let (status, reply) = running.ask("POST", "/v1/tools/notes.list", "");
    assert_eq!((status, &reply["ok"]), (200, &json!(true)), "{reply}");
    let (_, metrics) = running.ask("GET", "/metrics", "");
    let metrics = metrics.as_str().expect("a text");
    let refused = metrics
        .lines()
        .find(|line| line.contains("reason=\"overloaded\""));
    assert!(refused.is_none_or(|line| line.ends_with(" 0")), "{metrics}");
    running.signal("-TERM");
    let status = running.child.wait().expect("it ends");
    assert_eq!(status.code(), Some(0));
    let mut said = String::new();
    let stderr = running.child.stderr.as_mut().expect("it is piped");
    stderr.read_to_string(&mut said).expect("it is text");
    assert!(
        said.contains("stopped; some calls were interrupted"),
        "{said}"
    );
}

/// Files that a crash leaves behind name no server, and the next start works.
#[test]
fn a_server_that_was_killed_is_not_taken_for_one_that_runs() {
    let mut running = Running::start(&[]);
    let (status, _) = running.ask("POST", "/v1/tools/notes.list", "");
    assert_eq!(status, 200);
    running.signal("-KILL");
    running.child.wait().expect("it ends");
    assert!(running.file("server.json").exists());
    let call = running.run(&["call", "notes.list"]);
    assert_eq!(call.status.code(), Some(0), "{call:?}");
}

/// A server without credentials can be reached from this machine only.
#[test]
fn listening_for_others_without_credentials_is_refused() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.7:80"] {
        let output = command(&folder, &["serve", "--listen", address]).output();
        let output = output.expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("no credential is configured"), "{said}");
        assert!(!folder.path().join("data").exists(), "nothing was made");
    }
}

/// A policy that is not valid is refused with its line before anything listens.
#[test]
fn a_wrong_policy_is_refused_at_start() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let policy = folder.path().join("policy.toml");
    std::fs::write(&policy, "revision = \"1\"\n[[tols]]\n").expect("it can be written");
    let path = policy.display().to_string();
    let output = command(&folder, &["serve", "--policy", &path]).output();
    let output = output.expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("line 2"), "{said}");
}

/// Keys are made and ended through the server while it holds the store, and count at once.
#[test]
fn keys_are_managed_while_a_server_runs() {
    let running = Running::start(&[]);
    assert_eq!(running.ask("GET", "/v1/tools", "").0, 200);
    let made = running.run(&["keys", "create", "--agent", "a_7", "--for", "u_1"]);
    assert_eq!(made.status.code(), Some(0), "{made:?}");
    let key = String::from_utf8(made.stdout).expect("a key is text");
    let header = format!("authorization: Bearer {}", key.trim());
    let list = |header: &str| running.ask_with(header, "GET", "/v1/tools", "").0;
    assert_eq!((list("x-none: none"), list(&header)), (401, 200));

    let id = key.split('_').nth(1).expect("a key has an id");
    let rotated = running.run(&["keys", "rotate", id, "--json"]);
    let rotated: Value = serde_json::from_slice(&rotated.stdout).expect("one line of JSON");
    let secret = rotated["secret"].as_str().expect("it is shown once");
    let second = format!("authorization: Bearer {secret}");
    assert_eq!((list(&header), list(&second)), (401, 200));
    let id = rotated["key"]["id"].as_str().expect("a key has an id");
    let revoked = running.run(&["keys", "revoke", id]);
    assert_eq!(revoked.status.code(), Some(0), "{revoked:?}");
    assert_eq!((list("x-none: none"), list(&second)), (401, 401));

    let listed = running.run(&["keys", "list", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).expect("one line of JSON");
    let keys = listed.as_array().expect("a list");
    assert!(keys.len() == 2 && keys.iter().all(|key| key["state"] == "revoked"));
    assert!(!listed.to_string().contains(secret));
}

/// A15: a policy that changes is in force after a SIGHUP, and its text is kept by its digest; an invalid one changes nothing and is
/// reported.
#[test]
fn a_policy_is_read_again_on_a_signal() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let policy = folder.path().join("policy.toml");
    let write = |text: &str| std::fs::write(&policy, text).expect("it can be written");
    let open = "revision = \"open\"\ndefaults = { unlisted = \"allow\" }";
    write(open);
    let path = policy.display().to_string();
    let running = Running::start(&["--policy", &path]);
    let tools = || running.ask("GET", "/v1/tools", "").1;
    assert!(tools().as_array().is_some_and(|tools| !tools.is_empty()));
    let kept = |text: &str| {
        let digest = Digest::of_bytes(text.as_bytes()).to_string();
        let name = format!("policies/{}.toml", digest.trim_start_matches("sha256:"));
        std::fs::read_to_string(running.file(&name)).ok()
    };
    assert_eq!(kept(open).as_deref(), Some(open));

    // The file is looked at every two seconds as well, so this ends without the signal, too.
    let until = |is_so: &dyn Fn() -> bool| {
        let ended = std::iter::repeat_with(is_so)
            .take(100_000)
            .any(|is_so| is_so);
        assert!(ended, "it is never so");
    };
    let wrong = "revision = \"wrong\"\n[[tols]]";
    write(wrong);
    running.signal("-HUP");
    until(&|| {
        running
            .ask("GET", "/readyz", "")
            .1
            .to_string()
            .contains("line 2, column 3")
    });
    assert!(tools().as_array().is_some_and(|tools| !tools.is_empty()));
    let closed = "revision = \"closed\"";
    write(closed);
    running.signal("-HUP");
    until(&|| tools() == json!([]));
    assert_eq!(kept(closed).as_deref(), Some(closed));
    assert_eq!(kept(wrong), None);
    assert_eq!(running.ask("GET", "/readyz", ""), (200, json!("ready\n")));
}

/// A pipe in the place of the policy is reported, and blocks neither the next file nor the end of the server.
#[test]
fn a_pipe_in_place_of_the_policy_holds_nothing_up() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let policy = folder.path().join("policy.toml");
    std::fs::write(&policy, "revision = \"one\"").expect("it can be written");
    let path = policy.display().to_string();
    let mut running = Running::start(&["--policy", &path]);
    let pipe = folder.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo is there").success());
    std::fs::rename(&pipe, &policy).expect("it can be renamed");
    running.signal("-HUP");
    let is_told = || running.ask("GET", "/readyz", "").1.to_string();
    let told = std::iter::repeat_with(is_told).take(100_000);
    assert!({ told }.any(|told| told.contains("was rejected")));
    running.signal("-TERM");
    assert!(running.child.wait().expect("it ends").success());
}

/// Design decision 13: a crash is in the log, also if commands looked at the store before the next server.
#[test]
fn a_crash_is_recorded_whatever_looks_first() {
    let mut killed = Running::start(&[]);
    killed.signal("-KILL");
    killed.child.wait().expect("it ends");
    for words in [&["status"][..], &["calls"], &["doctor"], &["doctor"]] {
        let output = killed.run(words);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let is_told = words != ["doctor"] || said.contains("not clean (that run began ");
        assert!(is_told, "{said}");
    }
    let folder = std::mem::replace(&mut killed.folder, tempfile::tempdir().expect("a folder"));
    let mut running = Running::start_in(folder, &[]);
    let listed = running.run(&["evidence", "list", "--kind", "config", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    let rows = listed.as_array().expect("a list");
    let ids = rows.iter().filter_map(|row| row["evidence"].as_str());
    let shown = ids.map(|id| running.run(&["evidence", "show", id, "--json"]).stdout);
    let shown: Vec<String> = shown
        .map(|it| String::from_utf8_lossy(&it).into_owned())
        .collect();
    let crashes = shown.iter().filter(|it| it.contains("unclean_start"));
    assert_eq!(crashes.count(), 1, "{listed}\n{shown:?}");
    running.signal("-TERM");
    running.child.wait().expect("it ends");
    let said = running.run(&["doctor"]);
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains("last shutdown  clean"), "{said}");
}

/// A call that waits for its user names the page of the console where the user decides, over HTTP and to the model over MCP.
#[test]
fn a_question_names_its_page() {
    let running = Running::start(&[]);
    let (_, reply) = running.ask("POST", "/v1/tools/notes.clear", "{}");
    let details = &reply["error"]["details"];
    let id = details["approval_id"].as_str().expect("an approval");
    let page = format!("http://{}/approvals/{id}", running.address);
    assert_eq!(details["approval_url"], page, "{reply}");
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "notes_clear", "arguments": {}},
    });
    let headers = "content-type: application/json\r\naccept: application/json, text/event-stream\r\nmcp-protocol-version: 2025-11-25";
    let (_, answer) = running.ask_with(headers, "POST", "/mcp", &call.to_string());
    let told = format!("confirm {id} at {page}");
    assert!(answer.to_string().contains(&told), "{answer}");
}

/// The section "connect an agent" of both READMEs works on an empty store, and its answers are those that it names.
#[test]
fn the_readmes_connect_an_agent() {
    for (name, heading) in [
        ("README.md", "## Connect an agent\n"),
        ("README.zh-CN.md", "## 连接智能体\n"),
    ] {
        let page = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../..")
            .join(name);
        let page = std::fs::read_to_string(page).expect("it is there");
        let (_, section) = page.split_once(heading).expect("the section");
        let section = section.split("\n## ").next().expect("its text");
        let running = Running::start(&[]);
        let mut answers = Vec::new();
        for line in section.lines() {
            if line.starts_with("curl ") {
                let line = line.replace("127.0.0.1:8787", &running.address);
                let done = Command::new("sh").args(["-c", &line]).output();
                let answer = done.expect("curl is there").stdout;
                answers.push(String::from_utf8_lossy(&answer).into_owned());
            } else if line.contains("approvals approve ap_…") {
                let asked: Value =
                    serde_json::from_str(answers.last().expect("a question")).expect("JSON");
                let id = asked["error"]["details"]["approval_id"].as_str();
                let said = running.run(&["approvals", "approve", id.expect("an approval")]);
                assert!(said.status.success(), "{said:?}");
            }
        }
        let [quote, added, asked, cleared] = answers.as_slice() else {
            panic!("{name}: {answers:?}");
        };
        assert!(quote.contains("\"amount\":11998") && quote.contains("TEXT_TO_INTEGER"));
        assert!(added.contains("buy milk"), "{added}");
        assert!(asked.contains("approval_url"), "{asked}");
        assert!(cleared.contains("\"data\":{\"cleared\":1}"), "{cleared}");
    }
}

/// A13: a question to a user survives `kill -9`; the operator answers by command while the server holds the store, the agent at the socket
/// cannot, and the answer counts once.
#[test]
fn a_question_survives_the_server_and_is_answered_by_command() {
    let mut killed = Running::start(&[]);
    let clear = |running: &Running| running.ask("POST", "/v1/tools/notes.clear", "{}");
    let (status, reply) = clear(&killed);
    assert_eq!(status, 428, "{reply}");
    let id = reply["error"]["details"]["approval_id"].clone();
    let id = id.as_str().expect("it names the approval").to_owned();
    killed.signal("-KILL");
    killed.child.wait().expect("it ends");
    let folder = std::mem::replace(&mut killed.folder, tempfile::tempdir().expect("a folder"));

    let running = Running::start_in(folder, &[]);
    assert_eq!(clear(&running).1["error"]["details"]["approval_id"], id);
    let answer = r#"{"decision": "approve"}"#;
    let (status, _) = running.ask("POST", &format!("/v1/approvals/{id}"), answer);
    assert_eq!(status, 403, "an agent cannot");
    let listed = running.run(&["approvals", "list", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    assert_eq!(
        (&listed[0]["id"], &listed[0]["user_id"]),
        (&json!(id), &json!("u_local"))
    );
    let said = running.run(&["approvals", "approve", &id, "--reason", "asked by phone"]);
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(
        said.contains("approved: the call of notes.clear of u_local"),
        "{said}"
    );
    let (status, reply) = clear(&running);
    assert_eq!((status, &reply["data"]), (200, &json!({"cleared": 0})));
    assert_eq!(clear(&running).1["replayed"], true, "the same call, once");
    let path = "/v1/tools/notes.clear";
    let (status, _) = running.ask("POST", path, r#"{"arguments": {"again": 2}}"#);
    assert_eq!(status, 428, "an answer counts once");
    let again = running.run(&["approvals", "approve", &id]);
    assert_eq!(
        again.status.code(),
        Some(2),
        "it was replaced by the next question"
    );
}

/// A running server is not a fault; the other points are still looked at.
#[test]
fn a_doctor_is_content_with_a_server_that_works() {
    let running = Running::start(&[]);
    let seen = running.run(&["doctor", "--json"]);
    assert_eq!(seen.status.code(), Some(0), "{seen:?}");
    let seen: Value = serde_json::from_slice(&seen.stdout).expect("one line of JSON");
    let points = seen.as_array().expect("a list");
    let found = |what: &str| {
        let point = points.iter().find(|point| point["what"] == what);
        let point = point.unwrap_or_else(|| panic!("{what} is missing in {seen}"));
        assert_eq!(point["state"], "ok", "{point}");
        point["found"].as_str().expect("text").to_owned()
    };
    let server = found("server");
    assert!(
        server.contains(&running.address) && server.starts_with("works at "),
        "{server}"
    );
    assert!(found("log").ends_with(" signed"));
    assert_eq!(found("in doubt"), "no call is in doubt");

    // The key on the disk is another one now: what was signed is not its own.
    let key = running.file("log.key");
    let other = tempfile::tempdir().expect("a folder can be made");
    let made = command(&other, &["call", "notes.list"]).output();
    assert!(made.expect("it runs").status.success());
    std::fs::copy(other.path().join("data/log.key"), key).expect("it can be copied");
    let seen = running.run(&["doctor", "--json"]);
    assert_eq!(seen.status.code(), Some(1), "{seen:?}");
    let seen = String::from_utf8(seen.stdout).expect("it is text");
    assert!(seen.contains(r#"{"what":"log","state":"wrong""#), "{seen}");
}

/// A copy of the store has no owner: it is read beside a server, but not written under the server's keys.
#[test]
fn a_copy_of_the_store_is_verified_beside_a_server() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let made = command(&folder, &["call", "notes.list"]).output();
    assert!(made.expect("it runs").status.success());
    let copy = folder.path().join("copy.db");
    std::fs::copy(folder.path().join("data/countersign.db"), &copy).expect("it can be copied");
    let link = folder.path().join("link.db");
    std::os::unix::fs::symlink(folder.path().join("data/countersign.db"), &link)
        .expect("it can be linked");
    let kept = folder.path().join("kept");
    std::fs::copy(folder.path().join("data/checkpoint"), &kept).expect("it can be copied");

    let running = Running::start_in(folder, &[]);
    let store = |path: &Path| format!("sqlite:{}", path.display());
    let (copy, link, kept) = (store(&copy), store(&link), kept.display().to_string());
    let verify = ["verify", "--all", "--held", &kept, "--store"];
    let check = |words: &[&str], store: &str, code: i32, says: &str| {
        let output = running.run(&[words, &[store]].concat());
        let said = [&output.stdout[..], &output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert_eq!(output.status.code(), Some(code), "{words:?} {said}");
        assert!(said.contains(says), "{words:?} {said}");
    };
    check(&verify, &copy, 0, "valid");
    // Another name of its own file is the server's.
    check(&verify, &link, 0, "valid");
    let call = ["call", "notes.list", "--store"];
    check(&call, &copy, 2, "uses this data folder");
}

/// A port alone is one of this machine, and so is its usual name.
#[test]
fn a_port_alone_is_enough() {
    for address in ["0", "localhost:0"] {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let mut child = command(&folder, &["serve", "--json", "--listen", address])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("it is piped");
        let read = BufReader::new(stdout).read_line(&mut line);
        child.kill().expect("it can be stopped");
        child.wait().expect("it ends");
        read.expect("it can be read");
        assert!(line.contains("http://127.0.0.1:"), "{line}");
    }
}

/// Through a server or without one, a refusal is in the words of the command.
#[test]
fn a_refusal_is_the_same_with_and_without_a_server() {
    let mut running = Running::start(&[]);
    let check = |running: &Running| {
        let say = |words: &[&str]| {
            let output = running.run(words);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{said}");
            said
        };
        let missing = say(&["keys", "revoke", "0000000000000000"]);
        assert!(
            missing.ends_with("hint: `countersign keys list` lists all keys\n"),
            "{missing}"
        );
        let person = say(&["keys", "create", "--user", "agent/nightly"]);
        assert!(person.starts_with("error: --user must be "), "{person}");
        (missing, person)
    };
    let with = check(&running);
    running.signal("-TERM");
    running.child.wait().expect("it ends");
    assert_eq!(with, check(&running));
}

/// The welcome text of a server is true: it suggests nothing that would be refused.
#[test]
fn a_server_says_only_what_works() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let start = |words: &[&str]| {
        let words = [&["serve", "--log", "off", "--listen", "0"], words].concat();
        let mut child = command(&folder, &words)
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let stderr = child.stderr.take().expect("it is piped");
        // It says everything before it can be told to stop.
        let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
        let mut said: Vec<String> = Vec::new();
        for line in lines.by_ref() {
            let is_about_mcp = line.starts_with("MCP: ");
            said.push(line);
            if is_about_mcp {
                break;
            }
        }
        let pid = child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(sent.expect("kill is there").success());
        said.extend(lines);
        assert!(child.wait().expect("it ends").success());
        said.join("\n")
    };
    let write = |text: &str| {
        let path = folder.path().join("policy.toml");
        std::fs::write(&path, text).expect("it can be written");
        path.display().to_string()
    };
    assert!(start(&[]).contains("\ntry: curl http://127.0.0.1:"));
    let path = write("revision = \"open\"\ndefaults = { unlisted = \"allow\" }");
    let said = start(&["--policy", &path]);
    assert!(
        said.contains("policy: open@") && said.contains("try: "),
        "{said}"
    );
    let path = write("revision = \"closed\"");
    let said = start(&["--policy", &path]);
    assert!(
        said.contains("policy: closed@") && !said.contains("try: "),
        "{said}"
    );

    let made = command(&folder, &["keys", "create", "--user", "ann"]).output();
    assert!(made.expect("it runs").status.success());
    let said = start(&[]);
    assert!(!said.contains("try: "), "{said}");
    assert!(start(&["--allow-anonymous-loopback"]).contains("try: "));
}
