//! `docs/http.md`, `docs/interop.md` and `docs/callers.md` are tested: every command on them is run against a server of its own.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use countersign_testkit::patience::Watchdog;
use serde_json::Value;

/// Placeholder that matches anything.
const ANY: &str = "…";

struct Server {
    child: Child,
    url: String,
    _watchdog: Watchdog,
}

impl Server {
    fn start(folder: &std::path::Path) -> Self {
        let watchdog = Watchdog::start();
        let mut child = Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(["serve", "--json", "--listen", "127.0.0.1:0"])
            .env("COUNTERSIGN_DATA", folder)
            .env_remove("COUNTERSIGN_STORE")
            .env_remove("COUNTERSIGN_MASTER_KEY")
            .stdout(Stdio::piped())
            .spawn()
            .expect("cargo has built the command before its tests");
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("it is piped");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let said: Value = serde_json::from_str(&line).expect("JSON");
        let url = said.get("url").and_then(Value::as_str);
        let url = url.expect("it says where it listens").to_owned();
        Self {
            child,
            url,
            _watchdog: watchdog,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_page_shows_what_happens() {
    assert_shown("http.md", 7);
}

#[test]
fn the_page_about_other_standards_shows_what_happens() {
    assert_shown("interop.md", 5);
}

#[test]
fn the_page_for_callers_shows_what_happens() {
    assert_shown("callers.md", 3);
}

/// The loop on the page for callers is that of the program, and the program works: it makes a call, and waits for the
/// answer of a person.
#[test]
fn the_program_for_callers_works() {
    let docs = format!("{}/../../docs", env!("CARGO_MANIFEST_DIR"));
    let read = |file: &str| std::fs::read_to_string(format!("{docs}/{file}")).expect("it is there");
    let page = read("callers.md");
    let shown = blocks(&page).into_iter().find(|(kind, _)| kind == "python");
    let (_, shown) = shown.expect("the page has a loop in Python");
    assert!(
        read("examples/caller.py").contains(&shown),
        "docs/callers.md shows another loop than docs/examples/caller.py"
    );

    let folder = tempfile::tempdir().expect("a folder can be made");
    let server = Server::start(folder.path());
    let call = |tool: &str, arguments: &str| {
        let mut command = Command::new("python3");
        command.args([&format!("{docs}/examples/caller.py"), tool, arguments]);
        command.env("COUNTERSIGN_URL", &server.url);
        command.env_remove("COUNTERSIGN_KEY");
        command
    };
    let made = call("notes.add", r#"{"text": "buy tea"}"#).output();
    let made = String::from_utf8(made.expect("there is Python").stdout).expect("UTF-8");
    assert!(made.contains("buy tea"), "{made}");

    let mut asks = call("notes.clear", "{}")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("there is Python");
    let approved = answer_first_approval(folder.path());
    assert!(
        approved,
        "the program asks for an approval, and it is given"
    );
    let mut line = String::new();
    let stdout = asks.stdout.take().expect("it is piped");
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    assert!(asks.wait().expect("it ends").success());
    assert_eq!(line.trim(), r#"{"cleared": 1}"#);
}

/// Approves the first question, as the operator, once there is one.
fn answer_first_approval(folder: &std::path::Path) -> bool {
    let countersign = |args: &[&str]| {
        let run = Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(args)
            .env("COUNTERSIGN_DATA", folder)
            .env_remove("COUNTERSIGN_STORE")
            .output();
        run.expect("cargo has built the command before its tests")
    };
    // The server's watchdog ends this if there is never a question.
    loop {
        let listed = countersign(&["approvals", "list", "--json"]);
        let text = String::from_utf8_lossy(&listed.stdout).into_owned();
        if let Some(id) = text.split('"').find(|part| part.starts_with("ap_")) {
            return countersign(&["approvals", "approve", id]).status.success();
        }
    }
}

/// Runs every command of a page and compares the output; there are at least `examples_min`.
fn assert_shown(page: &str, examples_min: usize) {
    let page = format!("{}/../../docs/{page}", env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(page).expect("the page is there");
    let folder = tempfile::tempdir().expect("a folder can be made");
    let server = Server::start(folder.path());
    let mut blocks = blocks(&page).into_iter();
    let mut count = 0;
    while let Some((kind, commands)) = blocks.next() {
        if kind != "sh" || !commands.contains("curl") {
            continue;
        }
        let commands = commands.replace("http://127.0.0.1:8787", &server.url);
        let run = Command::new("sh").args(["-c", &commands]).output();
        let run = run.expect("there is a shell");
        assert!(run.status.success(), "{commands}: {run:?}");
        let output = String::from_utf8(run.stdout)
            .expect("UTF-8")
            .replace('\r', "");
        let (kind, expected) = blocks.next().expect("a command is followed by its output");
        if kind == "json" {
            let expected: Value = serde_json::from_str(&expected).expect("the page has JSON");
            let output: Value = serde_json::from_str(&output).expect("the server sends JSON");
            assert!(is_shown(&expected, &output), "{commands}\n{output:#}");
        } else {
            let lines = |text: &str| text.trim().lines().map(str::to_owned).collect::<Vec<_>>();
            let (expected, output) = (lines(&expected), lines(&output));
            let is_same = expected.len() == output.len()
                && expected
                    .iter()
                    .zip(&output)
                    .all(|(a, b)| is_shown_line(a, b));
            assert!(is_same, "{commands}\n{output:#?}");
        }
        count += 1;
    }
    assert!(count >= examples_min, "{count} examples");
}

/// Returns the fenced blocks of a page: their kind and their content.
fn blocks(page: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), open.take()) {
            (Some(kind), None) => open = Some((kind.to_owned(), String::new())),
            (Some(_), Some(block)) => blocks.push(block),
            (None, Some((kind, text))) => open = Some((kind, text + line + "\n")),
            (None, None) => {}
        }
    }
    blocks
}

/// True if a value is the one that the page shows; numbers may be spelt differently.
fn is_shown(expected: &Value, found: &Value) -> bool {
    match (expected, found) {
        (Value::String(any), _) if any == ANY => true,
        (Value::Object(expected), Value::Object(found)) => {
            expected.len() == found.len()
                && expected.iter().all(|(name, value)| {
                    let found = found.get(name);
                    found.is_some_and(|found| is_shown(value, found))
                })
        }
        (Value::Array(expected), Value::Array(found)) => {
            expected.len() == found.len() && expected.iter().zip(found).all(|(a, b)| is_shown(a, b))
        }
        (expected, found) => expected == found,
    }
}

fn is_shown_line(expected: &str, found: &str) -> bool {
    match expected.split_once(ANY) {
        Some((before, after)) => found.starts_with(before) && found.ends_with(after),
        None => expected == found,
    }
}
