//! Measures the calls that a PostgreSQL store commits a second, compared with plain one-row inserts by as many
//! callers.
//!
//! ```text
//! cargo run --release -p countersign-store --example postgres_commits -- postgres://app@127.0.0.1/bench
//! ```
//!
//! A call takes its key, writes one document and keeps a record with its payload, all in one commit. The two
//! sides run in turns, because the speed of a disk changes from one second to the next. The database must be
//! empty and may be filled.

use std::error::Error;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use countersign::ledger::{
    Claims as _, Commit, CommitAnswer, DocumentKey, DocumentRead, DocumentWrite, Entry, KeyChange,
    KeyDigest, Outcome, Scope,
};
use countersign_contract::{RecordKind, RequestId, SnapshotId, ToolName};
use countersign_store::postgres::{PostgresOptions, PostgresStore};
use jiff::Timestamp;
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

type Failure = Box<dyn Error + Send + Sync>;

/// Duration of one side's turn.
const TURN: Duration = Duration::from_secs(3);

const TURNS: usize = 3;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let url = args
        .next()
        .ok_or("the URL of an empty database is missing")?;
    let lanes = args.next().map_or(Ok(2), |lanes| lanes.parse())?;
    let batch = args.next().map_or(Ok(128), |batch| batch.parse())?;
    let options = PostgresOptions::new(&url).lanes(lanes).batch_max(batch);
    let store = Arc::new(PostgresStore::open(options).await?);
    let numbers = Arc::new(AtomicU64::new(1));
    let mut out = std::io::stdout();
    writeln!(out, "callers  calls/s  inserts/s  ratio")?;
    for callers in [1, 8, 64] {
        let clients = connect(&url, callers).await?;
        for _ in 0..TURNS {
            let calls = calls(&store, &numbers, callers).await?;
            let inserts = inserts(&clients, &numbers).await?;
            let ratio = calls / inserts;
            writeln!(
                out,
                "{callers:>7}  {calls:>7.0}  {inserts:>9.0}  {ratio:>5.2}"
            )?;
        }
    }
    Ok(())
}

async fn calls(
    store: &Arc<PostgresStore>,
    numbers: &Arc<AtomicU64>,
    callers: usize,
) -> Result<f64, Failure> {
    let start = Instant::now();
    let mut running = JoinSet::new();
    for _ in 0..callers {
        let (store, numbers) = (Arc::clone(store), Arc::clone(numbers));
        running.spawn(async move {
            let mut done = 0_u32;
            while start.elapsed() < TURN {
                let commit = call(numbers.fetch_add(1, Ordering::Relaxed))?;
                let answer = store.commit(commit).await?;
                if answer != CommitAnswer::Committed {
                    return Err(Failure::from(format!("{answer:?}")));
                }
                done += 1;
            }
            Ok(done)
        });
    }
    rate(start, running).await
}

async fn inserts(clients: &[Arc<Client>], numbers: &Arc<AtomicU64>) -> Result<f64, Failure> {
    let start = Instant::now();
    let mut running = JoinSet::new();
    for client in clients {
        let (client, numbers) = (Arc::clone(client), Arc::clone(numbers));
        running.spawn(async move {
            let insert = "INSERT INTO bare_row (id, caller, body) VALUES ($1, $2, $3)";
            let insert = client.prepare(insert).await?;
            let mut done = 0_u32;
            while start.elapsed() < TURN {
                let id = i64::try_from(numbers.fetch_add(1, Ordering::Relaxed))?;
                client.execute(&insert, &[&id, &1_i64, &"body"]).await?;
                done += 1;
            }
            Ok::<_, Failure>(done)
        });
    }
    rate(start, running).await
}

async fn rate(start: Instant, mut running: JoinSet<Result<u32, Failure>>) -> Result<f64, Failure> {
    let mut done = 0;
    while let Some(finished) = running.join_next().await {
        done += finished??;
    }
    Ok(f64::from(done) / start.elapsed().as_secs_f64())
}

async fn connect(url: &str, callers: usize) -> Result<Vec<Arc<Client>>, Failure> {
    let mut clients = Vec::new();
    for _ in 0..callers {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        tokio::spawn(connection);
        clients.push(Arc::new(client));
    }
    if let Some(client) = clients.first() {
        let table = "CREATE TABLE IF NOT EXISTS bare_row \
            (id bigint PRIMARY KEY, caller bigint NOT NULL, body text NOT NULL)";
        client.batch_execute(table).await?;
    }
    Ok(clients)
}

fn call(number: u64) -> Result<Commit, Failure> {
    let user_id = format!("u_{}", number % 1_000);
    // Spread like the digest that it stands for.
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut digest = [0; 32];
    for (byte, of_number) in digest.iter_mut().zip(mixed.to_be_bytes()) {
        *byte = of_number;
    }
    let key = DocumentKey {
        user_id: user_id.clone(),
        collection: "cart".to_owned(),
        id: format!("c_{number}"),
    };
    Ok(Commit {
        key: Some(KeyChange::Take {
            scope: Scope {
                user_id: user_id.clone(),
                tool: ToolName::new("cart.add_item")?,
                key: KeyDigest(digest),
            },
            fingerprint: [7; 32],
            parts: vec![1; 64],
            after: 0,
            outcome: Outcome::Succeeded {
                reply: vec![2; 400],
                keep: Duration::from_hours(24),
            },
            request_id: RequestId::new(format!("req_{number:020}"))?,
        }),
        reads: vec![DocumentRead {
            key: key.clone(),
            version: 0,
        }],
        shapes: Vec::new(),
        writes: vec![DocumentWrite {
            pseudonym: String::new(),
            key,
            version: 0,
            body: Some(vec![3; 300]),
            entries: Vec::new(),
            tracked: false,
        }],
        spend: None,
        record: Entry {
            sealed_under: None,
            id: SnapshotId::new(format!("ev_{number:020}"))?,
            user_id,
            kind: RecordKind::Call,
            at: Timestamp::from_microsecond(i64::try_from(number)?)?,
            request_id: Some(RequestId::new(format!("req_{number:020}"))?),
            tool: Some("cart.add_item".to_owned()),
            code: None,
            leaf: vec![b'l'; 900],
            payload: Some(vec![5; 700]),
            keep_payload: Some(Duration::from_hours(720)),
        }
        .into(),
    })
}
