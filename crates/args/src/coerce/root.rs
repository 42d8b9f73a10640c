//! The document as a whole: arguments that are wrapped in a list, in a call object or in a string.

use countersign_contract::IssueCode;
use countersign_contract::tool::UnknownKeys;

use super::trail::{Cost, Event, Trail};
use super::{Coercer, Outcome};
use crate::names::Names;
use crate::schema::Types;
use crate::tolerant::{CALL_MEMBERS, LISTS_OF_CALLS, WRAPPERS};
use crate::tree::{Kind, NodeId};
use crate::words::Say;

/// Members of a call object that name the tool.
const CALL_NAMES: Names = Names::new(&[
    "name",
    "function",
    "function_name",
    "functionName",
    "tool",
    "tool_name",
    "toolName",
    "recipient_name",
    "action",
    "method",
    "call",
]);

/// Wrappers that hold arguments and nothing else.
const ARGUMENTS: Names = Names::new(&[
    "arguments",
    "args",
    "parameters",
    "params",
    "input",
    "kwargs",
    "tool_input",
    "toolInput",
    "tool_args",
    "action_input",
    "function_args",
]);

/// Maximum depth at which a call is searched in its wrappers.
const CALL_DEPTH_MAX: usize = 4;

/// Wrappers that hold a call and not its arguments.
const CARRIERS: Names = Names::new(&[
    "function",
    "function_call",
    "functionCall",
    "function_calls",
    "functionCalls",
    "tool_call",
    "toolCall",
    "tool_calls",
    "toolCalls",
    "tool_use",
    "toolUse",
    "call",
]);

impl Coercer<'_, '_> {
    /// Binds a document in a mark for calls: there a name with arguments is the call, even if the declaration has a
    /// parameter `name`.
    pub(crate) fn bind_marked(&mut self, node: NodeId) -> Outcome {
        if !self.is_two_things(node) {
            return self.bind_root(node);
        }
        let before = std::mem::replace(&mut self.carried, true);
        let outcome = self.bind_inside(node);
        self.carried = before;
        outcome
    }

    /// Binds a document as it is, or the arguments that it wraps.
    pub(crate) fn bind_root(&mut self, node: NodeId) -> Outcome {
        let root = self.schema.root;
        // A wrapper's content that is still a call is unwrapped again; otherwise it is not arguments.
        if self.unwrapping > 0 && (self.is_call(node) || self.is_doubtful(node)) {
            return match self.unwrap_call(node) {
                Some(unwrapped) => unwrapped,
                None => self.still_a_call(node),
            };
        }
        let is_rpc = self.is_rpc(node);
        let wrapper = self.has_wrapper(node);
        let wraps = is_rpc || (wrapper && (self.only_wraps(node) || self.wraps_a_call(node)));
        if self.policy.unknown_keys == UnknownKeys::Keep && wraps {
            if let Some(unwrapped) = self.unwrap_call(node) {
                return unwrapped;
            }
            let declares = self.schema.rules(root).object.is_some();
            let is_call = is_rpc || self.is_call(node) || self.wraps_a_call(node);
            if declares && (is_call || self.wraps_a_document(node)) {
                return self.still_a_call(node);
            }
        }
        // A call object with members that no call object has: they may be arguments, so nothing of it is left out or
        // passed on.
        if self.unwrapping == 0 && wrapper && self.is_call_with_more(node) {
            return self
                .unwrap_call(node)
                .unwrap_or_else(|| self.still_a_call(node));
        }
        if self.accepts(node, root) {
            // A name with arguments that nothing declares is the call as well as the arguments.
            if self.unwrapping == 0 && wrapper && self.is_two_things(node) {
                return if self.says_call(node) {
                    self.bind_marked(node)
                } else {
                    self.still_a_call(node)
                };
            }
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

    /// True if an object has a member with a wrapper's name. Most have none, and then are no call.
    fn has_wrapper(&self, node: NodeId) -> bool {
        let mut members = self.tree.children(node);
        self.tree.kind(node) == Kind::Object
            && members.any(|member| WRAPPERS.has(self.tree.key(member)))
    }

    /// True if an object has a wrapper's name and no name that the declaration knows: if unknown names are
    /// kept, it would pass as it is.
    pub(crate) fn only_wraps(&self, node: NodeId) -> bool {
        let names = || self.tree.children(node).map(|member| self.tree.key(member));
        self.tree.kind(node) == Kind::Object
            && names().any(|name| WRAPPERS.has(name))
            && !names().any(|name| self.schema.knows(self.schema.root, name))
    }

    /// True if an object is a call with its arguments: it has a wrapper's name, and otherwise only members of a
    /// call object.
    fn is_call(&self, node: NodeId) -> bool {
        let names = || self.tree.children(node).map(|member| self.tree.key(member));
        let wraps = |name: &str| WRAPPERS.has(name) && !self.schema.knows(self.schema.root, name);
        self.tree.kind(node) == Kind::Object
            && names().any(wraps)
            && names().any(|name| CALL_NAMES.has(name))
            && names().all(|name| wraps(name) || CALL_MEMBERS.has(name))
    }

    /// True if an object is nothing but wrapped arguments, also such that cannot be read: without this it would pass as
    /// a call without arguments.
    fn wraps_a_document(&self, node: NodeId) -> bool {
        let wraps =
            |member: NodeId| WRAPPERS.has(self.tree.key(member)) && self.holds_a_document(member);
        let beside = |member: NodeId| CALL_MEMBERS.has(self.tree.key(member));
        let mut members = self.tree.children(node);
        self.only_wraps(node)
            && self.tree.children(node).any(wraps)
            && members.all(|member| wraps(member) || beside(member))
    }

    /// True for a call in the form of JSON-RPC.
    fn is_rpc(&self, node: NodeId) -> bool {
        let calls = |method: NodeId| {
            self.tree.kind(method) == Kind::Text && self.tree.text(method) == "tools/call"
        };
        self.tree.member(node, "jsonrpc").is_some()
            && !self.schema.knows(self.schema.root, "jsonrpc")
            && self.tree.member(node, "method").is_some_and(calls)
    }

    /// True if an undeclared wrapper of an object holds a call.
    fn wraps_a_call(&self, node: NodeId) -> bool {
        self.tree.kind(node) == Kind::Object
            && self.tree.children(node).any(|member| {
                let name = self.tree.key(member);
                WRAPPERS.has(name)
                    && !self.schema.knows(self.schema.root, name)
                    && self.holds_a_call(member, CALL_DEPTH_MAX)
            })
    }

    /// True for a call, a list with one, or an object with one under a name that holds calls.
    fn holds_a_call(&self, node: NodeId, depth: usize) -> bool {
        if depth == 0 || self.is_call(node) || self.looks_like_call(node) {
            return depth > 0;
        }
        let mut children = self.tree.children(node);
        match self.tree.kind(node) {
            Kind::Array => children.any(|item| self.holds_a_call(item, depth - 1)),
            Kind::Object => children.any(|member| {
                CARRIERS.has(self.tree.key(member)) && self.holds_a_call(member, depth - 1)
            }),
            Kind::Null | Kind::False | Kind::True | Kind::Number | Kind::Text => false,
        }
    }

    /// True if an object has nothing but a name and arguments, whatever is declared.
    fn looks_like_call(&self, node: NodeId) -> bool {
        if self.tree.kind(node) != Kind::Object {
            return false;
        }
        let (mut named, mut wraps, mut other) = (false, false, false);
        for member in self.tree.children(node) {
            let name = self.tree.key(member);
            named |= CALL_NAMES.has(name) && self.tree.kind(member) == Kind::Text;
            wraps |= WRAPPERS.has(name) && self.holds_a_document(member);
            other |= !WRAPPERS.has(name) && !CALL_MEMBERS.has(name);
        }
        named && wraps && !other
    }

    /// True if a wrapper's content looks like a call and like arguments: it was held as a call, or does not fit the
    /// declaration as it is, or has names of it and others.
    fn is_doubtful(&self, node: NodeId) -> bool {
        let root = self.schema.root;
        let declared = |member| self.schema.knows(root, self.tree.key(member));
        self.looks_like_call(node)
            && (self.carried
                || !self.accepts(node, root)
                || !self.tree.children(node).all(declared))
    }

    /// True for a name, arguments that the declaration does not know under that name, and something else that is a
    /// parameter, or that would be dropped with them.
    fn is_call_with_more(&self, node: NodeId) -> bool {
        let root = self.schema.root;
        let drops = self.policy.unknown_keys == UnknownKeys::Drop;
        let (mut named, mut documents, mut more) = (false, 0, false);
        for member in self.tree.children(node) {
            let name = self.tree.key(member);
            let declared = self.schema.knows(root, name);
            named |= CALL_NAMES.has(name) && self.tree.kind(member) == Kind::Text;
            if ARGUMENTS.has(name) && !declared && self.holds_a_document(member) {
                documents += 1;
            } else if !CALL_MEMBERS.has(name) || name == "status" {
                more |= drops || declared;
            }
        }
        let alone = documents == 1 && !more;
        named && documents > 0 && !alone && self.schema.rules(root).object.is_some()
    }

    /// True for an object, and for a string that starts like one.
    fn holds_a_document(&self, node: NodeId) -> bool {
        match self.tree.kind(node) {
            Kind::Object => true,
            Kind::Text => self.tree.text(node).trim_start().starts_with('{'),
            Kind::Null | Kind::False | Kind::True | Kind::Number | Kind::Array => false,
        }
    }

    /// True if an object says itself that it is a call: `"type": "tool_use"`.
    fn says_call(&self, node: NodeId) -> bool {
        let kinds = ["tool_use", "tool_call", "function", "function_call"];
        let says = |kind: NodeId| {
            self.tree.kind(kind) == Kind::Text && kinds.contains(&self.tree.text(kind))
        };
        !self.schema.knows(self.schema.root, "type")
            && self.tree.member(node, "type").is_some_and(says)
    }

    /// True if a document looks like a call around arguments that the declaration does not have under that name.
    fn is_two_things(&self, node: NodeId) -> bool {
        let root = self.schema.root;
        let undeclared = |member: NodeId| {
            let name = self.tree.key(member);
            WRAPPERS.has(name) && !self.schema.knows(root, name)
        };
        self.schema.rules(root).object.is_some()
            && self.looks_like_call(node)
            && self.tree.children(node).any(undeclared)
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
        let (container, log) = match self.decode(node, self.schema.root) {
            Some(Ok(decoded)) => decoded,
            Some(Err(conflict)) => return conflict,
            None => return self.coerce_rejected(node, self.schema.root),
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
            WRAPPERS.has(name)
                && !coercer.schema.knows(root, name)
                && match coercer.tree.kind(member) {
                    Kind::Object => true,
                    Kind::Text => {
                        let text = coercer.tree.text(member).trim_start();
                        text.starts_with('{') || text.starts_with("\"{")
                    }
                    Kind::Array => LISTS_OF_CALLS.has(name),
                    Kind::Null | Kind::False | Kind::True | Kind::Number => false,
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
                CALL_MEMBERS.has(self.tree.key(*member))
                    && self.tree.kind(*member) != Kind::Object
                    && self.stands_beside(node, wrapper, *member)
            });
        if !others_belong {
            return None;
        }
        let span = self.tree.node(wrapper).span;
        let carried =
            CARRIERS.has(self.tree.key(wrapper)) || self.tree.member(node, "jsonrpc").is_some();
        let before = std::mem::replace(&mut self.carried, carried);
        let inner = self.bind_inside(wrapper);
        self.carried = before;
        // Two values under one name are in the wrapped arguments, whatever else the object may be.
        if inner.node.is_none() && !self.trail.has(inner.trail, IssueCode::DuplicateKey) {
            return None;
        }
        Some(self.unwrapped(inner, IssueCode::ArgumentsUnwrapped, span))
    }

    /// True if a member beside the wrapper belongs to the call object and cannot be an argument: every call has some of
    /// these names, and any other must not be a parameter's.
    fn stands_beside(&self, call: NodeId, wrapper: NodeId, member: NodeId) -> bool {
        let name = self.tree.key(member);
        match name {
            // A log of a call that failed is no call.
            "status" if !self.is_pending(member) => false,
            "call" if self.tree.kind(member) != Kind::Text => false,
            "name" | "type" | "id" | "index" | "function" | "role" => true,
            "action" if self.tree.key(wrapper) == "action_input" => true,
            "content" if self.tree.kind(member) == Kind::Null => true,
            "method" if self.tree.member(call, "jsonrpc").is_some() => true,
            _ => !self.schema.knows(self.schema.root, name),
        }
    }

    /// True for a status with which providers send a call that is meant to run.
    fn is_pending(&self, status: NodeId) -> bool {
        let pending = [
            "completed",
            "in_progress",
            "pending",
            "queued",
            "requires_action",
        ];
        self.tree.kind(status) == Kind::Text && pending.contains(&self.tree.text(status))
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
