//! Validation: checks that a schema accepts a value as it is. Nothing is changed here.
//!
//! The recursion goes down the tree, whose depth is bounded by [`Limits`](crate::Limits), and
//! through schemas that apply to the same value, whose cycles are refused when a schema is prepared.

use std::cell::RefCell;
use std::collections::HashMap;

use countersign_contract::ValueKind;

use crate::number::{Decimal, is_whole};
use crate::schema::{
    Additional, Allowed, ListRules, NumberRules, ObjectRules, Rules, Schema, SchemaId, TextRules,
    Types,
};
use crate::tree::{Kind, NONE, NodeId, Tree};
use crate::words::Say;

/// Cached results for schemas with branches: without them, nested branches would take time exponential in their
/// depth. It is empty, and so free, for all other schemas.
#[derive(Debug, Default)]
pub(crate) struct Memo(RefCell<HashMap<(NodeId, SchemaId, bool), bool>>);

/// A tree and the schema it is checked against.
#[derive(Clone, Copy)]
pub(crate) struct Validator<'v, 'r> {
    pub(crate) tree: &'v Tree<'r>,
    pub(crate) schema: &'v Schema,
    pub(crate) memo: &'v Memo,
    /// True if an undeclared member is accepted when the schema does not mention it.
    pub(crate) keeps_unknown: bool,
    /// True if `3.0` is an integer, as in JSON Schema. A call must spell it `3`; schemas that only test (`not`,
    /// `if`, `contains`) compare by value.
    pub(crate) by_value: bool,
}

impl Validator<'_, '_> {
    /// True if the schema accepts the value.
    pub(crate) fn accepts(self, node: NodeId, id: SchemaId) -> bool {
        let rules = self.schema.rules(id);
        if !rules.is_composed() {
            return self.accepts_own(rules, node);
        }
        if let Some(answer) = self.memo.0.borrow().get(&(node, id, self.by_value)) {
            return *answer;
        }
        let answer = self.accepts_own(rules, node) && self.accepts_parts(rules, node);
        self.memo
            .0
            .borrow_mut()
            .insert((node, id, self.by_value), answer);
        answer
    }

    /// True if these rules accept the value, without the other schemas that apply to it.
    pub(crate) fn accepts_own(self, rules: &Rules, node: NodeId) -> bool {
        let tree = self.tree;
        let own = type_of(tree, node);
        let typed =
            rules.types.has(own) || (self.by_value && is_integral(tree, rules.types, own, node));
        if !typed {
            return false;
        }
        if let Some(allowed) = &rules.allowed
            && !is_allowed(tree, allowed, node)
        {
            return false;
        }
        match tree.kind(node) {
            Kind::Null | Kind::False | Kind::True => true,
            Kind::Number => {
                let json = tree.text(node);
                is_finite(json)
                    && fits_kind(rules, json)
                    && rules.number.as_ref().is_none_or(|rules| {
                        rules.surely_accept(json) || broken_bound(rules, json).is_none()
                    })
            }
            Kind::Text => {
                let text = tree.text(node);
                rules
                    .text
                    .as_ref()
                    .is_none_or(|rules| broken_text_rule(rules, text).is_none())
            }
            Kind::Array => rules
                .list
                .as_ref()
                .is_none_or(|list| self.accepts_list(list, node)),
            Kind::Object => rules
                .object
                .as_ref()
                .is_none_or(|object| self.accepts_object(object, node)),
        }
    }

    fn accepts_list(self, rules: &ListRules, node: NodeId) -> bool {
        self.broken_list_rule(rules, node).is_none()
            && self
                .tree
                .children(node)
                .enumerate()
                .all(|(i, item)| rules.item(i).is_none_or(|id| self.accepts(item, id)))
    }

    /// Returns the rule about a list as a whole that it breaks.
    pub(crate) fn broken_list_rule(self, rules: &ListRules, node: NodeId) -> Option<Say> {
        let count = self.tree.node(node).count as usize;
        if count < rules.min_items {
            return Some(Say::ItemsAtLeast {
                count: rules.min_items.to_string(),
            });
        }
        if let Some(max) = rules.max_items.filter(|max| count > *max) {
            return Some(Say::ItemsAtMost {
                count: max.to_string(),
            });
        }
        if rules.unique && has_equal_items(self.tree, node) {
            return Some(Say::NoItemTwice);
        }
        if let Some(contains) = &rules.contains {
            let hits = self
                .tree
                .children(node)
                .filter(|item| self.tests(*item, contains.schema))
                .count();
            if hits < contains.min {
                return Some(Say::FittingAtLeast {
                    count: contains.min.to_string(),
                });
            }
            if let Some(max) = contains.max.filter(|max| hits > *max) {
                return Some(Say::FittingAtMost {
                    count: max.to_string(),
                });
            }
        }
        None
    }

    fn accepts_object(self, rules: &ObjectRules, node: NodeId) -> bool {
        let mut missing = rules.required_count;
        let mut hint = 0;
        let mut present = None;
        let mut child = self.tree.node(node).first;
        while child != NONE {
            let member = self.tree.node(child);
            let name = self.tree.str(member.key);
            if let Some((at, property)) = rules
                .position(name, hint)
                .and_then(|at| Some((at, rules.properties.get(at)?)))
            {
                hint = at + 1;
                if !self.accepts(child, property.schema) {
                    return false;
                }
                // Keys are unique here: an object with duplicates is refused before.
                missing = missing.saturating_sub(usize::from(property.required));
                if !rules.patterns.is_empty() && !self.accepts_patterns(rules, child) {
                    return false;
                }
            } else if !self.accepts_undeclared(rules, (node, &mut present), child) {
                return false;
            }
            child = member.next;
        }
        missing == 0 && self.broken_object_rule(rules, node).is_none()
    }

    fn accepts_patterns(self, rules: &ObjectRules, child: NodeId) -> bool {
        let name = self.tree.key(child);
        rules
            .patterns
            .iter()
            .filter(|(pattern, _)| pattern.regex.is_match(name))
            .all(|(_, id)| self.accepts(child, *id))
    }

    /// True if a member that is not a declared property is accepted. `present` is filled in where it is needed, once for
    /// all members: an object may have thousands.
    fn accepts_undeclared(
        self,
        rules: &ObjectRules,
        (node, present): (NodeId, &mut Option<Vec<bool>>),
        child: NodeId,
    ) -> bool {
        if !self.accepts_patterns(rules, child) {
            return false;
        }
        let name = self.tree.key(child);
        if rules.knows(name) {
            return true;
        }
        match rules.additional {
            Additional::Welcome | Additional::Elsewhere => true,
            // Another spelling of a declared name that is absent is taken for that name.
            Additional::Unexpected => {
                self.keeps_unknown
                    && rules.respelt(name).is_none_or(|(property, _)| {
                        let present = present.get_or_insert_with(|| self.present(rules, node));
                        let at = rules.position(&property.name, 0);
                        at.is_some_and(|at| present.get(at).copied().unwrap_or_default())
                    })
            }
            Additional::Refused | Additional::Unevaluated => false,
            Additional::Typed(id) => self.accepts(child, id),
        }
    }

    /// Returns for each declared property whether the object has it.
    fn present(self, rules: &ObjectRules, node: NodeId) -> Vec<bool> {
        let mut present = vec![false; rules.properties.len()];
        for child in self.tree.children(node) {
            let at = rules.position(self.tree.key(child), 0);
            if let Some(found) = at.and_then(|at| present.get_mut(at)) {
                *found = true;
            }
        }
        present
    }

    /// Returns the rule about an object as a whole that it breaks; members are checked elsewhere.
    pub(crate) fn broken_object_rule(self, rules: &ObjectRules, node: NodeId) -> Option<Say> {
        let count = self.tree.node(node).count as usize;
        if count < rules.min_members {
            return Some(Say::MembersAtLeast {
                count: rules.min_members.to_string(),
            });
        }
        if let Some(max) = rules.max_members.filter(|max| count > *max) {
            return Some(Say::MembersAtMost {
                count: max.to_string(),
            });
        }
        let has = |name: &str| self.tree.member(node, name).is_some();
        if let Some(name) = rules.also_required.iter().find(|name| !has(name)) {
            return Some(Say::Member { name: name.clone() });
        }
        for (name, needs) in &rules.dependent_required {
            if has(name)
                && let Some(missing) = needs.iter().find(|need| !has(need))
            {
                return Some(Say::MemberBeside {
                    missing: missing.clone(),
                    name: name.clone(),
                });
            }
        }
        for (name, id) in &rules.dependent_schemas {
            if has(name) && !self.accepts(node, *id) {
                return Some(Say::DeclaredBeside { name: name.clone() });
            }
        }
        if let Some(names) = rules.names {
            let names = self.schema.rules(names);
            if let Some(child) = self
                .tree
                .children(node)
                .find(|child| !fits_name(names, self.tree.key(*child)))
            {
                return Some(Say::OtherName {
                    name: self.tree.key(child).to_owned(),
                });
            }
        }
        None
    }

    /// True if a schema that only tests accepts the value.
    fn tests(self, node: NodeId, id: SchemaId) -> bool {
        Self {
            by_value: true,
            ..self
        }
        .accepts(node, id)
    }

    /// True if the schemas that apply to the same value accept it.
    fn accepts_parts(self, rules: &Rules, node: NodeId) -> bool {
        let fits = |id: &SchemaId| self.accepts(node, *id);
        let Some(rules) = &rules.composed else {
            return true;
        };
        if !rules.all_of.iter().all(fits) {
            return false;
        }
        if !rules.any_of.is_empty() && !rules.any_of.iter().any(fits) {
            return false;
        }
        let exactly_one = || rules.one_of.iter().filter(|id| fits(id)).take(2).count() == 1;
        if !rules.one_of.is_empty() && !exactly_one() {
            return false;
        }
        if rules.not.as_ref().is_some_and(|id| self.tests(node, *id)) {
            return false;
        }
        match &rules.condition {
            Some(condition) if self.tests(node, condition.test) => {
                condition.then.as_ref().is_none_or(fits)
            }
            Some(condition) => condition.otherwise.as_ref().is_none_or(fits),
            None => true,
        }
    }
}

/// True if integers are wanted and a number spelt with a fraction or an exponent is integral.
fn is_integral(tree: &Tree<'_>, wanted: Types, own: Types, node: NodeId) -> bool {
    own == Types::FRACTION
        && wanted.has(Types::INTEGER)
        && Decimal::parse(tree.text(node)).is_some_and(|number| number.to_integer(400).is_some())
}

/// True if `propertyNames` accepts a name.
fn fits_name(rules: &Rules, name: &str) -> bool {
    rules.types.has(Types::TEXT)
        && rules
            .text
            .as_ref()
            .is_none_or(|text| broken_text_rule(text, name).is_none())
        && rules
            .allowed
            .as_ref()
            .is_none_or(|a| a.members.iter().any(|m| m.text == name))
}

/// True if a 64-bit float can hold the number; it is only parsed if it has an exponent or very many digits.
pub(crate) fn is_finite(json: &str) -> bool {
    let large = json.len() > 300 || memchr::memchr2(b'e', b'E', json.as_bytes()).is_some();
    !large || Decimal::is_finite(json)
}

/// True if an integer fits the 64 bits of its kind. A bound beyond them says that larger ones are meant.
pub(crate) fn fits_kind(rules: &Rules, integer: &str) -> bool {
    // Up to 18 digits always fit.
    rules.kind != Some(ValueKind::Integer)
        || integer.len() <= 18
        || integer.parse::<i64>().is_ok()
        || rules
            .number
            .as_deref()
            .is_some_and(NumberRules::goes_beyond_64_bits)
}

fn has_equal_items(tree: &Tree<'_>, node: NodeId) -> bool {
    let mut seen = std::collections::HashSet::new();
    tree.children(node).any(|item| {
        let mut json = String::new();
        crate::render::comparable(tree, item, &mut json);
        !seen.insert(json)
    })
}

/// Returns the type of a value; numbers by their spelling.
pub(crate) fn type_of(tree: &Tree<'_>, node: NodeId) -> Types {
    match tree.kind(node) {
        Kind::Null => Types::NULL,
        Kind::False | Kind::True => Types::BOOLEAN,
        Kind::Number if is_whole(tree.text(node)) => Types::INTEGER,
        Kind::Number => Types::FRACTION,
        Kind::Text => Types::TEXT,
        Kind::Array => Types::ARRAY,
        Kind::Object => Types::OBJECT,
    }
}

/// True if the value is one of the allowed ones.
pub(crate) fn is_allowed(tree: &Tree<'_>, allowed: &Allowed, node: NodeId) -> bool {
    let kind = tree.kind(node);
    match kind {
        Kind::Null | Kind::False | Kind::True => {
            allowed.members.iter().any(|member| member.kind == kind)
        }
        Kind::Text => {
            let text = tree.text(node);
            allowed
                .members
                .iter()
                .any(|member| member.kind == kind && member.text == text)
        }
        Kind::Number => {
            let number = Decimal::parse(tree.text(node));
            number.is_some() && allowed.members.iter().any(|member| member.number == number)
        }
        Kind::Array | Kind::Object => {
            let mut json = String::new();
            crate::render::comparable(tree, node, &mut json);
            allowed
                .members
                .iter()
                .any(|member| member.json.as_ref() == Some(&json))
        }
    }
}

/// Returns the bound that a number breaks.
pub(crate) fn broken_bound(rules: &NumberRules, json: &str) -> Option<Say> {
    let Some(number) = Decimal::parse(json) else {
        return Some(Say::SmallerExponent);
    };
    match rules {
        NumberRules {
            minimum: Some(bound),
            ..
        } if number < *bound => Some(Say::AtLeast {
            bound: bound.to_string(),
        }),
        NumberRules {
            maximum: Some(bound),
            ..
        } if number > *bound => Some(Say::AtMost {
            bound: bound.to_string(),
        }),
        NumberRules {
            exclusive_minimum: Some(bound),
            ..
        } if number <= *bound => Some(Say::Above {
            bound: bound.to_string(),
        }),
        NumberRules {
            exclusive_maximum: Some(bound),
            ..
        } if number >= *bound => Some(Say::Below {
            bound: bound.to_string(),
        }),
        NumberRules {
            multiple_of: Some(step),
            ..
        } if !number.is_multiple_of(step) => Some(Say::MultipleOf {
            step: step.to_string(),
        }),
        _ => None,
    }
}

/// Returns the rule that a string breaks.
pub(crate) fn broken_text_rule(rules: &TextRules, text: &str) -> Option<Say> {
    if rules.min_length.is_some() || rules.max_length.is_some() {
        let length = text.chars().count();
        if let Some(min) = rules.min_length.filter(|min| length < *min) {
            return Some(Say::CharactersAtLeast {
                count: min.to_string(),
            });
        }
        if let Some(max) = rules.max_length.filter(|max| length > *max) {
            return Some(Say::CharactersAtMost {
                count: max.to_string(),
            });
        }
    }
    if let Some(pattern) = rules.pattern.as_ref().filter(|p| !p.regex.is_match(text)) {
        return Some(Say::Matching {
            pattern: pattern.source.clone(),
        });
    }
    match rules.format {
        Some(format) if format.is_binding() && !format.matches(text) => Some(format.expected()),
        _ => None,
    }
}
