//! Laws of the dialects, for every message (B15).
#![expect(
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test that cannot be set up fails"
)]

use std::collections::BTreeMap;

use countersign::alias::alias;
use countersign::dialect::{Dialect, ProviderCall, ToolListOptions};
use countersign_contract::{Input, ToolName, ToolSpec};
use proptest::prelude::*;
use serde_json::{Value, json};

proptest! {
    /// B15: a message that is streamed in whatever pieces is the message that comes whole.
    #[test]
    fn a_stream_gives_the_calls_of_the_whole_message(
        calls in prop::collection::vec(("[a-z_]{1,12}", arguments()), 0..5),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..24),
    ) {
        for dialect in Dialect::ALL {
            // Only a list of requests has several calls, and that is one event.
            let whole = dialect.calls(&message(dialect, &calls)).unwrap();
            let mut stream = dialect.stream();
            for event in events(dialect, &calls, &cuts) {
                stream.push(&event).unwrap();
            }
            let end = stream.finish().unwrap();
            prop_assert!(!end.truncated, "{}", dialect);
            prop_assert_eq!(seen(&end.calls), seen(&whole), "{}", dialect);
            let texts: Vec<_> = calls.iter().map(|(_, text)| text.clone()).collect();
            let read: Vec<_> = whole.iter().map(|call| call.arguments.text.clone()).collect();
            prop_assert_eq!(read, texts, "{}", dialect);
        }
    }

    /// B15: dialects that send arguments as text carry any text there is.
    #[test]
    fn any_text_survives(text in any::<String>()) {
        for dialect in [Dialect::OpenAi, Dialect::OpenAiResponses, Dialect::Stub] {
            let sample = [("a".to_owned(), "{}".to_owned())];
            let mut calls = dialect.calls(&message(dialect, &sample)).unwrap();
            calls[0].arguments.text.clone_from(&text);
            let again = dialect.calls_in(&dialect.message("", &calls)).unwrap();
            prop_assert_eq!(&again[0].arguments.text, &text);
        }
    }

    /// B15: an alias fits every provider, is its own alias, and leads back to its tool.
    #[test]
    fn aliases_lead_back(names in prop::collection::btree_set("[A-Za-z][A-Za-z0-9_.-]{0,127}", 1..40)) {
        let mut tools = BTreeMap::new();
        for name in names {
            let name = ToolName::new(name).unwrap();
            let short = alias(&name);
            prop_assert!((1..=48).contains(&short.len()) && !short.contains('.'));
            prop_assert_eq!(&alias(&ToolName::new(&short).unwrap()), &short);
            tools.entry(short).or_insert(name);
        }
        let specs: Vec<_> = tools.values().map(|name| ToolSpec::new(name.clone(), "")).collect();
        let specs: Vec<_> = specs.iter().collect();
        let list = Dialect::Stub.tools(&specs, &ToolListOptions::default()).unwrap();
        for (definition, spec) in list.json.as_array().unwrap().iter().zip(&specs) {
            prop_assert_eq!(&tools[definition["name"].as_str().unwrap()], &spec.name);
        }
    }

    /// Any message is read or refused, and a message that is read can be answered.
    #[test]
    fn decoders_never_panic(value in json_of(PROVIDER_WORDS)) {
        for dialect in Dialect::ALL {
            let _ = dialect.calls_in(&value);
            let mut stream = dialect.stream();
            for event in value.as_array().unwrap_or(&vec![value.clone()]) {
                if stream.push(&event.to_string()).is_err() {
                    break;
                }
            }
            if let Ok(end) = stream.finish() {
                dialect.message("", &end.calls);
                dialect.results(&[]);
            }
        }
    }

    /// Whatever a manifest brings as a schema is shown or refused.
    #[test]
    fn schemas_never_panic(value in json_of(SCHEMA_WORDS), strict: bool, openapi: bool, whole: bool) {
        let options = ToolListOptions { strict, openapi, max_tokens: None, whole };
        for dialect in Dialect::ALL {
            let _ = dialect.tools(&[&with_schema(value.clone())], &options);
        }
    }

    /// A list within a smaller budget is shorter, and the report lists the cuts.
    #[test]
    fn a_tighter_list_is_shorter(
        value in object_of(SCHEMA_WORDS),
        dialect in prop::sample::select(Dialect::ALL.to_vec()),
    ) {
        let (spec, options) = (with_schema(value), ToolListOptions::default());
        let list = dialect.tools(&[&spec], &options);
        prop_assume!(list.is_ok());
        let list = list.unwrap();
        let tight = ToolListOptions { max_tokens: Some(list.tokens - 1), ..options };
        let shorter = dialect.tools(&[&spec], &tight);
        prop_assume!(shorter.is_ok());
        let shorter = shorter.unwrap();
        prop_assert!(shorter.tokens < list.tokens);
        prop_assert!(!shorter.trimmed.is_empty());
    }

    /// A schema that is shown once is shown the second time as it is.
    #[test]
    fn a_schema_is_brought_into_shape_once(value in object_of(SCHEMA_WORDS), openapi: bool) {
        let options = ToolListOptions { openapi, ..ToolListOptions::default() };
        let list = Dialect::OpenAi.tools(&[&with_schema(value)], &options);
        prop_assume!(list.is_ok());
        let shown = list.unwrap().json[0]["function"]["parameters"].clone();
        let again = Dialect::OpenAi.tools(&[&with_schema(shown.clone())], &options).unwrap();
        prop_assert_eq!(&again.json[0]["function"]["parameters"], &shown);
    }
}

fn with_schema(schema: Value) -> ToolSpec {
    ToolSpec::new(ToolName::new("a").unwrap(), "A. B.").input(Input::Schema(schema))
}

/// The schema of an object, whose parameters are such JSON.
fn object_of(words: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let parameters = prop::collection::btree_map("[a-c]", json_of(words), 0..3);
    parameters.prop_map(|parameters| {
        json!({ "type": "object", "description": "One. Two.", "properties": parameters })
    })
}

const PROVIDER_WORDS: &[&str] = &[
    "choices",
    "message",
    "delta",
    "tool_calls",
    "function",
    "name",
    "arguments",
    "index",
    "id",
    "type",
    "function_call",
    "output",
    "call_id",
    "item",
    "item_id",
    "output_index",
    "content",
    "tool_use",
    "input",
    "content_block",
    "content_block_start",
    "content_block_delta",
    "input_json_delta",
    "partial_json",
    "candidates",
    "parts",
    "functionCall",
    "args",
    "method",
    "params",
    "tools/call",
    "calls",
    "call",
    "stop",
    "finish_reason",
    "stop_reason",
    "role",
    "response.output_item.added",
    "response.output_item.done",
    "error",
    "[DONE]",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
];

const SCHEMA_WORDS: &[&str] = &[
    "type",
    "object",
    "string",
    "array",
    "null",
    "properties",
    "items",
    "required",
    "enum",
    "const",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "$ref",
    "#",
    "#/$defs/a",
    "#/properties/a",
    "$defs",
    "a",
    "b",
    "additionalProperties",
    "description",
    "default",
    "examples",
    "minimum",
    "format",
    "x-kind",
    "definitions",
    "$schema",
    "if",
    "prefixItems",
];

/// JSON whose names and texts are mostly words that mean something.
fn json_of(words: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let word = prop::sample::select(words);
    let leaf = prop_oneof![
        4 => word.clone().prop_map(Value::from),
        1 => any::<u8>().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
    ];
    leaf.prop_recursive(7, 96, 6, move |inner| {
        let members =
            prop::collection::btree_map(word.clone().prop_map(str::to_owned), inner.clone(), 0..6);
        prop_oneof![
            3 => members.prop_map(|members| members.into_iter().collect::<Value>()),
            1 => prop::collection::vec(inner, 0..4).prop_map(Value::from),
        ]
    })
}

/// The text of an argument object, with white space and characters of every length.
fn arguments() -> impl Strategy<Value = String> {
    prop::collection::btree_map("[a-z]{1,6}", any::<String>(), 0..4)
        .prop_map(|members| format!("{:#}", json!(members)))
}

type Call = (String, String);

fn seen(calls: &[ProviderCall]) -> Vec<(Option<&str>, &str, &str, usize)> {
    calls
        .iter()
        .map(|call| {
            (
                call.id.as_deref(),
                &*call.name,
                &*call.arguments.text,
                call.index,
            )
        })
        .collect()
}

/// A whole message, written as text so that the arguments stand in it as they are.
fn message(dialect: Dialect, calls: &[Call]) -> String {
    let each = |write: &dyn Fn(usize, &Call) -> String| {
        let calls: Vec<_> = calls
            .iter()
            .enumerate()
            .map(|(at, call)| write(at, call))
            .collect();
        calls.join(",")
    };
    match dialect {
        Dialect::OpenAi => {
            let calls = each(&|at, (name, text)| {
                json!({ "id": format!("c{at}"), "function": { "name": name, "arguments": text } })
                    .to_string()
            });
            format!(r#"{{"role":"assistant","tool_calls":[{calls}]}}"#)
        }
        Dialect::OpenAiResponses => {
            let items = each(&|at, call| item(at, call).to_string());
            format!(r#"{{"output":[{items}]}}"#)
        }
        Dialect::Anthropic => {
            let blocks = each(&|at, (name, text)| {
                format!(r#"{{"type":"tool_use","id":"c{at}","name":"{name}","input":{text}}}"#)
            });
            format!(r#"{{"content":[{blocks}]}}"#)
        }
        Dialect::Gemini => {
            let parts = each(&|_, (name, text)| {
                format!(r#"{{"functionCall":{{"name":"{name}","args":{text}}}}}"#)
            });
            format!(
                r#"{{"candidates":[{{"content":{{"parts":[{parts}]}},"finishReason":"STOP"}}]}}"#
            )
        }
        Dialect::Mcp => {
            let requests = each(&|at, (name, text)| {
                format!(
                    r#"{{"id":"c{at}","method":"tools/call","params":{{"name":"{name}","arguments":{text}}}}}"#
                )
            });
            format!("[{requests}]")
        }
        Dialect::Text => {
            let text = calls.iter().map(|(name, text)| {
                format!(
                    "<tool_call>\n{{\"name\": \"{name}\", \"arguments\": {text}}}\n</tool_call>\n"
                )
            });
            json!(text.collect::<String>()).to_string()
        }
        Dialect::Stub => {
            let calls = each(&|at, (name, text)| {
                json!({ "id": format!("c{at}"), "name": name, "arguments": text }).to_string()
            });
            format!(r#"{{"calls":[{calls}]}}"#)
        }
    }
}

fn item(at: usize, (name, text): &Call) -> Value {
    json!({ "type": "function_call", "id": format!("fc{at}"), "call_id": format!("c{at}"),
            "name": name, "arguments": text })
}

/// The same message as events: calls are opened in order, then their pieces alternate.
fn events(dialect: Dialect, calls: &[Call], cuts: &[prop::sample::Index]) -> Vec<String> {
    let (open, piece, close): (Opened<'_>, Piece<'_>, Vec<Value>) = match dialect {
        Dialect::Gemini | Dialect::Mcp => return vec![message(dialect, calls)],
        Dialect::Text => {
            let whole: String = serde_json::from_str(&message(dialect, calls)).unwrap();
            return written(&whole, cuts);
        }
        Dialect::OpenAi => (
            &|at, (name, _)| {
                chunk(&json!({ "index": at, "id": format!("c{at}"), "function": { "name": name } }))
            },
            &|at, text| chunk(&json!({ "index": at, "function": { "arguments": text } })),
            vec![json!({ "choices": [{ "delta": {}, "finish_reason": "tool_calls" }] })],
        ),
        Dialect::OpenAiResponses => (
            &|at, (name, _)| {
                json!({ "type": "response.output_item.added", "output_index": at,
                "item": item(at, &(name.clone(), String::new())) })
            },
            &|at, text| {
                json!({ "type": "response.function_call_arguments.delta",
                "item_id": format!("fc{at}"), "output_index": at, "delta": text })
            },
            calls
                .iter()
                .enumerate()
                .map(|(at, call)| {
                    json!({ "type": "response.output_item.done", "output_index": at,
                    "item": item(at, call) })
                })
                .chain([json!({ "type": "response.completed" })])
                .collect(),
        ),
        Dialect::Anthropic => (
            &|at, (name, _)| {
                json!({ "type": "content_block_start", "index": at, "content_block":
                { "type": "tool_use", "id": format!("c{at}"), "name": name, "input": {} } })
            },
            &|at, text| {
                json!({ "type": "content_block_delta", "index": at, "delta":
                { "type": "input_json_delta", "partial_json": text } })
            },
            (0..calls.len())
                .map(|at| json!({ "type": "content_block_stop", "index": at }))
                .chain([json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" } })])
                .collect(),
        ),
        Dialect::Stub => (
            &|at, (name, _)| json!({ "call": { "index": at, "id": format!("c{at}"), "name": name } }),
            &|at, text| json!({ "delta": { "index": at, "arguments": text } }),
            vec![json!({ "stop": "calls" })],
        ),
    };
    let mut events: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(at, call)| open(at, call))
        .collect();
    let pieces: Vec<Vec<String>> = calls.iter().map(|(_, text)| split(text, cuts)).collect();
    for turn in 0..pieces.iter().map(Vec::len).max().unwrap_or(0) {
        for (at, pieces) in pieces.iter().enumerate() {
            events.extend(pieces.get(turn).map(|text| piece(at, text)));
        }
    }
    events.extend(close);
    events.iter().map(Value::to_string).collect()
}

/// A text in pieces, as a stream of strings.
fn written(whole: &str, cuts: &[prop::sample::Index]) -> Vec<String> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(whole.len() + 1)).collect();
    places.retain(|place| whole.is_char_boundary(*place));
    places.extend([0, whole.len()]);
    places.sort_unstable();
    let pieces = places
        .windows(2)
        .map(|pair| json!(whole[pair[0]..pair[1]]).to_string());
    pieces.chain(["[DONE]".to_owned()]).collect()
}

type Opened<'a> = &'a dyn Fn(usize, &Call) -> Value;
type Piece<'a> = &'a dyn Fn(usize, &str) -> Value;

fn chunk(piece: &Value) -> Value {
    json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [piece] }, "finish_reason": null }] })
}

fn split(text: &str, cuts: &[prop::sample::Index]) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let mut places: Vec<usize> = cuts
        .iter()
        .map(|cut| cut.index(characters.len() + 1))
        .collect();
    places.push(characters.len());
    places.sort_unstable();
    let mut start = 0;
    let mut pieces = Vec::new();
    for place in places {
        pieces.push(characters[start..place].iter().collect());
        start = place;
    }
    pieces
}
