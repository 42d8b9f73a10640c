//! Measures listing and counting 1,000 open approvals of 100 users.
//!
//! ```text
//! cargo run --release -p countersign-store --example pending_approvals -- sqlite
//! cargo run --release -p countersign-store --example pending_approvals -- postgres://app@127.0.0.1/bench
//! ```
//!
//! Calls ask the questions, like an agent's calls do. Then the questions are listed like an inbox lists them,
//! opened and shown; for comparison, only the store's pages are read. The database must be empty and may be
//! filled.

use std::error::Error;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use countersign::approve::{SCOPE_ANSWER, Wanted};
use countersign::ledger::{OpenPlace, Store};
use countersign::{
    Arguments, BoxFuture, CallContext, Catalog, DynTool, Executor, Principal, Reply, ToolCall,
    ToolError,
};
use countersign_contract::tool::{Confirmation, Effect, Input};
use countersign_contract::{Actor, ActorType, ApprovalState, ToolName, ToolSpec};
use countersign_evidence::seal::MasterKey;
use countersign_store::postgres::{PostgresOptions, PostgresStore};
use countersign_store::sqlite::{SqliteOptions, SqliteStore};
use jiff::Timestamp;
use serde_json::json;

type Failure = Box<dyn Error + Send + Sync>;

const USERS: usize = 100;

const QUESTIONS_OF_EACH: usize = 10;

/// Number of measurements of each.
const ROUNDS: usize = 21;

/// A payment that has to be confirmed.
struct Pay(ToolSpec);

impl DynTool for Pay {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(
        &'a self,
        _: &'a CallContext,
        _: Arguments,
    ) -> BoxFuture<'a, Result<Reply, ToolError>> {
        Box::pin(async { Ok(Reply::default()) })
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let place = args
        .next()
        .ok_or("sqlite, or the URL of an empty database")?;
    let folder = tempfile::tempdir()?;
    let store: Arc<dyn Store> = if place == "sqlite" {
        Arc::new(SqliteStore::open(
            folder.path().join("store.db"),
            SqliteOptions::default(),
        )?)
    } else {
        Arc::new(PostgresStore::open(PostgresOptions::new(&place)).await?)
    };
    let mut spec = ToolSpec::new(ToolName::new("pay.send")?, "Sends money.")
        .input(Input::Schema(json!({"type": "object"})));
    spec.behaviour.effect = Effect::Write;
    spec.behaviour.confirmation = Confirmation::Always;
    let catalog = Catalog::builder().dyn_tool(Arc::new(Pay(spec))).build()?;
    let executor = Executor::builder(catalog)
        .store(store.clone())
        .kms(Arc::new(MasterKey::from_bytes(&[7; 32])))
        .build();
    ask(&executor).await?;
    let actor = Actor {
        kind: ActorType::System,
        id: "desk".to_owned(),
    };
    let desk = Principal::new(actor, "desk").scope(SCOPE_ANSWER);
    let wanted = Wanted {
        state: Some(ApprovalState::Pending),
        limit: USERS * QUESTIONS_OF_EACH,
        ..Wanted::default()
    };
    let approvals = executor.approvals();
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let listed = approvals.list(&desk, &wanted).await?;
        times[0].push(start.elapsed());
        assert_eq!(listed.len(), wanted.limit);
        let start = Instant::now();
        let read = read(&*store, executor.now()).await?;
        times[1].push(start.elapsed());
        assert_eq!(read, wanted.limit);
        let start = Instant::now();
        assert_eq!(approvals.pending().await?, wanted.limit);
        times[2].push(start.elapsed());
    }
    let mut out = std::io::stdout();
    let names = ["listed, opened and shown", "read in the store", "counted"];
    for (name, times) in names.into_iter().zip(&mut times) {
        times.sort_unstable();
        let ms = |time: Option<&Duration>| time.map_or(0.0, |time| time.as_secs_f64() * 1e3);
        let median = ms(times.get(ROUNDS / 2));
        let (best, worst) = (ms(times.first()), ms(times.last()));
        writeln!(
            out,
            "{name}: median {median:.1} ms, {best:.1} to {worst:.1} ms"
        )?;
    }
    Ok(())
}

/// Asks every user the same number of questions.
async fn ask(executor: &Executor) -> Result<(), Failure> {
    for user in 0..USERS {
        for n in 0..QUESTIONS_OF_EACH {
            let arguments = json!({"amount": n + 1, "to": format!("account {n}")}).to_string();
            let user = Principal::user(format!("u_{user}"));
            let reply = executor.execute(ToolCall::new("pay.send", &*arguments, user));
            let error = reply.await.error.ok_or("the call has to be confirmed")?;
            error
                .details
                .extra
                .get("approval_id")
                .ok_or("no approval")?;
        }
    }
    Ok(())
}

/// Reads only the pages of the store.
async fn read(store: &dyn Store, now: Timestamp) -> Result<usize, Failure> {
    let mut after = OpenPlace::after(now);
    let mut read = 0;
    loop {
        let page = store.open_documents("$approvals", &after, 256).await?;
        let Some(last) = page.last() else {
            return Ok(read);
        };
        after = last.place.clone();
        read += page.len();
    }
}
