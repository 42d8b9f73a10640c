//! Measures how a backup of a SQLite store slows down the calls that are committed meanwhile.
//!
//! ```text
//! cargo run --release -p countersign-store --example backup_under_load -- FOLDER 1024 500
//! ```
//!
//! Fills a store in the folder up to a given number of MiB and commits a given number of calls a second, each
//! with its key, a document and a record with its payload. Prints the latency of commits before, during and
//! after a backup. Commits are sent on time, even if earlier ones were not answered, so that a pause shows in
//! the latency of every call that it delays.

use std::error::Error;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use countersign::ledger::{
    Binding, Claims as _, Commit, DocumentKey, DocumentRead, DocumentWrite, Entry, KeyChange,
    KeyDigest, Outcome, Scope,
};
use countersign::sequencer::{LastStop, Sequencer};
use countersign_contract::{RequestId, ToolName};
use countersign_evidence::note::SigningKey;
use countersign_store::sqlite::{BackupPhase, SqliteOptions, SqliteStore};
use countersign_testkit::ledger::build::entry_at;
use tokio::task::JoinSet;

type Failure = Box<dyn Error + Send + Sync>;

/// Time for which calls are measured before and after the backup.
const QUIET: Duration = Duration::from_secs(10);

/// Payload size of a record that fills the store.
const FILL_BYTES: usize = 256 * 1024;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let folder = args.next().ok_or("a folder is missing")?;
    let mebibytes: u64 = args.next().map_or(Ok(1024), |size| size.parse())?;
    let rate: u32 = args.next().map_or(Ok(500), |rate| rate.parse())?;
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    let key = SigningKey::from_seed("example.com/log", &[1; 32])?;
    let options = SqliteOptions {
        binding: Some(Binding::new("in_1", "m_1", key.verifying_key())),
        ..SqliteOptions::default()
    };
    let store = Arc::new(SqliteStore::open(folder.join("store.db"), options)?);
    let numbers = Arc::new(AtomicU64::new(1));
    let mut out = std::io::stdout();

    let start = Instant::now();
    for _ in 0..mebibytes * 1024 * 1024 / FILL_BYTES as u64 {
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        store.commit(call(number, FILL_BYTES)?).await?;
    }
    writeln!(out, "filled {mebibytes} MiB in {:.1?}", start.elapsed())?;

    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let sequencer = Sequencer::builder(store.clone(), key);
    let sequencer = sequencer.start(LastStop::default()).await?;
    let signing = tokio::spawn(sequencer.run(async { drop(ended.await) }));

    let load = Load::start(&store, &numbers, rate);
    tokio::time::sleep(QUIET).await;
    writeln!(out, "before:  {}", load.phase().await?)?;

    let load = Load::start(&store, &numbers, rate);
    let start = Instant::now();
    let mut copied = Duration::ZERO;
    let file = folder.join("backup.db");
    let report = store
        .backup(&file, &mut |progress| {
            if progress.phase == BackupPhase::Copy {
                copied = start.elapsed();
            }
        })
        .await?;
    let whole = start.elapsed();
    writeln!(out, "during:  {}", load.phase().await?)?;
    writeln!(
        out,
        "backup:  {} MiB, {} records, {} signed: copied in {copied:.1?}, verified after {whole:.1?}",
        report.bytes / 1024 / 1024,
        report.records,
        report.signed,
    )?;

    let load = Load::start(&store, &numbers, rate);
    tokio::time::sleep(QUIET).await;
    writeln!(out, "after:   {}", load.phase().await?)?;
    drop(end);
    signing.await??;
    Ok(())
}

/// Calls that are sent on time until the measurement ends.
struct Load {
    is_over: Arc<AtomicBool>,
    sending: tokio::task::JoinHandle<Result<Vec<Duration>, Failure>>,
}

impl Load {
    fn start(store: &Arc<SqliteStore>, numbers: &Arc<AtomicU64>, rate: u32) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (store, numbers, stop) = (store.clone(), numbers.clone(), is_over.clone());
        let sending = tokio::spawn(async move {
            let mut running = JoinSet::new();
            let start = Instant::now();
            for n in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let due = start + Duration::from_secs(1) * n / rate;
                tokio::time::sleep_until(due.into()).await;
                let commit = call(numbers.fetch_add(1, Ordering::Relaxed), 700)?;
                let store = store.clone();
                running.spawn(async move {
                    store.commit(commit).await?;
                    Ok::<_, Failure>(due.elapsed())
                });
            }
            let mut took = Vec::new();
            while let Some(done) = running.join_next().await {
                took.push(done??);
            }
            took.sort_unstable();
            Ok(took)
        });
        Self { is_over, sending }
    }

    async fn phase(self) -> Result<String, Failure> {
        self.is_over.store(true, Ordering::Relaxed);
        let took = self.sending.await??;
        let at = |share: usize| took.get(took.len() * share / 1_000).copied();
        let [p50, p99, p999] = [500, 990, 999].map(|share| at(share).unwrap_or_default());
        let max = took.last().copied().unwrap_or_default();
        Ok(format!(
            "{} calls, p50 {p50:.2?}, p99 {p99:.2?}, p99.9 {p999:.2?}, max {max:.2?}",
            took.len()
        ))
    }
}

fn call(number: u64, payload_bytes: usize) -> Result<Commit, Failure> {
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
    let request_id = RequestId::new(format!("req_{number:020}"))?;
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
            request_id: request_id.clone(),
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
            payload: Some(vec![5; payload_bytes]),
            keep_payload: Some(Duration::from_hours(720)),
            request_id: Some(request_id),
            ..entry_at(
                i64::try_from(number)?,
                &format!("ev_{number:020}"),
                &user_id,
            )
        }
        .into(),
    })
}
