//! Telemetry of a server, tested as a process: its stderr, its collector and the files it leaves.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;

use countersign_testkit::patience::{PATIENCE, Watchdog};
use serde_json::Value;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// Takes one request, answers it, and hands its body on.
fn collector() -> (String, mpsc::Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    let (sender, received) = mpsc::channel();
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().expect("it is called");
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            let bytes = reader.read_line(&mut line).expect("a head has lines");
            assert_ne!(bytes, 0, "the request ends in its head");
            let lower = line.to_lowercase();
            if let Some(text) = lower.strip_prefix("content-length:") {
                length = text.trim().parse().expect("it is a number");
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("the body is whole");
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        reader.get_mut().write_all(answer).expect("it is read");
        sender.send(body).expect("the test waits");
    });
    (url, received)
}

fn files_under(folder: &Path) -> Vec<PathBuf> {
    let entries = folder.read_dir().expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("it is listed").path());
    let found = paths.flat_map(|path| {
        if path.is_dir() {
            files_under(&path)
        } else {
            vec![path]
        }
    });
    found.collect()
}

fn ask(address: &str, head: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let length = body.len();
    let fixed = format!("host: {address}\r\nconnection: close\r\ncontent-length: {length}");
    write!(stream, "{head}\r\n{fixed}\r\n\r\n{body}").expect("it takes requests");
    let mut wire = String::new();
    stream.read_to_string(&mut wire).expect("it answers");
    wire
}

/// A6, A21: the log is JSON with the caller's trace, the span is below it and was sent before the server ended, and no sink has the
/// caller's data.
#[test]
#[expect(clippy::too_many_lines, reason = "one life of a server")]
fn a_server_says_what_it_does_and_nothing_of_what_it_is_sent() {
    let _watchdog = Watchdog::start();
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (collector, received) = collector();
    let mut child = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(["serve", "--json", "--listen", "127.0.0.1:0"])
        .args(["--log", "trace", "--otlp", &collector])
        .env("COUNTERSIGN_DATA", folder.path())
        .env_remove("COUNTERSIGN_STORE")
        .env_remove("COUNTERSIGN_MASTER_KEY")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("cargo has built the command before its tests");
    let mut said = String::new();
    let stdout = child.stdout.as_mut().expect("it is piped");
    BufReader::new(stdout)
        .read_line(&mut said)
        .expect("it says where");
    let said: Value = serde_json::from_str(&said).expect("the first line is JSON");
    let address = said["url"].as_str().expect("an address");
    let address = address.trim_start_matches("http://").to_owned();

    let head =
        format!("POST /v1/tools/notes.add HTTP/1.1\r\ntraceparent: 00-{TRACE}-00f067aa0ba902b7-01");
    let body = r#"{"arguments": {"text": "for Zacharias Quuxington, 13812345678"}}"#;
    assert!(ask(&address, &head, body).starts_with("HTTP/1.1 200"));
    let nowhere = "GET /Quuxington?tel=13812345678 HTTP/1.1\r\nuser-agent: Quuxington";
    assert!(ask(&address, nowhere, "").starts_with("HTTP/1.1 404"));
    let kill = Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status();
    assert!(kill.expect("kill is there").success());
    let ended = child.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(0));

    let log = String::from_utf8(ended.stderr).expect("a log is text");
    let events = log.lines().map(|line| {
        serde_json::from_str::<Value>(line).unwrap_or_else(|_| panic!("every line is JSON: {line}"))
    });
    let events: Vec<_> = events.collect();
    let call = events
        .iter()
        .find(|event| event["message"] == "call answered");
    let call = call.expect("a call has its line");
    assert_eq!(
        (&call["tool"], &call["trace_id"]),
        (&"notes.add".into(), &TRACE.into())
    );
    let stopped = events.last().expect("it says that it ends");
    assert_eq!(
        (&stopped["level"], &stopped["message"]),
        (&"INFO".into(), &"stopped".into())
    );
    let refused = |event: &&Value| event["message"] == "request refused";
    assert_eq!(
        events.iter().find(refused).expect("so has what is none")["reason"],
        "not_found"
    );

    let span = received
        .recv_timeout(PATIENCE)
        .expect("it was sent before the end");
    let text = String::from_utf8_lossy(&span);
    assert!(text.contains("execute_tool notes.add"), "{text}");
    let mut sinks = vec![("the log", log.into_bytes()), ("the span", span)];
    let files = files_under(folder.path());
    assert!(files.len() > 2, "{files:?}");
    for path in files {
        sinks.push(("a file", std::fs::read(path).expect("it can be read")));
    }
    for (sink, bytes) in sinks {
        let text = String::from_utf8_lossy(&bytes);
        for needle in ["Quuxington", "13812345678"] {
            assert!(!text.contains(needle), "{needle} in {sink}");
        }
    }
}

/// With `--log-format json` alone, where the server listens is a line of the log too, and so is why it cannot start.
#[test]
fn a_json_log_has_no_other_lines() {
    let _watchdog = Watchdog::start();
    let folder = tempfile::tempdir().expect("a folder can be made");
    let serve = |listen: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
        command
            .args(["serve", "--log-format", "json", "--listen", listen])
            .env("COUNTERSIGN_DATA", folder.path())
            .env_remove("COUNTERSIGN_STORE")
            .env_remove("COUNTERSIGN_MASTER_KEY")
            .stderr(Stdio::piped());
        command
    };
    let mut child = serve("127.0.0.1:0").spawn().expect("it is built");
    let mut log = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let listens = log.find_map(|line| {
        let line = line.expect("it is text");
        let event: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("JSON: {line}"));
        let message = event["message"].as_str().unwrap_or_default().to_owned();
        message
            .strip_prefix("listening on http://")
            .map(str::to_owned)
    });
    let address = listens.expect("it says where it listens");
    let refused = serve(&address).output().expect("it ends");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let text = String::from_utf8(refused.stderr).expect("it is text");
    let last: Value = serde_json::from_str(text.lines().last().unwrap_or_default())
        .unwrap_or_else(|_| panic!("JSON: {text}"));
    assert_eq!(last["level"], "ERROR", "{text}");
    assert!(last["hint"].is_string(), "{text}");
}
