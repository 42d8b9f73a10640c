//! Contents of the log and the record of a call: names, ids and codes, never a value; nothing personal even if an error
//! or a text of the caller is kept (A21).
//!
//! Alone in its binary: the log level is decided once for the whole process, so other tests beside it would decide it
//! by chance.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

#[path = "../executor/world.rs"]
#[expect(dead_code, reason = "the executor's tests use the rest of it")]
mod world;

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use countersign::ToolError;
use countersign::contract::Input;
use countersign::ledger::{Log, LogQuery, MemoryStore};
use countersign::redact::Kind;
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::world::{Probe, World};

/// Everything that is logged, as one text.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<String>>);

impl Visit for Sink {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        writeln!(self.0.lock().unwrap(), "{field}={value:?}").unwrap();
    }
}

impl Subscriber for Sink {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut self.clone());
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut self.clone());
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// A21, B8, B19: an answer, a refusal, a failure and a panic, all with a value that must not appear.
#[tokio::test]
async fn no_value_reaches_the_log() {
    let sink = Sink::default();
    let _logging = tracing::subscriber::set_default(sink.clone());
    let canary = "canary-7f3a";
    let tools = [
        Probe::read("a.answers").body(|_, arguments| Box::pin(async { Ok(arguments.into()) })),
        Probe::read("b.refuses").input(Input::Parameters(vec![])),
        Probe::read("c.fails").body(|ctx, _| {
            let error = ToolError::invalid("/name", format!("not {}", ctx.raw_arguments()));
            Box::pin(async { Err(error) })
        }),
        Probe::read("d.panics").body(|ctx, _| panic!("{}", ctx.raw_arguments())),
        Probe::read("e.undeclared").input(Input::Undeclared),
    ];
    let world = World::of(tools, |builder| builder);
    for tool in [
        "a.answers",
        "b.refuses",
        "c.fails",
        "d.panics",
        "e.undeclared",
        canary,
    ] {
        let envelope = json!({"session_id": canary, "idempotency_key": canary});
        world
            .send(tool, &json!({ "name": canary }), &envelope)
            .await;
    }
    let log = sink.0.lock().unwrap().clone();
    assert!(!log.contains(canary), "{log}");
    for line in [
        "request_id=req_1",
        "tool=\"a.answers\"",
        "code=\"OK\"",
        "code=\"INVALID_ARGUMENT\"",
        "code=\"NOT_FOUND\"",
        "message=the tool panicked",
        "message=the tool has no declaration",
        "issues=\"UNKNOWN_KEY:1\"",
        "policy=\"allow-all\"",
    ] {
        assert!(log.lines().any(|logged| logged == line), "{line} in {log}");
    }
}

/// A value of each kind, and the part of it that must not appear anywhere.
fn planted(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Address => ("北京市朝阳区建国路88号", "建国路"),
        Kind::Card => ("4111 1111 1111 1111", "1111 1111"),
        Kind::Email => ("li@example.com", "example.com"),
        Kind::Iban => ("DE89370400440532013000", "0440532013"),
        Kind::Identity => ("11010519491231002X", "19491231"),
        Kind::Jwt => (
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJsaSJ9.c2lnbmF0dXJl",
            "eyJhbGci",
        ),
        Kind::Phone => ("13812345678", "12345678"),
        Kind::PrivateKey => (
            "-----BEGIN PRIVATE KEY----- MIIEexample -----END PRIVATE KEY-----",
            "MIIEexample",
        ),
        Kind::Token => ("AKIAIOSFODNN7EXAMPLE", "IOSFODNN7"),
    }
}

/// Everything that is kept of the calls: the records, and the leaves of the log. Payloads are sealed.
async fn kept(store: &MemoryStore) -> String {
    let mut text = serde_json::to_string(&store.records()).unwrap();
    let query = LogQuery {
        limit: 100,
        ..LogQuery::default()
    };
    for row in Log::records(store, &query).await.unwrap() {
        let record = store.record(&row.id).await.unwrap().unwrap();
        text.push_str(std::str::from_utf8(&record.leaf).unwrap());
    }
    text
}

/// A21: personal data and credentials of every kind, in values, names of members, the envelope, the tool's name and the
/// tools' error messages. No declaration marks any of it as sensitive.
#[tokio::test]
async fn nothing_about_a_person_reaches_the_log_or_the_record() {
    let sink = Sink::default();
    let _logging = tracing::subscriber::set_default(sink.clone());
    for kind in Kind::ALL {
        let (value, part) = planted(kind);
        sink.0.lock().unwrap().clear();
        let fails = move |said: String| {
            let body = ToolError::invalid("/note", said.clone());
            body.with_source(std::io::Error::other(format!("no answer for {said}")))
        };
        let tools = [
            Probe::read("a.answers").proved(),
            Probe::read("b.fails").proved().body(move |_, arguments| {
                let error = fails(arguments["note"].to_string());
                Box::pin(async { Err(error) })
            }),
            Probe::read("c.panics").body(|_, arguments| panic!("{arguments}")),
            Probe::read("d.undeclared").input(Input::Undeclared),
        ];
        let store = Arc::new(MemoryStore::new().keeping_log());
        let world = World::of(tools, |builder| builder.store(store.clone()));
        for tool in ["a.answers", "b.fails", "c.panics", "d.undeclared", value] {
            let arguments =
                json!({"note": format!("about {value}, please"), value: [{"deep": value}]});
            let envelope = json!({"session_id": value, "idempotency_key": value});
            world.send(tool, &arguments, &envelope).await;
        }
        let log = sink.0.lock().unwrap().clone();
        let error = format!("error=\"no answer for \\\"about {kind}, please\\\"\"");
        assert!(log.lines().any(|line| line == error), "{error} in {log}");
        assert!(!log.contains(part), "{kind} in {log}");
        let kept = kept(&store).await;
        assert!(!kept.contains(part), "{kind} in {kept}");
        let named = format!("\"{kind}\":[{{\"deep\":\"{kind}\"}}]");
        // In the plain records of the memory store; the log has none of it.
        assert_eq!(kept.matches(&named).count(), 3, "{named} in {kept}");
        assert!(kept.contains(&format!("\"tool\":\"{kind}\"")), "{kept}");
        assert!(
            kept.contains(&format!("\"session_id\":\"{kind}\"")),
            "{kept}"
        );
    }
}
