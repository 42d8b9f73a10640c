//! Budgets: the amount of a call is reserved before it runs, and spent or given back with its outcome.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use countersign::budget::{Budget, BudgetScope, Budgets, Currency, Direction, ToolAmount, Unit};
use countersign::contract::tool::Recovery;
use countersign::contract::{Actor, ActorType, ErrorCode};
use countersign::ledger::{Claims as _, Pots as _};
use countersign::pattern::ToolPattern;
use countersign::{Principal, Reconciled, ToolError};
use countersign_testkit::faulty::{FaultyStore, Op, When};
use serde_json::{Value, json};

use crate::world::{Probe, World, call, call_as, check_error, check_ok};

fn every(scope: BudgetScope, limit: &str) -> Budget {
    let currency = Currency::new("EUR").unwrap();
    Budget {
        name: "purchases".to_owned(),
        scope,
        limit: currency.amount(limit).unwrap(),
        currency,
        window: None,
        tools: vec![ToolAmount::spends(
            ToolPattern::new("shop.*").unwrap(),
            "/total",
        )],
    }
}

fn daily(limit: &str) -> Budget {
    Budget {
        window: Some(Duration::from_hours(24)),
        ..every(BudgetScope::User, limit)
    }
}

fn world(probes: impl IntoIterator<Item = Probe>, budget: Budget) -> World {
    let budgets = Arc::new(Budgets::new(vec![budget]).unwrap());
    World::of(probes, |builder| builder.budgets(budgets))
}

/// Checks the reserved and spent amounts of all pots.
async fn check_pots(world: &World, expected: &[(i64, i64)]) {
    let pots = world.store.pots(None, 100).await.unwrap();
    let shown = pots.iter().map(|pot| (pot.reserved, pot.spent));
    assert_eq!(shown.collect::<Vec<_>>(), expected, "{pots:?}");
}

fn keyed(key: &str) -> Value {
    json!({ "idempotency_key": key })
}

/// Each kind of tool: with its effect in the commit or elsewhere, with a key or without.
#[tokio::test]
async fn what_is_spent_is_counted_and_what_is_too_much_is_refused() {
    for probe in [
        Probe::write as fn(&str) -> Probe,
        Probe::external,
        Probe::read,
    ] {
        for has_key in [true, false] {
            let probe = probe("shop.buy");
            let runs = probe.runs();
            let world = world([probe], daily("100"));
            let buy = async |total: &str, key: &str| {
                let envelope = if has_key { keyed(key) } else { json!({}) };
                world
                    .send("shop.buy", &json!({ "total": total }), &envelope)
                    .await
            };
            assert_eq!(buy("60.00", "k1").await["ok"], true);
            check_pots(&world, &[(0, 6_000)]).await;
            assert_eq!(
                buy("40.01", "k2").await["error"],
                json!({
                    "code": "RATE_LIMITED",
                    "message": "the budget purchases has 40.00 EUR left, which is not enough",
                    "details": {
                        "retryable": true,
                        "retry_after_ms": 43_200_000,
                        "hint": "spend less, or wait for retry_after_ms; do not split it up",
                        "limit": "budget",
                        "budget": "purchases",
                    },
                })
            );
            runs.check(1);
            assert_eq!(buy("40.00", "k3").await["ok"], true);
            check_pots(&world, &[(0, 10_000)]).await;
            // The key was not used up, and the day was.
            world.advance_seconds(43_200);
            assert_eq!(buy("40.01", "k2").await["ok"], true);
            check_pots(&world, &[(0, 10_000), (0, 4_001)]).await;
        }
    }
}

/// A budget that does not come back with time forbids.
#[tokio::test]
async fn a_total_that_is_spent_is_forbidden() {
    let world = world([Probe::write("shop.buy")], every(BudgetScope::Global, "10"));
    let buy = async |total: &Value| {
        world
            .send("shop.buy", &json!({ "total": total }), &json!({}))
            .await
    };
    assert_eq!(
        buy(&json!(10.01)).await["error"],
        json!({
            "code": "FORBIDDEN",
            "message": "the budget purchases does not have enough left",
            "details": {
                "retryable": false,
                "hint": "spend less, or ask the user for a larger budget",
                "limit": "budget",
                "budget": "purchases",
            },
        })
    );
    assert_eq!(buy(&json!(10)).await["ok"], true);
}

/// An amount that exceeds a whole window is forbidden too: it would be refused tomorrow as well.
#[tokio::test]
async fn more_than_a_whole_window_is_forbidden() {
    let world = world([Probe::write("shop.buy")], daily("10"));
    let reply = world
        .send("shop.buy", &json!({"total": "11"}), &json!({}))
        .await;
    check_error(&reply, "FORBIDDEN", &json!({"retryable": false}));
}

/// A17, A18: a repeat is the first answer again, and spends nothing.
#[tokio::test]
async fn a_replay_comes_before_the_budget() {
    for probe in [Probe::write("shop.buy"), Probe::external("shop.buy")] {
        let world = world([probe], every(BudgetScope::User, "10"));
        let buy = async || {
            let total = json!({"total": "10"});
            world.send("shop.buy", &total, &keyed("k1")).await
        };
        check_ok(&buy().await, "req_1", &json!({"run": 1}));
        assert_eq!(buy().await["replayed"], true);
        check_pots(&world, &[(0, 1_000)]).await;
    }
}

/// Attacks: currency confusion, an amount that is none, an amount below zero.
#[tokio::test]
async fn what_cannot_be_counted_is_refused() {
    let probe = Probe::write("shop.buy");
    let runs = probe.runs();
    let mut budget = every(BudgetScope::User, "100");
    budget.tools[0].currency = Some("/currency".to_owned());
    let strict = world([probe], budget);
    for (arguments, field, message) in [
        (
            json!({"total": 10, "currency": "JPY"}),
            "/currency",
            "the budget purchases is in EUR, but the call uses another currency",
        ),
        (
            json!({"total": 10}),
            "/currency",
            "the budget purchases is in EUR, but the call has no currency",
        ),
        (
            json!({"currency": "EUR"}),
            "/total",
            "the budget purchases counts what shop.buy spends, but the call has no amount",
        ),
        (
            json!({"total": "-10", "currency": "EUR"}),
            "/total",
            "the budget purchases cannot count the amount: an amount is written as 12.50, without a \
             sign",
        ),
        (
            json!({"total": "0.001", "currency": "eur"}),
            "/total",
            "the budget purchases cannot count the amount: the currency has 2 decimals at most",
        ),
    ] {
        let reply = strict.send("shop.buy", &arguments, &json!({})).await;
        let details = json!({"field": field, "limit": "budget", "retryable": false});
        check_error(&reply, "INVALID_ARGUMENT", &details);
        assert_eq!(reply["error"]["message"], message);
    }
    runs.check(0);
    check_pots(&strict, &[]).await;

    // Where the tool names none, that of the envelope is the one that it would work in.
    let plain = world([Probe::write("shop.buy")], every(BudgetScope::User, "100"));
    let total = json!({"total": 10});
    let reply = plain
        .send("shop.buy", &total, &json!({"currency": "JPY"}))
        .await;
    check_error(&reply, "INVALID_ARGUMENT", &json!({"field": "/currency"}));
    let reply = plain
        .send("shop.buy", &total, &json!({"currency": "EUR"}))
        .await;
    assert_eq!(reply["ok"], true);
}

/// Each scope has its own pots.
#[tokio::test]
async fn each_scope_has_its_own_pots() {
    for (scope, pots) in [
        (BudgetScope::Global, 1),
        (BudgetScope::User, 2),
        (BudgetScope::Agent, 2),
        (BudgetScope::Session, 3),
    ] {
        let world = world([Probe::write("shop.buy")], every(scope, "100"));
        for (user, agent, session) in [
            ("u_1", "a_1", "s_1"),
            ("u_1", "a_2", "s_2"),
            ("u_2", "a_1", "s_1"),
        ] {
            let agent = Actor {
                kind: ActorType::Agent,
                id: agent.into(),
            };
            let principal = Principal::new(agent, user);
            let envelope = json!({ "session_id": session });
            let call = call_as(principal, "shop.buy", &json!({"total": 1}), &envelope);
            assert_eq!(world.execute(call).await["ok"], true);
        }
        let found = world.store.pots(None, 100).await.unwrap();
        assert_eq!(found.len(), pots, "{scope:?} {found:?}");
        // Nothing of the user's own is in it.
        assert!(!format!("{found:?}").contains("s_1"), "{found:?}");
    }
    let world = world(
        [Probe::write("shop.buy")],
        every(BudgetScope::Session, "100"),
    );
    let reply = world
        .send("shop.buy", &json!({"total": 1}), &json!({}))
        .await;
    check_error(&reply, "INVALID_ARGUMENT", &json!({"field": "/session_id"}));
}

/// A4: a dry run looks whether there is enough, and sets nothing aside.
#[tokio::test]
async fn a_dry_run_only_looks() {
    let world = world([Probe::write("shop.buy").simulating()], daily("10"));
    let try_out = async |total: &str| {
        let envelope = json!({"dry_run": true});
        world
            .send("shop.buy", &json!({ "total": total }), &envelope)
            .await
    };
    for _ in 0..3 {
        assert_eq!(try_out("10").await["ok"], true);
    }
    check_error(
        &try_out("10.01").await,
        "FORBIDDEN",
        &json!({"limit": "budget"}),
    );
    check_pots(&world, &[]).await;
}

/// A failure gives the reservation back; if the outcome is not known, the money is not given back.
#[tokio::test]
async fn the_outcome_decides_what_becomes_of_the_money() {
    for (code, has_key, expected) in [
        // It says that it did nothing.
        (ErrorCode::OutOfStock, true, (0, 0)),
        (ErrorCode::OutOfStock, false, (0, 0)),
        // It does not say.
        (ErrorCode::Timeout, true, (1_000, 0)),
        (ErrorCode::Timeout, false, (0, 1_000)),
    ] {
        let probe = Probe::external("shop.buy")
            .body(move |_, _| Box::pin(async move { Err(ToolError::new(code, "no")) }));
        let world = world([probe], daily("10"));
        let envelope = if has_key { keyed("k1") } else { json!({}) };
        let reply = world
            .send("shop.buy", &json!({"total": 10}), &envelope)
            .await;
        assert_eq!(reply["error"]["code"], code.as_str());
        check_pots(&world, &[expected]).await;
        world.advance_seconds(3_600);
        assert_eq!(world.store.sweep(10).await.unwrap().lapsed, 0);
        check_pots(&world, &[expected]).await;
    }
}

/// The spent amount in the answer counts, even if it is less or more than what was asked for.
#[tokio::test]
async fn the_real_amount_is_settled() {
    let probe = Probe::external("shop.buy")
        .body(|_, arguments| Box::pin(async move { Ok(arguments["answer"].clone().into()) }));
    let mut budget = every(BudgetScope::User, "100");
    budget.tools[0].spent = Some("/charged".to_owned());
    let world = world([probe], budget);
    let mut spent = 0;
    for (answer, cents) in [
        (json!({"charged": "7.50"}), 750),
        (json!({"charged": 12}), 1_200),
        // What cannot be read is what was set aside.
        (json!({"charged": "a lot"}), 1_000),
        (json!({}), 1_000),
    ] {
        let arguments = json!({"total": 10, "answer": answer});
        let reply = world.send("shop.buy", &arguments, &json!({})).await;
        assert_eq!(reply["ok"], true);
        spent += cents;
        check_pots(&world, &[(0, spent)]).await;
    }
}

/// Attack: a refund that is sent again. It needs a key, and counts once.
#[tokio::test]
async fn a_refund_is_credited_once() {
    for effect in [Probe::write as fn(&str) -> Probe, Probe::external] {
        let mut budget = every(BudgetScope::User, "100");
        budget.tools.insert(
            0,
            ToolAmount {
                unit: Unit::Minor,
                direction: Direction::Refund,
                ..ToolAmount::spends(ToolPattern::new("shop.refund").unwrap(), "/cents")
            },
        );
        let world = world([effect("shop.buy"), effect("shop.refund")], budget);
        world
            .send("shop.buy", &json!({"total": 50}), &keyed("k1"))
            .await;
        check_pots(&world, &[(0, 5_000)]).await;
        let refund = json!({"cents": 2_000});
        let reply = world.send("shop.refund", &refund, &json!({})).await;
        let details = json!({"field": "/idempotency_key"});
        check_error(&reply, "INVALID_ARGUMENT", &details);
        for _ in 0..3 {
            let reply = world.send("shop.refund", &refund, &keyed("k2")).await;
            assert_eq!(reply["ok"], true);
            check_pots(&world, &[(0, 3_000)]).await;
        }
        // More than was spent makes no more of the budget than it was.
        let reply = world
            .send("shop.refund", &json!({"cents": 9_000}), &keyed("k3"))
            .await;
        assert_eq!(reply["ok"], true);
        check_pots(&world, &[(0, 0)]).await;
    }
}

/// A tool that only reads holds no key, so it can refund nothing. The caller gets this reason, and not the hint to send
/// a key.
#[tokio::test]
async fn a_tool_that_only_reads_refunds_nothing() {
    let mut budget = every(BudgetScope::User, "100");
    let tools = ToolPattern::new("shop.look").unwrap();
    budget.tools.insert(0, ToolAmount::refunds(tools, "/total"));
    let world = world([Probe::read("shop.look")], budget);
    for more in [json!({}), keyed("k1"), json!({"dry_run": true})] {
        let reply = world.send("shop.look", &json!({"total": 20}), &more).await;
        assert_eq!(reply["error"]["code"], "FORBIDDEN", "{reply}");
        let message = reply["error"]["message"].as_str().unwrap();
        assert!(
            message.ends_with("a tool that only reads cannot refund anything"),
            "{message}"
        );
    }
}

/// The tool looks up a lost call: its reservation is spent or given back, with the claim.
#[tokio::test]
async fn a_reconciled_call_takes_its_money_with_it() {
    for happened in [true, false] {
        let is_lost = Arc::new(AtomicBool::new(true));
        let lost = is_lost.clone();
        let probe = Probe::external("shop.buy")
            .with(|behaviour| behaviour.recovery = Recovery::Reconcile { grace_seconds: 1 })
            .body(move |_, _| {
                let is_lost = lost.load(Ordering::SeqCst);
                Box::pin(async move {
                    if is_lost {
                        return Err(ToolError::new(ErrorCode::Timeout, "silence"));
                    }
                    Ok(json!({"bought": true}).into())
                })
            })
            .finds(move |_| {
                Ok(if happened {
                    Reconciled::Happened(json!({"bought": true}).into())
                } else {
                    Reconciled::DidNotHappen
                })
            });
        let runs = probe.runs();
        let world = world([probe], every(BudgetScope::User, "10"));
        let buy = async || {
            let total = json!({"total": 10});
            world.send("shop.buy", &total, &keyed("k1")).await
        };
        buy().await;
        check_pots(&world, &[(1_000, 0)]).await;
        is_lost.store(false, Ordering::SeqCst);
        world.advance_seconds(60);
        // There is no money for a second one, and none is needed.
        assert_eq!(buy().await["ok"], true);
        check_pots(&world, &[(0, 1_000)]).await;
        runs.check(if happened { 1 } else { 2 });
    }
}

/// The store's answer is lost, before or after the store has acted: the spent amount is that of the effects.
#[tokio::test]
async fn a_lost_answer_of_the_store_spends_once() {
    for (op, when) in [
        (Op::Reserve, When::Before),
        (Op::Reserve, When::After),
        (Op::Commit, When::Before),
        (Op::Commit, When::After),
    ] {
        let is_failing = Arc::new(AtomicBool::new(true));
        let budgets = Arc::new(Budgets::new(vec![every(BudgetScope::User, "10")]).unwrap());
        let failing = is_failing.clone();
        let world = World::made(
            [Probe::write("shop.buy")],
            countersign::ledger::MemoryStore::keeping_log,
            move |builder, store| {
                let plan = move |of, at| {
                    let fails = of == op && at == when && failing.load(Ordering::SeqCst);
                    let fails: countersign::BoxFuture<'static, bool> =
                        Box::pin(std::future::ready(fails));
                    fails
                };
                builder
                    .store(Arc::new(FaultyStore::new(store, plan)))
                    .budgets(budgets)
            },
        );
        let buy = async || {
            let total = json!({"total": 10});
            world.execute(call("shop.buy", &total, &keyed("k1"))).await
        };
        check_error(&buy().await, "UPSTREAM_ERROR", &json!({"retryable": true}));
        is_failing.store(false, Ordering::SeqCst);
        // What nobody could give back goes with its lease.
        world.advance_seconds(3_600);
        world.store.sweep(10).await.unwrap();
        assert_eq!(buy().await["ok"], true, "{op:?} {when:?}");
        check_pots(&world, &[(0, 1_000)]).await;
    }
}

/// The limit may change at any time; spent amounts stay spent.
#[tokio::test]
async fn another_limit_keeps_what_was_spent() {
    let budgets = Arc::new(Budgets::new(vec![every(BudgetScope::User, "10")]).unwrap());
    let shared = budgets.clone();
    let world = World::of([Probe::write("shop.buy")], |builder| {
        builder.budgets(shared)
    });
    let buy = async || {
        let reply = world
            .send("shop.buy", &json!({"total": 10}), &json!({}))
            .await;
        reply["ok"].clone()
    };
    assert_eq!([buy().await, buy().await], [true, false]);
    budgets
        .replace(vec![every(BudgetScope::User, "25")])
        .unwrap();
    assert_eq!([buy().await, buy().await], [true, false]);
    // Another window is another pot.
    budgets.replace(vec![daily("10")]).unwrap();
    assert_eq!([buy().await, buy().await], [true, false]);
    budgets.replace(Vec::new()).unwrap();
    assert_eq!(buy().await, true);
}
