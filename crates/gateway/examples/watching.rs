//! Measures the cost of observability for a call: the same calls without observers, with metrics, with metrics
//! and traces that are not sampled, and with a log line each.
//!
//! ```text
//! cargo run --release -p countersign-gateway --example watching            the table
//! valgrind --tool=callgrind …/watching metrics 2000                        instructions of one of them
//! ```

use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use countersign::clock::SystemClock;
use countersign::observe::Observer;
use countersign::sample::MemorySearch;
use countersign::{Catalog, Executor, Principal, ToolCall};
use countersign_gateway::metrics::Metrics;
use countersign_gateway::telemetry::{Lines, LogFormat, LogLayer, Options, Traces};
use tracing_subscriber::layer::SubscriberExt as _;

type Failed = Box<dyn std::error::Error>;

/// Observers.
const CASES: [&str; 4] = ["nobody", "metrics", "traces", "log"];

/// Number of measurements of each case, in turns.
const ROUNDS: usize = 15;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    let mut arguments = std::env::args().skip(1);
    if let Some(case) = arguments.next() {
        let calls = arguments.next().map_or(Ok(1_000), |count| count.parse())?;
        let executor = executor(&case)?;
        run(&executor, &case, calls).await;
        return Ok(());
    }
    let mut best = [Duration::MAX; CASES.len()];
    let executors = CASES
        .map(executor)
        .into_iter()
        .collect::<Result<Vec<_>, _>>()?;
    for _ in 0..ROUNDS {
        for ((case, executor), best) in CASES.iter().zip(&executors).zip(&mut best) {
            *best = run(executor, case, 2_000).await.min(*best);
        }
    }
    for (case, best) in CASES.iter().zip(best) {
        let ns = best.as_nanos() / 2_000;
        writeln!(std::io::stdout(), "{case:8} {ns:6} ns a call")?;
    }
    Ok(())
}

fn executor(case: &str) -> Result<Executor, Failed> {
    let catalog = Catalog::builder()
        .tool(MemorySearch::new(["buy milk"]))
        .build()?;
    let builder = Executor::builder(catalog);
    let metrics = Arc::new(Metrics::new());
    Ok(match case {
        "metrics" | "log" => builder.observer(metrics).build(),
        "traces" => {
            let options = Options {
                sample_ratio: 0.0,
                ..Options::default()
            };
            let nobody = "http://127.0.0.1:9";
            let traces = Traces::start(nobody, &options, metrics.spans_dropped())?;
            let both: Vec<Arc<dyn Observer>> = vec![metrics, Arc::new(traces)];
            builder.observer(Arc::new(both)).build()
        }
        _ => builder.build(),
    })
}

async fn run(executor: &Executor, case: &str, calls: usize) -> Duration {
    let _logged = (case == "log").then(|| {
        let lines = Lines::to(Box::new(std::io::sink()), LogFormat::Json);
        let layer = LogLayer::new(LogFormat::Json, lines, Arc::new(SystemClock::new()));
        tracing::subscriber::set_default(tracing_subscriber::registry().with(layer))
    });
    let principal = Arc::new(Principal::user("u_1"));
    let started = Instant::now();
    for _ in 0..calls {
        let call = ToolCall::new("memory.search", r#"{"query":"milk"}"#, principal.clone());
        std::hint::black_box(executor.execute(call).await);
    }
    started.elapsed()
}
