//! Notifications of a real server: sent again under the same id after a crash, tested and listed by the command, and
//! configured without a secret ever being shown.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};

use countersign_testkit::patience::Watchdog;
use serde_json::{Value, json};
use tempfile::TempDir;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

struct Folder(TempDir);

impl Folder {
    fn new(config: &str) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.write(config);
        folder
    }

    fn write(&self, config: &str) {
        fs::write(self.0.path().join("countersign.toml"), config).unwrap();
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
        command
            .args(words)
            .current_dir(self.0.path())
            .env("COUNTERSIGN_DATA", self.0.path().join("data"))
            .env("HOOK_SECRET", SECRET)
            .env_remove("COUNTERSIGN_STORE")
            .env_remove("COUNTERSIGN_MASTER_KEY");
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    fn json(&self, code: i32, words: &[&str]) -> Value {
        let output = self.run(&[words, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(code), "{words:?} {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn serve(&self) -> Server {
        let mut child = self
            .command(&["serve", "--json", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = child.stdout.as_mut().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        let url = said["url"].as_str().unwrap();
        Server {
            child,
            address: url.trim_start_matches("http://").to_owned(),
        }
    }
}

struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn ask(&self, method: &str, path: &str, body: &str) -> Value {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )
        .unwrap();
        let mut wire = String::new();
        stream.read_to_string(&mut wire).unwrap();
        let (_, body) = wire.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {wire}"))
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A request that arrived, and the connection on which it is answered.
struct Request {
    headers: BTreeMap<String, String>,
    body: String,
    stream: TcpStream,
}

impl Request {
    fn wait(listener: &TcpListener) -> Self {
        let (stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut headers = BTreeMap::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                if line.trim_end().is_empty() {
                    break;
                }
                continue;
            };
            headers.insert(name.to_ascii_lowercase(), value.to_owned());
        }
        let mut body = vec![0; headers["content-length"].parse().unwrap()];
        reader.read_exact(&mut body).unwrap();
        Self {
            headers,
            body: String::from_utf8(body).unwrap(),
            stream,
        }
    }

    fn answer(mut self, status: &str) {
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        self.stream.write_all(answer.as_bytes()).unwrap();
    }
}

fn config(address: &str) -> String {
    format!(
        "[shop]\nenabled = true\n[[notify]]\nname = \"ops\"\nkind = \"webhook\"\nurl = \"http://{address}/hook\"\nsecret = \"env:HOOK_SECRET\"\n"
    )
}

/// A server that is killed after it has sent and before it has recorded sends again, under the same id; what a command
/// lists, an operator is shown, and nothing of it is personal.
#[test]
fn a_killed_server_sends_again_under_the_same_id() {
    let _watchdog = Watchdog::start();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = Folder::new(&config(&listener.local_addr().unwrap().to_string()));
    let server = folder.serve();
    let note = json!({"arguments": {"text": "a private matter"}}).to_string();
    server.ask("POST", "/v1/tools/notes.add", &note);
    let asked = json!({"arguments": {"keep": 0}}).to_string();
    let reply = server.ask("POST", "/v1/tools/notes.clear", &asked);
    let approval = reply["error"]["details"]["approval_id"].as_str().unwrap();
    let first = Request::wait(&listener);
    assert_eq!(
        server.ask("GET", "/v1/notifications", "")["notifications"][0]["subject"],
        approval
    );
    server.kill();
    drop(first.stream);

    let server = folder.serve();
    let second = Request::wait(&listener);
    let id = |headers: &BTreeMap<String, String>| headers["webhook-id"].clone();
    assert_eq!(id(&first.headers), id(&second.headers));
    assert!(second.headers["webhook-signature"].starts_with("v1,"));
    assert!(second.body.contains(approval), "{}", second.body);
    for personal in ["a private matter", "u_local", "keep"] {
        assert!(!second.body.contains(personal), "{}", second.body);
    }
    let sent = id(&second.headers);
    second.answer("204 No Content");
    let listed = loop {
        let listed = folder.json(0, &["notify", "list"]);
        if listed[0]["deliveries"][0]["state"] == "delivered" {
            break listed;
        }
    };
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(listed[0]["id"], sent.as_str());
    assert_eq!(listed[0]["deliveries"][0]["attempts"], 2);
    drop(server);
    // Without a server the store says the same.
    assert_eq!(folder.json(0, &["notify", "list"]), listed);
    assert_eq!(
        folder.json(0, &["notify", "retry", "ops"]),
        json!({"retried": 0})
    );
}

/// A test message arrives, and a receiver that does not take it is named with the reason.
#[test]
fn a_receiver_is_tested() {
    let _watchdog = Watchdog::start();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = Folder::new(&config(&listener.local_addr().unwrap().to_string()));
    for (status, code, error) in [
        ("204 No Content", 0, Value::Null),
        ("401 Unauthorized", 1, json!("HTTP 401")),
        // A redirect is not followed.
        ("302 Found", 1, json!("HTTP 302")),
    ] {
        std::thread::scope(|scope| {
            let answering = scope.spawn(|| {
                let request = Request::wait(&listener);
                let body: Value = serde_json::from_str(&request.body).unwrap();
                request.answer(status);
                body
            });
            let told = folder.json(code, &["notify", "test", "ops"]);
            assert_eq!(
                (&told[0]["error"], &told[0]["delivered"]),
                (&error, &json!(code == 0))
            );
            let body = answering.join().unwrap();
            assert_eq!(
                (&body["type"], &body["data"]["id"]),
                (&json!("test"), &told[0]["id"])
            );
        });
    }
    let unknown = folder.run(&["notify", "test", "nobody"]);
    assert_eq!(unknown.status.code(), Some(2), "{unknown:?}");
}

/// Mistakes are found at their place before anything is sent, and no secret is shown.
#[test]
fn receivers_are_checked() {
    let _watchdog = Watchdog::start();
    let folder = Folder::new("");
    let hook = "[[notify]]\nname = \"ops\"\nkind = \"webhook\"\n";
    let mail = "[[notify]]\nname = \"ops\"\nkind = \"email\"\n";
    for (text, said) in [
        (
            format!("{hook}secret = \"env:HOOK_SECRET\"\n"),
            "notify[0].url: a webhook has an address",
        ),
        (
            format!("{hook}url = \"http://a.example\"\nsecret = \"env:HOOK_SECRET\"\n"),
            "notify[0].url: the address is not encrypted, and on another machine",
        ),
        (
            format!("{hook}url = \"https://a.example\"\n"),
            "notify[0].secret: a webhook is signed",
        ),
        (
            format!("{hook}url = \"https://a.example\"\nsecret = \"env:NO_SUCH_SECRET\"\n"),
            "notify[0].secret: the variable NO_SUCH_SECRET is not set",
        ),
        (
            format!("{hook}url = \"https://a.example\"\nsecret = \"env:HOME\"\n"),
            "notify[0].secret: the secret is not `whsec_`",
        ),
        (
            format!(
                "{hook}url = \"https://a.example\"\nsecret = \"env:HOOK_SECRET\"\nevents = [\"all\"]\n"
            ),
            "notify[0].events[0]: the value is not one of those allowed",
        ),
        (
            format!(
                "{mail}smtp = \"smtp://m.example\"\nfrom = \"nobody\"\nto = [\"a@b.example\"]\n"
            ),
            "notify[0].from: the sender is not an e-mail address",
        ),
        (
            format!(
                "{mail}smtp = \"mail.example\"\nfrom = \"a@b.example\"\nto = [\"a@b.example\"]\n"
            ),
            "notify[0].smtp: ",
        ),
        (
            format!("{mail}smtp = \"smtp://m.example\"\nfrom = \"a@b.example\"\n"),
            "notify[0].to: e-mail has a recipient",
        ),
    ] {
        folder.write(&text);
        let output = folder.run(&["lint"]);
        let out = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{text} {out}");
        assert!(out.contains(said), "{said} is not in {out}");
        let refused = folder.run(&["serve", "--listen", "127.0.0.1:0"]);
        assert_eq!(refused.status.code(), Some(2), "{text} {refused:?}");
    }
    folder.write(&format!(
        "[server]\npublic_url = \"https://tools.example.com\"\n{}",
        config("127.0.0.1:9")
    ));
    let shown = folder.run(&["config", "show", "--origin"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(
        shown.contains("env:HOOK_SECRET") && !shown.contains("whsec_"),
        "{shown}"
    );
}

/// A receiver that is added while the server runs is sent what is open.
#[test]
fn a_receiver_is_added_while_the_server_runs() {
    let _watchdog = Watchdog::start();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = Folder::new("[shop]\nenabled = true\n");
    let server = folder.serve();
    let reply = server.ask(
        "POST",
        "/v1/tools/notes.clear",
        "{\"arguments\": {\"keep\": 0}}",
    );
    let approval = reply["error"]["details"]["approval_id"].as_str().unwrap();
    let address = listener.local_addr().unwrap().to_string();
    folder.write(&config(&address));
    let request = Request::wait(&listener);
    assert!(request.body.contains(approval), "{}", request.body);
    request.answer("200 OK");
}
