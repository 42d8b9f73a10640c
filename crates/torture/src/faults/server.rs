//! A real server as a process, and requests to it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::disk::Disk;

/// Longest wait for an answer. Every call has an end of its own long before.
const ANSWERED_WITHIN: Duration = Duration::from_mins(1);

/// The command and the data folder that it works in.
#[derive(Debug, Clone)]
pub struct Place {
    /// The program `countersign`.
    pub program: PathBuf,
    /// The data folder.
    pub data: PathBuf,
    /// Connection string of PostgreSQL; `None` for SQLite in the data folder.
    pub store: Option<String>,
}

impl Place {
    /// A command on this folder.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(words)
            .env("COUNTERSIGN_DATA", &self.data)
            .env("COUNTERSIGN_OPERATOR", "torture")
            .env_remove("COUNTERSIGN_MASTER_KEY");
        match &self.store {
            Some(store) => command.env("COUNTERSIGN_STORE", store),
            None => command.env_remove("COUNTERSIGN_STORE"),
        };
        command
    }

    /// Verifies everything; returns the findings, or nothing if it is valid.
    pub fn verify(&self) -> Result<Option<String>> {
        let output = self.command(&["verify", "--all"]).output()?;
        if output.status.success() {
            return Ok(None);
        }
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let error = String::from_utf8_lossy(&output.stderr);
        Ok(Some(format!("{said}{error}")))
    }
}

/// A server that runs. It is killed when it is dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// Host and port.
    pub address: String,
    log: PathBuf,
}

/// End of a start.
#[derive(Debug)]
pub enum Started {
    /// It listens.
    Listens(Server),
    /// It ended, and this is the end of what it said.
    Refused(String),
}

impl Server {
    /// Starts a server, on a disk of ours if there is one.
    pub fn start(place: &Place, disk: Option<&Disk<'_>>) -> Result<Started> {
        Self::start_with(place, disk, &[])
    }

    /// The same with further options of `serve`.
    pub fn start_with(place: &Place, disk: Option<&Disk<'_>>, more: &[&str]) -> Result<Started> {
        let words = [&["serve", "--json", "--listen", "127.0.0.1:0"], more].concat();
        let mut command = place.command(&words);
        if let Some(disk) = disk {
            disk.under(&mut command);
        }
        let log = place.data.with_extension("log");
        let said = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log)?;
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(said)
            .spawn()
            .with_context(|| format!("{} does not start", place.program.display()))?;
        let mut line = String::new();
        let out = child.stdout.as_mut().context("a server has an output")?;
        BufReader::new(out).read_line(&mut line)?;
        let url = serde_json::from_str::<Value>(&line)
            .ok()
            .and_then(|said| Some(said.get("url")?.as_str()?.to_owned()));
        let Some(url) = url else {
            let status = child.wait()?;
            if status.success() {
                bail!("a server ended at once, and said {line:?}");
            }
            return Ok(Started::Refused(format!("{line}{}", tail(&log))));
        };
        let address = url.trim_start_matches("http://").to_owned();
        Ok(Started::Listens(Self {
            child,
            address,
            log,
        }))
    }

    /// Sends a signal, and waits for the end.
    pub fn stop(mut self, signal: Signal) -> Result<()> {
        let pid = Pid::from_raw(i32::try_from(self.child.id())?).context("it has a number")?;
        kill_process(pid, signal)?;
        self.child.wait()?;
        Ok(())
    }

    /// True if the process is still there.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// The last lines of the log.
    pub fn tail(&self) -> String {
        tail(&self.log)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn tail(log: &Path) -> String {
    let said = std::fs::read(log).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let lines: Vec<_> = said.lines().rev().take(4).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("\n")
}

/// Sends one request on a connection of its own; returns the status and the body.
pub fn ask(address: &str, method: &str, path: &str, body: &str) -> Result<(u16, Value)> {
    ask_as(None, address, method, path, body)
}

/// The same with a credential.
pub fn ask_as(
    credential: Option<&str>,
    address: &str,
    method: &str,
    path: &str,
    body: &str,
) -> Result<(u16, Value)> {
    let credential = credential.map_or_else(String::new, |credential| {
        format!("authorization: Bearer {credential}\r\n")
    });
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(ANSWERED_WITHIN))?;
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\n{credential}connection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )?;
    let mut wire = String::new();
    stream.read_to_string(&mut wire)?;
    let (head, body) = wire.split_once("\r\n\r\n").context("no head")?;
    let status = head.split(' ').nth(1).context("no status")?.parse()?;
    let body = serde_json::from_str(body).unwrap_or_else(|_| Value::String(body.to_owned()));
    Ok((status, body))
}
