//! Models' whole texts with calls in them: the golden files of the dialects, each behind the reasoning that models write before a call.

use std::fs;
use std::io::Result;
use std::path::Path;

use countersign::dialect::written::TextFormat;

use crate::hostile::{BYTES, fill};

/// The golden files of the formats; the bench measures what the tests check.
const GOLDEN: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../countersign/tests/golden/written"
);

/// What stands before a call. Brackets and angles in it are not calls.
const REASONING: &str = "The user asks for the weather in Paris, where it is < 4 °C at night [1]. I look it up first, and then compare it with \
     last week's values: they were between 3 and 7 degrees.\n";

/// Number of times that the reasoning stands there: answers with a call have a few hundred words.
const TIMES: usize = 12;

/// Returns a text for each golden file.
///
/// # Errors
///
/// The golden files cannot be read.
pub fn texts() -> Result<Vec<String>> {
    let mut paths: Vec<_> = fs::read_dir(Path::new(GOLDEN))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "txt"))
        .collect();
    paths.sort();
    let before = REASONING.repeat(TIMES);
    let text = |path| fs::read_to_string(path).map(|call| format!("{before}\n{call}"));
    paths.iter().map(text).collect()
}

/// A text of about one megabyte that is made to be expensive.
#[derive(Debug, Clone)]
pub struct Marks {
    /// What it is full of.
    pub name: &'static str,
    /// The text.
    pub text: String,
    /// The format that the reader is given; `None` if the marks decide.
    pub format: Option<TextFormat>,
}

/// Texts full of marks, each with the formats that read it differently.
pub fn marks() -> Vec<Marks> {
    let of = |name, start: &str, middle: &str, end: &str, format| Marks {
        name,
        text: fill(start, middle, end),
        format,
    };
    let any = |name, middle: &str| of(name, "", middle, "", None);
    vec![
        any("angle brackets", "<"),
        any("<tool_call>", "<tool_call>"),
        any("<invoke>", "<invoke name=\"f\">"),
        any("<function=>", "<function=f>"),
        of(
            "<parameter>",
            "<invoke name=\"f\">",
            "<parameter name=\"a\">",
            "",
            None,
        ),
        of(
            "nested tags",
            "<invoke name=\"f\"><parameter name=\"a\">",
            "<b>",
            "</parameter></invoke>",
            None,
        ),
        any("[name(", "[name("),
        of(
            "[name(, pythonic",
            "",
            "[name(",
            "",
            Some(TextFormat::Pythonic),
        ),
        any("ends of thinking", "</think>"),
        any("channels", "<|channel|>"),
        any("[TOOL_CALLS]", "[TOOL_CALLS]"),
        any("Action:", "Action: f\n"),
        any("blocks of code", "```tool_code\n"),
        of(
            "strings",
            "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"",
            "\\\"",
            "\"}}</tool_call>",
            None,
        ),
    ]
}

/// Approximate length of [`marks`].
pub const MARKS_BYTES: usize = BYTES;
