//! An HTTP service whose effects can be counted from outside, and calls to it through a manifest. Either process can die in the
//! middle: the service by its own hand, the caller by that of the service, which knows exactly how far the effect is.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow, bail};
use countersign::contract::RequestEnvelope;
use countersign::{Catalog, Executor, Principal, ToolCall};
use countersign_evidence::seal::MasterKey;
use countersign_upstream::{Manifest, Upstreams};
use rustix::process::{Pid, Signal, getpid, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::tools::Ledger;
use crate::worker::{MASTER, open};

/// The one who dies, and when. It happens once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Act {
    /// No process is killed.
    Nothing,
    /// The caller, when its request has arrived and nothing is done.
    CallerBefore,
    /// The caller, when the effect is there and nothing is answered.
    CallerAfter,
    /// The service, when a request has arrived and nothing is done.
    ServiceBefore,
    /// The service, when the effect is there and nothing is answered.
    ServiceAfter,
}

/// The header by which a service learns which process calls it.
pub const PID_HEADER: &str = "x-caller-pid";

/// Serves `POST /tools/{name}` and its twin at this address. Effects are lines of the ledger, one a key.
pub async fn serve(address: &str, ledger: PathBuf, act: Act) -> Result<()> {
    let listener = TcpListener::bind(address).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        let ledger = ledger.clone();
        tokio::spawn(async move {
            // A caller that hangs up gets no answer.
            let _ = connection(stream, &ledger, act).await;
        });
    }
}

async fn connection(mut stream: TcpStream, ledger: &Path, act: Act) -> Result<()> {
    loop {
        let request = request(&mut stream).await?;
        let body = answer(&request, ledger, act)?.to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).await?;
    }
}

struct Request {
    path: String,
    key: String,
    caller: Option<Pid>,
}

async fn request(stream: &mut TcpStream) -> Result<Request> {
    let mut bytes = Vec::new();
    let (head, start) = loop {
        if let Some(end) = bytes.windows(4).position(|it| it == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(bytes.get(..end).unwrap_or_default());
            break (head.into_owned(), end + 4);
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            bail!("the caller has hung up");
        }
    };
    let header = |name: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(':'));
        let found = lines.find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim().to_owned())
    };
    let length: usize = header("content-length").map_or(Ok(0), |it| it.parse())?;
    while bytes.len() < start + length {
        if stream.read_buf(&mut bytes).await? == 0 {
            bail!("the caller has hung up");
        }
    }
    let caller = header(PID_HEADER).and_then(|it| it.parse().ok());
    Ok(Request {
        path: head.split(' ').nth(1).unwrap_or_default().to_owned(),
        key: header("idempotency-key").context("a write has its key")?,
        caller: caller.and_then(Pid::from_raw),
    })
}

fn answer(request: &Request, path: &Path, act: Act) -> Result<Value> {
    let ledger = Ledger::at(path);
    let lines = ledger.lines()?;
    let known = lines.iter().position(|line| *line == request.key);
    if request.path.ends_with("/reconcile") {
        return Ok(match known {
            Some(order) => json!({"outcome": "happened", "data": {"order": order}}),
            None => json!({"outcome": "did_not_happen"}),
        });
    }
    let arrived = Ledger::at(path.with_extension("arrived"));
    let is_first = arrived.lines()?.is_empty();
    arrived.note(&request.key)?;
    let act = if is_first { act } else { Act::Nothing };
    match act {
        Act::CallerBefore => return Err(end(request.caller)),
        Act::ServiceBefore => return Err(end(Some(getpid()))),
        Act::Nothing | Act::CallerAfter | Act::ServiceAfter => {}
    }
    let order = known.unwrap_or(lines.len());
    if known.is_none() {
        ledger.note(&request.key)?;
    }
    match act {
        Act::CallerAfter => Err(end(request.caller)),
        Act::ServiceAfter => Err(end(Some(getpid()))),
        Act::Nothing | Act::CallerBefore | Act::ServiceBefore => Ok(json!({"order": order})),
    }
}

/// `kill -9`; the connection ends without an answer.
fn end(process: Option<Pid>) -> anyhow::Error {
    let killed = process.map(|process| kill_process(process, Signal::KILL));
    anyhow!("killed: {killed:?}")
}

/// Makes one call through the manifest at this path, in which `{pid}` stands for this process, and gives the reply.
pub async fn call(store: &str, manifest: &Path, key: Option<String>) -> Result<Value> {
    let text = std::fs::read_to_string(manifest)?;
    let text = text.replace("{pid}", &std::process::id().to_string());
    let manifest: Manifest = serde_json::from_str(&text)?;
    let catalog = Catalog::builder().build()?;
    let upstreams = Upstreams::prepare(&manifest, Path::new("."))?;
    let tools = upstreams.tools()?;
    let name = tools.first().context("a tool")?.spec().name.clone();
    for tool in tools {
        catalog.add(tool)?;
    }
    let store = open(store).await?;
    let executor = Executor::builder(catalog)
        .store(store.clone())
        .kms(Arc::new(MasterKey::from_bytes(&MASTER)))
        .build();
    let envelope = RequestEnvelope {
        idempotency_key: key,
        ..RequestEnvelope::default()
    };
    let call = ToolCall::new(name.as_str(), r#"{"n": 1}"#, Principal::user("u_1"));
    let reply = executor.execute(call.envelope(envelope)).await;
    store.flush().await?;
    Ok(serde_json::to_value(&reply)?)
}
