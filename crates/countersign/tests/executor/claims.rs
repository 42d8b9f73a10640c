//! Many callers of one key, lost answers, and the replies to repeats (A5, A17 to A19).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use countersign::contract::{Effect, ErrorCode};
use countersign::ledger::MemoryStore;
use countersign::state::Collection;
use countersign::{BoxFuture, Principal, ToolError};
use countersign_testkit::faulty::{FaultyStore, Op, When};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::world::{Probe, World, call_as, check_error};

const CARTS: Collection = Collection::of_user("cart").scanned();

fn key(key: &str) -> Value {
    json!({ "idempotency_key": key })
}

/// Makes a cart of its own each time it is run, and lets others run in between.
fn making(effect: Effect) -> Probe {
    Probe::read("cart.create")
        .with(|behaviour| behaviour.effect = effect)
        .body(|ctx, _| {
            Box::pin(async {
                let state = ctx.state();
                let carts = state.scan::<Value>(&CARTS, "", 100).await?.len();
                for _ in 0..3 {
                    tokio::task::yield_now().await;
                }
                let id = format!("c_{carts}");
                state.put(&CARTS, &id, &json!({})).await?;
                Ok(json!({ "cart_id": id }).into())
            })
        })
}

fn counting() -> Probe {
    Probe::read("cart.count").body(|ctx, _| {
        Box::pin(async {
            let carts = ctx.state().scan::<Value>(&CARTS, "", 100).await?;
            Ok(json!(carts.len()).into())
        })
    })
}

/// A18, A19: eight callers of one key get one answer, and there is one effect, in one process and in two.
#[tokio::test(start_paused = true)]
async fn all_callers_of_one_key_get_one_answer() {
    for effect in [Effect::Write, Effect::External] {
        for processes in [1, 2] {
            let probe = making(effect);
            let runs = probe.runs();
            let first = World::logging([probe, counting()]);
            let mut worlds = vec![first.replica([])];
            worlds[0] = first;
            if processes == 2 {
                worlds.push(worlds[0].replica([making(effect)]));
            }
            let worlds = Arc::new(worlds);
            let calls: Vec<_> = (0..8)
                .map(|caller| {
                    let worlds = worlds.clone();
                    tokio::spawn(async move {
                        let world = &worlds[caller % worlds.len()];
                        world.send("cart.create", &json!({}), &key("k1")).await
                    })
                })
                .collect();
            let mut first_answers = 0;
            for call in calls {
                let reply = call.await.unwrap();
                assert_eq!(reply["data"], json!({"cart_id": "c_0"}), "{reply:#}");
                first_answers += u32::from(reply["replayed"] == Value::Null);
            }
            assert_eq!(first_answers, 1, "{effect:?}, {processes} processes");
            let count = worlds[0].send("cart.count", &json!({}), &json!({})).await;
            assert_eq!(count["data"], 1);
            if processes == 1 {
                runs.check(1);
            }
        }
    }
}

/// A17: the same key of two users is two keys, also when they call at the same moment.
#[tokio::test]
async fn one_key_of_two_users_is_two_keys() {
    let world = World::logging([making(Effect::Write)]);
    let send = |user: &str| {
        let call = call_as(Principal::user(user), "cart.create", &json!({}), &key("k1"));
        world.execute(call)
    };
    let (one, two) = tokio::join!(send("u_1"), send("u_2"));
    assert_eq!(
        (&one["replayed"], &two["replayed"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(world.store.records().len(), 2);
}

/// A key that is used for other arguments: the error names the paths that differ, and never the values.
#[tokio::test]
async fn a_reused_key_names_the_places_that_differ() {
    let world = World::new(Probe::write("cart.create"));
    let first = json!({"to": "Alice Smith", "items": [{"n": 1}, {"n": 2}], "a/b": 1, "same": 0});
    let other = json!({"to": "Bob Jones", "items": [{"n": 1}], "a/b": 2, "same": 0});
    world.send("cart.create", &first, &key("k1")).await;
    let reply = world.send("cart.create", &other, &key("k1")).await;
    let differing = json!(["/a~1b", "/items/1/n", "/to"]);
    let details = json!({"reason": "key_reused", "field": "/a~1b", "differing": differing});
    check_error(&reply, "CONFLICT", &details);
    assert_eq!(
        reply["error"]["message"],
        "the idempotency_key was used for other arguments, which differ at /a~1b, /items/1/n, /to"
    );
    for value in ["Alice", "Bob"] {
        assert!(!reply.to_string().contains(value), "{reply:#}");
    }
}

/// A call whose key was looked up before the first one ended sees its end, and does not run.
#[tokio::test]
async fn a_look_up_that_is_out_of_date_does_not_count() {
    let gate = Arc::new(Semaphore::new(0));
    let probe = Probe::write("cart.create");
    let runs = probe.runs();
    let lookups = AtomicU32::new(0);
    let held_up = gate.clone();
    let world = World::made([probe], MemoryStore::keeping_log, |builder, store| {
        let plan = move |op, when| -> BoxFuture<'static, bool> {
            let is_first = (op, when) == (Op::Lookup, When::After)
                && lookups.fetch_add(1, Ordering::SeqCst) == 0;
            let gate = held_up.clone();
            Box::pin(async move {
                if is_first {
                    gate.acquire().await.unwrap().forget();
                }
                false
            })
        };
        builder.store(Arc::new(FaultyStore::new(store, plan)))
    });
    let world = Arc::new(world);
    let late = tokio::spawn({
        let world = world.clone();
        async move { world.send("cart.create", &json!({}), &key("k1")).await }
    });
    // One thread: the late one waits with its answer in hand before this goes on.
    tokio::task::yield_now().await;
    world.send("cart.create", &json!({}), &key("k1")).await;
    gate.add_permits(1);
    assert_eq!(late.await.unwrap()["replayed"], true);
    runs.check(1);
}

/// A19: a claim that the store answers so late that another process may hold the key runs nothing, and frees its key.
#[tokio::test]
async fn a_claim_that_is_answered_late_runs_nothing() {
    let first = World::made(
        [Probe::external("a.tool")],
        MemoryStore::keeping_log,
        |builder, _| builder,
    );
    let clock = first.clock.clone();
    let plan = move |op, when| -> BoxFuture<'static, bool> {
        if (op, when) == (Op::Claim, When::After) {
            clock.advance(Duration::from_mins(1));
        }
        Box::pin(std::future::ready(false))
    };
    let store = Arc::new(FaultyStore::new(first.store.clone(), plan));
    let probe = Probe::external("a.tool");
    let runs = probe.runs();
    let late = first.replica_with([probe], |builder| builder.store(store));
    let reply = late.send("a.tool", &json!({}), &key("k1")).await;
    check_error(
        &reply,
        "TIMEOUT",
        &json!({"retryable": true, "source": "gateway"}),
    );
    runs.check(0);
    let again = first.send("a.tool", &json!({}), &key("k1")).await;
    assert_eq!(again["ok"], json!(true), "{again:#}");
}

/// Fails the n-th time that something is done.
fn nth(wanted: (Op, When), n: u32) -> impl Fn(Op, When) -> bool + Send + Sync + 'static {
    let seen = AtomicU32::new(0);
    move |op, when| (op, when) == wanted && seen.fetch_add(1, Ordering::SeqCst) + 1 == n
}

/// A5: the answer of the commit is lost. With a key, the same call gets the answer of the one effect; without one, the
/// call must not be sent again blindly.
#[tokio::test]
async fn a_lost_answer_of_the_commit_is_found_again() {
    for (when, replayed) in [(When::After, json!(true)), (When::Before, Value::Null)] {
        let probes = [making(Effect::Write), counting()];
        let world = World::failing(probes, nth((Op::Commit, when), 1));
        let lost = world.send("cart.create", &json!({}), &key("k1")).await;
        check_error(
            &lost,
            "UPSTREAM_ERROR",
            &json!({"retryable": true, "source": "gateway"}),
        );
        let again = world.send("cart.create", &json!({}), &key("k1")).await;
        assert_eq!(
            (&again["data"]["cart_id"], &again["replayed"]),
            (&json!("c_0"), &replayed)
        );
        let count = world.send("cart.count", &json!({}), &json!({})).await;
        assert_eq!(count["data"], 1);
    }
    let world = World::failing([making(Effect::Write)], nth((Op::Commit, When::After), 1));
    let lost = world.send("cart.create", &json!({}), &json!({})).await;
    check_error(&lost, "UPSTREAM_ERROR", &json!({"retryable": false}));
    assert!(!lost.to_string().contains("/secret"), "{lost:#}");
}

/// The record of a call with an external effect cannot be stored: without a key the call must not be sent again; a read
/// may. If the intent cannot be stored, nothing was changed.
#[tokio::test]
async fn a_call_without_a_key_is_not_repeated_blindly() {
    for (probe, failing, retryable, runs) in [
        (Probe::read("a.tool"), Op::Append, true, 1),
        (Probe::write("a.tool"), Op::Append, true, 1),
        (Probe::external("a.tool"), Op::Append, true, 0),
        (Probe::external("a.tool"), Op::Commit, false, 1),
    ] {
        let ran = probe.runs();
        let world = World::failing([probe], move |op, _| op == failing);
        let reply = world.send("a.tool", &json!({}), &json!({})).await;
        check_error(&reply, "UPSTREAM_ERROR", &json!({ "retryable": retryable }));
        // What did not run is recorded with the key that it gives back.
        let is_recorded = runs == 0 || failing == Op::Commit;
        assert_eq!(reply["evidence"].is_null(), !is_recorded);
        ran.check(runs);
    }
    let lost = || {
        Probe::external("a.tool")
            .body(|_, _| Box::pin(async { Err(ToolError::timeout("no answer from the bank")) }))
    };
    // Under a key that only an operator settles, the same call would be answered with a conflict.
    for (envelope, first_words) in [
        (key("k1"), "do not send it again under another key"),
        (json!({}), "it is not known whether the call was made"),
    ] {
        let reply = World::new(lost())
            .send("a.tool", &json!({}), &envelope)
            .await;
        check_error(&reply, "TIMEOUT", &json!({ "retryable": false }));
        let hint = reply["error"]["details"]["hint"].as_str().unwrap();
        assert!(hint.starts_with(first_words), "{hint}");
    }
}

/// A18: a repeat is the first answer to the last digit.
#[tokio::test]
async fn a_repeat_keeps_every_number() {
    let data = json!({
        "sum": 0.1 + 0.2, "tiny": 5e-324, "large": 1.797_693_134_862_315_7e308, "third": 1.0 / 3.0,
        "zero": -0.0, "whole": 1.0, "int": 9_007_199_254_740_993_u64, "max": u64::MAX, "min": i64::MIN,
        "text": "ü \u{1F600} \u{0} \"",
    });
    let answer = data.clone();
    let probe = Probe::write("a.tool").body(move |_, _| {
        let answer = answer.clone();
        Box::pin(async { Ok(answer.into()) })
    });
    let world = World::logging([probe]);
    let first = world.send("a.tool", &json!({}), &key("k1")).await;
    let again = world.send("a.tool", &json!({}), &key("k1")).await;
    assert_eq!(first["data"].to_string(), data.to_string());
    assert_eq!(again["data"].to_string(), data.to_string());
    assert_eq!(again["evidence"], first["evidence"]);
}

/// A final failure is given again; any other may be tried again, until it was tried too often.
#[tokio::test]
async fn failures_are_final_or_tried_again_a_few_times() {
    let failing = |code: ErrorCode| {
        Probe::write("a.tool")
            .with(|behaviour| {
                behaviour.idempotency.final_codes = vec![ErrorCode::OutOfStock];
                behaviour.idempotency.attempts_max = 3;
            })
            .body(move |_, _| Box::pin(async move { Err(ToolError::new(code, "no")) }))
    };
    let probe = failing(ErrorCode::OutOfStock);
    let runs = probe.runs();
    let world = World::logging([probe]);
    for replayed in [Value::Null, json!(true)] {
        let reply = world.send("a.tool", &json!({}), &key("k1")).await;
        check_error(&reply, "OUT_OF_STOCK", &json!({}));
        assert_eq!(reply["replayed"], replayed);
    }
    runs.check(1);

    let probe = failing(ErrorCode::NotFound);
    let runs = probe.runs();
    let world = World::logging([probe]);
    for _ in 0..3 {
        let reply = world.send("a.tool", &json!({}), &key("k1")).await;
        check_error(&reply, "NOT_FOUND", &json!({}));
    }
    let reply = world.send("a.tool", &json!({}), &key("k1")).await;
    check_error(&reply, "RATE_LIMITED", &json!({"retryable": false}));
    runs.check(3);
}
