//! Integers, numbers and booleans.

use countersign_contract::IssueCode;

use super::trail::Event;
use super::{Coercer, Lossy, Outcome};
use crate::number::{self, Decimal};
use crate::schema::SchemaId;
use crate::tree::{Kind, NodeId, Str};
use crate::validate::fits_kind;
use crate::words::Say;

impl Coercer<'_, '_> {
    pub(super) fn read_integer(&mut self, node: NodeId, id: SchemaId) -> Outcome {
        let (json, code) = match self.tree.kind(node) {
            Kind::Number => (self.tree.text(node).to_owned(), IssueCode::NumberToInteger),
            Kind::Text => match self.number_in(node) {
                Some(reading) if reading.grouped => (reading.json, IssueCode::GroupedNumber),
                Some(reading) => (reading.json, IssueCode::TextToInteger),
                None => return self.rejected(node, id),
            },
            Kind::Null | Kind::False | Kind::True | Kind::Array | Kind::Object => {
                return self.rejected(node, id);
            }
        };
        let span = self.tree.node(node).span;
        let grouped = self.tree.kind(node) == Kind::Text && is_point_group(self.tree.text(node));
        if grouped && self.reading.is_comma_unknown() {
            let event = Event::new(IssueCode::Ambiguous, span).schema(id);
            return self.fail(event.suggestion(Say::SendAsNumber));
        }
        let assumed = self.assumes_grouping(node);
        if assumed && self.lossy == Lossy::Refused {
            let event = Event::new(IssueCode::Ambiguous, span).schema(id);
            return self.fail(event.suggestion(Say::SendAsNumber));
        }
        let code = if assumed && self.lossy == Lossy::Taken {
            IssueCode::GroupingAssumed
        } else {
            code
        };
        let decimal = Decimal::parse(&json);
        let most = self.limits.number_digits_max;
        match decimal
            .as_ref()
            .and_then(|decimal| decimal.to_integer(most))
        {
            Some(integer) => {
                if !fits_kind(self.schema.rules(id), &integer) {
                    let event = Event::new(IssueCode::Constraint, span);
                    return self.fail(event.expected(Say::Integer64));
                }
                // The digits were whole already: the type is right, but a bound is broken.
                if code == IssueCode::NumberToInteger && integer == json {
                    return self.rejected(node, id);
                }
                let made = self.make_number(node, &integer);
                self.converted(made, id, Event::new(code, span).after(made))
            }
            None if self.schema.rules(id).truncate || self.lossy == Lossy::Taken => {
                match decimal.and_then(|decimal| decimal.truncated(most)) {
                    Some(cut) => {
                        let made = self.make_number(node, &cut);
                        let event = Event::new(IssueCode::IntegerTruncated, span).after(made);
                        self.converted(made, id, event)
                    }
                    None => self.rejected(node, id),
                }
            }
            None => {
                let event = Event::new(IssueCode::Lossy, span).schema(id);
                self.fail(event.suggestion(Say::SendWholeNumber))
            }
        }
    }

    pub(super) fn read_number(&mut self, node: NodeId, id: SchemaId) -> Outcome {
        if self.tree.kind(node) != Kind::Text {
            return self.rejected(node, id);
        }
        let Some(reading) = self
            .number_in(node)
            .filter(|reading| Decimal::is_finite(&reading.json))
        else {
            return self.rejected(node, id);
        };
        // It may be a decimal of an author who writes a decimal comma.
        let assumed = self.assumes_grouping(node);
        if assumed && self.lossy != Lossy::Taken {
            let event = Event::new(IssueCode::Ambiguous, self.tree.node(node).span).schema(id);
            return self.fail(event.suggestion(Say::SendAsNumber));
        }
        let span = self.tree.node(node).span;
        let made = self.make_number(node, &reading.json);
        let code = if assumed {
            IssueCode::GroupingAssumed
        } else if reading.grouped {
            IssueCode::GroupedNumber
        } else {
            IssueCode::TextToNumber
        };
        self.converted(made, id, Event::new(code, span).after(made))
    }

    pub(super) fn read_boolean(&mut self, node: NodeId, id: SchemaId) -> Outcome {
        let (truth, code) = match self.tree.kind(node) {
            Kind::Text => (truth_of(self.tree.text(node)), IssueCode::TextToBoolean),
            Kind::Number => {
                let truth = match self.tree.text(node) {
                    "0" => Some(false),
                    "1" => Some(true),
                    _ => None,
                };
                (truth, IssueCode::NumberToBoolean)
            }
            Kind::Null | Kind::False | Kind::True | Kind::Array | Kind::Object => {
                return self.rejected(node, id);
            }
        };
        let Some(truth) = truth else {
            return self.rejected(node, id);
        };
        let span = self.tree.node(node).span;
        let kind = if truth { Kind::True } else { Kind::False };
        let made = self.make(node, kind, Str::EMPTY);
        self.converted(made, id, Event::new(code, span).after(made))
    }

    /// True for `1,234` of an author whose decimal mark is not known.
    fn assumes_grouping(&self, node: NodeId) -> bool {
        self.tree.kind(node) == Kind::Text
            && self.reading.is_comma_unknown()
            && number::has_one_group(self.tree.text(node))
    }

    /// Reads the number that a string spells.
    fn number_in(&self, node: NodeId) -> Option<number::Reading> {
        let text = self.tree.text(node);
        if text.len() > self.limits.number_digits_max {
            return None;
        }
        number::from_text(text, self.reading.has_decimal_comma())
    }

    fn make_number(&mut self, from: NodeId, json: &str) -> NodeId {
        let text = self.tree.intern(json);
        self.make(from, Kind::Number, text)
    }

    /// Creates a scalar in place of another value.
    pub(super) fn make(&mut self, from: NodeId, kind: Kind, text: Str) -> NodeId {
        let (key, span) = (self.tree.node(from).key, self.tree.node(from).span);
        let made = self.tree.push(kind, text, span);
        self.tree.node_mut(made).key = key;
        made
    }
}

/// True for `1.000`, which is one to some authors and a thousand to others.
fn is_point_group(text: &str) -> bool {
    let digits = text.trim().trim_start_matches(['-', '+']);
    digits.strip_suffix(".000").is_some_and(|whole| {
        matches!(whole.len(), 1..=3)
            && !whole.starts_with('0')
            && whole.bytes().all(|byte| byte.is_ascii_digit())
    })
}

fn truth_of(text: &str) -> Option<bool> {
    const TRUE: [&str; 6] = ["true", "yes", "on", "y", "t", "1"];
    const FALSE: [&str; 6] = ["false", "no", "off", "n", "f", "0"];
    let word = text.trim();
    if TRUE.iter().any(|known| word.eq_ignore_ascii_case(known)) {
        Some(true)
    } else if FALSE.iter().any(|known| word.eq_ignore_ascii_case(known)) {
        Some(false)
    } else {
        None
    }
}
