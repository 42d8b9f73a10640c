//! Notifications of an observer: every call once, with the code that its caller got.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use countersign::clock::ManualClock;
use countersign::contract::tool::KeyRule;
use countersign::contract::{ErrorCode, TraceContext};
use countersign::ledger::MemoryStore;
use countersign::observe::{Answered, Observer, Origin, Surface};
use countersign::{BoxFuture, Principal, Reply, ToolError};
use countersign_testkit::faulty::{FaultyStore, Op, When};
use serde_json::{Value, json};

use crate::world::{Probe, World, call, call_as};

#[derive(Default)]
struct Watch {
    told: Mutex<Vec<Answered>>,
    samples: bool,
}

impl Watch {
    fn take(&self) -> Vec<Answered> {
        std::mem::take(&mut *self.told.lock().unwrap())
    }
}

impl Observer for Watch {
    fn answered(&self, answered: &Answered) {
        self.told.lock().unwrap().push(answered.clone());
    }

    fn samples(&self, _: u128) -> bool {
        self.samples
    }
}

fn failing() -> Probe {
    Probe::write("sample.fail").body(|_, _| {
        Box::pin(async { Err::<Reply, _>(ToolError::new(ErrorCode::OutOfStock, "none left")) })
    })
}

fn probes() -> [Probe; 5] {
    [
        Probe::read("sample.read"),
        Probe::write("sample.write").key(KeyRule::Optional),
        Probe::external("sample.send").key(KeyRule::Required),
        Probe::write("sample.confirm").confirmed(),
        failing(),
    ]
}

/// With a log, a store that fails as the plan says, and an observer.
fn watched(watch: &Arc<Watch>, plan: impl Fn(Op, When) -> bool + Send + Sync + 'static) -> World {
    World::made(probes(), MemoryStore::keeping_log, |builder, store| {
        let plan = move |op, when| -> BoxFuture<'static, bool> {
            Box::pin(std::future::ready(plan(op, when)))
        };
        let store = Arc::new(FaultyStore::new(store, plan));
        builder.store(store).observer(watch.clone())
    })
}

/// The observer is notified once of every call, with the code that the caller got: by every way out of the executor.
#[tokio::test]
async fn every_call_is_told_once_with_the_code_that_its_caller_got() {
    let watch = Arc::new(Watch::default());
    let world = watched(&watch, |_, _| false);
    let key = json!({"idempotency_key": "k_1"});
    let none = json!({});
    let cases: [(&str, Value, &Value, &str, &str); 9] = [
        ("sample.read", json!({}), &none, "OK", "sample.read"),
        ("sample_write", json!({}), &key, "OK", "sample.write"),
        (
            "sample.write",
            json!({}),
            &key,
            "OK replayed",
            "sample.write",
        ),
        (
            "sample.write",
            json!({"a": 1}),
            &key,
            "CONFLICT",
            "sample.write",
        ),
        ("sample.send", json!({}), &key, "OK", "sample.send"),
        (
            "sample.send",
            json!({}),
            &none,
            "INVALID_ARGUMENT",
            "sample.send",
        ),
        (
            "sample.confirm",
            json!({}),
            &none,
            "NEEDS_USER_CONFIRMATION",
            "sample.confirm",
        ),
        (
            "sample.fail",
            json!({}),
            &none,
            "OUT_OF_STOCK",
            "sample.fail",
        ),
        ("li@example.com", json!({}), &none, "NOT_FOUND", "-"),
    ];
    for (tool, arguments, envelope, outcome, name) in cases {
        let reply = world.send(tool, &arguments, envelope).await;
        let told = watch.take();
        let [told] = told.as_slice() else {
            panic!("{tool} was told {} times", told.len());
        };
        let code = told.code.map_or("OK", ErrorCode::as_str);
        let replayed = if told.replayed { " replayed" } else { "" };
        assert_eq!(format!("{code}{replayed}"), outcome, "{reply:#}");
        let seen = told
            .tool
            .as_ref()
            .map_or("-", |entry| entry.name().as_str());
        assert_eq!(seen, name);
        assert_eq!(json!(told.request_id), reply["request_id"]);
        let snapshot = told.snapshot_id.as_ref().map(|id| json!(id.as_str()));
        assert_eq!(snapshot.as_ref(), Some(&reply["evidence"]["snapshot_id"]));
    }
}

/// A reply that became a failure because its record could not be stored is observed as a failure.
#[tokio::test]
async fn a_store_that_fails_is_told_as_the_caller_is_told() {
    for (failing, tool) in [
        (Op::Append, "sample.read"),
        (Op::Commit, "sample.write"),
        (Op::Claim, "sample.send"),
    ] {
        let watch = Arc::new(Watch::default());
        let world = watched(&watch, move |op, when| {
            op == failing && when == When::Before
        });
        let envelope = json!({"idempotency_key": "k_1"});
        let reply = world.send(tool, &json!({}), &envelope).await;
        assert_eq!(reply["error"]["code"], "UPSTREAM_ERROR", "{reply:#}");
        let codes: Vec<_> = watch.take().iter().map(|told| told.code).collect();
        assert_eq!(codes, [Some(ErrorCode::UpstreamError)], "{tool}");
    }
}

/// The duration of settling includes the commit, which the committed record itself cannot contain.
#[tokio::test]
async fn settling_includes_the_commit() {
    let watch = Arc::new(Watch::default());
    let clock: Arc<OnceLock<Arc<ManualClock>>> = Arc::default();
    let slow = clock.clone();
    let world = watched(&watch, move |op, when| {
        if (op, when) == (Op::Append, When::Before) {
            slow.get().unwrap().advance(Duration::from_millis(5));
        }
        false
    });
    clock.set(world.clock.clone()).unwrap();
    world.send("sample.read", &json!({}), &json!({})).await;
    let told = watch.take().pop().unwrap();
    assert_eq!(told.phases.settling_us, 5_000);
    assert_eq!(told.took(), Duration::from_millis(5));
    assert_eq!(told.ended().to_string(), "2026-11-15T12:00:00.005Z");
}

/// A6: a new trace is recorded if the observer decides so, a caller's if the caller does; and the observer gets the
/// surface.
#[tokio::test]
async fn the_caller_decides_about_its_trace_and_the_observer_about_new_ones() {
    for samples in [false, true] {
        let watch = Arc::new(Watch {
            samples,
            ..Watch::default()
        });
        let world = watched(&watch, |_, _| false);
        let flags =
            |told: Vec<Answered>| told.iter().map(|one| one.trace.sampled).collect::<Vec<_>>();
        world.send("sample.read", &json!({}), &json!({})).await;
        assert_eq!(flags(watch.take()), [samples]);
        for sampled in [false, true] {
            let header = format!("00-{:032x}-{:016x}-0{}", 7, 8, u8::from(sampled));
            let trace: TraceContext = header.parse().unwrap();
            let origin = Origin {
                surface: Surface::Mcp,
                call_id: Some("call_1".into()),
            };
            let sent = call("sample.read", &json!({}), &json!({}));
            let state = "vendor=x".parse().unwrap();
            let sent = sent.trace(trace).trace_state(state).origin(origin.clone());
            world.execute(sent).await;
            let told = watch.take().pop().unwrap();
            assert_eq!(told.trace.sampled, sampled);
            assert_eq!(
                (told.trace.trace_id, told.trace.parent_span_id),
                (7, Some(8))
            );
            assert_eq!(told.trace_state.as_ref().unwrap().as_str(), "vendor=x");
            assert_eq!(told.origin, origin);
        }
    }
}

/// A2, A21: a request id stands in the log for ever and in every line about the call. One that the caller chose is a
/// digest there, and as it was sent in the reply; a program that only the envelope names is a digest, too.
#[tokio::test]
async fn ids_that_the_caller_chose_are_digests_in_the_log() {
    let watch = Arc::new(Watch::default());
    let world = World::logging_with(probes(), |builder| builder.observer(watch.clone()));
    for sent in ["order-10023", "li@example.com", "erika.mustermann.1"] {
        let envelope = json!({"request_id": sent});
        let reply = world.send("sample.read", &json!({}), &envelope).await;
        assert_eq!(reply["request_id"], sent);
        let (leaf, stored) = world.log().await.pop().unwrap();
        let told = watch.take().pop().unwrap();
        let recorded = leaf["request_id"].as_str().unwrap();
        assert!(
            recorded.starts_with("rq_") && recorded.len() == 35,
            "{recorded}"
        );
        assert_eq!(json!(told.request_id), recorded);
        assert_eq!(json!(stored.row.request_id), recorded);
        assert!(!leaf.to_string().contains(sent), "{leaf:#}");
    }
    world.send("sample.read", &json!({}), &json!({})).await;
    let (leaf, _) = world.log().await.pop().unwrap();
    assert_eq!(leaf["request_id"], "req_1", "an id of ours stays as it is");
    for (id, is_kept) in [
        ("agent-7", false),
        ("li@example.com", false),
        ("Li Lei's", false),
    ] {
        let envelope = json!({"actor": {"type": "agent", "id": id}});
        let principal = Principal::user("u_1").acting_for_others();
        let sent = call_as(principal, "sample.read", &json!({}), &envelope);
        world.execute(sent).await;
        let (leaf, _) = world.log().await.pop().unwrap();
        assert_eq!(leaf["actor"]["id"] == id, is_kept, "{leaf:#}");
    }
}
