//! Standing grants over HTTP: people give and take authority with their own credential, agents use it, and a condition
//! is one of the policy's language.

use countersign::Principal;
use countersign::approve::SCOPE_ANSWER;
use countersign::contract::ActorType;
use countersign_gateway::identity::{Identity, NewKey, SCOPE_KEYS};
use serde_json::{Value, json};

use crate::identity::{actor, policy};
use crate::parts::Parts;

const RULES: &str = r#"
    [[tools]]
    match = "notes.add"
    confirm = "always"

    [[rules]]
    name = "no-secrets"
    match = "notes.add"
    when = "args.text == 'secret'"
    then = "deny"
"#;

/// The whole life of a grant, with real credentials.
#[tokio::test]
#[expect(clippy::too_many_lines, reason = "the life of one grant")]
async fn a_user_grants_and_revokes() {
    let parts = Parts::new();
    let keys = parts.api_keys();
    let identity = Identity::new(parts.clock(), policy(RULES)).api_keys(keys.clone());
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
    let post = async |path: &str, key: &str, body: Value| {
        let (status, _, reply) = server.send("POST", path, Some(key), Some(body)).await;
        (status, reply)
    };
    let add = async |text: &str| {
        let body = json!({"arguments": {"text": text}});
        post("/v1/tools/notes.add", &agent, body).await.0
    };
    let grant = |when: &str| {
        json!({
            "user_id": "u_1",
            "to": {"type": "agent", "id": "a_7"},
            "tools": ["notes.add"],
            "when": when,
            "calls": 2,
            "until": "2026-11-17T12:00:00Z",
        })
    };
    assert_eq!(add("tea").await, 428);
    let tea = grant("args.text != 'gold'");
    for (key, status) in [(&agent, 403), (&other, 403)] {
        assert_eq!(post("/v1/grants", key, tea.clone()).await.0, status);
    }
    let (status, reply) = post("/v1/grants", &user, grant("args.text = 'x'")).await;
    assert_eq!(
        (status, &reply["error"]["details"]["field"]),
        (400, &json!("/when"))
    );
    let (status, reply) = post("/v1/grants", &user, grant("args.kept == 'x'")).await;
    let message = reply["error"]["message"].as_str().unwrap();
    assert_eq!(status, 400);
    assert!(message.contains("notes.add has no args.kept"), "{message}");
    let (status, made) = post("/v1/grants", &user, tea).await;
    assert_eq!((status, &made["state"]), (200, &json!("active")));
    let path = format!("/v1/grants/{}", made["id"].as_str().unwrap());
    let seen = async |key: &str| server.send("GET", &path, Some(key), None).await.0;
    assert_eq!((seen(&agent).await, seen(&user).await), (200, 200));
    assert_eq!((seen(&desk).await, seen(&other).await), (200, 404));

    assert_eq!(add("milk").await, 200);
    assert_eq!(add("gold").await, 428, "the condition does not hold");
    assert_eq!(add("secret").await, 403, "a grant never outweighs a rule");
    let listed = server
        .send("GET", "/v1/grants?state=active", Some(&user), None)
        .await
        .2;
    assert_eq!(listed["grants"][0]["used"]["calls"], 1, "{listed}");

    let revoke = format!("{path}/revoke");
    let reason = json!({"reason": "enough"});
    assert_eq!(post(&revoke, &agent, reason.clone()).await.0, 403);
    assert_eq!(post(&revoke, &other, reason.clone()).await.0, 404);
    let (status, revoked) = post(&revoke, &user, reason).await;
    assert_eq!((status, &revoked["state"]), (200, &json!("revoked")));
    assert_eq!(add("bread").await, 428);
    let wrong = server
        .send("GET", "/v1/grants?state=open", Some(&user), None)
        .await;
    assert_eq!(wrong.0, 400);
    assert_eq!(post("/v1/grants", &user, json!({"to": "a_7"})).await.0, 400);
}
