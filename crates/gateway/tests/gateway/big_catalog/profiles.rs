//! Profiles: some callers are offered some tools, and no caller more than before.

use std::sync::Arc;

use countersign::contract::{Actor, ActorType, Effect};
use countersign::pattern::ToolPattern;
use countersign::{Effects, Principal};
use countersign_gateway::identity::{ApiKeys, Identity, NewKey, SCOPE_KEYS};
use countersign_gateway::offer::{Facade, OfferRules, Profile};
use countersign_gateway::policy::{LivePolicy, Policy};
use serde_json::{Value, json};

use super::{catalog_of, listed, settings};
use crate::mcp::Modern;
use crate::parts::Parts;
use crate::world::World;

fn patterns(names: &[&str]) -> Vec<ToolPattern> {
    names
        .iter()
        .map(|it| ToolPattern::new(it).unwrap())
        .collect()
}

fn rules(profiles: Vec<Profile>) -> OfferRules {
    OfferRules {
        profiles,
        ..OfferRules::default()
    }
}

async fn key(keys: &ApiKeys, label: &str) -> String {
    let agent = Actor {
        kind: ActorType::Agent,
        id: "helper".to_owned(),
    };
    let new = NewKey {
        label: label.to_owned(),
        actor: agent,
        user_id: Some("ann".to_owned()),
        acts_for_others: false,
        scopes: Vec::new(),
        effects: None,
        expires_at: None,
    };
    let by = Principal::user("root").scope(SCOPE_KEYS);
    keys.create(new, &by).await.unwrap().token.to_string()
}

/// A key is offered the tools of its profile: they alone are listed, found and called, and a policy still forbids what it forbids.
#[tokio::test]
async fn a_key_has_the_tools_of_its_profile() {
    let parts = Parts::new();
    let keys = parts.api_keys();
    let (desk, other) = (key(&keys, "desk 1").await, key(&keys, "lab").await);
    let policy = Policy::parse(
        "[[tools]]\nmatch = \"notes.*\"\n[[tools]]\nmatch = \"billing.*\"\n[[agents]]\nid = \"*\"\ndeny = [\"notes.clear\"]\n",
    );
    let policy = Arc::new(LivePolicy::fixed(policy.unwrap()));
    let identity = Identity::new(parts.clock(), policy).api_keys(keys);
    let profile = Profile {
        name: "desk".to_owned(),
        keys: vec!["desk*".to_owned()],
        tools: patterns(&["notes.*", "weather.*"]),
        ..Profile::default()
    };
    let server = parts
        .serve_tools(identity, settings(rules(vec![profile])), catalog_of(0))
        .await;
    let names = async |token: &str| {
        let (_, _, list) = server.send("GET", "/v1/tools", Some(token), None).await;
        let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
        list.as_array()
            .unwrap()
            .iter()
            .map(name)
            .collect::<Vec<_>>()
    };
    // Forbidden by the policy: notes.clear and weather.*, which the profile has.
    assert_eq!(names(&desk).await, ["notes.add", "notes.list"]);
    assert_eq!(
        names(&other).await,
        ["billing.refund", "notes.add", "notes.list"]
    );
    let code = async |token: &str, tool: &str, arguments: Value| {
        let path = format!("/v1/tools/{tool}");
        let body = json!({ "arguments": arguments });
        let (_, _, reply) = server.send("POST", &path, Some(token), Some(body)).await;
        reply["error"]["code"].as_str().unwrap_or("OK").to_owned()
    };
    assert_eq!(code(&desk, "notes.add", json!({"text": "x"})).await, "OK");
    assert_eq!(code(&desk, "billing.refund", json!({})).await, "FORBIDDEN");
    assert_eq!(
        code(&desk, "weather.forecast", json!({})).await,
        "FORBIDDEN"
    );
    assert_eq!(code(&other, "billing.refund", json!({})).await, "OK");
    let behind = json!({ "name": "billing.refund", "arguments": {} });
    assert_eq!(code(&desk, "call_tool", behind.clone()).await, "FORBIDDEN");
    assert_eq!(code(&other, "call_tool", behind).await, "OK");
    assert_eq!(
        code(&desk, "describe_tool", json!({"name": "billing.refund"})).await,
        "NOT_FOUND"
    );
    let body = json!({ "arguments": { "query": "refund a customer or see the weather" } });
    let (_, _, found) = server
        .send("POST", "/v1/tools/search_tools", Some(&desk), Some(body))
        .await;
    assert_eq!(found["data"]["tools"], json!([]), "{found}");
    assert_eq!(found["data"]["of"], 2);
}

/// A client is offered the profile of its name, effect by effect, and rules that change are in force at once.
#[tokio::test]
async fn a_client_has_the_profile_of_its_name() {
    let of_claude = Profile {
        name: "claude".to_owned(),
        clients: vec!["claude-*".to_owned()],
        effects: Effects::of([Effect::Read]).unwrap(),
        ..Profile::default()
    };
    let of_cursor = Profile {
        name: "cursor".to_owned(),
        clients: vec!["cursor".to_owned()],
        facade: Some(Facade::On),
        pinned: Some(patterns(&["notes.add"])),
        ..Profile::default()
    };
    let rules = rules(vec![of_claude, of_cursor]);
    let world = World::made(settings(rules), catalog_of(0), |builder| builder).await;
    let client = Modern::new(&world);
    let of = |name: &str| json!({ "io.modelcontextprotocol/clientInfo": { "name": name, "version": "1" } });
    assert_eq!(
        listed(&client, of("claude-code")).await,
        ["billing_refund", "notes_list", "weather_forecast"]
    );
    assert_eq!(
        listed(&client, of("cursor")).await,
        ["call_tool", "describe_tool", "notes_add", "search_tools"]
    );
    assert_eq!(listed(&client, of("other")).await.len(), 5);
    assert_eq!(listed(&client, json!({})).await.len(), 5);
    let params = json!({
        "name": "notes_add",
        "arguments": { "text": "x" },
        "_meta": of("claude-code"),
    });
    let (_, message) = client.ask("tools/call", params).await;
    let error = &message["result"]["_meta"]["dev.countersign/error"];
    assert_eq!(error["code"], "FORBIDDEN", "{message}");
    world.gateway.catalog_view().replace(OfferRules::default());
    assert_eq!(listed(&client, of("claude-code")).await.len(), 5);
}
