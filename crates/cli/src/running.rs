//! A server that runs on a data folder: where it is, and how commands talk to it while it holds the store.

use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use countersign::contract::ErrorBody;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use zeroize::Zeroizing;

use crate::backend::StoreName;
use crate::failure::Failure;
use crate::folder::Folder;

/// Where a server says how it is reached; only its own account can read it.
const FILE: &str = "server.json";

/// How long a server may take that does not answer.
const ANSWER_MAX: Duration = Duration::from_mins(1);

/// How long a server may take that does not live.
const CONNECT_MAX: Duration = Duration::from_secs(2);

/// What a server writes down while it runs.
#[derive(Serialize, Deserialize)]
pub(crate) struct Running {
    /// Where it listens.
    pub(crate) url: String,
    /// Proves that we are its operator.
    token: String,
    /// The process.
    pub(crate) pid: u32,
    /// The file of its store; none where that is no file.
    #[serde(default)]
    file: Option<PathBuf>,
}

impl Running {
    /// This process.
    pub(crate) fn here(url: String, token: &str, file: Option<PathBuf>) -> Self {
        Self {
            url,
            token: token.to_owned(),
            pid: std::process::id(),
            file,
        }
    }

    /// Whether a store that somebody names is the one that it works with.
    pub(crate) fn is_on(&self, store: &StoreName) -> bool {
        match (&self.file, store) {
            (Some(ours), StoreName::Sqlite(theirs)) => is_same_file(ours, theirs),
            (Some(_), StoreName::Postgres(_) | StoreName::Memory)
            | (None, StoreName::Sqlite(_)) => false,
            // An address is not written down, because it may hold a password.
            (None, StoreName::Postgres(_) | StoreName::Memory) => true,
        }
    }

    /// What whoever needs the store for themselves is told.
    pub(crate) fn in_the_way(&self) -> Failure {
        let message = format!("the server at {} works in this folder", self.url);
        Failure::new(message).hint(format!(
            "stop it first (process {}); approvals, calls and keys ask it meanwhile",
            self.pid
        ))
    }

    /// Tells the commands of this machine.
    pub(crate) fn announce(&self, folder: &Folder) -> Result<(), Failure> {
        let text = Zeroizing::new(serde_json::to_string(self)?);
        folder.write_secret(FILE, &text)
    }

    /// Takes it back, unless another server has taken over meanwhile.
    pub(crate) fn withdraw(&self, folder: &Folder) -> Result<(), Failure> {
        match read(folder)? {
            Some(known) if known.pid == self.pid => folder.remove(FILE),
            Some(_) | None => Ok(()),
        }
    }

    /// The server that runs on a folder. A file that a crash left behind names none.
    pub(crate) fn find(folder: &Folder) -> Result<Option<Self>, Failure> {
        let Some(running) = read(folder)? else {
            return Ok(None);
        };
        let is_alive = match running.send("GET", "/healthz", None) {
            Ok((status, _)) => status == 200,
            Err(_) => false,
        };
        Ok(is_alive.then_some(running))
    }

    /// Asks it for something; what it answers where that is no error.
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Failure> {
        self.ask_or(method, path, body, as_it_was_said)
    }

    /// The same with words for a refusal: those of the server are for whoever speaks HTTP.
    pub(crate) fn ask_or(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        refused: impl FnOnce(ErrorBody) -> Failure,
    ) -> Result<Value, Failure> {
        let (status, text) = self.send(method, path, body)?;
        let answer: Value = serde_json::from_str(&text).unwrap_or(Value::String(text));
        if status < 400 {
            return Ok(answer);
        }
        let error = answer.get("error").unwrap_or(&answer);
        Err(match serde_json::from_value::<ErrorBody>(error.clone()) {
            Ok(error) => refused(error),
            Err(_) => Failure::new(format!("the server at {} answered {status}", self.url)),
        })
    }

    fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(u16, String), Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            // The address is this machine's own: no proxy stands in between.
            let client = reqwest::Client::builder()
                .no_proxy()
                .connect_timeout(CONNECT_MAX)
                .timeout(ANSWER_MAX)
                .build()?;
            let method = reqwest::Method::from_bytes(method.as_bytes())?;
            let mut request = client
                .request(method, format!("{}{path}", self.url))
                .bearer_auth(&self.token);
            if let Some(body) = body {
                request = request.json(body);
            }
            let answer = request
                .send()
                .await
                .map_err(|error| self.unreachable(error))?;
            let status = answer.status().as_u16();
            let text = answer
                .text()
                .await
                .map_err(|error| self.unreachable(error))?;
            Ok((status, text))
        })
    }

    fn unreachable(&self, error: reqwest::Error) -> Failure {
        let context = format!("the server at {} does not answer", self.url);
        Failure::from(anyhow::Error::new(error).context(context))
            .hint("look whether `countersign serve` still runs")
    }
}

fn as_it_was_said(error: ErrorBody) -> Failure {
    let failure = Failure::new(error.to_string()).refused();
    match error.details.hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// An address with options, written so that a server reads the very same.
pub(crate) fn query(path: &str, options: &[(&str, Option<String>)]) -> String {
    let mut address = path.to_owned();
    for (name, value) in options {
        let Some(value) = value else { continue };
        address.push(if address.contains('?') { '&' } else { '?' });
        address.push_str(name);
        address.push('=');
        for byte in value.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                address.push(char::from(byte));
            } else {
                let _ = write!(address, "%{byte:02X}");
            }
        }
    }
    address
}

/// One file may have many names.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| {
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.dev(), metadata.ino()))
    };
    identity(one).is_some_and(|one| identity(other) == Some(one))
}

fn read(folder: &Folder) -> Result<Option<Running>, Failure> {
    let Some(text) = folder.read_secret(FILE)? else {
        return Ok(None);
    };
    // What cannot be read was written by another version, or by nobody: it names no server of ours.
    Ok(serde_json::from_str(&text).ok())
}
