//! Recordings: what is written is read again, and whatever is wrong has its line and column.

use countersign_contract::evidence::Exact;
use countersign_contract::recording::{Call, Declared, Header, LogRef, Outcome, Recording, Remark};
use countersign_contract::{
    Digest, ErrorBody, ErrorCode, Input, Parameter, SnapshotId, ToolName, ToolSpec, ValueKind,
};
use proptest::prelude::*;
use serde_json::json;

fn spec(description: &str) -> ToolSpec {
    let text = Parameter::new("text", ValueKind::String, "what to keep");
    let name = ToolName::new("notes.add").expect("it is one");
    ToolSpec::new(name, description).input(Input::parameters([text]))
}

fn declared(spec: ToolSpec) -> Declared {
    let value = serde_json::to_value(&spec).expect("names and texts");
    Declared {
        definition: Digest::of_canonical(&value).expect("it has one"),
        spec,
    }
}

fn recording(calls: Vec<(&str, Outcome)>) -> Recording {
    let tool = declared(spec("Stores a note."));
    let definition = tool.definition;
    let calls = (1..).zip(calls).map(|(order, (arguments, outcome))| Call {
        order,
        tool: "notes.add".to_owned(),
        version: tool.spec.version.clone(),
        definition,
        at: "2026-11-17T10:00:00Z".to_owned(),
        arguments: Exact::new(arguments.to_owned()).expect("it is JSON"),
        dry_run: order == 2,
        outcome,
        ttl_seconds: (order == 1).then_some(60),
        remarks: vec![Remark {
            code: "PARTIAL".to_owned(),
            message: "one of two".to_owned(),
        }],
        evidence: SnapshotId::new("ev_1").expect("it is one"),
    });
    Recording {
        calls: calls.collect(),
        header: Header {
            v: 1,
            program: "countersign 0.1.0".to_owned(),
            made_at: "2026-11-17T10:00:01Z".to_owned(),
            installation: "i_1".to_owned(),
            log: LogRef {
                origin: "example.com/log".to_owned(),
                checkpoint: countersign_contract::envelope::CheckpointRef {
                    size: 7,
                    root: definition,
                },
            },
            masked: true,
        },
        tools: vec![tool],
    }
}

fn data(text: &str) -> Outcome {
    Outcome::Data(Exact::new(text.to_owned()).expect("it is JSON"))
}

fn sample() -> Recording {
    let error = ErrorBody::new(ErrorCode::NotFound, "no such note").detail("note", "n_9");
    recording(vec![
        (r#"{"text":"[email:1]"}"#, data(r#"{"id":"n_1"}"#)),
        (
            r#"{"n":123456789012345678901234567890}"#,
            Outcome::Error(Box::new(error)),
        ),
        ("{}", data("null")),
    ])
}

/// Numbers beyond a double, errors and null survive.
#[test]
fn a_recording_is_read_as_it_was_written() {
    let written = sample();
    let text = written.to_text();
    assert_eq!(text.lines().count(), 6);
    assert_eq!(Recording::parse(&text), Ok(written));
}

/// Compares the error about the sample with one line changed.
#[track_caller]
fn check(line: usize, what: &str, with: &str, expected: &str) {
    let text = sample().to_text();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let at = lines.get_mut(line - 1).expect("there is such a line");
    assert!(at.contains(what), "{at}");
    *at = at.replacen(what, with, 1);
    let text = lines.join("\n");
    let misread = Recording::parse(&text).expect_err("it is wrong");
    assert!(misread.to_string().starts_with(expected), "{misread}");
}

#[test]
fn what_is_wrong_has_its_place() {
    check(
        1,
        r#""v":1"#,
        r#""v":2"#,
        "line 1, column 1: version 2 of the format",
    );
    check(1, "{\"recording\"", "[", "line 1, column 2: expected value");
    check(
        1,
        "{\"recording\"",
        "{\"tool\"",
        "line 1, column 12: unknown field `v`",
    );
    check(
        1,
        "\"masked\"",
        "\"marked\"",
        "line 1, column 252: unknown field `marked`",
    );
    check(
        2,
        "Stores a note.",
        "Keeps it.",
        "line 2, column 1: the declaration of notes.add has the digest",
    );
    check(
        2,
        "{\"tool\"",
        "{\"toll\"",
        "line 2, column 7: unknown variant `toll`",
    );
    check(
        3,
        r#""order":1"#,
        r#""order":2"#,
        "line 3, column 1: this call has the order 2, and 1 is next",
    );
    check(
        3,
        r#""tool":"notes.add""#,
        r#""tool":"notes.ad""#,
        "line 3, column 1: the tool notes.ad has no line",
    );
    check(
        3,
        r#""data":"#,
        r#""date":"#,
        "line 3, column 217: unknown variant `date`",
    );
    check(4, "sha256:", "sha256:0", "line 4, column 1");
    check(
        6,
        "3",
        "4",
        "line 6, column 1: the last line says 4 calls, and there are 3",
    );
    check(
        5,
        "{\"call\"",
        "{\"end\":{\"calls\":2}}\n{\"call\"",
        "line 6, column 1: no line may follow",
    );
}

/// A file that ends too soon is not taken for a whole one, wherever it ends.
#[test]
fn a_file_that_was_cut_off_is_refused() {
    let text = sample().to_text();
    for end in 0..text.len() - 1 {
        let Some(cut) = text.get(..end) else { continue };
        assert!(Recording::parse(cut).is_err(), "{cut}");
    }
    let cut = text.rsplit_once("{\"end\"").expect("it ends so").0;
    let cut_off = Recording::parse(cut).expect_err("the end is missing");
    assert_eq!((cut_off.line, cut_off.column), (6, 1));
    assert_eq!(Recording::parse("").expect_err("nothing").line, 1);
    let twice = format!("{cut}{}", text.lines().next().unwrap_or_default());
    let twice = Recording::parse(&twice).expect_err("there are two headers");
    assert!(twice.to_string().contains("only the first line"), "{twice}");
}

/// A call of another declaration than its tool's line has is refused, whichever of the two was changed.
#[test]
fn a_call_names_the_declaration_of_its_tool() {
    let mut changed = sample();
    changed.tools = vec![declared(spec("Keeps it."))];
    let wrong = Recording::parse(&changed.to_text()).expect_err("the pins differ");
    assert_eq!(wrong.line, 3);
    assert!(wrong.to_string().contains("of the declaration"), "{wrong}");
}

proptest! {
    /// No text makes the reader panic, and what it accepts is what it would write.
    #[test]
    fn any_text_is_read_or_refused(at in 0_usize..2_000, patch in "[ -~\n]{0,6}", cut in 0_usize..8) {
        let text = sample().to_text();
        let at = at % text.len();
        let end = (at + cut).min(text.len());
        let patched = format!("{}{patch}{}", &text[..at], &text[end..]);
        if let Ok(read) = Recording::parse(&patched) {
            prop_assert_eq!(Recording::parse(&read.to_text()), Ok(read));
        }
    }
}

#[test]
fn the_first_line_is_one_object() {
    let text = sample().to_text();
    let first: serde_json::Value =
        serde_json::from_str(text.lines().next().unwrap_or_default()).expect("it is JSON");
    assert_eq!(
        first["recording"]["log"]["origin"],
        json!("example.com/log")
    );
}

/// The example of the documentation is a recording.
#[test]
fn the_example_is_a_recording() {
    let text = include_str!("../../../docs/examples/recording.jsonl");
    let read = Recording::parse(text).expect("it is one");
    assert_eq!(read.to_text(), text);
    assert_eq!((read.tools.len(), read.calls.len()), (3, 4));
}
