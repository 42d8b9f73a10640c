//! A13: a person decides about what they see. The tool's own words and the simulated answer, an answer that is bound to
//! its rendering, two approvers, a cool-down after a denial, and a record of every answer that does not count.

use std::sync::Arc;
use std::time::Duration;

use countersign::approve::{Error, Response, SCOPE_ANSWER, Wanted};
use countersign::authorize::{Authorizer, Decision, Verdict};
use countersign::contract::{
    Actor, ActorType, Digest, ErrorCode, Language, RecordKind, ToolSpec, Wording,
};
use countersign::unavailable::Unavailable;
use countersign::{BoxFuture, Credential, Principal, Question, ToolError};
use serde_json::{Value, json};

use crate::evidence::open;
use crate::world::{Probe, World, call_as, check_error, check_ok};

const NEEDS: &str = "NEEDS_USER_CONFIRMATION";

fn by_kind(kind: ActorType, id: &str, user: &str) -> Principal {
    let id = id.to_owned();
    Principal::new(Actor { kind, id }, user)
}

fn agent(id: &str) -> Principal {
    by_kind(ActorType::Agent, id, "u_1")
}

fn desk(id: &str) -> Principal {
    by_kind(ActorType::System, id, id).scope(SCOPE_ANSWER)
}

/// A transfer that describes itself in words, and can be simulated.
fn transfer() -> Probe {
    Probe::write("pay.send")
        .confirmed()
        .simulating()
        .body(|_, arguments| {
            Box::pin(async move { Ok(json!({"sent_to": arguments["to"]}).into()) })
        })
        .asks(|ctx, arguments| {
            assert!(ctx.is_dry_run(), "nothing may be changed");
            let to = arguments["to"].as_str().unwrap_or_default().to_owned();
            if to == "nowhere" {
                return Err(ToolError::new(ErrorCode::NotFound, "no such account"));
            }
            Ok(
                Question::new(Wording::new("Send EUR 12.50", "汇出 EUR 12.50"))
                    .line(Wording::new("To", "收款人"), to)
                    .irreversible(Wording::new(
                        "Money that was sent does not come back.",
                        "汇出的款项无法追回。",
                    )),
            )
        })
}

async fn ask(world: &World, to: &str) -> Value {
    let call = call_as(agent("a_7"), "pay.send", &json!({ "to": to }), &json!({}));
    world.execute(call).await
}

/// U2: the approver reads the tool's words in their own language and the simulated answer; the agent reads neither.
#[tokio::test]
async fn a_tool_says_what_it_would_do() {
    let world = World::new(transfer());
    check_error(&ask(&world, "ann\u{202e}").await, NEEDS, &json!({}));
    let user = Principal::user("u_1");
    let asked = world.approvals().show("ap_1", &user).await.unwrap();
    assert_eq!(
        json!([asked.question, asked.would_answer, asked.arguments]),
        json!([
            {
                "title": "Send EUR 12.50",
                "lines": [{"label": "To", "value": r"ann\u{202e}"}],
                "irreversible": ["Money that was sent does not come back."],
            },
            {"sent_to": r"ann\u{202e}"},
            {"to": r"ann\u{202e}"},
        ])
    );
    let chinese = world
        .approvals()
        .show_in("ap_1", &user, Language::Chinese)
        .await
        .unwrap();
    assert_eq!(chinese.question.unwrap().lines[0].label, "收款人");
    let seen = world.approvals().show("ap_1", &agent("a_7")).await.unwrap();
    assert_eq!(
        (seen.question, seen.would_answer, seen.shown_digest),
        (None, None, None)
    );
    // What the tool cannot say is its answer, and nobody is asked.
    check_error(&ask(&world, "nowhere").await, "NOT_FOUND", &json!({}));
    assert_eq!(world.asked().await.len(), 1);
}

/// U2: an answer that names a rendering counts for that rendering only, in either language, and its record holds both.
#[tokio::test]
async fn an_answer_is_bound_to_what_was_shown() {
    for language in Language::ALL {
        let world = World::logging([transfer()]);
        ask(&world, "ann").await;
        ask(&world, "bob").await;
        let user = Principal::user("u_1");
        let approvals = world.approvals();
        let other = approvals.show("ap_2", &user).await.unwrap();
        let shown = approvals.show_in("ap_1", &user, language).await.unwrap();
        let yes = |digest| Response::approve().to(digest);
        for wrong in [other.shown_digest, Some(Digest::of_bytes(b""))] {
            let error = approvals.decide("ap_1", &user, &yes(wrong)).await;
            let error = error.unwrap_err().into_body();
            assert_eq!(error.code, ErrorCode::Conflict);
            assert_eq!(error.details.field.as_deref(), Some("/shown_digest"));
        }
        let yes = yes(shown.shown_digest);
        let answered = approvals.decide("ap_1", &user, &yes);
        let answered = answered.await.unwrap().answer.unwrap();
        let log = world.log().await;
        let (leaf, stored) = log
            .iter()
            .find(|(_, stored)| stored.row.id == answered.evidence)
            .unwrap();
        assert_eq!(leaf["act"]["shown_checked"], true);
        let (_, payload) = open(&world, stored).await;
        let kept = payload["shown"].to_string();
        let canonical = countersign::contract::canonical::from_json_text(&kept).unwrap();
        let digest = Digest::of_bytes(canonical.as_bytes());
        assert_eq!(Some(digest), shown.shown_digest, "what was shown is kept");
        assert!(
            !leaf.to_string().contains(&digest.to_string()),
            "not in the clear"
        );
    }
}

/// A policy with two approvers, or with another cool-down.
struct Strict {
    four_eyes: bool,
    cool_down: Option<Duration>,
}

impl Authorizer for Strict {
    fn decide<'a>(
        &'a self,
        _: &'a Principal,
        _: &'a ToolSpec,
    ) -> BoxFuture<'a, Result<Decision, Unavailable>> {
        let decision = Decision {
            verdict: Verdict::Allow,
            policy_revision: "strict".into(),
            must_confirm: true,
            approval_valid_for: None,
            four_eyes: self.four_eyes,
            cool_down: self.cool_down,
            unkeyed_writes: None,
            unkeyed_window: None,
            conditions: None,
        };
        Box::pin(std::future::ready(Ok(decision)))
    }
}

fn four_eyes() -> World {
    World::of([Probe::write("pay.send")], |builder| {
        builder.authorizer(Arc::new(Strict {
            four_eyes: true,
            cool_down: None,
        }))
    })
}

/// Two different approvers, in either order; one person is never both, with any credential, and a denial ends it.
#[tokio::test]
async fn two_approvers_are_two_people() {
    let user = Principal::user("u_1");
    let with_key = |by: Principal, id: &str| Principal {
        credential: Some(Credential::ApiKey { id: id.to_owned() }),
        ..by
    };
    for (first, second, is_enough) in [
        (user.clone(), desk("d_1"), true),
        (desk("d_1"), user.clone(), true),
        (desk("d_1"), desk("d_2"), true),
        (user.clone(), user.clone(), false),
        (desk("d_1"), desk("d_1"), false),
        // The same person with the scope, as another kind of actor, for the same user, or by the same credential.
        (user.clone(), user.clone().scope(SCOPE_ANSWER), false),
        (
            desk("d_1"),
            by_kind(ActorType::User, "d_1", "x").scope(SCOPE_ANSWER),
            false,
        ),
        (
            desk("d_1"),
            by_kind(ActorType::System, "d_2", "d_1").scope(SCOPE_ANSWER),
            false,
        ),
        (
            with_key(desk("d_1"), "k"),
            with_key(desk("d_2"), "k"),
            false,
        ),
    ] {
        let world = four_eyes();
        let reply = ask(&world, "ann").await;
        let details = json!({"approvers": {"given": 0, "needed": 2}, "hint": "let two different approvers confirm (the user may be one; \
            any other one needs the scope approvals:answer), then send the same call again"});
        check_error(&reply, NEEDS, &details);
        let approvals = world.approvals();
        let confirmed = approvals.approve("ap_1", &first, None).await.unwrap();
        assert_eq!(
            json!([confirmed.state, confirmed.answer]),
            json!(["pending", null])
        );
        assert_eq!(confirmed.confirmed.unwrap().by, first.actor);
        let details = json!({"approvers": {"given": 1, "needed": 2}, "hint": "a second approver has to confirm: the user, or \
            another approver with the scope approvals:answer; then send the same call again"});
        check_error(&ask(&world, "ann").await, NEEDS, &details);
        let answered = approvals.approve("ap_1", &second, None).await;
        assert_eq!(answered.is_ok(), is_enough, "{first:?} {second:?}");
        if is_enough {
            check_ok(&ask(&world, "ann").await, "req_3", &json!({"run": 1}));
        } else {
            assert!(matches!(answered, Err(Error::SameApprover)), "{answered:?}");
            check_error(&ask(&world, "ann").await, NEEDS, &details);
        }
    }
    let world = four_eyes();
    ask(&world, "ann").await;
    world
        .approvals()
        .approve("ap_1", &user, None)
        .await
        .unwrap();
    world.approvals().deny("ap_1", &user, None).await.unwrap();
    check_error(&ask(&world, "ann").await, "FORBIDDEN", &json!({}));
}

/// The caller cannot be one of the two approvers, whatever scopes they hold; the user who is asked may be one.
#[tokio::test]
async fn who_asks_is_none_of_the_two() {
    let world = four_eyes();
    let backend = desk("backend").acting_for_others();
    let envelope = json!({"user_id": "u_1", "actor": {"type": "agent", "id": "a_7"}});
    let call = call_as(backend.clone(), "pay.send", &json!({}), &envelope);
    world.execute(call).await;
    let refused = world.approvals().approve("ap_1", &backend, None).await;
    assert!(matches!(refused, Err(Error::Asker)), "{refused:?}");
    for by in [desk("d_1"), desk("d_2")] {
        world.approvals().approve("ap_1", &by, None).await.unwrap();
    }
}

/// U13: after a denial, the denied principal can ask nothing new about the tool in any session, and no other principal
/// can in the same session, with any arguments and in any process; after the cool-down they can.
#[tokio::test]
async fn a_no_holds_new_questions_back() {
    let probes = || [Probe::write("pay.send"), Probe::write("pay.other")].map(Probe::confirmed);
    let world = World::of(probes(), |builder| builder);
    let other = world.replica(probes());
    let send = async |world: &World, who: &str, tool: &str, to: &str, session: Value| {
        let envelope = json!({ "session_id": session });
        let call = call_as(agent(who), tool, &json!({ "to": to }), &envelope);
        world.execute(call).await
    };
    let chat = || json!("s_1");
    send(&world, "a_7", "pay.send", "ann", chat()).await;
    world.advance_seconds(30);
    let user = Principal::user("u_1");
    world.approvals().deny("ap_1", &user, None).await.unwrap();
    let told = json!({
        "retryable": false,
        "approval_id": "ap_1",
        "ask_again_at": "2026-11-15T12:02:30Z",
        "hint": "tell the user that the call was declined and go on without it; changed arguments do not help",
    });
    for world in [&world, &other] {
        for (who, to, session) in [
            ("a_7", "bob", chat()),
            ("a_8", "bob", chat()),
            ("a_7", "ann ", chat()),
            // A name that the caller makes up is no way round it.
            ("a_7", "bob", json!("s_2")),
            ("a_7", "bob", json!("s_3")),
            ("a_7", "bob", Value::Null),
        ] {
            let reply = send(world, who, "pay.send", to, session).await;
            check_error(&reply, "FORBIDDEN", &told);
        }
    }
    assert_eq!(world.asked().await.len(), 1);
    // Another tool is none of it, nor is somebody else in another conversation; a dry run says what the call would be told.
    for (who, tool, session) in [
        ("a_7", "pay.other", chat()),
        ("a_8", "pay.send", json!("s_2")),
        ("a_8", "pay.send", Value::Null),
    ] {
        let reply = send(&world, who, tool, "bob", session).await;
        check_error(&reply, NEEDS, &json!({}));
    }
    let dry = json!({"session_id": "s_1", "dry_run": true});
    let dry = call_as(agent("a_7"), "pay.send", &json!({"to": "carl"}), &dry);
    check_error(&world.execute(dry).await, "FORBIDDEN", &told);
    world.advance_seconds(120);
    let reply = send(&other, "a_7", "pay.send", "carl", chat()).await;
    check_error(&reply, NEEDS, &json!({"approval_id": "ap_4"}));
}

/// The policy says how long the pause is; none is none.
#[tokio::test]
async fn a_policy_sets_the_pause() {
    for (cool_down, is_asked) in [(Duration::ZERO, true), (Duration::from_hours(1), false)] {
        let strict = Strict {
            four_eyes: false,
            cool_down: Some(cool_down),
        };
        let world = World::of([Probe::write("pay.send")], |builder| {
            builder.authorizer(Arc::new(strict))
        });
        ask(&world, "ann").await;
        let user = Principal::user("u_1");
        world.approvals().deny("ap_1", &user, None).await.unwrap();
        world.advance_seconds(59 * 60);
        let code = if is_asked { NEEDS } else { "FORBIDDEN" };
        check_error(&ask(&world, "bob").await, code, &json!({}));
    }
}

/// Every answer that does not count leaves one record for an actor, an approval and a reason, however often it is
/// tried; a request that is not an answer leaves none.
#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one table of attempts")]
async fn answers_that_do_not_count_have_a_record() {
    let world = World::logging([Probe::write("pay.send").confirmed()]);
    ask(&world, "ann").await;
    let user = Principal::user("u_1");
    let wrong = Response::approve().to(Some(Digest::of_bytes(b"")));
    let attempts: [(Principal, Response); 6] = [
        (agent("a_7"), Response::approve()),
        (agent("a_7").scope(SCOPE_ANSWER), Response::deny()),
        (Principal::user("u_2"), Response::approve()),
        (
            by_kind(ActorType::System, "job", "u_1"),
            Response::approve(),
        ),
        (desk("d_1"), wrong.clone()),
        (user.clone(), wrong),
    ];
    for _ in 0..3 {
        for (by, response) in &attempts {
            world
                .approvals()
                .decide("ap_1", by, response)
                .await
                .unwrap_err();
            let unknown = world.approvals().decide("ap_9", by, response).await;
            assert!(matches!(unknown, Err(Error::Unknown(_))));
        }
    }
    let long = "x".repeat(501);
    let reason = Response::approve().because(Some(&long));
    world
        .approvals()
        .decide("ap_1", &user, &reason)
        .await
        .unwrap_err();
    world.approve("ap_1").await;
    world
        .approvals()
        .deny("ap_1", &user, None)
        .await
        .unwrap_err();
    world.advance_seconds(60 * 60);
    world
        .approvals()
        .deny("ap_1", &user, None)
        .await
        .unwrap_err();
    let recorded = world.log().await;
    let entries: Vec<String> = recorded
        .iter()
        .filter(|(leaf, stored)| {
            stored.row.kind == RecordKind::Approval && leaf["act"]["event"] == "refused"
        })
        .map(|(leaf, stored)| {
            assert_eq!(leaf["act"]["approval"], "ap_1");
            assert_eq!(stored.row.user_id, "u_1");
            let actor = &leaf["actor"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let id = text(&actor["id"])
                .split(':')
                .next()
                .unwrap_or_default()
                .to_owned();
            let id = if text(&actor["type"]) == "user" {
                String::new()
            } else {
                id
            };
            format!(
                "{} {id} {}",
                text(&actor["type"]),
                text(&leaf["act"]["reason"])
            )
        })
        .collect();
    assert_eq!(
        entries,
        [
            "agent a_7 agent",
            "user  other_user",
            "system job not_theirs",
            "system d_1 other_rendering",
            "user  other_rendering",
            "user  already_approved",
            "user  expired",
        ]
    );
    // What is kept about them goes with the question.
    world.advance_seconds(25 * 60 * 60);
    assert_eq!(world.approvals().expire(10).await.unwrap(), 1);
    let all = Wanted::default();
    assert_eq!(world.approvals().list(&user, &all).await.unwrap().len(), 0);
}

/// No caller can fill the log: the number of recorded attempts at one approval is bounded.
#[tokio::test]
async fn attempts_are_bounded() {
    let world = World::logging([Probe::write("pay.send").confirmed()]);
    ask(&world, "ann").await;
    for n in 0..40 {
        let by = Principal::user(format!("u_x{n}"));
        world
            .approvals()
            .approve("ap_1", &by, None)
            .await
            .unwrap_err();
    }
    let log = world.log().await;
    let refused = log
        .iter()
        .filter(|(leaf, _)| leaf["act"]["event"] == "refused");
    assert_eq!(refused.count(), 16);
}
