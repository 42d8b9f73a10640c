//! The record that a call leaves.

use std::sync::Arc;
use std::time::Duration;

use countersign::approve::{Answer, Approver, Confirm, Permit};
use countersign::clock::ManualClock;
use countersign::contract::parameter::Sensitivity;
use countersign::contract::{Actor, ActorType, Digest, Input, Parameter, ValueKind};
use countersign::ledger::MemoryStore;
use countersign::unavailable::Unavailable;
use countersign::{BoxFuture, Principal, ToolCall};
use countersign_testkit::faulty::{FaultyStore, Op};
use jiff::Timestamp;
use serde_json::json;

use crate::world::{Probe, World, call, check_error};

/// B12: the whole record of a call.
#[tokio::test]
async fn a_call_leaves_one_record() {
    let world = World::new(Probe::read("sample.read"));
    let envelope = json!({"session_id": "s_1"});
    world
        .send("sample_read", &json!({"b": 1, "a": 2}), &envelope)
        .await;
    let digest = |text: &str| Digest::of_bytes(text.as_bytes()).to_string();
    assert_eq!(world.store.records().len(), 1);
    assert_eq!(
        world.record(),
        json!({
            "request_id": "req_1",
            "tool": "sample.read",
            "tool_version": "7",
            "actor": {"type": "user", "id": "u_1"},
            "user_id": "u_1",
            "session_id": "s_1",
            "policy_revision": "allow-all",
            "trace": {"trace_id": format!("{:032x}", 1), "span_id": format!("{:016x}", 1)},
            "at": "2026-11-15T12:00:00Z",
            "arguments_digest": digest(r#"{"a":2,"b":1}"#),
            "arguments_redacted": {"a": 2, "b": 1},
            "data_digest": digest(r#"{"run":1}"#),
            "binding": {"status": "exact"},
            "phases": {"queued_us": 0, "awaiting_approval_us": 0, "executing_us": 0,
                       "settling_us": 0},
        })
    );
    let request_id = world.store.records()[0].request_id.clone();
    assert_eq!(world.store.records_of(&request_id).len(), 1);
}

/// B7, B19: the binder's changes are in the reply, in the tool's context and, counted, in the record.
#[tokio::test]
async fn repairs_are_told_and_counted() {
    let limit = Parameter::new("limit", ValueKind::Integer, "").default_value(3);
    let tags = Parameter::new("tags", ValueKind::String, "").list();
    let probe = Probe::read("note.list")
        .input(Input::parameters([limit, tags]))
        .body(|ctx, arguments| {
            let codes: Vec<_> = ctx.issues().iter().map(|issue| issue.code).collect();
            let data = json!({"raw": ctx.raw_arguments(), "arguments": arguments, "codes": codes});
            Box::pin(async move { Ok(data.into()) })
        });
    let world = World::new(probe);
    let raw = r#"```json
{"limit": "5", "tags": "a",}
```"#;
    let call = ToolCall::new("note.list", raw, Principal::user("u_1"));
    let reply = world.execute(call).await;
    assert_eq!(reply["data"]["raw"], raw);
    assert_eq!(
        reply["data"]["arguments"],
        json!({"limit": 5, "tags": ["a"]})
    );
    let warned = reply["warnings"].as_array().unwrap();
    let warned: Vec<_> = warned.iter().map(|warning| &warning["code"]).collect();
    assert_eq!(json!(warned), reply["data"]["codes"]);
    let binding = &world.record()["binding"];
    assert_eq!(binding["status"], "repaired");
    assert_eq!(binding["issues"]["TEXT_TO_INTEGER"], 1);
    assert_eq!(binding["issues"].as_object().unwrap().len(), warned.len());

    // The repaired call is the same call as the exact one.
    let repaired = world.record()["arguments_digest"].clone();
    world
        .send("note.list", &json!({"tags": ["a"], "limit": 5}), &json!({}))
        .await;
    assert_eq!(world.record()["arguments_digest"], repaired);
    assert_eq!(world.record()["binding"], json!({"status": "exact"}));
}

/// Answers yes, after a while.
struct Slow(Arc<ManualClock>);

impl Approver for Slow {
    fn ask<'a>(&'a self, _: &'a Confirm) -> BoxFuture<'a, Result<Answer, Unavailable>> {
        self.0.advance(Duration::from_millis(40));
        Box::pin(async { Ok(Answer::Approved(Permit::used())) })
    }
}

/// B12: waiting for a person is not the tool's time.
#[tokio::test]
async fn phases_are_told_apart() {
    let clock = Arc::new(ManualClock::starting_at(Timestamp::UNIX_EPOCH));
    let [in_tool, in_approver] = [(); 2].map(|()| clock.clone());
    let probe = Probe::write("slow.tool").confirmed().body(move |_, _| {
        in_tool.advance(Duration::from_millis(7));
        Box::pin(async { Ok(json!(null).into()) })
    });
    let world = World::of([probe], |builder| {
        builder.clock(clock).approver(Arc::new(Slow(in_approver)))
    });
    world.send("slow.tool", &json!({}), &json!({})).await;
    assert_eq!(
        world.record()["phases"],
        json!({"queued_us": 0, "awaiting_approval_us": 40_000, "executing_us": 7_000,
               "settling_us": 0})
    );
}

/// A21: values that the declaration marks as sensitive are in no record; their digest is.
#[tokio::test]
async fn sensitive_arguments_are_redacted() {
    let street = Parameter::new("street", ValueKind::String, "").sensitivity(Sensitivity::Personal);
    let to = Parameter::new("to", ValueKind::Object, "")
        .fields(vec![street])
        .list();
    let pin = Parameter::new("pin", ValueKind::String, "").sensitivity(Sensitivity::Secret);
    let probe = Probe::write("parcel.send")
        .input(Input::parameters([to, pin]))
        .confirmed();
    let world = World::new(probe);
    let arguments = json!({"to": [{"street": "1 Main St"}], "pin": "0451"});
    world.send("parcel.send", &arguments, &json!({})).await;
    let hidden = json!({"to": [{"street": "[personal]"}], "pin": "[secret]"});
    assert_eq!(world.record()["arguments_redacted"], hidden);
    // Who has to decide sees what will be done; the agent that asks does not.
    let shown = json!({"to": [{"street": "1 Main St"}], "pin": "[secret]"});
    assert_eq!(world.asked().await[0].arguments, shown);
    let agent = Principal::new(
        Actor {
            kind: ActorType::Agent,
            id: "a_7".to_owned(),
        },
        "u_1",
    );
    let seen = world.approvals().show("ap_1", &agent).await.unwrap();
    assert_eq!(seen.arguments, hidden);
    let canonical = br#"{"pin":"0451","to":[{"street":"1 Main St"}]}"#;
    let digest = Digest::of_bytes(canonical).to_string();
    assert_eq!(world.record()["arguments_digest"], digest);
}

/// A store that hands out keys and keeps nothing.
fn broken() -> Arc<FaultyStore> {
    let plan = |op, _| -> BoxFuture<'static, bool> { Box::pin(async move { op != Op::Keys }) };
    Arc::new(FaultyStore::new(Arc::new(MemoryStore::new()), plan))
}

/// A call without its record is not answered, and a write without its claim does not run.
#[tokio::test]
async fn nothing_is_answered_that_is_not_recorded() {
    let probe = Probe::write("sample.write");
    let runs = probe.runs();
    let tools = [Probe::read("sample.read"), probe];
    let world = World::of(tools, |builder| builder.store(broken()));
    let reply = world.send("sample.read", &json!({}), &json!({})).await;
    check_error(&reply, "UPSTREAM_ERROR", &json!({"source": "gateway"}));
    assert!(!reply.to_string().contains("secret"));
    let reply = world
        .send("sample.write", &json!({}), &json!({"idempotency_key": "k"}))
        .await;
    check_error(&reply, "UPSTREAM_ERROR", &json!({"source": "gateway"}));
    runs.check(0);
}

#[tokio::test]
async fn the_memory_store_is_bounded() {
    let store = Arc::new(MemoryStore::new().keys_max(2).records_max(3));
    let kept = store.clone();
    let world = World::of([Probe::write("sample.write")], |builder| {
        builder.store(store)
    });
    for n in 1..=2 {
        let keyed = json!({ "idempotency_key": format!("k{n}") });
        assert_eq!(
            world.send("sample.write", &json!({}), &keyed).await["ok"],
            true
        );
    }
    let third = call(
        "sample.write",
        &json!({}),
        &json!({"idempotency_key": "k3"}),
    );
    check_error(
        &world.execute(third).await,
        "UPSTREAM_ERROR",
        &json!({"source": "gateway"}),
    );
    world
        .send(
            "sample.write",
            &json!({}),
            &json!({"idempotency_key": "k2"}),
        )
        .await;
    let ids: Vec<_> = kept
        .records()
        .iter()
        .map(|r| r.request_id.to_string())
        .collect();
    assert_eq!(ids, ["req_2", "req_3", "req_4"]);
}
