//! Failures of another gateway for the same standard, which do not occur here: those that need no shop. Each
//! was measured there; the comment says what that gateway did.

use countersign::sample::ClearNotes;
use countersign::tool;
use serde_json::{Value, json};

use crate::http_client::{Answer, get, post, send};
use crate::world::World;

const ADD: &str = "/v1/tools/notes.add";

/// Starts a gateway with a tool that a user has to confirm.
async fn with_confirmation() -> World {
    let world = World::start().await;
    let clear = tool::erase(ClearNotes).unwrap();
    world.gateway.executor().catalog().add(clear).unwrap();
    world
}

async fn add(world: &World, user: &str, key: &str, text: &str) -> Answer {
    let body = json!({
        "user_id": user,
        "idempotency_key": key,
        "arguments": { "text": text },
    });
    post(world, ADD, &body.to_string()).await
}

async fn notes(world: &World, user: &str) -> Vec<Value> {
    let body = json!({ "user_id": user, "arguments": {} });
    let answer = post(world, "/v1/tools/notes.list", &body.to_string()).await;
    answer.json()["data"].as_array().unwrap().clone()
}

/// A18: the same key twice made two carts. A17: another user with the same key received the first user's
/// order.
#[tokio::test]
async fn a_key_makes_one_thing_and_belongs_to_one_user() {
    let world = World::start().await;
    let first = add(&world, "u_1", "k", "tea").await.json();
    let again = add(&world, "u_1", "k", "tea").await.json();
    assert_eq!(first["data"], again["data"]);
    assert_eq!(notes(&world, "u_1").await.len(), 1);
    let other = add(&world, "u_2", "k", "milk").await.json();
    assert_eq!(other["data"]["text"], "milk");
    assert!(other["replayed"].is_null());
    assert_eq!(notes(&world, "u_2").await.len(), 1);
}

/// A19: ten parallel orders with one key gave five times 500, once 404 and four times 200.
#[tokio::test]
async fn parallel_calls_with_one_key_have_one_effect() {
    let world = World::start().await;
    let calls = (0..10).map(|_| add(&world, "u_1", "k", "tea"));
    let answers = futures_util::future::join_all(calls).await;
    for answer in &answers {
        let reply = answer.json();
        let is_same = reply["ok"] == true && reply["data"]["text"] == "tea";
        let is_told = reply["error"]["details"]["reason"] == "in_flight";
        assert!(is_same || is_told, "{answer:?}");
    }
    assert_eq!(notes(&world, "u_1").await.len(), 1);
}

/// Twenty parallel adds of one left a quantity of five.
#[tokio::test]
async fn parallel_writes_are_all_there() {
    let world = World::start().await;
    let keys: Vec<String> = (0..20).map(|number| format!("k_{number}")).collect();
    let calls = keys.iter().map(|key| add(&world, "u_1", key, key));
    let answers = futures_util::future::join_all(calls).await;
    assert!(answers.iter().all(|answer| answer.status == 200));
    assert_eq!(notes(&world, "u_1").await.len(), 20);
}

/// A4: a dry run changed the cart and created an order.
#[tokio::test]
async fn a_dry_run_changes_nothing() {
    let world = World::start().await;
    let body = json!({ "user_id": "u_1", "dry_run": true, "arguments": { "text": "tea" } });
    let reply = post(&world, ADD, &body.to_string()).await.json();
    assert_eq!(
        (&reply["ok"], &reply["dry_run"]),
        (&json!(true), &json!(true))
    );
    assert!(notes(&world, "u_1").await.is_empty());
}

/// A quantity of `"2"` added to 3 became `"32"`; one of −5 gave a quote of −99.95.
#[tokio::test]
async fn a_number_is_a_number_and_in_its_range() {
    let world = World::start().await;
    let path = "/v1/tools/memory.search";
    let body = r#"{"arguments": {"query": "milk", "limit": "2"}}"#;
    let reply = post(&world, path, body).await.json();
    assert_eq!(reply["warnings"][0]["after"], 2, "{reply}");
    for limit in ["-5", "\"-5\"", "1e400"] {
        let body = format!(r#"{{"arguments": {{"query": "milk", "limit": {limit}}}}}"#);
        let answer = post(&world, path, &body).await;
        assert_eq!(answer.code(), "INVALID_ARGUMENT", "{limit}");
        assert_eq!(answer.json()["error"]["details"]["field"], "/limit");
    }
}

/// A10: its own client sent `idempotency_key: null` and was refused, an error was called `EXPIRED`, and
/// `NEEDS_USER_CONFIRMATION` was HTTP 400.
#[tokio::test]
async fn null_is_none_and_codes_are_the_closed_ones() {
    let world = with_confirmation().await;
    let body = r#"{"idempotency_key": null, "session_id": null, "arguments": {"text": "tea"}}"#;
    assert_eq!(post(&world, ADD, body).await.status, 200);
    let unconfirmed = post(&world, "/v1/tools/notes.clear", "{}").await;
    assert_eq!(
        (unconfirmed.status, unconfirmed.code().as_str()),
        (428, "NEEDS_USER_CONFIRMATION")
    );
}

/// Zero rows of audit after all calls.
#[tokio::test]
async fn every_call_is_in_the_audit_whatever_became_of_it() {
    let world = with_confirmation().await;
    add(&world, "u_1", "k", "tea").await;
    add(&world, "u_1", "k", "milk").await;
    post(&world, "/v1/tools/notes.clear", r#"{"user_id": "u_1"}"#).await;
    let listed = get(&world, "/v1/calls?user=u_1").await.json();
    let codes = listed["calls"].as_array().unwrap().iter();
    let mut codes: Vec<_> = codes.map(|call| call["code"].clone()).collect();
    codes.sort_by_key(ToString::to_string);
    assert_eq!(codes, ["CONFLICT", "NEEDS_USER_CONFIRMATION", "OK"]);
    // By the caller's own request id (A2).
    let headers = [("x-request-id", "r_7")];
    send(
        &world,
        "POST",
        ADD,
        &headers,
        r#"{"arguments": {"text": "x"}}"#,
    )
    .await;
    assert_eq!(get(&world, "/v1/calls/r_7").await.status, 200);
}
