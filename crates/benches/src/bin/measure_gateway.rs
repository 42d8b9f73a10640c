//! Cost of the gateway over the wire: compared with a bare server that does nothing, with the store alone, and with other programs that
//! make a keyed write durable. Every pair is measured in turns.

use std::io::Result;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use countersign::ledger::{Durability, Log as _};
use countersign::scribe::Draft;
use countersign_benches::ledger::entry;
use countersign_benches::load::{MakeRequest, once, per_second, post, rate};
use countersign_benches::peers::Programs;
use countersign_store::sqlite::{SqliteOptions, SqliteStore};
use countersign_testkit::postgres::TempPostgres;

/// Amount of measuring.
#[derive(Clone, Copy)]
struct Effort {
    rounds: usize,
    /// Requests in one round.
    requests: u64,
}

/// Requests are numbered through, so that no key comes twice.
static NEXT: AtomicU64 = AtomicU64::new(0);

fn main() {
    let has = |option: &str| std::env::args().any(|argument| argument == option);
    let (rounds, requests) = if has("--quick") {
        (3, 3_000)
    } else {
        (7, 20_000)
    };
    let effort = Effort { rounds, requests };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    println("what\tours\tbeside\tratio\ttarget");
    let only = |name: &str| {
        let named = ["reads", "records", "writes", "mcp", "idle"];
        !named.iter().any(|other| has(other)) || has(name)
    };
    runtime.block_on(async {
        let programs = Programs::found().expect("where the programs are");
        if only("idle") {
            idle(&programs).await.expect("idle");
        }
        if only("reads") {
            reads(&programs, effort).await.expect("reads");
        }
        if only("records") {
            records(&programs, effort).await.expect("records");
        }
        if only("mcp") {
            mcp(&programs, effort).await.expect("mcp");
        }
        if only("writes") {
            writes(&programs, effort).await.expect("writes");
        }
    });
}

#[expect(clippy::print_stdout, reason = "the table is what this program is for")]
fn println(line: &str) {
    println!("{line}");
}

/// Memory and time of a server to which nothing has happened yet.
async fn idle(programs: &Programs) -> Result<()> {
    let folder = tempfile::tempdir()?;
    // The first start makes keys and tables.
    drop(programs.countersign(folder.path(), None).await?);
    let mut ready = Vec::new();
    let mut resident = 0;
    for _ in 0..5 {
        let server = programs.countersign(folder.path(), None).await?;
        ready.push(server.ready_after.as_secs_f64() * 1e3);
        resident = server.resident()?.max(resident);
    }
    let ready = median(&mut ready);
    println(&format!(
        "ready after the start\t{ready:.0} ms\t\t\t≤ 200 ms"
    ));
    let megabytes = resident.div_ceil(1_000_000);
    println(&format!("memory when idle\t{megabytes} MB\t\t\t≤ 40 MB"));
    Ok(())
}

/// A plain read beside a handler that parses and answers the same JSON.
async fn reads(programs: &Programs, effort: Effort) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let ours = programs.countersign(folder.path(), None).await?;
    // The tool itself has next to nothing to do.
    let body = r#"{"arguments": {"note": "agent state"}}"#;
    let request = post("/v1/tools/diagnostics.echo", &[], body);
    let answer = once(ours.address, &request).await?;
    let (_, answer) = answer.split_once("\r\n\r\n").unwrap_or_default();
    let bare = programs.bare_axum(answer).await?;
    let make: MakeRequest = Arc::new(move |_| request.clone());
    for connections in [1, 32, 128] {
        let what = format!("a plain read, {connections} connections, beside bare axum");
        let pair = [(ours.address, &make), (bare.address, &make)];
        compare(&what, pair, connections, effort, "≥ 0.75 ×").await?;
    }
    Ok(())
}

/// A read with evidence beside the store's own group commit of as many records at once.
async fn records(programs: &Programs, effort: Effort) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let server = programs.countersign(folder.path(), None).await?;
    let body = r#"{"arguments": {"country": "DE", "net_cents": 10000}}"#;
    let request = post("/v1/tools/sample.vat", &[], body);
    once(server.address, &request).await?;
    let make: MakeRequest = Arc::new(move |_| request.clone());
    let store = SqliteStore::open(folder.path().join("alone.db"), SqliteOptions::default());
    let store = Arc::new(store.map_err(std::io::Error::other)?);
    for connections in [32, 128] {
        let each = effort.requests / connections;
        let (mut ours, mut beside) = (Vec::new(), Vec::new());
        for _ in 0..effort.rounds {
            ours.push(run(server.address, connections, each, &make).await?);
            beside.push(appends(&store, connections, each).await);
        }
        let what = format!("a read with evidence, {connections} connections, beside group commits");
        row(&what, &mut ours, &mut beside, "≥ 0.70 ×");
    }
    Ok(())
}

/// Returns the records a second that the store commits for this number of callers.
async fn appends(store: &Arc<SqliteStore>, callers: u64, each: u64) -> f64 {
    let begun = std::time::Instant::now();
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..callers {
        let store = store.clone();
        running.spawn(async move {
            for _ in 0..each {
                let number = NEXT.fetch_add(1, Ordering::Relaxed);
                let draft = Draft::from(entry(number));
                let kept = store.append(draft, Durability::Committed).await;
                kept.expect("the store keeps it");
            }
        });
    }
    while running.join_next().await.is_some() {}
    per_second(callers * each, begun.elapsed())
}

/// `tools/call` beside a minimal server of the same protocol.
async fn mcp(programs: &Programs, effort: Effort) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let ours = programs.countersign(folder.path(), None).await?;
    let bare = programs.bare_mcp().await?;
    let make: MakeRequest = Arc::new(|number| {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"name":"memory_search","arguments":{{"query":"agent state","limit":2}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
        );
        let headers = [
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "memory_search"),
        ];
        post("/mcp", &headers, &body)
    });
    for connections in [1, 32] {
        let what = format!("MCP tools/call, {connections} connections, beside a minimal server");
        let pair = [(ours.address, &make), (bare.address, &make)];
        compare(&what, pair, connections, effort, "≥ 0.90 ×").await?;
    }
    Ok(())
}

/// A keyed durable write beside other programs that make one durable.
async fn writes(programs: &Programs, effort: Effort) -> Result<()> {
    let effort = Effort {
        requests: effort.requests / 4,
        ..effort
    };
    let folder = tempfile::tempdir()?;
    let database = TempPostgres::start();
    let sqlite = programs
        .countersign(&folder.path().join("sqlite"), None)
        .await?;
    let url = database.fresh_database();
    let data = folder.path().join("postgres");
    let postgres = programs.countersign(&data, Some(&url)).await?;
    let restate = programs.restate(&folder.path().join("restate")).await?;
    let dbos = programs.dbos(&database.fresh_database()).await?;

    let ours: MakeRequest = Arc::new(|number| {
        let user = number % 1_000;
        let body =
            format!(r#"{{"user_id": "u_{user}", "arguments": {{"text": "note {number}"}}}}"#);
        let key = format!("k_{number}");
        post("/v1/tools/notes.add", &[("idempotency-key", &key)], &body)
    });
    let theirs: MakeRequest = Arc::new(|number| {
        let path = format!("/notes/u_{}/add", number % 1_000);
        let key = format!("k_{number}");
        let body = format!(r#"{{"text": "note {number}"}}"#);
        post(&path, &[("idempotency-key", &key)], &body)
    });
    let dbos_request: MakeRequest = Arc::new(|number| {
        let user = number % 1_000;
        let body =
            format!(r#"{{"user_id": "u_{user}", "arguments": {{"text": "note {number}"}}}}"#);
        let key = format!("k_{number}");
        post("/notes", &[("idempotency-key", &key)], &body)
    });
    let peers = [
        ("Restate", restate.ingress.address, &theirs),
        ("DBOS on PostgreSQL", dbos.address, &dbos_request),
    ];
    for connections in [32, 128] {
        for (store, address) in [("SQLite", sqlite.address), ("PostgreSQL", postgres.address)] {
            for (peer, beside, request) in peers {
                let what = format!(
                    "a keyed durable write on {store}, {connections} connections, beside {peer}"
                );
                let pair = [(address, &ours), (beside, request)];
                compare(&what, pair, connections, effort, "≥ 3 ×").await?;
            }
        }
    }
    Ok(())
}

async fn compare(
    what: &str,
    [ours, beside]: [(SocketAddr, &MakeRequest); 2],
    connections: u64,
    effort: Effort,
    target: &str,
) -> Result<()> {
    let each = (effort.requests / connections.max(8)).max(1);
    let (mut our, mut their) = (Vec::new(), Vec::new());
    // The first round warms both up and does not count.
    for round in 0..=effort.rounds {
        let a = run(ours.0, connections, each, ours.1).await?;
        let b = run(beside.0, connections, each, beside.1).await?;
        if round > 0 {
            our.push(a);
            their.push(b);
        }
    }
    row(what, &mut our, &mut their, target);
    Ok(())
}

async fn run(server: SocketAddr, connections: u64, each: u64, make: &MakeRequest) -> Result<f64> {
    let first = NEXT.fetch_add(connections * each, Ordering::Relaxed);
    rate(server, connections, each, first, make).await
}

fn row(what: &str, ours: &mut [f64], beside: &mut [f64], target: &str) {
    let mut ratios: Vec<f64> = ours.iter().zip(&*beside).map(|(a, b)| a / b).collect();
    let (ours, beside, ratio) = (median(ours), median(beside), median(&mut ratios));
    let (low, high) = (
        ratios.first().copied().unwrap_or_default(),
        ratios.last().copied().unwrap_or_default(),
    );
    println(&format!(
        "{what}\t{ours:.0}/s\t{beside:.0}/s\t{ratio:.2} × ({low:.2}–{high:.2})\t{target}"
    ));
}

/// The middle of some numbers, which are sorted by this.
fn median(numbers: &mut [f64]) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or_default()
}
