//! Cost of durability: calls compared with the same bytes committed without anything around them, in turns.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use countersign::ledger::{Durability, Integration, Log, Sequencing, Store};
use countersign::scribe::Draft;
use countersign_benches::ledger::{Calls, RawPostgres, RawSqlite, entry, rate};
use countersign_evidence::tree::{Frontier, leaf_hash};
use countersign_store::postgres::{PostgresOptions, PostgresStore};
use countersign_store::sqlite::{SqliteOptions, SqliteStore};
use countersign_testkit::postgres::TempPostgres;

/// Amount of measuring.
#[derive(Clone, Copy)]
struct Effort {
    rounds: usize,
    /// Calls of one caller in one round.
    each: usize,
    /// Records in the large log.
    large: u64,
}

fn main() {
    let has = |option: &str| std::env::args().any(|argument| argument == option);
    let effort = match (has("--bench"), has("--quick")) {
        (true, false) => Effort {
            rounds: 7,
            each: 60,
            large: 2_000_000,
        },
        (true, true) => Effort {
            rounds: 3,
            each: 20,
            large: 50_000,
        },
        // Not `cargo bench` but `cargo test`: only whether it runs.
        (false, _) => Effort {
            rounds: 1,
            each: 1,
            large: 100,
        },
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    println("what\tours\tbeside\tratio\ttarget");
    runtime.block_on(async {
        sqlite(effort).await;
        postgres(effort).await;
        growth(effort).await;
        verification(effort);
    });
}

#[expect(clippy::print_stdout, reason = "the table is what this program is for")]
fn println(line: &str) {
    println!("{line}");
}

fn row(what: &str, ours: f64, beside: f64, ratio: f64, target: &str) {
    println(&format!(
        "{what}\t{ours:.0}/s\t{beside:.0}/s\t{ratio:.2} ×\t{target}"
    ));
}

async fn sqlite(effort: Effort) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Arc::new(
        SqliteStore::open(folder.path().join("ours.db"), SqliteOptions::default())
            .expect("it opens"),
    );
    let calls = Arc::new(Calls::over(store.clone()));
    // Users' keys are made once, and what a call stores is measured on the way.
    calls.rate(64, effort.each).await;
    let bytes = size(folder.path()) / (64 * effort.each);
    let raw = RawSqlite::open(&folder.path().join("raw.db"), bytes);
    raw.rate(64, effort.each).await;

    let (mut ours, mut beside) = (Vec::new(), Vec::new());
    for _ in 0..effort.rounds {
        ours.push(calls.rate(64, effort.each).await);
        beside.push(raw.rate(64, effort.each).await);
    }
    let what = format!("SQLite, 64 callers, durable write beside {bytes} bytes in a group commit");
    compared(&what, &ours, &beside, "≥ 0.60 ×");

    let (mut ours, mut beside) = (Vec::new(), Vec::new());
    for _ in 0..effort.rounds {
        ours.push(calls.rate(1, effort.each * 8).await);
        beside.push(raw.rate(1, effort.each * 8).await);
    }
    compared(
        "SQLite, 1 caller, durable write beside one commit",
        &ours,
        &beside,
        "≥ 0.77 × (1.3 × the time)",
    );

    let (mut ours, mut beside) = (Vec::new(), Vec::new());
    for _ in 0..effort.rounds {
        ours.push(calls.replay_rate(1, effort.each * 8).await);
        beside.push(calls.rate(1, effort.each * 8).await);
    }
    compared(
        "SQLite, 1 caller, replay beside a first call",
        &ours,
        &beside,
        "≥ 5 ×",
    );
}

async fn postgres(effort: Effort) {
    let server = TempPostgres::start();
    let url = server.fresh_database();
    let store = Arc::new(
        PostgresStore::open(PostgresOptions::new(&url))
            .await
            .expect("the server answers"),
    );
    let calls = Arc::new(Calls::over(store.clone()));
    calls.rate(64, effort.each).await;
    let raw = RawPostgres::connect(&url, 64, 2_000).await;
    raw.rate(64, effort.each).await;
    let (mut ours, mut beside) = (Vec::new(), Vec::new());
    for _ in 0..effort.rounds {
        ours.push(calls.rate(64, effort.each).await);
        beside.push(raw.rate(64, effort.each).await);
    }
    compared(
        "PostgreSQL, 64 callers, durable write beside a single-row insert",
        &ours,
        &beside,
        "≥ 0.60 ×",
    );
    let (mut ours, mut beside) = (Vec::new(), Vec::new());
    for _ in 0..effort.rounds {
        ours.push(calls.replay_rate(64, effort.each).await);
        beside.push(calls.rate(64, effort.each).await);
    }
    compared(
        "PostgreSQL, 64 callers, replay beside a first call",
        &ours,
        &beside,
        "≥ 5 ×",
    );
}

/// Appending to a large log beside appending to a small one.
async fn growth(effort: Effort) {
    let folder = tempfile::tempdir().expect("a folder");
    let small = SqliteStore::open(folder.path().join("small.db"), SqliteOptions::default())
        .expect("it opens");
    let large = SqliteStore::open(folder.path().join("large.db"), SqliteOptions::default())
        .expect("it opens");
    append(&small, 0, 10_000.min(effort.large)).await;
    append(&large, 0, effort.large).await;
    let (mut ours, mut beside) = (Vec::new(), Vec::new());
    let step = (effort.each as u64) * 100;
    for round in 0..effort.rounds as u64 {
        ours.push(append(&large, effort.large + round * step, step).await);
        beside.push(append(&small, 10_000 + round * step, step).await);
    }
    let what = format!("append at {} records beside 10,000", effort.large);
    compared(&what, &ours, &beside, "≥ 0.90 ×");
}

async fn append(store: &SqliteStore, from: u64, count: u64) -> f64 {
    let started = Instant::now();
    for n in from..from + count {
        let draft = Draft::from(entry(n));
        store
            .append(draft, Durability::Batched)
            .await
            .expect("there is room");
        if n % 4_096 == 4_095 {
            integrate(store).await;
        }
    }
    store.flush().await.expect("it is written");
    integrate(store).await;
    rate(
        usize::try_from(count).unwrap_or(usize::MAX),
        started.elapsed(),
    )
}

async fn integrate(store: &dyn Store) {
    let sequencing = Sequencing {
        holder: "bench".to_owned(),
        lease: std::time::Duration::from_mins(1),
    };
    loop {
        match store
            .integrate(&sequencing, 4_096)
            .await
            .expect("it integrates")
        {
            Integration::Done { added: 0, .. } | Integration::NotOurs => return,
            Integration::Done { .. } => {}
        }
    }
}

/// The tree over leaves, which is what verifying a log comes down to.
fn verification(effort: Effort) {
    let leaves: Vec<_> = (0..20_000).map(|n| entry(n).leaf).collect();
    let mut rates = Vec::new();
    for _ in 0..effort.rounds {
        let started = Instant::now();
        let mut frontier = Frontier::new();
        for leaf in &leaves {
            frontier.push(leaf_hash(leaf));
        }
        assert_eq!(frontier.size(), 20_000);
        rates.push(rate(leaves.len(), started.elapsed()));
    }
    let ours = median(&mut rates);
    println(&format!(
        "hash leaves into the tree\t{ours:.0}/s\t\t\t≥ 300000/s"
    ));
}

fn compared(what: &str, ours: &[f64], beside: &[f64], target: &str) {
    let mut ratios: Vec<_> = ours.iter().zip(beside).map(|(a, b)| a / b).collect();
    let ratio = median(&mut ratios);
    let (mut ours, mut beside) = (ours.to_vec(), beside.to_vec());
    row(what, median(&mut ours), median(&mut beside), ratio, target);
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Returns the total size of the files in a folder.
fn size(folder: &Path) -> usize {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = files.filter_map(|file| file.metadata().ok().map(|data| data.len()));
    usize::try_from(sizes.sum::<u64>()).unwrap_or(usize::MAX)
}
