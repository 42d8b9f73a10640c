//! Turns: the result of a tool and the words of another speaker are not the model's call, and a call in a comment or
//! behind a condition is not meant to run.

use super::tag::{self, Kind, Tag};

/// Elements and tokens around what a tool returned.
const RESULTS: [&str; 12] = [
    "function_output",
    "function_response",
    "function_responses",
    "function_result",
    "function_results",
    "observation",
    "tool_output",
    "tool_outputs",
    "tool_response",
    "tool_responses",
    "tool_result",
    "tool_results",
];

/// Other marks before what a tool returned.
const RESULT_MARKS: [&str; 2] = ["[TOOL_RESULTS]", "[TOOL_CONTENT]"];

/// Speakers other than the model.
const OTHERS: [&str; 10] = [
    "developer",
    "environment",
    "function",
    "human",
    "ipython",
    "observation",
    "system",
    "tool",
    "tool_response",
    "user",
];

/// Tokens with the speaker behind them.
const HEADERS: [&str; 5] = [
    "im_start",
    "start",
    "start_header_id",
    "start_of_turn",
    "turn",
];

/// Labels of what a tool returned, at the start of a line.
const LABELS: [&str; 12] = [
    "observation",
    "tool result",
    "tool results",
    "tool response",
    "tool output",
    "function result",
    "function response",
    "function output",
    "观察",
    "观察结果",
    "工具结果",
    "工具返回",
];

/// Words of programs before which nothing is called.
const UNCALLED: [&str; 10] = [
    "not", "and", "or", "if", "elif", "unless", "while", "def", "fn", "lambda",
];

/// Words that open a condition or a loop.
const CONDITIONS: [&str; 8] = [
    "if", "elif", "else", "while", "for", "unless", "try", "except",
];

/// Returns the place of the mark that makes a document behind this text a tool's result, or another speaker's.
pub(crate) fn of_another(before: &str) -> Option<usize> {
    let mut another = None;
    let mut at = 0;
    while let Some(offset) = before.get(at..).and_then(|rest| rest.find(['<', '['])) {
        at += offset;
        let rest = before.get(at..).unwrap_or_default();
        if is_result_mark(rest) {
            another = Some(at);
        } else if rest.starts_with("[/TOOL_RESULTS]") || rest.starts_with("[TOOL_CALLS]") {
            another = None;
        } else if let Some(tag) = tag::read(rest) {
            let behind = rest.get(tag.width..).unwrap_or_default();
            match speaker(&tag, behind) {
                Some(Speaker::Another) => another = Some(at),
                Some(Speaker::Model) => another = None,
                None => {}
            }
        }
        at += 1;
    }
    another.or_else(|| label(before))
}

/// True if a text starts with a mark of a tool's result that is no tag.
pub(crate) fn is_result_mark(text: &str) -> bool {
    RESULT_MARKS.iter().any(|mark| text.starts_with(mark))
}

/// True if the tag at the start of a text begins a tool's result, or another speaker's turn.
pub(crate) fn is_of_another(tag: &Tag<'_>, text: &str) -> bool {
    // Most tags have a shorter name than any of these.
    if tag.name.len() < SPEAKERS_BYTES_MIN {
        return false;
    }
    let behind = text.get(tag.width..).unwrap_or_default();
    matches!(speaker(tag, behind), Some(Speaker::Another))
}

/// Length of the shortest name that says who speaks.
const SPEAKERS_BYTES_MIN: usize = 4;

/// Returns the place of the first line that begins with the label of a tool's result.
pub(crate) fn labelled(text: &str) -> Option<usize> {
    let mut at = 0;
    text.split_inclusive('\n').find_map(|line| {
        let start = at;
        at += line.len();
        let name = line.split_once([':', '：'])?.0;
        is_label(name).then_some(start)
    })
}

/// Maximum length of a label with its decoration.
const LABEL_BYTES_MAX: usize = 64;

/// True for the name of a label, in any case and decoration.
fn is_label(name: &str) -> bool {
    let name = name.trim_matches(decorates);
    name.len() <= LABEL_BYTES_MAX && LABELS.contains(&name.to_lowercase().as_str())
}

const fn decorates(c: char) -> bool {
    c.is_whitespace() || matches!(c, '*' | '#' | '_' | '>' | '`' | '-')
}

/// The author of what follows a mark.
enum Speaker {
    Model,
    Another,
}

/// Returns who speaks behind a tag; `None` if it does not say.
fn speaker(tag: &Tag<'_>, behind: &str) -> Option<Speaker> {
    let name = tag.name.to_lowercase().replace('▁', "_");
    if HEADERS.contains(&name.as_str()) && tag.kind != Kind::Closes {
        let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
        let behind = behind.trim_start();
        let length = behind.find(|c| !part(c)).unwrap_or(behind.len());
        let role = behind.get(..length).unwrap_or_default().to_lowercase();
        let another = OTHERS.contains(&role.as_str()) || role.starts_with("functions.");
        return Some(if another {
            Speaker::Another
        } else {
            Speaker::Model
        });
    }
    let inner = name
        .trim_start_matches("start_")
        .trim_start_matches("end_")
        .trim_end_matches("_begin")
        .trim_end_matches("_start")
        .trim_end_matches("_end");
    if RESULTS.contains(&inner) {
        let ends = tag.kind == Kind::Closes || name.starts_with("end_") || name.ends_with("_end");
        return Some(if ends {
            Speaker::Model
        } else {
            Speaker::Another
        });
    }
    match name.as_str() {
        "user" | "system" | "ipython" if tag.is_token() => Some(Speaker::Another),
        "assistant" if tag.is_token() => Some(Speaker::Model),
        _ if tag.marks_call() => Some(Speaker::Model),
        _ => None,
    }
}

/// Returns the place of a label such as `Observation:` right before the document.
fn label(before: &str) -> Option<usize> {
    let mut end = before.trim_end();
    // A fence may open between the label and the document.
    if let Some((head, fence)) = end.rsplit_once('\n')
        && fence.trim_start().starts_with("```")
    {
        end = head.trim_end();
    }
    let start = end.rfind('\n').map_or(0, |at| at + 1);
    let line = end.get(start..).unwrap_or_default();
    let name = line.trim_matches(decorates).strip_suffix([':', '：'])?;
    is_label(name).then_some(start)
}

/// Returns the place of what keeps a document behind this text from running: a comment, or, for a call, a condition, a
/// negation or a definition.
pub(crate) fn idle(before: &str, is_call: bool) -> Option<usize> {
    let comment = || unclosed(before, "<!--", "-->").or_else(|| unclosed(before, "/*", "*/"));
    let may_have = memchr::memchr2(b'!', b'*', before.as_bytes()).is_some();
    if let Some(at) = may_have.then(comment).flatten() {
        return Some(at);
    }
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let whole = before.get(start..).unwrap_or_default();
    let line = whole.trim_start_matches(|c: char| c.is_whitespace() || c == '`');
    let hash = line.starts_with('#') && line.trim_start_matches('#').trim().is_empty();
    if hash || line.starts_with("//") {
        return Some(start);
    }
    if !is_call {
        return None;
    }
    let end = line.trim_end();
    let last = end
        .rsplit(|c: char| !c.is_alphanumeric() && c != '_')
        .next()
        .unwrap_or_default();
    let indented = line.is_empty() && whole.starts_with([' ', '\t']);
    let above = before.get(..start).unwrap_or_default().trim_end();
    let above = above.rsplit('\n').next().unwrap_or_default().trim_start();
    let waits = UNCALLED.contains(&last)
        || end == "!"
        || opens_block(end)
        || (indented && opens_block(above));
    waits.then_some(start)
}

/// True for `if ok:` and `while (x) {`.
fn opens_block(line: &str) -> bool {
    let first = line
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()
        .unwrap_or_default();
    CONDITIONS.contains(&first) && line.ends_with([':', '{', ')'])
}

/// Returns the place of a comment that is still open at the end of a text.
fn unclosed(text: &str, open: &str, close: &str) -> Option<usize> {
    let at = text.rfind(open)?;
    let alone = text
        .get(..at)
        .unwrap_or_default()
        .chars()
        .next_back()
        .is_none_or(|c| c.is_whitespace() || c == '`' || open == "<!--");
    let inside = text.get(at..).unwrap_or_default();
    (alone && !inside.contains(close)).then_some(at)
}
