//! A13 over HTTP: calls that a person has to confirm are asked, shown and answered there, and never by an
//! agent.

use countersign::approve::{SCOPE_ANSWER, Wanted};
use countersign::contract::ActorType;
use countersign::sample::ClearNotes;
use countersign::{Catalog, Principal};
use countersign_gateway::caller::LOCAL_USER;
use countersign_gateway::identity::{Identity, NewKey, SCOPE_KEYS};
use countersign_testkit::patience::until;
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::http_client::{get, post, send};
use crate::identity::{actor, policy};
use crate::parts::Parts;
use crate::world::World;

const CLEAR: &str = "/v1/tools/notes.clear";

/// Starts the usual gateway, with a tool that asks.
async fn start() -> World {
    let world = World::start().await;
    let asking = Catalog::builder().tool(ClearNotes).build().unwrap();
    let tool = asking.get("notes.clear").unwrap().tool().clone();
    world.gateway.executor().catalog().add(tool).unwrap();
    world
}

/// Makes a call and returns the approval that it waits for.
async fn asked(world: &World, body: &str) -> String {
    let answer = post(world, CLEAR, body).await;
    assert_eq!(
        (answer.status, &*answer.code()),
        (428, "NEEDS_USER_CONFIRMATION")
    );
    let id = answer.json()["error"]["details"]["approval_id"].clone();
    id.as_str().unwrap().to_owned()
}

/// Replaces the parts that differ each time.
fn shown(value: &Value) -> String {
    let mut value = value.clone();
    for name in ["id", "request_id", "asked_at", "expires_at", "shown_digest"] {
        if value.get(name).is_some() {
            value[name] = json!("…");
        }
    }
    serde_json::to_string_pretty(&value).unwrap()
}

/// A13: a list is read page by page, newest first, and nothing is left out or there twice.
#[tokio::test]
async fn approvals_are_read_page_by_page() {
    let world = start().await;
    let mut asked_for = Vec::new();
    for keep in 0..5 {
        let body = json!({"arguments": {"keep": keep}}).to_string();
        asked_for.push(asked(&world, &body).await);
    }
    let mut pages = Vec::new();
    let mut path = "/v1/approvals?state=pending&limit=2".to_owned();
    loop {
        let page = get(&world, &path).await.json();
        let listed = page["approvals"].as_array().unwrap().iter();
        pages.push(
            listed
                .map(|one| one["id"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>(),
        );
        let Some(cursor) = page["next_cursor"].as_str() else {
            break;
        };
        path = format!("/v1/approvals?state=pending&limit=2&cursor={cursor}");
    }
    let sizes: Vec<usize> = pages.iter().map(Vec::len).collect();
    assert_eq!(sizes, [2, 2, 1]);
    let mut seen = pages.concat();
    seen.sort();
    asked_for.sort();
    assert_eq!(seen, asked_for);
    let refused = get(&world, "/v1/approvals?cursor=7").await;
    assert_eq!(
        (refused.status, &*refused.code()),
        (400, "INVALID_ARGUMENT")
    );
}

/// A13: who may answer, and that the tool itself has asked; the record of the call is named.
#[tokio::test]
async fn an_approval_names_its_authority() {
    let world = start().await;
    let id = asked(&world, "{}").await;
    let authority = get(&world, &format!("/v1/approvals/{id}/authority"))
        .await
        .json();
    assert_eq!(authority["user_id"], "u_local");
    assert_eq!(authority["scope"], SCOPE_ANSWER);
    assert_eq!(authority["approvers"], 1);
    assert_eq!(authority["because"][0]["entry"], "the tool", "{authority}");
    assert!(authority["record"].as_str().unwrap().starts_with("ev_"));
    let missing = get(&world, "/v1/approvals/ap_none/authority").await;
    assert_eq!(missing.status, 404);
}

/// The whole sequence: asked, shown, not answered by the agent, answered by the user, done, once.
#[tokio::test]
async fn a_call_waits_for_the_user() {
    let world = start().await;
    let id = asked(&world, "{}").await;
    let listed = get(&world, "/v1/approvals").await.json();
    let one = get(&world, &format!("/v1/approvals/{id}")).await.json();
    assert_eq!(listed, json!({"approvals": [one]}));
    assert_snapshot!(shown(&one), @r#"
    {
      "actor": {
        "id": "local",
        "type": "agent"
      },
      "arguments": {
        "keep": 0
      },
      "asked_at": "…",
      "description": "Deletes notes, the newest first.",
      "expires_at": "…",
      "id": "…",
      "policy_revision": "allow-all",
      "request_id": "…",
      "state": "pending",
      "tool": "notes.clear",
      "user_id": "u_local"
    }
    "#);
    let mut told = Vec::new();
    for decision in ["approve", "deny"] {
        let body = json!({"decision": decision}).to_string();
        let answer = post(&world, &format!("/v1/approvals/{id}"), &body).await;
        told.push(answer.told());
    }
    told.dedup();
    assert_snapshot!(told.join("\n"), @"403 FORBIDDEN : an agent cannot answer an approval; the user has to; let the user answer, with a credential of their own");
    let user = Principal::user(LOCAL_USER);
    let approvals = world.gateway.executor().approvals();
    approvals
        .approve(&id, &user, Some("spring cleaning"))
        .await
        .unwrap();
    assert_eq!(post(&world, CLEAR, "{}").await.status, 200);
    let after = get(&world, &format!("/v1/approvals/{id}")).await.json();
    assert_eq!(
        (&after["state"], &after["answer"]["reason"]),
        (&json!("used"), &json!("spring cleaning"))
    );
    let again = r#"{"arguments": {"again": true}}"#;
    assert_ne!(asked(&world, again).await, id, "an answer counts once");
}

/// U2 over HTTP: the approver reads the tool's text in the language of the request, and an answer counts for
/// what was shown. The policy requires two approvers, with a time limit of its own; each answer that does not
/// count gets a reason.
#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one story of two approvers")]
async fn approvers_answer_what_they_were_shown() {
    let parts = Parts::new();
    let keys = parts.api_keys();
    let rules = r#"
        [[tools]]
        match = "*"

        [[tools]]
        match = "notes.*"
        confirm = "always"
        valid_for = "10m"

        [[tools]]
        match = "notes.clear"
        confirm = "always"
        four_eyes = true
        valid_for = "5m"

        [approvals]
        valid_for = "7m"
        cool_down = "1m"
    "#;
    let identity = Identity::new(parts.clock(), policy(rules)).api_keys(keys.clone());
    let operator = Principal::new(actor(ActorType::System, "operator/ann"), "").scope(SCOPE_KEYS);
    let key = async |kind, id: &str, user: &str, scopes: &[&str]| {
        let new = NewKey {
            label: id.to_owned(),
            actor: actor(kind, id),
            user_id: (user != id).then(|| user.to_owned()),
            acts_for_others: false,
            scopes: scopes.iter().map(ToString::to_string).collect(),
            effects: None,
            expires_at: None,
        };
        keys.create(new, &operator).await.unwrap().token
    };
    let agent = key(ActorType::Agent, "a_7", "u_1", &[]).await;
    let user = key(ActorType::User, "u_1", "u_1", &[]).await;
    let again = key(ActorType::User, "u_1", "u_1", &[SCOPE_ANSWER]).await;
    let desk = key(ActorType::System, "desk", "desk", &[SCOPE_ANSWER]).await;
    let server = parts.serve(identity).await;
    let tool = Catalog::builder().tool(ClearNotes).build().unwrap();
    let tool = tool.get("notes.clear").unwrap().tool().clone();
    server.gateway.executor().catalog().add(tool).unwrap();
    let call = async |keep: u32| {
        let body = json!({"arguments": {"keep": keep}});
        let path = "/v1/tools/notes.clear";
        let (status, _, reply) = server.send("POST", path, Some(&agent), Some(body)).await;
        (status, reply["error"]["details"].clone())
    };
    let (status, details) = call(0).await;
    assert_eq!(status, 428);
    assert_eq!(details["approvers"], json!({"given": 0, "needed": 2}));
    assert_eq!(
        details["expires_at"], "2026-11-16T12:05:00Z",
        "the shortest"
    );
    let path = format!("/v1/approvals/{}", details["approval_id"].as_str().unwrap());
    let show = async |key: &str| server.send("GET", &path, Some(key), None).await.2;
    let shown = show(&user).await;
    assert_eq!(
        shown["question"],
        json!({
            "title": "Forget 0 notes, the newest first",
            "lines": [{"label": "Notes now", "value": "0"}, {"label": "Notes afterwards", "value": "0"}],
            "irreversible": ["Notes that are forgotten cannot be brought back"],
        })
    );
    assert_eq!(shown["would_answer"], json!({"cleared": 0}));
    let seen = show(&agent).await;
    for hidden in ["question", "would_answer", "shown_digest"] {
        assert_eq!(seen.get(hidden), None, "{seen}");
    }
    let yes = async |key: &str, digest: &Value| {
        let body = json!({"decision": "approve", "shown_digest": digest});
        let (status, _, answer) = server.send("POST", &path, Some(key), Some(body)).await;
        let code = answer["error"]["code"].as_str().unwrap_or("ok").to_owned();
        (status, code)
    };
    let digest = &shown["shown_digest"];
    let other = json!(countersign::contract::Digest::of_bytes(b""));
    assert_eq!(
        yes(&user, &json!("sha256:0")).await,
        (400, "INVALID_ARGUMENT".into())
    );
    assert_eq!(yes(&user, &other).await, (409, "CONFLICT".into()));
    assert_eq!(yes(&agent, digest).await, (403, "FORBIDDEN".into()));
    assert_eq!(yes(&user, digest).await, (200, "ok".into()));
    assert_eq!(
        yes(&again, digest).await,
        (403, "FORBIDDEN".into()),
        "the same person"
    );
    let (status, details) = call(0).await;
    let one_of_two = json!({"given": 1, "needed": 2});
    assert_eq!((status, &details["approvers"]), (428, &one_of_two));
    assert_eq!(yes(&desk, digest).await, (200, "ok".into()));
    assert_eq!(call(0).await.0, 200);
}

/// `Prefer: wait=N`: the call stays until the user has answered.
#[tokio::test]
async fn a_caller_may_prefer_to_wait() {
    let world = start().await;
    let user = Principal::user(LOCAL_USER);
    let answering = async {
        let approvals = world.gateway.executor().approvals();
        let open = async || approvals.list(&user, &Wanted::default()).await.unwrap();
        until(async || !open().await.is_empty()).await;
        let id = open().await.remove(0).id;
        approvals.approve(&id, &user, None).await.unwrap();
    };
    let headers = [("prefer", "respond-async, wait=25")];
    let (answer, ()) = tokio::join!(send(&world, "POST", CLEAR, &headers, "{}"), answering);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json()["data"], json!({"cleared": 0}));
}

/// A denial is a 403 from then on, also for a caller that waits.
#[tokio::test]
async fn a_no_is_enforced() {
    let world = start().await;
    let id = asked(&world, "{}").await;
    let user = Principal::user(LOCAL_USER);
    let approvals = world.gateway.executor().approvals();
    approvals.deny(&id, &user, None).await.unwrap();
    let mut told = Vec::new();
    for headers in [&[][..], &[("prefer", "wait=25")]] {
        let answer = send(&world, "POST", CLEAR, headers, "{}").await;
        told.push(answer.told());
    }
    told.dedup();
    assert_snapshot!(told.join("\n"), @"403 FORBIDDEN : the user has declined this call of notes.clear; do not send it again unless the user asks for it");
    let other = post(&world, CLEAR, r#"{"arguments": {"keep": 1}}"#).await;
    let details = &other.json()["error"]["details"];
    assert_eq!((other.status, &details["approval_id"]), (403, &json!(id)));
    assert!(details["ask_again_at"].is_string(), "{details}");
}

/// An invalid answer is refused with a reason, and nothing of it is quoted.
#[tokio::test]
async fn those_who_err_are_told() {
    let world = start().await;
    let id = asked(&world, "{}").await;
    let answer = format!("/v1/approvals/{id}");
    let mut told = Vec::new();
    for body in [
        "",
        "{}",
        "[]",
        r#"{"decision": "yes"}"#,
        r#"["approve", null]"#,
        r#"{"decision": {"approve": null}}"#,
        r#"{"decision": "deny", "decision": "approve"}"#,
        r#"{"decision": "approve", "actor": {"type": "user", "id": "u_local"}}"#,
        r#"{"decision": "approve", "reason": 7}"#,
    ] {
        told.push(post(&world, &answer, body).await.told());
    }
    told.dedup();
    for path in [
        "/v1/approvals/ap_0",
        "/v1/approvals/%00",
        "/v1/approvals/..%2f",
    ] {
        told.push(get(&world, path).await.told());
        told.push(
            post(&world, path, r#"{"decision": "approve"}"#)
                .await
                .told(),
        );
    }
    for path in [
        "/v1/approvals?state=open",
        "/v1/approvals?limit=1001",
        "/v1/approvals?limit=-1",
        "/v1/approvals?users=u_1",
    ] {
        told.push(get(&world, path).await.told());
    }
    assert_snapshot!(told.join("\n"), @r#"
    400 INVALID_ARGUMENT /decision: the body is not an answer to an approval; send {"decision": "approve"} or {"decision": "deny"}, with the "shown_digest" of the approval and a "reason" if there is one
    404 NOT_FOUND : there is no approval "ap_0"; list the approvals to see which exist; old ones are removed
    404 NOT_FOUND : there is no approval "ap_0"; list the approvals to see which exist; old ones are removed
    404 NOT_FOUND : there is no approval "\0"; list the approvals to see which exist; old ones are removed
    404 NOT_FOUND : there is no approval "\0"; list the approvals to see which exist; old ones are removed
    404 NOT_FOUND : there is no approval "../"; list the approvals to see which exist; old ones are removed
    404 NOT_FOUND : there is no approval "../"; list the approvals to see which exist; old ones are removed
    400 INVALID_ARGUMENT /state: state is not one of pending, approved, denied, used, expired; correct it, or leave it out
    400 INVALID_ARGUMENT /limit: limit is not a number up to 1000; correct it, or leave it out
    400 INVALID_ARGUMENT /limit: limit is not a number up to 1000; correct it, or leave it out
    400 INVALID_ARGUMENT : "users" is not an option of this address; did you mean user?
    "#);
    // A caller learns nothing of other users' questions.
    let foreign = get(&world, "/v1/approvals?user=u_2").await.json();
    assert_eq!(foreign, json!({"approvals": []}));
}

/// A13, with real credentials: the policy requires the user's confirmation and limits its validity; neither an
/// agent with every right nor another user can give it; the user's own key can.
#[tokio::test]
async fn the_users_own_key_confirms() {
    let parts = Parts::new();
    let keys = parts.api_keys();
    let rules = r#"
        [[tools]]
        match = "notes.add"
        confirm = "always"

        [approvals]
        valid_for = "2m"
    "#;
    let identity = Identity::new(parts.clock(), policy(rules)).api_keys(keys.clone());
    let operator = Principal::new(actor(ActorType::System, "operator/ann"), "").scope(SCOPE_KEYS);
    let key = async |kind, id: &str, user: &str, scopes: &[&str]| {
        let new = NewKey {
            label: id.to_owned(),
            actor: actor(kind, id),
            user_id: (user != id).then(|| user.to_owned()),
            acts_for_others: false,
            scopes: scopes.iter().map(ToString::to_string).collect(),
            effects: None,
            expires_at: None,
        };
        keys.create(new, &operator).await.unwrap().token
    };
    let agent = key(ActorType::Agent, "a_7", "u_1", &[]).await;
    let user = key(ActorType::User, "u_1", "u_1", &[]).await;
    let other = key(ActorType::User, "u_2", "u_2", &[]).await;
    let desk = key(ActorType::System, "desk", "desk", &[SCOPE_ANSWER]).await;
    let server = parts.serve(identity).await;
    let add_at = async |time: u32| {
        let body = json!({"arguments": {"text": "tea", "again": time}});
        let path = "/v1/tools/notes.add";
        let (status, _, reply) = server.send("POST", path, Some(&agent), Some(body)).await;
        (status, reply)
    };
    let add = async || add_at(1).await;
    let (status, reply) = add().await;
    let details = &reply["error"]["details"];
    assert_eq!(
        (status, &details["expires_at"]),
        (428, &json!("2026-11-16T12:02:00Z"))
    );
    let path = format!("/v1/approvals/{}", details["approval_id"].as_str().unwrap());
    let seen = async |key: &str| server.send("GET", &path, Some(key), None).await.0;
    assert_eq!((seen(&agent).await, seen(&user).await), (200, 200));
    assert_eq!((seen(&desk).await, seen(&other).await), (200, 404));
    let yes = async |key: &str| {
        let body = json!({"decision": "approve"});
        server.send("POST", &path, Some(key), Some(body)).await.0
    };
    assert_eq!((yes(&agent).await, yes(&other).await), (403, 404));
    assert_eq!(add().await.0, 428);
    assert_eq!(yes(&user).await, 200);
    assert_eq!(yes(&desk).await, 409, "it is answered");
    assert_eq!(add().await.0, 200);
    assert_eq!(add().await.0, 200, "the first answer");
    assert_eq!(add_at(2).await.0, 428, "once");
}
