//! Credentials and agents that are limited to some effects: the same decision in a list and in a call.

use countersign::Effects;
use countersign::contract::ActorType::{Agent, User};
use countersign::contract::tool::Effect;
use countersign_gateway::identity::{ApiKeys, Identity, NewKey};
use countersign_testkit::postgres::shared_postgres;
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::identity::{key_of, operator, policy};
use crate::parts::{Parts, Server};

fn reads() -> Effects {
    Effects::of([Effect::Read]).unwrap()
}

/// Returns the tools that a credential sees, and the results of calling `notes.list`, which reads, and
/// `notes.add`, which writes.
async fn check(server: &Server, credential: &str) -> String {
    let (_, _, listed) = server
        .send("GET", "/v1/tools", Some(credential), None)
        .await;
    let names: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    let mut told = vec![format!("listed: {}", names.join(" "))];
    for (tool, arguments) in [
        ("notes.list", json!({})),
        ("notes.add", json!({"text": "milk"})),
    ] {
        let body = json!({"arguments": arguments});
        let path = format!("/v1/tools/{tool}");
        let (status, _, reply) = server
            .send("POST", &path, Some(credential), Some(body))
            .await;
        let hint = &reply["error"]["details"]["hint"];
        told.push(format!(
            "{tool}: {status} {}",
            hint.as_str().unwrap_or("ok")
        ));
    }
    told.join("\n")
}

async fn issued(keys: &ApiKeys, new: NewKey) -> String {
    let made = keys.create(new, &operator()).await.unwrap();
    made.token.to_string()
}

const READS_ONLY: &str = "listed: notes.list
notes.list: 200 ok
notes.add: 403 this credential may call only tools with the effect read";

async fn a_key_is_held_to_its_effects_on(parts: Parts) {
    let keys = parts.api_keys();
    let rules = policy("[defaults]\nunlisted = \"allow\"");
    let identity = Identity::new(parts.clock(), rules).api_keys(keys.clone());
    let server = parts.serve(identity).await;
    let reader = NewKey {
        effects: Some(reads()),
        scopes: vec!["keys:manage".to_owned()],
        ..key_of(User, "ann")
    };
    let token = issued(&keys, reader.clone()).await;
    assert_eq!(check(&server, &token).await, READS_ONLY);
    // A key that it creates can only be narrower, however it is requested.
    let body = |effects: Value| {
        let actor = json!({"type": "agent", "id": "helper"});
        let mut body = json!({"actor": actor, "user_id": "ann"});
        if !effects.is_null() {
            body["effects"] = effects;
        }
        Some(body)
    };
    let made = |effects| server.send("POST", "/v1/keys", Some(&token), body(effects));
    for wider in [Value::Null, json!(["read", "write"]), json!(["external"])] {
        let (status, _, answer) = made(wider.clone()).await;
        assert_eq!(status, 403, "{wider} {answer}");
        assert_eq!(answer["error"]["details"]["field"], "/effects", "{answer}");
    }
    let (status, _, answer) = made(json!([])).await;
    assert_eq!(status, 400, "{answer}");
    let (status, _, answer) = made(json!(["read"])).await;
    assert_eq!((status, &answer["key"]["effects"]), (201, &json!(["read"])));
    // The record of the key names its effects.
    let records = parts.config_records().await;
    let last = records.last().unwrap();
    assert_eq!(last["act"]["effects"], json!(["read"]), "{last}");
    // A rotated key keeps them.
    let of_helper = answer["key"]["id"].as_str().unwrap();
    let by = operator();
    let rotated = keys.rotate(of_helper, std::time::Duration::ZERO, &by).await;
    assert_eq!(rotated.unwrap().key.effects, Some(reads()));
}

/// N4: a key for reads can read, and creates no key that does more.
#[tokio::test]
async fn a_key_is_held_to_its_effects() {
    a_key_is_held_to_its_effects_on(Parts::new()).await;
    let folder = tempfile::tempdir().unwrap();
    a_key_is_held_to_its_effects_on(Parts::on_sqlite(folder.path())).await;
    let url = shared_postgres().fresh_database();
    a_key_is_held_to_its_effects_on(Parts::on_postgres(&url).await).await;
}

/// N4: an `[[agents]]` entry limits its agents to effects, also behind another agent and if a backend names
/// them.
#[tokio::test]
async fn an_agent_is_held_to_the_effects_of_its_entry() {
    let parts = Parts::new();
    let keys = parts.api_keys();
    let rules = policy(
        r#"
        defaults = { unlisted = "allow" }
        [[agents]]
        id = "reader-*"
        effects = ["read"]
    "#,
    );
    let identity = Identity::new(parts.clock(), rules).api_keys(keys.clone());
    let server = parts.serve(identity).await;
    let key = |id: &str| NewKey {
        user_id: Some("ann".to_owned()),
        ..key_of(Agent, id)
    };
    let reader = issued(&keys, key("reader-7")).await;
    assert_snapshot!(check(&server, &reader).await, @r"
    listed: notes.list
    notes.list: 200 ok
    notes.add: 403 the policy lets this agent call only tools with the effect read
    ");
    let writer = issued(&keys, key("writer")).await;
    assert_snapshot!(check(&server, &writer).await, @r"
    listed: notes.add notes.list
    notes.list: 200 ok
    notes.add: 200 ok
    ");
    let backend = NewKey {
        acts_for_others: true,
        ..key_of(countersign::contract::ActorType::System, "shop")
    };
    let backend = issued(&keys, backend).await;
    let body = json!({
        "arguments": {"text": "milk"},
        "user_id": "ann",
        "actor": {"type": "agent", "id": "reader-9"},
    });
    let (status, _, reply) = server
        .send("POST", "/v1/tools/notes.add", Some(&backend), Some(body))
        .await;
    assert_eq!(status, 403, "{reply}");
}
