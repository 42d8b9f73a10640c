//! Answers over a size: cut, with a handle for the rest.

use std::sync::Arc;

use countersign::archive::{Content, SCOPE_OPEN};
use countersign::contract::{Actor, ActorType, SnapshotId, ToolName, ToolSpec};
use countersign::ledger::{MemoryStore, Store};
use countersign::pattern::ToolPattern;
use countersign::{Catalog, Principal};
use countersign_gateway::offer::OfferRules;
use countersign_store::postgres::{PostgresOptions, PostgresStore};
use countersign_store::sqlite::{SqliteOptions, SqliteStore};
use countersign_testkit::postgres::shared_postgres;
use serde_json::{Value, json};

use super::{Fixed, catalog_with, fixed, listed, settings};
use crate::http_client::post;
use crate::mcp::Modern;
use crate::world::World;

const BYTES_MAX: usize = 2_000;

fn rows() -> Value {
    let rows = (0..300).map(|n| json!({ "id": n, "name": format!("row {n} 行") }));
    json!({ "items": rows.collect::<Vec<_>>(), "total": 300 })
}

/// A tool whose answer is long, one that promises how many items there are, and one that is left whole.
fn catalog() -> Catalog {
    let promise = json!({
        "type": "object",
        "properties": { "items": { "type": "array", "minItems": 300 }, "total": { "type": "integer" } },
        "required": ["items", "total"],
    });
    let mut spec = ToolSpec::new(ToolName::new("rows.promised").unwrap(), "Lists 300 rows.");
    spec.output = Some(promise);
    catalog_with(0, |builder| {
        builder
            .dyn_tool(fixed("rows.list", "Lists rows.", rows()))
            .dyn_tool(fixed("rows.whole", "Lists rows, all of them.", rows()))
            .dyn_tool(Arc::new(Fixed { spec, data: rows() }))
    })
}

fn rules() -> OfferRules {
    OfferRules {
        result_bytes_max: Some(BYTES_MAX),
        result_rules: vec![(ToolPattern::new("rows.whole").unwrap(), None)],
        ..OfferRules::default()
    }
}

/// The handle in a text that says that an answer was cut.
fn handle(text: &str) -> String {
    let (_, behind) = text.split_once("with the handle \"").unwrap();
    behind.split('"').next().unwrap().to_owned()
}

async fn on(store: Arc<dyn Store>) -> World {
    World::on(store, catalog(), settings(rules())).await
}

/// Fetches everything that is missing of a cut answer.
async fn whole(client: &Modern<'_>, cut: &Value, mut next: String) -> Value {
    let mut data = json!({ "items": cut["items"], "total": cut["total"] });
    for _ in 0..100 {
        let part = client.call("fetch_rest", json!({ "handle": next })).await;
        assert_eq!(part["isError"], false, "{part}");
        let part = &part["structuredContent"];
        assert!(part.to_string().len() <= BYTES_MAX, "{part}");
        assert_eq!(part["path"], "/items");
        let items = data["items"].as_array_mut().unwrap();
        assert_eq!(part["from"], items.len());
        items.extend(part["items"].as_array().unwrap().iter().cloned());
        let Some(handle) = part["next_handle"].as_str() else {
            assert_eq!(part["is_last"], true);
            return data;
        };
        handle.clone_into(&mut next);
    }
    panic!("it does not end");
}

async fn check(store: Arc<dyn Store>) {
    let world = on(store.clone()).await;
    let client = Modern::new(&world);
    let result = client.call("rows_list", json!({})).await;
    let cut = &result["structuredContent"];
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.len() < BYTES_MAX + 500, "{text}");
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), *cut);
    let note = cut["answer_cut"].as_str().unwrap();
    assert!(
        note.contains("/items has ") && note.contains(" of 300 items"),
        "{note}"
    );
    let id = cut["evidence"]["snapshot_id"].as_str().unwrap();
    // Another process on the same store has the rest as well: nothing is kept for it in memory.
    let world = on(store).await;
    let client = Modern::new(&world);
    assert_eq!(whole(&client, cut, handle(note)).await, rows());
    // The record holds the whole.
    let auditor = Principal::user("auditor").scope(SCOPE_OPEN);
    let id = SnapshotId::new(id).unwrap();
    let opened = world
        .gateway
        .archive()
        .open(&id, &auditor, "a test")
        .await
        .unwrap();
    let Content::Open(payload) = opened.content else {
        panic!("{:?}", opened.content);
    };
    assert_eq!(payload.data.unwrap().value().unwrap(), rows());
}

/// A9: a long answer is cut, its parts make the whole, and its record holds the whole.
#[tokio::test]
async fn a_long_answer_is_cut_and_fetched() {
    check(Arc::new(MemoryStore::new().keeping_log())).await;
    let folder = tempfile::tempdir().unwrap();
    let sqlite = SqliteStore::open(folder.path().join("c.db"), SqliteOptions::default());
    check(Arc::new(sqlite.unwrap())).await;
    let url = shared_postgres().fresh_database();
    let postgres = PostgresStore::open(PostgresOptions::new(&url)).await;
    check(Arc::new(postgres.unwrap())).await;
}

/// The rest of an answer is for the caller who was answered only.
#[tokio::test]
async fn the_rest_is_for_its_caller_only() {
    let agent = |id: &str, user: &str| {
        let actor = Actor {
            kind: ActorType::Agent,
            id: id.to_owned(),
        };
        Principal::new(actor, user)
    };
    let world = on(Arc::new(MemoryStore::new().keeping_log())).await;
    let anns = world.beside(agent("helper", "ann")).await;
    let anns = Modern::new(&anns);
    let result = anns.call("rows_list", json!({})).await;
    let handle = handle(result["structuredContent"]["answer_cut"].as_str().unwrap());
    let arguments = json!({ "handle": handle });
    let part = anns.call("fetch_rest", arguments.clone()).await;
    assert_eq!(part["isError"], false, "{part}");
    for other in [
        agent("helper", "bob"),
        agent("other", "ann"),
        Principal::user("ann"),
    ] {
        let others = world.beside(other.clone()).await;
        let others = Modern::new(&others);
        let part = others.call("fetch_rest", arguments.clone()).await;
        let error = &part["_meta"]["dev.countersign/error"]["code"];
        assert_eq!(*error, "NOT_FOUND", "{other:?}");
    }
    for changed in [
        handle.replace("ev_", "ev_0"),
        handle.replace(".2000.", ".9999999999."),
        format!("{handle}.1"),
        String::new(),
    ] {
        let part = anns.call("fetch_rest", json!({ "handle": changed })).await;
        assert_eq!(part["isError"], true, "{changed}");
    }
}

/// The promised form of an answer still holds: where the cut would break it, the data is whole and the text alone is cut.
#[tokio::test]
async fn a_promised_answer_keeps_its_form() {
    let world = on(Arc::new(MemoryStore::new().keeping_log())).await;
    let client = Modern::new(&world);
    let call = async |capabilities: Value| {
        let meta = json!({ "io.modelcontextprotocol/clientCapabilities": capabilities });
        let params = json!({ "name": "rows_promised", "arguments": {}, "_meta": meta });
        let (_, message) = client.ask("tools/call", params).await;
        message["result"].clone()
    };
    let count = |result: &Value| {
        let items = result["structuredContent"]["items"].as_array();
        items.unwrap().len()
    };
    // Listed in short, the form says nothing about the number of items.
    assert!(count(&call(json!({})).await) < 300);
    let extensions = json!({ "extensions": { "dev.countersign/tool-envelope": {} } });
    let result = call(extensions).await;
    assert_eq!(count(&result), 300);
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(
        text.len() < BYTES_MAX + 500 && text.contains("answer_cut"),
        "{text}"
    );
    // Behind the facade nothing is promised.
    let arguments = json!({ "name": "rows_promised" });
    let behind = client.call("call_tool", arguments).await;
    assert!(count(&behind) < 300);
}

/// A tool may have a size of its own; programs over HTTP get everything; providers' models get the cut one.
#[tokio::test]
async fn sizes_are_for_models() {
    let world = on(Arc::new(MemoryStore::new().keeping_log())).await;
    let client = Modern::new(&world);
    assert!(
        listed(&client, json!({}))
            .await
            .contains(&"fetch_rest".to_owned())
    );
    let result = client.call("rows_whole", json!({})).await;
    assert_eq!(
        result["structuredContent"]["items"]
            .as_array()
            .unwrap()
            .len(),
        300
    );
    let reply = post(&world, "/v1/tools/rows.list", "{}").await.json();
    assert_eq!(reply["data"], rows());
    let message = json!({"role": "assistant", "content": [
        {"type": "tool_use", "id": "c_1", "name": "rows_list", "input": {}}]});
    let path = "/v1/providers/anthropic/calls";
    let answer = post(&world, path, &message.to_string()).await;
    assert!(answer.body.len() < BYTES_MAX * 2, "{}", answer.body.len());
    assert!(answer.body.contains("fetch_rest"), "{}", answer.body);
    let without = World::made(settings(OfferRules::default()), catalog(), |it| it).await;
    let client = Modern::new(&without);
    assert!(
        !listed(&client, json!({}))
            .await
            .contains(&"fetch_rest".to_owned())
    );
    let result = client.call("rows_list", json!({})).await;
    assert_eq!(
        result["structuredContent"]["items"]
            .as_array()
            .unwrap()
            .len(),
        300
    );
}
