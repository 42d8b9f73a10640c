//! The log of syntax repairs: each kind with its count and its first place.

use countersign_contract::IssueCode;

use crate::tree::Span;

/// One kind of repair.
#[derive(Debug, Clone)]
pub(crate) struct SyntaxEvent {
    pub(crate) code: IssueCode,
    pub(crate) count: u32,
    /// Range of the first repair.
    pub(crate) span: Span,
    /// Path of the first repair.
    pub(crate) path: String,
}

/// Maximum number of places that a log keeps; further repairs are only counted.
const PLACES_MAX: usize = 1_000;

/// Repairs so far, one entry for each kind: a document in single quotes is one issue, not one for each of its
/// strings.
#[derive(Debug, Clone, Default)]
pub(crate) struct SyntaxLog {
    events: Vec<SyntaxEvent>,
    /// Range of every repair, of all kinds.
    places: Vec<Span>,
}

impl SyntaxLog {
    pub(crate) fn is_new(&self, code: IssueCode) -> bool {
        !self.events.iter().any(|event| event.code == code)
    }

    pub(crate) fn first(&mut self, code: IssueCode, span: Span, path: String) {
        self.events.push(SyntaxEvent {
            code,
            count: 1,
            span,
            path,
        });
        self.keep(&[span]);
    }

    pub(crate) fn again(&mut self, code: IssueCode, span: Span) {
        self.keep(&[span]);
        if let Some(event) = self.events.iter_mut().find(|event| event.code == code) {
            event.count += 1;
        }
    }

    /// Logs a repair of the text as a whole.
    pub(crate) fn whole(&mut self, code: IssueCode, span: Span) {
        if self.is_new(code) {
            self.first(code, span, String::new());
        } else {
            self.again(code, span);
        }
    }

    fn keep(&mut self, places: &[Span]) {
        let room = PLACES_MAX.saturating_sub(self.places.len());
        if self.places.is_empty() {
            self.places.reserve(places.len().max(8));
        }
        self.places.extend(places.iter().take(room));
    }

    /// Returns the range of every repair in the raw text, in the order of the text.
    pub(crate) fn places(&self) -> Vec<[usize; 2]> {
        let ranges = self.places.iter().map(|span| span.range());
        let mut places: Vec<[usize; 2]> = ranges.map(|range| [range.start, range.end]).collect();
        places.sort_unstable();
        places
    }

    pub(crate) fn events(&self) -> &[SyntaxEvent] {
        &self.events
    }

    /// Adds the entries of another log.
    pub(crate) fn merge(&mut self, other: Self) {
        self.keep(&other.places);
        for event in other.events {
            match self
                .events
                .iter_mut()
                .find(|known| known.code == event.code)
            {
                Some(known) => known.count += event.count,
                None => self.events.push(event),
            }
        }
    }
}
