//! Explanations of refusals: the broken rule, and what to send instead.

use countersign_contract::IssueCode;

use super::Coercer;
use super::trail::Event;
use crate::schema::{Allowed, SchemaId};
use crate::tree::{Kind, NodeId};
use crate::validate::{broken_bound, broken_text_rule, fits_kind, is_allowed, is_finite, type_of};
use crate::words::Say;

impl Coercer<'_, '_> {
    pub(super) fn explain(&mut self, node: NodeId, id: SchemaId) -> Event {
        let schema = self.schema;
        let rules = schema.rules(id);
        let kind = self.tree.kind(node);
        let span = self.tree.node(node).span;
        let event = |code| Event::new(code, span).schema(id);
        if let Some(allowed) = &rules.allowed
            && !is_allowed(self.tree, allowed, node)
        {
            let event = event(IssueCode::EnumNoMatch);
            return match kind {
                Kind::Text => self.suggest_member(event, allowed, node),
                _ => event,
            };
        }
        if !rules.types.has(type_of(self.tree, node)) {
            return event(IssueCode::TypeMismatch).came(kind.said());
        }
        let broken = match kind {
            Kind::Null | Kind::False | Kind::True => None,
            Kind::Number if !is_finite(self.tree.text(node)) => Some(Say::Number64),
            Kind::Number if !fits_kind(rules, self.tree.text(node)) => Some(Say::Integer64),
            Kind::Number => rules
                .number
                .as_ref()
                .and_then(|rules| broken_bound(rules, self.tree.text(node))),
            Kind::Text => rules
                .text
                .as_ref()
                .and_then(|rules| broken_text_rule(rules, self.tree.text(node))),
            Kind::Array => rules
                .list
                .as_ref()
                .and_then(|rules| self.validator().broken_list_rule(rules, node)),
            Kind::Object => {
                let object = rules.object.as_ref();
                object.and_then(|rules| self.validator().broken_object_rule(rules, node))
            }
        };
        event(IssueCode::Constraint).expected(broken.unwrap_or(Say::Declared))
    }

    fn suggest_member(&mut self, event: Event, allowed: &Allowed, node: NodeId) -> Event {
        let members = allowed.members.iter().map(|member| member.text.as_str());
        match self.nearest_to(self.tree.node(node).text, members) {
            Some(member) => event.suggestion(Say::DidYouMean {
                name: member.to_owned(),
            }),
            // Without a better suggestion, the allowed values are suggested, as in every refusal.
            None => event,
        }
    }
}
