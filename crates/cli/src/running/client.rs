//! The command's end of the connection.

use std::future::Future;
use std::io;
use std::path::Path;
use std::time::Duration;

use countersign::clock::SystemClock;
use countersign::contract::ErrorBody;
use countersign::ids::RandomIds;
use countersign_gateway::operator::proof::{self, Exchange, Role};
use countersign_gateway::operator::{Secret, socket};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::net::UnixStream;

use super::wire::{Line, Request};
use super::{About, Running, Way};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::operations::Operation;
use crate::place;
use crate::progress::Bar;
use crate::terminal::Terminal;

/// Maximum silence of a server; it reports every few seconds that it is still at work.
const SILENCE_MAX: Duration = Duration::from_mins(1);

/// Timeout for connecting to a server, which may be gone.
const CONNECT_MAX: Duration = Duration::from_secs(2);

/// The longest line of an answer.
const LINE_BYTES_MAX: usize = 64 << 20;

/// Maximum length of an answer that is not a stream.
const SHORT_BYTES_MAX: usize = 64 << 10;

/// Path of the operator's API.
const PATH: &str = "/v1/operator";

/// The account of this process.
pub(super) fn account() -> Result<u32, Failure> {
    Ok(run(async { socket::account() })??)
}

/// Returns the account of the process that listens at a socket.
pub(super) fn peer(path: &Path) -> io::Result<u32> {
    run(async { UnixStream::connect(path).await?.peer_cred() })?.map(|peer| peer.uid())
}

/// Asks the server at the other end for its description; `None` if no server is there any more.
pub(super) fn about(way: &Way, folder: &Folder) -> Result<Option<About>, Failure> {
    run(async {
        let answer = match send(way, reqwest::Method::GET, PATH, None).await {
            Err(Unsent::NobodyThere) => return Ok(None),
            Err(unsent) => return Err(unsent.failure(way, folder)),
            Ok(answer) => answer,
        };
        let is_ok = answer.status().is_success();
        let about = short(answer).await.filter(|_| is_ok);
        about.map(Some).ok_or_else(|| not_ours(way, folder))
    })?
}

impl Running {
    /// Has the server carry out an operation, and writes its output.
    pub(crate) fn perform<O: Operation>(
        &self,
        operation: &O,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        let request = Request {
            operator: &place::operator_name(),
            look: terminal.look(),
            operation,
        };
        let body = serde_json::to_vec(&request)?;
        let path = format!("{PATH}/{}", O::NAME);
        run(async {
            let sent = send(&self.way, reqwest::Method::POST, &path, Some(body)).await;
            let mut answer = sent.map_err(|unsent| self.unreachable(unsent))?;
            if !answer.status().is_success() {
                return Err(self.refused(answer).await);
            }
            let mut reading = Reading::default();
            loop {
                let chunk = tokio::time::timeout(SILENCE_MAX, answer.chunk()).await;
                let chunk = chunk.map_err(|_| self.silent())?;
                let Some(chunk) = chunk.map_err(|error| self.broken_off(Some(error)))? else {
                    return Err(self.broken_off(None));
                };
                if let Some(ended) = reading.take(&chunk, terminal)? {
                    return ended;
                }
            }
        })?
    }

    /// Asks for a page that is not an operation, and returns its text. Fails if the server answers an error.
    pub(crate) fn ask(&self, path: &str) -> Result<String, Failure> {
        run(async {
            let sent = send(&self.way, reqwest::Method::GET, path, None).await;
            let answer = sent.map_err(|unsent| self.unreachable(unsent))?;
            if !answer.status().is_success() {
                return Err(self.refused(answer).await);
            }
            let text = answer.text().await;
            text.map_err(|error| self.broken_off(Some(error)))
        })?
    }

    async fn refused(&self, answer: reqwest::Response) -> Failure {
        let status = answer.status().as_u16();
        let body: Value = short(answer).await.unwrap_or_default();
        let error = body.get("error").unwrap_or(&body).clone();
        match serde_json::from_value::<ErrorBody>(error) {
            Ok(error) => {
                let failure = Failure::new(error.message).refused();
                match error.details.hint {
                    Some(hint) => failure.hint(hint),
                    None => failure,
                }
            }
            Err(_) => Failure::new(format!("the server at {} answered {status}", self.place())),
        }
    }

    fn unreachable(&self, unsent: Unsent) -> Failure {
        let message = format!("the server at {} does not answer", self.place());
        let failure = match unsent {
            Unsent::Http(error) => anyhow::Error::new(error).context(message).into(),
            Unsent::NobodyThere | Unsent::NotProved => Failure::new(message),
        };
        failure.hint("check whether `countersign serve` still runs")
    }

    fn silent(&self) -> Failure {
        let seconds = SILENCE_MAX.as_secs();
        let message = format!(
            "the server at {} did not answer for {seconds} s",
            self.place()
        );
        Failure::new(message).hint("read the log of the server; the operation may still be running")
    }

    fn broken_off(&self, error: Option<reqwest::Error>) -> Failure {
        let message = format!("the server at {} ended its answer too early", self.place());
        let failure = match error {
            Some(error) => anyhow::Error::new(error).context(message).into(),
            None => Failure::new(message),
        };
        failure.hint(
            "the server may have been stopped; check what was done before you repeat the command",
        )
    }
}

/// The lines of an answer as they arrive.
#[derive(Default)]
struct Reading {
    rest: Vec<u8>,
    bar: Option<Bar>,
}

impl Reading {
    /// Writes the lines that have arrived whole; returns the end of the operation if it is among them.
    fn take(
        &mut self,
        chunk: &[u8],
        terminal: &mut Terminal,
    ) -> Result<Option<Result<Exit, Failure>>, Failure> {
        self.rest.extend_from_slice(chunk);
        if self.rest.len() > LINE_BYTES_MAX {
            return Err(Failure::new("the server sends a line that is too long"));
        }
        let whole = self.rest.iter().rposition(|byte| *byte == b'\n');
        let Some(end) = whole else { return Ok(None) };
        let rest = self.rest.split_off(end.saturating_add(1));
        let lines = std::mem::replace(&mut self.rest, rest);
        for line in lines.split(|byte| *byte == b'\n') {
            if line.is_empty() {
                continue;
            }
            let line = serde_json::from_slice(line)?;
            if let Some(ended) = self.write(line, terminal)? {
                return Ok(Some(ended));
            }
        }
        Ok(None)
    }

    fn write(
        &mut self,
        line: Line,
        terminal: &mut Terminal,
    ) -> Result<Option<Result<Exit, Failure>>, Failure> {
        use io::Write as _;
        match line {
            Line::Out(text) => terminal.data().write_all(text.as_bytes())?,
            Line::Say(text) => terminal.say(text.strip_suffix('\n').unwrap_or(&text))?,
            Line::Progress(far) => {
                let bar = self
                    .bar
                    .get_or_insert_with(|| Bar::here(far.total, &far.what));
                bar.set_message(&far.what);
                bar.set_length(far.total);
                bar.set_position(far.done);
                return Ok(None);
            }
            Line::Done(exit) => {
                self.clear();
                return Ok(Some(Ok(exit)));
            }
            Line::Failed(told) => {
                self.clear();
                return Ok(Some(Err(told.into())));
            }
        }
        self.clear();
        Ok(None)
    }

    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// Reason for which nothing was asked.
enum Unsent {
    /// No process listens.
    NobodyThere,
    /// The listener is not the server of the folder.
    NotProved,
    /// The connection failed.
    Http(reqwest::Error),
}

impl Unsent {
    fn failure(self, way: &Way, folder: &Folder) -> Failure {
        match self {
            Self::NobodyThere | Self::NotProved => not_ours(way, folder),
            Self::Http(error) => {
                let context = format!("the server at {way} does not answer");
                Failure::from(anyhow::Error::new(error).context(context))
                    .hint("check whether `countersign serve` still runs")
            }
        }
    }
}

fn not_ours(way: &Way, folder: &Folder) -> Failure {
    let message = format!(
        "the listener at {way} cannot prove that it is the server of {}, so it is not asked",
        folder.path().display()
    );
    let file = folder.file(match way {
        Way::Socket(_) => socket::NAME,
        Way::Tcp { .. } => super::FILE,
    });
    Failure::new(message).hint(format!(
        "if no server of yours runs, remove {}",
        file.display()
    ))
}

#[derive(Deserialize)]
struct Proved {
    ticket: String,
    proof: String,
}

/// Sends a request to a server that has proved itself.
async fn send(
    way: &Way,
    method: reqwest::Method,
    path: &str,
    body: Option<Vec<u8>>,
) -> Result<reqwest::Response, Unsent> {
    // The address is this machine's own: no proxy stands in between.
    let builder = reqwest::Client::builder()
        .no_proxy()
        .connect_timeout(CONNECT_MAX);
    let (client, base) = match way {
        Way::Socket(path) => (builder.unix_socket(path.as_path()), "http://localhost"),
        Way::Tcp { url, .. } => (builder, url.as_str()),
    };
    let client = client.build().map_err(Unsent::Http)?;
    let mut request = client.request(method, format!("{base}{path}"));
    if let Way::Tcp { url, secret } = way {
        let authorization = prove(&client, url, secret).await?;
        request = request.header(reqwest::header::AUTHORIZATION, authorization);
    }
    if let Some(body) = body {
        request = request.body(body);
    }
    let answer = tokio::time::timeout(SILENCE_MAX, request.send()).await;
    match answer {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) if error.is_connect() => Err(Unsent::NobodyThere),
        Ok(Err(error)) => Err(Unsent::Http(error)),
        Err(_) => Err(Unsent::NotProved),
    }
}

/// Has the server prove itself; what proves us to it then.
async fn prove(client: &reqwest::Client, url: &str, secret: &Secret) -> Result<String, Unsent> {
    let ids = RandomIds::new(std::sync::Arc::new(SystemClock::new()));
    let nonce = proof::draw_nonce(&ids);
    let asked = client
        .post(format!("{url}{PATH}/prove"))
        .timeout(CONNECT_MAX.saturating_mul(5))
        .json(&json!({"nonce": nonce}));
    let answer = match asked.send().await {
        Err(error) if error.is_connect() => return Err(Unsent::NobodyThere),
        Err(_) => return Err(Unsent::NotProved),
        Ok(answer) => answer,
    };
    let proved: Option<Proved> = short(answer).await;
    let proved = proved.ok_or(Unsent::NotProved)?;
    let exchange = Exchange {
        url,
        nonce: &nonce,
        ticket: &proved.ticket,
    };
    if !secret.is_proved(Role::Server, exchange, &proved.proof) {
        return Err(Unsent::NotProved);
    }
    Ok(proof::authorization(secret, exchange))
}

/// Reads a short answer. The bound keeps a listener that is not trusted yet from filling our memory.
async fn short<T: DeserializeOwned>(mut answer: reqwest::Response) -> Option<T> {
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.ok()? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > SHORT_BYTES_MAX {
            return None;
        }
    }
    serde_json::from_slice(&bytes).ok()
}

fn run<T>(future: impl Future<Output = T>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    Ok(runtime.block_on(future))
}
