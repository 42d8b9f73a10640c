//! `docs/tutorial.md` is tested: its files are written and its commands are run in order, in one shell, as a new user would.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use countersign_testkit::patience::Watchdog;
use tempfile::TempDir;

/// Placeholder that matches anything.
const ANY: char = '…';

/// The line that ends the output of a command.
const END: &str = "--- the command has ended ---";

/// A shell in a folder of its own.
struct Shell {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    folder: TempDir,
    /// The ports of the server and of the service: those of the page may be taken.
    ports: [u16; 2],
    _watchdog: Watchdog,
}

impl Shell {
    fn start() -> Self {
        let watchdog = Watchdog::start();
        let folder = tempfile::tempdir().unwrap();
        let taken = [0, 0].map(|port| TcpListener::bind(("127.0.0.1", port)).unwrap());
        let ports = taken.map(|listener| listener.local_addr().unwrap().port());
        let program = Path::new(env!("CARGO_BIN_EXE_countersign"));
        let mut path = vec![program.parent().unwrap().to_owned()];
        let usual = std::env::var_os("PATH").unwrap_or_default();
        path.extend(std::env::split_paths(&usual));
        let mut child = Command::new("bash")
            // Job control, so that %1 and %2 can be stopped.
            .args(["--norc", "-m"])
            .current_dir(folder.path())
            .env("PATH", std::env::join_paths(path).unwrap())
            .env("CHECKOUT", root())
            .env("PORT", ports[1].to_string())
            .env_remove("COUNTERSIGN_STORE")
            .env_remove("COUNTERSIGN_MASTER_KEY")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
            folder,
            ports,
            _watchdog: watchdog,
        }
    }

    /// The lines that a command writes.
    fn run(&mut self, command: &str) -> Vec<String> {
        let [server, _] = self.ports;
        let command = command.replace(":8787", &format!(":{server}"));
        // A program in the background keeps its own output.
        let line = if command.ends_with('&') {
            format!("{command}\necho '{END}'\n")
        } else {
            format!("{{ {command}\n}} 2>&1; echo; echo '{END}'\n")
        };
        self.input.write_all(line.as_bytes()).unwrap();
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            let read = self.output.read_line(&mut line).unwrap();
            assert!(read > 0, "the shell has ended in {command}");
            if line.trim_end() == END {
                break;
            }
            lines.push(line.trim_end().to_owned());
        }
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        self.settle(&command);
        lines
    }

    /// Does what a reader does without being told: takes a free port, and waits until the server listens.
    fn settle(&self, command: &str) {
        let [server, service] = self.ports;
        let file = self.folder.path().join("countersign.toml");
        if command.starts_with("countersign init") {
            let text = std::fs::read_to_string(&file).unwrap();
            let text = text.replace(":8787", &format!(":{server}"));
            std::fs::write(&file, text).unwrap();
        }
        let started = match command {
            _ if !command.ends_with('&') => return,
            _ if command.starts_with("countersign serve") => server,
            _ => service,
        };
        while TcpStream::connect(("127.0.0.1", started)).is_err() {
            std::thread::yield_now();
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // Its jobs are ended with it; each has a group of its own.
        let _ = self.input.write_all(b"kill -9 $(jobs -p)\nexit\n");
        let _ = self.child.wait();
    }
}

/// N1, P2: a new user's ten minutes. A Python function is called over HTTP and MCP, repeated, refused, approved, denied and verified.
#[test]
fn the_tutorial_shows_what_happens() {
    let page = std::fs::read_to_string(root().join("docs/tutorial.md")).unwrap();
    let mut shell = Shell::start();
    let mut count = 0;
    for (kind, text) in blocks(&page) {
        match kind {
            "python" => std::fs::write(shell.folder.path().join("app.py"), text).unwrap(),
            "console" => {
                for (command, expected) in commands(&text) {
                    let output = shell.run(command);
                    assert!(
                        is_shown(&expected, &output),
                        "$ {command}\n{}\n--- is shown as\n{}",
                        output.join("\n"),
                        expected.join("\n")
                    );
                    count += 1;
                }
            }
            other => panic!("nothing is done with a block of {other:?}"),
        }
    }
    assert!(count >= 20, "{count} commands");
}

#[test]
fn what_differs_is_found() {
    let shown = |page: &[&str], output: &[&str]| {
        let output: Vec<String> = output.iter().map(ToString::to_string).collect();
        is_shown(page, &output)
    };
    assert!(shown(&["a…c", "…", "d"], &["abc", "x", "y", "d"]));
    assert!(shown(&["…", "d"], &["d"]));
    assert!(shown(&["a…b…"], &["a1b2"]));
    assert!(!shown(&["a…b…"], &["b1a2"]));
    assert!(!shown(&["a"], &["a", "b"]));
    assert!(!shown(&["a", "…", "b"], &["a", "c"]));
    assert!(!shown(&[], &["error"]));
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The fenced blocks of a page: their kind, and their text.
fn blocks(page: &str) -> Vec<(&str, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(&str, String)> = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), open.take()) {
            (Some(kind), None) => open = Some((kind, String::new())),
            (Some(_), Some(block)) => blocks.push(block),
            (None, Some((kind, text))) => open = Some((kind, text + line + "\n")),
            (None, None) => {}
        }
    }
    blocks
}

/// The commands of a block, each with the lines that it shows.
fn commands(block: &str) -> Vec<(&str, Vec<&str>)> {
    let mut commands: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push((command, Vec::new())),
            (None, Some((_, lines))) => lines.push(line),
            (None, None) => panic!("a block begins with a command, not with {line}"),
        }
    }
    commands
}

/// True if output is what a page shows. A line that is only an ellipsis stands for any number of lines.
fn is_shown(page: &[&str], output: &[String]) -> bool {
    match (page, output) {
        ([], []) => true,
        (["…", rest @ ..], _) => {
            (0..=output.len()).any(|skipped| is_shown(rest, output.split_at(skipped).1))
        }
        ([line, rest @ ..], [found, others @ ..]) => {
            is_shown_line(line, found) && is_shown(rest, others)
        }
        ([], [_, ..]) | ([_, ..], []) => false,
    }
}

fn is_shown_line(shown: &str, found: &str) -> bool {
    let mut parts = shown.split(ANY);
    let Some(mut rest) = parts.next().and_then(|first| found.strip_prefix(first)) else {
        return false;
    };
    let mut last = None;
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = rest.split_at(at + part.len()).1;
        last = Some(part);
    }
    // Behind the last ellipsis is the end of the line.
    match last {
        None => rest.is_empty(),
        Some(part) => part.is_empty() || rest.is_empty() || found.ends_with(part),
    }
}
