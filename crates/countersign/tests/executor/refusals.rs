//! Refusals of a call before its tool runs: one test a step.

use std::sync::Arc;

use countersign::authorize::{Authorizer, Decision, Rules};
use countersign::contract::tool::KeyRule;
use countersign::contract::{Actor, ActorType, Input, Parameter, ToolName, ToolSpec, ValueKind};
use countersign::unavailable::Unavailable;
use countersign::{BoxFuture, Principal, ToolCall};
use serde_json::{Value, json};

use crate::world::{Probe, World, call, call_as, check_error, check_ok};

/// A7, A10, B8: an unknown tool is a reply like any other, and warns that its arguments were only parsed.
#[tokio::test]
async fn an_unknown_tool_is_not_found() {
    let world = World::new(Probe::read("sample.read"));
    let reply = world.send("sample.raed", &json!({}), &json!({})).await;
    assert_eq!(
        reply,
        json!({
            "request_id": "req_1",
            "ok": false,
            "data": null,
            "warnings": [{
                "code": "TOOL_DEFINITION_MISSING",
                "severity": "note",
                "path": "",
                "message": "tool_definition_missing",
            }],
            "error": {
                "code": "NOT_FOUND",
                "message": "there is no tool \"sample.raed\"",
                "details": {
                    "retryable": false,
                    "hint": "list the tools to see which exist",
                },
            },
        })
    );
    let record = world.record();
    assert_eq!(
        (&record["tool"], &record["code"]),
        (&json!("sample.raed"), &json!("NOT_FOUND"))
    );
    assert_eq!(record.get("tool_version"), None);
}

/// A3: the identity in the envelope must be the proved one; the record names the proved one.
#[tokio::test]
async fn a_forged_actor_or_user_is_forbidden() {
    let world = World::new(Probe::read("sample.read"));
    let system = json!({"type": "system", "id": "u_1"});
    let reply = world
        .send("sample.read", &json!({}), &json!({ "actor": system }))
        .await;
    check_error(&reply, "FORBIDDEN", &json!({ "field": "/actor" }));
    assert_eq!(
        world.record()["actor"],
        json!({"type": "user", "id": "u_1"})
    );

    let reply = world
        .send("sample.read", &json!({}), &json!({ "user_id": "u_2" }))
        .await;
    check_error(&reply, "FORBIDDEN", &json!({ "field": "/user_id" }));
    assert_eq!(world.record()["user_id"], "u_1");
}

/// A3: a trusted backend may say for whom it acts, and the record names that user.
#[tokio::test]
async fn a_principal_may_act_for_others_where_it_was_given_the_right() {
    let world = World::new(Probe::read("sample.read"));
    let backend = Actor {
        kind: ActorType::System,
        id: "shop".into(),
    };
    let backend = Principal::new(backend, "shop").acting_for_others();
    let agent = json!({"actor": {"type": "agent", "id": "a_7"}, "user_id": "u_9"});
    let reply = world
        .execute(call_as(backend, "sample.read", &json!({}), &agent))
        .await;
    check_ok(&reply, "req_1", &json!({"run": 1}));
    let record = world.record();
    assert_eq!(
        (&record["actor"], &record["user_id"]),
        (&agent["actor"], &agent["user_id"])
    );
}

/// A tool that is listed may be called, and no other.
#[tokio::test]
async fn a_list_and_a_call_get_the_same_decision() {
    let names = ["a.open", "b.closed", "c.open"];
    let rules = ["a.open", "c.open"]
        .into_iter()
        .fold(Rules::new("r1"), |rules, name| {
            rules.allow(ToolName::new(name).unwrap(), "shop")
        });
    let world = World::of(names.map(Probe::read), |builder| {
        builder.authorizer(Arc::new(rules))
    });
    for (principal, expected) in [
        (
            Principal::user("u_1").scope("shop"),
            vec!["a.open", "c.open"],
        ),
        (Principal::user("u_1"), vec![]),
    ] {
        let listed = world.executor.list(&principal).await.unwrap();
        let listed: Vec<_> = listed.iter().map(|entry| entry.name().as_str()).collect();
        assert_eq!(listed, expected);
        for name in names {
            let reply = world
                .executor
                .execute(ToolCall::new(name, "{}", principal.clone()))
                .await;
            assert_eq!(reply.ok, listed.contains(&name), "{name}");
        }
    }
}

struct BrokenPolicy;

impl Authorizer for BrokenPolicy {
    fn decide<'a>(
        &'a self,
        _: &'a Principal,
        _: &'a ToolSpec,
    ) -> BoxFuture<'a, Result<Decision, Unavailable>> {
        Box::pin(async { Err(Unavailable::new("policy", "password=hunter2 refused")) })
    }
}

/// A12: a part of ours that fails is an error of the gateway, and says nothing of its inside.
#[tokio::test]
async fn a_policy_that_cannot_answer_lets_nothing_through() {
    let probe = Probe::read("sample.read");
    let runs = probe.runs();
    let world = World::of([probe], |builder| {
        builder.authorizer(Arc::new(BrokenPolicy))
    });
    let reply = world.send("sample.read", &json!({}), &json!({})).await;
    check_error(
        &reply,
        "UPSTREAM_ERROR",
        &json!({"source": "gateway", "retryable": true}),
    );
    assert!(!reply.to_string().contains("hunter2"), "{reply}");
    assert!(world.executor.list(&Principal::user("u_1")).await.is_err());
    runs.check(0);
}

/// B9: arguments that cannot be bound stop the call before the tool; the record says how.
#[tokio::test]
async fn unreadable_arguments_are_refused_before_the_tool_runs() {
    let query = Parameter::new("query", ValueKind::String, "what to look for");
    let probe = Probe::read("sample.read").input(Input::parameters([query]));
    let runs = probe.runs();
    let world = World::new(probe);
    for (raw, code, field, status) in [
        ("nothing of the kind", "NOT_FOUND", None, "refused"),
        ("{}", "MISSING_REQUIRED", Some("/query"), "refused"),
        (r#"{"query": "mil"#, "INCOMPLETE", None, "incomplete"),
    ] {
        let call = ToolCall::new("sample.read", raw, Principal::user("u_1"));
        let reply = world.execute(call).await;
        check_error(&reply, "INVALID_ARGUMENT", &json!({"retryable": false}));
        let details = &reply["error"]["details"];
        let issues = details["issues"].as_array().unwrap();
        assert!(
            issues.iter().any(|issue| issue["code"] == code),
            "{raw}: {reply:#}"
        );
        assert_eq!(details["field"].as_str(), field, "{raw}: {reply:#}");
        assert_eq!(world.record()["binding"]["status"], status, "{raw}");
        assert_eq!(world.record().get("arguments_redacted"), None);
    }
    runs.check(0);
}

/// A13: nothing runs until the user has confirmed exactly this call, and then once.
#[tokio::test]
async fn a_confirmation_counts_for_one_call_with_the_same_arguments() {
    let probe = Probe::write("pay.send").confirmed();
    let runs = probe.runs();
    let world = World::new(probe);
    let send = async |amount: &str| {
        world
            .send("pay.send", &json!({ "amount": amount }), &json!({}))
            .await
    };
    check_error(
        &send("9").await,
        "NEEDS_USER_CONFIRMATION",
        &json!({"approval_id": "ap_1"}),
    );
    check_error(
        &send("9").await,
        "NEEDS_USER_CONFIRMATION",
        &json!({"approval_id": "ap_1"}),
    );
    world.approve("ap_1").await;
    check_error(
        &send("10").await,
        "NEEDS_USER_CONFIRMATION",
        &json!({"approval_id": "ap_2"}),
    );
    runs.check(0);

    check_ok(&send("9").await, "req_4", &json!({"run": 1}));
    check_error(
        &send("9").await,
        "NEEDS_USER_CONFIRMATION",
        &json!({"approval_id": "ap_3"}),
    );
    let by = Principal::user("u_1");
    let used = world.approvals().approve("ap_1", &by, None).await;
    assert!(used.is_err(), "it has been used");

    world.approvals().deny("ap_2", &by, None).await.unwrap();
    check_error(&send("10").await, "FORBIDDEN", &json!({}));
    runs.check(1);
}

/// A13: another user's confirmation is none.
#[tokio::test]
async fn a_confirmation_belongs_to_its_user_and_ends() {
    let world = World::new(Probe::write("pay.send").confirmed());
    let mine = async || world.send("pay.send", &json!({}), &json!({})).await;
    mine().await;
    world.approve("ap_1").await;
    let theirs = call_as(Principal::user("u_2"), "pay.send", &json!({}), &json!({}));
    let reply = world.execute(theirs).await;
    check_error(
        &reply,
        "NEEDS_USER_CONFIRMATION",
        &json!({"approval_id": "ap_2"}),
    );
    world.advance_seconds(15 * 60);
    check_error(
        &mine().await,
        "NEEDS_USER_CONFIRMATION",
        &json!({"approval_id": "ap_3"}),
    );
}

/// A5: a tool may insist on a key; null is none.
#[tokio::test]
async fn a_required_key_is_asked_for() {
    let probe = Probe::write("sample.write").key(KeyRule::Required);
    let runs = probe.runs();
    let world = World::new(probe);
    for envelope in [json!({}), json!({"idempotency_key": null})] {
        let reply = world
            .execute(call("sample.write", &json!({}), &envelope))
            .await;
        check_error(
            &reply,
            "INVALID_ARGUMENT",
            &json!({"field": "/idempotency_key"}),
        );
    }
    runs.check(0);
    let reply = world
        .send("sample.write", &json!({}), &json!({"idempotency_key": "k"}))
        .await;
    assert_eq!(reply["ok"], Value::Bool(true));
}
