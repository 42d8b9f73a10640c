//! Checks a document against the schema: unknown keys, wrong types, values out of range. All mistakes are gathered, so that a file is
//! mended in one go.

use countersign_upstream::manifest::Step;
use toml::Spanned;
use toml::de::{DeInteger, DeValue};

use crate::nearest::nearest;
use crate::schema::{self, Node};
use crate::sections::{Config, notify};
use crate::value::StoreAddress;

/// Maximum number of mistakes that are listed: more than a person mends at once.
pub(crate) const MISTAKES_MAX: usize = 50;

/// Most keys of a table that are listed in place of one that does not exist.
const ALLOWED_MAX: usize = 20;

/// The message about a key that does not exist.
const UNKNOWN: &str = "there is no such key";

/// The message about a key of the whole file that stands in a table.
const MISPLACED: &str =
    "there is no such key in this table; a key of the whole file stands above the first [table]";

/// A mistake at a place of the text.
#[derive(Debug)]
pub(crate) struct Finding {
    /// Offset in the text, in bytes.
    pub(crate) at: usize,
    pub(crate) key: String,
    pub(crate) message: String,
    pub(crate) expected: Option<String>,
    pub(crate) suggestion: Option<String>,
}

/// True if a message is about a key that does not exist.
pub(crate) fn is_unknown(message: &str) -> bool {
    [UNKNOWN, MISPLACED].contains(&message)
}

/// Gathers mistakes.
#[derive(Debug, Default)]
pub(crate) struct Findings(pub(crate) Vec<Finding>);

impl Findings {
    fn add(&mut self, at: usize, key: &str, message: &str, expected: Option<String>) {
        if self.0.len() < MISTAKES_MAX {
            self.0.push(Finding {
                at,
                key: key.to_owned(),
                message: message.to_owned(),
                expected,
                suggestion: None,
            });
        }
    }

    /// Adds a key that does not exist, with the one that was probably meant, or else with those of its table, if they are few.
    fn add_unknown(&mut self, at: usize, key: &str, node: &Node<'_>, suggestion: Option<String>) {
        let allowed: Vec<&str> = node.properties().map(|(name, _)| name).collect();
        let is_told = suggestion.is_none() && !allowed.is_empty() && allowed.len() <= ALLOWED_MAX;
        let allowed = is_told.then(|| format!("one of {}", allowed.join(", ")));
        // A key at the end of the file belongs to the table before it.
        let is_below = |top: &String| !top.contains('.') && key.ends_with(&format!(".{top}"));
        let message = if suggestion.as_ref().is_some_and(is_below) {
            MISPLACED
        } else {
            UNKNOWN
        };
        self.add(at, key, message, allowed);
        if let Some(last) = self.0.last_mut().filter(|last| last.key == key) {
            last.suggestion = suggestion;
        }
    }
}

/// Compares a value with the schema at its place.
pub(crate) fn check(
    value: &Spanned<DeValue<'_>>,
    node: &Node<'_>,
    key: &str,
    findings: &mut Findings,
) {
    let at = value.span().start;
    let value = value.get_ref();
    let types = node.types();
    let fits = types.is_empty() || types.iter().any(|name| is_of_type(value, name));
    if !fits {
        let message = format!("got {}", in_words(value));
        findings.add(at, key, &message, Some(node.form()));
        return;
    }
    // A choice between forms is left to the type itself.
    if !node.alternatives().is_empty() {
        return;
    }
    match value {
        DeValue::Table(table) if node.is_table() => {
            for (name, member) in table {
                let child_key = joined(key, name.get_ref());
                match node.property(name.get_ref()) {
                    Some(child) => check(member, &child, &child_key, findings),
                    None if node.is_closed() => {
                        let suggestion = meant(node, key, name.get_ref());
                        findings.add_unknown(name.span().start, &child_key, node, suggestion);
                    }
                    None => {
                        if let Some(child) = node.other_properties() {
                            check(member, &child, &child_key, findings);
                        }
                    }
                }
            }
            for name in node.required().filter(|name| !table.contains_key(*name)) {
                let form = node.property(name).map(|child| child.form());
                findings.add(at, &joined(key, name), "it is missing", form);
            }
        }
        DeValue::Array(items) => {
            if let Some(child) = node.items() {
                for (place, item) in items.iter().enumerate() {
                    check(item, &child, &format!("{key}[{place}]"), findings);
                }
            }
        }
        DeValue::String(text) => {
            if let Some(constants) = node.constants()
                && !constants.contains(&&**text)
            {
                findings.add(
                    at,
                    key,
                    "the value is not one of those allowed",
                    Some(node.form()),
                );
            }
        }
        DeValue::Integer(_) | DeValue::Float(_) => {
            let number = match value {
                DeValue::Integer(number) => integer(number).map(approximate),
                DeValue::Float(number) => number.as_str().parse().ok(),
                _ => None,
            };
            if !is_in_range(node, number) {
                findings.add(at, key, "it is out of range", Some(node.form()));
            }
        }
        DeValue::Boolean(_) | DeValue::Datetime(_) | DeValue::Table(_) => {}
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "no bound of a setting is near the numbers that lose digits"
)]
fn approximate(number: i128) -> f64 {
    number as f64
}

/// True if a number is within the bounds of its setting.
pub(crate) fn is_in_range(node: &Node<'_>, number: Option<f64>) -> bool {
    let (min, max) = node.bounds();
    number.is_some_and(|number| {
        min.is_none_or(|min| number >= min) && max.is_none_or(|max| number <= max)
    })
}

/// The number, where it is one that any setting may have.
pub(crate) fn integer(number: &DeInteger<'_>) -> Option<i128> {
    i128::from_str_radix(number.as_str(), number.radix()).ok()
}

/// Checks the rules that the types cannot express. Each broken rule has its key, a message, and what to write instead.
pub(crate) fn rules(config: &Config) -> Vec<(String, &'static str, &'static str)> {
    let mut broken = notify::rules(&config.notify);
    let store = &config.store;
    if store.url.as_ref().is_some_and(StoreAddress::holds_password) {
        broken.push((
            "store.url".to_owned(),
            "the address has a password in it",
            "the address without it, or the place of the whole address: \"env:NAME\" or \"file:PATH\"",
        ));
    }
    if store.postgres.connections_max < store.postgres.lanes + 2 {
        broken.push((
            "store.postgres.connections_max".to_owned(),
            "there are too few connections",
            "at least two more than store.postgres.lanes",
        ));
    }
    broken
}

/// The key that was meant: one of the same table, or the same name in another.
fn meant(node: &Node<'_>, table: &str, name: &str) -> Option<String> {
    let mut known: Vec<&str> = node.properties().map(|(name, _)| name).collect();
    known.sort_unstable();
    if let Some(near) = nearest(name, known) {
        return Some(joined(table, near));
    }
    let elsewhere = |setting: &&schema::Setting| setting.key.rsplit('.').next() == Some(name);
    schema::settings()
        .find(elsewhere)
        .map(|setting| setting.key.clone())
}

/// The key at the end of these steps.
pub(crate) fn key_of(steps: &[Step]) -> String {
    let mut key = String::new();
    for step in steps {
        key = match step {
            Step::Key(name) => joined(&key, name),
            Step::Item(place) => format!("{key}[{place}]"),
        };
    }
    key
}

pub(crate) fn joined(table: &str, name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let name = if !name.is_empty() && name.chars().all(is_bare) {
        name.to_owned()
    } else {
        format!("{name:?}")
    };
    if table.is_empty() {
        name
    } else {
        format!("{table}.{name}")
    }
}

fn is_of_type(value: &DeValue<'_>, name: &str) -> bool {
    match value {
        DeValue::String(_) | DeValue::Datetime(_) => name == "string",
        DeValue::Integer(_) => name == "integer" || name == "number",
        DeValue::Float(_) => name == "number",
        DeValue::Boolean(_) => name == "boolean",
        DeValue::Array(_) => name == "array",
        DeValue::Table(_) => name == "object",
    }
}

fn in_words(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(true) => "true",
        DeValue::Boolean(false) => "false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
