//! Limits and budgets of a policy file, as a caller over HTTP sees them.

use std::sync::Arc;

use countersign::Catalog;
use countersign::sample::{AddNote, MemorySearch};
use countersign_evidence::seal::MasterKey;
use countersign_gateway::Settings;
use countersign_gateway::policy::{LivePolicy, Policy, Reloaded};
use countersign_store::postgres::{PostgresOptions, PostgresStore};
use countersign_testkit::postgres::shared_postgres;
use insta::assert_json_snapshot;
use serde_json::{Value, json};

use crate::parts::Parts;
use crate::world::World;

fn catalog() -> Catalog {
    Catalog::builder()
        .tool(MemorySearch::new(["buy milk"]))
        .tool(AddNote)
        .build()
        .unwrap()
}

async fn world(policy: &LivePolicy) -> World {
    World::made(Settings::default(), catalog(), |builder| {
        policy.controls().install(builder)
    })
    .await
}

/// Makes a call; returns status, `Retry-After` and body.
async fn call(world: &World, tool: &str, arguments: Value) -> (u16, Option<String>, Value) {
    let answer = reqwest::Client::new()
        .post(world.url(&format!("/v1/tools/{tool}")))
        .json(&json!({ "arguments": arguments }))
        .send()
        .await
        .unwrap();
    let retry_after = answer.headers().get("retry-after");
    let retry_after = retry_after.map(|value| value.to_str().unwrap().to_owned());
    (
        answer.status().as_u16(),
        retry_after,
        answer.json().await.unwrap(),
    )
}

#[tokio::test]
async fn a_limit_of_the_file_is_met_and_can_be_changed() {
    let parts = Parts::new();
    let recorder = parts.recorder();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy.toml");
    let limit = |calls| format!("[limits.tools.\"memory.*\"]\ncalls = {calls}\nper = \"366d\"");
    std::fs::write(&path, limit(1)).unwrap();
    let policy = LivePolicy::open(&path).unwrap();
    let world = world(&policy).await;
    let search = async || call(&world, "memory.search", json!({"query": "milk"})).await;
    assert_eq!(search().await.0, 200);
    let (status, retry_after, body) = search().await;
    assert_eq!((status, retry_after.is_some()), (429, true));
    assert_eq!(body["error"]["details"]["limit"], "tool");
    // Used calls stay used: half of two a year is one.
    std::fs::write(&path, limit(2)).unwrap();
    let reloaded = policy.reload(&recorder).await;
    assert!(matches!(reloaded, Reloaded::Accepted(_)), "{reloaded:?}");
    assert_eq!(search().await.0, 429);
    // In the store the count starts again, and it is kept there as well.
    for (calls, statuses) in [(1, [200, 429]), (2, [429, 429])] {
        std::fs::write(&path, format!("{}\nshared = true", limit(calls))).unwrap();
        policy.reload(&recorder).await;
        assert_eq!([search().await.0, search().await.0], statuses);
    }
    std::fs::write(&path, "revision = \"none\"").unwrap();
    policy.reload(&recorder).await;
    assert_eq!(search().await.0, 200);
}

#[tokio::test]
async fn a_model_that_repeats_itself_is_told_so() {
    let policy = Policy::parse("[breaker]\nidentical = 2\nper = \"10m\"").unwrap();
    let world = world(&LivePolicy::fixed(policy)).await;
    let search = async || call(&world, "memory.search", json!({"query": "milk"})).await;
    assert_eq!([search().await.0, search().await.0], [200, 200]);
    let (status, _, mut body) = search().await;
    assert_eq!(status, 429);
    let wait = body["error"]["details"]["retry_after_ms"].take();
    assert!((1..=600_000).contains(&wait.as_u64().unwrap()), "{wait}");
    assert_json_snapshot!(body["error"], @r#"
    {
      "code": "RATE_LIMITED",
      "details": {
        "hint": "stop repeating this call: use the answers that you have, change the arguments, or tell the user what you are stuck on",
        "limit": "identical_calls",
        "retry_after_ms": null,
        "retryable": true
      },
      "message": "the same call of memory.search was made 2 times within 600 seconds"
    }
    "#);
}

/// Two gateways on one database, each with its own connections: counts how many of many concurrent calls are
/// admitted.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_shared_holds_for_all_gateways_of_a_database() {
    let check = async |policy: &str, expected: usize| {
        let url = shared_postgres().fresh_database();
        let mut worlds = Vec::new();
        for _ in 0..2 {
            let options = PostgresOptions::new(&url).connections_max(6);
            let store = PostgresStore::open(options).await.unwrap();
            let policy = LivePolicy::fixed(Policy::parse(policy).unwrap());
            let world = World::made(Settings::default(), catalog(), |builder| {
                let builder = builder
                    .store(Arc::new(store))
                    .kms(Arc::new(MasterKey::from_bytes(&[7; 32])));
                policy.controls().install(builder)
            })
            .await;
            worlds.push(Arc::new(world));
        }
        let mut calls = tokio::task::JoinSet::new();
        for n in 0..24 {
            let world = worlds[n % 2].clone();
            calls.spawn(async move {
                let (status, _, body) =
                    call(&world, "memory.search", json!({"query": "milk"})).await;
                (status, body["error"]["code"].clone())
            });
        }
        let answers = calls.join_all().await;
        // Whatever the result of an admitted call, a refused one says so.
        let is_refused = |(status, code): &&(u16, Value)| *status == 429 && code == "RATE_LIMITED";
        let refused = answers.iter().filter(is_refused).count();
        assert_eq!(refused, 24 - expected, "{policy}: {answers:?}");
    };
    let user = "[limits.user]\ncalls = 5\nper = \"366d\"";
    check(user, 10).await;
    check(&format!("{user}\nshared = true"), 5).await;
    let tool = "[limits.tools.\"memory.*\"]\ncalls = 4\nper = \"366d\"\nshared = true";
    check(&format!("{user}\nshared = true\n{tool}"), 4).await;
    let breaker = "[breaker]\nidentical = 3\nper = \"366d\"";
    check(breaker, 6).await;
    check(&format!("{breaker}\nshared = true"), 3).await;
}

/// A budget that cannot read the amount refuses the call.
#[tokio::test]
async fn a_budget_of_the_file_is_counted() {
    let policy = r#"
        [[budgets]]
        name = "notes"
        scope = "user"
        limit = "10"
        currency = "EUR"
        [[budgets.tools]]
        match = "notes.add"
        amount = "/text"
    "#;
    let world = world(&LivePolicy::fixed(Policy::parse(policy).unwrap())).await;
    let add = async |text: &str| call(&world, "notes.add", json!({ "text": text })).await;
    assert_eq!(add("7.50").await.0, 200);
    let (status, retry_after, body) = add("2.51").await;
    assert_eq!((status, retry_after), (403, None));
    assert_json_snapshot!(body["error"], @r#"
    {
      "code": "FORBIDDEN",
      "details": {
        "budget": "notes",
        "hint": "spend less, or ask the user for a larger budget",
        "limit": "budget",
        "retryable": false
      },
      "message": "the budget notes has 2.50 EUR left, which is not enough"
    }
    "#);
    assert_eq!(add("2.50").await.0, 200);
    let (status, _, body) = add("free of charge").await;
    assert_eq!(
        (status, &body["error"]["details"]["field"]),
        (400, &json!("/text"))
    );
}
