//! The log as an operator reads it.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign::clock::ManualClock;
use countersign::ids::SequentialIds;
use countersign::ledger::MemoryStore;
use countersign::sample::MemorySearch;
use countersign::{BoxFuture, Catalog, Executor, Principal, ToolCall};
use countersign_gateway::telemetry::{Lines, LogFormat, LogLayer};
use countersign_testkit::faulty::{FaultyStore, Op, When};
use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::layer::SubscriberExt as _;

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the log of work on this thread.
async fn logged(format: LogFormat, filter: &str, work: BoxFuture<'_, ()>) -> String {
    let sink = Sink::default();
    let lines = Lines::to(Box::new(sink.clone()), format);
    let start = "2026-11-15T12:00:00Z".parse().unwrap();
    let clock = Arc::new(ManualClock::starting_at(start));
    let layer = LogLayer::new(format, lines.clone(), clock);
    let subscriber = tracing_subscriber::registry()
        .with(EnvFilter::new(filter))
        .with(layer);
    let here = tracing::subscriber::set_default(subscriber);
    work.await;
    drop(here);
    assert!(lines.flush(Duration::from_secs(30)).await);
    let bytes = sink.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

fn executor() -> Executor {
    let catalog = Catalog::builder().tool(MemorySearch::new(["buy milk"]));
    let start = "2026-11-15T12:00:00Z".parse().unwrap();
    Executor::builder(catalog.build().unwrap())
        .clock(Arc::new(ManualClock::starting_at(start)))
        .ids(Arc::new(SequentialIds::new()))
        .build()
}

async fn search() {
    let call = ToolCall::new("memory.search", "{query: 'milk'}", Principal::user("u_1"));
    assert!(executor().execute(call).await.ok);
}

/// One line for each call, with the ids that find its record and its trace.
#[tokio::test]
async fn a_call_is_one_line_with_its_ids() {
    insta::assert_snapshot!(logged(LogFormat::Json, "info", Box::pin(search())).await, @r#"{"time":"2026-11-15T12:00:00.000000Z","level":"INFO","target":"countersign::observe","message":"call answered","tool":"memory.search","code":"OK","replayed":false,"dry_run":false,"binding":"repaired","issues":"QUOTE_STYLE:1 KEY_UNQUOTED:1","policy":"allow-all","queued_us":0,"awaiting_approval_us":0,"executing_us":0,"settling_us":0,"request_id":"req_1","trace_id":"00000000000000000000000000000001","span_id":"0000000000000001"}"#);
    insta::assert_snapshot!(logged(LogFormat::Text, "info", Box::pin(search())).await, @"2026-11-15T12:00:00.000Z INFO  call answered tool=memory.search code=OK replayed=false dry_run=false binding=repaired issues=QUOTE_STYLE:1 KEY_UNQUOTED:1 policy=allow-all queued_us=0 awaiting_approval_us=0 executing_us=0 settling_us=0 request_id=req_1 trace_id=00000000000000000000000000000001 span_id=0000000000000001");
    assert_eq!(
        logged(LogFormat::Text, "warn", Box::pin(search())).await,
        ""
    );
}

/// B16: the binder logs in a category of its own, with codes and places and without values.
#[tokio::test]
async fn the_binder_has_a_log_of_its_own() {
    let work = async {
        search().await;
        let call = ToolCall::new("no.such_tool", "{'name': 'Li'}", Principal::user("u_1"));
        assert!(!executor().execute(call).await.ok);
    };
    let text = logged(LogFormat::Text, "off,ToolParse=debug", Box::pin(work)).await;
    insta::assert_snapshot!(text, @"
    2026-11-15T12:00:00.000Z DEBUG arguments read tool=memory.search bytes=15 status=repaired issues=KEY_UNQUOTED@1..6 QUOTE_STYLE@8..9
    2026-11-15T12:00:00.000Z DEBUG arguments read tool=unknown bytes=14 status=repaired issues=TOOL_DEFINITION_MISSING QUOTE_STYLE@1..2
    ");
}

/// A warning has its call's ids even if nothing less is logged; of other crates only the place is logged, and
/// nothing below a warning; control characters and detected personal data are replaced.
#[tokio::test]
async fn what_others_say_is_not_repeated() {
    let work = async {
        tracing::warn!(target: "rmcp::transport", body = "Zacharias Quuxington", "got {}", "li");
        tracing::info!(target: "rmcp::transport", "got li");
        tracing::error!(target: "countersign::x", text = "a\nb\u{1b}[31m li@example.com", "said");
        tracing::debug!(target: "countersign::cause", "Zacharias Quuxington");
    };
    let text = logged(LogFormat::Text, "trace", Box::pin(work)).await;
    let (text, place) = text.split_once(" place=logs.rs:").unwrap();
    let (_line, rest) = place.split_once('\n').unwrap();
    let text = format!("{text}\n{rest}");
    insta::assert_snapshot!(text, @r"
    2026-11-15T12:00:00.000Z WARN  the library rmcp logged a warning; its text may quote a call and is left out part=rmcp::transport
    2026-11-15T12:00:00.000Z ERROR said text=a\nb\u{1b}[31m [email]
    ");
}

/// A sink that stalls costs lines, never blocks the caller, and the number of lost lines is logged.
#[tokio::test]
async fn a_log_that_nobody_reads_stops_nothing() {
    struct Stalled(std::sync::mpsc::Receiver<()>, Sink);
    impl Write for Stalled {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Until the sender is gone.
            let _gone = self.0.recv();
            self.1.write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let (reader, stalled) = std::sync::mpsc::channel();
    let sink = Sink::default();
    let lines = Lines::to(Box::new(Stalled(stalled, sink.clone())), LogFormat::Json);
    let clock = Arc::new(ManualClock::starting_at(jiff::Timestamp::UNIX_EPOCH));
    let layer = LogLayer::new(LogFormat::Json, lines.clone(), clock);
    let subscriber = tracing_subscriber::registry().with(layer);
    tracing::subscriber::with_default(subscriber, || {
        for number in 0..20_000 {
            tracing::info!(target: "countersign::test", number, "a line");
        }
    });
    assert!(!lines.flush(Duration::from_millis(1)).await);
    drop(reader);
    assert!(lines.flush(Duration::from_secs(30)).await);
    let text = String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
    let written = text.matches("a line").count();
    let dropped: usize = text
        .lines()
        .filter_map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["count"].as_u64()
        })
        .map(|count| usize::try_from(count).unwrap())
        .sum();
    assert_eq!(written + dropped, 20_000);
    assert!(dropped > 10_000, "{dropped}");
}

/// U10: while every call fails for the same reason, the log has a line and a count, not a line for each call.
#[tokio::test]
async fn errors_that_repeat_themselves_are_counted() {
    let work = async {
        let store = Arc::new(MemoryStore::new().keeping_log());
        let store = FaultyStore::new(store, |op, when| {
            let fails = op == Op::Append && when == When::Before;
            Box::pin(std::future::ready(fails))
        });
        let catalog = Catalog::builder().tool(MemorySearch::new(["buy milk"]));
        let executor = Executor::builder(catalog.build().unwrap())
            .store(Arc::new(store))
            .build();
        for _ in 0..500 {
            let call = ToolCall::new(
                "memory.search",
                r#"{"query": "milk"}"#,
                Principal::user("u_1"),
            );
            executor.execute(call).await;
        }
    };
    let text = logged(LogFormat::Text, "warn", Box::pin(work)).await;
    let told: Vec<_> = text.lines().collect();
    assert_eq!(told.len(), 2, "{text}");
    assert!(!told[0].contains("repeated="), "{text}");
    assert!(told[1].ends_with(" repeated=499"), "{text}");
}
