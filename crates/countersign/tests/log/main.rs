//! What a call leaves in the log: names, ids and codes, never a value (A21).
//!
//! Alone in its binary: whether a line is logged at all is decided once for the whole process, so
//! other tests beside it would decide it by chance.

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
        "issues={UnknownKey: 1}",
        "policy=\"allow-all\"",
    ] {
        assert!(log.lines().any(|logged| logged == line), "{line} in {log}");
    }
}
