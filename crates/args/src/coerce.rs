//! Schema-directed, error-driven coercion: a value that the schema accepts is never changed; only a rejected
//! value is converted, by target type and without loss.
//!
//! Originals are never changed: a conversion makes new nodes in the same arena, so the branches of
//! a union can be tried side by side. The recursion is bounded like that of `validate`.

mod explain;
mod list;
mod object;
mod root;
mod scalar;
mod text;
pub(crate) mod trail;
mod union;

use std::collections::HashMap;

use countersign_contract::IssueCode;
use countersign_contract::parameter::Leniency;
use countersign_contract::tool::{BindPolicy, UnknownKeys};

use crate::duplicates::{self, Conflict};
use crate::fold::nearest;
use crate::limits::Limits;
use crate::reading::Reading;
use crate::schema::{ObjectRules, Rules, Schema, SchemaId, Types};
use crate::strict;
use crate::tolerant::{Reader, Shape, SyntaxLog};
use crate::tree::{Kind, NodeId, Str, Tree};
use crate::validate::{Memo, Validator, is_allowed, type_of};
use crate::words::Say;
use trail::{Cost, Event, Step, Trail, TrailId};

/// Maximum searches for a similar name in one text.
const SUGGESTIONS_MAX: usize = 256;

/// Changes that lose something, or may: cutting a decimal, taking a comma for grouping, splitting a string into a list,
/// and leaving out an empty string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lossy {
    /// All are made, with a warning: the tool only reads.
    Taken,
    /// A string is split and an empty one left out: nothing is known but a schema.
    Bare,
    /// None is made, unless the parameter asks for it: the tool changes something.
    Refused,
}

/// Result of coercing one value under one schema.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome {
    /// The value that the schema accepts; `None` if there is no safe one.
    pub(crate) node: Option<NodeId>,
    /// Changes that were made, or the reason why there is no safe value.
    pub(crate) trail: TrailId,
    pub(crate) cost: Cost,
}

/// Converts values of one tree under one schema.
pub(crate) struct Coercer<'c, 'r> {
    pub(crate) tree: &'c mut Tree<'r>,
    pub(crate) schema: &'c Schema,
    pub(crate) policy: &'c BindPolicy,
    pub(crate) limits: &'c Limits,
    pub(crate) reading: &'c Reading,
    pub(crate) lossy: Lossy,
    pub(crate) trail: Trail,
    /// Syntax repairs while decoding strings inside the text.
    pub(crate) log: SyntaxLog,
    memo: HashMap<(NodeId, SchemaId), Outcome>,
    accepted: Memo,
    attempts: usize,
    /// Number of searches for a similar name.
    suggestions: usize,
    depth: usize,
    decoding: usize,
    /// Number of wrappers around the document that were removed.
    unwrapping: usize,
    /// True if the wrapper that was removed last holds a call.
    carried: bool,
    /// Number of strict containers around the current value.
    inside_strict: usize,
    /// True if the current value is an item of a list.
    is_item: bool,
}

impl<'c, 'r> Coercer<'c, 'r> {
    pub(crate) fn new(
        tree: &'c mut Tree<'r>,
        schema: &'c Schema,
        policy: &'c BindPolicy,
        limits: &'c Limits,
        (reading, lossy): (&'c Reading, Lossy),
    ) -> Self {
        Self {
            tree,
            schema,
            policy,
            limits,
            reading,
            lossy,
            trail: Trail::default(),
            log: SyntaxLog::default(),
            memo: HashMap::new(),
            accepted: Memo::default(),
            attempts: 0,
            suggestions: 0,
            depth: 0,
            decoding: 0,
            unwrapping: 0,
            carried: false,
            inside_strict: 0,
            is_item: false,
        }
    }

    /// Coerces an item of a list, or a member of an object.
    fn coerce_child(&mut self, node: NodeId, id: SchemaId, is_item: bool) -> Outcome {
        let before = std::mem::replace(&mut self.is_item, is_item);
        let outcome = self.coerce(node, id);
        self.is_item = before;
        outcome
    }

    /// Coerces a value to a schema.
    pub(crate) fn coerce(&mut self, node: NodeId, id: SchemaId) -> Outcome {
        if self.accepts(node, id) {
            return self.untouched(node, id);
        }
        self.coerce_rejected(node, id)
    }

    /// Coerces a value that a schema does not accept.
    pub(super) fn coerce_rejected(&mut self, node: NodeId, id: SchemaId) -> Outcome {
        if self.schema.has_branches()
            && let Some(done) = self.memo.get(&(node, id))
        {
            return *done;
        }
        if self.tree.len() >= self.limits.nodes() {
            return self.fail(Event::limit("nodes_max", self.tree.node(node).span));
        }
        if self.depth >= self.limits.depth() * 2 {
            return self.fail(Event::limit("depth_max", self.tree.node(node).span));
        }
        self.depth += 1;
        let outcome = self.convert(node, id);
        self.depth -= 1;
        if self.schema.has_branches() {
            self.memo.insert((node, id), outcome);
        }
        outcome
    }

    fn convert(&mut self, node: NodeId, id: SchemaId) -> Outcome {
        let rules = self.schema.rules(id);
        if !self.is_strict(rules) {
            return self.convert_by(node, id);
        }
        // A strict container may only be repaired inside, where each value is strict too.
        let is_taken = match self.tree.kind(node) {
            Kind::Array => self.schema.takes(id, Types::ARRAY),
            Kind::Object => self.schema.takes(id, Types::OBJECT),
            Kind::Null | Kind::False | Kind::True | Kind::Number | Kind::Text => false,
        };
        if !is_taken {
            return self.rejected(node, id);
        }
        self.inside_strict += 1;
        let outcome = self.convert_by(node, id);
        self.inside_strict -= 1;
        outcome
    }

    fn convert_by(&mut self, node: NodeId, id: SchemaId) -> Outcome {
        if self.schema.rules(id).is_composed() {
            return self.convert_composed(node, id);
        }
        self.convert_plain(node, id)
    }

    /// Converts by the declared types; several of them are a union.
    fn convert_plain(&mut self, node: NodeId, id: SchemaId) -> Outcome {
        let rules = self.schema.rules(id);
        if rules.types == Types::ANY {
            // No other type is asked for: only the content can be repaired.
            return self.convert_to(node, id, single(type_of(self.tree, node)));
        }
        if rules.types.is_union() {
            return self.convert_types(node, id);
        }
        let target = Types::SINGLE
            .into_iter()
            .rev()
            .find(|single| rules.types.has(*single));
        match target {
            Some(Types::INTEGER) if rules.types.has(Types::NUMBER) => {
                self.convert_to(node, id, Types::NUMBER)
            }
            Some(target) => self.convert_to(node, id, target),
            None => self.rejected(node, id),
        }
    }

    /// Converts to one type.
    fn convert_to(&mut self, node: NodeId, id: SchemaId, target: Types) -> Outcome {
        let kind = self.tree.kind(node);
        // A list of one item, where no list is wanted, is replaced by its item.
        if kind == Kind::Array && target != Types::ARRAY && self.tree.node(node).count == 1 {
            // Any item would pass as a free map, also one of a list of pairs.
            if target == Types::OBJECT && self.is_free_map(id) {
                return self.rejected(node, id);
            }
            return self.unwrap_singleton(node, id);
        }
        match target {
            Types::INTEGER => self.read_integer(node, id),
            Types::NUMBER => self.read_number(node, id),
            Types::BOOLEAN => self.read_boolean(node, id),
            Types::TEXT => self.read_text(node, id),
            Types::ARRAY => self.read_list(node, id),
            Types::OBJECT => self.read_object(node, id),
            _ => self.rejected(node, id),
        }
    }

    /// True for an object that declares none of its members.
    fn is_free_map(&self, id: SchemaId) -> bool {
        let rules = self.schema.rules(id);
        let declares = |object: &ObjectRules| !object.properties.is_empty();
        !rules.is_composed() && !rules.object.as_deref().is_some_and(declares)
    }

    /// Returns the value as it is. A URI that is not absolute is kept with an issue (B6).
    fn untouched(&mut self, node: NodeId, id: SchemaId) -> Outcome {
        let remarks = self.remarks(node, id);
        Outcome {
            node: Some(node),
            trail: remarks,
            cost: Cost::default(),
        }
    }

    /// Returns the issues about an accepted value.
    pub(crate) fn remarks(&mut self, node: NodeId, id: SchemaId) -> TrailId {
        if !self.schema.has_remarks() {
            return Trail::NOTHING;
        }
        let rules = self.schema.rules(id);
        let format = rules.text.as_ref().and_then(|text| text.format);
        match (self.tree.kind(node), format) {
            (Kind::Text, Some(format))
                if !format.is_binding() && !format.matches(self.tree.text(node)) =>
            {
                let event = Event::new(IssueCode::FormatKept, self.tree.node(node).span)
                    .expected(format.expected());
                self.trail.leaf(event)
            }
            (Kind::Array, _) => {
                let Some(list) = &rules.list else {
                    return Trail::NOTHING;
                };
                let children: Vec<NodeId> = self.tree.children(node).collect();
                let mut all = Trail::NOTHING;
                for (i, child) in children.into_iter().enumerate() {
                    let Some(item) = list.item(i) else { continue };
                    let remarks = self.remarks(child, item);
                    let remarks = self.trail.at_index(i, remarks);
                    all = self.trail.both(all, remarks);
                }
                all
            }
            (Kind::Object, _) => {
                let Some(object) = &rules.object else {
                    return Trail::NOTHING;
                };
                let children: Vec<NodeId> = self.tree.children(node).collect();
                let mut all = Trail::NOTHING;
                for child in children {
                    let Some(member) = object.member_schema(self.tree.key(child)) else {
                        continue;
                    };
                    let remarks = self.remarks(child, member);
                    let remarks = self.trail.at_key(self.tree.node(child).key, remarks);
                    all = self.trail.both(all, remarks);
                }
                all
            }
            _ => Trail::NOTHING,
        }
    }

    /// Returns a converted value, which must also pass all other rules of the schema.
    fn converted(&mut self, node: NodeId, id: SchemaId, event: Event) -> Outcome {
        let cost = Cost::of(event.code);
        let mut done = self.trail.leaf(event);
        let checked = self.checked(node, id);
        if checked.node == Some(node) {
            let remarks = self.remarks(node, id);
            done = self.trail.both(done, remarks);
        }
        Outcome {
            node: checked.node,
            trail: self.trail.both(done, checked.trail),
            cost: cost.plus(checked.cost),
        }
    }

    /// Checks a value of the right type: it is accepted, changed to its declared spelling, or refused.
    fn checked(&mut self, node: NodeId, id: SchemaId) -> Outcome {
        let rules = self.schema.rules(id);
        if self.validator().accepts_own(rules, node) {
            return Outcome {
                node: Some(node),
                trail: Trail::NOTHING,
                cost: Cost::default(),
            };
        }
        if self.tree.kind(node) == Kind::Text {
            return self.respell(node, id);
        }
        self.rejected(node, id)
    }

    /// Builds a container from its coerced children. There is no result if some child has no safe reading.
    fn mended(
        &mut self,
        node: NodeId,
        id: SchemaId,
        children: Option<&[NodeId]>,
        trail: TrailId,
        cost: Cost,
    ) -> Outcome {
        let Some(children) = children else {
            return Outcome {
                node: None,
                trail,
                cost,
            };
        };
        let old = *self.tree.node(node);
        let made = self.tree.container(old.kind, old.span, children);
        self.tree.node_mut(made).key = old.key;
        let checked = self.checked_container(made, id);
        Outcome {
            node: checked.node,
            trail: self.trail.both(trail, checked.trail),
            cost,
        }
    }

    /// Checks the rules about a container as a whole; its children are already accepted.
    fn checked_container(&mut self, node: NodeId, id: SchemaId) -> Outcome {
        let rules = self.schema.rules(id);
        let validator = self.validator();
        let broken = match (&rules.list, &rules.object) {
            (Some(list), _) if self.tree.kind(node) == Kind::Array => {
                validator.broken_list_rule(list, node)
            }
            (_, Some(object)) if self.tree.kind(node) == Kind::Object => {
                validator.broken_object_rule(object, node)
            }
            _ => None,
        };
        let allowed = rules
            .allowed
            .as_ref()
            .is_none_or(|a| is_allowed(self.tree, a, node));
        if broken.is_none() && allowed {
            Self::as_is(node)
        } else {
            self.rejected(node, id)
        }
    }

    fn accepts(&self, node: NodeId, id: SchemaId) -> bool {
        self.validator().accepts(node, id)
    }

    fn validator(&self) -> Validator<'_, 'r> {
        Validator {
            tree: self.tree,
            schema: self.schema,
            memo: &self.accepted,
            keeps_unknown: self.policy.unknown_keys == UnknownKeys::Keep,
            by_value: false,
        }
    }

    fn is_strict(&self, rules: &Rules) -> bool {
        rules
            .strict
            .unwrap_or(self.inside_strict > 0 || self.policy.leniency == Leniency::Strict)
    }

    /// Refuses the value, with an explanation.
    fn rejected(&mut self, node: NodeId, id: SchemaId) -> Outcome {
        let event = self.explain(node, id);
        self.fail(event)
    }

    /// Returns the name that is most similar to a string. Comparing with every name is expensive and only a few
    /// issues are listed, so the number of searches is limited; searches in branches that are not chosen count
    /// as well.
    fn nearest_to<'n>(
        &mut self,
        text: Str,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Option<&'n str> {
        self.suggestions += 1;
        if self.suggestions > SUGGESTIONS_MAX {
            return None;
        }
        nearest(self.tree.str(text), names).first().copied()
    }

    fn fail(&mut self, event: Event) -> Outcome {
        let trail = self.trail.leaf(event);
        Outcome {
            node: None,
            trail,
            cost: Cost::default(),
        }
    }

    /// Decodes a string node into the container it holds, if it holds exactly one. A name that stands in it twice with
    /// different values is an error, as in the text itself.
    fn decode(
        &mut self,
        node: NodeId,
        id: SchemaId,
    ) -> Option<Result<(NodeId, SyntaxLog), Outcome>> {
        let (container, mut log) = self.decode_text(node, id)?;
        match duplicates::collapse(self.tree, container, &mut log) {
            Ok(()) => Some(Ok((container, log))),
            Err(conflict) => Some(Err(self.conflicting(conflict, container))),
        }
    }

    fn conflicting(&mut self, conflict: Conflict, container: NodeId) -> Outcome {
        let name = self.tree.key(conflict.member);
        let event = Event::new(
            IssueCode::DuplicateKey,
            self.tree.node(conflict.member).span,
        )
        .expected(Say::EachNameOnce)
        .suggestion(Conflict::suggestion(name));
        let mut trail = self.trail.leaf(event);
        for step in conflict.steps(self.tree, container).into_iter().rev() {
            trail = match step {
                Step::Key(key) => self.trail.at_key(key, trail),
                Step::Index(index) => self.trail.at_index(index, trail),
            };
        }
        Outcome {
            node: None,
            trail,
            cost: Cost::default(),
        }
    }

    fn decode_text(&mut self, node: NodeId, id: SchemaId) -> Option<(NodeId, SyntaxLog)> {
        if self.decoding >= self.limits.decode_nesting_max {
            return None;
        }
        let text = self.tree.text(node).trim();
        // Copied because the reader writes into the tree that holds the string.
        let text = match text.as_bytes().first()? {
            b'{' | b'[' => text.to_owned(),
            // A string that holds a string with the document.
            b'"' => serde_json::from_str::<String>(text).ok()?,
            _ => return None,
        };
        let text = text.trim();
        if !text.starts_with(['{', '[']) {
            return None;
        }
        let span = self.tree.node(node).span;
        let mut log = SyntaxLog::default();
        let origin = Some((span, self.depth));
        if let Ok((node, end)) = strict::container(self.tree, text, 0, origin, self.limits)
            && end == text.len()
        {
            return Some((node, log));
        }
        let mut reader = Reader::new(self.tree, &mut log, text, self.schema, self.limits)
            .decoded_from(span, self.depth);
        let read = reader.read(0, Shape::Bracketed, Some(id)).ok()?;
        if !read.complete || read.end < text.len() {
            return None;
        }
        Some((read.node, log))
    }
}

/// Returns the single type that a value's own type belongs to.
fn single(own: Types) -> Types {
    if own == Types::FRACTION || own == Types::INTEGER {
        Types::NUMBER
    } else {
        own
    }
}
