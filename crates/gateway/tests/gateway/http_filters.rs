//! Lists of calls: who called, how long it took, what was repeated or repaired, and finding calls by it.

use countersign::Principal;
use countersign::contract::{Actor, ActorType};
use serde_json::{Value, json};

use crate::http_client::{get, send};
use crate::world::World;

/// Adds a note; returns the id of its evidence.
async fn note(world: &World, body: &Value) -> String {
    let path = "/v1/tools/notes.add";
    let reply = send(world, "POST", path, &[], &body.to_string()).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let id = reply.json()["evidence"]["snapshot_id"].clone();
    id.as_str().unwrap().to_owned()
}

async fn calls(world: &World, query: &str) -> Vec<Value> {
    let answer = get(world, &format!("/v1/calls?limit=100&{query}")).await;
    assert_eq!(answer.status, 200, "{query}: {answer:?}");
    answer.json()["calls"].as_array().unwrap().clone()
}

/// Evidence of the calls that a query finds, newest first.
async fn found(world: &World, query: &str) -> Vec<String> {
    let calls = calls(world, query).await;
    let ids = calls.iter().map(|call| call["evidence"].as_str().unwrap());
    ids.map(str::to_owned).collect()
}

/// B17: a call of a list says who called, how long it took, and what became of its arguments and its key; each of these finds it.
#[tokio::test]
#[expect(
    clippy::too_many_lines,
    reason = "one day of calls, and every filter over it"
)]
async fn calls_are_found_by_what_their_records_say() {
    let world = World::start().await;
    let ann = world.beside(Principal::user("ann")).await;
    let shopper = Actor {
        kind: ActorType::Agent,
        id: "shopper".to_owned(),
    };
    let agent = world
        .beside(Principal::new(shopper.clone(), "ann").scope("tools:call"))
        .await;
    let backend = Actor {
        kind: ActorType::System,
        id: "backend".to_owned(),
    };
    let backend = world
        .beside(Principal::new(backend, "").acting_for_others())
        .await;
    let auditor = world
        .beside(Principal::user("auditor").scope("calls:read"))
        .await;
    let keyed = json!({"arguments": {"text": "tea"}, "idempotency_key": "k"});
    let plain = note(&ann, &keyed).await;
    // The reply of a repeat names the evidence of the first call; its own is only in the list.
    assert_eq!(note(&ann, &keyed).await, plain);
    let replayed = found(&ann, "").await.swap_remove(0);
    assert_ne!(replayed, plain);
    let repaired = note(
        &agent,
        &json!({"arguments": "{text: 'milk',}", "idempotency_key": "r"}),
    )
    .await;
    let helper = json!({"type": "agent", "id": "helper"});
    let dry =
        json!({"arguments": {"text": "bread"}, "user_id": "bob", "actor": helper, "dry_run": true});
    let dry = note(&backend, &dry).await;

    let listed = calls(&auditor, "").await;
    let of = |id: &str| -> &Value {
        let call = listed.iter().find(|call| call["evidence"] == id);
        call.unwrap_or_else(|| panic!("{id} in {listed:?}"))
    };
    for (id, manner, is_replayed, is_repaired) in [
        (&plain, "call", false, false),
        (&replayed, "replay", true, false),
        (&repaired, "call", false, true),
        (&dry, "dry_run", false, false),
    ] {
        let call = of(id);
        assert_eq!(call["manner"], manner, "{call}");
        assert_eq!(call["replayed"], is_replayed, "{call}");
        assert_eq!(call["repaired"], is_repaired, "{call}");
        assert!(call["took_us"].is_u64(), "{call}");
        assert_eq!(call["waited_us"], 0, "{call}");
    }
    // A person is a digest in the record; where it is the user's own, the list has the name.
    assert_eq!(of(&plain)["actor"], json!({"type": "user", "id": "ann"}));
    assert_eq!(
        of(&repaired)["actor"],
        json!({"type": "agent", "id": "shopper"})
    );
    assert_eq!(of(&dry)["principal"]["id"], "backend", "{}", of(&dry));

    assert_eq!(found(&auditor, "replayed=true").await, [&*replayed]);
    assert_eq!(found(&auditor, "repaired=true").await, [&*repaired]);
    assert_eq!(
        found(&auditor, "replayed=false&repaired=false").await,
        [&*dry, &*plain]
    );
    assert_eq!(found(&auditor, "actor=shopper").await, [&*repaired]);
    for name in ["backend", "helper"] {
        assert_eq!(found(&auditor, &format!("actor={name}")).await, [&*dry]);
    }
    assert_eq!(found(&auditor, "actor=ann").await, [&*replayed, &*plain]);
    assert_eq!(
        found(&auditor, "actor=shopper&replayed=true").await,
        [""; 0]
    );
    let slowest = listed.iter().filter_map(|call| call["took_us"].as_u64());
    let slowest_ms = slowest.max().unwrap() / 1_000;
    let slow = found(&auditor, &format!("slow_ms={slowest_ms}")).await;
    assert!(!slow.is_empty());
    let slower = format!("slow_ms={}", slowest_ms + 1);
    assert_eq!(found(&auditor, &slower).await, [""; 0]);
    // Filters widen nobody's sight.
    assert_eq!(found(&ann, "actor=backend").await, [""; 0]);
    for wrong in [
        "replayed=yes",
        "repaired=1",
        "slow_ms=long",
        "key=k&actor=x",
    ] {
        let answer = get(&auditor, &format!("/v1/calls?{wrong}")).await;
        assert_eq!(answer.code(), "INVALID_ARGUMENT", "{wrong}");
    }
}

/// A filter that only records can answer looks through a bounded number of them, says so, and goes on from there.
#[tokio::test]
async fn a_scan_is_bounded_and_says_so() {
    let world = World::start().await;
    let keyed = json!({"arguments": {"text": "tea"}, "idempotency_key": "k"});
    note(&world, &keyed).await;
    note(&world, &keyed).await;
    let replayed = found(&world, "").await.swap_remove(0);
    for number in 0..510 {
        let body = json!({"arguments": {"text": "n"}, "idempotency_key": format!("n{number}")});
        note(&world, &body).await;
    }
    let page = get(&world, "/v1/calls?replayed=true").await.json();
    assert_eq!(page["calls"], json!([]));
    assert_eq!(page["scan"]["records"], 500, "{page}");
    assert!(page["scan"]["back_to"].is_string(), "{page}");
    let next = page["next_cursor"].as_str().unwrap();
    let page = get(&world, &format!("/v1/calls?replayed=true&cursor={next}")).await;
    let page = page.json();
    assert_eq!(page["calls"][0]["evidence"], replayed.as_str(), "{page}");
    assert_eq!(
        (page["calls"].as_array().unwrap().len(), &page["scan"]),
        (1, &Value::Null)
    );
    assert_eq!(page["next_cursor"], Value::Null, "{page}");
    // A page that is full was not cut short.
    let page = get(&world, "/v1/calls?replayed=false&limit=3").await.json();
    assert_eq!(page["calls"].as_array().unwrap().len(), 3);
    assert_eq!(page["scan"], Value::Null, "{page}");
}
