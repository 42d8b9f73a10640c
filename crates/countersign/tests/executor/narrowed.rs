//! A13: an approver may make a call smaller if its tool declares it, and never larger.

use std::collections::BTreeMap;
use std::sync::Arc;

use countersign::approve::{Error, Response, SCOPE_ANSWER};
use countersign::authorize::{Authorizer, Decision, Verdict};
use countersign::contract::parameter::Sensitivity;
use countersign::contract::tool::Narrowing;
use countersign::contract::{
    Actor, ActorType, Approval, ErrorCode, Input, Parameter, ToolSpec, ValueKind,
};
use countersign::unavailable::Unavailable;
use countersign::{BoxFuture, Catalog, Principal, ToolError};
use serde_json::{Value, json};

use crate::world::{Probe, World, check_error};

const NEEDS: &str = "NEEDS_USER_CONFIRMATION";

fn declare(probe: Probe) -> Probe {
    let mut amount = Parameter::new("amount", ValueKind::Integer, "");
    amount.bounds.minimum = Some(10.into());
    let to = Parameter::new("to", ValueKind::Array, "");
    let mut pin = Parameter::new("pin", ValueKind::String, "").sensitivity(Sensitivity::Secret);
    pin.bounds.pattern = Some("^[0-9]{4}$".to_owned());
    probe
        .confirmed()
        .input(Input::parameters([amount, to, pin]))
        .with(|behaviour| {
            behaviour.narrowing = vec![Narrowing::lower("/amount"), Narrowing::fewer("/to")];
        })
        .body(|_, arguments| Box::pin(async move { Ok(arguments.into()) }))
}

fn arguments() -> Value {
    json!({"amount": 150, "to": ["ann", "bob"], "pin": "0451"})
}

fn key(key: &str) -> Value {
    json!({ "idempotency_key": key })
}

fn narrow(changes: &[(&str, Value)]) -> Response {
    let narrowed = changes.iter();
    let narrowed = narrowed.map(|(pointer, value)| ((*pointer).to_owned(), value.clone()));
    Response {
        narrowed: narrowed.collect::<BTreeMap<_, _>>(),
        ..Response::approve()
    }
}

/// The call runs with the narrowed arguments, the reply says so, and it is found again under its key.
#[tokio::test]
async fn a_call_runs_with_what_was_left_of_it() {
    let probe = declare(Probe::write("pay.send"));
    let runs = probe.runs();
    let world = World::logging([probe]);
    let send = async || world.send("pay.send", &arguments(), &key("k1")).await;
    check_error(&send().await, NEEDS, &json!({"approval_id": "ap_1"}));
    let user = Principal::user("u_1");
    let yes = narrow(&[("/amount", json!(100)), ("/to", json!(["bob"]))]);
    let answered = world.approvals().decide("ap_1", &user, &yes).await.unwrap();
    let given = answered.answer.unwrap();
    assert_eq!(
        json!(given.narrowed),
        json!([
            {"pointer": "/amount", "before": 150, "after": 100},
            {"pointer": "/to", "before": ["ann", "bob"], "after": ["bob"]},
        ])
    );
    let reply = send().await;
    let ran = json!({"amount": 100, "to": ["bob"], "pin": "0451"});
    assert_eq!(reply["data"], ran, "{reply}");
    let warning = json!([{
        "code": "NARROWED",
        "message": "the approver made this call smaller: /amount 150 → 100, /to [\"ann\",\"bob\"] → [\"bob\"]",
    }]);
    assert_eq!(reply["warnings"], warning);
    // The same key with the same arguments is the same call.
    let again = send().await;
    assert_eq!((&again["replayed"], &again["data"]), (&json!(true), &ran));
    assert_eq!(again["warnings"], warning);
    runs.check(1);
    let log = world.log().await;
    let answer = log
        .iter()
        .find(|(leaf, _)| leaf["act"]["event"] == "approved");
    let (leaf, _) = answer.unwrap();
    assert_eq!(leaf["act"]["narrowed"], json!(["/amount", "/to"]));
    for (leaf, _) in &log {
        assert!(!leaf.to_string().contains("bob"), "{leaf}");
    }
}

/// A4, A13: a dry run of a narrowed call simulates the narrowed call, and uses nothing up.
#[tokio::test]
async fn a_dry_run_simulates_what_was_left() {
    let probe = declare(Probe::write("pay.send").simulating());
    let world = World::logging([probe]);
    let dry = json!({"dry_run": true});
    let all = world.send("pay.send", &arguments(), &dry).await;
    assert_eq!(all["data"], arguments(), "{all}");
    let sent = world.send("pay.send", &arguments(), &key("k1")).await;
    check_error(&sent, NEEDS, &json!({"approval_id": "ap_1"}));
    let user = Principal::user("u_1");
    let yes = narrow(&[("/amount", json!(100)), ("/to", json!(["bob"]))]);
    world.approvals().decide("ap_1", &user, &yes).await.unwrap();
    let ran = json!({"amount": 100, "to": ["bob"], "pin": "0451"});
    for _ in 0..2 {
        let dry_reply = world.send("pay.send", &arguments(), &dry).await;
        assert_eq!(dry_reply["data"], ran, "{dry_reply}");
        let codes = dry_reply["warnings"].as_array().unwrap().iter();
        let codes: Vec<_> = codes.map(|warning| warning["code"].clone()).collect();
        assert_eq!(codes, ["NARROWED", "NEEDS_USER_CONFIRMATION"]);
    }
    let reply = world.send("pay.send", &arguments(), &key("k1")).await;
    assert_eq!(reply["data"], ran, "{reply}");
}

/// Refused: values that widen, undeclared parameters, values that the declaration refuses, and narrowing with a denial.
#[tokio::test]
async fn nothing_else_can_be_changed() {
    let world = World::new(declare(Probe::write("pay.send")));
    world.send("pay.send", &arguments(), &json!({})).await;
    let user = Principal::user("u_1");
    let no = Response {
        narrowed: narrow(&[("/amount", json!(100))]).narrowed,
        ..Response::deny()
    };
    for (response, message) in [
        (
            narrow(&[("/amount", json!(151))]),
            r#""/amount" can only be reduced, and only in an answer that approves the call"#,
        ),
        (
            narrow(&[("/amount", json!(-1))]),
            r#""/amount" can only be reduced, and only in an answer that approves the call"#,
        ),
        (
            narrow(&[("/amount", json!("100"))]),
            r#""/amount" can only be reduced, and only in an answer that approves the call"#,
        ),
        (
            narrow(&[("/to", json!(["eve"]))]),
            r#""/to" can only be reduced, and only in an answer that approves the call"#,
        ),
        (
            narrow(&[("/to", json!(["bob", "ann"]))]),
            r#""/to" can only be reduced, and only in an answer that approves the call"#,
        ),
        (
            narrow(&[("/amount", json!(100)), ("/pin", json!("1"))]),
            r#""/pin" cannot be changed: the tool does not declare that it may be made smaller"#,
        ),
        (
            narrow(&[("", json!({}))]),
            r#""" cannot be changed: the tool does not declare that it may be made smaller"#,
        ),
        (
            no,
            r#""/amount" can only be reduced, and only in an answer that approves the call"#,
        ),
    ] {
        let error = world.approvals().decide("ap_1", &user, &response).await;
        let error = error.unwrap_err().into_body();
        assert_eq!(
            (error.code, &*error.message),
            (ErrorCode::InvalidArgument, message)
        );
    }
    // The tool's own rules hold for what is left, and the secret that nobody is shown is no obstacle.
    let low = narrow(&[("/amount", json!(9))]);
    let error = world.approvals().decide("ap_1", &user, &low).await;
    let error = error.unwrap_err().into_body();
    assert_eq!(error.details.field.as_deref(), Some("/amount"), "{error:?}");
    let same = narrow(&[("/amount", json!(150))]);
    let answered = world
        .approvals()
        .decide("ap_1", &user, &same)
        .await
        .unwrap();
    assert_eq!(answered.answer.unwrap().narrowed, []);
    let reply = world.send("pay.send", &arguments(), &json!({})).await;
    assert_eq!(reply["data"], arguments());
    assert_eq!(reply["warnings"], json!([]));
}

/// A call that failed without an effect is retried with the same key, and is narrowed again.
#[tokio::test]
async fn a_retry_is_as_narrow_as_the_first_try() {
    let probe = declare(Probe::external("pay.send")).body(|ctx, arguments| {
        let first = ctx.request_id().as_str() == "req_2";
        Box::pin(async move {
            if first {
                return Err(ToolError::new(ErrorCode::NotFound, "not yet").without_effect());
            }
            Ok(arguments.into())
        })
    });
    let world = World::new(probe);
    let send = async || world.send("pay.send", &arguments(), &key("k1")).await;
    send().await;
    let user = Principal::user("u_1");
    let yes = narrow(&[("/amount", json!(20))]);
    world.approvals().decide("ap_1", &user, &yes).await.unwrap();
    check_error(&send().await, "NOT_FOUND", &json!({}));
    let reply = send().await;
    assert_eq!(reply["data"]["amount"], 20, "{reply}");
}

struct FourEyes;

impl Authorizer for FourEyes {
    fn decide<'a>(
        &'a self,
        _: &'a Principal,
        _: &'a ToolSpec,
    ) -> BoxFuture<'a, Result<Decision, Unavailable>> {
        let decision = Decision {
            verdict: Verdict::Allow,
            policy_revision: "four-eyes".into(),
            must_confirm: true,
            approval_valid_for: None,
            four_eyes: true,
            cool_down: None,
            unkeyed_writes: None,
            unkeyed_window: None,
            conditions: None,
        };
        Box::pin(std::future::ready(Ok(decision)))
    }
}

/// The second approver sees the arguments that the first has narrowed, answers to those, and can only narrow them
/// further.
#[tokio::test]
async fn the_second_approver_sees_what_the_first_has_left() {
    let world = World::of([declare(Probe::write("pay.send"))], |builder| {
        builder.authorizer(Arc::new(FourEyes))
    });
    world.send("pay.send", &arguments(), &json!({})).await;
    let actor = Actor {
        kind: ActorType::System,
        id: "desk".to_owned(),
    };
    let desk = Principal::new(actor, "desk").scope(SCOPE_ANSWER);
    let user = Principal::user("u_1");
    let approvals = world.approvals();
    let show = async || approvals.show("ap_1", &desk).await.unwrap();
    let before: Approval = show().await;
    let first = narrow(&[("/amount", json!(100))]);
    approvals.decide("ap_1", &user, &first).await.unwrap();
    let after = show().await;
    assert_eq!(after.arguments["amount"], 100);
    assert_eq!(json!(after.confirmed.unwrap().narrowed)[0]["before"], 150);
    assert_ne!(before.shown_digest, after.shown_digest);
    for stale in [None, before.shown_digest] {
        let yes = Response::approve().to(stale);
        let refused = approvals.decide("ap_1", &desk, &yes).await;
        assert!(matches!(refused, Err(Error::OtherRendering)), "{refused:?}");
    }
    let wider = narrow(&[("/amount", json!(120))]).to(after.shown_digest);
    let refused = approvals.decide("ap_1", &desk, &wider).await;
    assert!(
        matches!(refused, Err(Error::NotNarrower { .. })),
        "{refused:?}"
    );
    let second = narrow(&[("/to", json!(["ann"]))]).to(after.shown_digest);
    approvals.decide("ap_1", &desk, &second).await.unwrap();
    let reply = world.send("pay.send", &arguments(), &json!({})).await;
    let ran = json!({"amount": 100, "to": ["ann"], "pin": "0451"});
    assert_eq!(reply["data"], ran, "{reply}");
}

/// An invalid declaration of narrowings is refused when the tool is registered.
#[test]
fn a_declaration_is_checked() {
    let narrowing = |pointers: &[&str]| {
        let narrowing = pointers.iter().map(|pointer| Narrowing::subset(*pointer));
        let narrowing = narrowing.collect();
        let probe = Probe::write("pay.send").with(|behaviour| behaviour.narrowing = narrowing);
        Catalog::builder().dyn_tool(Arc::new(probe)).build().is_ok()
    };
    assert!(narrowing(&["/a", "/ab", "/b/c"]));
    assert!(!narrowing(&["a"]));
    assert!(!narrowing(&["/a", "/a"]));
    assert!(!narrowing(&["/a/b", "/a"]));
}
