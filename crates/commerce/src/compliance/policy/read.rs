//! Converts the rules from their written form to the used one. Every unresolved reference is refused here, with the
//! name of its rule.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;
use serde_json::Value;

use super::condition::{Condition, Scalar, Test};
use super::contradiction::contradiction;
use super::country::Groups;
use super::fact::{Fact, Kind, number, spelled};
use super::written::{AttributeKind, Operator, Written, WrittenCondition, WrittenRule};
use super::{Policy, Rule, is_at_or_below};

impl TryFrom<Written> for Policy {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let countries = each_once(&written.countries, "country", is_country)?;
        let categories = each_once(&written.categories, "category", is_category)?;
        let certificates = written.certificates.keys().map(|name| spelled(name));
        let reader = Reader {
            groups: Groups::resolve(&countries, &written.groups)?,
            categories: &categories,
            certificates: certificates.collect(),
            attributes: &written.attributes,
            families: &written.families,
        };
        for (name, members) in &written.families {
            let checked = members
                .iter()
                .try_for_each(|member| reader.check_category(member));
            checked.map_err(|problem| format!("the family {name}: {problem}"))?;
        }
        let mut rules: Vec<Rule> = Vec::with_capacity(written.rules.len());
        for rule in &written.rules {
            let is_known = rules.iter().any(|known| known.id == rule.id);
            let read = reader.rule(rule);
            let read = if is_known {
                Err("there is another one of this name".to_owned())
            } else {
                read
            };
            rules.push(read.map_err(|problem| format!("the rule {}: {problem}", rule.id))?);
        }
        Ok(Self {
            label: written.label,
            date: written.date,
            title: written.title,
            notice: written.notice,
            groups: written.groups.len(),
            rules,
            countries,
            categories,
        })
    }
}

struct Reader<'a> {
    groups: Groups<'a>,
    categories: &'a BTreeSet<String>,
    certificates: BTreeSet<String>,
    attributes: &'a BTreeMap<String, AttributeKind>,
    families: &'a BTreeMap<String, Vec<String>>,
}

impl Reader<'_> {
    fn rule(&self, written: &WrittenRule) -> Result<Rule, String> {
        let mut categories = Vec::new();
        for name in &written.categories {
            if let Some(family) = self.families.get(name) {
                categories.extend(family.iter().cloned());
            } else {
                self.check_category(name)?;
                categories.push(name.clone());
            }
        }
        if written.source.is_empty() || written.date.is_empty() {
            return Err("it needs a source and its date".to_owned());
        }
        let read = |condition: &Option<WrittenCondition>| {
            let condition = condition.as_ref();
            condition.map(|part| self.condition(part)).transpose()
        };
        let when = read(&written.when)?;
        let requires = read(&written.requires)?;
        let exceptions = written.exceptions.iter();
        let exceptions: Vec<Condition> = exceptions
            .map(|part| self.condition(part))
            .collect::<Result<_, _>>()?;
        check_can_speak(when.as_ref(), requires.as_ref(), &exceptions)?;
        Ok(Rule {
            id: written.id.clone(),
            categories,
            destinations: self.groups.countries(
                &written.destinations,
                &written.except_destinations,
                "destinations",
            )?,
            when,
            requires,
            exceptions,
            severity: written.severity,
            message: written.message.clone(),
            mitigations: written.mitigations.clone(),
            source: written.source.clone(),
            date: written.date.clone(),
        })
    }

    /// Refuses a category that matches nothing: its rule would never apply.
    fn check_category(&self, category: &str) -> Result<(), String> {
        let mut known = self.categories.iter();
        if known.any(|known| is_at_or_below(known, category)) {
            return Ok(());
        }
        Err(format!("no category is {category:?} or below it"))
    }

    fn condition(&self, written: &WrittenCondition) -> Result<Condition, String> {
        let WrittenCondition {
            all,
            any,
            not,
            fact,
            op,
            value,
        } = written;
        let read_all = |parts: &[WrittenCondition]| {
            if parts.is_empty() {
                return Err("an empty all or any says nothing".to_owned());
            }
            parts.iter().map(|part| self.condition(part)).collect()
        };
        match (all, any, not, fact, op) {
            (Some(parts), None, None, None, None) => read_all(parts).map(Condition::All),
            (None, Some(parts), None, None, None) => read_all(parts).map(Condition::Any),
            (None, None, Some(part), None, None) => {
                Ok(Condition::Not(Box::new(self.condition(part)?)))
            }
            (None, None, None, None, Some(Operator::HasCertificate)) => {
                self.certificate(value.as_ref()).map(Condition::Certificate)
            }
            (None, None, None, Some(name), Some(op)) => {
                let fact = self.fact(name)?;
                let test = self.test(&fact, *op, value.as_ref());
                let test = test.map_err(|problem| format!("{name}: {problem}"))?;
                Ok(Condition::Test { fact, test })
            }
            _ => Err("a condition is one of all, any, not, or a fact with an op".to_owned()),
        }
    }

    fn fact(&self, name: &str) -> Result<Fact, String> {
        if let Some(attribute) = name.strip_prefix("attributes.") {
            let kind = self.attributes.get(attribute);
            return kind
                .map(|kind| Fact::Attribute(attribute.to_owned(), *kind))
                .ok_or_else(|| format!("the attribute {attribute:?} is not declared"));
        }
        Fact::named(name).ok_or_else(|| format!("there is no fact {name:?}"))
    }

    fn test(&self, fact: &Fact, op: Operator, value: Option<&Value>) -> Result<Test, String> {
        let kind = fact.kind();
        match op {
            Operator::Eq => self.scalar(kind, value).map(Test::Eq),
            Operator::Ne => self.scalar(kind, value).map(Test::Ne),
            Operator::In => self.scalars(kind, value).map(Test::In),
            Operator::NotIn => self.scalars(kind, value).map(Test::NotIn),
            Operator::Exists | Operator::Missing if value.is_some() => {
                Err("exists and missing take no value".to_owned())
            }
            Operator::Exists => Ok(Test::Exists),
            Operator::Missing => Ok(Test::Missing),
            Operator::Gt => bound(kind, value).map(Test::Gt),
            Operator::Gte => bound(kind, value).map(Test::Gte),
            Operator::Lt => bound(kind, value).map(Test::Lt),
            Operator::Lte => bound(kind, value).map(Test::Lte),
            Operator::Contains => text(kind, value).map(Test::Contains),
            Operator::StartsWith => text(kind, value).map(Test::StartsWith),
            Operator::HasCertificate => Err("has_certificate takes no fact".to_owned()),
            Operator::InGroup if kind != Kind::Country => {
                Err("in_group is about a country".to_owned())
            }
            Operator::InGroup => {
                let names: Vec<String> = list(value)
                    .iter()
                    .filter_map(|name| name.as_str().map(str::to_owned))
                    .collect();
                self.groups
                    .countries(&names, &[], "in_group")
                    .map(Test::InGroup)
            }
        }
    }

    fn certificate(&self, value: Option<&Value>) -> Result<String, String> {
        let name = value.and_then(Value::as_str).map(spelled);
        let name = name.ok_or("has_certificate needs the name of one")?;
        if self.certificates.contains(&name) {
            return Ok(name);
        }
        Err(format!("the certificate {name:?} is not declared"))
    }

    fn scalar(&self, kind: Kind, value: Option<&Value>) -> Result<Scalar, String> {
        let scalar = match (kind, value) {
            (Kind::Text, Some(Value::String(text))) => Some(Scalar::Text(text.clone())),
            (Kind::Country, Some(Value::String(country))) => {
                self.groups
                    .countries(std::slice::from_ref(country), &[], "the value")?;
                if !is_country(country) {
                    return Err(format!("{country} is a group: use in_group"));
                }
                Some(Scalar::Text(country.clone()))
            }
            (Kind::Number, Some(value)) => number(value).map(Scalar::Number),
            (Kind::Flag, Some(Value::Bool(flag))) => Some(Scalar::Flag(*flag)),
            (Kind::Text | Kind::Country | Kind::Number | Kind::Flag, _) => None,
        };
        scalar.ok_or_else(|| "the value does not fit the fact".to_owned())
    }

    fn scalars(&self, kind: Kind, value: Option<&Value>) -> Result<Vec<Scalar>, String> {
        let values = list(value);
        if values.is_empty() {
            return Err("an empty list says nothing".to_owned());
        }
        let values = values.iter();
        values.map(|value| self.scalar(kind, Some(value))).collect()
    }
}

/// Refuses a rule that can never have a finding.
fn check_can_speak(
    when: Option<&Condition>,
    requires: Option<&Condition>,
    exceptions: &[Condition],
) -> Result<(), String> {
    let mut parts: Vec<Condition> = when.into_iter().cloned().collect();
    if let Some(requires) = requires {
        if let Some(reason) = contradiction(requires) {
            return Err(format!("what it requires cannot be given: {reason}"));
        }
        parts.push(Condition::Not(Box::new(requires.clone())));
    }
    for exception in exceptions {
        if let Some(reason) = contradiction(exception) {
            return Err(format!("an exception can never hold: {reason}"));
        }
        parts.push(Condition::Not(Box::new(exception.clone())));
    }
    match contradiction(&Condition::All(parts)) {
        Some(reason) => Err(format!("it can never say anything: {reason}")),
        None => Ok(()),
    }
}

fn bound(kind: Kind, value: Option<&Value>) -> Result<Decimal, String> {
    let bound = value.and_then(number).filter(|_| kind == Kind::Number);
    bound.ok_or_else(|| "this operator compares numbers".to_owned())
}

fn text(kind: Kind, value: Option<&Value>) -> Result<String, String> {
    let is_text = matches!(kind, Kind::Text | Kind::Country);
    let text = value
        .and_then(Value::as_str)
        .filter(|text| is_text && !text.is_empty());
    text.map(str::to_owned)
        .ok_or_else(|| "this operator compares texts".to_owned())
}

/// The items of a list; a single value counts as a list of one.
fn list(value: Option<&Value>) -> &[Value] {
    match value {
        Some(Value::Array(values)) => values,
        Some(value) => std::slice::from_ref(value),
        None => &[],
    }
}

fn each_once(
    names: &[String],
    what: &str,
    is_one: fn(&str) -> bool,
) -> Result<BTreeSet<String>, String> {
    let mut set = BTreeSet::new();
    for name in names {
        if !is_one(name) {
            return Err(format!("{name:?} is not a {what}"));
        }
        if !set.insert(name.clone()) {
            return Err(format!("the {what} {name:?} is there twice"));
        }
    }
    Ok(set)
}

fn is_country(name: &str) -> bool {
    name.len() == 2 && name.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// True for words of lower-case letters, digits and `_`, with `/` between them.
fn is_category(name: &str) -> bool {
    name.split('/').all(|word| {
        let is_letter =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        !word.is_empty() && word.bytes().all(is_letter)
    })
}
