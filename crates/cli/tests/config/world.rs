//! A folder with a configuration, and the commands that are run in it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use countersign_testkit::patience::Watchdog;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A working folder.
pub(crate) struct World {
    pub(crate) folder: TempDir,
    environment: Vec<(String, String)>,
}

impl World {
    /// With this configuration.
    pub(crate) fn new(config: &str) -> Self {
        let world = Self::empty();
        world.write("countersign.toml", config);
        world
    }

    pub(crate) fn empty() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder can be made"),
            environment: Vec::new(),
        }
    }

    /// With one more variable for every command.
    pub(crate) fn set(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("it can be written");
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
        command
            .args(words)
            .current_dir(self.folder.path())
            .env("HOME", self.folder.path())
            .env("COUNTERSIGN_OPERATOR", "tester");
        for name in [
            "COUNTERSIGN_DATA",
            "COUNTERSIGN_STORE",
            "COUNTERSIGN_MASTER_KEY",
            "COUNTERSIGN_LOG",
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "XDG_DATA_HOME",
        ] {
            command.env_remove(name);
        }
        command.envs(self.environment.iter().cloned());
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Output {
        let _watchdog = Watchdog::start();
        self.command(words).output().expect("it runs")
    }

    /// Runs a command and returns its JSON answer.
    #[track_caller]
    pub(crate) fn json(&self, words: &[&str]) -> Value {
        let output = self.run(&[words, &["--json"]].concat());
        let answer = serde_json::from_slice(&output.stdout);
        answer.unwrap_or_else(|_| panic!("{words:?}: {output:?}"))
    }

    /// Runs a command that fails with this exit code, and returns its stderr.
    #[track_caller]
    pub(crate) fn refusal(&self, words: &[&str], code: i32) -> String {
        let output = self.run(words);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {output:?}");
        String::from_utf8(output.stderr).expect("it is text")
    }

    pub(crate) fn serve(&self, words: &[&str]) -> Server {
        Server::start(self, words)
    }
}

/// A server in a world.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    _watchdog: Watchdog,
}

impl Server {
    fn start(world: &World, words: &[&str]) -> Self {
        let watchdog = Watchdog::start();
        let log = std::fs::File::create(world.path("server.log")).expect("it can be made");
        let words = [&["serve", "--json"], words].concat();
        let mut child = world
            .command(&words)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("cargo has built the command before its tests");
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("it is piped");
        let read = BufReader::new(stdout).read_line(&mut line);
        read.expect("it can be read");
        let said: Value = serde_json::from_str(&line).unwrap_or_else(|_| {
            let log = std::fs::read_to_string(world.path("server.log"));
            panic!("no server: {}", log.unwrap_or_default())
        });
        let url = said["url"].as_str().expect("it says where it listens");
        Self {
            child,
            address: url.trim_start_matches("http://").to_owned(),
            _watchdog: watchdog,
        }
    }

    /// Status and body of a request.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}",
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

    /// The names of the tools that it offers.
    pub(crate) fn tools(&self) -> Vec<String> {
        let (_, listed) = self.ask("GET", "/v1/tools", "");
        let tools = listed["tools"].as_array().or_else(|| listed.as_array());
        let names = tools.into_iter().flatten();
        names
            .map(|tool| tool["name"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([name, &pid]).status();
        assert!(sent.expect("kill is there").success());
    }

    /// Tells it to stop, and waits until it has.
    pub(crate) fn stop(mut self) -> Option<i32> {
        self.signal("-TERM");
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended already, unless the test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
