//! A folder with a configuration, its commands, and a server over it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use countersign_testkit::patience::Watchdog;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A folder with a configuration, and the world of a server that is written in Python.
pub(crate) struct Installation {
    pub(crate) folder: TempDir,
    _watchdog: Watchdog,
}

/// Output and exit code of a command.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Seen {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    #[track_caller]
    pub(crate) fn ended(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }
}

/// The server of the tests of upstreams.
pub(crate) fn server() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../upstream/tests/mcp/server.py")
}

impl Installation {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("world")).unwrap();
        Self {
            folder,
            _watchdog: Watchdog::start(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The words that start the server.
    pub(crate) fn server_words(&self) -> Vec<String> {
        let (server, world) = (server(), self.path("world"));
        let words = [
            "python3",
            "-S",
            server.to_str().unwrap(),
            world.to_str().unwrap(),
        ];
        words.map(str::to_owned).to_vec()
    }

    pub(crate) fn with_server(self) -> Self {
        let command = json!(self.server_words()).to_string();
        let text = format!("[[upstream]]\nname = 'plain'\nkind = 'mcp'\ncommand = {command}\n");
        std::fs::write(self.path("countersign.toml"), text).unwrap();
        self
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
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

    pub(crate) fn run(&self, words: &[&str], input: &str) -> Seen {
        let mut child = self
            .command(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        Seen {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    pub(crate) fn ok(&self, words: &[&str]) -> Seen {
        self.run(words, "").ended(0)
    }

    /// A server over the configuration.
    pub(crate) fn serve(&self) -> Served {
        let mut process = self
            .command(&["serve", "--json", "--listen", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = process.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        let address = said["url"].as_str().unwrap().replace("http://", "");
        Served { process, address }
    }
}

/// A server that runs until it is dropped.
pub(crate) struct Served {
    pub(crate) process: Child,
    pub(crate) address: String,
}

impl Served {
    /// The whole answer to a request, as text.
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: &str,
    ) -> String {
        let mut stream = self.open(method, path, headers, body);
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// A request that was sent; its answer is read from the stream.
    pub(crate) fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: &str,
    ) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let lines = headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"));
        let headers = lines.collect::<Vec<_>>().concat();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.address,
            body.len()
        )
        .unwrap();
        stream
    }

    /// The status and the JSON of an answer.
    pub(crate) fn post(&self, path: &str, headers: &str, body: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let (address, length) = (&self.address, body.len());
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        // A body that is refused may not be read to its end.
        let _ = stream.write_all(body.as_bytes());
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        let status = answer.split(' ').nth(1).and_then(|it| it.parse().ok());
        let (_, body) = answer
            .split_once("\r\n\r\n")
            .unwrap_or_else(|| panic!("{answer:?}"));
        let lines = body
            .lines()
            .map(|line| line.strip_prefix("data:").unwrap_or(line));
        let mut documents =
            lines.filter_map(|line| serde_json::from_str::<Value>(line.trim()).ok());
        // The size of a chunk is a number.
        let document = documents.find(Value::is_object);
        (status.unwrap(), document.unwrap_or(Value::Null))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A message of MCP in one of the two eras, with the headers that belong to it.
pub(crate) fn message(era: &str, method: &str, params: &Value) -> (Vec<(String, String)>, String) {
    let mut params = params.clone();
    let mut headers = vec![
        ("Accept", "application/json, text/event-stream".to_owned()),
        ("Content-Type", "application/json".to_owned()),
        ("MCP-Protocol-Version", era.to_owned()),
    ];
    if era == NEW {
        let meta = &mut params["_meta"];
        meta["io.modelcontextprotocol/protocolVersion"] = json!(era);
        let capabilities = &mut meta["io.modelcontextprotocol/clientCapabilities"];
        if capabilities.is_null() {
            *capabilities = json!({});
        }
        headers.push(("Mcp-Method", method.to_owned()));
        if let Some(name) = params["name"].as_str() {
            headers.push(("Mcp-Name", name.to_owned()));
        }
    }
    let headers = headers
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    (headers.collect(), body.to_string())
}

pub(crate) const NEW: &str = "2026-07-28";

pub(crate) const OLD: &str = "2025-11-25";

/// The result in an answer over MCP, whether it is one document or a stream of events.
pub(crate) fn result_of(answer: &str) -> Value {
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let lines = body
        .lines()
        .map(|line| line.strip_prefix("data:").unwrap_or(line));
    let mut messages = lines.filter_map(|line| serde_json::from_str::<Value>(line.trim()).ok());
    let answered = messages.find_map(|it| it.get("result").cloned());
    answered.unwrap_or_else(|| panic!("{answer}"))
}
