//! B16, from end to end: model output → look-up by alias → bind → execute → tool → result → history,
//! with a scripted model, the real executor and the sample tools (B21), in every dialect.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot be set up fails"
)]

#[path = "support/golden.rs"]
mod golden;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use countersign::clock::ManualClock;
use countersign::contract::record::BindSummary;
use countersign::contract::{RequestEnvelope, RequestId};
use countersign::dialect::Dialect;
use countersign::dialect::stub::{Entry, ScriptedProvider, Transcript, Turn};
use countersign::history::HistoryEntry;
use countersign::ids::SequentialIds;
use countersign::ledger::MemoryStore;
use countersign::observe::{Answered, Observer};
use countersign::sample::{Diagnostics, MemorySearch};
use countersign::session::Session;
use countersign::{Arguments, CallContext, Catalog, Executor, Principal, Tool, ToolError};
use serde_json::{Value, json};

const SCRIPT: &str = include_str!("golden/script.json");

/// The outcome of each call of the script, in dialects that send arguments as text.
const ENDS: [(&str, &str, &[&str]); 8] = [
    ("memory_search", "OK", &[]),
    ("diagnostics_echo", "OK", &[]),
    ("memory_search", "OK", &["TEXT_TO_INTEGER"]),
    (
        "memory_search",
        "OK",
        &[
            "KEY_UNQUOTED",
            "QUOTE_STYLE",
            "TRAILING_COMMA",
            "FENCE_STRIPPED",
            "NULL_DROPPED",
        ],
    ),
    ("memory_search", "INVALID_ARGUMENT", &[]),
    ("memory_forget", "NOT_FOUND", &["TOOL_DEFINITION_MISSING"]),
    ("diagnostics_echo", "OK", &[]),
    ("memory_search", "INVALID_ARGUMENT", &["INCOMPLETE"]),
];

/// B15, B16, B21: one script of well-formed, sloppy, parallel, unknown and cut-off calls, in the
/// words of each provider.
#[tokio::test]
async fn a_conversation_in_every_dialect() {
    for dialect in Dialect::ALL {
        let (transcript, _) = play(dialect).await;
        golden::check(dialect, "conversation.json", &transcript.to_value());
        let kinds: String = transcript.entries.iter().map(kind).collect();
        assert_eq!(kinds, "mccr mcccr mcr mccr m".replace(' ', ""), "{dialect}");
    }
}

/// B16: the calls end the same way in every dialect that sends arguments as text; a dialect that
/// sends an object cannot carry a text that is none, so that one call is refused.
#[tokio::test]
async fn calls_end_the_same_way_in_every_dialect() {
    for dialect in Dialect::ALL {
        let (transcript, _) = play(dialect).await;
        let ends: Vec<_> = transcript.history().map(end).collect();
        let mut expected = ENDS.map(|(tool, code, issues)| (tool, code, issues.to_vec()));
        if sends_objects(dialect) {
            let fenced = expected.get_mut(3).unwrap();
            (fenced.1, fenced.2) = ("INVALID_ARGUMENT", vec!["UNKNOWN_KEY", "MISSING_REQUIRED"]);
        }
        assert_eq!(ends, expected, "{dialect}");
    }
}

/// B7, B16: a history entry has the model's own text byte for byte, the whole envelope, and the arguments found in the
/// text; it can be stored and read again.
#[tokio::test]
async fn history_keeps_what_the_model_wrote() {
    for dialect in Dialect::ALL {
        let (transcript, _) = play(dialect).await;
        let written: Value = serde_json::from_str(SCRIPT).unwrap();
        let turns = written.as_array().unwrap().iter();
        let written = turns.flat_map(|turn| turn["calls"].as_array().into_iter().flatten());
        for (entry, written) in transcript.history().zip(written) {
            let written = written["arguments"].as_str().unwrap();
            match serde_json::from_str::<Value>(written) {
                Ok(object) if sends_objects(dialect) => {
                    let kept: Value = serde_json::from_str(&entry.arguments).unwrap();
                    assert_eq!(kept, object, "{dialect}");
                }
                Err(_) if sends_objects(dialect) => {
                    let kept: Value = serde_json::from_str(&entry.arguments).unwrap();
                    assert_eq!(kept, json!({ "INVALID_JSON": written }), "{dialect}");
                }
                _ => assert_eq!(entry.arguments, written, "{dialect}"),
            }
            let kept = serde_json::to_string(entry).unwrap();
            let again: HistoryEntry = serde_json::from_str(&kept).unwrap();
            assert_eq!(again, *entry, "{dialect}");
        }
    }
}

/// B16: the content of a history entry is the text that the provider is sent.
#[tokio::test]
async fn the_model_reads_the_content_of_the_history() {
    for dialect in [
        Dialect::OpenAi,
        Dialect::OpenAiResponses,
        Dialect::Anthropic,
    ] {
        let (transcript, _) = play(dialect).await;
        let mut sent = Vec::new();
        for entry in &transcript.entries {
            if let Entry::Results(message) = entry {
                texts(message, &mut sent);
            }
        }
        for entry in transcript.history() {
            assert!(sent.contains(&entry.content()), "{dialect} {entry:?}");
        }
    }
}

/// B12, B19: every call leaves one record, cut-off and unknown ones too, and the record counts the model's mistakes.
#[tokio::test]
async fn every_call_of_a_model_leaves_a_record() {
    let (transcript, store) = play(Dialect::Stub).await;
    let records = store.records();
    let ids: Vec<&RequestId> = transcript
        .history()
        .map(|entry| &entry.reply.request_id)
        .collect();
    let recorded: Vec<&RequestId> = records.iter().map(|record| &record.request_id).collect();
    assert_eq!(ids, recorded);
    let seen: Vec<Value> = records
        .iter()
        .map(|record| json!([record.tool, record.session_id, record.binding]))
        .collect();
    let exact = json!({"status": "exact"});
    let fenced = json!({"status": "repaired", "issues": {"FENCE_STRIPPED": 1, "KEY_UNQUOTED": 1,
        "NULL_DROPPED": 1, "QUOTE_STYLE": 1, "TRAILING_COMMA": 1}});
    assert_eq!(
        json!(seen),
        json!([
            ["memory.search", "s_1", exact],
            ["diagnostics.echo", "s_1", exact],
            ["memory.search", "s_1", {"status": "repaired", "issues": {"TEXT_TO_INTEGER": 1}}],
            ["memory.search", "s_1", fenced],
            ["memory.search", "s_1", exact],
            ["memory_forget", null, {"status": "repaired", "issues": {"TOOL_DEFINITION_MISSING": 1}}],
            ["diagnostics.echo", "s_1", exact],
            ["memory.search", "s_1", {"status": "incomplete", "issues": {"INCOMPLETE": 1}}],
        ])
    );
}

/// B7, B8: the provider keeps a call of a tool that it does not know: the text byte for byte, the arguments as far
/// as they can be parsed, and the warning. Nothing runs.
#[tokio::test]
async fn a_call_of_an_unknown_tool_is_parsed_and_kept() {
    let catalog = Catalog::builder().build().unwrap();
    let observed = Arc::new(Seen::default());
    let store = Arc::new(MemoryStore::new());
    let executor = Executor::builder(catalog)
        .store(store.clone())
        .observer(observed.clone())
        .build();
    let session = Session::new(executor, Principal::user("u_1"));
    for (text, parsed, codes) in [
        (
            r#"{"a": 1}"#,
            Some(json!({"a": 1})),
            vec!["TOOL_DEFINITION_MISSING"],
        ),
        (
            "```json\n{days: '3', when: 'now',}\n```",
            Some(json!({"days": "3", "when": "now"})),
            vec![
                "TOOL_DEFINITION_MISSING",
                "KEY_UNQUOTED",
                "QUOTE_STYLE",
                "TRAILING_COMMA",
                "FENCE_STRIPPED",
            ],
        ),
        (
            r#"{"id": 123456789012345678901234567890}"#,
            serde_json::from_str(r#"{"id": 123456789012345678901234567890}"#).ok(),
            vec!["TOOL_DEFINITION_MISSING"],
        ),
        (
            "no arguments here",
            None,
            vec!["TOOL_DEFINITION_MISSING", "VALUE_UNQUOTED"],
        ),
    ] {
        let script = [Turn::text("").call("weather_get", text)];
        let transcript = ScriptedProvider::new(script).drive(&session).await.unwrap();
        let entry = transcript.history().next().unwrap();
        assert_eq!(entry.arguments, text);
        let error = entry.reply.error.as_ref().unwrap();
        assert_eq!(error.code.as_str(), "NOT_FOUND", "{text}");
        assert_eq!(
            entry.parsed.as_ref().map(Arguments::to_value),
            parsed,
            "{text}"
        );
        let found: Vec<_> = entry.issues().map(|issue| issue.code.as_str()).collect();
        assert_eq!(found, codes, "{text}");
        let warned = entry
            .reply
            .warnings
            .iter()
            .any(|it| it.code() == "TOOL_DEFINITION_MISSING");
        assert!(warned, "{text}");
        let record = store.records().pop().unwrap();
        for summary in [record.binding, observed.0.lock().unwrap().pop().unwrap()] {
            let counted: usize = summary.issues.values().map(|count| *count as usize).sum();
            assert!(
                counted >= codes.len() && summary.status.is_some(),
                "{summary:?}"
            );
        }
        // Big numbers keep their digits in the history.
        let kept = serde_json::to_string(entry).unwrap();
        assert_eq!(
            kept.matches("123456789012345678901234567890").count() % 2,
            0
        );
    }
}

/// Keeps the binder's events for telemetry.
#[derive(Default)]
struct Seen(Mutex<Vec<BindSummary>>);

impl Observer for Seen {
    fn answered(&self, answered: &Answered) {
        self.0.lock().unwrap().push(answered.binding.clone());
    }
}

/// B16: a call that was cut off never runs, in a message or in a stream, even if its text happens to be whole.
#[tokio::test]
async fn a_call_that_was_cut_off_never_runs() {
    let runs = Arc::new(AtomicU32::new(0));
    let catalog = Catalog::builder()
        .tool(Count(runs.clone()))
        .build()
        .unwrap();
    let session = Session::new(Executor::new(catalog), Principal::user("u_1"));

    let mut stream = Dialect::OpenAi.stream();
    for event in [
        json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c_1",
            "function": {"name": "sample_count", "arguments": "{}"}}]}}]}),
        json!({"choices": [{"delta": {}, "finish_reason": "length"}]}),
    ] {
        stream.push(&event.to_string()).unwrap();
    }
    let streamed = stream.finish().unwrap().calls;
    let message = r#"{"stop_reason": "max_tokens", "content": [{"type": "tool_use", "id": "t_1",
        "name": "sample_count", "input": {}}]}"#;
    let whole = Dialect::Anthropic.calls(message).unwrap();
    for call in streamed.iter().chain(&whole) {
        let reply = session.run(call).await;
        let error = reply.error.unwrap();
        assert_eq!(Some(error), call.refusal());
    }
    assert_eq!(runs.load(Ordering::SeqCst), 0);

    let script = [Turn::text("").call("sample_count", "{}")];
    ScriptedProvider::new(script).drive(&session).await.unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 1, "a whole one does");
}

/// A2, A5: members that belong to one call are not used for all calls of a conversation.
#[tokio::test]
async fn calls_of_a_session_do_not_share_an_id_or_a_key() {
    let runs = Arc::new(AtomicU32::new(0));
    let catalog = Catalog::builder()
        .tool(Count(runs.clone()))
        .build()
        .unwrap();
    let envelope = RequestEnvelope {
        request_id: Some(RequestId::new("r_1").unwrap()),
        idempotency_key: Some("k_1".to_owned()),
        ..RequestEnvelope::default()
    };
    let session = Session::new(Executor::new(catalog), Principal::user("u_1")).envelope(envelope);
    let script = [Turn::text("")
        .call("sample_count", "{}")
        .call("sample_count", "{}")];
    let transcript = ScriptedProvider::new(script).drive(&session).await.unwrap();
    let ids: Vec<_> = transcript
        .history()
        .map(|entry| &entry.reply.request_id)
        .collect();
    assert_ne!(ids.first(), ids.get(1));
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}

/// Counts its runs.
struct Count(Arc<AtomicU32>);

impl Tool for Count {
    const NAME: &'static str = "sample.count";
    const DESCRIPTION: &'static str = "Counts its runs.";
    type Args = ();
    type Output = u32;

    async fn call(&self, _: &CallContext, (): ()) -> Result<u32, ToolError> {
        Ok(self.0.fetch_add(1, Ordering::SeqCst) + 1)
    }
}

/// The script through one dialect, with time that stands still and ids that count.
async fn play(dialect: Dialect) -> (Transcript, Arc<MemoryStore>) {
    let catalog = Catalog::builder()
        .tool(MemorySearch::new(["green tea", "coffee", "black tea"]))
        .tool(Diagnostics)
        .build()
        .unwrap();
    let store = Arc::new(MemoryStore::new());
    let start = "2026-11-15T12:00:00Z".parse().unwrap();
    let executor = Executor::builder(catalog)
        .store(store.clone())
        .clock(Arc::new(ManualClock::starting_at(start)))
        .ids(Arc::new(SequentialIds::new()))
        .build();
    let envelope = RequestEnvelope {
        session_id: Some("s_1".to_owned()),
        ..RequestEnvelope::default()
    };
    let session = Session::new(executor, Principal::user("u_1")).envelope(envelope);
    let provider = ScriptedProvider::from_json(SCRIPT)
        .unwrap()
        .speaking(dialect);
    (provider.drive(&session).await.unwrap(), store)
}

fn kind(entry: &Entry) -> char {
    match entry {
        Entry::Model(_) => 'm',
        Entry::Call(_) => 'c',
        Entry::Results(_) => 'r',
    }
}

fn end(entry: &HistoryEntry) -> (&str, &str, Vec<&str>) {
    let code = entry
        .reply
        .error
        .as_ref()
        .map_or("OK", |error| error.code.as_str());
    let issues = entry.issues().map(|issue| issue.code.as_str()).collect();
    (&entry.tool, code, issues)
}

fn sends_objects(dialect: Dialect) -> bool {
    match dialect {
        Dialect::Anthropic | Dialect::Gemini | Dialect::Mcp => true,
        Dialect::OpenAi | Dialect::OpenAiResponses | Dialect::Text | Dialect::Stub => false,
    }
}

/// Every text in a message.
fn texts(message: &Value, found: &mut Vec<String>) {
    match message {
        Value::String(text) => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(members) => members.values().for_each(|member| texts(member, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
