//! Detection of personal data and credentials that are not declared as sensitive (A21): they are replaced, too.
//!
//! A declaration comes first (see [`Redaction`](super::Redaction)); this catches what people and models put into free
//! text. It is one pass over the text, linear in its length, and it prefers to leave a text alone: if a number has a
//! check digit, the check digit decides, and numbers that are part of an id, a digest, a version, a time or a barcode
//! stay. Names of people cannot be distinguished from other words and are not searched for.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value};

mod address;
mod fold;
mod identity;
mod mail;
mod number;
mod phone;
mod scan;
mod secret;
#[cfg(test)]
mod tests;

use fold::Folded;
use scan::Span;

use super::mark::{Label, Mark};

/// Finds personal data and credentials in text.
///
/// # Example
///
/// ```
/// use countersign::redact::Detector;
///
/// let detector = Detector::new();
/// let text = detector.scrub("call 138 1234 5678 or write to li@example.com about SKU-10023");
/// assert_eq!(text, "call [phone] or write to [email] about SKU-10023");
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Detector(());

/// The kinds of data that are found; the label of the kind replaces the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A postal address.
    Address,
    /// A payment card.
    Card,
    /// An e-mail address.
    Email,
    /// A bank account.
    Iban,
    /// A number that a state gives to a person.
    Identity,
    /// A signed token.
    Jwt,
    /// A telephone.
    Phone,
    /// The private half of a key pair.
    PrivateKey,
    /// An API key, a bearer token or a password.
    Token,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::Address,
        Self::Card,
        Self::Email,
        Self::Iban,
        Self::Identity,
        Self::Jwt,
        Self::Phone,
        Self::PrivateKey,
        Self::Token,
    ];

    /// The label that replaces a value of this kind.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Address => "[address]",
            Self::Card => "[card]",
            Self::Email => "[email]",
            Self::Iban => "[iban]",
            Self::Identity => "[identity]",
            Self::Jwt => "[jwt]",
            Self::Phone => "[phone]",
            Self::PrivateKey => "[private-key]",
            Self::Token => "[token]",
        }
    }

    /// Its name, without the brackets of the label.
    pub(crate) fn name(self) -> &'static str {
        self.label().trim_matches(['[', ']'])
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

impl Detector {
    /// A detector of all kinds.
    pub const fn new() -> Self {
        Self(())
    }

    /// The text with all matches replaced by their labels; the same text if there are none.
    pub fn scrub<'t>(&self, text: &'t str) -> Cow<'t, str> {
        marked(text, &mut Label)
    }

    /// True if nothing is found.
    pub fn is_clean(&self, text: &str) -> bool {
        scan::spans(Folded::of(text).bytes()).is_empty()
    }

    /// Scrubs every text in a value, and the names of members, which are data too if a tool takes a map. A number that
    /// matches becomes its label.
    pub fn scrub_value(&self, value: &mut Value) {
        self.mark_value(value, &mut Label);
    }

    /// The same, with what stands for a value chosen by `mark`; names of members have their labels.
    pub(crate) fn mark_value(self, value: &mut Value, mark: &mut dyn Mark) {
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => {
                let found = kind_of_number(&number.to_string());
                if let Some(kind) = found {
                    *value = mark.mark(kind.name(), value).into();
                }
            }
            Value::String(text) => {
                if let Cow::Owned(clean) = marked(text, mark) {
                    *text = clean;
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.mark_value(item, mark);
                }
            }
            Value::Object(members) => self.mark_members(members, mark),
        }
    }

    fn mark_members(self, members: &mut Map<String, Value>, mark: &mut dyn Mark) {
        for (name, member) in members.iter_mut() {
            if member.is_string() && secret::is_name(name) {
                *member = mark.mark(Kind::Token.name(), member).into();
            } else {
                self.mark_value(member, mark);
            }
        }
        if members.keys().all(|name| self.is_clean(name)) {
            return;
        }
        for (name, member) in std::mem::take(members) {
            let clean = self.scrub(&name).into_owned();
            // Two names may look alike now; neither member gets lost.
            let mut free = clean.clone();
            let mut number = 1_u32;
            while members.contains_key(&free) {
                number += 1;
                free = format!("{clean}#{number}");
            }
            members.insert(free, member);
        }
    }
}

/// The text with everything that was found replaced by what `mark` chooses for it.
pub(crate) fn marked<'t>(text: &'t str, mark: &mut dyn Mark) -> Cow<'t, str> {
    let folded = Folded::of(text);
    let spans = scan::spans(folded.bytes());
    if spans.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut done = 0;
    for Span { start, end, kind } in spans {
        let (start, end) = (folded.original(start), folded.original(end));
        clean.push_str(text.get(done..start).unwrap_or_default());
        let found = text.get(start..end).unwrap_or_default();
        clean.push_str(&mark.mark(kind.name(), &found.into()));
        done = end;
    }
    clean.push_str(text.get(done..).unwrap_or_default());
    Cow::Owned(clean)
}

/// The kind of a number; only whole, positive numbers are personal.
fn kind_of_number(text: &str) -> Option<Kind> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    scan::spans(text.as_bytes()).first().map(|span| span.kind)
}
