//! Refusals that repeat themselves: the first has a record, the others are counted (U9).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use countersign::authorize::Rules;
use countersign::clock::Clock as _;
use countersign::contract::evidence::Retention;
use countersign::contract::{Actor, ActorType, RecordKind, SnapshotId};
use countersign::ledger::{Keyring as _, Log as _};
use countersign::limit::{Breaker, LimitRules, Limits, Rate, Repeats};
use countersign::scribe::Act;
use countersign::{Principal, ToolCall};
use countersign_testkit::faulty::{FaultyStore, Op, When};
use serde_json::{Value, json};

use crate::world::{Probe, World, call, call_as};

/// One call a minute for each user.
fn limited() -> World {
    World::logging_with([Probe::read("sample.read")], |builder| {
        builder.limiter(one_a_minute())
    })
}

fn one_a_minute() -> Arc<Limits> {
    Arc::new(Limits::new(LimitRules {
        user: vec![Rate::new(1, Duration::from_hours(1)).into()],
        ..LimitRules::default()
    }))
}

async fn send(world: &World, calls: usize, call: impl Fn() -> ToolCall) -> Vec<Value> {
    let mut replies = Vec::new();
    for _ in 0..calls {
        replies.push(world.execute(call()).await);
    }
    replies
}

fn read() -> ToolCall {
    call("sample.read", &json!({}), &json!({}))
}

/// The kind, the code and the act of each record of a log.
async fn said(world: &World) -> Value {
    let log = world.log().await;
    let said = log
        .iter()
        .map(|(leaf, _)| json!([leaf["kind"], leaf["reply"]["code"], leaf["act"]]));
    said.collect()
}

/// U9: any number of refusals of one kind is two records an interval.
#[tokio::test]
async fn a_flood_of_rate_limited_calls_is_two_records() {
    let world = limited();
    let replies = send(&world, 2_000, read).await;
    // The call that was admitted and the first refusal name their records; the others name none.
    for reply in &replies[..2] {
        assert!(reply["evidence"]["snapshot_id"].is_string(), "{reply:#}");
    }
    for reply in &replies[2..] {
        assert_eq!(reply["error"]["code"], "RATE_LIMITED");
        assert_eq!(reply.get("evidence"), None);
    }
    assert_eq!(world.log().await.len(), 2);
    world.executor.write_counted_refusals().await;
    world.executor.write_counted_refusals().await;
    assert_eq!(
        said(&world).await,
        json!([
            ["call", null, null],
            ["denial", "RATE_LIMITED", {"limit": "user"}],
            ["denial", "RATE_LIMITED", {
                "event": "refusals_counted",
                "count": 1_998,
                "reason": "user",
                "first_at": "2026-11-15T12:00:00Z",
                "last_at": "2026-11-15T12:00:00Z",
                "first": replies[1]["evidence"]["snapshot_id"],
            }],
        ])
    );
}

/// The whole record: it names people by digests only, and has no payload.
#[tokio::test]
async fn a_record_of_counts_names_its_caller_as_every_record_does() {
    let world = limited();
    send(&world, 4, read).await;
    world.executor.write_counted_refusals().await;
    let log = world.log().await;
    let (alone, stored) = (&log[1].0, &log[2].1);
    let mut counted = log[2].0.clone();
    assert_eq!(
        (&counted["subject"], &counted["actor"]),
        (&alone["subject"], &alone["actor"])
    );
    assert_eq!(
        (stored.payload.as_ref(), &stored.row.request_id),
        (None, &None)
    );
    assert_eq!(stored.row.user_id, "u_1");
    counted
        .as_object_mut()
        .unwrap()
        .retain(|name, _| !["subject", "actor", "act"].contains(&name.as_str()));
    assert_eq!(
        counted,
        json!({
            "v": 2,
            "kind": "denial",
            "id": stored.row.id,
            "at": "2026-11-15T12:00:00Z",
            "tool": {"name": "sample.read", "version": "7"},
            "reply": {"code": "RATE_LIMITED"},
            "retention": "short",
        })
    );
}

/// The next interval begins with a record of its own, and writes the counts of the one before.
#[tokio::test]
async fn each_interval_has_its_own_records() {
    let world = limited();
    send(&world, 5, read).await;
    world.advance_seconds(59);
    send(&world, 1, read).await;
    assert_eq!(world.log().await.len(), 2);
    world.advance_seconds(1);
    let next = send(&world, 3, read).await;
    assert!(next[0]["evidence"]["snapshot_id"].is_string());
    world.executor.write_counted_refusals().await;
    let said = said(&world).await;
    let counts: Vec<_> = said
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it[2]["count"])
        .collect();
    assert_eq!(json!(counts), json!([null, null, 4, null, 2]));
    assert_eq!(said[2][2]["last_at"], "2026-11-15T12:00:59Z");
}

/// Another caller, another tool, another reason, a dry run: each has a first record.
#[tokio::test]
async fn what_differs_is_not_counted_together() {
    let world = World::logging_with(
        [Probe::read("sample.read"), Probe::read("sample.other")],
        |builder| builder.limiter(one_a_minute()),
    );
    send(&world, 1, read).await;
    let agent = Actor {
        kind: ActorType::Agent,
        id: "a_1".to_owned(),
    };
    let kinds: [&dyn Fn() -> ToolCall; 6] = [
        &read,
        &|| call("sample.other", &json!({}), &json!({})),
        &|| call("sample.read", &json!({}), &json!({"dry_run": true})),
        &|| call("sample.raed", &json!({}), &json!({})),
        &|| call("sample.read", &json!({}), &json!({"locale": "?"})),
        &|| {
            let agent = Principal::new(agent.clone(), "u_1");
            call_as(agent, "sample.read", &json!({}), &json!({}))
        },
    ];
    for kind in kinds {
        let replies = send(&world, 3, kind).await;
        let has_record = |reply: &Value| reply.get("evidence").is_some();
        let recorded: Vec<_> = replies.iter().map(has_record).collect();
        assert_eq!(recorded, [true, false, false], "{:#}", replies[0]);
    }
    world.executor.write_counted_refusals().await;
    assert_eq!(world.log().await.len(), 1 + 6 * 2);
}

/// U9: refusals of the policy are counted like those of a limit, and so are those of the breaker.
#[tokio::test]
async fn refusals_of_the_policy_and_of_the_breaker_are_counted() {
    let forbidding = World::logging_with([Probe::read("sample.read")], |builder| {
        builder.authorizer(Arc::new(Rules::new("closed")))
    });
    let breaker = Breaker::default();
    breaker.replace(Some(Repeats {
        calls_max: 1,
        within: Duration::from_hours(1),
        except: Vec::new(),
        is_shared: false,
    }));
    let repeating = World::logging_with([Probe::read("sample.read")], |builder| {
        builder.breaker(Arc::new(breaker))
    });
    for (world, code, first) in [(forbidding, "FORBIDDEN", 0), (repeating, "RATE_LIMITED", 1)] {
        let replies = send(&world, 50, read).await;
        assert_eq!(replies[49]["error"]["code"], code, "{:#}", replies[49]);
        world.executor.write_counted_refusals().await;
        let said = said(&world).await;
        assert_eq!(said.as_array().unwrap().len(), first + 2, "{said:#}");
        assert_eq!(said[first + 1][2]["count"], 49 - first, "{said:#}");
    }
}

/// Refusals after the limits come no more often than the limits allow, so each has its record: an auditor finds by its
/// id what was sent.
#[tokio::test]
async fn what_the_limits_let_through_has_a_record_each() {
    let probe = Probe::write("sample.write").confirmed();
    let world = World::logging([probe, Probe::read("sample.read")]);
    let unreadable = || ToolCall::new("sample.read", "{", Principal::user("u_1"));
    let asked = || call("sample.write", &json!({}), &json!({"idempotency_key": "k"}));
    for (reply, code) in [
        (send(&world, 5, unreadable).await, "INVALID_ARGUMENT"),
        (send(&world, 5, asked).await, "NEEDS_USER_CONFIRMATION"),
    ] {
        for reply in reply {
            assert_eq!(reply["error"]["code"], code);
            assert!(reply["evidence"]["snapshot_id"].is_string(), "{reply:#}");
        }
    }
}

/// A store that takes no records for a while: nothing claims a record, and nothing that was counted is forgotten.
#[tokio::test]
async fn counts_outlast_a_store_that_is_full() {
    let is_full = Arc::new(AtomicBool::new(false));
    let full = is_full.clone();
    let world = World::made(
        [Probe::read("sample.read")],
        countersign::ledger::MemoryStore::keeping_log,
        |builder, store| {
            let plan = move |op, when| -> countersign::BoxFuture<'static, bool> {
                let fails = op == Op::Append && when == When::Before && full.load(Ordering::SeqCst);
                Box::pin(std::future::ready(fails))
            };
            builder
                .limiter(one_a_minute())
                .store(Arc::new(FaultyStore::new(store, plan)))
        },
    );
    send(&world, 1, read).await;
    is_full.store(true, Ordering::SeqCst);
    for reply in send(&world, 10, read).await {
        assert_eq!(reply["error"]["code"], "RATE_LIMITED");
        assert_eq!(reply.get("evidence"), None);
    }
    world.executor.write_counted_refusals().await;
    assert_eq!(world.log().await.len(), 1);
    is_full.store(false, Ordering::SeqCst);
    world.executor.write_counted_refusals().await;
    let said = said(&world).await;
    assert_eq!(said[1][2]["count"], 10);
    assert_eq!(said[1][2].get("first"), None);
}

/// U9: new callers do not fill the memory: the oldest counts are written.
#[tokio::test]
async fn no_more_kinds_are_counted_than_there_is_room_for() {
    let world = World::logging_with([Probe::read("sample.read")], |builder| {
        builder.authorizer(Arc::new(Rules::new("closed")))
    });
    let of = |user: usize| {
        let user = Principal::user(format!("u_{user}"));
        call_as(user, "sample.read", &json!({}), &json!({}))
    };
    for user in 0..4_097 {
        world.executor.execute(of(user)).await;
        world.executor.execute(of(user)).await;
        world.clock.advance(Duration::from_millis(1));
    }
    // The one that had to go was written; the others are still counted.
    let counted = world
        .log()
        .await
        .iter()
        .filter(|(leaf, _)| leaf["act"]["count"] == 1)
        .count();
    assert_eq!(counted, 1);
    world.executor.write_counted_refusals().await;
    assert_eq!(world.log().await.len(), 2 * 4_097);
}

/// A user who was erased gets no new key because of earlier counts.
#[tokio::test]
async fn counts_of_an_erased_user_name_nobody() {
    let world = limited();
    send(&world, 3, read).await;
    let erasure = Act {
        kind: RecordKind::Erasure,
        at: world.clock.now(),
        user_id: String::new(),
        actor: None,
        about: Value::Null,
        retention: Retention::Short,
    };
    let erasure = erasure.entry(SnapshotId::new("ev_erasure").unwrap(), None);
    world.store.erase("u_1", &[], erasure).await.unwrap();
    world.executor.write_counted_refusals().await;
    let log = world.log().await;
    let (leaf, stored) = log
        .iter()
        .find(|(leaf, _)| leaf["act"]["event"] == "refusals_counted")
        .unwrap();
    assert_eq!((leaf.get("subject"), leaf.get("actor")), (None, None));
    assert_eq!(stored.row.user_id, "");
    assert_eq!(world.store.user_key("u_1").await.unwrap(), None);
}
