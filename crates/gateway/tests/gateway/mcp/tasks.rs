//! A call that waits for its user as a task (A13).

use countersign::Principal;
use countersign::approve::Response;
use countersign::contract::ActorType;
use countersign::contract::approval::ApprovalDecision;
use insta::assert_json_snapshot;
use serde_json::{Value, json};

use super::confirm::connect;
use super::lines::Lines;
use crate::world::World;

/// Adds the metadata that a client with tasks sends with each message.
fn with_tasks(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "extensions": { "io.modelcontextprotocol/tasks": {} } },
    });
    params
}

async fn wipe(lines: &mut Lines) -> Value {
    let call = json!({ "name": "disk_wipe", "arguments": { "disk": "sda" } });
    lines.ask("tools/call", with_tasks(call)).await["result"].clone()
}

async fn get(lines: &mut Lines, id: &str) -> Value {
    let params = with_tasks(json!({ "taskId": id }));
    lines.ask("tasks/get", params).await
}

async fn decide(world: &World, id: &str, decision: ApprovalDecision) {
    let approvals = world.gateway.executor().approvals();
    let user = Principal::user("u_1");
    let response = Response::new(decision);
    approvals.decide(id, &user, &response).await.unwrap();
}

/// A13: the call waits, and runs once when the user has confirmed it.
#[tokio::test]
async fn a_task_waits_for_the_user_and_then_runs_once() {
    let (world, mut lines) = connect(ActorType::Agent).await;
    let task = wipe(&mut lines).await;
    let seen = ["resultType", "status", "pollIntervalMs"].map(|name| &task[name]);
    assert_json_snapshot!(seen, @r#"
    [
      "task",
      "working",
      2000
    ]
    "#);
    let ttl = task["ttlMs"].as_u64().unwrap();
    assert!((890_000..=900_000).contains(&ttl), "{ttl}");
    let id = task["taskId"].as_str().unwrap();
    let message = task["statusMessage"].as_str().unwrap();
    assert!(message.contains(id), "{message}");
    let waiting = get(&mut lines, id).await;
    assert_eq!(waiting["result"]["status"], "working", "{waiting}");
    decide(&world, id, ApprovalDecision::Approve).await;
    let done = get(&mut lines, id).await["result"].clone();
    assert_eq!(done["status"], "completed", "{done}");
    assert_eq!(done["result"]["content"][0]["text"], "sda is empty");
    let again = get(&mut lines, id).await["result"].clone();
    assert_eq!(again["result"], done["result"]);
}

/// A13: a refusal is a result, too.
#[tokio::test]
async fn a_task_that_the_user_refuses_is_completed_with_the_reason() {
    let (world, mut lines) = connect(ActorType::Agent).await;
    let task = wipe(&mut lines).await;
    let id = task["taskId"].as_str().unwrap();
    decide(&world, id, ApprovalDecision::Deny).await;
    let done = get(&mut lines, id).await["result"].clone();
    assert_eq!(done["status"], "completed", "{done}");
    assert_eq!(done["result"]["isError"], true);
    let text = done["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("FORBIDDEN"), "{text}");
}

/// A cancelled task is answered exactly like a missing one.
#[tokio::test]
async fn a_task_ends_with_cancel() {
    let (_world, mut lines) = connect(ActorType::Agent).await;
    let task = wipe(&mut lines).await;
    let id = task["taskId"].as_str().unwrap();
    let params = with_tasks(json!({ "taskId": id }));
    let ended = lines.ask("tasks/cancel", params).await;
    assert_eq!(ended["result"]["resultType"], "complete", "{ended}");
    for id in [id, "ap_0"] {
        let gone = get(&mut lines, id).await;
        assert_eq!(gone["error"]["code"], -32602, "{gone}");
    }
}

/// A client that has not declared tasks gets the plain answer, and cannot ask for a task.
#[tokio::test]
async fn only_clients_with_tasks_get_one() {
    let (_world, mut lines) = connect(ActorType::Agent).await;
    let mut plain = with_tasks(json!({ "name": "disk_wipe", "arguments": { "disk": "sda" } }));
    plain["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let told = lines.ask("tools/call", plain).await;
    assert_eq!(told["result"]["isError"], true, "{told}");
}
