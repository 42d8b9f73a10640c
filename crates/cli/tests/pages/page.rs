//! The parts of a page: its fenced blocks, their commands, and the output that they show.

use std::path::{Path, PathBuf};

/// Placeholder that matches anything.
const ANY: char = '…';

/// The folder of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Reads a page of the repository.
pub(crate) fn read(path: &str) -> String {
    let text = std::fs::read_to_string(root().join(path));
    text.unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The fenced blocks of a page: their kind, and their text.
pub(crate) fn blocks(page: &str) -> Vec<(&str, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(&str, String)> = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), open.take()) {
            (Some(kind), None) => open = Some((kind, String::new())),
            (Some(_), Some(block)) => blocks.push(block),
            (None, Some((kind, text))) => open = Some((kind, text + line + "\n")),
            (None, None) => {}
        }
    }
    blocks
}

/// The commands of a block, each with the lines that it shows.
pub(crate) fn commands(block: &str) -> Vec<(&str, Vec<&str>)> {
    let mut commands: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push((command, Vec::new())),
            (None, Some((_, lines))) => lines.push(line),
            (None, None) => panic!("a block begins with a command, not with {line}"),
        }
    }
    commands
}

/// True if output is what a page shows. A line that is only an ellipsis stands for any number of lines.
pub(crate) fn is_shown(page: &[&str], output: &[String]) -> bool {
    match (page, output) {
        ([], []) => true,
        (["…", rest @ ..], _) => {
            (0..=output.len()).any(|skipped| is_shown(rest, output.split_at(skipped).1))
        }
        ([line, rest @ ..], [found, others @ ..]) => {
            is_shown_line(line, found) && is_shown(rest, others)
        }
        ([], [_, ..]) | ([_, ..], []) => false,
    }
}

fn is_shown_line(shown: &str, found: &str) -> bool {
    let mut parts = shown.split(ANY);
    let Some(mut rest) = parts.next().and_then(|first| found.strip_prefix(first)) else {
        return false;
    };
    let mut last = None;
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = rest.split_at(at + part.len()).1;
        last = Some(part);
    }
    // Behind the last ellipsis is the end of the line.
    match last {
        None => rest.is_empty(),
        Some(part) => part.is_empty() || rest.is_empty() || found.ends_with(part),
    }
}

#[test]
fn what_differs_is_found() {
    let shown = |page: &[&str], output: &[&str]| {
        let output: Vec<String> = output.iter().map(ToString::to_string).collect();
        is_shown(page, &output)
    };
    assert!(shown(&["a…c", "…", "d"], &["abc", "x", "y", "d"]));
    assert!(shown(&["…", "d"], &["d"]));
    assert!(shown(&["a…b…"], &["a1b2"]));
    assert!(!shown(&["a…b…"], &["b1a2"]));
    assert!(!shown(&["a"], &["a", "b"]));
    assert!(!shown(&["a", "…", "b"], &["a", "c"]));
    assert!(!shown(&[], &["error"]));
}
