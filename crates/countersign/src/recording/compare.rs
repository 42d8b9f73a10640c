//! A call beside a recorded one, argument by argument.

use countersign_contract::Digest;
use countersign_contract::recording::{Piece, pieces};
use serde_json::Value;

use super::bindings::{Bindings, New};
use super::digests::{Digests, has_label, is_label};
use super::mask::Masker;
use crate::replay::Difference;

/// Maximum number of differences of one call that are listed.
pub(super) const DIFFERENCES_MAX: usize = 20;

/// A call that is being matched.
pub(super) struct Sent {
    /// Arguments as they were sent.
    pub(super) plain: Value,
    /// The same with its sensitive values replaced.
    pub(super) masked: Value,
    /// The values that were replaced.
    pub(super) values: Masker,
    /// Digest of the arguments, if the digests of the recording are there.
    pub(super) whole: Option<Digest>,
}

/// Compares one call with one recorded call.
pub(super) struct Comparison<'a> {
    sent: &'a Sent,
    known: &'a Bindings,
    /// Digests of the recorded values; without them a placeholder is matched by its kind.
    digests: Option<&'a Digests>,
    pub(super) new: New,
    pub(super) differences: Vec<Difference>,
    /// Arguments that were matched by the kind of their values only.
    pub(super) by_kind: Vec<String>,
}

impl<'a> Comparison<'a> {
    /// Compares all arguments. Where nothing differs, `new` is what the match has found out.
    pub(super) fn of(
        recorded: &Value,
        sent: &'a Sent,
        known: &'a Bindings,
        digests: Option<&'a Digests>,
    ) -> Self {
        let mut comparison = Self {
            sent,
            known,
            digests,
            new: New::default(),
            differences: Vec::new(),
            by_kind: Vec::new(),
        };
        let (plain, masked) = (&sent.plain, &sent.masked);
        comparison.node(recorded, Some(plain), masked, String::new());
        comparison
    }

    pub(super) fn is_match(&self) -> bool {
        self.differences.is_empty()
    }

    /// `plain` is `None` if the name of a member was replaced, so that its value is unknown.
    fn node(&mut self, recorded: &Value, plain: Option<&Value>, masked: &Value, path: String) {
        if plain == Some(recorded) {
            return;
        }
        if recorded == masked {
            if has_label(recorded) {
                self.matched_by_kind(path);
            }
            return;
        }
        match (recorded, masked) {
            (Value::Object(old), Value::Object(new)) => {
                let added = new.keys().filter(|name| !old.contains_key(*name));
                for name in old.keys().chain(added) {
                    let part = name.replace('~', "~0").replace('/', "~1");
                    let path = format!("{path}/{part}");
                    let plain = plain.and_then(|plain| plain.get(name));
                    if is_label(name) && plain.is_none() {
                        self.matched_by_kind(path.clone());
                    }
                    self.member(old.get(name), plain, new.get(name), path);
                }
            }
            (Value::Array(old), Value::Array(new)) => {
                for at in 0..old.len().max(new.len()) {
                    let plain = plain.and_then(|plain| plain.get(at));
                    self.member(old.get(at), plain, new.get(at), format!("{path}/{at}"));
                }
            }
            (Value::String(old), Value::String(new)) if self.is_same_text(old, new) => {
                self.matched_by_kind(path);
            }
            (recorded, masked) => {
                let sent = plain.unwrap_or(masked);
                self.differs(path, Some(recorded), Some(sent));
            }
        }
    }

    fn member(
        &mut self,
        recorded: Option<&Value>,
        plain: Option<&Value>,
        masked: Option<&Value>,
        path: String,
    ) {
        match (recorded, masked) {
            (Some(recorded), Some(masked)) => self.node(recorded, plain, masked, path),
            (recorded, masked) => self.differs(path, recorded, plain.or(masked)),
        }
    }

    fn matched_by_kind(&mut self, path: String) {
        if self.digests.is_none() {
            self.by_kind.push(path);
        }
    }

    fn differs(&mut self, path: String, recorded: Option<&Value>, sent: Option<&Value>) {
        if self.differences.len() < DIFFERENCES_MAX {
            self.differences.push(Difference {
                path,
                recorded: recorded.cloned(),
                computed: sent.cloned(),
            });
        }
    }

    /// Returns true if two texts are the same but for their placeholders, and these can stand for the values that were sent.
    fn is_same_text(&mut self, recorded: &str, masked: &str) -> bool {
        let old = pieces(recorded, '[', ']');
        let new = self.sent.values.pieces(masked);
        if old.len() != new.len() {
            return false;
        }
        old.iter().zip(&new).all(|pair| match pair {
            (Piece::Text(old), Piece::Text(new)) => old == new,
            (
                Piece::Placeholder { kind, number },
                Piece::Placeholder {
                    kind: sent_kind,
                    number: sent_number,
                },
            ) => {
                let value = self.sent.values.value(sent_kind, *sent_number);
                kind == sent_kind
                    && value.is_some_and(|value| {
                        let digests = self.digests;
                        digests.is_none_or(|own| own.fits(kind, *number, value))
                            && self.known.accepts(&mut self.new, kind, *number, value)
                    })
            }
            (Piece::Text(_), Piece::Placeholder { .. })
            | (Piece::Placeholder { .. }, Piece::Text(_)) => false,
        })
    }
}
