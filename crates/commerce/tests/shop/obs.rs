//! Events of an agent: evidence without personal data.

use std::sync::Arc;

use countersign::ledger::{Log, MemoryStore};
use serde_json::{Value, json};

use crate::world::{World, check_error, clock, evidence, ok};

const TOOL: &str = "obs.log_event";

#[tokio::test]
async fn the_record_of_the_call_is_the_event() {
    let world = World::new();
    let attributes = json!({"query_words": 3, "results": 0, "locale": "zh-CN"});
    let arguments = json!({"name": "search.no_match", "level": "WARN", "attributes": attributes});
    let reply = world.call(TOOL, arguments).await;
    insta::assert_json_snapshot!(reply, @r#"
    {
      "data": {
        "at": "2026-11-16T12:00:00Z",
        "attributes": {
          "locale": "zh-CN",
          "query_words": 3,
          "results": 0
        },
        "level": "warning",
        "name": "search.no_match"
      },
      "evidence": {
        "snapshot_id": "ev_1",
        "sources": [
          {
            "hash": "sha256:b599a088628b00ecb46f6fae7d98344aed0e18d575656bef06dd569cd29ee1d0",
            "name": "obs.log_event",
            "ts": "2026-11-16T12:00:00Z",
            "type": "tool"
          }
        ]
      },
      "ok": true,
      "request_id": "req_1",
      "warnings": [
        {
          "after": "warning",
          "before": "\"WARN\"",
          "code": "ENUM_ALIAS",
          "expected": "one of \"debug\", \"info\", \"warning\", \"error\"",
          "message": "an alias of a value was replaced by the value",
          "path": "/level",
          "severity": "normalised",
          "span": [
            69,
            75
          ]
        }
      ]
    }
    "#);
}

/// A21: everything that looks personal is replaced in the answer; the record has no text of the event, and only the
/// owner of the key can read it.
#[tokio::test]
async fn nothing_personal_is_kept_in_the_clear() {
    let clock = clock();
    let store = Arc::new(MemoryStore::with_clock(clock.clone()).keeping_log());
    let world = World::on(store.clone(), clock, |builder| builder);
    let arguments = json!({"name": "user.contact", "attributes": {
        "said": "write to li@example.com or call 138 1234 5678",
        "card": "4111 1111 1111 1111",
        "order": "ORD-10023",
    }});
    let reply = world.call(TOOL, arguments).await;
    let event = ok(&reply);
    let expected = json!({
        "said": "write to [email] or call [phone]",
        "card": "[card]",
        "order": "ORD-10023",
    });
    assert_eq!(event["attributes"], expected);
    assert_eq!(event["redacted"], json!(["card", "said"]));
    assert_eq!(reply["warnings"][0]["code"], "PERSONAL_DATA_REPLACED");
    let id = evidence(&reply).parse().unwrap();
    let stored = store.record(&id).await.unwrap().unwrap();
    let record: Value = serde_json::from_slice(&stored.leaf).unwrap();
    // The record goes further than the answer: it has no free text at all.
    let commitments: Vec<&String> = record["arguments"].as_object().unwrap().keys().collect();
    assert_eq!(commitments, ["commitment"]);
    let whole = format!("{stored:?}");
    assert!(!whole.contains("li@example.com"), "{whole}");
}

#[tokio::test]
async fn what_is_no_event_is_refused() {
    async fn check(arguments: Value, field: &str) {
        let reply = World::new().call(TOOL, arguments).await;
        check_error(&reply, "INVALID_ARGUMENT", &json!({"field": field}));
        let text = reply.to_string();
        assert!(!text.contains("li@example.com"), "{text}");
    }
    check(json!({"name": "Search failed"}), "/name").await;
    check(json!({"name": "a.b.c.d.e.f"}), "/name").await;
    check(json!({"name": "a", "level": "fatal"}), "/level").await;
    let nested = json!({"name": "a", "attributes": {"user": {"mail": "li@example.com"}}});
    check(nested, "/attributes/user").await;
    let named = json!({"name": "a", "attributes": {"li@example.com": 1}});
    check(named, "/attributes").await;
    let long = json!({"name": "a", "attributes": {"text": "x".repeat(257)}});
    check(long, "/attributes/text").await;
    let mut many = json!({"name": "a", "attributes": {}});
    for at in 0..21 {
        many["attributes"][format!("a{at}")] = json!(at);
    }
    check(many, "/attributes").await;
}

/// The reply to an agent in a loop says when to come back; another user does not have to wait.
#[tokio::test]
async fn the_pace_is_bounded() {
    let world = World::new();
    let event = |at: u32| json!({"name": "loop", "attributes": {"at": at}});
    for at in 0..120 {
        ok(&world.call(TOOL, event(at)).await);
    }
    world.advance_seconds(20);
    let reply = world.call(TOOL, event(120)).await;
    check_error(&reply, "RATE_LIMITED", &json!({"retry_after_ms": 40_000}));
    ok(&world.call_as("u_2", TOOL, event(0), json!({})).await);
    world.advance_seconds(40);
    ok(&world.call(TOOL, event(120)).await);
}

/// A4, A18: the same key is the same event, and a dry run does not count.
#[tokio::test]
async fn repeats_and_dry_runs_are_no_new_events() {
    let world = World::new();
    let arguments = json!({"name": "once"});
    let key = json!({"idempotency_key": "k1"});
    let first = world
        .call_as("u_1", TOOL, arguments.clone(), key.clone())
        .await;
    world.advance_seconds(1);
    let second = world.call_as("u_1", TOOL, arguments.clone(), key).await;
    assert_eq!(ok(&first), ok(&second));
    for _ in 0..121 {
        let dry = json!({"dry_run": true});
        ok(&world.call_as("u_1", TOOL, arguments.clone(), dry).await);
    }
    ok(&world.call(TOOL, arguments).await);
}
