//! The document as a whole: arguments that are wrapped in a list, in a call object or in a string.

use countersign_contract::IssueCode;
use countersign_contract::tool::UnknownKeys;

use super::trail::{Cost, Event, Trail};
use super::{Coercer, Outcome};
use crate::schema::Types;
use crate::tolerant::{CALL_MEMBERS, WRAPPERS};
use crate::tree::{Kind, NodeId};
use crate::words::Say;

/// Members of a call object that name the tool.
const CALL_NAMES: [&str; 6] = [
    "name",
    "function",
    "tool",
    "tool_name",
    "recipient_name",
    "action",
];

impl Coercer<'_, '_> {
    /// Binds a document as it is, or the arguments that it wraps.
    pub(crate) fn bind_root(&mut self, node: NodeId) -> Outcome {
        let root = self.schema.root;
        // A wrapper's content that is still a call is unwrapped again; otherwise it is not arguments.
        if self.unwrapping > 0 && self.is_call(node) {
            return match self.unwrap_call(node) {
                Some(unwrapped) => unwrapped,
                None => self.still_a_call(node),
            };
        }
        if self.policy.unknown_keys == UnknownKeys::Keep && self.only_wraps(node) {
            if let Some(unwrapped) = self.unwrap_call(node) {
                return unwrapped;
            }
            let declares = self.schema.rules(root).object.is_some();
            if declares && (self.is_call(node) || self.wraps_a_call(node)) {
                return self.still_a_call(node);
            }
        }
        if self.accepts(node, root) {
            return self.untouched(node, root);
        }
        let outcome = self.convert_root(node);
        // Strict out: whatever was changed, the declaration must accept the result.
        match outcome.node {
            Some(made) if !self.accepts(made, root) => self.rejected(made, root),
            _ => outcome,
        }
    }

    fn convert_root(&mut self, node: NodeId) -> Outcome {
        let root = self.schema.root;
        match self.tree.kind(node) {
            Kind::Array if !self.schema.takes(root, Types::ARRAY) => self.unwrap_list(node),
            Kind::Text if !self.schema.takes(root, Types::TEXT) => self.unwrap_text(node),
            Kind::Object => {
                let direct = self.coerce_rejected(node, root);
                match direct.node {
                    Some(_) => direct,
                    None => self.unwrap_call(node).unwrap_or(direct),
                }
            }
            _ => self.coerce_rejected(node, root),
        }
    }

    /// True if an object has a wrapper's name and no name that the declaration knows: if unknown names are
    /// kept, it would pass as it is.
    pub(crate) fn only_wraps(&self, node: NodeId) -> bool {
        let names = || self.tree.children(node).map(|member| self.tree.key(member));
        self.tree.kind(node) == Kind::Object
            && names().any(|name| WRAPPERS.contains(&name))
            && !names().any(|name| self.schema.knows(self.schema.root, name))
    }

    /// True if an object is a call with its arguments: it has a wrapper's name, and otherwise only members of a
    /// call object.
    fn is_call(&self, node: NodeId) -> bool {
        let names = || self.tree.children(node).map(|member| self.tree.key(member));
        let wraps =
            |name: &str| WRAPPERS.contains(&name) && !self.schema.knows(self.schema.root, name);
        self.tree.kind(node) == Kind::Object
            && names().any(wraps)
            && names().any(|name| CALL_NAMES.contains(&name))
            && names().all(|name| wraps(name) || CALL_MEMBERS.contains(&name))
    }

    fn wraps_a_call(&self, node: NodeId) -> bool {
        self.tree.children(node).any(|member| self.is_call(member))
    }

    fn still_a_call(&mut self, node: NodeId) -> Outcome {
        let event = Event::new(IssueCode::Ambiguous, self.tree.node(node).span)
            .came(Say::CallInCall)
            .suggestion(Say::SendArgumentsAlone);
        self.fail(event)
    }

    /// Unwraps a list around one object. Two different objects are two calls, and one was asked for.
    fn unwrap_list(&mut self, node: NodeId) -> Outcome {
        let items: Vec<NodeId> = self.tree.children(node).collect();
        let Some(first) = items.first() else {
            return self.rejected(node, self.schema.root);
        };
        let span = self.tree.node(node).span;
        let mut texts = items.iter().map(|item| {
            let mut json = String::new();
            crate::render::comparable(self.tree, *item, &mut json);
            json
        });
        let one = texts.next();
        if texts.any(|other| Some(other) != one) {
            let event = Event::new(IssueCode::Ambiguous, span).came(Say::DifferentDocuments);
            return self.fail(event.suggestion(Say::SendOneObject));
        }
        let inner = self.bind_inside(*first);
        self.unwrapped(inner, IssueCode::RootListUnwrapped, span)
    }

    /// Unwraps a document that is a string.
    fn unwrap_text(&mut self, node: NodeId) -> Outcome {
        let span = self.tree.node(node).span;
        let Some((container, log)) = self.decode(node, self.schema.root) else {
            return self.coerce_rejected(node, self.schema.root);
        };
        self.decoding += 1;
        let inner = self.bind_inside(container);
        self.decoding -= 1;
        if inner.node.is_some() {
            self.log.merge(log);
        }
        self.unwrapped(inner, IssueCode::RootDecoded, span)
    }

    /// Unwraps `{"name": …, "arguments": {…}}`, but only if the object has no other members than a call's and
    /// the declaration has no parameter with the wrapper's name.
    fn unwrap_call(&mut self, node: NodeId) -> Option<Outcome> {
        let members: Vec<NodeId> = self.tree.children(node).collect();
        let root = self.schema.root;
        let is_wrapper = |coercer: &Self, member: NodeId| {
            let name = coercer.tree.key(member);
            WRAPPERS.contains(&name)
                && !coercer.schema.knows(root, name)
                && match coercer.tree.kind(member) {
                    Kind::Object => true,
                    Kind::Text => coercer.tree.text(member).trim_start().starts_with('{'),
                    Kind::Null | Kind::False | Kind::True | Kind::Number | Kind::Array => false,
                }
        };
        let mut wrappers = members
            .iter()
            .copied()
            .filter(|member| is_wrapper(self, *member));
        let wrapper = wrappers.next()?;
        if wrappers.next().is_some() {
            return None;
        }
        let others_belong = members
            .iter()
            .filter(|member| **member != wrapper)
            .all(|member| {
                CALL_MEMBERS.contains(&self.tree.key(*member))
                    && self.tree.kind(*member) != Kind::Object
            });
        if !others_belong {
            return None;
        }
        let span = self.tree.node(wrapper).span;
        let inner = self.bind_inside(wrapper);
        inner.node?;
        Some(self.unwrapped(inner, IssueCode::ArgumentsUnwrapped, span))
    }

    fn bind_inside(&mut self, node: NodeId) -> Outcome {
        self.unwrapping += 1;
        let inner = self.bind_root(node);
        self.unwrapping -= 1;
        inner
    }

    fn unwrapped(&mut self, inner: Outcome, code: IssueCode, span: crate::tree::Span) -> Outcome {
        if inner.node.is_none() {
            return inner;
        }
        let done = self.trail.leaf(Event::new(code, span));
        Outcome {
            node: inner.node,
            trail: self.trail.both(done, inner.trail),
            cost: inner.cost.plus(Cost::of(code)),
        }
    }

    /// Creates an outcome without any change.
    pub(super) fn as_is(node: NodeId) -> Outcome {
        Outcome {
            node: Some(node),
            trail: Trail::NOTHING,
            cost: Cost::default(),
        }
    }
}
