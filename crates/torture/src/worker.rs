//! A process that runs keyed calls and writes out the answers.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use countersign::approve::Limits;
use countersign::contract::{ErrorCode, ReplyEnvelope, RequestEnvelope};
use countersign::ledger::Store;
use countersign::{Executor, Principal, ToolCall};
use countersign_evidence::seal::MasterKey;
use countersign_store::postgres::{PostgresOptions, PostgresStore};
use countersign_store::sqlite::{SqliteOptions, SqliteStore};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::point::{Fate, Point};
use crate::tools::{self, Kind};

/// The work of one worker.
#[derive(Debug, Clone)]
pub struct Job {
    /// `postgres://…`, or the path of a SQLite file.
    pub store: String,
    /// The ledger of effects.
    pub ledger: PathBuf,
    /// The tool that it calls.
    pub kind: Kind,
    /// The keys, as numbers; `turn` rotates the order in which they are called.
    pub keys: std::ops::Range<u32>,
    /// Offset in the key range of the first call.
    pub turn: u32,
    /// Maximum number of concurrent calls.
    pub tasks: usize,
    /// The point at which it dies or pauses.
    pub fate: Fate,
    /// The user that calls, and so the owner of the keys.
    pub user: String,
    /// True if all calls of a writing tool count in one document.
    pub together: bool,
    /// True if the tool fails with `NOT_FOUND` before its effect.
    pub fails: bool,
}

/// One answer, as a line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// The key.
    pub key: u32,
    /// True if the call succeeded.
    pub ok: bool,
    /// The error code; `None` if the call succeeded.
    pub code: Option<String>,
    /// The reason of a conflict.
    pub reason: Option<String>,
    /// True if the same call may be sent again.
    pub retryable: bool,
    /// The data of the reply.
    pub data: Value,
    /// True if the reply is a replay of an earlier one.
    pub replayed: bool,
}

/// The master key of all torture runs; it need not be secret.
pub(crate) const MASTER: [u8; 32] = [7; 32];

/// Opens a store by its name.
pub async fn open(name: &str) -> Result<Arc<dyn Store>> {
    Ok(if name.starts_with("postgres") {
        Arc::new(PostgresStore::open(PostgresOptions::new(name)).await?)
    } else {
        Arc::new(SqliteStore::open(name, SqliteOptions::default())?)
    })
}

/// An executor over a store, with the torture's tools.
pub fn executor(store: Arc<dyn Store>, ledger: &Path, fate: &Fate) -> Result<Executor> {
    let catalog = tools::catalog(ledger, fate)?;
    let master = Arc::new(MasterKey::from_bytes(&MASTER));
    // Workers die before they answer, so more questions stay open than a person would have.
    let limits = Limits {
        pending_max: 10_000,
        ..Limits::default()
    };
    let executor = Executor::builder(catalog)
        .store(store)
        .kms(master)
        .budgets(Arc::new(tools::budgets()?))
        .approval_limits(limits);
    Ok(executor.build())
}

/// Calls every key once and writes one line for each answer, as soon as it is there.
pub async fn run(job: Job) -> Result<()> {
    let store = open_at_last(&job.store).await?;
    let executor = executor(job.fate.over(store.clone()), &job.ledger, &job.fate)?;
    let count = job.keys.len() as u32;
    let order = (0..count).map(|n| job.keys.start + (n + job.turn) % count);
    let gate = Arc::new(tokio::sync::Semaphore::new(job.tasks));
    let mut running = tokio::task::JoinSet::new();
    for key in order {
        let turn = gate.clone().acquire_owned().await?;
        let (executor, job) = (executor.clone(), job.clone());
        running.spawn(async move {
            let told = call(&executor, &job, key).await;
            job.fate.pass(Point::BeforeTelling);
            let line = serde_json::to_string(&told).unwrap_or_default() + "\n";
            // One write: the driver reads whole lines or nothing.
            let mut out = std::io::stdout().lock();
            let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
            drop(turn);
        });
    }
    while running.join_next().await.is_some() {}
    store.flush().await?;
    Ok(())
}

/// Opens a store that may still be starting: retries as often as a supervisor would restart this process.
async fn open_at_last(name: &str) -> Result<Arc<dyn Store>> {
    for _ in 0..OPENINGS_MAX {
        if let Ok(store) = open(name).await {
            return Ok(store);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    open(name).await.context("the store does not open")
}

const OPENINGS_MAX: u32 = 100;

/// Maximum number of sends of a call that asks for confirmation; two are enough.
const CONFIRMED_MAX: u32 = 4;

/// The approval that a call waits for.
fn asked(reply: &ReplyEnvelope) -> Option<String> {
    let error = reply.error.as_ref()?;
    let is_asked = error.code == ErrorCode::NeedsUserConfirmation;
    let id = error.details.extra.get("approval_id")?.as_str()?;
    is_asked.then(|| id.to_owned())
}

/// Approves the call as its user, and notes the confirmation in the ledger.
async fn confirm(executor: &Executor, job: &Job, key: u32, approval_id: &str) {
    let by = Principal::user(job.user.clone());
    let answered = executor.approvals().approve(approval_id, &by, None).await;
    if answered.is_ok() {
        let line = format!("{} {approval_id} {key}", confirmation_of(job.kind));
        // A line that cannot be written is one that is not counted.
        let _ = tools::Ledger::at(&job.ledger).note(&line);
    }
}

/// The name under which the ledger counts the confirmations by users.
pub fn confirmation_of(kind: Kind) -> String {
    format!("confirmed:{}", kind.tool())
}

/// One keyed call.
pub async fn call(executor: &Executor, job: &Job, key: u32) -> Told {
    let mut arguments = json!({ "n": key });
    if job.together
        && let Some(arguments) = arguments.as_object_mut()
    {
        arguments.insert("into".to_owned(), json!("all"));
    }
    if job.fails
        && let Some(arguments) = arguments.as_object_mut()
    {
        arguments.insert("fails".to_owned(), json!(true));
    }
    let envelope = RequestEnvelope {
        idempotency_key: Some(format!("k{key}")),
        ..RequestEnvelope::default()
    };
    let mut reply;
    let mut tries = 0;
    loop {
        let principal = Principal::user(job.user.clone());
        let call = ToolCall::new(job.kind.tool(), arguments.to_string(), principal);
        reply = executor.execute(call.envelope(envelope.clone())).await;
        tries += 1;
        let Some(approval_id) = asked(&reply).filter(|_| tries < CONFIRMED_MAX) else {
            break;
        };
        confirm(executor, job, key, &approval_id).await;
    }
    let details = reply.error.as_ref().map(|error| &error.details);
    Told {
        key,
        ok: reply.ok,
        code: reply.error.as_ref().map(|error| error.code.to_string()),
        reason: details
            .and_then(|details| details.reason)
            .map(|reason| reason.as_str().to_owned()),
        retryable: details.is_some_and(|details| details.retryable),
        data: reply.data.clone(),
        replayed: reply.replayed,
    }
}
