//! Tools of the program itself, with overrides of the configuration.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use countersign::contract::tool::{Change, EvidenceRule};
use countersign::contract::{ErrorCode, Retention};
use countersign::sample::{AddNote, MemorySearch};
use countersign::{Catalog, Executor, Principal, ToolCall, tool};
use countersign_upstream::overridden::overridden;
use countersign_upstream::{Manifest, ToolEntry};

fn entry(text: &str) -> ToolEntry {
    let manifest: Manifest = toml::from_str(text).unwrap();
    manifest.overrides().remove(0)
}

/// B14: an entry changes the declaration, and presets reach the tool and no caller.
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

/// B14: every other member that makes sense of a tool of the program: its name, confirmation, evidence, retention, deadline, leniency,
/// examples, kinds and sensitivity. Effect and recovery belong to its code and stay.
#[tokio::test]
async fn behaviour_of_a_tool_of_the_program_is_overridden() {
    let own = tool::erase(AddNote).unwrap();
    let before = own.spec().clone();
    let entry = entry(
        r#"
        [[tool]]
        name = "notes.add"
        shown_as = "memo.add"
        confirm = "always"
        evidence = "required"
        retention = "long"
        deadline_ms = 1234
        leniency = "strict"
        change = "sets"
        effect = "read"
        recovery = "retry"
        key_fields = ["/text"]
        examples = [{ text = "buy milk" }]
        arguments.text = { sensitivity = "secret", description = "The memo." }
        "#,
    );
    let made = overridden(own, &entry).unwrap();
    let spec = made.spec().clone();
    assert_eq!(spec.name.as_str(), "memo.add");
    assert_eq!(spec.behaviour.effect, before.behaviour.effect);
    assert_eq!(spec.behaviour.recovery, before.behaviour.recovery);
    assert_eq!(spec.behaviour.deadline_ms, 1234);
    assert_eq!(spec.behaviour.retention, Retention::Long);
    assert_eq!(spec.behaviour.evidence, EvidenceRule::Required);
    assert_eq!(spec.behaviour.change, Change::Sets);
    assert_eq!(spec.behaviour.idempotency.fields, ["/text"]);
    let schema = spec.json_schema();
    assert_eq!(schema["properties"]["text"]["description"], "The memo.");
    assert_eq!(schema["examples"][0]["text"], "buy milk");
    let executor = Executor::new(Catalog::builder().dyn_tool(made).build().unwrap());
    let call = |tool: &str, arguments: &str| {
        executor.execute(ToolCall::new(tool, arguments, Principal::user("ann")))
    };
    let asked = call("memo.add", r#"{"text": "my secret"}"#).await;
    let error = asked.error.as_ref().unwrap();
    assert_eq!(error.code, ErrorCode::NeedsUserConfirmation);
    assert!(!serde_json::to_string(&asked).unwrap().contains("my secret"));
    let refused = call("memo.add", "{text: 'x'}").await;
    assert_eq!(refused.error.unwrap().code, ErrorCode::InvalidArgument);
    let old = call("notes.add", r#"{"text": "x"}"#).await;
    assert_eq!(old.error.unwrap().code, ErrorCode::NotFound);
}
