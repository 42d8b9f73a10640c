//! A5, A17: writes without a key. A call that a model sends twice is done once, and a call that it means twice is done
//! twice.

use std::sync::Arc;
use std::time::Duration;

use countersign::authorize::{Authorizer, Decision, UnkeyedWrites, Verdict};
use countersign::contract::tool::Change;
use countersign::contract::{
    Actor, ActorType, Input, Parameter, RequestEnvelope, ToolSpec, ValueKind,
};
use countersign::observe::{Origin, Surface};
use countersign::unavailable::Unavailable;
use countersign::{BoxFuture, Principal, ToolCall, ToolError};
use serde_json::{Value, json};

use crate::world::{Probe, Runs, World};

/// A policy with the same rule for all callers.
struct Fixed(Rule);

/// A rule, and its window.
type Rule = (Option<UnkeyedWrites>, Option<Duration>);

const USUAL: Rule = (None, None);

impl Authorizer for Fixed {
    fn decide<'a>(
        &'a self,
        _: &'a Principal,
        _: &'a ToolSpec,
    ) -> BoxFuture<'a, Result<Decision, Unavailable>> {
        let decision = Decision {
            verdict: Verdict::Allow,
            policy_revision: "test".into(),
            must_confirm: false,
            approval_valid_for: None,
            four_eyes: false,
            cool_down: None,
            unkeyed_writes: self.0.0,
            unkeyed_window: self.0.1,
            conditions: None,
        };
        Box::pin(std::future::ready(Ok(decision)))
    }
}

/// A call over a surface, and the members that it leaves out.
#[derive(Clone)]
struct Sent {
    surface: Surface,
    call_id: Option<&'static str>,
    arguments: Value,
    envelope: Value,
    principal: Principal,
}

fn sent() -> Sent {
    Sent {
        surface: Surface::Mcp,
        call_id: None,
        arguments: json!({"sku": "S-1"}),
        envelope: json!({}),
        principal: Principal::user("u_1"),
    }
}

/// A tool with its effect in the store, one with its effect elsewhere, and how often they have run.
fn world(rule: Rule) -> (World, [(&'static str, Runs); 2]) {
    let sku = Parameter::new("sku", ValueKind::String, "");
    let input = Input::parameters([sku]);
    let add = Probe::write("cart.add").input(input.clone());
    let send = Probe::external("sms.send").input(input);
    let runs = [("cart.add", add.runs()), ("sms.send", send.runs())];
    let world = World::logging_with([add, send], |builder| {
        builder.authorizer(Arc::new(Fixed(rule)))
    });
    (world, runs)
}

async fn send(world: &World, tool: &str, sent: Sent) -> Value {
    let envelope: RequestEnvelope = serde_json::from_value(sent.envelope).unwrap();
    let origin = Origin {
        surface: sent.surface,
        call_id: sent.call_id.map(Into::into),
    };
    let call = ToolCall::new(tool, sent.arguments.to_string(), sent.principal);
    world.execute(call.envelope(envelope).origin(origin)).await
}

/// Checks the number of runs of a tool when one call follows another.
async fn check(rule: Rule, first: Sent, wait: u64, second: Sent, runs: u32) {
    // Keys begin anew every window: a first call near the end of one is found from the next.
    for (begin, (world, tools)) in [0, 77].map(|begin| (begin, world(rule))) {
        world.advance_seconds(begin);
        for (tool, ran) in tools {
            let one = Box::pin(send(&world, tool, first.clone())).await;
            assert_eq!(one["ok"], true, "{one:#}");
            world.advance_seconds(wait);
            let two = Box::pin(send(&world, tool, second.clone())).await;
            assert_eq!(two["ok"], true, "{two:#}");
            ran.check(runs);
            let warned = two["warnings"]
                .as_array()
                .is_some_and(|all| all.iter().any(|one| one["code"] == "REPEATED_CALL"));
            assert_eq!(warned, runs == 1, "{two:#}");
            assert_eq!(two["replayed"] == true, runs == 1, "{two:#}");
        }
    }
}

#[tokio::test]
async fn what_a_model_sends_twice_is_done_once() {
    check(USUAL, sent(), 0, sent(), 1).await;
    check(USUAL, sent(), 119, sent(), 1).await;
    check(USUAL, sent(), 121, sent(), 2).await;
    let agent = Actor {
        kind: ActorType::Agent,
        id: "a_1".into(),
    };
    let agent = Sent {
        surface: Surface::Http,
        principal: Principal::new(agent, "u_1"),
        ..sent()
    };
    check(USUAL, agent.clone(), 30, agent, 1).await;
}

/// A server's hint that a tool only reads is not believed, but its answer is not kept either: it may be another one by now.
#[tokio::test]
async fn what_is_hinted_to_read_is_read_again() {
    let count =
        Probe::external("tickets.count").with(|behaviour| behaviour.change = Change::Nothing);
    let ran = count.runs();
    let world = World::logging_with([count], |builder| {
        builder.authorizer(Arc::new(Fixed(USUAL)))
    });
    let empty = || Sent {
        arguments: json!({}),
        ..sent()
    };
    for runs in [1, 2] {
        let answer = send(&world, "tickets.count", empty()).await;
        assert_eq!(
            (&answer["ok"], &answer["replayed"]),
            (&json!(true), &Value::Null),
            "{answer:#}"
        );
        ran.check(runs);
    }
    // Whoever repeats it with a key means the same call.
    let keyed = || Sent {
        envelope: json!({"idempotency_key": "k"}),
        ..empty()
    };
    for _ in 0..2 {
        send(&world, "tickets.count", keyed()).await;
    }
    ran.check(3);
}

#[tokio::test]
async fn what_is_another_call_is_done() {
    let other = |arguments: Value, envelope: Value| Sent {
        arguments,
        envelope,
        ..sent()
    };
    let same = json!({"sku": "S-1"});
    check(USUAL, sent(), 1, other(json!({"sku": "S-2"}), json!({})), 2).await;
    check(
        USUAL,
        sent(),
        1,
        other(same.clone(), json!({"session_id": "s_2"})),
        2,
    )
    .await;
    check(
        USUAL,
        sent(),
        1,
        other(same.clone(), json!({"currency": "EUR"})),
        2,
    )
    .await;
    check(
        USUAL,
        sent(),
        1,
        other(same.clone(), json!({"idempotency_key": "k"})),
        2,
    )
    .await;
    let elsewhere = Sent {
        surface: Surface::Http,
        ..sent()
    };
    check(USUAL, elsewhere.clone(), 1, elsewhere, 2).await;
    let named = |call_id| Sent {
        surface: Surface::Provider,
        call_id: Some(call_id),
        ..sent()
    };
    check(USUAL, named("call_1"), 1, named("call_2"), 2).await;
    check(USUAL, named("call_1"), 1, named("call_1"), 1).await;
}

/// The value of `again` is part of the key, so that a call that is meant again is made once as well.
#[tokio::test]
async fn a_model_can_mean_it_again() {
    let again = |value: Value| Sent {
        arguments: json!({"sku": "S-1", "again": value}),
        ..sent()
    };
    check(USUAL, sent(), 1, again(json!(true)), 2).await;
    check(USUAL, sent(), 1, again(json!("once more")), 2).await;
    check(USUAL, again(json!(2)), 1, again(json!(2)), 1).await;
    check(USUAL, again(json!(2)), 1, again(json!(3)), 2).await;
    // Null and 1 are what a call is anyway, and with a key it has no meaning.
    check(USUAL, sent(), 1, again(Value::Null), 1).await;
    check(USUAL, sent(), 1, again(json!(1)), 1).await;
    let mut keyed = again(json!(2));
    keyed.envelope = json!({"idempotency_key": "k"});
    let (world, [(tool, runs), _]) = world(USUAL);
    for _ in 0..2 {
        let reply = send(&world, tool, keyed.clone()).await;
        assert_eq!(reply["ok"], true, "{reply:#}");
    }
    runs.check(1);
}

#[tokio::test]
async fn a_policy_decides() {
    let window = Duration::from_secs(10);
    let derive = (Some(UnkeyedWrites::Derive), Some(window));
    let program = Sent {
        surface: Surface::InProcess,
        ..sent()
    };
    check(derive, program.clone(), 5, program.clone(), 1).await;
    check(derive, program.clone(), 11, program, 2).await;
    // The time alone holds for whoever has a key derived anyway.
    check((None, Some(window)), sent(), 9, sent(), 1).await;
    check((None, Some(window)), sent(), 11, sent(), 2).await;
    check((Some(UnkeyedWrites::Allow), None), sent(), 1, sent(), 2).await;
    let (refusing, _) = world((Some(UnkeyedWrites::Refuse), None));
    let refused = send(&refusing, "cart.add", sent()).await;
    assert_eq!(
        refused["error"]["details"]["field"], "/idempotency_key",
        "{refused:#}"
    );
}

/// A repeat while the first still runs waits for its answer.
#[tokio::test]
async fn parallel_repeats_are_one() {
    let (world, [(tool, runs), _]) = world(USUAL);
    let one = || send(&world, tool, sent());
    let (a, b, c, d) = tokio::join!(one(), one(), one(), one());
    let mut repeated = 0;
    for reply in [a, b, c, d] {
        assert_eq!(reply["ok"], true, "{reply:#}");
        let warnings = reply["warnings"].as_array().unwrap();
        repeated += warnings
            .iter()
            .filter(|warning| warning["code"] == "REPEATED_CALL")
            .count();
    }
    assert_eq!(repeated, 3, "all but the first are told");
    runs.check(1);
}

/// A call that failed without an effect is made again at once.
#[tokio::test]
async fn a_failure_is_no_answer_to_repeat() {
    let tool = Probe::write("cart.add").body(|_, _| {
        Box::pin(async { Err(ToolError::invalid("/sku", "there is none").without_effect()) })
    });
    let runs = tool.runs();
    let world = World::logging([tool]);
    for _ in 0..20 {
        let reply = send(&world, "cart.add", sent()).await;
        assert_eq!(reply["error"]["code"], "INVALID_ARGUMENT", "{reply:#}");
    }
    runs.check(20);
}
