//! A shell in a folder of its own, for the commands of a page.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use countersign_testkit::patience::Watchdog;
use tempfile::TempDir;

use crate::page::root;

/// The line that ends the output of a command.
const END: &str = "--- the command has ended ---";

/// Written by tests where a command fails.
pub(crate) const FAILED: &str = "--- the command has failed ---";

/// A bash with job control, in a temporary folder.
pub(crate) struct Shell {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    folder: TempDir,
    /// The ports of the server and of the service: those of the page may be taken.
    ports: [u16; 2],
    _watchdog: Watchdog,
}

impl Shell {
    pub(crate) fn start() -> Self {
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
            .env("COUNTERSIGN_DATA", folder.path().join("data"))
            .env("COUNTERSIGN_OPERATOR", "tester")
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

    /// The folder in which the shell was started.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The port for a service behind the server; it has it in `PORT`.
    pub(crate) fn service_port(&self) -> u16 {
        self.ports[1]
    }

    /// The lines that a command writes.
    pub(crate) fn run(&mut self, command: &str) -> Vec<String> {
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

    /// Runs a command that does not end, in the background, until it listens.
    pub(crate) fn start_program(&mut self, command: &str) {
        self.run(&format!("{command} > /dev/null 2>&1 &"));
    }

    /// Writes a file into the folder in which the shell is now.
    pub(crate) fn write(&mut self, name: &str, text: &str) {
        let folder = PathBuf::from(self.run("pwd").concat());
        std::fs::write(folder.join(name), text).unwrap();
    }

    /// Does what a reader does without being told: takes a free port, and waits until the server listens.
    fn settle(&mut self, command: &str) {
        let [server, service] = self.ports;
        if command.starts_with("countersign init") {
            // The port of the page, so written that it is not replaced here already.
            self.run(&format!("sed -i 's/:878[7]/:{server}/' countersign.toml"));
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
