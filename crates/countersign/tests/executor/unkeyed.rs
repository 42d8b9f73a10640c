//! A5, A17: writes without a key. A call that a model sends twice is done once, and a call that it means twice is done
//! twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use countersign::authorize::{Authorizer, Decision, UnkeyedWrites, Verdict};
use countersign::contract::parameter::Sensitivity;
use countersign::contract::tool::{Change, Recovery};
use countersign::contract::{
    Actor, ActorType, Input, Parameter, RequestEnvelope, ToolSpec, ValueKind,
};
use countersign::executor::{Doubts, LookedUp};
use countersign::ledger::{ClaimQuery, ClaimRow, ClaimState, Claims as _};
use countersign::observe::{Origin, Surface};
use countersign::unavailable::Unavailable;
use countersign::{BoxFuture, Principal, Reconciled, Reply, ToolCall, ToolError};
use serde_json::{Value, json};

use crate::world::{Probe, Runs, World, check_error};

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

async fn claims(world: &World) -> Vec<ClaimRow> {
    let query = ClaimQuery {
        limit: 10,
        ..ClaimQuery::default()
    };
    world.store.claims(&query).await.unwrap()
}

type Found = fn() -> Result<Reconciled<Reply>, ToolError>;

/// A tool whose first call is lost, that can look it up.
fn losing(recovery: Recovery, found: Found) -> (Probe, Runs) {
    let sku = Parameter::new("sku", ValueKind::String, "");
    let runs = AtomicU32::new(0);
    let send = Probe::external("sms.send")
        .input(Input::parameters([sku]))
        .with(|behaviour| behaviour.recovery = recovery)
        .body(move |_, _| {
            let run = runs.fetch_add(1, Ordering::SeqCst) + 1;
            Box::pin(async move {
                match run {
                    1 => Err(ToolError::timeout("no answer from the network")),
                    _ => Ok(json!({ "run": run }).into()),
                }
            })
        })
        .finds(move |_| found());
    let runs = send.runs();
    (send, runs)
}

/// A5, A17: a call that may have happened is the same call when it is repeated, however much later: time does not make it
/// another one while its outcome is unknown.
#[tokio::test]
async fn a_repeat_of_a_call_in_doubt_is_no_new_call_after_its_window() {
    for wait in [60, 241, 100_000] {
        let (probe, runs) = losing(Recovery::Operator, || Ok(Reconciled::Unknown));
        let world = World::logging([probe]);
        let lost = send(&world, "sms.send", sent()).await;
        assert_eq!(lost["error"]["code"], "TIMEOUT", "{lost:#}");
        world.advance_seconds(wait);
        let again = send(&world, "sms.send", sent()).await;
        let details = json!({"reason": "in_doubt", "retryable": false});
        check_error(&again, "CONFLICT", &details);
        let other = Sent {
            arguments: json!({"sku": "S-2"}),
            ..sent()
        };
        assert_eq!(send(&world, "sms.send", other).await["ok"], true);
        runs.check(2);
    }
    // A tool that can look finds the answer.
    let (probe, runs) = losing(Recovery::Reconcile { grace_seconds: 0 }, || {
        Ok(Reconciled::Happened(json!("found").into()))
    });
    let world = World::logging([probe]);
    send(&world, "sms.send", sent()).await;
    world.advance_seconds(100_000);
    assert_eq!(send(&world, "sms.send", sent()).await["data"], "found");
    runs.check(1);
}

/// A9, A17: a call in doubt that no caller repeats is looked up after the grace, with the arguments of its intent, and is
/// settled once, with a record. A call that cannot be looked up stays in doubt.
#[tokio::test]
async fn a_call_that_nobody_repeats_is_looked_up() {
    let happened: Found = || Ok(Reconciled::Happened(json!({"id": 7}).into()));
    let did_not: Found = || Ok(Reconciled::DidNotHappen);
    let unknown: Found = || Ok(Reconciled::Unknown);
    let failing: Found = || Err(ToolError::timeout("no answer from the network"));
    let reconcile = Recovery::Reconcile { grace_seconds: 60 };
    for (recovery, found, state, happened) in [
        (reconcile, happened, ClaimState::Succeeded, Some(true)),
        (reconcile, did_not, ClaimState::Released, Some(false)),
        (reconcile, unknown, ClaimState::InDoubt, None),
        (reconcile, failing, ClaimState::InDoubt, None),
        (Recovery::Operator, happened, ClaimState::InDoubt, None),
    ] {
        let (probe, runs) = losing(recovery, found);
        let world = World::logging([probe]);
        let plain = Sent {
            surface: Surface::Http,
            ..sent()
        };
        send(&world, "sms.send", plain).await;
        let mut doubts = Doubts::default();
        world.advance_seconds(59);
        let early = world.executor.ask_about_doubts(&mut doubts).await.unwrap();
        assert_eq!(early, 0, "within the grace nobody is asked");
        world.advance_seconds(1);
        let settled = world.executor.ask_about_doubts(&mut doubts).await.unwrap();
        assert_eq!(settled, usize::from(happened.is_some()));
        // Another replica finds nothing left to settle.
        let (probe, _) = losing(recovery, found);
        let replica = world.replica([probe]).executor;
        let more = replica.ask_about_doubts(&mut Doubts::default()).await;
        assert_eq!(more.unwrap(), 0);
        let [claim] = <[_; 1]>::try_from(claims(&world).await).unwrap();
        assert_eq!(claim.state, state);
        let settled: Vec<_> = world
            .log()
            .await
            .into_iter()
            .filter(|(leaf, _)| leaf["kind"] == "resolution")
            .collect();
        let told: Vec<_> = settled
            .iter()
            .map(|(leaf, _)| leaf["act"]["happened"] == true)
            .collect();
        assert_eq!(told, happened.into_iter().collect::<Vec<_>>());
        runs.check(1);
    }
}

/// A17: what a look-up has found is the answer of a repeat, with the evidence of the look-up.
#[tokio::test]
async fn a_repeat_gets_what_the_look_up_found() {
    let (probe, runs) = losing(Recovery::Reconcile { grace_seconds: 0 }, || {
        let mut reply = Reply::from(json!({"id": 7}));
        reply.ttl_seconds = Some(30);
        Ok(Reconciled::Happened(reply))
    });
    let world = World::logging([probe]);
    let keyed = || Sent {
        envelope: json!({"idempotency_key": "k"}),
        ..sent()
    };
    send(&world, "sms.send", keyed()).await;
    let mut doubts = Doubts::default();
    assert_eq!(
        world.executor.ask_about_doubts(&mut doubts).await.unwrap(),
        1
    );
    let again = send(&world, "sms.send", keyed()).await;
    assert_eq!(
        (&again["data"], &again["replayed"], &again["ttl_seconds"]),
        (&json!({"id": 7}), &json!(true), &json!(30)),
        "{again:#}"
    );
    let id = again["evidence"]["snapshot_id"].as_str().unwrap();
    let (leaf, stored) = world
        .log()
        .await
        .into_iter()
        .find(|(leaf, _)| leaf["id"] == id)
        .unwrap();
    assert_eq!(leaf["act"]["event"], "reconciled");
    assert!(stored.payload.is_some());
    runs.check(1);
}

/// A declared secret is in no record, so a call with one is not looked up by itself.
#[tokio::test]
async fn a_secret_is_not_kept_for_a_look_up() {
    let secret = Parameter::new("sku", ValueKind::String, "").sensitivity(Sensitivity::Secret);
    let (probe, _) = losing(Recovery::Reconcile { grace_seconds: 0 }, || {
        Ok(Reconciled::Happened(json!(1).into()))
    });
    let world = World::logging([probe.input(Input::parameters([secret]))]);
    send(&world, "sms.send", sent()).await;
    let claims = claims(&world).await;
    let asked = world.executor.ask_about(&claims[0], None).await.unwrap();
    assert_eq!(asked, LookedUp::NotKept);
}

/// A server asks again and again, less and less often, until the tool knows.
#[tokio::test(start_paused = true)]
async fn a_tool_is_asked_until_it_knows() {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let (probe, _) = losing(Recovery::Reconcile { grace_seconds: 0 }, || {
        match ASKED.fetch_add(1, Ordering::SeqCst) {
            0 | 1 => Ok(Reconciled::Unknown),
            _ => Ok(Reconciled::Happened(json!(1).into())),
        }
    });
    let world = World::logging([probe]);
    send(&world, "sms.send", sent()).await;
    let mut doubts = Doubts::default();
    let mut asked = Vec::new();
    for second in 0..120 {
        world.executor.ask_about_doubts(&mut doubts).await.unwrap();
        let now = ASKED.load(Ordering::SeqCst);
        if now as usize > asked.len() {
            asked.push(second);
        }
        world.advance_seconds(1);
    }
    let [first, second, third] = asked[..] else {
        panic!("asked at {asked:?}");
    };
    assert_eq!(first, 0);
    assert!((15..=25).contains(&(second - first)), "{asked:?}");
    assert!((30..=50).contains(&(third - second)), "{asked:?}");
    assert_eq!(claims(&world).await[0].state, ClaimState::Succeeded);
}

/// The loop of a server settles what it finds.
#[tokio::test(start_paused = true)]
async fn a_server_settles_a_doubt_by_itself() {
    let (probe, _) = losing(Recovery::Reconcile { grace_seconds: 0 }, || {
        Ok(Reconciled::DidNotHappen)
    });
    let world = World::logging([probe]);
    send(&world, "sms.send", sent()).await;
    let settled = async {
        while claims(&world).await[0].state == ClaimState::InDoubt {
            tokio::time::advance(Duration::from_secs(1)).await;
        }
    };
    tokio::select! {
        () = world.executor.keep_asking_about_doubts() => {}
        () = settled => {}
    }
    assert_eq!(claims(&world).await[0].state, ClaimState::Released);
}
