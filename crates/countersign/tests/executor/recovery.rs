//! A lost owner of an external effect: the tool's declared recovery is applied.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use countersign::contract::tool::Recovery;
use countersign::state::Collection;
use countersign::{Reconciled, ToolError};
use countersign_testkit::faulty::{Op, When};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::world::{Probe, World, call, check_error};

fn key() -> Value {
    json!({"idempotency_key": "k1"})
}

/// Hangs in its first run and answers the number of each later one; notes the key that it would send on.
fn hanging(recovery: Recovery) -> (Probe, Arc<Mutex<Vec<String>>>) {
    let sent = Arc::new(Mutex::new(Vec::new()));
    let keys = sent.clone();
    let probe = Probe::external("pay.send")
        .with(|behaviour| behaviour.recovery = recovery)
        .body(move |ctx, _| {
            let run = {
                let mut keys = keys.lock().unwrap();
                keys.push(ctx.downstream_key().unwrap().to_owned());
                keys.len()
            };
            Box::pin(async move {
                if run == 1 {
                    std::future::pending::<()>().await;
                }
                Ok(json!({ "run": run }).into())
            })
        });
    (probe, sent)
}

/// Starts a call and loses it while its tool runs.
async fn lose(world: &World) {
    let mut lost = Box::pin(world.executor.execute(call("pay.send", &json!({}), &key())));
    let poll =
        std::future::poll_fn(|cx| std::task::Poll::Ready(lost.as_mut().poll(cx).is_pending()));
    assert!(poll.await, "the tool hangs");
}

async fn again(world: &World) -> Value {
    world.send("pay.send", &json!({}), &key()).await
}

/// The lease: the tool's deadline and five seconds.
const LEASE_SECONDS: u64 = 35;

#[tokio::test(start_paused = true)]
async fn an_operator_has_to_resolve_what_nobody_can_tell() {
    let (probe, sent) = hanging(Recovery::Operator);
    let world = World::logging([probe]);
    lose(&world).await;
    check_error(
        &again(&world).await,
        "CONFLICT",
        &json!({"reason": "in_flight"}),
    );
    // Time alone never ends a doubt.
    for seconds in [LEASE_SECONDS, 24 * 60 * 60, 90 * 24 * 60 * 60] {
        world.advance_seconds(seconds);
        let details = json!({"reason": "in_doubt", "retryable": false});
        check_error(&again(&world).await, "CONFLICT", &details);
    }
    assert_eq!(sent.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_may_run_twice_is_run_again() {
    let (probe, _) = hanging(Recovery::Retry);
    let world = World::logging([probe]);
    lose(&world).await;
    check_error(
        &again(&world).await,
        "CONFLICT",
        &json!({"reason": "in_flight"}),
    );
    world.advance_seconds(LEASE_SECONDS);
    assert_eq!(again(&world).await["data"], json!({"run": 2}));
    assert_eq!(again(&world).await["replayed"], true);
    let (record, _) = &world.log().await[1];
    assert_eq!(record["idempotency"]["attempt"], 2);
}

/// Every attempt sends the same key on, and none is made when the service may have forgotten it.
#[tokio::test(start_paused = true)]
async fn a_downstream_key_is_the_same_for_every_attempt() {
    let recovery = Recovery::DownstreamKey {
        window_seconds: 1_000,
    };
    for (seconds, is_within) in [(799, true), (800, false)] {
        let (probe, sent) = hanging(recovery);
        let world = World::logging([probe]);
        lose(&world).await;
        world.advance_seconds(seconds);
        let reply = again(&world).await;
        let sent = sent.lock().unwrap();
        if is_within {
            assert_eq!(reply["data"], json!({"run": 2}));
            assert_eq!(sent[0], sent[1]);
        } else {
            check_error(&reply, "CONFLICT", &json!({"reason": "in_doubt"}));
            assert_eq!(sent.len(), 1);
        }
    }
    // Without a key of its own there is none to send on, so a lost answer leaves doubt.
    let probe = Probe::external("pay.send")
        .with(|behaviour| behaviour.recovery = recovery)
        .body(|_, _| Box::pin(async { Err(ToolError::timeout("no answer from the bank")) }));
    let world = World::logging([probe]);
    let reply = world.send("pay.send", &json!({}), &json!({})).await;
    check_error(&reply, "TIMEOUT", &json!({"retryable": false}));
}

/// The tool's look-up decides; "not found" counts only when no request can be on its way any more.
#[tokio::test(start_paused = true)]
async fn a_tool_that_can_look_is_asked() {
    type Found = fn() -> Result<Reconciled<countersign::Reply>, ToolError>;
    let happened: Found = || Ok(Reconciled::Happened(json!("found").into()));
    let did_not: Found = || Ok(Reconciled::DidNotHappen);
    let unknown: Found = || Ok(Reconciled::Unknown);
    let failing: Found = || Err(ToolError::timeout("no answer from the bank"));
    let panicking: Found = || panic!("no bank");
    let doubt = json!({"reason": "in_doubt", "retryable": false});
    let early = json!({"reason": "in_doubt", "retryable": true, "retry_after_ms": 25_000});
    for (found, seconds, expected) in [
        (happened, LEASE_SECONDS, Ok("found")),
        (did_not, LEASE_SECONDS, Err(early)),
        (did_not, 60, Ok("run")),
        (unknown, 60, Err(doubt.clone())),
        (failing, 60, Err(doubt.clone())),
        (panicking, 60, Err(doubt)),
    ] {
        let (probe, sent) = hanging(Recovery::Reconcile { grace_seconds: 60 });
        let looked = Arc::new(Mutex::new(None));
        let seen = looked.clone();
        let probe = probe.finds(move |ctx| {
            *seen.lock().unwrap() = ctx.downstream_key().map(str::to_owned);
            ctx.remark("LOOKED", "in the books");
            found()
        });
        let world = World::logging([probe]);
        lose(&world).await;
        world.advance_seconds(seconds);
        let reply = again(&world).await;
        assert_eq!(
            looked.lock().unwrap().as_ref(),
            sent.lock().unwrap().first()
        );
        match expected {
            Err(details) => check_error(&reply, "CONFLICT", &details),
            Ok("found") => {
                assert_eq!(
                    (&reply["data"], &reply["replayed"]),
                    (&json!("found"), &Value::Null)
                );
                assert_eq!(again(&world).await["replayed"], true);
                assert_eq!(sent.lock().unwrap().len(), 1);
            }
            Ok(_) => {
                assert_eq!(
                    (&reply["data"], &reply["warnings"]),
                    (&json!({"run": 2}), &json!([]))
                );
                let kinds: Vec<_> = world
                    .log()
                    .await
                    .into_iter()
                    .map(|(leaf, _)| leaf["kind"].clone())
                    .collect();
                assert!(kinds.contains(&json!("resolution")), "{kinds:?}");
            }
        }
    }
}

/// An owner that was wrongly taken for lost gets the result that counts. Its own result stays in the log as that of an
/// overtaken owner, and names no document: none was written.
#[tokio::test(start_paused = true)]
async fn an_owner_that_was_overtaken_gets_the_answer_that_counts() {
    let gate = Arc::new(Semaphore::new(0));
    let open = gate.clone();
    let run = AtomicU32::new(0);
    let probe = Probe::external("pay.send")
        .with(|behaviour| behaviour.recovery = Recovery::Retry)
        .body(move |ctx, _| {
            let run = run.fetch_add(1, Ordering::SeqCst) + 1;
            let gate = gate.clone();
            Box::pin(async move {
                ctx.state().put(&RECEIPTS, "r_1", &json!(run)).await?;
                if run == 1 {
                    gate.acquire().await.unwrap().forget();
                }
                Ok(json!({ "run": run }).into())
            })
        });
    let world = Arc::new(World::logging([probe]));
    let slow = tokio::spawn({
        let world = world.clone();
        async move { again(&world).await }
    });
    tokio::task::yield_now().await;
    world.advance_seconds(LEASE_SECONDS);
    let other = world.replica([Probe::external("pay.send")
        .with(|behaviour| behaviour.recovery = Recovery::Retry)
        .body(|_, _| Box::pin(async { Ok(json!("of the other").into()) }))]);
    assert_eq!(again(&other).await["data"], "of the other");
    open.add_permits(1);
    let reply = slow.await.unwrap();
    assert_eq!(
        (&reply["replayed"], &reply["data"]),
        (&json!(true), &json!("of the other"))
    );
    let log = world.log().await;
    let attempts: Vec<_> = log
        .iter()
        .map(|(leaf, _)| {
            (
                leaf["idempotency"]["attempt"].clone(),
                leaf["idempotency"]["state"].clone(),
            )
        })
        .collect();
    let names_documents = |(leaf, _): &(Value, _)| !leaf["act"]["writes"].is_null();
    assert!(!log.iter().any(names_documents), "{log:?}");
    for expected in [(1, "fenced"), (2, "succeeded"), (1, "replayed")] {
        let expected = (json!(expected.0), json!(expected.1));
        assert!(attempts.contains(&expected), "{expected:?} in {attempts:?}");
    }
}

const RECEIPTS: Collection = Collection::of_user("receipt");

/// The effect is there when the tool's own state fails: that is a doubt, never a reason to run it again.
#[tokio::test]
async fn state_that_fails_after_an_effect_leaves_doubt() {
    let probe = Probe::external("pay.send").body(|ctx, _| {
        Box::pin(async {
            ctx.state().put(&RECEIPTS, "r_1", &json!("paid")).await?;
            Ok(json!("paid").into())
        })
    });
    let runs = probe.runs();
    let world = World::failing([probe], |op, when| (op, when) == (Op::Read, When::Before));
    check_error(&again(&world).await, "UPSTREAM_ERROR", &json!({}));
    check_error(
        &again(&world).await,
        "CONFLICT",
        &json!({"reason": "in_doubt"}),
    );
    runs.check(1);
}

/// An external effect whose state changed meanwhile is in doubt at once, with its answer in the record; if running it
/// again does no harm, it is run again.
#[tokio::test]
async fn an_effect_elsewhere_whose_state_moved_is_not_repeated_blindly() {
    for (recovery, ok) in [(Recovery::Operator, false), (Recovery::Retry, true)] {
        let other = Arc::new(std::sync::OnceLock::<World>::new());
        let meddler = other.clone();
        let run = AtomicU32::new(0);
        let put = |probe: Probe| {
            probe.body(|ctx, _| {
                Box::pin(async {
                    ctx.state().put(&RECEIPTS, "r_1", &json!("other")).await?;
                    Ok(Value::Null.into())
                })
            })
        };
        let probe = Probe::external("pay.send")
            .with(|behaviour| behaviour.recovery = recovery)
            .body(move |ctx, _| {
                let is_first = run.fetch_add(1, Ordering::SeqCst) == 0;
                let meddler = meddler.clone();
                Box::pin(async move {
                    ctx.state().get::<Value>(&RECEIPTS, "r_1").await?;
                    if is_first {
                        let world = meddler.get().unwrap();
                        world.send("a.put", &json!({}), &json!({})).await;
                    }
                    ctx.state().put(&RECEIPTS, "r_1", &json!("paid")).await?;
                    Ok(json!("paid").into())
                })
            });
        let runs = probe.runs();
        let world = World::logging([probe]);
        assert!(
            other
                .set(world.replica([put(Probe::write("a.put"))]))
                .is_ok()
        );
        let reply = again(&world).await;
        if ok {
            assert_eq!(reply["data"], "paid", "{reply:#}");
            runs.check(2);
            continue;
        }
        let doubt = json!({"reason": "in_doubt", "retryable": false});
        check_error(&reply, "CONFLICT", &doubt);
        // Nobody has to wait for a lease to learn of it.
        check_error(&again(&world).await, "CONFLICT", &doubt);
        let log = world.log().await;
        let (record, _) = log
            .iter()
            .find(|(leaf, _)| leaf["id"] == reply["evidence"]["snapshot_id"])
            .unwrap();
        assert_eq!(record["idempotency"]["state"], "in_doubt");
        assert!(record["reply"]["commitment"].is_string(), "{record:#}");
        runs.check(1);
    }
}
