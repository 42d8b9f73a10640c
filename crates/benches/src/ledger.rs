//! Measured work of the stores: durable calls, replays, and the same bytes written without any of it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use countersign::contract::tool::Behaviour;
use countersign::contract::{Effect, RecordKind, RequestEnvelope, SnapshotId};
use countersign::ledger::{Entry, Store};
use countersign::state::Collection;
use countersign::{CallContext, Catalog, Executor, Principal, Tool, ToolArgs, ToolCall, ToolError};
use countersign_evidence::seal::MasterKey;
use tokio::sync::{mpsc, oneshot};

const NOTES: Collection = Collection::of_user("note");

/// Writes one document a call.
pub struct Write;

/// What [`Write`] takes.
#[derive(serde::Deserialize, ToolArgs)]
pub struct WriteArgs {
    /// Which document.
    id: String,
    /// What is in it.
    text: String,
}

impl Tool for Write {
    const NAME: &'static str = "bench.write";
    const DESCRIPTION: &'static str = "Writes one document.";
    type Args = WriteArgs;
    type Output = String;

    fn behaviour() -> Behaviour {
        Behaviour {
            effect: Effect::Write,
            ..Behaviour::default()
        }
    }

    async fn call(&self, ctx: &CallContext, args: WriteArgs) -> Result<String, ToolError> {
        ctx.state().put(&NOTES, &args.id, &args.text).await?;
        Ok(args.id)
    }
}

/// Calls over a store, with keys that never repeat unless that is asked for.
pub struct Calls {
    executor: Executor,
    next: AtomicU64,
}

impl Calls {
    /// Calls over this store.
    ///
    /// # Panics
    ///
    /// Where the tool cannot be registered.
    pub fn over(store: Arc<dyn Store>) -> Self {
        let catalog = Catalog::builder()
            .tool(Write)
            .build()
            .expect("one tool, declared right");
        let master = Arc::new(MasterKey::from_bytes(&[7; 32]));
        let executor = Executor::builder(catalog).store(store).kms(master).build();
        Self {
            executor,
            next: AtomicU64::new(0),
        }
    }

    /// Returns the calls a second by this number of callers, each with `each` calls, each under a new key.
    pub async fn rate(self: &Arc<Self>, callers: usize, each: usize) -> f64 {
        let total = (callers * each) as u64;
        let first = self.next.fetch_add(total, Ordering::Relaxed);
        self.run(first, callers, each).await
    }

    /// Returns the replays a second: calls under keys that have been called, the first ones.
    pub async fn replay_rate(self: &Arc<Self>, callers: usize, each: usize) -> f64 {
        self.run(0, callers, each).await
    }

    async fn run(self: &Arc<Self>, first: u64, callers: usize, each: usize) -> f64 {
        let started = Instant::now();
        let mut running = tokio::task::JoinSet::new();
        for caller in 0..callers {
            let calls = self.clone();
            let from = first + (caller * each) as u64;
            running.spawn(async move {
                for n in from..from + each as u64 {
                    calls.one(n).await;
                }
            });
        }
        while running.join_next().await.is_some() {}
        rate(callers * each, started.elapsed())
    }

    async fn one(&self, n: u64) {
        let arguments = format!(r#"{{"id": "d{n}", "text": "{}"}}"#, "x".repeat(100));
        let envelope = RequestEnvelope {
            idempotency_key: Some(format!("k{n}")),
            ..RequestEnvelope::default()
        };
        // A hundred users, as a gateway has many.
        let principal = Principal::user(format!("u_{}", n % 100));
        let call = ToolCall::new("bench.write", arguments, principal).envelope(envelope);
        let reply = self.executor.execute(call).await;
        assert!(reply.ok, "{:?}", reply.error);
    }
}

/// Returns the number a second.
pub fn rate(count: usize, time: Duration) -> f64 {
    let count = u32::try_from(count).map_or(f64::INFINITY, f64::from);
    count / time.as_secs_f64()
}

/// Group commit in SQLite and nothing else: one row a job, callers answered after the commit.
pub struct RawSqlite {
    jobs: mpsc::Sender<(Vec<u8>, oneshot::Sender<()>)>,
    bytes: usize,
}

impl RawSqlite {
    /// Opens a table in this file, with rows of this number of bytes.
    ///
    /// # Panics
    ///
    /// If the file cannot be written.
    pub fn open(path: &Path, bytes: usize) -> Self {
        let connection = rusqlite::Connection::open(path).expect("a file can be made");
        connection
            .execute_batch(
                "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;
                 CREATE TABLE raw (id INTEGER PRIMARY KEY, body BLOB NOT NULL);",
            )
            .expect("a table can be made");
        let (jobs, mut waiting) = mpsc::channel::<(Vec<u8>, oneshot::Sender<()>)>(1_024);
        std::thread::spawn(move || {
            let mut batch = Vec::new();
            while waiting.blocking_recv_many(&mut batch, 256) > 0 {
                connection.execute_batch("BEGIN IMMEDIATE").expect("begin");
                {
                    let mut insert = connection
                        .prepare_cached("INSERT INTO raw (body) VALUES (?1)")
                        .expect("the table is there");
                    for (body, _) in &batch {
                        insert.execute([body]).expect("insert");
                    }
                }
                connection.execute_batch("COMMIT").expect("commit");
                for (_, done) in batch.drain(..) {
                    // A caller who has gone needs no answer.
                    let _ = done.send(());
                }
            }
        });
        Self { jobs, bytes }
    }

    /// Returns the commits a second by this number of callers.
    pub async fn rate(&self, callers: usize, each: usize) -> f64 {
        let started = Instant::now();
        let mut running = tokio::task::JoinSet::new();
        for _ in 0..callers {
            let (jobs, bytes) = (self.jobs.clone(), self.bytes);
            running.spawn(async move {
                for _ in 0..each {
                    let (done, committed) = oneshot::channel();
                    if jobs.send((vec![7; bytes], done)).await.is_ok() {
                        let _ = committed.await;
                    }
                }
            });
        }
        while running.join_next().await.is_some() {}
        rate(callers * each, started.elapsed())
    }
}

/// Single-row inserts in PostgreSQL and nothing else, each its own commit on its own connection.
pub struct RawPostgres {
    clients: Vec<Arc<tokio_postgres::Client>>,
    bytes: usize,
}

impl RawPostgres {
    /// Opens this number of connections, and a table with rows of this number of bytes.
    ///
    /// # Panics
    ///
    /// If the server does not answer.
    pub async fn connect(url: &str, connections: usize, bytes: usize) -> Self {
        let mut clients = Vec::new();
        for _ in 0..connections {
            let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls)
                .await
                .expect("the server answers");
            tokio::spawn(connection);
            clients.push(Arc::new(client));
        }
        if let Some(client) = clients.first() {
            client
                .batch_execute("CREATE TABLE raw (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), body bytea NOT NULL)")
                .await
                .expect("a table can be made");
        }
        Self { clients, bytes }
    }

    /// Returns the commits a second by this number of callers.
    ///
    /// # Panics
    ///
    /// If an insert fails.
    pub async fn rate(&self, callers: usize, each: usize) -> f64 {
        let started = Instant::now();
        let mut running = tokio::task::JoinSet::new();
        for client in self.clients.iter().take(callers) {
            let (client, body) = (client.clone(), vec![7_u8; self.bytes]);
            running.spawn(async move {
                let insert = client
                    .prepare("INSERT INTO raw (body) VALUES ($1)")
                    .await
                    .expect("the table is there");
                for _ in 0..each {
                    client.execute(&insert, &[&body]).await.expect("insert");
                }
            });
        }
        while running.join_next().await.is_some() {}
        rate(callers * each, started.elapsed())
    }
}

/// A record as a call leaves one: about as large, with a leaf that is canonical JSON.
///
/// # Panics
///
/// Never: the name is made of digits.
pub fn entry(n: u64) -> Entry {
    let id = SnapshotId::new(format!("ev_{n:032x}")).expect("digits");
    let at: jiff::Timestamp = jiff::Timestamp::UNIX_EPOCH;
    let text = "x".repeat(600);
    let leaf = format!(r#"{{"act":"{text}","at":"{at}","id":"{id}","kind":"call","v":1}}"#);
    Entry {
        sealed_under: None,
        id,
        user_id: format!("u_{}", n % 1_000),
        kind: RecordKind::Call,
        at,
        request_id: None,
        tool: Some("bench.write".to_owned()),
        code: None,
        leaf: leaf.into_bytes(),
        payload: Some(vec![7; 600]),
        keep_payload: None,
    }
}
