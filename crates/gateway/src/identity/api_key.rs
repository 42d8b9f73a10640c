//! One API key: its holder's identity and rights, and the secret that proves it.
//!
//! A key reads `csk_<id>_<secret>`. The id is public and stands in lists and records. The secret is 256 bits of
//! randomness, shown once and never stored: only a digest of it is kept.

use std::fmt;

use aws_lc_rs::{constant_time, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign::approve::SCOPE_ANSWER;
use countersign::contract::{Actor, ActorType};
use countersign::ids::IdSource;
use countersign::realm::normalized;
use countersign::{Credential, Effects, Principal};
use countersign_evidence::hex;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::api_keys::SCOPE_KEYS;
use super::keys_error::KeysError;
use crate::policy::ScopeName;

/// Prefix of every key, so that a leaked one is recognized.
pub(crate) const PREFIX: &str = "csk_";

/// Domain separator, hashed before the secret, so that the digest is useless elsewhere.
const DOMAIN: &[u8] = b"countersign/api-key/v1\0";

/// Number of hexadecimal digits in an id.
const ID_DIGITS: usize = 16;

/// Length of a secret: 32 bytes in base64url without padding.
const SECRET_CHARS: usize = 43;

/// Maximum length of a label, in characters.
const LABEL_CHARS_MAX: usize = 128;

/// Maximum number of scopes of a key.
const SCOPES_MAX: usize = 64;

/// Stored properties of a key. The secret is not among them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiKey {
    /// Public id.
    pub id: String,
    /// Label for people.
    pub label: String,
    /// Holder of the key.
    pub actor: Actor,
    /// User for whom the holder acts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// True if each call may name another user and actor.
    #[serde(default)]
    pub acts_for_others: bool,
    /// Scopes that it grants.
    pub scopes: Vec<String>,
    /// Effects that its calls may have; `None` allows any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effects: Option<Effects>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of expiry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Time of revocation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
    /// Id of the key that it replaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotated_from: Option<String>,
}

/// A key to be created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewKey {
    /// Label for people.
    #[serde(default)]
    pub label: String,
    /// Holder of the key.
    pub actor: Actor,
    /// User for whom the holder acts. A person's own key needs none.
    #[serde(default)]
    pub user_id: Option<String>,
    /// True if each call may name another user and actor: for a trusted backend.
    #[serde(default)]
    pub acts_for_others: bool,
    /// Scopes that it grants.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// Effects that its calls may have; `None` allows any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effects: Option<Effects>,
    /// Time of expiry.
    #[serde(default)]
    pub expires_at: Option<Timestamp>,
}

/// A key that was just created, with its secret. The secret is never shown again.
pub struct IssuedKey {
    /// Properties of the key.
    pub key: ApiKey,
    /// Token that the holder sends: `csk_<id>_<secret>`.
    pub token: Zeroizing<String>,
}

impl fmt::Debug for IssuedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IssuedKey({})", self.key.id)
    }
}

/// State of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyState {
    /// The key is accepted.
    Active,
    /// The key has expired.
    Expired,
    /// The key was revoked.
    Revoked,
}

impl ApiKey {
    /// Returns the state at this time.
    pub fn state_at(&self, now: Timestamp) -> KeyState {
        if self.revoked_at.is_some() {
            KeyState::Revoked
        } else if self.expires_at.is_some_and(|end| end <= now) {
            KeyState::Expired
        } else {
            KeyState::Active
        }
    }

    /// Returns the principal that the key proves.
    pub fn principal(&self) -> Principal {
        let actor = self.actor.clone();
        let principal = match (&self.user_id, self.acts_for_others) {
            (Some(user_id), _) => Principal::new(actor, user_id),
            (None, false) => Principal::without_user(actor),
            // Each call has to name the user.
            (None, true) => Principal {
                has_user: false,
                ..Principal::new(actor, "")
            },
        };
        let mut scopes = self.scopes.clone();
        scopes.retain(|scope| may_hold(&self.actor, scope));
        Principal {
            scopes,
            effects: self.effects.unwrap_or_default(),
            may_act_for_others: self.acts_for_others,
            credential: Some(Credential::ApiKey {
                id: self.id.clone(),
            }),
            ..principal
        }
    }
}

impl NewKey {
    /// Validates the request and returns the key.
    pub(super) fn checked(self, id: String, now: Timestamp) -> Result<ApiKey, KeysError> {
        if self.label.chars().count() > LABEL_CHARS_MAX || self.label.contains(char::is_control) {
            let form = "at most 128 characters, none of them a control character";
            return Err(KeysError::invalid("/label", form));
        }
        let Some(actor_id) = normalized(&self.actor.id) else {
            let form = "1 to 255 characters that can be seen, and no space at its ends";
            return Err(KeysError::invalid("/actor/id", form));
        };
        let actor = Actor {
            id: actor_id,
            ..self.actor
        };
        let named = self.user_id.as_deref().map(normalized);
        let user_id = match (actor.kind, named.flatten().or(self.user_id)) {
            (ActorType::User, None) => Some(actor.id.clone()),
            (ActorType::User, Some(user_id)) if user_id != actor.id => {
                let form = "left out for a person's own key, or the person's id";
                return Err(KeysError::invalid("/user_id", form));
            }
            (ActorType::User | ActorType::Agent | ActorType::System, user_id) => user_id,
        };
        if !user_id.as_deref().is_none_or(is_user_name) {
            let form = "1 to 255 characters that can be seen, and no name of a program";
            return Err(KeysError::invalid("/user_id", form));
        }
        if actor.kind == ActorType::User && self.acts_for_others {
            let form = "false for a person: only a program acts for others";
            return Err(KeysError::invalid("/acts_for_others", form));
        }
        let is_scope = |scope: &String| ScopeName::new(scope).is_some();
        if self.scopes.len() > SCOPES_MAX || !self.scopes.iter().all(is_scope) {
            let form = "at most 64 scopes of 1 to 128 visible characters each";
            return Err(KeysError::invalid("/scopes", form));
        }
        if let Some(scope) = self.scopes.iter().find(|scope| !may_hold(&actor, scope)) {
            let form = format!("without {scope}, which no agent holds");
            return Err(KeysError::invalid("/scopes", form));
        }
        if self.expires_at.is_some_and(|end| end <= now) {
            return Err(KeysError::invalid("/expires_at", "in the future"));
        }
        Ok(ApiKey {
            id,
            label: self.label,
            actor,
            user_id,
            acts_for_others: self.acts_for_others,
            scopes: self.scopes,
            effects: self.effects,
            // Higher precision is never read.
            created_at: Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now),
            expires_at: self.expires_at,
            revoked_at: None,
            rotated_from: None,
        })
    }
}

/// True if a credential of this actor may hold a scope: an agent may neither answer for people nor manage
/// credentials.
pub(super) fn may_hold(actor: &Actor, scope: &str) -> bool {
    let is_for_people = [SCOPE_KEYS, SCOPE_ANSWER].contains(&scope);
    match actor.kind {
        ActorType::Agent => !is_for_people,
        ActorType::User | ActorType::System => true,
    }
}

/// True if a text can be the id of a person. Programs that act for no user keep their state under such names
/// ([`Principal::without_user`]), so no person may have one.
pub(super) fn is_user_name(text: &str) -> bool {
    let is_program = ["agent/", "system/", "user/"]
        .iter()
        .any(|prefix| text.starts_with(prefix));
    normalized(text).as_deref() == Some(text) && !is_program
}

/// Generates a public id.
pub(super) fn draw_id(ids: &dyn IdSource) -> String {
    let mut bytes = [0; ID_DIGITS / 2];
    ids.fill(&mut bytes);
    hex::encode(&bytes)
}

/// Generates a secret, in the form that the holder sends, and its digest.
pub(super) fn draw_token(id: &str, ids: &dyn IdSource) -> (Zeroizing<String>, [u8; 32]) {
    let mut bytes = Zeroizing::new([0; 32]);
    ids.fill(&mut *bytes);
    let secret = Zeroizing::new(URL_SAFE_NO_PAD.encode(*bytes));
    let token = Zeroizing::new(format!("{PREFIX}{id}_{}", secret.as_str()));
    (token, digest_of(id, &secret))
}

/// Splits a token into id and secret; `None` if it cannot be a key.
pub(super) fn split(token: &str) -> Option<(&str, &str)> {
    let (id, secret) = token.strip_prefix(PREFIX)?.split_once('_')?;
    let is_id = id.len() == ID_DIGITS && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_id && secret.len() == SECRET_CHARS).then_some((id, secret))
}

/// Computes the digest of a secret, which is stored.
pub(super) fn digest_of(id: &str, secret: &str) -> [u8; 32] {
    let mut context = digest::Context::new(&digest::SHA256);
    for part in [DOMAIN, id.as_bytes(), b"\0", secret.as_bytes()] {
        context.update(part);
    }
    let mut bytes = [0; 32];
    bytes.copy_from_slice(context.finish().as_ref());
    bytes
}

/// Compares two digests in constant time.
pub(super) fn is_same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    constant_time::verify_slices_are_equal(a, b).is_ok()
}
