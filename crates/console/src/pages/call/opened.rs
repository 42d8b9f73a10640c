//! Opened content of a record: written, bound and answered side by side.

use std::collections::{BTreeMap, BTreeSet};

use countersign::contract::evidence::{Exact, Payload};
use countersign::contract::{Issue, Severity, Warning};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::again::Draft;
use crate::form::digits;
use crate::pages::tool::told;
use crate::shown::{self, Line};
use crate::words::Words;

/// Opened content of a record.
#[derive(Serialize)]
pub(super) struct Opened {
    pub(super) access: Option<String>,
    #[serde(skip)]
    pub(super) marked: Vec<(String, bool)>,
    #[serde(skip)]
    pub(super) bound: Vec<Line>,
    #[serde(skip)]
    pub(super) data: Vec<Line>,
    /// Panes that do not show everything.
    #[serde(skip)]
    pub(super) cut: Cut,
    /// The reason that was given, to open the whole.
    #[serde(skip)]
    pub(super) reason: String,
    #[serde(skip)]
    pub(super) error: Option<String>,
    #[serde(skip)]
    pub(super) user: String,
    #[serde(skip)]
    pub(super) notes: Vec<(String, String)>,
    #[serde(skip)]
    pub(super) gone: Option<&'static str>,
    /// Values with which the form of another try is filled.
    #[serde(skip)]
    pub(super) draft: Option<Draft>,
    /// True if the arguments are too long to be edited on the page.
    #[serde(skip)]
    pub(super) is_too_long: bool,
    pub(super) payload: Option<Box<Payload>>,
}

/// Panes that do not show everything; what is opened as JSON is whole.
#[derive(Default)]
pub(super) struct Cut {
    pub(super) raw: bool,
    pub(super) bound: bool,
    pub(super) data: bool,
}

/// Answer of the API to the opening of a record.
#[derive(Deserialize)]
pub(crate) struct OpenedNow {
    content: String,
    payload: Option<Box<Payload>>,
    pub(crate) access: Option<String>,
}

impl OpenedNow {
    /// Reason why there is nothing to show.
    pub(crate) fn gone(&self, w: &'static Words) -> Option<&'static str> {
        match self.content.as_str() {
            "open" => None,
            "erased" => Some(w.content_erased),
            "pruned" => Some(w.content_pruned),
            _ => Some(w.content_nothing),
        }
    }

    /// The arguments as they were written, byte for byte.
    pub(crate) fn written(&self) -> String {
        let payload = self.payload.as_ref();
        let raw = payload.and_then(|payload| payload.raw.clone());
        let text = || {
            let exact = payload.and_then(|payload| payload.arguments.as_ref());
            exact.map(|exact| exact.text().to_owned())
        };
        raw.or_else(text).unwrap_or_default()
    }

    /// User for whom the call was made; empty if it is not known any more.
    pub(super) fn user(&self) -> &str {
        let payload = self.payload.as_ref();
        payload.map_or("", |payload| payload.user_id.as_str())
    }

    /// Recorded answer; null if there is none.
    pub(super) fn answered(&self) -> Value {
        let data = self.payload.as_ref().and_then(|it| it.data.as_ref());
        data.and_then(|exact| exact.value().ok())
            .unwrap_or_default()
    }
}

/// Opened content, prepared for the page. `read_again` gives the place of every repair in the raw text, as the tool reads
/// it now.
pub(super) fn opened(
    now: OpenedNow,
    reason: &str,
    read_again: impl FnOnce(&str) -> Vec<[usize; 2]>,
    w: &'static Words,
) -> Opened {
    let (gone, raw) = (now.gone(w), now.written());
    let payload = now.payload.as_deref().cloned().unwrap_or_default();
    let issues: Vec<Issue> = payload
        .warnings
        .iter()
        .filter_map(|warning| match warning {
            Warning::Issue(issue) => Some(issue),
            Warning::Remark { .. } => None,
        })
        .chain(payload.error.iter().flat_map(|error| &error.details.issues))
        .map(|issue| uncovered(issue, payload.raw.as_deref()))
        .collect();
    let mut notes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for issue in &issues {
        notes
            .entry(issue.path.clone())
            .or_default()
            .push(told(issue));
    }
    let value = |exact: Option<&Exact>| exact.and_then(|exact| exact.value().ok());
    let (bound, data) = (
        value(payload.arguments.as_ref()),
        value(payload.data.as_ref()),
    );
    let otherwise = answered_otherwise(bound.as_ref(), data.as_ref(), w);
    let spans = places(&raw, &issues, payload.raw.is_some(), read_again);
    let limited = |value: Option<Value>, notes: &BTreeMap<_, _>| {
        let lines = value.map(|value| shown::lines(&value, notes));
        shown::cut(lines.unwrap_or_default())
    };
    let (bound, is_bound_cut) = limited(bound, &notes);
    let (data, is_data_cut) = limited(data, &otherwise);
    let (marked, is_raw_cut) = first_lines(marked(&raw, spans));
    Opened {
        access: now.access,
        marked,
        data,
        cut: Cut {
            raw: is_raw_cut,
            bound: is_bound_cut,
            data: is_data_cut,
        },
        reason: reason.to_owned(),
        error: payload.error.as_ref().map(ToString::to_string),
        user: payload.user_id.clone(),
        notes: elsewhere(&issues, &bound),
        bound,
        gone,
        draft: None,
        is_too_long: false,
        payload: now.payload,
    }
}

/// The notes that stand at no line of the bound arguments, each with its place.
fn elsewhere(issues: &[Issue], bound: &[Line]) -> Vec<(String, String)> {
    let at_lines: BTreeSet<&String> = bound.iter().flat_map(|line| &line.notes).collect();
    let notes = issues.iter().map(|issue| (issue.path.clone(), told(issue)));
    notes.filter(|(_, note)| !at_lines.contains(note)).collect()
}

/// Maximum length of an excerpt in a note, in characters.
const EXCERPT_MAX: usize = 200;

/// An issue as a person reads it who has opened the record: the reply covers what is sensitive, the opened text has it.
/// The text of a tool with secrets is not kept, so there the cover stays.
fn uncovered(issue: &Issue, raw: Option<&str>) -> Issue {
    let mut issue = issue.clone();
    if issue.before.as_deref() == Some("[redacted]")
        && let (Some(raw), Some([start, end])) = (raw, issue.span)
        && let Some(piece) = raw.get(start..end)
    {
        issue.before = Some(shown::excerpt(piece, EXCERPT_MAX));
    }
    issue
}

/// The members of the answer whose value is not that of the argument of the same name, each with a note.
fn answered_otherwise(
    bound: Option<&Value>,
    data: Option<&Value>,
    w: &Words,
) -> BTreeMap<String, Vec<String>> {
    let members = |value: Option<&Value>| value.and_then(Value::as_object).cloned();
    let (Some(bound), Some(data)) = (members(bound), members(data)) else {
        return BTreeMap::new();
    };
    let both = data
        .iter()
        .filter_map(|(name, after)| Some((name, bound.get(name)?, after)));
    let differences = both.flat_map(|(name, before, after)| {
        let place = shown::below("", name);
        let found = shown::differences(before, after).listed;
        found.into_iter().map(move |mut one| {
            one.path.insert_str(0, &place);
            one
        })
    });
    // What only one of the two has is no other value.
    let differences = differences.filter(|one| !one.before.is_empty() && !one.after.is_empty());
    let note = |asked: &str| {
        w.was_asked
            .replace("{}", &shown::excerpt(asked, EXCERPT_MAX))
    };
    differences
        .map(|one| (one.path, vec![note(&one.before)]))
        .collect()
}

/// The places of the raw text at which something was done. An issue has the first place of a repair that was made several
/// times; the others are known where the tool reads the text today as it did then.
fn places(
    raw: &str,
    issues: &[Issue],
    is_kept: bool,
    read_again: impl FnOnce(&str) -> Vec<[usize; 2]>,
) -> Vec<[usize; 2]> {
    // Where the text is not kept, the arguments stand in its place, and only an excerpt proves a span of them.
    let is_there = |issue: &&Issue| {
        let piece = issue.span.and_then(|[start, end]| raw.get(start..end));
        is_kept || (piece.is_some() && piece == issue.before.as_deref())
    };
    let known = issues.iter().filter(is_there);
    let mut spans: Vec<[usize; 2]> = known.clone().filter_map(|issue| issue.span).collect();
    let repaired = known.filter(|issue| issue.severity == Severity::Syntax);
    let mut repaired = repaired.filter_map(|issue| issue.span).peekable();
    if repaired.peek().is_some() {
        let again = read_again(raw);
        if repaired.all(|span| again.contains(&span)) {
            spans.extend(again);
        }
    }
    spans.into_iter().map(|span| visible(raw, span)).collect()
}

/// A place that can be marked. Where something was missing, that is the sign behind the place; a comma before it was one too
/// many.
fn visible(raw: &str, [start, end]: [usize; 2]) -> [usize; 2] {
    if start < end {
        return [start, end];
    }
    let before = raw.get(..start).unwrap_or_default().trim_end();
    if before.ends_with(',') {
        return [before.len() - 1, before.len()];
    }
    let behind = raw.get(start..).unwrap_or_default().chars().next();
    [start, start + behind.map_or(0, char::len_utf8)]
}

impl Opened {
    /// Offers to try the call again with other arguments, and says why not where they are too long.
    pub(super) fn offer_again(&mut self, tool: &str) {
        let Some(payload) = &self.payload else { return };
        let arguments = payload.arguments.as_ref().filter(|_| !tool.is_empty());
        let Some(bound) = arguments.and_then(|exact| digits::read(exact.text()).ok()) else {
            return;
        };
        self.draft = Draft::new(&bound, &self.reason);
        self.is_too_long = self.draft.is_none();
    }
}

/// A text in pieces, those marked that something was done with.
fn marked(text: &str, mut spans: Vec<[usize; 2]>) -> Vec<(String, bool)> {
    spans.sort_unstable();
    let mut pieces = Vec::new();
    let mut at = 0;
    for [start, end] in spans {
        let (Some(before), Some(inside)) = (text.get(at..start), text.get(start..end)) else {
            continue;
        };
        if !before.is_empty() {
            pieces.push((before.to_owned(), false));
        }
        if !inside.is_empty() {
            pieces.push((inside.to_owned(), true));
        }
        at = end;
    }
    pieces.push((text.get(at..).unwrap_or_default().to_owned(), false));
    pieces
}

/// Size of the elements around a marked piece, in bytes.
const AROUND_MARK: usize = 13;

/// The first lines of a text in pieces, and whether there are more.
fn first_lines(pieces: Vec<(String, bool)>) -> (Vec<(String, bool)>, bool) {
    let (mut lines, mut bytes) = (shown::LINES_MAX, shown::PANE_BYTES_MAX);
    let mut kept = Vec::new();
    for (text, is_marked) in pieces {
        let ends = text.match_indices('\n').map(|(at, _)| at);
        let last_line = ends.clone().nth(lines - 1);
        let begun = text.get(..last_line.unwrap_or(text.len()));
        let begun = shown::fitting(begun.unwrap_or_default(), bytes);
        if begun.len() < text.len() {
            kept.push((begun.to_owned(), is_marked));
            return (kept, true);
        }
        lines -= ends.count();
        bytes = bytes.saturating_sub(shown::escaped_len(&text) + AROUND_MARK);
        kept.push((text, is_marked));
    }
    (kept, false)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A long text is cut after a line, also if it is in pieces, and it is known that it was.
    #[test]
    fn long_texts_are_cut() {
        let of = |lines: usize| "a\n".repeat(lines);
        let whole = vec![(of(200), false), (of(199), true), ("end".to_owned(), false)];
        assert_eq!(first_lines(whole.clone()), (whole, false));
        let (kept, is_cut) = first_lines(vec![(of(200), true), (of(300), false)]);
        let text: String = kept.iter().map(|(text, _)| text.as_str()).collect();
        assert!(is_cut);
        assert_eq!(text.lines().count(), shown::LINES_MAX);
    }

    /// An opened call: sensitive parameters, a repair that was made three times, and an answer that differs.
    fn example() -> OpenedNow {
        let raw = "{name: 'Ann', count: '2', 'size': {w: 1},}";
        let text = json!({
            "content": "open",
            "access": "ev_1",
            "payload": {
                "v": 2, "salt": "", "user_id": "u_anna", "raw": raw,
                "arguments": {"name": "Ann", "count": 2, "size": {"w": 1}},
                "data": {"name": "Ann", "count": 3, "size": {"w": 2, "h": 1}, "new": true},
                "warnings": [
                    {"code": "KEY_UNQUOTED", "severity": "syntax", "path": "", "span": [1, 5],
                     "before": "[redacted]", "message": "a name had no quotes, 3 times"},
                    {"code": "TEXT_TO_INTEGER", "severity": "retyped", "path": "/count", "span": [21, 24],
                     "before": "[redacted]", "message": "a string was read as the integer it spells"},
                    {"code": "TRAILING_COMMA", "severity": "syntax", "path": "", "span": [41, 41],
                     "message": "a comma had nothing after it"},
                ],
            },
        });
        serde_json::from_str(&text.to_string()).unwrap()
    }

    fn prepared(now: OpenedNow, again: &[[usize; 2]]) -> Opened {
        let english = crate::words::of(countersign::contract::Language::English);
        opened(now, "a customer asked", |_| again.to_vec(), english)
    }

    fn marks(opened: &Opened) -> Vec<&str> {
        let marked = opened.marked.iter().filter(|(_, is_marked)| *is_marked);
        marked.map(|(text, _)| text.as_str()).collect()
    }

    /// A person who has opened a record reads what was changed, not its cover.
    #[test]
    fn notes_are_uncovered() {
        let opened = prepared(example(), &[]);
        let count = opened.bound.iter().find(|line| line.text.contains("count"));
        let note = &count.unwrap().notes[0];
        assert_eq!(note, "'2': a string was read as the integer it spells");
        let root = &opened.bound[0].notes;
        assert!(
            root[0].starts_with("name: a name had no quotes"),
            "{root:?}"
        );
        // Each note stands once.
        assert!(opened.notes.is_empty());
        // The text of a tool with secrets is not kept: nothing is taken from the arguments in its place.
        let mut secret = example();
        secret.payload.as_mut().unwrap().raw = None;
        let opened = prepared(secret, &[]);
        assert!(opened.bound[0].notes[0].starts_with("[redacted]"));
        assert_eq!(marks(&opened), [""; 0]);
    }

    /// Every place of a repair is marked, if the tool still reads the text as it did.
    #[test]
    fn every_place_is_marked() {
        let all = [[1, 5], [14, 19], [35, 36], [41, 41]];
        let opened = prepared(example(), &all);
        assert_eq!(marks(&opened), ["name", "count", "'2'", "w", ","]);
        let opened = prepared(example(), &[[0, 1], [7, 9]]);
        assert_eq!(marks(&opened), ["name", "'2'", ","]);
    }

    /// A member of the answer is marked where it is another value than the argument of its name.
    #[test]
    fn answers_that_differ_are_marked() {
        let opened = prepared(example(), &[]);
        let noted = opened.data.iter().filter(|line| !line.notes.is_empty());
        let noted = noted.map(|line| (line.text.trim(), line.notes[0].as_str()));
        let noted: Vec<_> = noted
            .map(|(text, note)| (text.trim_end_matches(','), note))
            .collect();
        let expected = [
            ("\"count\": 3", "The call asked for 2."),
            ("\"w\": 2", "The call asked for 1."),
        ];
        assert_eq!(noted, expected);
    }

    /// A call is offered to be tried again, unless its arguments are too long for the page.
    #[test]
    fn long_arguments_are_not_edited_on_the_page() {
        let mut opened = prepared(example(), &[]);
        opened.offer_again("a.tool");
        let draft = opened.draft.as_ref().unwrap();
        assert_eq!(
            (draft.reason.as_str(), opened.is_too_long),
            ("a customer asked", false)
        );
        // Digits stay as they were bound.
        let mut exact = example();
        let text = r#"{"price":0.10}"#.to_owned();
        exact.payload.as_mut().unwrap().arguments = Some(Exact::new(text).unwrap());
        let mut opened = prepared(exact, &[]);
        opened.offer_again("a.tool");
        assert!(opened.draft.unwrap().raw.contains("0.10"));
        let mut long = example();
        let text = json!({"text": "\"".repeat(4_000)}).to_string();
        long.payload.as_mut().unwrap().arguments = Some(Exact::new(text).unwrap());
        let mut opened = prepared(long, &[]);
        opened.offer_again("a.tool");
        assert!(opened.draft.is_none() && opened.is_too_long);
    }

    /// Nothing of the text is lost, whatever the spans say.
    #[test]
    fn marks_keep_the_text() {
        for spans in [
            vec![],
            vec![[4, 7], [1, 2]],
            vec![[0, 3], [2, 5]],
            vec![[5, 900]],
            vec![[1, 3]],
        ] {
            let pieces = marked("{n: '2',} ü", spans);
            let whole: String = pieces.into_iter().map(|(text, _)| text).collect();
            assert_eq!(whole, "{n: '2',} ü");
        }
        let pieces = marked("ab", vec![[0, 1]]);
        assert_eq!(pieces, [("a".to_owned(), true), ("b".to_owned(), false)]);
    }
}
