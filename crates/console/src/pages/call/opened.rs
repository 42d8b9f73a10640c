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

/// Maximum lines of a value on the page; the JSON twin has the rest.
const SHOWN_LINES_MAX: usize = 400;

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
pub(super) fn opened(now: OpenedNow, w: &'static Words) -> Opened {
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
        let mut lines = value
            .map(|value| shown::lines(&value, notes))
            .unwrap_or_default();
        lines.truncate(SHOWN_LINES_MAX);
        lines
    };
    Opened {
        access: now.access,
        marked: marked(&raw, spans),
        bound: limited(bound, &notes),
        data: limited(value(payload.data.as_ref()), &BTreeMap::new()),
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

#[cfg(test)]
mod tests {
    use super::*;

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
