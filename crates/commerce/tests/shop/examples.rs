//! The example on every tool's page is a call that the tool understands: a newcomer copies it, and so does a model.

use countersign::Catalog;
use countersign::contract::markdown;
use serde_json::Value;

use crate::world::World;

/// B2: neither the binder nor the tool refuses the arguments. An order or a record of that id need not exist.
#[tokio::test]
async fn every_example_is_understood() {
    let world = World::new();
    let catalog = countersign_commerce::tools(Catalog::builder())
        .build()
        .unwrap();
    let mut refused = Vec::new();
    for entry in catalog.list() {
        let spec = entry.spec();
        let mut call = example(&markdown::tool_page(spec));
        let arguments = call["arguments"].take();
        call.as_object_mut().unwrap().remove("arguments");
        let reply = world
            .call_as("u_1", spec.name.as_str(), arguments, call)
            .await;
        let is_understood = match reply["error"]["code"].as_str() {
            None => reply["ok"] == true,
            Some(code) => ["NOT_FOUND", "NEEDS_USER_CONFIRMATION"].contains(&code),
        };
        if !is_understood {
            refused.push(format!("{}: {}", spec.name, reply["error"]));
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

/// The call at the end of a page.
fn example(page: &str) -> Value {
    let (_, example) = page.split_once("## Example\n\n```json\n").unwrap();
    let (example, _) = example.split_once("\n```").unwrap();
    serde_json::from_str(example).unwrap()
}
