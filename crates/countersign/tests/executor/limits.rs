//! Paces, and the end of a model that repeats itself (facts: runaway loops).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use countersign::authorize::{Clause, Facts, When as Condition};
use countersign::contract::{Actor, ActorType, ErrorCode};
use countersign::limit::{Breaker, Counted, Limit, LimitRules, Limits, Rate, Repeats, ToolLimit};
use countersign::pattern::ToolPattern;
use countersign::{BoxFuture, Principal, ToolError};
use countersign_testkit::faulty::{FaultyStore, Op, When};
use serde_json::{Value, json};

use crate::world::{Probe, World, call_as, check_error, check_ok};

/// The same wherever it is counted.
#[tokio::test]
async fn a_used_up_allowance_says_when_to_come_back() {
    let rate = Rate::new(1, Duration::from_secs(10));
    for rate in [rate, rate.shared()] {
        check_used_up(rate).await;
    }
}

async fn check_used_up(rate: Rate) {
    let limits = Arc::new(Limits::new(LimitRules {
        user: vec![rate.into()],
        ..LimitRules::default()
    }));
    let world = World::of([Probe::read("sample.read")], |builder| {
        builder.limiter(limits)
    });
    let send = async || world.send("sample.read", &json!({}), &json!({})).await;
    check_ok(&send().await, "req_1", &json!({"run": 1}));
    assert_eq!(
        send().await["error"],
        json!({
            "code": "RATE_LIMITED",
            "message": "the user's rate limit is reached",
            "details": {
                "retryable": true,
                "retry_after_ms": 10_000,
                "hint": "wait for retry_after_ms, then send the same call again",
                "limit": "user",
            },
        })
    );
    let other = call_as(
        Principal::user("u_2"),
        "sample.read",
        &json!({}),
        &json!({}),
    );
    check_ok(&world.execute(other).await, "req_3", &json!({"run": 2}));
    world.advance_seconds(10);
    check_ok(&send().await, "req_4", &json!({"run": 3}));
}

fn tool_limit(rate: Rate) -> LimitRules {
    let tools = ToolPattern::new("sample.*").unwrap();
    let counted = Counted::Together;
    let limit = ToolLimit {
        tools,
        rate,
        counted,
        when: None,
    };
    LimitRules {
        tools: vec![limit],
        ..LimitRules::default()
    }
}

/// Shared limits are counted over all processes; others by each process.
#[tokio::test]
async fn replicas_share_the_count_where_they_are_told_to() {
    let rate = Rate::new(3, Duration::from_mins(1));
    for (rate, expected) in [(rate.shared(), 3), (rate, 6)] {
        let limits = || Arc::new(Limits::new(tool_limit(rate)));
        let probe = || [Probe::read("sample.read")];
        let first = World::of(probe(), |builder| builder.limiter(limits()));
        let second = first.replica_with(probe(), |builder| builder.limiter(limits()));
        let mut admitted = 0;
        for _ in 0..5 {
            for world in [&first, &second] {
                let reply = world.send("sample.read", &json!({}), &json!({})).await;
                admitted += u32::from(reply["ok"] == true);
            }
        }
        assert_eq!(admitted, expected, "{rate:?}");
    }
}

/// Of a user and of a tool, one counted here and one in the store, in both directions.
#[tokio::test]
async fn a_call_that_the_store_refuses_uses_nothing_up_here() {
    let (one, two) = (
        Rate::new(1, Duration::from_mins(1)),
        Rate::new(2, Duration::from_mins(1)),
    );
    for (user, tool) in [(two, one.shared()), (two.shared(), one)] {
        let limits = Arc::new(Limits::new(LimitRules {
            user: vec![user.into()],
            ..tool_limit(tool)
        }));
        let probes = [Probe::read("sample.read"), Probe::read("x.y")];
        let world = World::of(probes, |builder| builder.limiter(limits));
        let mut refusals = Vec::new();
        for tool in ["sample.read", "sample.read", "sample.read", "x.y", "x.y"] {
            let reply = world.send(tool, &json!({}), &json!({})).await;
            refusals.push(reply["error"]["details"]["limit"].clone());
        }
        assert_eq!(
            json!(refusals),
            json!([null, "tool", "tool", null, "user"]),
            "{user:?} {tool:?}"
        );
    }
}

/// Two rules with the same pattern are two counts, and the stricter one holds.
#[tokio::test]
async fn two_shared_limits_of_the_same_tools_are_both_kept() {
    let mut rules = tool_limit(Rate::new(2, Duration::from_mins(1)).shared());
    let hour = tool_limit(Rate::new(3, Duration::from_hours(1)).shared());
    rules.tools.extend(hour.tools);
    let limits = Arc::new(Limits::new(rules));
    let world = World::of([Probe::read("sample.read")], |builder| {
        builder.limiter(limits)
    });
    let send = async || world.send("sample.read", &json!({}), &json!({})).await["ok"].clone();
    assert_eq!(
        [send().await, send().await, send().await],
        [true, true, false]
    );
    world.advance_seconds(60);
    assert_eq!([send().await, send().await], [true, false]);
}

/// If the store cannot count, no call is admitted, whether or not the store has counted it; the allowance in this
/// process is given back.
#[tokio::test]
async fn a_store_that_cannot_count_lets_nobody_in() {
    for when in [When::Before, When::After] {
        for is_breaker in [false, true] {
            let probe = Probe::read("sample.read");
            let runs = probe.runs();
            let is_failing = Arc::new(AtomicBool::new(true));
            let failing = is_failing.clone();
            let limits = Arc::new(Limits::new(LimitRules {
                user: vec![Rate::new(1, Duration::from_mins(1)).into()],
                ..tool_limit(Rate::new(2, Duration::from_mins(1)).shared())
            }));
            let world = World::made(
                [probe],
                |store| store,
                move |builder, store| {
                    let plan = move |op, at| {
                        let fails = op == Op::Pace && at == when && failing.load(Ordering::SeqCst);
                        let fails: BoxFuture<'static, bool> = Box::pin(std::future::ready(fails));
                        fails
                    };
                    let builder = builder.store(Arc::new(FaultyStore::new(store, plan)));
                    if is_breaker {
                        builder.breaker(breaker(&[], true))
                    } else {
                        builder.limiter(limits)
                    }
                },
            );
            let send = async || world.send("sample.read", &json!({}), &json!({})).await;
            let details = json!({"retryable": true, "source": "gateway"});
            check_error(&send().await, "UPSTREAM_ERROR", &details);
            runs.check(0);
            is_failing.store(false, Ordering::SeqCst);
            assert_eq!(send().await["ok"], true, "{when:?}, breaker: {is_breaker}");
        }
    }
}

/// An agent that works for many has one pace for all of them.
#[tokio::test]
async fn an_agent_is_limited_whomever_it_works_for() {
    let limits = Arc::new(Limits::new(LimitRules {
        agent: vec![Rate::new(1, Duration::from_mins(1)).into()],
        ..LimitRules::default()
    }));
    let world = World::of([Probe::read("sample.read")], |builder| {
        builder.limiter(limits)
    });
    let send = async |user: &str| {
        let agent = Actor {
            kind: ActorType::Agent,
            id: "a_7".into(),
        };
        let principal = Principal::new(agent, user);
        let call = call_as(principal, "sample.read", &json!({}), &json!({}));
        world.execute(call).await
    };
    check_ok(&send("u_1").await, "req_1", &json!({"run": 1}));
    check_error(
        &send("u_2").await,
        "RATE_LIMITED",
        &json!({"limit": "agent"}),
    );
}

/// Attack: a backend that may act for others names another agent with each call. The proved actor is counted.
#[tokio::test]
async fn an_agent_that_names_others_is_limited_all_the_same() {
    let rate = Rate::new(1, Duration::from_mins(1));
    for rate in [rate, rate.shared()] {
        let limits = Arc::new(Limits::new(LimitRules {
            agent: vec![rate.into()],
            ..LimitRules::default()
        }));
        let world = World::of([Probe::read("sample.read")], |builder| {
            builder.limiter(limits)
        });
        let send = async |kind: &str, id: &str| {
            let shop = Actor {
                kind: ActorType::System,
                id: "shop".into(),
            };
            let principal = Principal::without_user(shop).acting_for_others();
            let named = json!({"user_id": "u_1", "actor": {"type": kind, "id": id}});
            let call = call_as(principal, "sample.read", &json!({}), &named);
            world.execute(call).await
        };
        check_ok(&send("agent", "a_1").await, "req_1", &json!({"run": 1}));
        for (kind, id) in [("agent", "a_2"), ("user", "u_1")] {
            let reply = send(kind, id).await;
            check_error(&reply, "RATE_LIMITED", &json!({"limit": "agent"}));
        }
    }
}

/// Holds for calls that have the argument `large`.
struct IsLarge;

impl Clause for IsLarge {
    fn holds(&self, facts: &Facts<'_>) -> Option<bool> {
        Some(facts.arguments.get("large").is_some())
    }
}

/// A limit that looks at the arguments counts a call once, and an answered repeat never.
#[tokio::test]
async fn a_limit_on_arguments_counts_no_repeat() {
    let rate = Rate::new(2, Duration::from_mins(1));
    for rate in [rate, rate.shared()] {
        let limits = Arc::new(Limits::new(LimitRules {
            user: vec![Limit {
                rate,
                when: Some(Condition::new("large", true, Arc::new(IsLarge))),
            }],
            ..LimitRules::default()
        }));
        let probe = Probe::write("pay.send");
        let runs = probe.runs();
        let world = World::of([probe], |builder| builder.limiter(limits));
        let send = async |key: &str, arguments: Value| {
            let envelope = json!({ "idempotency_key": key });
            world.send("pay.send", &arguments, &envelope).await
        };
        for key in ["k1", "k1", "k2", "k1", "k2"] {
            assert_eq!(send(key, json!({"large": 1})).await["ok"], true);
        }
        assert_eq!(send("k3", json!({})).await["ok"], true);
        let reply = send("k4", json!({"large": 1})).await;
        check_error(&reply, "RATE_LIMITED", &json!({"limit": "user"}));
        runs.check(3);
    }
}

fn breaker(except: &[&str], is_shared: bool) -> Arc<Breaker> {
    let except = except.iter().map(|tools| ToolPattern::new(tools).unwrap());
    Arc::new(Breaker::new(Repeats {
        calls_max: 2,
        within: Duration::from_mins(10),
        except: except.collect(),
        is_shared,
    }))
}

/// The model gets the message that it repeats itself, whether or not the call worked.
#[tokio::test]
async fn the_very_same_call_is_stopped_after_so_many_times() {
    for (works, is_shared) in [(true, false), (false, false), (true, true), (false, true)] {
        let probe = Probe::read("sample.read").body(move |_, _| {
            Box::pin(async move {
                if works {
                    return Ok(json!({}).into());
                }
                Err(ToolError::new(ErrorCode::NotFound, "nothing there"))
            })
        });
        let runs = probe.runs();
        let world = World::of([probe], |builder| builder.breaker(breaker(&[], is_shared)));
        let send = async |text: &Value, session: &str| {
            let envelope = json!({ "session_id": session });
            world.send("sample.read", text, &envelope).await
        };
        // As the binder reads it, not as it is written.
        send(&json!({"a": 1, "b": 2}), "s_1").await;
        send(&json!({"b": 2, "a": 1}), "s_1").await;
        world.advance_seconds(60);
        assert_eq!(
            send(&json!({"a": 1, "b": 2}), "s_1").await["error"],
            json!({
                "code": "RATE_LIMITED",
                "message": "the same call of sample.read was made 2 times within 600 seconds",
                "details": {
                    "retryable": true,
                    "retry_after_ms": 540_000,
                    "hint": "stop repeating this call: use the answers that you have, change the \
                             arguments, or tell the user what you are stuck on",
                    "limit": "identical_calls",
                },
            })
        );
        runs.check(2);
        // Other arguments, another session, or later.
        send(&json!({"a": 1, "b": 3}), "s_1").await;
        send(&json!({"a": 1, "b": 2}), "s_2").await;
        runs.check(4);
        world.advance_seconds(540);
        send(&json!({"a": 1, "b": 2}), "s_1").await;
        runs.check(5);
    }
}

/// A retry under the same key is what the caller should do; it is answered, not counted.
#[tokio::test]
async fn a_retry_under_its_key_is_no_repetition() {
    let probe = Probe::write("pay.send");
    let runs = probe.runs();
    let world = World::of([probe], |builder| builder.breaker(breaker(&[], false)));
    let send = async |key: &str| {
        let envelope = json!({ "idempotency_key": key });
        world.send("pay.send", &json!({}), &envelope).await
    };
    send("k1").await;
    for _ in 0..5 {
        assert_eq!(send("k1").await["replayed"], true);
    }
    assert_eq!(send("k2").await["ok"], true);
    let details = json!({"limit": "identical_calls"});
    check_error(&send("k3").await, "RATE_LIMITED", &details);
    runs.check(2);
}

/// Without a session, a loop is recognized by user and actor.
#[tokio::test]
async fn without_a_session_each_actor_is_counted_alone() {
    for is_shared in [false, true] {
        check_actors(is_shared).await;
    }
}

async fn check_actors(is_shared: bool) {
    let world = World::of([Probe::read("sample.read")], |builder| {
        builder.breaker(breaker(&[], is_shared))
    });
    let send = async |agent: &str| {
        let agent = Actor {
            kind: ActorType::Agent,
            id: agent.into(),
        };
        let principal = Principal::new(agent, "u_1");
        let call = call_as(principal, "sample.read", &json!({}), &json!({}));
        world.execute(call).await["ok"].clone()
    };
    for (agent, is_let_in) in [("a_1", true), ("a_1", true), ("a_1", false), ("a_2", true)] {
        assert_eq!(send(agent).await, is_let_in, "{agent}");
    }
}

/// Some tools are there to be asked again and again; and a rule can change while calls are counted.
#[tokio::test]
async fn tools_can_be_left_out_and_the_rule_can_change() {
    let breaker = breaker(&["job.*"], false);
    let shared = breaker.clone();
    let world = World::of([Probe::read("job.state"), Probe::read("x.y")], |builder| {
        builder.breaker(shared)
    });
    for _ in 0..5 {
        let reply = world.send("job.state", &json!({}), &json!({})).await;
        assert_eq!(reply["ok"], true);
    }
    let send = async || world.send("x.y", &json!({}), &json!({})).await["ok"].clone();
    assert_eq!(
        [send().await, send().await, send().await],
        [true, true, false]
    );
    breaker.replace(Some(Repeats {
        calls_max: 3,
        within: Duration::from_mins(10),
        except: Vec::new(),
        is_shared: false,
    }));
    assert_eq!([send().await, send().await], [true, false]);
    breaker.replace(None);
    assert_eq!(send().await, true);
}
