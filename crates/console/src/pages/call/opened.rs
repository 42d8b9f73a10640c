//! Opened content of a record: written, bound and answered side by side.

use std::collections::BTreeMap;

use countersign::contract::Warning;
use countersign::contract::evidence::{Exact, Payload};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::again::Draft;
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
    /// What the form of another try begins with.
    #[serde(skip)]
    pub(super) draft: Option<Draft>,
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
    /// Why there is nothing to show.
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
}

/// Opened content, prepared for the page.
pub(super) fn opened(now: OpenedNow, reason: &str, w: &'static Words) -> Opened {
    let (gone, raw) = (now.gone(w), now.written());
    let payload = now.payload.as_deref().cloned().unwrap_or_default();
    let issues: Vec<_> = payload
        .warnings
        .iter()
        .filter_map(|warning| match warning {
            Warning::Issue(issue) => Some(issue),
            Warning::Remark { .. } => None,
        })
        .chain(payload.error.iter().flat_map(|error| &error.details.issues))
        .collect();
    let mut notes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for issue in &issues {
        notes
            .entry(issue.path.clone())
            .or_default()
            .push(told(issue));
    }
    let value = |exact: Option<&Exact>| exact.and_then(|exact| exact.value().ok());
    let bound = value(payload.arguments.as_ref());
    let spans = issues.iter().filter_map(|issue| issue.span).collect();
    let limited = |value: Option<Value>, notes: &BTreeMap<_, _>| {
        let lines = value.map(|value| shown::lines(&value, notes));
        shown::cut(lines.unwrap_or_default())
    };
    let (bound, is_bound_cut) = limited(bound, &notes);
    let (data, is_data_cut) = limited(value(payload.data.as_ref()), &BTreeMap::new());
    let (marked, is_raw_cut) = first_lines(marked(&raw, spans));
    Opened {
        access: now.access,
        marked,
        bound,
        data,
        cut: Cut {
            raw: is_raw_cut,
            bound: is_bound_cut,
            data: is_data_cut,
        },
        reason: reason.to_owned(),
        error: payload.error.as_ref().map(ToString::to_string),
        user: payload.user_id.clone(),
        notes: issues
            .iter()
            .map(|issue| (issue.path.clone(), told(issue)))
            .collect(),
        gone,
        draft: None,
        payload: now.payload,
    }
}

impl Opened {
    /// Offers to try the call again with other arguments.
    pub(super) fn offer_again(&mut self, tool: &str) {
        let Some(payload) = &self.payload else { return };
        let value = |exact: Option<&Exact>| exact.and_then(|exact| exact.value().ok());
        let recorded = value(payload.data.as_ref()).unwrap_or_default();
        self.draft = value(payload.arguments.as_ref())
            .and_then(|bound| Draft::new(tool, &payload.user_id, &bound, &recorded));
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

/// The first lines of a text in pieces, and whether there are more.
fn first_lines(pieces: Vec<(String, bool)>) -> (Vec<(String, bool)>, bool) {
    let mut left = shown::LINES_MAX;
    let mut kept = Vec::new();
    for (text, is_marked) in pieces {
        let ends = text.match_indices('\n').map(|(at, _)| at);
        if let Some(end) = ends.clone().nth(left - 1) {
            kept.push((text.get(..end).unwrap_or_default().to_owned(), is_marked));
            return (kept, true);
        }
        left -= ends.count();
        kept.push((text, is_marked));
    }
    (kept, false)
}

#[cfg(test)]
mod tests {
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
