//! Calls under a grant: which ones it answers for, and what is counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use countersign::contract::tool::Recovery;
use countersign::contract::{Actor, ActorType, ErrorCode, GrantState, NewGrant};
use countersign::{Principal, ToolError};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{
    Counting, Fixed, NEEDS, agent, buy, check_asked, euros, grant, make, revoke, shown,
    with_language, world,
};
use crate::world::{Probe, World, call_as, check_error};

/// Each kind of tool, with a key and without: the call runs, its record names the grant and rests on the record of its
/// making, and the use is counted.
#[tokio::test]
async fn a_grant_answers_in_the_users_place() {
    for probe in [
        Probe::write as fn(&str) -> Probe,
        Probe::external,
        Probe::read,
    ] {
        for envelope in [json!({"idempotency_key": "k1"}), json!({})] {
            let world = world(probe("shop.buy"));
            check_asked(&buy(&world, "a_7", 10, &json!({})).await);
            let made = make(&world, &grant()).await;
            assert_eq!(
                json!(made),
                json!({
                    "id": "gr_1",
                    "state": "active",
                    "user_id": "u_1",
                    "to": {"type": "agent", "id": "a_7"},
                    "tools": ["shop.buy"],
                    "until": "2026-11-16T12:00:00Z",
                    "used": {"calls": 0},
                    "made_by": {"type": "user", "id": "u_1"},
                    "made_at": "2026-11-15T12:00:00Z",
                    "evidence": made.evidence,
                })
            );
            let reply = buy(&world, "a_7", 10, &envelope).await;
            assert_eq!(reply["ok"], true, "{reply:#}");
            assert_eq!(shown(&world, "gr_1").await.used.calls, 1);
            let log = world.log().await;
            let (record, _) = log.last().unwrap();
            assert_eq!(record["act"]["grant_id"], "gr_1", "{record:#}");
            assert_eq!(record["links"][0]["id"], json!(made.evidence), "{record:#}");
            let acts: Vec<&Value> = log.iter().map(|(record, _)| &record["act"]).collect();
            let granted = acts.iter().find(|act| act["event"] == "granted").unwrap();
            assert_eq!(granted["grant"], "gr_1", "{acts:?}");
            assert_eq!(granted["tools"], json!(["shop.buy"]), "{acts:?}");
            assert_eq!(granted["until"], "2026-11-16T12:00:00Z", "{acts:?}");
            // The grant, and the document that leads from its id to its user.
            let versions: Vec<_> = granted["writes"].as_object().unwrap().values().collect();
            assert_eq!(versions, [1, 1], "{acts:?}");
        }
    }
}

/// A17: a repeat under the same key is the first answer again, and uses nothing.
#[tokio::test]
async fn a_repeat_uses_nothing() {
    for probe in [Probe::write("shop.buy"), Probe::external("shop.buy")] {
        let world = world(probe);
        let once = NewGrant {
            calls: Some(1),
            ..grant()
        };
        make(&world, &once).await;
        let key = json!({"idempotency_key": "k1"});
        assert_eq!(buy(&world, "a_7", 10, &key).await["ok"], true);
        assert_eq!(buy(&world, "a_7", 10, &key).await["replayed"], true);
        check_asked(&buy(&world, "a_7", 11, &json!({"idempotency_key": "k2"})).await);
        let used = shown(&world, "gr_1").await;
        assert_eq!((used.used.calls, used.state), (1, GrantState::UsedUp));
    }
}

/// What a grant does not cover is asked about: another agent, another tool, a tool that has changed, other arguments.
#[tokio::test]
async fn what_is_not_covered_is_asked_about() {
    let probes = || [Probe::write("shop.buy"), Probe::write("shop.sell")].map(Probe::confirmed);
    let world = World::logging_with(probes(), with_language);
    let below = NewGrant {
        when: Some("total<100".to_owned()),
        ..grant()
    };
    make(&world, &below).await;
    assert_eq!(buy(&world, "a_7", 99, &json!({})).await["ok"], true);
    check_asked(&buy(&world, "a_7", 100, &json!({})).await);
    check_asked(&buy(&world, "a_8", 99, &json!({})).await);
    let other = call_as(agent("a_7"), "shop.sell", &json!({"total": 1}), &json!({}));
    check_asked(&world.execute(other).await);
    // A condition that cannot be decided does not hold.
    let none = call_as(agent("a_7"), "shop.buy", &json!({"total": "x"}), &json!({}));
    check_asked(&world.execute(none).await);
    // A backend that calls itself by the agent's name is still the backend.
    let backend = Principal::new(
        Actor {
            kind: ActorType::System,
            id: "shop".to_owned(),
        },
        "",
    )
    .acting_for_others();
    let named = json!({"user_id": "u_1", "actor": {"type": "agent", "id": "a_7"}});
    let named = call_as(backend, "shop.buy", &json!({"total": 1}), &named);
    check_asked(&world.execute(named).await);

    let changed = Probe::write("shop.buy")
        .confirmed()
        .with(|behaviour| behaviour.deadline_ms += 1);
    let changed = world.replica_with([changed], with_language);
    check_asked(&buy(&changed, "a_7", 1, &json!({})).await);
    let speechless = world.replica(probes());
    check_asked(&buy(&speechless, "a_7", 1, &json!({})).await);
}

/// An amount a day, in one currency; the next day begins at midnight UTC.
#[tokio::test]
async fn an_amount_is_counted_by_the_day() {
    for probe in [Probe::write("shop.buy"), Probe::external("shop.buy")] {
        let world = world(probe);
        let daily = NewGrant {
            amount: Some(euros("100.00")),
            until: "2026-12-15T12:00:00Z".to_owned(),
            ..grant()
        };
        make(&world, &daily).await;
        assert_eq!(buy(&world, "a_7", 60, &json!({})).await["ok"], true);
        check_asked(&buy(&world, "a_7", 41, &json!({})).await);
        check_asked(&buy(&world, "a_7", 5, &json!({"currency": "JPY"})).await);
        assert_eq!(buy(&world, "a_7", 40, &json!({})).await["ok"], true);
        let used = shown(&world, "gr_1").await.used;
        assert_eq!((used.calls, used.today.as_deref()), (2, Some("100.00 EUR")));
        world.advance_seconds(12 * 3_600);
        assert_eq!(buy(&world, "a_7", 42, &json!({})).await["ok"], true);
        let used = shown(&world, "gr_1").await.used;
        assert_eq!((used.calls, used.today.as_deref()), (3, Some("42.00 EUR")));
        // An amount that cannot be read is not covered.
        let none = call_as(agent("a_7"), "shop.buy", &json!({}), &json!({}));
        check_asked(&world.execute(none).await);
    }
}

/// A call that fails without an effect gives its use back, as it gives back what a budget counts.
#[tokio::test]
async fn a_failed_call_gives_its_use_back() {
    for probe in [Probe::write as fn(&str) -> Probe, Probe::external] {
        let fails = Arc::new(AtomicBool::new(true));
        let seen = fails.clone();
        let probe = probe("shop.buy").body(move |_, _| {
            let fails = seen.load(Ordering::SeqCst);
            Box::pin(async move {
                if fails {
                    let full = ToolError::new(ErrorCode::RateLimited, "full");
                    return Err(full.without_effect());
                }
                Ok(json!({}).into())
            })
        });
        let world = world(probe);
        let once = NewGrant {
            calls: Some(1),
            amount: Some(euros("10")),
            ..grant()
        };
        make(&world, &once).await;
        let key = json!({"idempotency_key": "k1"});
        let reply = buy(&world, "a_7", 10, &key).await;
        check_error(&reply, "RATE_LIMITED", &json!({}));
        assert_eq!(shown(&world, "gr_1").await.used.calls, 0);
        fails.store(false, Ordering::SeqCst);
        assert_eq!(buy(&world, "a_7", 10, &key).await["ok"], true);
        assert_eq!(shown(&world, "gr_1").await.used.calls, 1);
    }
}

/// An owner that is lost after its claim: the retry under its key goes on with the use that was reserved.
#[tokio::test]
async fn a_retry_takes_over_the_use_of_a_lost_owner() {
    let hangs = Arc::new(AtomicBool::new(true));
    let started = Arc::new(Notify::new());
    let (seen, start) = (hangs.clone(), started.clone());
    let probe = Probe::external("shop.buy")
        .with(|behaviour| behaviour.recovery = Recovery::Retry)
        .body(move |_, _| {
            let (hangs, start) = (seen.load(Ordering::SeqCst), start.clone());
            Box::pin(async move {
                if hangs {
                    start.notify_one();
                    std::future::pending::<()>().await;
                }
                Ok(json!({}).into())
            })
        });
    let world = world(probe);
    let once = NewGrant {
        calls: Some(1),
        ..grant()
    };
    make(&world, &once).await;
    let key = json!({"idempotency_key": "k1"});
    tokio::select! {
        reply = buy(&world, "a_7", 10, &key) => panic!("{reply:#}"),
        () = started.notified() => {}
    }
    assert_eq!(shown(&world, "gr_1").await.used.calls, 1, "reserved");
    world.advance_seconds(3_600);
    hangs.store(false, Ordering::SeqCst);
    let reply = buy(&world, "a_7", 10, &key).await;
    assert_eq!(reply["ok"], true, "{reply:#}");
    assert_eq!(shown(&world, "gr_1").await.used.calls, 1);
    check_asked(&buy(&world, "a_7", 11, &json!({"idempotency_key": "k2"})).await);
}

/// A grant that is revoked while its call runs: an effect in the store is not made.
#[tokio::test]
async fn a_revocation_stops_a_call_in_progress() {
    for (probe, is_write) in [
        (Probe::write as fn(&str) -> Probe, true),
        (Probe::read, false),
    ] {
        let (started, stopped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (start, stop) = (started.clone(), stopped.clone());
        let probe = probe("shop.buy").body(move |_, _| {
            let (start, stop) = (start.clone(), stop.clone());
            Box::pin(async move {
                start.notify_one();
                stop.notified().await;
                Ok(json!({}).into())
            })
        });
        let world = world(probe);
        make(&world, &grant()).await;
        let envelope = json!({});
        let (reply, ()) = tokio::join!(buy(&world, "a_7", 10, &envelope), async {
            started.notified().await;
            revoke(&world, "gr_1").await;
            stopped.notify_one();
        });
        check_error(&reply, NEEDS, &json!({"grant_id": "gr_1"}));
        // What a read has shown to its tool counts, as for a budget.
        let uses = shown(&world, "gr_1").await.used.calls;
        assert_eq!(uses, u64::from(!is_write));
    }
}

/// A dry run says that a grant would answer, and uses nothing.
#[tokio::test]
async fn a_dry_run_names_the_grant_and_uses_nothing() {
    for probe in [Probe::write("shop.buy"), Probe::external("shop.buy")] {
        let world = world(probe.simulating());
        let once = NewGrant {
            calls: Some(1),
            ..grant()
        };
        make(&world, &once).await;
        let dry = json!({"dry_run": true});
        for _ in 0..3 {
            let reply = buy(&world, "a_7", 10, &dry).await;
            assert_eq!(reply["ok"], true, "{reply:#}");
            let warnings = reply["warnings"].as_array().unwrap();
            let granted = warnings.iter().any(|it| it["code"] == "GRANTED");
            assert!(granted, "{reply:#}");
        }
        assert_eq!(shown(&world, "gr_1").await.used.calls, 0);
    }
    // A dry run of a read would show its answer for nothing.
    let world = world(Probe::read("shop.buy"));
    make(&world, &grant()).await;
    check_asked(&buy(&world, "a_7", 10, &json!({"dry_run": true})).await);
}

/// A denial stays one, and what needs two people is asked about; what only the policy wants confirmed is answered.
#[tokio::test]
async fn a_grant_does_not_outweigh_the_policy() {
    let decided = |policy: Fixed| {
        World::logging_with([Probe::write("shop.buy")], |builder| {
            builder.authorizer(Arc::new(policy))
        })
    };
    let denies = decided(Fixed {
        denies: true,
        must_confirm: true,
        four_eyes: false,
    });
    make(&denies, &grant()).await;
    let reply = buy(&denies, "a_7", 1, &json!({})).await;
    check_error(&reply, "FORBIDDEN", &json!({}));
    let twice = decided(Fixed {
        denies: false,
        must_confirm: true,
        four_eyes: true,
    });
    make(&twice, &grant()).await;
    check_asked(&buy(&twice, "a_7", 1, &json!({})).await);
    let confirms = decided(Fixed {
        denies: false,
        must_confirm: true,
        four_eyes: false,
    });
    check_asked(&buy(&confirms, "a_7", 1, &json!({})).await);
    make(&confirms, &grant()).await;
    assert_eq!(buy(&confirms, "a_7", 1, &json!({})).await["ok"], true);
}

/// What the user has said about this very call goes first: a no stays a no, and a yes is used before the grant is.
#[tokio::test]
async fn an_answer_about_the_call_itself_goes_first() {
    let world = world(Probe::write("shop.buy"));
    check_asked(&buy(&world, "a_7", 1, &json!({})).await);
    check_asked(&buy(&world, "a_7", 2, &json!({})).await);
    let by = Principal::user("u_1");
    world.approvals().deny("ap_1", &by, None).await.unwrap();
    world.approvals().approve("ap_2", &by, None).await.unwrap();
    make(&world, &grant()).await;
    let denied = buy(&world, "a_7", 1, &json!({})).await;
    check_error(&denied, "FORBIDDEN", &json!({"approval_id": "ap_1"}));
    assert_eq!(buy(&world, "a_7", 2, &json!({})).await["ok"], true);
    assert_eq!(shown(&world, "gr_1").await.used.calls, 0);
    // Another call is not asked about in vain: a grant asks nobody.
    assert_eq!(buy(&world, "a_7", 3, &json!({})).await["ok"], true);
    assert_eq!(shown(&world, "gr_1").await.used.calls, 1);
}

/// Two processes with one store: calls at once never use a grant more often than it allows.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_at_once_share_the_uses() {
    for probe in [
        Probe::write as fn(&str) -> Probe,
        Probe::external,
        Probe::read,
    ] {
        let world = World::logging_with([probe("shop.buy").confirmed()], with_language);
        let other = world.replica_with([probe("shop.buy").confirmed()], with_language);
        let thrice = NewGrant {
            calls: Some(3),
            ..grant()
        };
        make(&world, &thrice).await;
        let mut calls = tokio::task::JoinSet::new();
        for total in 0..16 {
            let world = if total % 2 == 0 { &world } else { &other };
            let executor = world.executor.clone();
            let arguments = json!({ "total": total });
            let call = call_as(agent("a_7"), "shop.buy", &arguments, &json!({}));
            calls.spawn(async move { executor.execute(call).await.ok });
        }
        let ran = calls.join_all().await;
        assert_eq!(ran.iter().filter(|ran| **ran).count(), 3);
        assert_eq!(shown(&world, "gr_1").await.used.calls, 3);
    }
}

/// A condition is read once, however many calls and grants it decides: reading one costs a thread.
#[tokio::test]
async fn a_condition_is_read_once() {
    let language = Arc::new(Counting::default());
    let own = language.clone();
    let probes = [Probe::write("shop.buy").confirmed()];
    let world = World::logging_with(probes, |builder| builder.grant_language(own));
    for total in ["100", "200"] {
        let below = NewGrant {
            when: Some(format!("total<{total}")),
            ..grant()
        };
        make(&world, &below).await;
    }
    let made = language.0.load(Ordering::SeqCst);
    for total in 1..9 {
        assert_eq!(buy(&world, "a_7", total, &json!({})).await["ok"], true);
    }
    assert_eq!(language.0.load(Ordering::SeqCst) - made, 2);
}
