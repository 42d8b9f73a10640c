//! At most once for a user, a tool and a key (A5, A17 to A19).

use std::sync::Arc;
use std::time::Duration;

use countersign::contract::ErrorCode;
use countersign::contract::tool::{KeyRule, Recovery};
use countersign::limit::{LimitRules, Limits, Rate};
use countersign::{Principal, ToolError};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::world::{Probe, World, call, call_as, check_error, check_ok};

fn key(key: &str) -> Value {
    json!({ "idempotency_key": key })
}

/// A18: a repeat returns the same result, says so, and runs nothing.
#[tokio::test]
async fn a_repeat_is_answered_with_the_first_answer() {
    let probe = Probe::write("cart.create").with(|behaviour| behaviour.ttl_seconds = Some(60));
    let runs = probe.runs();
    let world = World::new(probe.proved());
    let send = async || {
        world
            .send("cart.create", &json!({"a": 1, "b": 2}), &key("k1"))
            .await
    };
    let mut expected = send().await;
    assert_eq!(expected["evidence"]["snapshot_id"], "ev_1");
    assert_eq!(world.record()["replayed"], Value::Null);

    world.advance_seconds(20);
    expected["request_id"] = "req_2".into();
    expected["replayed"] = true.into();
    expected["ttl_seconds"] = 40.into();
    assert_eq!(send().await, expected);
    let record = world.record();
    assert_eq!(
        (&record["replayed"], &record["snapshot_id"]),
        (&json!(true), &json!("ev_1"))
    );
    runs.check(1);
}

/// A8, A18: a repeat after the window is still the first answer, and says that its window is over.
#[tokio::test]
async fn a_stale_repeat_says_so() {
    let probe = Probe::write("cart.create").with(|behaviour| behaviour.ttl_seconds = Some(60));
    let world = World::new(probe);
    world.send("cart.create", &json!({}), &key("k1")).await;
    world.advance_seconds(61);
    let reply = world.send("cart.create", &json!({}), &key("k1")).await;
    assert_eq!(
        (&reply["ok"], &reply["ttl_seconds"]),
        (&json!(true), &json!(0))
    );
    assert_eq!(reply["warnings"][0]["code"], "STALE_REPLAY");
}

/// Another order of members is not a difference; another value is.
#[tokio::test]
async fn a_key_used_for_other_arguments_conflicts() {
    let probe = Probe::write("cart.create");
    let runs = probe.runs();
    let world = World::new(probe);
    let raw = |text: &str| {
        countersign::ToolCall::new("cart.create", text, Principal::user("u_1"))
            .envelope(serde_json::from_value(key("k1")).unwrap())
    };
    world.execute(raw(r#"{"a": 1, "b": 2}"#)).await;
    assert_eq!(
        world.execute(raw(r#"{"b":2,"a":1}"#)).await["replayed"],
        true
    );
    let reply = world.execute(raw(r#"{"a": 1, "b": 3}"#)).await;
    check_error(
        &reply,
        "CONFLICT",
        &json!({"reason": "key_reused", "retryable": false}),
    );
    runs.check(1);
}

/// A19: while the first is in progress, a repeat waits for it, and gets `CONFLICT` when it has waited
/// long enough; afterwards it gets the answer.
#[tokio::test(start_paused = true)]
async fn a_repeat_of_a_running_call_conflicts() {
    let gate = Arc::new(Semaphore::new(0));
    let open = gate.clone();
    let probe = Probe::write("cart.create").body(move |_, _| {
        let gate = gate.clone();
        Box::pin(async move {
            gate.acquire().await.unwrap().forget();
            Ok(json!("made").into())
        })
    });
    let runs = probe.runs();
    let world = Arc::new(World::new(probe));
    let first = tokio::spawn({
        let world = world.clone();
        async move { world.send("cart.create", &json!({}), &key("k1")).await }
    });
    // One thread: the first call runs up to its gate before this goes on.
    tokio::task::yield_now().await;
    let reply = world.send("cart.create", &json!({}), &key("k1")).await;
    let details = json!({"reason": "in_flight", "retryable": true, "retry_after_ms": 50});
    check_error(&reply, "CONFLICT", &details);
    open.add_permits(1);
    assert_eq!(first.await.unwrap()["data"], "made");
    let reply = world.send("cart.create", &json!({}), &key("k1")).await;
    assert_eq!(
        (&reply["replayed"], &reply["data"]),
        (&json!(true), &json!("made"))
    );
    runs.check(1);
}

/// A18, A19: of many at once on many threads exactly one runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_at_once_run_once() {
    let probe = Probe::write("cart.create").body(|_, _| {
        Box::pin(async {
            tokio::task::yield_now().await;
            Ok(json!("made").into())
        })
    });
    let runs = probe.runs();
    let world = Arc::new(World::new(probe));
    let calls = (0..64).map(|_| {
        let world = world.clone();
        tokio::spawn(async move { world.send("cart.create", &json!({}), &key("k1")).await })
    });
    let mut made = 0;
    for call in calls.collect::<Vec<_>>() {
        let reply = call.await.unwrap();
        if reply["ok"] == true {
            made += u32::from(reply["replayed"] == Value::Null);
        } else {
            check_error(&reply, "CONFLICT", &json!({"reason": "in_flight"}));
        }
    }
    assert_eq!(made, 1);
    runs.check(1);
}

/// A5, A17: the same key of another user or for another tool is another key; an alias is not
/// another tool.
#[tokio::test]
async fn keys_are_kept_apart_by_user_and_tool() {
    let world = World::of(
        [Probe::write("cart.create"), Probe::write("cart.clear")],
        |b| b,
    );
    check_ok(
        &world.send("cart.create", &json!({}), &key("k1")).await,
        "req_1",
        &json!({"run": 1}),
    );
    let other = call_as(
        Principal::user("u_2"),
        "cart.create",
        &json!({}),
        &key("k1"),
    );
    check_ok(&world.execute(other).await, "req_2", &json!({"run": 2}));
    check_ok(
        &world.send("cart.clear", &json!({}), &key("k1")).await,
        "req_3",
        &json!({"run": 1}),
    );
    let reply = world.send("cart_create", &json!({}), &key("k1")).await;
    assert_eq!(
        (&reply["replayed"], &reply["data"]),
        (&json!(true), &json!({"run": 1}))
    );
}

/// A null key counts as no key: the call runs as often as it is sent. A read is always fresh.
#[tokio::test]
async fn without_a_key_and_for_a_read_every_call_runs() {
    let world = World::of(
        [Probe::write("cart.create"), Probe::read("cart.get")],
        |b| b,
    );
    for run in 1..=2 {
        let reply = world
            .send("cart.create", &json!({}), &json!({"idempotency_key": null}))
            .await;
        assert_eq!(reply["data"], json!({ "run": run }));
        let reply = world.send("cart.get", &json!({}), &key("k1")).await;
        assert_eq!(reply["data"], json!({ "run": run }));
    }
}

/// A5: a derived key makes the same call of the same user happen once.
#[tokio::test]
async fn a_derived_key_comes_from_the_arguments() {
    let world = World::new(Probe::write("cart.create").key(KeyRule::Derive));
    let send = async |n: u32| {
        world
            .send("cart.create", &json!({ "n": n }), &json!({}))
            .await
    };
    assert_eq!(send(1).await["data"], json!({"run": 1}));
    assert_eq!(send(1).await["replayed"], true);
    assert_eq!(send(2).await["data"], json!({"run": 2}));
    let other = call_as(
        Principal::user("u_2"),
        "cart.create",
        &json!({"n": 1}),
        &json!({}),
    );
    assert_eq!(world.execute(other).await["data"], json!({"run": 3}));
}

/// A refusal before the run does not touch the key: the corrected call may use it.
#[tokio::test]
async fn a_refusal_leaves_the_key_alone() {
    let probe = Probe::write("pay.send").confirmed();
    let runs = probe.runs();
    let world = World::new(probe);
    let reply = world.send("pay.send", &json!({"n": 1}), &key("k1")).await;
    check_error(&reply, "NEEDS_USER_CONFIRMATION", &json!({}));
    world.send("pay.send", &json!({"n": 2}), &key("k1")).await;
    world.approve("ap_2").await;
    let reply = world.send("pay.send", &json!({"n": 2}), &key("k1")).await;
    check_ok(&reply, "req_3", &json!({"run": 1}));
    runs.check(1);
}

/// An answered call needs neither confirmation nor budget again.
#[tokio::test]
async fn a_replay_comes_before_budget_and_confirmation() {
    let limits = Arc::new(Limits::new(LimitRules {
        user: vec![Rate::new(2, Duration::from_mins(1)).into()],
        ..LimitRules::default()
    }));
    let world = World::of([Probe::write("pay.send").confirmed()], |b| {
        b.limiter(limits)
    });
    let send = async || world.send("pay.send", &json!({}), &key("k1")).await;
    send().await;
    world.approve("ap_1").await;
    check_ok(&send().await, "req_2", &json!({"run": 1}));
    for _ in 0..3 {
        assert_eq!(send().await["replayed"], true);
    }
    let reply = world.send("pay.send", &json!({}), &key("k2")).await;
    check_error(&reply, "RATE_LIMITED", &json!({}));
}

/// A failure of a tool that commits with its record changed nothing, so the key may be used again: for the same
/// call, or for a corrected one.
#[tokio::test]
async fn a_failure_without_effect_releases_the_key() {
    for (error, code) in [
        (ErrorCode::NotFound, "NOT_FOUND"),
        (ErrorCode::Timeout, "TIMEOUT"),
    ] {
        let probe = Probe::write("cart.create")
            .body(move |_, _| Box::pin(async move { Err(ToolError::new(error, "no cart")) }));
        let runs = probe.runs();
        let world = World::new(probe);
        for _ in 0..2 {
            let reply = world
                .send("cart.create", &json!({"n": 1}), &key("k1"))
                .await;
            check_error(&reply, code, &json!({}));
        }
        let reply = world
            .send("cart.create", &json!({"n": 2}), &key("k1"))
            .await;
        check_error(&reply, code, &json!({}));
        runs.check(3);
    }
}

/// Refuses every `n` below ten.
fn choosy(probe: Probe) -> Probe {
    probe.body(|_, arguments| {
        Box::pin(async move {
            match arguments["n"].as_u64() {
                Some(n) if n >= 10 => Ok(json!({ "n": n }).into()),
                _ => Err(ToolError::invalid("/n", "n is below ten")),
            }
        })
    })
}

/// A5, A17: after a failure without an effect the key takes corrected arguments. It then stands for those:
/// a repeat gets their answer, and the first arguments are others.
#[tokio::test]
async fn a_released_key_takes_corrected_arguments() {
    for probe in [Probe::write("cart.create"), Probe::external("cart.create")] {
        let probe = choosy(probe);
        let runs = probe.runs();
        let world = World::new(probe);
        let send = async |n: u32| {
            let arguments = json!({ "n": n });
            world.send("cart.create", &arguments, &key("k1")).await
        };
        for n in [1, 2, 1] {
            check_error(&send(n).await, "INVALID_ARGUMENT", &json!({"field": "/n"}));
        }
        assert_eq!(send(12).await["data"], json!({"n": 12}));
        assert_eq!(send(12).await["replayed"], true);
        for n in [1, 13] {
            let details = json!({"reason": "key_reused", "field": "/n", "differing": ["/n"]});
            check_error(&send(n).await, "CONFLICT", &details);
        }
        runs.check(4);
        let attempts: Vec<_> = world
            .store
            .records()
            .into_iter()
            .map(|record| record.code)
            .collect();
        assert_eq!(attempts.len(), 7, "every call leaves a record");
    }
}

/// Corrected calls count as attempts: a key is not a way around the limit of attempts.
#[tokio::test]
async fn corrected_calls_use_up_the_attempts() {
    for probe in [Probe::write("cart.create"), Probe::external("cart.create")] {
        let probe = choosy(probe).with(|behaviour| behaviour.idempotency.attempts_max = 2);
        let runs = probe.runs();
        let world = World::new(probe);
        for (n, code) in [
            (1, "INVALID_ARGUMENT"),
            (2, "INVALID_ARGUMENT"),
            (12, "RATE_LIMITED"),
        ] {
            let reply = world
                .send("cart.create", &json!({ "n": n }), &key("k1"))
                .await;
            check_error(&reply, code, &json!({}));
        }
        runs.check(2);
    }
}

/// A17: if the first call had its effect, may have had it or failed for good, other arguments are refused, and the hint
/// names the way out.
#[tokio::test]
async fn a_key_that_is_not_released_keeps_its_arguments() {
    let lost = |name: &str, recovery| {
        Probe::external(name)
            .with(|behaviour| behaviour.recovery = recovery)
            .body(|_, _| Box::pin(async { Err(ToolError::timeout("no answer from the bank")) }))
    };
    let window_seconds = 1_000;
    let worked = "use a new idempotency_key for a new call, or the first arguments for a retry";
    let doubt = "the first call may have had its effect: send its own arguments again, or let an operator check, \
                 before you send a corrected call under a new idempotency_key";
    for (probe, hint) in [
        (Probe::write("pay.send"), worked),
        (
            choosy(Probe::write("pay.send"))
                .with(|it| it.idempotency.final_codes = vec![ErrorCode::InvalidArgument]),
            worked,
        ),
        (lost("pay.send", Recovery::Operator), doubt),
        (
            lost("pay.send", Recovery::Reconcile { grace_seconds: 0 }),
            doubt,
        ),
        (lost("pay.send", Recovery::Retry), doubt),
        (
            lost("pay.send", Recovery::DownstreamKey { window_seconds }),
            doubt,
        ),
    ] {
        let runs = probe.runs();
        let world = World::new(probe);
        world.send("pay.send", &json!({"n": 1}), &key("k1")).await;
        let reply = world.send("pay.send", &json!({"n": 2}), &key("k1")).await;
        let details = json!({"reason": "key_reused", "retryable": false, "hint": hint});
        check_error(&reply, "CONFLICT", &details);
        runs.check(1);
    }
}

/// If the answer of a call that may be repeated is lost, the very same call may run again, as long as the upstream
/// remembers its key; after that its outcome is not known.
#[tokio::test]
async fn a_lost_answer_is_repeated_within_the_window_only() {
    let recovery = Recovery::DownstreamKey {
        window_seconds: 1_000,
    };
    let probe = Probe::external("pay.send")
        .with(|behaviour| behaviour.recovery = recovery)
        .body(|_, _| Box::pin(async { Err(ToolError::timeout("no answer from the bank")) }));
    let runs = probe.runs();
    let world = World::logging([probe]);
    for (seconds, code) in [
        (0, "TIMEOUT"),
        (799, "TIMEOUT"),
        (1, "CONFLICT"),
        (0, "CONFLICT"),
    ] {
        world.advance_seconds(seconds);
        let reply = world.send("pay.send", &json!({}), &key("k1")).await;
        check_error(&reply, code, &json!({}));
    }
    runs.check(2);
    let (record, _) = &world.log().await[0];
    assert_eq!(record["idempotency"]["state"], "abandoned");
}

/// A6: a corrected call is another call for the services below, so it has another key there.
#[tokio::test]
async fn a_corrected_call_has_a_downstream_key_of_its_own() {
    let sent = Arc::new(std::sync::Mutex::new(Vec::new()));
    let keys = sent.clone();
    let probe = Probe::external("pay.send").body(move |ctx, _| {
        keys.lock()
            .unwrap()
            .push(ctx.downstream_key().unwrap().to_owned());
        Box::pin(async { Err(ToolError::forbidden("the card is blocked")) })
    });
    let world = World::new(probe);
    for n in [1, 1, 2] {
        world.send("pay.send", &json!({ "n": n }), &key("k1")).await;
    }
    let sent = sent.lock().unwrap();
    assert_eq!(sent[0], sent[1]);
    assert_ne!(sent[1], sent[2]);
}

/// An answer that was lost elsewhere leaves doubt, and nothing runs blindly; one that surely had no
/// effect does not.
#[tokio::test]
async fn a_lost_answer_from_elsewhere_is_in_doubt() {
    let world = World::of(
        [
            Probe::external("pay.lost").body(|_, _| {
                Box::pin(async { Err(ToolError::timeout("no answer from the bank")) })
            }),
            Probe::external("pay.refused").body(|_, _| {
                Box::pin(async {
                    Err(ToolError::upstream("ECONNREFUSED", "no bank").without_effect())
                })
            }),
            Probe::external("pay.declined")
                .body(|_, _| Box::pin(async { Err(ToolError::forbidden("the card is blocked")) })),
        ],
        |builder| builder,
    );
    for (tool, first, second) in [
        ("pay.lost", "TIMEOUT", "CONFLICT"),
        ("pay.refused", "UPSTREAM_ERROR", "UPSTREAM_ERROR"),
        ("pay.declined", "FORBIDDEN", "FORBIDDEN"),
    ] {
        check_error(
            &world.send(tool, &json!({}), &key("k1")).await,
            first,
            &json!({}),
        );
        check_error(
            &world.send(tool, &json!({}), &key("k1")).await,
            second,
            &json!({}),
        );
    }
    let reply = world.send("pay.lost", &json!({}), &key("k1")).await;
    check_error(
        &reply,
        "CONFLICT",
        &json!({"reason": "in_doubt", "retryable": false}),
    );
}

/// A20: a late repeat is refused, never run again.
#[tokio::test]
async fn a_key_that_is_no_longer_kept_is_refused() {
    let probe = Probe::write("cart.create");
    let runs = probe.runs();
    let world = World::new(probe);
    let send = async || world.send("cart.create", &json!({}), &key("k1")).await;
    send().await;
    world.advance_seconds(24 * 60 * 60 - 1);
    assert_eq!(send().await["replayed"], true);
    world.advance_seconds(1);
    check_error(&send().await, "CONFLICT", &json!({"reason": "key_expired"}));
    runs.check(1);
}

/// A lost owner does not hold its key for ever: a write is gone at once, because it was to be committed with the key;
/// an external effect is in doubt when the lease is over.
#[tokio::test(start_paused = true)]
async fn an_abandoned_claim_ends_with_its_lease() {
    let stuck = |probe: Probe| {
        probe.body(|ctx, _| {
            let waits = ctx.raw_arguments() == "{}" && ctx.now().as_second() % 3600 == 0;
            Box::pin(async move {
                if waits {
                    std::future::pending::<()>().await;
                }
                Ok(json!("late").into())
            })
        })
    };
    let tools = [
        stuck(Probe::write("a.write")),
        stuck(Probe::external("b.external")),
    ];
    let world = World::of(tools, |builder| builder);
    for tool in ["a.write", "b.external"] {
        let call = call(tool, &json!({}), &key("k1"));
        let mut abandoned = Box::pin(world.executor.execute(call));
        assert!(poll_once(&mut abandoned).await.is_none());
        drop(abandoned);
    }
    let reply = world.send("b.external", &json!({}), &key("k1")).await;
    check_error(&reply, "CONFLICT", &json!({"reason": "in_flight"}));
    world.advance_seconds(35);
    let reply = world.send("a.write", &json!({}), &key("k1")).await;
    assert_eq!(reply["data"], "late");
    let reply = world.send("b.external", &json!({}), &key("k1")).await;
    check_error(&reply, "CONFLICT", &json!({"reason": "in_doubt"}));
}

async fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    std::future::poll_fn(|cx| {
        std::task::Poll::Ready(match std::pin::Pin::new(&mut *future).poll(cx) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        })
    })
    .await
}
