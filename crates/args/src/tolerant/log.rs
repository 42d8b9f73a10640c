//! Which liberties the reader took, how often, and where first.

use countersign_contract::IssueCode;

use crate::tree::Span;

/// One kind of liberty.
#[derive(Debug, Clone)]
pub(crate) struct SyntaxEvent {
    pub(crate) code: IssueCode,
    pub(crate) count: u32,
    /// Of the first.
    pub(crate) span: Span,
    /// Of the first.
    pub(crate) path: String,
}

/// The liberties taken so far, one entry a kind: a document in single quotes is one remark, not one
/// for each of its strings.
#[derive(Debug, Clone, Default)]
pub(crate) struct SyntaxLog {
    events: Vec<SyntaxEvent>,
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
    }

    pub(crate) fn again(&mut self, code: IssueCode) {
        if let Some(event) = self.events.iter_mut().find(|event| event.code == code) {
            event.count += 1;
        }
    }

    /// Notes a liberty about the text as a whole.
    pub(crate) fn whole(&mut self, code: IssueCode, span: Span) {
        if self.is_new(code) {
            self.first(code, span, String::new());
        } else {
            self.again(code);
        }
    }

    pub(crate) fn events(&self) -> &[SyntaxEvent] {
        &self.events
    }

    /// Takes over what another log has.
    pub(crate) fn merge(&mut self, other: Self) {
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
