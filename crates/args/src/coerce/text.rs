//! Strings: never converted to another type, never trimmed. Other literals become strings in their own
//! spelling; enum members and dates are changed to the declared spelling.

use countersign_contract::IssueCode;

use super::trail::{Cost, Event};
use super::{Coercer, Lossy, Outcome};
use crate::fold::{fold_case, fold_value, letters};
use crate::schema::{Allowed, SchemaId};
use crate::tree::{Kind, NodeId};

impl Coercer<'_, '_> {
    pub(super) fn read_text(&mut self, node: NodeId, id: SchemaId) -> Outcome {
        let (text, code) = match self.tree.kind(node) {
            Kind::Text => return self.checked(node, id),
            Kind::Number => (self.tree.spelt(node).to_owned(), IssueCode::NumberToText),
            Kind::True => ("true".to_owned(), IssueCode::BooleanToText),
            Kind::False => ("false".to_owned(), IssueCode::BooleanToText),
            Kind::Null | Kind::Array | Kind::Object => return self.rejected(node, id),
        };
        let span = self.tree.node(node).span;
        let text = self.tree.intern(&text);
        let made = self.make(node, Kind::Text, text);
        self.converted(made, id, Event::new(code, span).after(made))
    }

    /// Changes a string to its declared spelling: an enum member or a date.
    pub(super) fn respell(&mut self, node: NodeId, id: SchemaId) -> Outcome {
        let rules = self.schema.rules(id);
        let text = self.tree.text(node);
        let respelt = match (&rules.allowed, &rules.text) {
            (Some(allowed), _) => member_meant(allowed, text),
            (None, Some(text_rules)) => text_rules
                .format
                .filter(|format| !format.matches(text))
                .and_then(|format| {
                    let fills_in = self.lossy == Lossy::Taken;
                    format.normalise(text, self.reading.timezone(), fills_in)
                })
                .map(|text| (text, IssueCode::DateNormalised)),
            (None, None) => None,
        };
        let Some((spelling, code)) = respelt else {
            return self.rejected(node, id);
        };
        let span = self.tree.node(node).span;
        let text = self.tree.intern(&spelling);
        let made = self.make(node, Kind::Text, text);
        if !self.validator().accepts_own(rules, made) {
            return self.rejected(node, id);
        }
        let trail = self
            .trail
            .leaf(Event::new(code, span).after(made).schema(id));
        Outcome {
            node: Some(made),
            trail,
            cost: Cost::of(code),
        }
    }

    /// Unwraps a list of one item where no list is wanted.
    pub(super) fn unwrap_singleton(&mut self, node: NodeId, id: SchemaId) -> Outcome {
        let Some(item) = self.tree.children(node).next() else {
            return self.rejected(node, id);
        };
        let span = self.tree.node(node).span;
        let key = self.tree.node(node).key;
        let copy = self.tree.copy(item);
        self.tree.node_mut(copy).key = key;
        let inner = self.coerce(copy, id);
        let Some(made) = inner.node else {
            return self.rejected(node, id);
        };
        let event = Event::new(IssueCode::SingletonUnwrapped, span).after(made);
        let cost = Cost::of(event.code).plus(inner.cost);
        let done = self.trail.leaf(event);
        Outcome {
            node: Some(made),
            trail: self.trail.both(done, inner.trail),
            cost,
        }
    }
}

/// Returns the enum member that a string means in another spelling; `None` unless there is exactly one.
fn member_meant(allowed: &Allowed, text: &str) -> Option<(String, IssueCode)> {
    let folded = if allowed.folds {
        fold_value(text)
    } else {
        return None;
    };
    if folded.is_empty() {
        return None;
    }
    let mut aliases = allowed.aliases.iter().filter(|(alias, _)| *alias == folded);
    if let (Some((_, at)), None) = (aliases.next(), aliases.next()) {
        return Some((allowed.members.get(*at)?.text.clone(), IssueCode::EnumAlias));
    }
    let texts = || {
        allowed
            .members
            .iter()
            .filter(|member| member.kind == Kind::Text)
    };
    let cased = fold_case(text);
    let mut members = texts().filter(|member| member.cased == cased);
    if let (Some(member), None) = (members.next(), members.next()) {
        return Some((member.text.clone(), IssueCode::EnumFolded));
    }
    // Separators are skipped only where they make no difference between members: `a-b` may be `a.b` or `ab`.
    let letters = letters(text);
    let alike = texts().filter(|member| member.letters == letters);
    if !letters.is_empty() && alike.take(2).count() > 1 {
        return None;
    }
    let mut members = texts().filter(|member| member.folded == folded);
    match (members.next(), members.next()) {
        (Some(member), None) => Some((member.text.clone(), IssueCode::EnumFolded)),
        _ => None,
    }
}
