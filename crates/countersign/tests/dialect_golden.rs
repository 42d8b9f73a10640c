//! Golden files, one directory a dialect in `tests/golden`: the messages to and from a provider, and their decoded form
//! (B15). `UPDATE_GOLDEN=1` rewrites the expected files; a difference fails with both texts.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot read its files fails"
)]

#[path = "support/golden.rs"]
mod golden;
#[path = "support/specs.rs"]
mod specs;

use countersign::dialect::{
    Dialect, NoteKind, Provenance, ProviderCall, StreamEvent, ToolListOptions,
};
use countersign_contract::{
    ConflictReason, ErrorBody, ErrorCode, Evidence, Issue, IssueCode, ReplyEnvelope, RequestId,
    SnapshotId, Source, ToolSpec, Warning,
};
use serde_json::{Value, json};

use golden::{check, read};

/// B15: one declaration serves every provider.
#[test]
fn tools() {
    for dialect in Dialect::ALL {
        check(
            dialect,
            "tools.json",
            &tool_list(dialect, ToolListOptions::default()),
        );
    }
}

/// B15: if a provider can enforce a schema, it gets one that it can enforce.
#[test]
fn strict_tools() {
    let options = ToolListOptions {
        strict: true,
        ..ToolListOptions::default()
    };
    for dialect in [
        Dialect::OpenAi,
        Dialect::OpenAiResponses,
        Dialect::Anthropic,
    ] {
        check(dialect, "tools_strict.json", &tool_list(dialect, options));
    }
}

/// B15: a program that asks for it gets all that is declared.
#[test]
fn whole_tools() {
    let options = ToolListOptions {
        whole: true,
        ..ToolListOptions::default()
    };
    let whole = tool_list(Dialect::Mcp, options);
    check(Dialect::Mcp, "tools_whole.json", &whole);
}

/// B15: Gemini's older form of a schema.
#[test]
fn openapi_tools() {
    let options = ToolListOptions {
        openapi: true,
        ..ToolListOptions::default()
    };
    check(
        Dialect::Gemini,
        "tools_openapi.json",
        &tool_list(Dialect::Gemini, options),
    );
}

/// B15: every provider's message becomes the same kind of call, argument text untouched.
#[test]
fn calls() {
    for dialect in Dialect::ALL {
        let calls = dialect.calls(&read(dialect, "message.json")).unwrap();
        check(
            dialect,
            "calls.json",
            &calls.iter().map(call_json).collect(),
        );
    }
}

/// B15: a streamed message becomes the same calls, and each step can be watched.
#[test]
fn streams() {
    for dialect in Dialect::ALL {
        let mut stream = dialect.stream();
        let mut events = Vec::new();
        for line in read(dialect, "stream.jsonl").lines() {
            events.extend(stream.push(line).unwrap());
        }
        let end = stream.finish().unwrap();
        let seen = json!({
            "events": events.iter().map(event_json).collect::<Vec<_>>(),
            "calls": end.calls.iter().map(call_json).collect::<Vec<_>>(),
            "stop_reason": end.stop_reason,
            "truncated": end.truncated,
        });
        check(dialect, "streamed.json", &seen);
    }
}

/// A7, A12: the whole reply envelope has a place in every dialect, and an error shows the model its code, its reason
/// and the next step.
#[test]
fn results() {
    for dialect in Dialect::ALL {
        let calls = dialect.calls(&read(dialect, "message.json")).unwrap();
        let call = |at: usize| {
            let mut call = calls.get(at).unwrap_or(&calls[0]).clone();
            call.index = at;
            call
        };
        let answered: Vec<_> = replies()
            .into_iter()
            .enumerate()
            .map(|(at, reply)| (call(at), reply))
            .collect();
        check(dialect, "results.json", &dialect.results(&answered));
    }
}

/// The message that is put together from calls is read back as the same calls, with the members that the provider
/// requires back.
#[test]
fn a_message_made_from_calls_is_read_as_those_calls() {
    for dialect in Dialect::ALL {
        let calls = dialect.calls(&read(dialect, "message.json")).unwrap();
        let again = dialect
            .calls_in(&dialect.message("Let me look.", &calls))
            .unwrap();
        assert_eq!(again.len(), calls.len(), "{dialect}");
        for (again, call) in again.iter().zip(&calls) {
            assert_eq!(again.name, call.name, "{dialect}");
            assert_eq!(again.opaque, call.opaque, "{dialect}");
            // A text has no ids in it: they are made from it.
            let is_made = call.id.is_none() || dialect == Dialect::Text;
            assert!(again.id == call.id || is_made, "{dialect}");
        }
    }
}

fn replies() -> Vec<ReplyEnvelope> {
    let id = |text: &str| RequestId::new(text).unwrap();
    let mut found = ReplyEnvelope::success(id("r_1"), json!({ "hits": ["a", "b"] }));
    let mut retyped = Issue::new(IssueCode::TextToInteger, "/limit", "read as the integer 3");
    retyped.expected = Some("integer".to_owned());
    found.warnings = vec![
        Warning::Issue(retyped),
        Warning::Remark {
            code: "index_rebuilding".to_owned(),
            message: "notes of the last minute may be missing".to_owned(),
        },
    ];
    found.ttl_seconds = Some(60);
    found.evidence = Some(Evidence {
        snapshot_id: SnapshotId::new("ev_1").unwrap(),
        sources: vec![Source {
            kind: "tool".to_owned(),
            name: "memory.search".to_owned(),
            hash: "sha256:00".to_owned(),
            ts: "2026-11-15T12:00:00Z".to_owned(),
        }],
        checkpoint: None,
    });
    found.replayed = true;

    let mut wrong = ErrorBody::new(ErrorCode::InvalidArgument, "1 argument cannot be used")
        .hint("send the call again with the suggestion");
    let mut issue = Issue::new(
        IssueCode::UnknownKey,
        "/qurey",
        "the tool knows no \"qurey\"",
    );
    issue.expected = Some("query, limit".to_owned());
    issue.suggestion = Some("did you mean \"query\"?".to_owned());
    wrong.details.issues = vec![issue];

    let busy = ErrorBody::new(ErrorCode::Conflict, "the first call has not finished")
        .reason(ConflictReason::InFlight)
        .retry_after_ms(250);
    vec![
        found,
        ReplyEnvelope::failure(id("r_2"), wrong),
        ReplyEnvelope::failure(id("r_3"), busy),
        ReplyEnvelope::success(id("r_4"), json!("plain text")),
    ]
}

fn tool_list(dialect: Dialect, options: ToolListOptions) -> Value {
    let specs = specs::all();
    let specs: Vec<&ToolSpec> = specs.iter().collect();
    let list = dialect.tools(&specs, &options).unwrap();
    assert_eq!(list.trimmed, []);
    let note = |kind: &NoteKind| match kind {
        NoteKind::NotStrict { path, keyword } => format!("not strict: {keyword} at {path:?}"),
        NoteKind::Widened { path, keyword } => format!("widened: {keyword} at {path:?}"),
    };
    let notes: Vec<_> = list
        .notes
        .iter()
        .map(|found| json!([found.tool.as_str(), note(&found.kind)]))
        .collect();
    json!({ "tools": list.json, "notes": notes, "tokens": list.tokens })
}

fn call_json(call: &ProviderCall) -> Value {
    json!({
        "id": call.id,
        "name": call.name,
        "arguments": call.arguments.text,
        "provenance": match call.arguments.provenance {
            Provenance::AsSent => "as_sent",
            Provenance::Reserialised => "reserialised",
        },
        "opaque": call.opaque,
        "index": call.index,
        "truncated": call.truncated,
    })
}

fn event_json(event: &StreamEvent) -> Value {
    match event {
        StreamEvent::CallStarted { index, id, name } => json!(["started", index, id, name]),
        StreamEvent::ArgumentsDelta { index, text } => json!(["arguments", index, text]),
        StreamEvent::CallFinished { index } => json!(["finished", index]),
    }
}
