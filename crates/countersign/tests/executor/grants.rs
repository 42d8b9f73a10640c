//! Standing grants: a user's yes in advance counts within its bounds, for the agent that it was given to, and never for
//! more than the policy allows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use countersign::approve::SCOPE_ANSWER;
use countersign::archive::{Archive, SCOPE_ERASE};
use countersign::authorize::{Authorizer, Decision, Facts, Verdict};
use countersign::contract::grant::GrantAmount;
use countersign::contract::tool::{AmountUnit, Recovery};
use countersign::contract::{
    Actor, ActorType, ErrorCode, Grant, GrantState, Input, NewGrant, Parameter, ToolName, ToolSpec,
    ValueKind,
};
use countersign::executor::ExecutorBuilder;
use countersign::grant::{Clause, Error, Language, Wanted, Wrong};
use countersign::ids::RandomIds;
use countersign::ledger::Pots as _;
use countersign::unavailable::Unavailable;
use countersign::{BoxFuture, Principal, ToolError};
use countersign_evidence::note::SigningKey;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::world::{Probe, World, call_as, check_error};

const NEEDS: &str = "NEEDS_USER_CONFIRMATION";

pub(crate) fn agent(id: &str) -> Principal {
    Principal::new(actor(id), "u_1")
}

pub(crate) fn actor(id: &str) -> Actor {
    Actor {
        kind: ActorType::Agent,
        id: id.to_owned(),
    }
}

/// A grant to `a_7` for `shop.buy`, for a day.
fn grant() -> NewGrant {
    NewGrant {
        user_id: None,
        to: actor("a_7"),
        tools: vec![ToolName::new("shop.buy").unwrap()],
        when: None,
        calls: None,
        amount: None,
        until: "2026-11-16T12:00:00Z".to_owned(),
        parent: None,
    }
}

fn euros(limit: &str) -> GrantAmount {
    GrantAmount {
        limit: limit.to_owned(),
        currency: "EUR".to_owned(),
        at: Some("/total".to_owned()),
        currency_at: None,
        unit: AmountUnit::Major,
    }
}

/// A language with one kind of condition: `member<number`.
#[derive(Debug)]
pub(crate) struct Below;

struct Bound {
    member: String,
    most: f64,
}

impl Language for Below {
    fn read(&self, text: &str, tools: &[&ToolSpec]) -> Result<Box<dyn Clause>, Wrong> {
        let wrong = |offset: usize, message: &str| Wrong {
            offset,
            message: message.to_owned(),
        };
        let (member, most) = text.split_once('<').ok_or_else(|| wrong(0, "no <"))?;
        let most = most
            .parse()
            .map_err(|_| wrong(member.len() + 1, "no number"))?;
        if !tools.is_empty() && member == "unknown" {
            return Err(wrong(0, "there is no such member"));
        }
        let member = member.to_owned();
        Ok(Box::new(Bound { member, most }))
    }
}

impl Clause for Bound {
    fn holds(&self, facts: &Facts<'_>) -> Option<bool> {
        let value = facts.arguments.get(&self.member)?.as_f64()?;
        Some(value < self.most)
    }
}

fn with_language(builder: ExecutorBuilder) -> ExecutorBuilder {
    builder.grant_language(Arc::new(Below))
}

fn world(probe: Probe) -> World {
    World::logging_with([probe.confirmed()], with_language)
}

async fn make(world: &World, new: &NewGrant) -> Grant {
    let by = Principal::user("u_1");
    world.executor.grants().make(&by, new).await.unwrap()
}

async fn revoke(world: &World, id: &str) -> Grant {
    let by = Principal::user("u_1");
    let revoked = world.executor.grants().revoke(id, &by, Some("enough"));
    revoked.await.unwrap()
}

async fn shown(world: &World, id: &str) -> Grant {
    let by = Principal::user("u_1");
    world.executor.grants().show(id, &by).await.unwrap()
}

async fn buy(world: &World, who: &str, total: u32, envelope: &Value) -> Value {
    let arguments = json!({ "total": total });
    let call = call_as(agent(who), "shop.buy", &arguments, envelope);
    world.execute(call).await
}

#[track_caller]
fn check_asked(reply: &Value) {
    check_error(reply, NEEDS, &json!({}));
    let is_question = reply["error"]["details"]["approval_id"].is_string();
    assert!(is_question, "{reply:#}");
}

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
            assert!(
                acts.contains(&&json!({
                    "event": "granted",
                    "grant": "gr_1",
                    "tools": ["shop.buy"],
                    "until": "2026-11-16T12:00:00Z",
                })),
                "{acts:?}"
            );
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

/// Revoking ends what is derived, at once and after a restart; the end of the time does, too.
#[tokio::test]
async fn revoking_cascades_and_time_ends() {
    let probes = || [Probe::write("shop.buy").confirmed()];
    let world = World::logging_with(probes(), with_language);
    make(&world, &grant()).await;
    let child = NewGrant {
        to: actor("a_8"),
        parent: Some("gr_1".to_owned()),
        until: "2026-11-15T18:00:00Z".to_owned(),
        ..grant()
    };
    make(&world, &child).await;
    let grandchild = NewGrant {
        to: actor("a_9"),
        parent: Some("gr_2".to_owned()),
        until: "2026-11-15T18:00:00Z".to_owned(),
        ..grant()
    };
    make(&world, &grandchild).await;
    assert_eq!(buy(&world, "a_9", 1, &json!({})).await["ok"], true);
    // Every use is one of all that it is derived from.
    for id in ["gr_1", "gr_2", "gr_3"] {
        assert_eq!(shown(&world, id).await.used.calls, 1, "{id}");
    }
    let log = world.log().await;
    let (record, _) = log.last().unwrap();
    assert_eq!(record["act"]["grant_id"], "gr_3");
    assert_eq!(record["links"].as_array().unwrap().len(), 3, "{record:#}");

    // After a restart they are the same.
    let restarted = world.replica_with(probes(), with_language);
    assert_eq!(buy(&restarted, "a_9", 2, &json!({})).await["ok"], true);
    let revoked = revoke(&world, "gr_1").await;
    assert_eq!(revoked.state, GrantState::Revoked);
    assert_eq!(revoked.revoked.unwrap().reason.as_deref(), Some("enough"));
    for (id, who) in [("gr_1", "a_7"), ("gr_2", "a_8"), ("gr_3", "a_9")] {
        assert_eq!(shown(&world, id).await.state, GrantState::Revoked, "{id}");
        check_asked(&buy(&restarted, who, 3, &json!({})).await);
        check_asked(&buy(&world, who, 3, &json!({})).await);
    }
    // Twice is the same as once.
    let again = revoke(&world, "gr_1").await;
    assert_eq!(again.state, GrantState::Revoked);

    let later = world.replica_with(probes(), with_language);
    make(&later, &grant()).await;
    assert_eq!(buy(&later, "a_7", 4, &json!({})).await["ok"], true);
    later.advance_seconds(24 * 3_600);
    check_asked(&buy(&later, "a_7", 5, &json!({})).await);
    assert_eq!(shown(&later, "gr_4").await.state, GrantState::Ended);
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

/// A policy that says the same of every tool.
pub(crate) struct Fixed {
    pub(crate) denies: bool,
    pub(crate) must_confirm: bool,
    pub(crate) four_eyes: bool,
}

impl Authorizer for Fixed {
    fn decide<'a>(
        &'a self,
        _: &'a Principal,
        _: &'a ToolSpec,
    ) -> BoxFuture<'a, Result<Decision, Unavailable>> {
        let decision = Decision {
            verdict: if self.denies {
                Verdict::Forbid {
                    hint: "ask somebody else".into(),
                }
            } else {
                Verdict::Allow
            },
            policy_revision: "fixed".into(),
            must_confirm: self.must_confirm,
            approval_valid_for: None,
            four_eyes: self.four_eyes,
            cool_down: None,
            unkeyed_writes: None,
            unkeyed_window: None,
            conditions: None,
        };
        Box::pin(std::future::ready(Ok(decision)))
    }
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

/// A14: only the user, or who may answer for the user, makes and revokes a grant. An agent never does.
#[tokio::test]
async fn only_people_give_authority() {
    let world = world(Probe::write("shop.buy"));
    let grants = world.executor.grants();
    let of_user = NewGrant {
        user_id: Some("u_1".to_owned()),
        ..grant()
    };
    for (by, is_agent) in [
        (agent("a_7").scope(SCOPE_ANSWER), true),
        (Principal::user("u_2"), false),
    ] {
        let refused = grants.make(&by, &of_user).await.unwrap_err();
        match refused {
            Error::Agent => assert!(is_agent),
            Error::NotTheirs => assert!(!is_agent),
            other => panic!("{other}"),
        }
    }
    let operator = Principal::user("op").scope(SCOPE_ANSWER);
    let made = grants.make(&operator, &of_user).await.unwrap();
    assert_eq!(
        (made.made_by.id.as_str(), made.user_id.as_str()),
        ("op", "u_1")
    );
    assert_eq!(buy(&world, "a_7", 1, &json!({})).await["ok"], true);
    // An agent sees what was given to it, and nothing else; it ends nothing.
    let listed = grants
        .list(&agent("a_7"), &Wanted::default())
        .await
        .unwrap();
    assert_eq!(listed.len(), 1);
    let other = grants
        .list(&agent("a_8"), &Wanted::default())
        .await
        .unwrap();
    assert_eq!(other.len(), 0);
    let refused = grants
        .revoke("gr_1", &agent("a_7"), None)
        .await
        .unwrap_err();
    assert!(matches!(refused, Error::Agent), "{refused}");
    let refused = grants.revoke("gr_1", &Principal::user("u_2"), None).await;
    assert!(matches!(refused, Err(Error::Unknown(_))), "{refused:?}");
    let all = grants.list(&operator, &Wanted::default()).await.unwrap();
    assert_eq!(all.len(), 1);
    grants.revoke("gr_1", &operator, None).await.unwrap();
    check_asked(&buy(&world, "a_7", 2, &json!({})).await);
}

/// What cannot be a grant is refused, with the member that is wrong.
#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one table of refusals")]
async fn a_grant_that_means_nothing_is_refused() {
    let total = Parameter::new("total", ValueKind::Integer, "");
    let probe = Probe::write("shop.buy")
        .input(Input::parameters([total]))
        .confirmed();
    let world = World::logging_with([probe], with_language);
    make(
        &world,
        &NewGrant {
            calls: Some(5),
            amount: Some(euros("10")),
            ..grant()
        },
    )
    .await;
    let derived = || NewGrant {
        parent: Some("gr_1".to_owned()),
        ..grant()
    };
    let tool = |name: &str| vec![ToolName::new(name).unwrap()];
    let user = Actor {
        kind: ActorType::User,
        id: "u_2".to_owned(),
    };
    let wrong: Vec<(&str, NewGrant)> = vec![
        (
            "/to",
            NewGrant {
                to: user,
                ..grant()
            },
        ),
        (
            "/tools",
            NewGrant {
                tools: Vec::new(),
                ..grant()
            },
        ),
        (
            "/tools",
            NewGrant {
                tools: [tool("shop.buy"), tool("shop.buy")].concat(),
                ..grant()
            },
        ),
        (
            "/tools/0",
            NewGrant {
                tools: tool("shop.nothing"),
                ..grant()
            },
        ),
        (
            "/until",
            NewGrant {
                until: "2026-11-15T12:00:00Z".to_owned(),
                ..grant()
            },
        ),
        (
            "/until",
            NewGrant {
                until: "2027-11-17T12:00:00Z".to_owned(),
                ..grant()
            },
        ),
        (
            "/until",
            NewGrant {
                until: "tomorrow".to_owned(),
                ..grant()
            },
        ),
        (
            "/calls",
            NewGrant {
                calls: Some(0),
                ..grant()
            },
        ),
        (
            "/amount",
            NewGrant {
                amount: Some(euros("0")),
                ..grant()
            },
        ),
        (
            "/amount",
            NewGrant {
                amount: Some(euros("-1")),
                ..grant()
            },
        ),
        (
            "/amount/at",
            NewGrant {
                amount: Some(GrantAmount {
                    at: None,
                    ..euros("1")
                }),
                ..grant()
            },
        ),
        (
            "/amount/at",
            NewGrant {
                amount: Some(GrantAmount {
                    at: Some("/price".to_owned()),
                    ..euros("1")
                }),
                ..grant()
            },
        ),
        (
            "/when",
            NewGrant {
                when: Some("unknown<1".to_owned()),
                ..grant()
            },
        ),
        (
            "/parent",
            NewGrant {
                parent: Some("gr_0".to_owned()),
                ..grant()
            },
        ),
        (
            "/until",
            NewGrant {
                until: "2026-11-16T12:00:01Z".to_owned(),
                ..derived()
            },
        ),
        (
            "/calls",
            NewGrant {
                calls: Some(6),
                ..derived()
            },
        ),
        (
            "/amount",
            NewGrant {
                amount: Some(euros("10.01")),
                ..derived()
            },
        ),
        (
            "/amount",
            NewGrant {
                amount: Some(GrantAmount {
                    currency: "JPY".to_owned(),
                    ..euros("1")
                }),
                ..derived()
            },
        ),
    ];
    let by = Principal::user("u_1");
    for (field, new) in wrong {
        let refused = world.executor.grants().make(&by, &new).await;
        let body = refused.unwrap_err().into_body();
        assert_eq!(body.code, ErrorCode::InvalidArgument);
        assert_eq!(body.details.field.as_deref(), Some(field), "{new:?}");
    }
    let wrong = NewGrant {
        when: Some("total<x".to_owned()),
        ..grant()
    };
    let body = world
        .executor
        .grants()
        .make(&by, &wrong)
        .await
        .unwrap_err()
        .into_body();
    let body = json!(body);
    assert_eq!(
        body["message"],
        "the condition is wrong at column 7: no number"
    );
    assert_eq!(body["details"]["offset"], 6);

    // Eight grants in a row are enough.
    let mut parent = "gr_1".to_owned();
    for depth in 2..=9 {
        let child = NewGrant {
            parent: Some(parent.clone()),
            ..grant()
        };
        let made = world.executor.grants().make(&by, &child).await;
        match made {
            Ok(made) => parent = made.id,
            Err(error) => {
                assert_eq!(depth, 9, "{error}");
                return;
            }
        }
    }
    panic!("nine grants were derived from each other");
}

/// A13: erasing the user removes the grants, what names the user beside them, and their pots.
#[tokio::test]
async fn grants_go_with_their_user() {
    let world = world(Probe::write("shop.buy"));
    make(&world, &grant()).await;
    assert_eq!(buy(&world, "a_7", 1, &json!({})).await["ok"], true);
    assert_eq!(world.store.pots(Some("u_1"), 10).await.unwrap().len(), 1);
    let key = SigningKey::from_seed("example.com/log", &[3; 32]).unwrap();
    let archive = Archive::new(
        world.store.clone(),
        world.executor.vault().clone(),
        world.clock.clone(),
        Arc::new(RandomIds::default()),
        key.verifying_key(),
    );
    let eraser = Principal::user("op").scope(SCOPE_ERASE);
    archive.erase("u_1", &eraser, "asked to").await.unwrap();
    assert!(world.store.pots(None, 10).await.unwrap().is_empty());
    let operator = Principal::user("op").scope(SCOPE_ANSWER);
    let left = world
        .executor
        .grants()
        .list(&operator, &Wanted::default())
        .await;
    assert!(left.unwrap().is_empty());
    let gone = world.executor.grants().show("gr_1", &operator).await;
    assert!(matches!(gone, Err(Error::Unknown(_))), "{gone:?}");
    check_asked(&buy(&world, "a_7", 2, &json!({})).await);
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
