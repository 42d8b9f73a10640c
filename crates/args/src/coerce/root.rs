//! The document as a whole: arguments that are wrapped in a list, in a call object or in a text.

use countersign_contract::IssueCode;
use countersign_contract::tool::UnknownKeys;

use super::trail::{Cost, Event, Trail};
use super::{Coercer, Outcome};
use crate::schema::Types;
use crate::tolerant::WRAPPERS;
use crate::tree::{Kind, NodeId};
use crate::words::Say;

/// What may stand beside wrapped arguments: the rest of a provider's call object.
const CALL_MEMBERS: [&str; 12] = [
    "name",
    "type",
    "id",
    "function",
    "tool",
    "tool_name",
    "tool_call_id",
    "call_id",
    "index",
    "recipient_name",
    "role",
    "action",
];

impl Coercer<'_, '_> {
    /// Binds a document: as it is, or what it is wrapped around.
    pub(crate) fn bind_root(&mut self, node: NodeId) -> Outcome {
        let root = self.schema.root;
        if self.policy.unknown_keys == UnknownKeys::Keep
            && self.only_wraps(node)
            && let Some(unwrapped) = self.unwrap_call(node)
        {
            return unwrapped;
        }
        if self.accepts(node, root) {
            return self.untouched(node, root);
        }
        let outcome = self.convert_root(node);
        // Strict out: whatever was done on the way, the declaration has the last word.
        match outcome.node {
            Some(made) if !self.accepts(made, root) => self.rejected(made, root),
            _ => outcome,
        }
    }

    fn convert_root(&mut self, node: NodeId) -> Outcome {
        let root = self.schema.root;
        match self.tree.kind(node) {
            Kind::Array if !self.root_takes(Types::ARRAY) => self.unwrap_list(node),
            Kind::Text if !self.root_takes(Types::TEXT) => self.unwrap_text(node),
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

    /// Whether the document has a name that the declaration knows, or a wrapper around such.
    pub(crate) fn shares_a_name(&self, node: NodeId) -> bool {
        match self.tree.kind(node) {
            Kind::Object => self.tree.children(node).any(|member| {
                let name = self.tree.key(member);
                WRAPPERS.contains(&name) || self.knows(self.schema.root, name)
            }),
            Kind::Array => self
                .tree
                .children(node)
                .any(|item| self.tree.kind(item) == Kind::Object && self.shares_a_name(item)),
            Kind::Null | Kind::False | Kind::True | Kind::Number | Kind::Text => false,
        }
    }

    /// Whether an object has a wrapper's name and none that the declaration knows: where unknown
    /// names are kept, it would pass as it is.
    pub(crate) fn only_wraps(&self, node: NodeId) -> bool {
        let names = || self.tree.children(node).map(|member| self.tree.key(member));
        self.tree.kind(node) == Kind::Object
            && names().any(|name| WRAPPERS.contains(&name))
            && !names().any(|name| self.knows(self.schema.root, name))
    }

    fn knows(&self, id: u32, name: &str) -> bool {
        let rules = self.schema.rules(id);
        let own = rules
            .object
            .as_ref()
            .is_some_and(|object| object.knows(name) || object.respelt(name).is_some());
        let parts = rules
            .all_of
            .iter()
            .chain(&rules.any_of)
            .chain(&rules.one_of);
        own || parts.into_iter().any(|part| self.knows(*part, name))
    }

    fn root_takes(&self, types: Types) -> bool {
        let rules = self.schema.rules(self.schema.root);
        rules.types.has(types)
            && rules
                .all_of
                .iter()
                .all(|part| self.schema.rules(*part).types.has(types))
            && (rules.any_of.is_empty()
                || rules
                    .any_of
                    .iter()
                    .any(|part| self.schema.rules(*part).types.has(types)))
            && (rules.one_of.is_empty()
                || rules
                    .one_of
                    .iter()
                    .any(|part| self.schema.rules(*part).types.has(types)))
    }

    /// A list around the one object. Two different ones are two calls, and we were asked for one.
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
        let inner = self.bind_root(*first);
        self.unwrapped(inner, IssueCode::RootListUnwrapped, span)
    }

    /// The whole document as a text.
    fn unwrap_text(&mut self, node: NodeId) -> Outcome {
        let span = self.tree.node(node).span;
        let Some((container, log)) = self.decode(node, self.schema.root) else {
            return self.coerce_rejected(node, self.schema.root);
        };
        self.decoding += 1;
        let inner = self.bind_root(container);
        self.decoding -= 1;
        if inner.node.is_some() {
            self.log.merge(log);
        }
        self.unwrapped(inner, IssueCode::RootDecoded, span)
    }

    /// `{"name": …, "arguments": {…}}`: only where the object has nothing but a call's own members
    /// and the declaration knows no parameter of the wrapper's name.
    fn unwrap_call(&mut self, node: NodeId) -> Option<Outcome> {
        let members: Vec<NodeId> = self.tree.children(node).collect();
        let root = self.schema.root;
        let is_wrapper = |coercer: &Self, member: NodeId| {
            let name = coercer.tree.key(member);
            WRAPPERS.contains(&name)
                && !coercer.knows(root, name)
                && matches!(coercer.tree.kind(member), Kind::Object | Kind::Text)
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
        let inner = self.bind_root(wrapper);
        inner.node?;
        Some(self.unwrapped(inner, IssueCode::ArgumentsUnwrapped, span))
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

    /// An outcome without any change.
    pub(super) fn as_is(node: NodeId) -> Outcome {
        Outcome {
            node: Some(node),
            trail: Trail::NOTHING,
            cost: Cost::default(),
        }
    }
}
