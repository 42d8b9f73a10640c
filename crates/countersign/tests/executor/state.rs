//! The unit of work: a tool's state is committed with its call, as if the call had been alone.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use countersign::contract::Digest;
use countersign::ledger::{ClaimQuery, Claims, DocumentKey, Documents};
use countersign::state::{Collection, DOCUMENT_BYTES_MAX, ID_BYTES_MAX, WRITES_MAX};
use countersign::{CallContext, ToolError};
use serde_json::{Value, json};

use crate::world::{Probe, World, check_error};

const COUNTERS: Collection = Collection::of_user("counter");
const NOTES: Collection = Collection::of_user("note").indexed(&[("size", "/size")]);
const STOCK: Collection = Collection::shared("stock");

/// Reads, lets others run, and writes one more.
async fn add_one(ctx: &CallContext) -> Result<u64, ToolError> {
    let before = ctx.state().get::<u64>(&COUNTERS, "n").await?.unwrap_or(0);
    tokio::task::yield_now().await;
    ctx.state().put(&COUNTERS, "n", &(before + 1)).await?;
    Ok(before + 1)
}

fn adding() -> Probe {
    Probe::write("n.add").body(|ctx, _| Box::pin(async { Ok(json!(add_one(ctx).await?).into()) }))
}

fn getting() -> Probe {
    Probe::read("n.get").body(|ctx, _| {
        Box::pin(async { Ok(json!(ctx.state().get::<u64>(&COUNTERS, "n").await?).into()) })
    })
}

async fn count(world: &World) -> Value {
    world.send("n.get", &json!({}), &json!({})).await["data"].clone()
}

/// Ids of a tool's documents differ even if ids are counted, however many there are.
#[tokio::test]
async fn counted_names_differ() {
    let probe = Probe::read("n.names").body(|ctx, _| {
        Box::pin(async {
            let names: Vec<_> = (0..100).map(|_| ctx.new_id("n_")).collect();
            Ok(json!(names).into())
        })
    });
    let world = World::new(probe);
    let reply = world.send("n.names", &json!({}), &json!({})).await;
    let names = reply["data"].as_array().unwrap();
    let distinct: std::collections::HashSet<_> = names.iter().map(Value::to_string).collect();
    assert_eq!(distinct.len(), 100, "{names:#?}");
    assert!(names.iter().all(|name| name.as_str().unwrap().len() == 18));
}

/// No update is lost, in one process and in two.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_adds_of_one_make_twenty() {
    for processes in [1, 2] {
        let first = Arc::new(World::logging([adding(), getting()]));
        let second = Arc::new(first.replica([adding()]));
        let calls: Vec<_> = (0..20)
            .map(|call| {
                let world = if call % processes == 0 {
                    &first
                } else {
                    &second
                };
                let world = world.clone();
                tokio::spawn(async move { world.send("n.add", &json!({}), &json!({})).await })
            })
            .collect();
        let mut answers = Vec::new();
        for call in calls {
            let reply = call.await.unwrap();
            answers.push(
                reply["data"]
                    .as_u64()
                    .unwrap_or_else(|| panic!("{reply:#}")),
            );
        }
        answers.sort_unstable();
        assert_eq!(answers, (1..=20).collect::<Vec<_>>());
        assert_eq!(count(&first).await, 20);
    }
}

/// A tool whose state is changed by another call, in its first `times` runs.
fn moved(times: u32) -> (World, crate::world::Runs) {
    let other = Arc::new(OnceLock::<World>::new());
    let meddler = other.clone();
    let run = AtomicU32::new(0);
    let probe = Probe::write("n.slow").body(move |ctx, _| {
        let is_moved = run.fetch_add(1, Ordering::SeqCst) < times;
        let meddler = meddler.clone();
        Box::pin(async move {
            let sum = add_one(ctx).await?;
            ctx.remark("RUN", "once");
            if is_moved {
                let world = meddler.get().unwrap();
                world.send("n.add", &json!({}), &json!({})).await;
            }
            Ok(json!(sum).into())
        })
    });
    let runs = probe.runs();
    let world = World::logging([probe, getting()]);
    assert!(other.set(world.replica([adding()])).is_ok());
    (world, runs)
}

/// A document that was read has changed: the tool runs again with the new one, and only that run counts.
#[tokio::test]
async fn a_call_whose_state_moved_runs_again() {
    let (world, runs) = moved(2);
    let reply = world
        .send("n.slow", &json!({}), &json!({"idempotency_key": "k1"}))
        .await;
    assert_eq!(reply["data"], 3);
    assert_eq!(
        reply["warnings"],
        json!([{"code": "RUN", "message": "once"}])
    );
    assert_eq!(count(&world).await, 3);
    runs.check(3);
    let log = world.log().await;
    let own = log
        .iter()
        .filter(|(leaf, _)| leaf["tool"]["name"] == "n.slow");
    assert_eq!(own.count(), 1, "one call, one record");
}

/// It does not run for ever, it leaves nothing behind, and the key is free for the retry.
#[tokio::test]
async fn a_call_whose_state_keeps_moving_conflicts() {
    let (world, runs) = moved(33);
    let key = json!({"idempotency_key": "k1"});
    let reply = world.send("n.slow", &json!({}), &key).await;
    check_error(
        &reply,
        "CONFLICT",
        &json!({"reason": "version", "retryable": true}),
    );
    runs.check(33);
    assert_eq!(count(&world).await, 33, "all of them somebody else's");
    let record = world
        .log()
        .await
        .into_iter()
        .find(|(leaf, _)| leaf["tool"]["name"] == "n.slow");
    let (record, _) = record.unwrap();
    assert_eq!(
        (
            &record["kind"],
            &record["idempotency"]["state"],
            &record["reply"]["commitment"]
        ),
        (&json!("call"), &json!("refused"), &Value::Null)
    );
    assert_eq!(world.send("n.slow", &json!({}), &key).await["data"], 34);
}

/// A4: a dry run that simulates shows the digest of its result, and leaves nothing but its record.
#[tokio::test]
async fn a_dry_run_leaves_nothing_but_its_record() {
    let world = World::logging([adding().simulating(), getting()]);
    world
        .send("n.add", &json!({}), &json!({"idempotency_key": "k0"}))
        .await;
    let claims = ClaimQuery {
        limit: 10,
        ..ClaimQuery::default()
    };
    let before = world.store.claims(&claims).await.unwrap();
    let dry = json!({"dry_run": true, "idempotency_key": "k1"});
    let reply = world.send("n.add", &json!({}), &dry).await;
    assert_eq!(reply["data"], 2);
    let digest = Digest::of_canonical(&json!(2)).unwrap().to_string();
    assert_eq!(reply["evidence"]["sources"][0]["hash"], digest);
    assert_eq!(world.store.claims(&claims).await.unwrap(), before);
    assert_eq!(count(&world).await, 1);
    let log = world.log().await;
    assert_eq!(log.len(), 3, "two adds and the count");
    assert_eq!(
        (&log[1].0["dry_run"], &log[1].0["idempotency"]),
        (&json!(true), &Value::Null)
    );
}

/// A call sees its own writes: in gets, scans and indexes; a deleted document is gone.
#[tokio::test]
async fn a_call_sees_its_own_writes() {
    let probe = Probe::write("notes.edit").body(|ctx, _| {
        Box::pin(async {
            let state = ctx.state();
            for (id, size) in [("a", json!(1)), ("b", json!(2)), ("c", json!(1.0))] {
                state.put(&NOTES, id, &json!({ "size": size })).await?;
            }
            state.delete(&NOTES, "b").await?;
            let ids = |found: Vec<(String, Value)>| -> Vec<_> {
                found.into_iter().map(|(id, _)| id).collect()
            };
            Ok(json!({
                "get": state.get::<Value>(&NOTES, "a").await?,
                "gone": state.get::<Value>(&NOTES, "b").await?,
                "scan": ids(state.scan(&NOTES, "", 10).await?),
                "first": ids(state.scan(&NOTES, "", 1).await?),
                "prefix": ids(state.scan(&NOTES, "c", 10).await?),
                "find": ids(state.find(&NOTES, "size", 1, 10).await?),
                "none": ids(state.find(&NOTES, "size", 2, 10).await?),
            })
            .into())
        })
    });
    let world = World::logging([probe]);
    // The second call finds what the first has committed, and says the same.
    for _ in 0..2 {
        let reply = world.send("notes.edit", &json!({}), &json!({})).await;
        let expected = json!({
            "get": {"size": 1}, "gone": null, "scan": ["a", "c"], "first": ["a"], "prefix": ["c"],
            "find": ["a", "c"], "none": [],
        });
        assert_eq!(reply["data"], expected, "{reply:#}");
    }
}

/// A document that appears in a scanned collection moves it: the limit of one holds.
#[tokio::test]
async fn a_phantom_makes_a_call_run_again() {
    let insert = || {
        Probe::write("notes.one").body(|ctx, _| {
            Box::pin(async {
                let notes = ctx.state().scan::<Value>(&NOTES, "", 10).await?;
                tokio::task::yield_now().await;
                if !notes.is_empty() {
                    return Ok(json!("full").into());
                }
                let id = ctx.request_id().as_str();
                ctx.state().put(&NOTES, id, &json!({})).await?;
                Ok(json!("made").into())
            })
        })
    };
    let world = World::logging([insert()]);
    let other = world.replica([insert()]);
    let (empty, first) = (json!({}), json!({}));
    let (one, two) = tokio::join!(
        world.send("notes.one", &empty, &first),
        other.send("notes.one", &empty, &first)
    );
    let mut answers = [one["data"].to_string(), two["data"].to_string()];
    answers.sort();
    assert_eq!(answers, ["\"full\"", "\"made\""]);
}

/// Forbidden uses of the state fail, and are not worth a retry.
#[tokio::test]
async fn state_has_limits() {
    let long = "x".repeat(ID_BYTES_MAX + 1);
    let large = "x".repeat(DOCUMENT_BYTES_MAX);
    let tool = |name: &str| Probe::write(name);
    let write = |probe: Probe, id: String, value: Value| {
        probe.body(move |ctx, _| {
            let (id, value) = (id.clone(), value.clone());
            Box::pin(async move {
                ctx.state().put(&COUNTERS, &id, &value).await?;
                Ok(Value::Null.into())
            })
        })
    };
    let probes = [
        write(Probe::read("a.read"), "n".to_owned(), json!(1)),
        write(tool("b.long"), long, json!(1)),
        write(tool("c.empty"), String::new(), json!(1)),
        write(tool("d.large"), "n".to_owned(), json!(large)),
        tool("e.many").body(|ctx, _| {
            Box::pin(async {
                for n in 0..=WRITES_MAX {
                    ctx.state().put(&COUNTERS, &format!("n{n}"), &n).await?;
                }
                Ok(Value::Null.into())
            })
        }),
        tool("f.scan").body(|ctx, _| {
            Box::pin(async {
                let found = ctx.state().scan::<Value>(&COUNTERS, "", 1).await?;
                Ok(json!(found.len()).into())
            })
        }),
        tool("g.find").body(|ctx, _| {
            Box::pin(async {
                let found = ctx.state().find::<Value>(&NOTES, "colour", 1, 1).await?;
                Ok(json!(found.len()).into())
            })
        }),
    ];
    let world = World::logging(probes);
    for tool in [
        "a.read", "b.long", "c.empty", "d.large", "e.many", "f.scan", "g.find",
    ] {
        let reply = world.send(tool, &json!({}), &json!({})).await;
        let details = json!({"source": "tool", "retryable": false});
        check_error(&reply, "UPSTREAM_ERROR", &details);
    }
    let key = DocumentKey {
        user_id: "u_1".to_owned(),
        collection: "counter".to_owned(),
        id: "n".to_owned(),
    };
    assert_eq!(world.store.document(&key).await.unwrap().version, 0);
}

/// A22: the store holds bodies that it cannot read; another user's are not found at all, shared ones are.
#[tokio::test]
async fn documents_are_sealed_and_of_one_user() {
    let put = Probe::write("a.put").body(|ctx, _| {
        Box::pin(async {
            ctx.state()
                .put(&NOTES, "n_1", &json!({"size": "plaintext"}))
                .await?;
            ctx.state().put(&STOCK, "s_1", &json!("plaintext")).await?;
            Ok(Value::Null.into())
        })
    });
    let get = Probe::read("b.get").body(|ctx, _| {
        Box::pin(async {
            let own = ctx.state().get::<Value>(&NOTES, "n_1").await?;
            let shared = ctx.state().get::<Value>(&STOCK, "s_1").await?;
            Ok(json!([own, shared]).into())
        })
    });
    let world = World::logging([put, get]);
    world.send("a.put", &json!({}), &json!({})).await;
    for (user_id, collection, id) in [("u_1", "note", "n_1"), ("", "stock", "s_1")] {
        let key = DocumentKey {
            user_id: user_id.to_owned(),
            collection: collection.to_owned(),
            id: id.to_owned(),
        };
        let body = world.store.document(&key).await.unwrap().body.unwrap();
        assert!(!String::from_utf8_lossy(&body).contains("plain"), "{key:?}");
    }
    for (user, own) in [("u_1", json!({"size": "plaintext"})), ("u_2", Value::Null)] {
        let user = countersign::Principal::user(user);
        let call = crate::world::call_as(user, "b.get", &json!({}), &json!({}));
        assert_eq!(world.execute(call).await["data"], json!([own, "plaintext"]));
    }
}
