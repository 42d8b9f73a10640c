//! Malformed messages and events (B15, A12): read if the meaning is plain, otherwise refused with the place.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use countersign::dialect::{
    CALLS_MAX, DecodeError, Dialect, MESSAGE_BYTES_MAX, Provenance, StreamEnd,
};
use countersign_contract::{ErrorBody, ErrorCode, IssueCode};
use serde_json::json;

use Dialect::{Anthropic, Gemini, Mcp, OpenAi, OpenAiResponses, Stub};

/// B15: an error names the place in the provider's own message.
#[test]
fn malformed_messages_name_the_place() {
    refused(OpenAi, "", "the message is not JSON, see line 1 column 0");
    refused(OpenAi, "[1]", "\"\" should be an object and is a list");
    refused(OpenAi, r#"{"hello": 1}"#, "/role is missing");
    refused(
        OpenAi,
        r#"{"tool_calls": [{"function": {"name": "a"}}, {"id": 3, "function": {}}]}"#,
        "\"/tool_calls/1/id\" should be a text and is a number",
    );
    refused(
        OpenAi,
        r#"{"tool_calls": [{"id": "c", "function": {"name": ""}}]}"#,
        "/tool_calls/0/function/name is missing",
    );
    refused(
        OpenAi,
        r#"{"choices": [{"message": {"role": "a"}}, {}]}"#,
        "at \"/choices/1\": more than one choice; ask for n = 1",
    );
    refused(
        OpenAi,
        r#"{"role": "assistant", "function_call": {"name": "a"}}"#,
        "at \"/function_call\": the form before tool_calls; offer tools, not functions",
    );
    refused(
        OpenAiResponses,
        r#"{"output": [{"type": "function_call", "name": "a"}]}"#,
        "/output/0/call_id is missing",
    );
    refused(
        OpenAiResponses,
        r#"[{"type": "custom_tool_call", "name": "a"}]"#,
        "at \"/0\": a custom tool, whose input is free text",
    );
    refused(Anthropic, r#"{"role": "assistant"}"#, "/content is missing");
    refused(
        Anthropic,
        r#"{"content": [{"type": "tool_use", "id": "t"}]}"#,
        "/content/0/name is missing",
    );
    refused(Gemini, "{}", "/candidates is missing");
    refused(
        Gemini,
        r#"{"parts": [{"functionCall": {"name": "a", "partialArgs": []}}]}"#,
        "at \"/parts/0/functionCall/partialArgs\": arguments in pieces; switch \
         streamFunctionCallArguments off",
    );
    refused(
        Mcp,
        r#"{"method": "tools/list"}"#,
        "at \"/method\": not a call of a tool",
    );
    refused(
        Mcp,
        r#"{"method": "tools/call", "id": 1}"#,
        "/params is missing",
    );
    refused(
        Stub,
        r#"{"calls": {}}"#,
        "\"/calls\" should be a list and is an object",
    );
}

/// B15: servers that speak a provider's dialect with an accent are understood.
#[test]
fn other_shapes_of_arguments_are_taken() {
    let text = |dialect: Dialect, message: &str| {
        let calls = dialect.calls(message).unwrap();
        (
            calls[0].arguments.text.clone(),
            calls[0].arguments.provenance,
        )
    };
    let object = r#"{"tool_calls": [{"function": {"name": "a", "arguments": {"b":  1.0}}}]}"#;
    assert_eq!(
        text(OpenAi, object),
        (r#"{"b":  1.0}"#.to_owned(), Provenance::AsSent)
    );
    let absent = r#"{"tool_calls": [{"function": {"name": "a", "arguments": null}}]}"#;
    assert_eq!(
        text(OpenAi, absent),
        ("{}".to_owned(), Provenance::Reserialised)
    );
    let string = r#"{"name": "a", "arguments": "{\"b\": 1}"}"#;
    assert_eq!(
        text(Mcp, string),
        (r#"{"b": 1}"#.to_owned(), Provenance::AsSent)
    );
}

/// B7: arguments that were parsed before they reach us have the provenance that their text is not the model's own.
#[test]
fn a_parsed_message_says_so() {
    let message = json!([{ "type": "tool_use", "id": "t", "name": "a", "input": { "b": 1 } }]);
    let calls = Anthropic.calls_in(&message).unwrap();
    assert_eq!(calls[0].arguments.provenance, Provenance::Reserialised);
    let message = json!({ "tool_calls": [{ "function": { "name": "a", "arguments": "{ }" } }] });
    let calls = OpenAi.calls_in(&message).unwrap();
    assert_eq!(calls[0].arguments.text, "{ }");
    assert_eq!(calls[0].arguments.provenance, Provenance::AsSent);
}

#[test]
fn sizes_are_bounded() {
    let long = format!("\"{}\"", "x".repeat(MESSAGE_BYTES_MAX));
    for dialect in Dialect::ALL {
        let bytes = long.len();
        assert_eq!(dialect.calls(&long), Err(DecodeError::TooLarge { bytes }));
        assert_eq!(
            dialect.stream().push(&long),
            Err(DecodeError::TooLarge { bytes })
        );
    }
    let call = json!({ "name": "a", "arguments": "" });
    let message = |calls: usize| json!({ "calls": vec![call.clone(); calls] });
    assert_eq!(Stub.calls_in(&message(CALLS_MAX)).unwrap().len(), CALLS_MAX);
    assert_eq!(
        Stub.calls_in(&message(CALLS_MAX + 1)),
        Err(DecodeError::TooManyCalls)
    );

    let mut stream = Stub.stream();
    stream
        .push(r#"{"call": {"index": 0, "name": "a"}}"#)
        .unwrap();
    let mebibyte = "x".repeat(1024 * 1024);
    let delta = json!({ "delta": { "index": 0, "arguments": mebibyte } }).to_string();
    for _ in 0..4 {
        stream.push(&delta).unwrap();
    }
    assert!(matches!(
        stream.push(&delta),
        Err(DecodeError::TooLarge { .. })
    ));
}

/// Arguments nested deeper than any parser's stack are only passed on; the binder refuses them.
#[test]
fn depth_does_not_matter_here() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let message = format!(r#"{{"name": "a", "arguments": {deep}}}"#);
    assert_eq!(Mcp.calls(&message).unwrap()[0].arguments.text, deep);
}

/// B15: the last call of a message that hit its token limit must not run, however whole it looks.
#[test]
fn a_call_that_was_cut_off_is_refused() {
    let message = r#"{"stop_reason": "max_tokens", "content": [
        {"type": "tool_use", "id": "a", "name": "a", "input": {}},
        {"type": "tool_use", "id": "b", "name": "b", "input": {}}]}"#;
    let calls = Anthropic.calls(message).unwrap();
    assert_eq!(calls[0].refusal(), None);
    let error = calls[1].refusal().unwrap();
    assert_eq!(error.code, ErrorCode::InvalidArgument);
    assert_eq!(error.details.issues[0].code, IssueCode::Incomplete);
}

/// B15: a stream that simply ends leaves calls that must not run.
#[test]
fn a_stream_without_an_end_is_truncated() {
    let end = streamed(
        OpenAi,
        &[
            r#"{"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c",
              "function": {"name": "a", "arguments": "{}"}}]}}]}"#,
        ],
    )
    .unwrap();
    assert!(end.truncated && end.calls[0].truncated);
    assert_eq!(end.stop_reason, None);
}

/// B15: some servers leave the index out, some repeat names, some give every call the index 0.
#[test]
fn deltas_of_other_servers_are_joined() {
    let piece = |piece: serde_json::Value| {
        json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [piece] } }] }).to_string()
    };
    let without_index = [
        piece(json!({ "id": "c1", "function": { "name": "a", "arguments": "{" } })),
        piece(json!({ "function": { "arguments": "}" } })),
        piece(json!({ "id": "c2", "function": { "name": "b", "arguments": "[" } })),
        piece(json!({ "id": "c2", "function": { "name": "b", "arguments": "]" } })),
    ];
    let always_zero = [
        piece(json!({ "index": 0, "id": "c1", "function": { "name": "a", "arguments": "{" } })),
        piece(json!({ "index": 0, "function": { "arguments": "}" } })),
        piece(json!({ "index": 0, "id": "c2", "function": { "name": "b", "arguments": "[]" } })),
    ];
    for deltas in [&without_index[..], &always_zero[..]] {
        let mut events: Vec<&str> = deltas.iter().map(String::as_str).collect();
        events.push("[DONE]");
        let end = streamed(OpenAi, &events).unwrap();
        let calls: Vec<_> = end
            .calls
            .iter()
            .map(|call| {
                (
                    call.id.as_deref().unwrap(),
                    &*call.name,
                    &*call.arguments.text,
                )
            })
            .collect();
        assert_eq!(calls, [("c1", "a", "{}"), ("c2", "b", "[]")]);
        assert!(!end.truncated);
    }
}

/// B15: parts of a stream that contradict each other are refused: neither of them is trusted.
#[test]
fn contradictions_are_refused() {
    let error = |dialect: Dialect, events: &[&str], expected: &str| {
        assert_eq!(streamed(dialect, events).unwrap_err().to_string(), expected);
    };
    let added = r#"{"type": "response.output_item.added", "output_index": 0, "item":
        {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "a", "arguments": ""}}"#;
    let delta = r#"{"type": "response.function_call_arguments.delta", "item_id": "fc_1",
        "output_index": 0, "delta": "{}"}"#;
    error(
        OpenAiResponses,
        &[
            added,
            delta,
            r#"{"type": "response.function_call_arguments.done", "item_id": "fc_1",
            "output_index": 0, "arguments": "{\"a\": 1}"}"#,
        ],
        "at \"/arguments\": the whole arguments differ from their deltas",
    );
    error(
        OpenAiResponses,
        &[
            added,
            r#"{"type": "response.function_call_arguments.delta", "item_id": "fc_1",
            "output_index": 4, "delta": "{}"}"#,
        ],
        "at \"\": item_id and output_index name different calls",
    );
    error(
        OpenAi,
        &[
            r#"{"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"name": "a"}}]}}]}"#,
            r#"{"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"name": "b"}}]}}]}"#,
        ],
        "at \"/choices/0/delta/tool_calls/0/function/name\": the call has another name already",
    );
    error(
        Anthropic,
        &[r#"{"type": "content_block_delta", "index": 2, "delta":
            {"type": "input_json_delta", "partial_json": "{"}}"#],
        "at \"\": the delta belongs to no call",
    );
    error(
        OpenAi,
        &[r#"{"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c"}]}}]}"#],
        "/0/name is missing",
    );
}

/// A12: a provider's own failure is an upstream error with the provider's code in its details.
#[test]
fn a_failing_provider_is_an_upstream_error() {
    for (dialect, event) in [
        (
            OpenAi,
            r#"{"error": {"code": "overloaded_error", "message": "try later"}}"#,
        ),
        (
            OpenAiResponses,
            r#"{"type": "response.failed", "response":
                {"error": {"code": "overloaded_error", "message": "try later"}}}"#,
        ),
        (
            Anthropic,
            r#"{"type": "error", "error": {"type": "overloaded_error", "message": "try later"}}"#,
        ),
        (
            Gemini,
            r#"{"error": {"code": 503, "status": "overloaded_error", "message": "try later"}}"#,
        ),
    ] {
        let error = dialect.stream().push(event).unwrap_err();
        let body = ErrorBody::from(&error);
        assert_eq!(body.code, ErrorCode::UpstreamError, "{dialect}");
        assert_eq!(
            body.details.upstream_code.as_deref(),
            Some("overloaded_error"),
            "{dialect}"
        );
        assert!(body.details.retryable, "{dialect}");
    }
}

#[test]
fn dialects_are_named_as_in_the_commands() {
    for dialect in Dialect::ALL {
        assert_eq!(dialect.as_str().parse(), Ok(dialect));
    }
    assert_eq!(
        "gpt".parse::<Dialect>().unwrap_err().to_string(),
        "\"gpt\" is not a dialect; use openai, openai-responses, anthropic, gemini, mcp, text or stub"
    );
}

#[track_caller]
fn refused(dialect: Dialect, message: &str, expected: &str) {
    assert_eq!(dialect.calls(message).unwrap_err().to_string(), expected);
}

fn streamed(dialect: Dialect, events: &[&str]) -> Result<StreamEnd, DecodeError> {
    let mut stream = dialect.stream();
    for event in events {
        stream.push(event)?;
    }
    stream.finish()
}

/// The last of two values under one name is no more meant than the first.
#[test]
fn a_message_with_a_name_twice_is_refused() {
    let call = r#"[{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]"#;
    for message in [
        format!(r#"{{"role": "assistant", "tool_calls": {call}, "tool_calls": []}}"#),
        r#"{"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "name": "g", "arguments": "{}"}}]}"#
            .to_owned(),
    ] {
        let read = OpenAi.calls(&message);
        assert!(
            matches!(read, Err(DecodeError::Contradiction { .. })),
            "{message}"
        );
    }
    let text = r#"{"text": "[f(a=1)]", "text": "no"}"#;
    assert!(Dialect::Text.calls(text).is_err());
}
