//! `bind --explain`: the text as it was written, with marks under what was read as something else.

use std::fmt::Write as _;

use countersign::contract::{Issue, Severity};
use unicode_width::UnicodeWidthStr as _;

use crate::table::visible;

/// Maximum number of lines that are shown around marks; a longer text is shown only where something happened.
const LINES_MAX: usize = 200;

/// The text with a line of marks under each line in which something was changed.
pub(super) fn explain(raw: &str, issues: &[Issue], is_coloured: bool) -> String {
    let mut shown = String::new();
    let mut start = 0;
    for (number, line) in raw.split('\n').enumerate() {
        let end = start + line.len();
        let marks: Vec<&Issue> = issues
            .iter()
            .filter(|issue| {
                issue
                    .span
                    .is_some_and(|[at, _]| (start..=end).contains(&at))
            })
            .collect();
        if number < LINES_MAX || !marks.is_empty() {
            let _ = writeln!(shown, "{}", visible(line));
        }
        for issue in marks {
            mark(&mut shown, line, start, issue, is_coloured);
        }
        start = end + 1;
    }
    for issue in issues.iter().filter(|issue| issue.span.is_none()) {
        let _ = writeln!(
            shown,
            "{}",
            painted(&said(issue), issue.severity, is_coloured)
        );
    }
    shown
}

/// Adds the marks of one issue under its line, with its code and what became of it.
fn mark(shown: &mut String, line: &str, start: usize, issue: &Issue, is_coloured: bool) {
    let [from, to] = issue.span.unwrap_or_default();
    let place = |byte: usize| {
        let mut byte = byte.saturating_sub(start).min(line.len());
        while !line.is_char_boundary(byte) {
            byte -= 1;
        }
        visible(line.get(..byte).unwrap_or_default()).width()
    };
    let (left, right) = (place(from), place(to));
    let marks = "^".repeat(right.saturating_sub(left).max(1));
    let text = format!("{marks} {}", said(issue));
    let _ = writeln!(
        shown,
        "{}{}",
        " ".repeat(left),
        painted(&text, issue.severity, is_coloured)
    );
}

fn said(issue: &Issue) -> String {
    let path = match issue.path.as_str() {
        "" => String::new(),
        path => format!(" {}", visible(path)),
    };
    let after = match &issue.after {
        Some(after) => format!(" → {}", visible(&after.to_string())),
        None => String::new(),
    };
    format!(
        "{}{path}{after}: {}",
        issue.code.as_str(),
        visible(&issue.message)
    )
}

/// Colours a text by how far the change goes.
fn painted(text: &str, severity: Severity, is_coloured: bool) -> String {
    let colour = match severity {
        _ if !is_coloured => return text.to_owned(),
        Severity::Note | Severity::Syntax => 36,
        Severity::Retyped | Severity::Normalised => 32,
        Severity::Dropped | Severity::Lossy => 33,
        Severity::Error => 31,
    };
    format!("\u{1b}[{colour}m{text}\u{1b}[0m")
}

#[cfg(test)]
mod tests {
    use countersign_args::Binder;
    use serde_json::json;

    use super::*;

    fn explained(raw: &str, is_coloured: bool) -> String {
        let schema = json!({ "type": "object", "properties": {
            "city": { "type": "string" },
            "days": { "type": "integer" },
        } });
        let binder = Binder::from_schema(&schema, super::super::lines::POLICY).unwrap();
        explain(raw, &binder.bind(raw).issues, is_coloured)
    }

    /// B7: every change is shown under the text that it changed.
    #[test]
    fn marks_stand_under_what_they_are_about() {
        let shown = explained("{\"city\": \"北京\",\n \"days\": \"3\"}", false);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[0], "{\"city\": \"北京\",");
        assert_eq!(lines[1], " \"days\": \"3\"}");
        assert!(
            lines[2].starts_with("         ^^^ TEXT_TO_INTEGER /days → 3"),
            "{shown}"
        );
    }

    /// B7: a changed name is marked at the name, and prose before a fence as prose.
    #[test]
    fn names_and_prose_are_marked_where_they_stand() {
        let shown = explained("Sure, here:\n```json\n{\"City\": \"Rome\"}\n```", false);
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines[1].starts_with("^^^^^^^^^^^ PROSE_SKIPPED"), "{shown}");
        assert!(lines[3].starts_with("^^^^^^^ FENCE_STRIPPED"), "{shown}");
        assert!(
            lines[5].starts_with("  ^^^^ KEY_FOLDED /city → \"city\""),
            "{shown}"
        );
    }

    #[test]
    fn colours_follow_the_severity_and_can_be_switched_off() {
        let raw = "{\"days\": \"three\"}";
        assert!(explained(raw, true).contains("\u{1b}[31m^"));
        assert!(!explained(raw, false).contains('\u{1b}'));
    }
}
