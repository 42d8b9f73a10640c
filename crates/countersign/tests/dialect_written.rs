//! Calls that models write as text (B15): one file for each format, as the models' published chat templates write it, and
//! what is read from it. `UPDATE_GOLDEN=1` rewrites the expected files.
#![expect(
    clippy::unwrap_used,
    clippy::string_slice,
    reason = "a test that cannot read its files fails"
)]

use std::path::{Path, PathBuf};

use countersign::contract::tool::BindPolicy;
use countersign::dialect::written::{TextFormat, Written, read};
use countersign::dialect::{CALLS_MAX, Dialect, Provenance, StreamEvent};
use countersign_args::Binder;
use proptest::prelude::*;
use serde_json::{Value, json};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/written")
}

fn shown(written: &Written) -> Value {
    let calls = written.calls.iter().map(|call| {
        json!({
            "id": call.id,
            "name": call.name,
            "arguments": call.arguments.text,
            "truncated": call.truncated,
        })
    });
    json!({
        "calls": calls.collect::<Vec<_>>(),
        "prose": written.prose,
        "truncated": written.truncated,
    })
}

fn samples() -> Vec<(PathBuf, String)> {
    let mut samples = Vec::new();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|kind| kind == "txt") {
            let text = std::fs::read_to_string(&path).unwrap();
            samples.push((path, text));
        }
    }
    samples.sort();
    assert!(samples.len() > 30, "{}", samples.len());
    samples
}

/// B15: every format is found by its marks; several calls are several calls, prose stays prose, thinking and what was cut
/// off do not run.
#[test]
fn every_format_is_read() {
    for (path, text) in samples() {
        let actual = shown(&read(&text, None).unwrap());
        let expected = path.with_extension("json");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&expected, format!("{actual:#}\n")).unwrap();
            continue;
        }
        let expected = std::fs::read_to_string(&expected).unwrap();
        let expected: Value = serde_json::from_str(&expected).unwrap();
        assert_eq!(actual, expected, "{}", path.display());
    }
}

/// The whole calls that the samples were written with.
#[test]
fn samples_hold_the_calls_that_they_are_named_for() {
    for (path, text) in samples() {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let written = read(&text, None).unwrap();
        let cut = name.ends_with("-cut");
        assert_eq!(written.truncated, cut, "{name}");
        let runs = written.calls.iter().filter(|call| !call.truncated).count();
        match name {
            "prose" | "json-prose" | "harmony-final" => assert_eq!(runs, 0, "{name}"),
            "mistral-cut" => assert_eq!(runs, 1, "{name}"),
            _ if cut => assert_eq!(runs, 0, "{name}"),
            _ => {
                assert!(runs > 0, "{name}");
                assert_eq!(written.calls[0].name, "memory_search", "{name}");
            }
        }
    }
}

/// A format that the caller names is the only one that is looked for.
#[test]
fn a_format_can_be_told() {
    let text =
        "<tool_call>{\"name\": \"a\", \"arguments\": {}}</tool_call>\nAction: b\nAction Input: {}";
    let names = |format| {
        let written = read(text, format).unwrap();
        written
            .calls
            .iter()
            .map(|call| call.name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(Some(TextFormat::Hermes)), ["a"]);
    assert_eq!(names(Some(TextFormat::React)), ["b"]);
    assert_eq!(names(Some(TextFormat::Kimi)), [""; 0]);
    for format in TextFormat::ALL {
        assert_eq!(format.as_str().parse(), Ok(format));
    }
    // The first event of a stream that names a format decides, for the notices and for the end.
    for (format, name) in [("hermes", "a"), ("react", "b")] {
        let mut stream = Dialect::Text.stream();
        let (first, rest) = text.split_at(20);
        let first = json!({"text": first, "format": format}).to_string();
        stream.push(&first).unwrap();
        let rest = json!({"text": rest, "stop": "stop"}).to_string();
        stream.push(&rest).unwrap();
        let end = stream.finish().unwrap();
        let names: Vec<&str> = end.calls.iter().map(|call| call.name.as_str()).collect();
        assert_eq!(names, [name], "{format}");
    }
}

/// Reading takes time in proportion to the text, whatever is in it: a text that is read again at each mark would not come
/// to an end here.
#[test]
fn hostile_texts_come_to_an_end() {
    let pieces = [
        "<",
        "<a>",
        "<tool_call>",
        "<tool_call>x ",
        "<tool_call>{",
        "<tool_call>{\"a\":",
        "<invoke name=\"f\">",
        "<function=f>",
        "<function=",
        "<parameter=a>",
        "[name(",
        "[TOOL_CALLS]",
        "[TOOL_CALLS]f[ARGS]{",
        "<|python_tag|>f(",
        "<|python_tag|>",
        "```tool_code\nf(",
        "<|channel|>",
        "<|channel|>to=! ",
        "<|tool_call_begin|>",
        "<｜tool▁call▁begin｜>",
        "<|tool_call>call:",
        "\nAction: f\n",
        "\nAction: f\nAction Input: ",
        "<think",
        "</think>",
        "functools[",
        "{",
        "[",
        "(",
    ];
    for piece in pieces {
        let text = piece.repeat(200_000 / piece.len());
        let closed = format!("{text}</tool_call></function></invoke><|message|>\"}}])");
        for text in [text, closed] {
            let calls = read(&text, None).map_or(0, |written| written.calls.len());
            assert!(calls <= CALLS_MAX, "{piece}");
        }
    }
}

proptest! {
    /// Whatever is cut out of, put into or doubled in a text: it is read or refused, and its calls are bounded.
    #[test]
    fn any_damage_is_read_or_refused(
        sample in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..4_u8), 0..6),
    ) {
        let samples = samples();
        let mut text = samples[sample.index(samples.len())].1.clone();
        for (from, to, kind) in edits {
            let floor = |mut at: usize| {
                while !text.is_char_boundary(at) {
                    at -= 1;
                }
                at
            };
            let (a, b) = (floor(from.index(text.len() + 1)), floor(to.index(text.len() + 1)));
            let (a, b) = (a.min(b), a.max(b));
            text = match kind {
                0 => format!("{}{}", &text[..a], &text[b..]),
                1 => format!("{}{}{}", &text[..b], &text[a..b], &text[b..]),
                2 => text[..a].to_owned(),
                _ => format!("{}<tool_call>{}", &text[..a], &text[a..]),
            };
        }
        let written = read(&text, None).unwrap();
        prop_assert!(written.calls.len() <= CALLS_MAX);
        for call in &written.calls {
            // Nothing is made up: what a call has stands in the text, maybe as a string of JSON.
            let arguments = &call.arguments.text;
            let encoded = Value::from(arguments.as_str()).to_string();
            let stands = |part: &str| text.contains(part);
            let is_made = call.arguments.provenance == Provenance::Reserialised;
            prop_assert!(is_made || stands(arguments) || stands(encoded.trim_matches('"')), "{}", arguments);
            prop_assert!(stands(&call.name), "{}", call.name);
            prop_assert!(!call.name.is_empty() || call.refusal().is_some());
        }
        for format in TextFormat::ALL {
            prop_assert!(read(&text, Some(format)).is_ok());
        }
        // What the stream shows is what its end has, unless the end of thinking takes it back.
        let mut stream = Dialect::Text.stream();
        let mut shown = Vec::new();
        for character in text.chars() {
            shown.extend(stream.push(&json!(character.to_string()).to_string()).unwrap());
        }
        shown.extend(stream.push("[DONE]").unwrap());
        let end = stream.finish().unwrap();
        prop_assert_eq!(end.calls.len(), written.calls.len());
        if !text.contains("think") {
            for event in shown {
                match event {
                    StreamEvent::CallStarted { index, name, .. } => {
                        prop_assert_eq!(&name, &end.calls[index].name, "{}", text);
                    }
                    StreamEvent::ArgumentsDelta { index, text: arguments } => {
                        prop_assert_eq!(&arguments, &end.calls[index].arguments.text, "{}", text);
                    }
                    StreamEvent::CallFinished { index } => {
                        prop_assert!(!end.calls[index].truncated, "{}", text);
                    }
                }
            }
        }
    }
}

/// The calls of a text that run, with their arguments as they are bound.
fn runs(text: &str) -> Vec<(String, Value)> {
    let schema = json!({
        "type": "object",
        "properties": { "query": { "type": "string" }, "limit": { "type": "integer" } },
    });
    let binder = Binder::from_schema(&schema, BindPolicy::default()).unwrap();
    let written = read(text, None).unwrap();
    let whole = written.calls.iter().filter(|call| call.refusal().is_none());
    whole
        .filter_map(|call| {
            let bound = binder.bind(&call.arguments.text);
            let arguments = bound.arguments.as_ref().filter(|_| bound.is_executable())?;
            Some((call.name.clone(), arguments.to_value()))
        })
        .collect()
}

/// A sample that is cut anywhere runs nothing that the whole does not run.
#[test]
fn a_text_that_is_cut_runs_nothing_new() {
    for (path, text) in samples() {
        // Only the end of thinking says that what stands before it was a draft.
        if path.ends_with("thinking-draft.txt") {
            continue;
        }
        let whole = runs(&text);
        for (at, _) in text.char_indices() {
            for run in runs(&text[..at]) {
                assert!(whole.contains(&run), "{} {at}: {run:?}", path.display());
            }
        }
    }
}

/// A call is shown as soon as its last mark has arrived, with the text that the end has.
#[test]
fn a_stream_shows_whole_calls() {
    let call = "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}}";
    let mut stream = Dialect::Text.stream();
    assert_eq!(stream.push(&json!(call).to_string()).unwrap(), []);
    let shown = stream.push(&json!("</tool_call>").to_string()).unwrap();
    let text = "{\"a\": 1}".to_owned();
    assert!(
        shown.contains(&StreamEvent::ArgumentsDelta { index: 0, text }),
        "{shown:?}"
    );
    // Something behind the arguments belongs to the call, so that it was not whole.
    let mut stream = Dialect::Text.stream();
    for piece in [
        "Action: f\nAction Input: {\"a\": 1}",
        " or <b>",
        " {\"a\": 2}",
    ] {
        assert_eq!(stream.push(&json!(piece).to_string()).unwrap(), []);
    }
}

/// A5: the calls of two texts have different ids, so that one key for both does not confuse them; the same text has the
/// same ids, whole and as a stream.
#[test]
fn ids_are_made_from_the_text() {
    let text = |a: u8| format!("[f(a={a}), f(a={a})]");
    let ids = |text: &str| {
        let calls = Dialect::Text.calls(&json!(text).to_string()).unwrap();
        calls
            .into_iter()
            .map(|call| call.id.unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(&text(1)), ids(&text(1)));
    let mut all = [ids(&text(1)), ids(&text(2))].concat();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 4, "{all:?}");
    let mut stream = Dialect::Text.stream();
    stream.push(&json!(text(1)).to_string()).unwrap();
    stream.push("[DONE]").unwrap();
    let end = stream.finish().unwrap();
    let streamed: Vec<_> = end.calls.into_iter().map(|call| call.id.unwrap()).collect();
    assert_eq!(streamed, ids(&text(1)));
}

/// A message is read whole, or refused: its parts, its choices, and calls that its server has read.
#[test]
fn nothing_of_a_message_is_left_out() {
    let call = "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>";
    let parts = json!({ "role": "assistant", "content": [
        { "type": "thinking", "thinking": call },
        { "type": "text", "text": "I look. " },
        { "type": "text", "text": call },
    ]});
    assert_eq!(Dialect::Text.calls(&parts.to_string()).unwrap().len(), 1);
    let message = json!({ "role": "assistant", "content": call });
    let one = json!({ "choices": [{ "message": message }] });
    assert_eq!(Dialect::Text.calls(&one.to_string()).unwrap().len(), 1);
    let read = json!({ "role": "assistant", "content": call, "tool_calls": [
        { "id": "c", "type": "function", "function": { "name": "g", "arguments": "{}" } },
    ]});
    let two = json!({ "choices": [{ "message": message }, { "message": message }] });
    let image =
        json!({ "role": "assistant", "content": [{ "type": "image_url", "image_url": {} }] });
    for message in [read, two, image] {
        assert!(
            Dialect::Text.calls(&message.to_string()).is_err(),
            "{message}"
        );
    }
}

/// `Action:` alone is a call that was cut only if its writer was.
#[test]
fn an_action_alone_is_cut_only_by_a_limit() {
    let message = |stop: &str| json!({ "text": "Action: f", "stop": stop }).to_string();
    assert_eq!(Dialect::Text.calls(&message("stop")).unwrap(), []);
    let calls = Dialect::Text.calls(&message("length")).unwrap();
    assert!(calls.iter().all(|call| call.truncated) && calls.len() == 1);
}
