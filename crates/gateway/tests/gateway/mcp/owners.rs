//! Sessions, tasks and records over MCP with the credentials of several callers (A3).

use countersign::contract::ActorType::{Agent, User};
use countersign::realm::Realm;
use countersign::{Credential, Principal};
use countersign_gateway::Settings;
use countersign_gateway::identity::{ApiKeys, Identity, NewKey};
use countersign_testkit::patience::within;
use serde_json::{Value, json};

use crate::identity::{key_of, operator, policy};
use crate::parts::{Parts, Server};
use crate::world::World;

/// Sends a message; returns the status, the session id in the answer, and the text.
async fn post(
    server: &Server,
    key: &str,
    session: Option<&str>,
    body: &Value,
) -> (u16, Option<String>, String) {
    let mut request = reqwest::Client::new()
        .post(format!("http://{}/mcp", server.address))
        .header("authorization", format!("Bearer {key}"))
        .header("accept", "application/json, text/event-stream")
        .header(
            "mcp-protocol-version",
            body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"]
                .as_str()
                .unwrap_or("2025-11-25"),
        )
        .header("mcp-method", body["method"].as_str().unwrap_or_default())
        .header(
            "mcp-name",
            body["params"]["name"]
                .as_str()
                .or_else(|| body["params"]["taskId"].as_str())
                .unwrap_or_default(),
        )
        .json(body);
    if let Some(session) = session {
        request = request.header("mcp-session-id", session);
    }
    let answer = within(request.send()).await.unwrap();
    let named = answer.headers().get("mcp-session-id");
    let named = named.map(|session| session.to_str().unwrap().to_owned());
    (
        answer.status().as_u16(),
        named,
        answer.text().await.unwrap(),
    )
}

async fn key(keys: &ApiKeys, new: NewKey) -> String {
    keys.create(new, &operator())
        .await
        .unwrap()
        .token
        .to_string()
}

fn agent(scopes: &[&str]) -> NewKey {
    NewKey {
        user_id: Some("ann".to_owned()),
        scopes: scopes.iter().map(ToString::to_string).collect(),
        ..key_of(Agent, "shopper")
    }
}

/// A3: a session belongs to its caller. Another credential that knows its id cannot find or end it.
#[tokio::test]
async fn the_id_of_a_session_is_no_credential() {
    let parts = Parts::new();
    let keys = parts.api_keys();
    let rules = policy("[defaults]\nunlisted = \"allow\"");
    let identity = Identity::new(parts.clock(), rules).api_keys(keys.clone());
    let (ann, shopper) = (
        key(&keys, key_of(User, "ann")).await,
        key(&keys, agent(&[])).await,
    );
    let settings = Settings {
        mcp_sessions_max: 5,
        ..Settings::default()
    };
    let server = parts.serve_with(identity, settings).await;
    let begin = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }});
    let (status, session, _) = post(&server, &ann, None, &begin).await;
    let session = session.unwrap();
    assert_eq!(status, 200);
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    for (key, expected) in [(&shopper, 404), (&ann, 202)] {
        let (status, _, text) = post(&server, key, Some(&session), &ready).await;
        assert_eq!(status, expected, "{text}");
    }
}

/// A3: a waiting task runs with the rights of the credential that asks for it, not of one that has ended.
#[tokio::test]
async fn a_task_has_the_right_of_who_asks() {
    let parts = Parts::new();
    let keys = parts.api_keys();
    let rules =
        policy("[[tools]]\nmatch = \"*\"\nscopes = [\"notes:write\"]\nconfirm = \"always\"");
    let identity = Identity::new(parts.clock(), rules).api_keys(keys.clone());
    let (with, without) = (
        key(&keys, agent(&["notes:write"])).await,
        key(&keys, agent(&[])).await,
    );
    let server = parts.serve(identity).await;
    let message = |method: &str, mut params: Value| {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
        });
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    };
    let call = message(
        "tools/call",
        json!({"name": "notes_add", "arguments": {"text": "tea"}}),
    );
    let (_, _, asked) = post(&server, &with, None, &call).await;
    let asked: Value = serde_json::from_str(&asked).unwrap();
    let id = asked["result"]["taskId"].as_str().unwrap().to_owned();
    let approvals = server.gateway.executor().approvals();
    let ann = Principal::user("ann");
    approvals.approve(&id, &ann, None).await.unwrap();
    let get = message("tasks/get", json!({"taskId": id}));
    let (_, _, refused) = post(&server, &without, None, &get).await;
    assert!(refused.contains("FORBIDDEN"), "{refused}");
    assert!(!refused.contains("n_0001"), "{refused}");
}

/// A3: a backend of one realm cannot read a record of a user of another.
#[tokio::test]
async fn a_record_is_read_within_the_realm() {
    let world = World::start().await;
    let body = json!({"name": "notes_add", "arguments": {"text": "tea"}, "_meta": {"dev.countersign/user_id": "ann"}});
    let (_, made) = super::Modern::new(&world).ask("tools/call", body).await;
    let id = made["result"]["structuredContent"]["evidence"]["snapshot_id"]
        .as_str()
        .unwrap();
    let backend = |realm: Realm| {
        let actor = crate::identity::actor(Agent, "backend");
        Principal::new(actor, "corp::backend")
            .acting_for_others()
            .of_realm(realm)
            .proved_by(Credential::Token {
                issuer: "https://corp.example/".to_owned(),
                jti: None,
            })
    };
    for (realm, is_shown) in [(Realm::Home, true), (Realm::named("corp").unwrap(), false)] {
        let beside = world.beside(backend(realm)).await;
        let params =
            json!({"uri": format!("evidence://{id}"), "_meta": {"dev.countersign/user_id": "ann"}});
        let (_, read) = super::Modern::new(&beside)
            .ask("resources/read", params)
            .await;
        assert_eq!(read["error"].is_null(), is_shown, "{read}");
    }
}
