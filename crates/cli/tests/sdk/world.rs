//! Processes: services with tools, and a server in front of them.

use std::io::{BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};

use countersign_testkit::patience::{PATIENCE, Watchdog};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The secret that a server and its services share.
pub(crate) const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A program or folder that the set-up of the tests has made.
fn made(variable: &str, usual: &str) -> PathBuf {
    let named = std::env::var_os(variable).map(PathBuf::from);
    let path = named.unwrap_or_else(|| root().join("target").join(usual));
    assert!(
        path.exists(),
        "{} is not there: `cargo xtask sdk` makes it, and so does `cargo xtask test`",
        path.display()
    );
    path
}

/// The Python with `FastAPI`.
pub(crate) fn python() -> PathBuf {
    made("COUNTERSIGN_TEST_SDK_PYTHON", "test-sdk-python/bin/python3")
}

/// The folder whose `node_modules` has Express.
pub(crate) fn node_folder() -> PathBuf {
    made("COUNTERSIGN_TEST_SDK_NODE", "test-sdk-node")
}

/// Python, which finds `countersign_tool` in the folder of its source.
pub(crate) fn python_command() -> Command {
    let mut command = Command::new(python());
    command.env("PYTHONPATH", root().join("sdk/python"));
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// Runs a command to its end; it has to succeed.
pub(crate) fn run(command: &mut Command) -> String {
    let _watchdog = Watchdog::start();
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A folder below that of Node, so that programs in it find Express, with the package as npm installs it: by a link.
pub(crate) fn node_project() -> TempDir {
    let folder = tempfile::tempdir_in(node_folder()).unwrap();
    let manifest = r#"{"private": true, "type": "module"}"#;
    std::fs::write(folder.path().join("package.json"), manifest).unwrap();
    let modules = folder.path().join("node_modules");
    std::fs::create_dir(&modules).unwrap();
    let package = root().join("sdk/typescript");
    std::os::unix::fs::symlink(package, modules.join("countersign-tool")).unwrap();
    folder
}

/// Language or framework that a service is written with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `python service.py`.
    Python,
    /// `uvicorn service:app`, with the tools mounted into `FastAPI`.
    FastApi,
    /// `node service.mjs`.
    Node,
    /// The tools mounted into Express.
    Express,
}

/// A service that is running.
pub(crate) struct Service {
    kind: Kind,
    child: Child,
    pub(crate) port: u16,
    said: Lines,
    /// The folder that the program is in, and its journal.
    folder: TempDir,
    _watchdog: Watchdog,
}

/// Outputs on which a service writes lines.
enum Lines {
    Out(BufReader<ChildStdout>),
    Error(BufReader<ChildStderr>, BufReader<ChildStdout>),
}

impl Service {
    pub(crate) fn start(kind: Kind) -> Self {
        let own = root().join("crates/cli/tests/sdk");
        let folder = match kind {
            Kind::Python | Kind::FastApi => {
                let folder = tempfile::tempdir().unwrap();
                std::fs::copy(own.join("service.py"), folder.path().join("service.py")).unwrap();
                folder
            }
            Kind::Node | Kind::Express => {
                let folder = node_project();
                std::fs::copy(own.join("service.mjs"), folder.path().join("service.mjs")).unwrap();
                folder
            }
        };
        Self::start_in(kind, folder, 0, false)
    }

    fn start_in(kind: Kind, folder: TempDir, port: u16, is_calm: bool) -> Self {
        let watchdog = Watchdog::start();
        let mut command = program(kind, folder.path(), port);
        if is_calm {
            command.env("CALM", "1");
        }
        let is_quiet = kind != Kind::FastApi;
        let child = command
            .stdout(Stdio::piped())
            .stderr(if is_quiet {
                Stdio::null()
            } else {
                Stdio::piped()
            })
            .spawn();
        let mut child = child.unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut said = match child.stderr.take() {
            None => Lines::Out(out),
            Some(error) => Lines::Error(BufReader::new(error), out),
        };
        let port = match &mut said {
            Lines::Out(out) => port_of(out),
            Lines::Error(error, _) => port_of(error),
        };
        let port = port.unwrap_or_else(|| panic!("{kind:?} has ended before it listened"));
        Self {
            kind,
            child,
            port,
            said,
            folder,
            _watchdog: watchdog,
        }
    }

    /// The next line that it says.
    pub(crate) fn line(&mut self) -> String {
        match &mut self.said {
            Lines::Out(out) | Lines::Error(_, out) => line_of(out),
        }
    }

    /// The effects that there are.
    pub(crate) fn orders(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.path().join("journal"));
        let text = text.unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The entries of its tools, as it prints them itself.
    pub(crate) fn entries(&self) -> String {
        let kind = match self.kind {
            Kind::Python | Kind::FastApi => Kind::Python,
            Kind::Node | Kind::Express => Kind::Node,
        };
        run(program(kind, self.folder.path(), self.port).arg("--countersign"))
    }

    /// `kill -9`, and the same service again on the same port, in a better mood.
    pub(crate) fn killed_and_started(mut self) -> Self {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let folder = std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap());
        Self::start_in(self.kind, folder, self.port, true)
    }

    /// Status and body of a request that does not come from the server.
    pub(crate) fn ask(&self, request: &[u8]) -> (u16, String) {
        ask(&format!("127.0.0.1:{}", self.port), request)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program that says where it listens, and is ended with the test.
pub(crate) struct Running {
    child: Child,
    pub(crate) port: u16,
    _watchdog: Watchdog,
}

impl Running {
    /// Starts a program that writes its address to the standard output, or to the standard error.
    pub(crate) fn start(command: &mut Command, says: Says) -> Self {
        let watchdog = Watchdog::start();
        let (out, error) = match says {
            Says::Out => (Stdio::piped(), Stdio::null()),
            Says::Error => (Stdio::null(), Stdio::piped()),
        };
        let mut child = command.stdout(out).stderr(error).spawn().unwrap();
        let port = match says {
            Says::Out => port_of(&mut BufReader::new(child.stdout.as_mut().unwrap())),
            Says::Error => port_of(&mut BufReader::new(child.stderr.as_mut().unwrap())),
        };
        Self {
            child,
            port: port.unwrap_or_else(|| panic!("{command:?} has ended before it listened")),
            _watchdog: watchdog,
        }
    }
}

/// Output on which a program writes its address.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Says {
    Out,
    Error,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the port of the first address in the output.
fn port_of(lines: &mut impl std::io::BufRead) -> Option<u16> {
    loop {
        let line = line_of(lines);
        if line.is_empty() {
            return None;
        }
        let after = line.split("http://127.0.0.1:").nth(1);
        let digits = after.and_then(|text| text.split(|c: char| !c.is_ascii_digit()).next());
        if let Some(port) = digits.and_then(|text| text.parse().ok()) {
            return Some(port);
        }
    }
}

fn line_of(reader: &mut impl std::io::BufRead) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    line
}

/// The command that runs a service.
fn program(kind: Kind, folder: &Path, port: u16) -> Command {
    let port = port.to_string();
    let mut command = match kind {
        Kind::Python | Kind::FastApi => python_command(),
        Kind::Node | Kind::Express => Command::new("node"),
    };
    match kind {
        Kind::Python => command.arg("service.py"),
        Kind::FastApi => command
            .args(["-m", "uvicorn", "service:app", "--no-access-log"])
            .args(["--port", &port]),
        Kind::Node => command.arg("service.mjs"),
        Kind::Express => command.args(["service.mjs", "express"]),
    };
    command
        .current_dir(folder)
        .env("PORT", port)
        .env("JOURNAL", folder.join("journal"))
        .env("SVC_IDENTITY_SECRET", SECRET);
    command
}

/// A server with a configuration of its own.
pub(crate) struct Gateway {
    folder: TempDir,
    child: Child,
    address: String,
    _watchdog: Watchdog,
}

impl Gateway {
    /// A server with these entries.
    pub(crate) fn start(entries: &str) -> Self {
        let watchdog = Watchdog::start();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("countersign.toml"), entries).unwrap();
        let log = folder.path().join("log");
        let mut child = command(&folder)
            .args(["serve", "--json", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let line = line_of(&mut BufReader::new(child.stdout.as_mut().unwrap()));
        let said: Value = serde_json::from_str(&line).unwrap_or_else(|_| {
            let log = std::fs::read_to_string(&log).unwrap();
            panic!("it does not start with\n{entries}\n{log}")
        });
        let address = said["url"].as_str().unwrap().replace("http://", "");
        Self {
            folder,
            child,
            address,
            _watchdog: watchdog,
        }
    }

    /// The reply to a call of a tool; members of the envelope stand beside the arguments.
    pub(crate) fn call(&self, tool: &str, arguments: &str, envelope: Value) -> Value {
        let mut body = envelope;
        body["arguments"] = json!(arguments);
        let body = body.to_string();
        let request = format!(
            "POST /v1/tools/{tool} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        let (_, reply) = ask(&self.address, request.as_bytes());
        serde_json::from_str(&reply).unwrap_or_else(|_| panic!("{reply}"))
    }

    /// The same under a key.
    pub(crate) fn keyed(&self, tool: &str, arguments: &str, key: &str) -> Value {
        self.call(tool, arguments, json!({ "idempotency_key": key }))
    }

    /// A command beside the server.
    pub(crate) fn run(&self, words: &[&str]) -> Output {
        let _watchdog = Watchdog::start();
        command(&self.folder).args(words).output().unwrap()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(folder: &TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command
        .current_dir(folder.path())
        .env("COUNTERSIGN_DATA", folder.path().join("data"))
        .env("COUNTERSIGN_OPERATOR", "tester")
        .env("SVC_IDENTITY_SECRET", SECRET)
        .env("ORDERS_IDENTITY_SECRET", SECRET)
        .env_remove("COUNTERSIGN_STORE")
        .env_remove("COUNTERSIGN_MASTER_KEY");
    command
}

/// The status and the body of the answer to a request, which ends its connection.
pub(crate) fn ask(address: &str, request: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request).unwrap();
    let mut wire = Vec::new();
    stream.read_to_end(&mut wire).unwrap();
    let wire = String::from_utf8_lossy(&wire);
    let (head, body) = wire
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("{wire}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let is_chunked = head
        .to_ascii_lowercase()
        .contains("transfer-encoding: chunked");
    let body = if is_chunked {
        body.split("\r\n").nth(1).unwrap_or_default()
    } else {
        body
    };
    (status, body.to_owned())
}

/// A reply on one line: what came out of the call, and the warnings.
pub(crate) fn told(reply: &Value) -> String {
    let warnings = reply["warnings"].as_array().into_iter().flatten();
    let warnings: Vec<_> = warnings.filter_map(|it| it["code"].as_str()).collect();
    if reply["ok"] == true {
        return format!("{} [{}]", reply["data"], warnings.join(" "));
    }
    let error = &reply["error"];
    let retry = if error["details"]["retryable"] == true {
        "retryable"
    } else {
        "final"
    };
    let reason = error["details"]["reason"].as_str().unwrap_or_default();
    format!("{}: {} [{retry} {reason}]", error["code"], error["message"])
        .replace('"', "")
        .replace(" ]", "]")
}
