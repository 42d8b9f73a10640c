//! Fingerprints, which bind a key to its arguments, and the reply that is stored under it. All of it is digests under
//! the user's own key, or sealed: a bare hash of an address can be guessed.

use std::collections::BTreeMap;

use countersign_contract::{ReplyEnvelope, canonical};
use countersign_evidence::seal::UserKey;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::ids::IdSource;
use crate::ledger::Scope;

/// Fingerprint of the canonical bound arguments, before defaults: a default that changes does not make a repeat another
/// call.
#[derive(Debug, Clone)]
pub(super) struct Fingerprint {
    pub(super) whole: [u8; 32],
    /// Digests by JSON pointer, so that a key that is used for other arguments can name the difference.
    parts: BTreeMap<String, u64>,
}

/// The reply of a call, and its time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StoredReply {
    /// Start of its window of validity.
    pub(crate) at: Timestamp,
    pub(crate) reply: ReplyEnvelope,
}

/// The canonical text of the member that a JSON pointer leads to; `None` if it is absent or null. Numbers never go through a
/// double.
pub(super) fn member_text(json: &str, pointer: &str) -> Option<String> {
    let mut at: Box<RawValue> = serde_json::from_str(json).ok()?;
    for step in pointer.strip_prefix('/')?.split('/') {
        let step = step.replace("~1", "/").replace("~0", "~");
        at = if at.get().starts_with('[') {
            let items: Vec<Box<RawValue>> = serde_json::from_str(at.get()).ok()?;
            items.into_iter().nth(step.parse().ok()?)?
        } else {
            let mut members: BTreeMap<String, Box<RawValue>> =
                serde_json::from_str(at.get()).ok()?;
            members.remove(&step)?
        };
    }
    let text = at.get();
    let canonical = canonical::from_json_text(text).unwrap_or_else(|_| text.to_owned());
    (text != "null").then_some(canonical)
}

/// Maximum number of JSON pointers that a fingerprint tells apart.
const PARTS_MAX: usize = 64;

impl Fingerprint {
    pub(super) fn of(keys: &UserKey, canonical: &str, arguments: &Value) -> Self {
        let mut parts = BTreeMap::new();
        collect(keys, arguments, String::new(), &mut parts);
        Self {
            whole: keys.fingerprint(canonical.as_bytes()),
            parts,
        }
    }

    /// Sealed for the store, which returns it unchanged.
    pub(super) fn seal(&self, keys: &UserKey, scope: &Scope, ids: &dyn IdSource) -> Vec<u8> {
        let text = serde_json::to_vec(&self.parts).expect("texts and numbers");
        seal(keys, "parts", scope, &text, ids)
    }

    /// Paths at which the arguments differ from those that the key was taken for; empty if that is not known.
    pub(super) fn differing(&self, keys: &UserKey, scope: &Scope, sealed: &[u8]) -> Vec<String> {
        let Some(first) = keys
            .open(&aad("parts", scope), sealed)
            .ok()
            .and_then(|text| serde_json::from_slice::<BTreeMap<String, u64>>(&text).ok())
        else {
            return Vec::new();
        };
        let names = self.parts.keys().chain(first.keys());
        let mut differing: Vec<_> = names
            .filter(|path| self.parts.get(*path) != first.get(*path))
            .cloned()
            .collect();
        differing.sort();
        differing.dedup();
        differing
    }
}

impl StoredReply {
    pub(crate) fn seal(&self, keys: &UserKey, scope: &Scope, ids: &dyn IdSource) -> Vec<u8> {
        let text = serde_json::to_vec(self).expect("an envelope is JSON");
        seal(keys, "reply", scope, &text, ids)
    }

    pub(crate) fn open(keys: &UserKey, scope: &Scope, sealed: &[u8]) -> Option<Self> {
        let text = keys.open(&aad("reply", scope), sealed).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

fn collect(keys: &UserKey, value: &Value, path: String, parts: &mut BTreeMap<String, u64>) {
    if parts.len() >= PARTS_MAX {
        return;
    }
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, member) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                collect(keys, member, format!("{path}/{name}"), parts);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                collect(keys, item, format!("{path}/{index}"), parts);
            }
        }
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Object(_)
        | Value::Array(_) => {
            let digest = keys.fingerprint(value.to_string().as_bytes());
            let first = digest.first_chunk().copied().unwrap_or_default();
            parts.insert(path, u64::from_be_bytes(first));
        }
    }
}

fn seal(keys: &UserKey, what: &str, scope: &Scope, text: &[u8], ids: &dyn IdSource) -> Vec<u8> {
    let mut nonce = [0; 12];
    ids.fill(&mut nonce);
    keys.seal(nonce, &aad(what, scope), text)
}

/// Additional data for the seal, so that one key's reply cannot be passed off as another's.
fn aad(what: &str, scope: &Scope) -> Vec<u8> {
    let Scope { user_id, tool, key } = scope;
    [what, user_id, tool.as_str(), &key.to_string()]
        .join("\0")
        .into_bytes()
}
