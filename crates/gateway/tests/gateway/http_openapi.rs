//! `/openapi.json`: it describes the server, and equals the copy in `docs/`.

use serde_json::Value;

use crate::http_client::get;
use crate::world::World;

/// The document for the sample tools equals the committed one; `cargo xtask generate` regenerates that.
#[tokio::test]
async fn the_committed_document_is_what_a_server_says() {
    let world = World::start().await;
    let served = get(&world, "/openapi.json").await.json();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    let committed: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert!(served == committed, "run `cargo xtask generate`");
}

/// Every reference in the document resolves within it.
#[tokio::test]
async fn every_reference_leads_somewhere() {
    let world = World::start().await;
    let document = get(&world, "/openapi.json").await.json();
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > 100, "{}", found.len());
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

/// Every path of the document exists on the server.
#[tokio::test]
async fn every_path_is_there() {
    let world = World::start().await;
    let document = get(&world, "/openapi.json").await.json();
    let is_no_path = |body: &str| body.contains(" here\"");
    assert!(is_no_path(&get(&world, "/v1/nowhere").await.body));
    for (path, operations) in document["paths"].as_object().unwrap() {
        let path = path.replace(['{', '}'], "");
        for method in operations.as_object().unwrap().keys() {
            let method = method.to_uppercase();
            let answer = crate::http_client::send(&world, &method, &path, &[], "{}").await;
            assert_ne!(answer.status, 405, "{method} {path}");
            assert!(!is_no_path(&answer.body), "{method} {path}: {answer:?}");
        }
    }
}

fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(target) if name == "$ref" => found.push(target.clone()),
                    value => references(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
