//! Digests of masked arguments, with which a masked recording matches the recorded values only.
//!
//! They are kept apart from the recording, which has nothing that a value could be computed from. A digest does not show its value, and the
//! salt keeps tables of digests useless. But a value of a small set, such as a telephone number, is found by trying the whole set. So the
//! digests are for those who may know the values, and a recording is given away without them.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_contract::Digest;
use countersign_contract::recording::Piece;
use countersign_evidence::seal::commit;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::mask::{Masker, text_of};

/// The version of the format that is written and read.
const VERSION: u32 = 1;

/// Domain of the digest of a masked value.
const OF_VALUE: &str = "masked_value";

/// Domain of the digest of a call's masked arguments.
const OF_CALL: &str = "masked_call";

/// Digests of the masked arguments of one recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digests {
    salt: [u8; 32],
    /// Digests of values by placeholder, such as `email:1`.
    values: BTreeMap<String, Digest>,
    /// Digests of the whole arguments of calls in which the name of a member was masked, by their order: a name has no number.
    calls: BTreeMap<u64, Digest>,
}

/// The text of the digests is not usable.
#[derive(Debug, thiserror::Error)]
pub enum DigestsError {
    /// It is no JSON, or has other members. Usually the file was edited by hand, or is another one.
    #[error("it has no digests of masked arguments: {0}")]
    Shape(#[from] serde_json::Error),
    /// The version is not known. Usually the file is from a newer version.
    #[error("version {0} of the format is not known; {VERSION} is read")]
    Version(u32),
    /// The salt is no 32 bytes. Usually the file was edited by hand.
    #[error("its salt is not 32 bytes in base64")]
    Salt,
    /// The digests are of another recording. Usually only one of the two files was copied.
    #[error("it belongs to another recording, with the digest {0}")]
    OtherRecording(Digest),
}

/// One line of JSON.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    digests: Kept,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    v: u32,
    /// Digest of the file of the recording.
    recording: Digest,
    salt: String,
    values: BTreeMap<String, Digest>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    calls: BTreeMap<u64, Digest>,
}

impl Digests {
    /// No digests yet, under this salt, which has to be random.
    pub(crate) fn new(salt: [u8; 32]) -> Self {
        Self {
            salt,
            values: BTreeMap::new(),
            calls: BTreeMap::new(),
        }
    }

    /// True if no argument was masked.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty() && self.calls.is_empty()
    }

    /// Adds the masked arguments of a call. Returns the places of what was masked: `*` stands for every item of a list.
    pub(crate) fn add(
        &mut self,
        order: u64,
        plain: &str,
        clean: &Value,
        masker: &Masker,
    ) -> BTreeSet<String> {
        if has_label(clean) {
            let digest = commit(OF_CALL, &self.salt, plain.as_bytes());
            self.calls.insert(order, digest);
        }
        let mut places = BTreeSet::new();
        self.walk(clean, masker, "", &mut places);
        places
    }

    fn walk(&mut self, clean: &Value, masker: &Masker, place: &str, places: &mut BTreeSet<String>) {
        match clean {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::String(text) => {
                for piece in masker.pieces(text) {
                    if let Piece::Placeholder { kind, number } = piece
                        && let Some(value) = masker.value(kind, number)
                    {
                        let digest = self.of_value(kind, value);
                        self.values.insert(name_of(kind, number), digest);
                        places.insert(place.to_owned());
                    }
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.walk(item, masker, &format!("{place}/*"), places);
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    let part = name.replace('~', "~0").replace('/', "~1");
                    let place = format!("{place}/{part}");
                    if is_label(name) {
                        places.insert(place.clone());
                    }
                    self.walk(member, masker, &place, places);
                }
            }
        }
    }

    fn of_value(&self, kind: &str, value: &Value) -> Digest {
        let text = format!("{kind}\n{}", text_of(value));
        commit(OF_VALUE, &self.salt, text.as_bytes())
    }

    /// True if this is the value that the placeholder stands for.
    pub(super) fn fits(&self, kind: &str, number: u32, value: &Value) -> bool {
        let kept = self.values.get(&name_of(kind, number));
        kept.is_some_and(|kept| *kept == self.of_value(kind, value))
    }

    /// Digest of the arguments of a recorded call; `None` if no name in them was masked.
    pub(super) fn of_recorded(&self, order: u64) -> Option<Digest> {
        self.calls.get(&order).copied()
    }

    /// Digest of the arguments of a call that is being matched.
    pub(super) fn of_sent(&self, plain: &str) -> Digest {
        commit(OF_CALL, &self.salt, plain.as_bytes())
    }

    /// The text of the digests, one line, for the recording whose file has this digest.
    pub fn to_text(&self, recording: Digest) -> String {
        let line = Line {
            digests: Kept {
                v: VERSION,
                recording,
                salt: STANDARD.encode(self.salt),
                values: self.values.clone(),
                calls: self.calls.clone(),
            },
        };
        // Names and digests can always be written.
        let mut text = serde_json::to_string(&line).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Reads the digests of the recording whose file has this digest.
    pub fn parse(text: &str, recording: Digest) -> Result<Self, DigestsError> {
        let Line { digests } = serde_json::from_str(text)?;
        if digests.v != VERSION {
            return Err(DigestsError::Version(digests.v));
        }
        if digests.recording != recording {
            return Err(DigestsError::OtherRecording(digests.recording));
        }
        let salt = STANDARD.decode(&digests.salt).ok();
        let salt = salt.and_then(|salt| salt.try_into().ok());
        Ok(Self {
            salt: salt.ok_or(DigestsError::Salt)?,
            values: digests.values,
            calls: digests.calls,
        })
    }
}

fn name_of(kind: &str, number: u32) -> String {
    format!("{kind}:{number}")
}

/// True if a name of a member was masked: it is the label of a kind.
pub(super) fn is_label(name: &str) -> bool {
    name.starts_with('[')
}

/// True if a name anywhere in the value was masked.
pub(super) fn has_label(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        Value::Array(items) => items.iter().any(has_label),
        Value::Object(members) => {
            let mut members = members.iter();
            members.any(|(name, member)| is_label(name) || has_label(member))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::redact::Mark as _;

    /// Digests are read for their own recording only, and have no value in them.
    #[test]
    fn digests_are_written_and_read_again() {
        let mut masker = Masker::for_file();
        let mail = masker.mark("email", &json!("li@example.com"));
        let clean = json!({"to": [format!("for {mail}")], "[email]": 1});
        let mut digests = Digests::new([7; 32]);
        let places = digests.add(3, "{}", &clean, &masker);
        assert_eq!(
            places.into_iter().collect::<Vec<_>>(),
            ["/[email]", "/to/*"]
        );
        let (own, other) = (Digest::of_bytes(b"own"), Digest::of_bytes(b"other"));
        let text = digests.to_text(own);
        assert!(!text.contains("example"), "{text}");
        let read = Digests::parse(&text, own).unwrap();
        assert_eq!(read, digests);
        assert!(read.fits("email", 1, &json!("li@example.com")));
        assert!(!read.fits("email", 1, &json!("le@example.com")));
        assert!(!read.fits("email", 2, &json!("li@example.com")));
        assert_eq!(read.of_recorded(3), Some(read.of_sent("{}")));
        assert_ne!(read.of_recorded(3), Some(read.of_sent("[]")));
        for (text, recording, said) in [
            (text.clone(), other, "it belongs to another recording"),
            (text.replace("\"v\":1", "\"v\":2"), own, "version 2"),
            (text.replace("\"salt\":\"", "\"salt\":\"AA"), own, "salt"),
            (text.replace("values", "vales"), own, "unknown field"),
        ] {
            let error = Digests::parse(&text, recording).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
