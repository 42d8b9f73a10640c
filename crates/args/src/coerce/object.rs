//! Objects: members are found by their declared name, an alias or another spelling; unknown ones are refused
//! with a suggestion; absent, null and empty are three different things.

use countersign_contract::IssueCode;
use countersign_contract::tool::UnknownKeys;

use super::list::is_nothing;
use super::trail::{Cost, Event, Trail, TrailId, Unread};
use super::{Coercer, Lossy, Outcome};
use crate::schema::{Additional, ObjectRules, Property, SchemaId, Types};
use crate::tree::{Kind, NodeId, Span};
use crate::words::Say;

/// Result of coercing one member.
enum Fate {
    Keep(NodeId),
    Drop,
    Refuse,
}

impl Coercer<'_, '_> {
    pub(super) fn read_object(&mut self, node: NodeId, id: SchemaId) -> Outcome {
        match self.tree.kind(node) {
            Kind::Object => self.mend_members(node, id),
            Kind::Text => match self.decoded(node, id) {
                Some(decoded) => decoded,
                None => self.rejected(node, id),
            },
            Kind::Null | Kind::False | Kind::True | Kind::Number | Kind::Array => {
                self.rejected(node, id)
            }
        }
    }

    /// Coerces the members of an object one by one.
    fn mend_members(&mut self, node: NodeId, id: SchemaId) -> Outcome {
        let Some(rules) = &self.schema.rules(id).object else {
            return self.checked(node, id);
        };
        let members: Vec<NodeId> = self.tree.children(node).collect();
        let mut seen = vec![false; rules.properties.len()];
        for member in &members {
            if let Some(at) = rules.position(self.tree.key(*member), 0)
                && let Some(seen) = seen.get_mut(at)
            {
                *seen = true;
            }
        }
        let mut trail = Trail::NOTHING;
        let mut cost = Cost::default();
        let mut kept = Vec::with_capacity(members.len());
        let mut whole = true;
        for member in members {
            let (fate, done, price) = self.mend_member(member, rules, &mut seen);
            trail = self.trail.both(trail, done);
            cost = cost.plus(price);
            match fate {
                Fate::Keep(made) => kept.push(self.tree.copy(made)),
                Fate::Drop => {}
                Fate::Refuse => whole = false,
            }
        }
        for (property, seen) in rules.properties.iter().zip(seen) {
            if property.required && !seen {
                whole = false;
                let missing = self.missing(node, property);
                trail = self.trail.both(trail, missing);
            }
        }
        let kept = whole.then_some(kept.as_slice());
        self.mended(node, id, kept, trail, cost)
    }

    fn mend_member(
        &mut self,
        member: NodeId,
        rules: &ObjectRules,
        seen: &mut [bool],
    ) -> (Fate, TrailId, Cost) {
        let name = self.tree.key(member);
        if let Some(property) = rules.property(name) {
            return self.mend_property(member, property);
        }
        if let Some((_, schema)) = rules.patterns.iter().find(|(p, _)| p.regex.is_match(name)) {
            return self.mend_by(member, *schema);
        }
        if rules.knows(name) {
            return (Fate::Keep(member), Trail::NOTHING, Cost::default());
        }
        if let Some((property, alias)) = rules.respelt(name)
            && let Some(at) = rules.position(&property.name, 0)
            && let Some(taken) = seen.get_mut(at).filter(|taken| !**taken)
        {
            *taken = true;
            return self.rename(member, property, alias);
        }
        match rules.additional {
            Additional::Welcome | Additional::Elsewhere => {
                (Fate::Keep(member), Trail::NOTHING, Cost::default())
            }
            Additional::Typed(schema) => self.mend_by(member, schema),
            Additional::Unexpected | Additional::Refused | Additional::Unevaluated => {
                self.unknown(member, rules)
            }
        }
    }

    fn mend_by(&mut self, member: NodeId, schema: SchemaId) -> (Fate, TrailId, Cost) {
        let outcome = self.coerce_child(member, schema, false);
        self.placed(member, outcome)
    }

    /// Places the outcome of a member under its key.
    fn placed(&mut self, member: NodeId, outcome: Outcome) -> (Fate, TrailId, Cost) {
        let key = self.tree.node(member).key;
        let trail = self.trail.at_key(key, outcome.trail);
        (
            outcome.node.map_or(Fate::Refuse, Fate::Keep),
            trail,
            outcome.cost,
        )
    }

    /// Coerces a declared member. An optional one may be null, or empty if it is not a string: then it is
    /// absent.
    fn mend_property(&mut self, member: NodeId, property: &Property) -> (Fate, TrailId, Cost) {
        if let Some(code) = self.counts_as_absent(member, property) {
            let node = self.tree.node(member);
            let (key, event) = (node.key, Event::new(code, node.span));
            let leaf = self.trail.leaf(event);
            return (Fate::Drop, self.trail.at_key(key, leaf), Cost::of(code));
        }
        let outcome = self.coerce_child(member, property.schema, false);
        if outcome.node.is_none()
            && property.tells(*self.policy)
            // A value beyond a limit was not read to its end, so its content is unknown.
            && !self.trail.has(outcome.trail, IssueCode::LimitExceeded)
        {
            return self.tell(member, outcome.trail);
        }
        self.placed(member, outcome)
    }

    /// Treats an optional member that cannot be read as absent, because the tool asked for a warning instead of a refusal.
    fn tell(&mut self, member: NodeId, why: TrailId) -> (Fate, TrailId, Cost) {
        let code = IssueCode::OptionalUnreadable;
        let node = self.tree.node(member);
        let (key, mut event) = (node.key, Event::new(code, node.span));
        event.unread = Some(Unread {
            member,
            why,
            is_decoded: self.decoding > 0,
        });
        let leaf = self.trail.leaf(event);
        (Fate::Drop, self.trail.at_key(key, leaf), Cost::of(code))
    }

    fn counts_as_absent(&self, member: NodeId, property: &Property) -> Option<IssueCode> {
        let code = match self.tree.kind(member) {
            Kind::Null => IssueCode::NullDropped,
            Kind::Text => match self.tree.text(member).trim() {
                // An empty string counts as given where something is changed (B10).
                "" if self.lossy == Lossy::Refused => return None,
                "" => IssueCode::EmptyDropped,
                word if is_nothing(word) => IssueCode::NullDropped,
                _ => return None,
            },
            Kind::False | Kind::True | Kind::Number | Kind::Array | Kind::Object => return None,
        };
        let text =
            self.tree.kind(member) == Kind::Text && self.schema.takes(property.schema, Types::TEXT);
        let absent = !property.required && !text && !self.accepts(member, property.schema);
        absent.then_some(code)
    }

    fn rename(
        &mut self,
        member: NodeId,
        property: &Property,
        alias: bool,
    ) -> (Fate, TrailId, Cost) {
        let code = if alias {
            IssueCode::KeyAlias
        } else {
            IssueCode::KeyFolded
        };
        let renamed = self.tree.copy(member);
        let key = self.tree.intern(&property.name);
        self.tree.node_mut(renamed).key = key;
        let written = self.tree.node(member).key;
        let event = Event::new(code, self.tree.node(member).span).name(written);
        let leaf = self.trail.leaf(event);
        let placed = self.trail.at_key(key, leaf);
        let (fate, trail, cost) = self.mend_property(renamed, property);
        (
            fate,
            self.trail.both(placed, trail),
            cost.plus(Cost::of(code)),
        )
    }

    fn unknown(&mut self, member: NodeId, rules: &ObjectRules) -> (Fate, TrailId, Cost) {
        let (key, span) = (self.tree.node(member).key, self.tree.node(member).span);
        let (code, fate) = match (self.policy.unknown_keys, rules.additional) {
            (UnknownKeys::Keep, Additional::Unexpected) => {
                return (Fate::Keep(member), Trail::NOTHING, Cost::default());
            }
            (UnknownKeys::Drop, _) => (IssueCode::UnknownKeyDropped, Fate::Drop),
            (UnknownKeys::Refuse | UnknownKeys::Keep, _) => (IssueCode::UnknownKey, Fate::Refuse),
        };
        let names = || {
            rules
                .properties
                .iter()
                .map(|property| property.name.as_str())
        };
        let known: Vec<&str> = names().take(12).collect();
        let suggestion = match self.nearest_to(key, names()) {
            Some(near) => Say::DidYouMean {
                name: near.to_owned(),
            },
            None => Say::LeaveOut,
        };
        let expected = if known.is_empty() {
            Say::NoArguments
        } else {
            Say::Names {
                names: known.join(", "),
            }
        };
        let event = Event::new(code, span)
            .expected(expected)
            .suggestion(suggestion);
        let leaf = self.trail.leaf(event);
        (fate, self.trail.at_key(key, leaf), Cost::of(code))
    }

    fn missing(&mut self, node: NodeId, property: &Property) -> TrailId {
        // Nothing was sent, so nothing is quoted: the place is the end of the object.
        let end = self.tree.node(node).span.end;
        let event = Event::new(IssueCode::MissingRequired, Span { start: end, end })
            .schema(property.schema)
            .suggestion(Say::SendMember {
                name: property.name.clone(),
            });
        let leaf = self.trail.leaf(event);
        let key = self.tree.intern(&property.name);
        self.trail.at_key(key, leaf)
    }
}
