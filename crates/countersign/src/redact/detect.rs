//! The second net: what looks like personal data or a credential is replaced although nobody declared it
//! sensitive (A21).
//!
//! A declaration comes first (see [`Redaction`](super::Redaction)); this one catches what people and models
//! put into free text. It is one pass over the text, linear in its length, and it prefers to leave a text
//! alone: where a number has a check digit the check digit decides, and numbers that are part of an id, a
//! digest, a version, a time or a barcode stay. Names of people cannot be told from other words and are not
//! looked for.

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

/// What was found; its label stands where it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Where somebody lives, or has mail sent to.
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

    /// What stands for a value of this kind.
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
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

impl Detector {
    /// All kinds are looked for.
    pub const fn new() -> Self {
        Self(())
    }

    /// The text with everything that was found replaced by its label; the same text where nothing was.
    pub fn scrub<'t>(&self, text: &'t str) -> Cow<'t, str> {
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
            clean.push_str(kind.label());
            done = end;
        }
        clean.push_str(text.get(done..).unwrap_or_default());
        Cow::Owned(clean)
    }

    /// Whether nothing is found.
    pub fn is_clean(&self, text: &str) -> bool {
        scan::spans(Folded::of(text).bytes()).is_empty()
    }

    /// Scrubs every text in a value, and the names of members, which are data too where a tool takes a map.
    /// A number that is found becomes its label.
    pub fn scrub_value(&self, value: &mut Value) {
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => {
                let found = kind_of_number(&number.to_string());
                if let Some(kind) = found {
                    *value = kind.label().into();
                }
            }
            Value::String(text) => {
                if let Cow::Owned(clean) = self.scrub(text) {
                    *text = clean;
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.scrub_value(item);
                }
            }
            Value::Object(members) => self.scrub_members(members),
        }
    }

    fn scrub_members(self, members: &mut Map<String, Value>) {
        for (name, member) in members.iter_mut() {
            if member.is_string() && secret::is_name(name) {
                *member = Kind::Token.label().into();
            } else {
                self.scrub_value(member);
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

/// Only whole, positive numbers are given to people.
fn kind_of_number(text: &str) -> Option<Kind> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    scan::spans(text.as_bytes()).first().map(|span| span.kind)
}
