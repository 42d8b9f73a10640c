//! From a model's words to the history of a conversation (B16), through the sample tools (B21).

use countersign::history::HistoryEntry;
use countersign::sample::{Diagnostics, MemorySearch};
use countersign::{Catalog, Executor, Principal, ToolCall};
use serde_json::{Value, json};
use tower_service::Service;

fn executor() -> Executor {
    let notes = [
        "Buy milk and bread",
        "Call the bank",
        "milk the cow, buy milk",
    ];
    let catalog = Catalog::builder()
        .tool(MemorySearch::new(notes))
        .tool(Diagnostics);
    Executor::new(catalog.build().unwrap())
}

async fn run(tool: &str, raw: &str) -> HistoryEntry {
    let reply = executor()
        .execute(ToolCall::new(tool, raw, Principal::user("u_1")))
        .await;
    HistoryEntry::new("call_1", tool, raw, reply)
}

/// B16, B21: found by the provider's name, bound, run, and kept with the model's own words.
#[tokio::test]
async fn a_models_call_becomes_a_history_entry() {
    let raw = r#"{ "query": "buy MILK" }"#;
    let entry = run("memory_search", raw).await;
    assert_eq!((entry.arguments.as_str(), entry.is_error()), (raw, false));
    assert_eq!(
        serde_json::from_str::<Value>(&entry.content()).unwrap(),
        json!([
            {"text": "Buy milk and bread", "score": 1.0},
            {"text": "milk the cow, buy milk", "score": 1.0},
        ])
    );
    let kept: HistoryEntry = serde_json::from_value(serde_json::to_value(&entry).unwrap()).unwrap();
    assert_eq!(kept, entry);
}

/// B16: the next step after an error is in the text for the model.
#[tokio::test]
async fn an_error_tells_the_model_what_to_do() {
    let entry = run("memory.search", r#"{"query": "!"}"#).await;
    assert!(entry.is_error());
    assert_eq!(
        entry.content(),
        "INVALID_ARGUMENT: the query contains no word.\n- /query"
    );
}

/// B21: the diagnostics tool reports the call that it is in.
#[tokio::test]
async fn diagnostics_report_the_call() {
    let raw = r#"{"payload": {"n": 1}}"#;
    let entry = run("diagnostics.echo", raw).await;
    let data = &entry.reply.data;
    assert_eq!(
        (&data["payload"], &data["raw_bytes"]),
        (&json!({"n": 1}), &json!(raw.len()))
    );
    assert_eq!(data["issues"], json!([]));
    assert!(data["traceparent"].as_str().unwrap().starts_with("00-"));
}

/// The executor is a service that never fails, for callers that put layers around it.
#[tokio::test]
async fn the_executor_is_a_service() {
    let mut service = executor();
    let call = ToolCall::new("nobody", "{}", Principal::user("u_1"));
    let Ok(reply) = service.call(call).await;
    assert_eq!(reply.http_status(), 404);
}
