//! Tools of the program itself, with overrides of the configuration.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use countersign::sample::MemorySearch;
use countersign::{Catalog, Executor, Principal, ToolCall, tool};
use countersign_upstream::overridden::overridden;
use countersign_upstream::{Manifest, ToolEntry};

fn entry(text: &str) -> ToolEntry {
    let manifest: Manifest = toml::from_str(text).unwrap();
    manifest.overrides().remove(0)
}

/// B14: an entry changes what is declared, and presets reach the tool and nobody else.
#[tokio::test]
async fn an_entry_overrides_a_tool_of_the_program() {
    let own = tool::erase(MemorySearch::new(["buy milk", "milk the cow", "milk tea"])).unwrap();
    let entry = entry(
        r#"
        [[tool]]
        name = "memory.search"
        title = "Notes"
        description = "Finds one note."
        ttl_seconds = 9
        arguments.limit.preset = 1
        arguments.query.aliases = ["q"]
        "#,
    );
    let made = overridden(own, &entry).unwrap();
    let catalog = Catalog::builder().dyn_tool(made).build().unwrap();
    let executor = Executor::new(catalog);
    let call = |arguments: &str| {
        let call = ToolCall::new("memory.search", arguments, Principal::user("ann"));
        executor.execute(call)
    };
    let reply = call(r#"{"q": "milk"}"#).await;
    assert!(reply.ok, "{reply:?}");
    assert_eq!(reply.ttl_seconds, Some(9));
    assert_eq!(
        reply.data.to_string().matches("milk").count(),
        1,
        "{}",
        reply.data
    );
    let refused = call(r#"{"query": "milk", "limit": 3}"#)
        .await
        .error
        .unwrap();
    assert_eq!(refused.details.field.as_deref(), Some("/limit"));
    let entry = executor.catalog().get("memory.search").unwrap();
    assert_eq!(entry.spec().title.as_deref(), Some("Notes"));
    assert!(!entry.spec().json_schema().to_string().contains("limit"));
}
