//! Lists: a single value is wrapped; a string is decoded first, and split only if nothing else fits. No item is
//! ever dropped.

use countersign_contract::IssueCode;

use super::trail::{Cost, Event, Trail};
use super::{Coercer, Lossy, Outcome};
use crate::schema::{SchemaId, Types};
use crate::tree::{Kind, NodeId};
use crate::words::Say;

impl Coercer<'_, '_> {
    pub(super) fn read_list(&mut self, node: NodeId, id: SchemaId) -> Outcome {
        match self.tree.kind(node) {
            Kind::Array => self.mend_items(node, id),
            Kind::Null => self.rejected(node, id),
            Kind::Text => self.text_to_list(node, id),
            Kind::False | Kind::True | Kind::Number | Kind::Object => self.wrap(node, id),
        }
    }

    fn text_to_list(&mut self, node: NodeId, id: SchemaId) -> Outcome {
        // An empty string is no value, not a list of one empty item.
        if self.tree.text(node).trim().is_empty() {
            return self.rejected(node, id);
        }
        if let Some(decoded) = self.decoded(node, id) {
            return decoded;
        }
        // A string that looks like a list and cannot be read as one is not an item either.
        if looks_like_a_list(self.tree.text(node)) {
            return self.rejected(node, id);
        }
        // The word for nothing is not an item.
        if is_nothing(self.tree.text(node)) && !self.items_list(node, id) {
            return self.rejected(node, id);
        }
        // A string with separators is one item or several, if the items are any strings.
        let separated = enumerates(self.tree.text(node));
        if separated && self.items_accept(node, id) && !self.items_list(node, id) {
            let span = self.tree.node(node).span;
            let event = Event::new(IssueCode::Ambiguous, span).schema(id);
            return self.fail(event.suggestion(Say::SendList));
        }
        if self.may_split_a_number(node, id) {
            let span = self.tree.node(node).span;
            let event = Event::new(IssueCode::Ambiguous, span).schema(id);
            return self.fail(event.suggestion(Say::SendList));
        }
        let wrapped = self.wrap(node, id);
        // For any other item type it depends on whether the whole or the pieces fit; if both do, there is no safe
        // reading.
        if !self.tree.text(node).contains(',') || self.items_accept(node, id) {
            return wrapped;
        }
        let split = self.split(node, id);
        match (wrapped.node, split.node) {
            (_, None) => wrapped,
            // Its author may have meant one item.
            (None, Some(_)) if self.lossy == Lossy::Refused => {
                let span = self.tree.node(node).span;
                let event = Event::new(IssueCode::Lossy, span).schema(id);
                self.fail(event.suggestion(Say::SendList))
            }
            (None, Some(_)) => split,
            (Some(_), Some(_)) => {
                let span = self.tree.node(node).span;
                let event = Event::new(IssueCode::Ambiguous, span).schema(id);
                self.fail(event.suggestion(Say::SendList))
            }
        }
    }

    /// True if a comma in a string may belong to a number: `1,000, 2,000` for integers, `1,5` where fractions are wanted.
    fn may_split_a_number(&self, node: NodeId, id: SchemaId) -> bool {
        let Some(item) = self.item_of(id) else {
            return false;
        };
        let fractions = self.schema.takes(item, Types::FRACTION);
        let separator = |c: char| c.is_whitespace() || c == ';';
        let mut words = self.tree.text(node).split(separator);
        !self.schema.takes(item, Types::TEXT)
            && words.any(|word| has_number_with_comma(word.trim_matches(','), fractions))
    }

    /// True if the items accept this value as it is.
    fn items_accept(&self, node: NodeId, id: SchemaId) -> bool {
        self.item_of(id).is_none_or(|item| self.accepts(node, item))
    }

    /// True if the items list this very value among those that are allowed.
    fn items_list(&self, node: NodeId, id: SchemaId) -> bool {
        self.item_of(id).is_some_and(|item| {
            self.schema.rules(item).allowed.is_some() && self.accepts(node, item)
        })
    }

    fn item_of(&self, id: SchemaId) -> Option<SchemaId> {
        let list = self.schema.rules(id).list.as_ref();
        list.and_then(|list| list.item(0))
    }

    /// Wraps a lone value. An item is not wrapped: the author may have left out the inner brackets or the outer ones.
    fn wrap(&mut self, node: NodeId, id: SchemaId) -> Outcome {
        if self.is_item {
            return self.rejected(node, id);
        }
        let copy = self.tree.copy(node);
        self.list_of(node, &[copy], id, IssueCode::ScalarWrapped)
    }

    fn split(&mut self, node: NodeId, id: SchemaId) -> Outcome {
        let text = self.tree.text(node);
        let pieces: Vec<String> = text
            .split(',')
            .map(|piece| piece.trim().to_owned())
            .collect();
        if pieces.iter().any(String::is_empty) || pieces.len() > self.limits.members_max {
            return self.rejected(node, id);
        }
        let mut items = Vec::with_capacity(pieces.len());
        for piece in &pieces {
            let text = self.tree.intern(piece);
            items.push(self.make(node, Kind::Text, text));
        }
        self.list_of(node, &items, id, IssueCode::ListSplit)
    }

    /// Builds a list of these items in place of another value.
    fn list_of(
        &mut self,
        node: NodeId,
        items: &[NodeId],
        id: SchemaId,
        code: IssueCode,
    ) -> Outcome {
        let (key, span) = (self.tree.node(node).key, self.tree.node(node).span);
        let list = self.tree.container(Kind::Array, span, items);
        self.tree.node_mut(list).key = key;
        let mended = self.mend_items(list, id);
        let Some(made) = mended.node else {
            return self.rejected(node, id);
        };
        let done = self.trail.leaf(Event::new(code, span).after(made));
        Outcome {
            node: Some(made),
            trail: self.trail.both(done, mended.trail),
            cost: Cost::of(code).plus(mended.cost),
        }
    }

    /// Coerces the items of a list one by one.
    pub(super) fn mend_items(&mut self, node: NodeId, id: SchemaId) -> Outcome {
        let Some(rules) = &self.schema.rules(id).list else {
            return self.checked(node, id);
        };
        let items: Vec<NodeId> = self.tree.children(node).collect();
        let mut trail = Trail::NOTHING;
        let mut cost = Cost::default();
        let mut mended = Vec::with_capacity(items.len());
        let mut whole = true;
        for (i, item) in items.into_iter().enumerate() {
            let outcome = match rules.item(i) {
                Some(schema) => self.coerce_child(item, schema, true),
                None => Self::as_is(item),
            };
            let placed = self.trail.at_index(i, outcome.trail);
            trail = self.trail.both(trail, placed);
            cost = cost.plus(outcome.cost);
            match outcome.node {
                Some(made) => mended.push(self.tree.copy(made)),
                None => whole = false,
            }
        }
        let mended = whole.then_some(mended.as_slice());
        self.mended(node, id, mended, trail, cost)
    }

    /// Decodes a string into the container it holds; `None` if it holds none that fits.
    pub(super) fn decoded(&mut self, node: NodeId, id: SchemaId) -> Option<Outcome> {
        let (key, span) = (self.tree.node(node).key, self.tree.node(node).span);
        let (container, log) = match self.decode(node, id)? {
            Ok(decoded) => decoded,
            Err(conflict) => return Some(conflict),
        };
        self.tree.node_mut(container).key = key;
        self.decoding += 1;
        let inner = self.coerce(container, id);
        self.decoding -= 1;
        let made = inner.node?;
        self.log.merge(log);
        let done = self
            .trail
            .leaf(Event::new(IssueCode::ContainerDecoded, span).after(made));
        Some(Outcome {
            node: Some(made),
            trail: self.trail.both(done, inner.trail),
            cost: Cost::of(IssueCode::ContainerDecoded).plus(inner.cost),
        })
    }
}

/// True for the words with which languages write that there is no value.
pub(super) fn is_nothing(text: &str) -> bool {
    matches!(
        text.trim(),
        "null" | "Null" | "NULL" | "None" | "none" | "nil" | "undefined"
    )
}

/// True if a string may be several items: it has a separator inside it, or is nothing but addresses.
fn enumerates(text: &str) -> bool {
    let separator = |c: char| matches!(c, ',' | ';' | '\n' | '\r' | '、' | '，' | '；');
    let mut words = text.split_whitespace();
    let is_address = |word: &str| word.contains('@') || word.contains("://");
    let addresses = words.next().is_some_and(is_address)
        && words.clone().next().is_some()
        && words.all(is_address);
    addresses || text.trim().contains(separator)
}

/// True if a word is a number with digit grouping or, where fractions are wanted, with a decimal comma.
fn has_number_with_comma(word: &str, fractions: bool) -> bool {
    let unsigned = word.trim_start_matches(['-', '+', '(', '[']);
    let parts: Vec<&str> = unsigned.trim_end_matches([')', ']']).split(',').collect();
    let is_digits = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let [first, rest @ .., last] = parts.as_slice() else {
        return false;
    };
    let end = last.split('.').next().unwrap_or_default();
    let grouped = is_digits(first)
        && first.len() <= 3
        && rest
            .iter()
            .chain([&end])
            .all(|part| is_digits(part) && part.len() == 3);
    let decimal = fractions && rest.is_empty() && is_digits(first) && is_digits(last);
    grouped || decimal
}

fn looks_like_a_list(text: &str) -> bool {
    let inside = text.trim().trim_start_matches(['"', '\'', '\\', '`']);
    let quoted = |rest: &str| rest.trim_start().starts_with(['"', '\'', '\\', '{', '[']);
    match inside.strip_prefix(['[', '(', '{']) {
        Some(rest) => inside.starts_with('[') || quoted(rest),
        None => false,
    }
}
