//! Unions and other schemas that apply to the same value.
//!
//! Each branch is tried; the one with the smallest change wins, compared by severity and not by a sum of
//! weights. If two branches need equal changes and give different values, there is no safe reading.

use countersign_contract::IssueCode;

use super::trail::{Cost, Event, Trail};
use super::{Coercer, Outcome};
use crate::schema::{SchemaId, Types};
use crate::tree::{Kind, NodeId};
use crate::words::Say;

impl Coercer<'_, '_> {
    /// Converts by the own rules first, then by every schema that applies too, and then checks the result as a
    /// whole.
    pub(super) fn convert_composed(&mut self, node: NodeId, id: SchemaId) -> Outcome {
        let rules = self.schema.rules(id);
        let mut value = node;
        let mut trail = Trail::NOTHING;
        let mut cost = Cost::default();
        if !self.validator().accepts_own(rules, node) {
            let own = self.convert_plain(node, id);
            let Some(made) = own.node else { return own };
            (value, trail, cost) = (made, own.trail, own.cost);
        }
        let branches = [rules.any_of(), rules.one_of()];
        let parts = rules.all_of().iter().map(std::slice::from_ref);
        let unions = branches.into_iter().filter(|b| !b.is_empty());
        for choice in parts.chain(unions) {
            let outcome = match choice {
                [only] => self.coerce(value, *only),
                several => self.choose(value, several, id),
            };
            trail = self.trail.both(trail, outcome.trail);
            cost = cost.plus(outcome.cost);
            match outcome.node {
                Some(made) => value = made,
                None => {
                    return Outcome {
                        node: None,
                        trail,
                        cost,
                    };
                }
            }
        }
        if self.accepts(value, id) {
            return Outcome {
                node: Some(value),
                trail,
                cost,
            };
        }
        let rejected = self.rejected(value, id);
        Outcome {
            node: None,
            trail: self.trail.both(trail, rejected.trail),
            cost,
        }
    }

    /// Converts to one of several types: they are a union of single types.
    pub(super) fn convert_types(&mut self, node: NodeId, id: SchemaId) -> Outcome {
        let types = self.schema.rules(id).types;
        let own = super::single(crate::validate::type_of(self.tree, node));
        let mut outcomes = Vec::new();
        for single in Types::SINGLE {
            let half = single == Types::INTEGER && types.has(Types::NUMBER);
            if types.has(single) && !half {
                let outcome = self.convert_to(node, id, single);
                outcomes.push((outcome, single == own));
            }
        }
        self.pick(node, id, &outcomes)
    }

    fn choose(&mut self, node: NodeId, branches: &[SchemaId], id: SchemaId) -> Outcome {
        let named = self.discriminated(node, branches);
        let branches = named.as_ref().map_or(branches, std::slice::from_ref);
        let own = crate::validate::type_of(self.tree, node);
        let mut outcomes = Vec::with_capacity(branches.len());
        for branch in branches {
            self.attempts += 1;
            let per_node = self.limits.union_attempts_per_node_max;
            if self.attempts > per_node.saturating_mul(self.tree.len()) {
                let span = self.tree.node(node).span;
                return self.fail(Event::limit("union_attempts_per_node_max", span));
            }
            let outcome = self.coerce(node, *branch);
            let alike = self.schema.rules(*branch).types.has(own);
            outcomes.push((outcome, alike));
        }
        let picked = self.pick(node, id, &outcomes);
        let is_list = |node: NodeId| self.tree.kind(node) == Kind::Array;
        // One value for a list or a list of lists: the number of brackets would be a guess.
        if !is_list(node)
            && picked.node.is_some_and(is_list)
            && branches.iter().any(|branch| self.is_list_of_lists(*branch))
            && self.trail.has(picked.trail, IssueCode::ScalarWrapped)
        {
            return self.ambiguous(node, id);
        }
        picked
    }

    fn is_list_of_lists(&self, id: SchemaId) -> bool {
        let list = self.schema.rules(id).list.as_ref();
        let item = list.and_then(|list| list.item(0));
        item.is_some_and(|item| {
            let types = self.schema.rules(item).types;
            types != Types::ANY && types.has(Types::ARRAY)
        })
    }

    fn ambiguous(&mut self, node: NodeId, id: SchemaId) -> Outcome {
        let span = self.tree.node(node).span;
        let event = Event::new(IssueCode::Ambiguous, span).schema(id);
        self.fail(event.suggestion(Say::SendMeantType))
    }

    /// Returns the branch that a constant member selects, such as `"type": "card"`.
    fn discriminated(&self, node: NodeId, branches: &[SchemaId]) -> Option<SchemaId> {
        if self.tree.kind(node) != Kind::Object {
            return None;
        }
        let mut hits = branches.iter().filter(|branch| {
            let Some(object) = &self.schema.rules(**branch).object else {
                return false;
            };
            object.properties.iter().any(|property| {
                let constant = self.schema.rules(property.schema).allowed.as_ref();
                constant.is_some_and(|allowed| allowed.members.len() == 1)
                    && self
                        .tree
                        .member(node, &property.name)
                        .is_some_and(|member| self.accepts(member, property.schema))
            })
        });
        match (hits.next(), hits.next()) {
            (Some(only), None) => Some(*only),
            _ => None,
        }
    }

    /// True if a string is an enum member in another spelling to one branch, and a boolean or a number to another: `"ON"`
    /// for `"on"` or a boolean.
    fn is_word_of_two(&self, node: NodeId, outcomes: &[(Outcome, bool)]) -> bool {
        let kind = |outcome: &Outcome| outcome.node.map(|node| self.tree.kind(node));
        let respelt = |outcome: &Outcome| {
            kind(outcome) == Some(Kind::Text)
                && [IssueCode::EnumFolded, IssueCode::EnumAlias]
                    .into_iter()
                    .any(|code| self.trail.has(outcome.trail, code))
        };
        let other = |outcome: &Outcome| {
            matches!(
                kind(outcome),
                Some(Kind::True | Kind::False | Kind::Number | Kind::Null)
            )
        };
        self.tree.kind(node) == Kind::Text
            && outcomes.iter().any(|(outcome, _)| respelt(outcome))
            && outcomes.iter().any(|(outcome, _)| other(outcome))
    }

    fn pick(&mut self, node: NodeId, id: SchemaId, outcomes: &[(Outcome, bool)]) -> Outcome {
        let fitting = || {
            outcomes
                .iter()
                .map(|(outcome, _)| outcome)
                .filter(|o| o.node.is_some())
        };
        let Some(best) = fitting().min_by_key(|outcome| outcome.cost) else {
            // Report the branch that comes nearest: the value's own type first, then the fewest errors.
            let nearest = outcomes
                .iter()
                .min_by_key(|(outcome, alike)| (!*alike, self.trail.errors(outcome.trail)));
            return match nearest {
                Some((outcome, true)) => *outcome,
                _ => self.rejected(node, id),
            };
        };
        let values: Vec<String> = fitting()
            .filter(|outcome| outcome.cost == best.cost)
            .filter_map(|outcome| outcome.node)
            .map(|node| {
                let mut json = String::new();
                crate::render::comparable(self.tree, node, &mut json);
                json
            })
            .collect();
        let differ = values.windows(2).any(|pair| pair.first() != pair.last());
        // `1,5` for a number or a list: the comma may be the decimal mark.
        let takes = |types| self.schema.takes(id, types);
        let is_split = (takes(Types::INTEGER) || takes(Types::FRACTION))
            && self.tree.kind(node) == Kind::Text
            && self.trail.has(best.trail, IssueCode::ListSplit);
        if differ || is_split || self.is_word_of_two(node, outcomes) {
            return self.ambiguous(node, id);
        }
        *best
    }
}
