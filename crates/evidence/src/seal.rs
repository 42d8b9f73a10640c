//! Uses of a user's key: sealing content, and deriving pseudonyms of the user.
//!
//! All stored personal data depends on one 32-byte secret for each user. When it is destroyed, sealed payloads
//! cannot be opened, subjects and fingerprints cannot be derived again, and the salts of the commitments, which
//! are in the payloads, are lost with them.

mod kms;

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::digest::{Context, SHA256};
use aws_lc_rs::hmac;
use countersign_contract::{Digest, RequestId};
pub use zeroize::Zeroizing;

use crate::hex;
pub use kms::{Kms, KmsError, KmsFuture, MasterKey};

/// [`commit`] domain of arguments.
pub const DOMAIN_ARGUMENTS: &str = "arguments";

/// [`commit`] domain of answers.
pub const DOMAIN_DATA: &str = "data";

/// [`commit`] domain of the text that a caller sent.
pub const DOMAIN_RAW: &str = "raw";

/// [`commit`] domain of the text that a person was shown.
pub const DOMAIN_SHOWN: &str = "shown";

/// Prefix of a request id that stands for one that the caller chose.
pub const REQUEST_PREFIX: &str = "rq_";

/// Number of bytes that sealing adds.
pub const OVERHEAD_BYTES: usize = 1 + NONCE_BYTES + TAG_BYTES;

/// First byte of everything sealed: AES-256-GCM-SIV with a key derived as below.
const VERSION: u8 = 1;

const NONCE_BYTES: usize = 12;
const TAG_BYTES: usize = 16;

/// Reason why sealed bytes cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The bytes are shorter than the frame of sealed bytes, usually because they were cut off.
    #[error("sealed bytes have {found} bytes; at least {OVERHEAD_BYTES} are needed")]
    TooShort {
        /// Number of bytes.
        found: usize,
    },
    /// The first byte is an unknown version: a later version sealed the bytes, or they are not sealed.
    /// Usually an older program reads a newer store.
    #[error("sealed bytes of version {found} are not known; expected {VERSION}")]
    UnknownVersion {
        /// First byte.
        found: u8,
    },
    /// The key or the place is wrong, or the bytes were altered: by design these look alike.
    /// Usually the keys of another installation are in use.
    #[error("the sealed bytes do not open: wrong key, wrong context or altered")]
    Refused,
}

/// Commits to a value without showing it: SHA-256 over the domain, a salt and the canonical JSON.
///
/// Without the salt the value cannot be guessed, even if there are few possible values.
///
/// # Example
///
/// ```
/// use countersign_evidence::seal::{DOMAIN_ARGUMENTS, DOMAIN_DATA, commit};
///
/// let commitment = commit(DOMAIN_ARGUMENTS, &[1; 32], br#"{"sku":"A-1"}"#);
/// assert_ne!(commitment, commit(DOMAIN_DATA, &[1; 32], br#"{"sku":"A-1"}"#));
/// ```
pub fn commit(domain: &str, salt: &[u8; 32], canonical: &[u8]) -> Digest {
    let mut context = Context::new(&SHA256);
    context.update(b"countersign.dev/commit/");
    context.update(domain.as_bytes());
    context.update(b"@v1\n");
    context.update(salt);
    context.update(canonical);
    Digest(to_array(context.finish().as_ref()))
}

/// Derives the salt of one value of a payload from the payload's own salt. A verifier that is shown the salt of
/// one value cannot compute that of another.
///
/// # Example
///
/// ```
/// use countersign_evidence::seal::{DOMAIN_ARGUMENTS, DOMAIN_DATA, salt_of};
///
/// assert_ne!(salt_of(&[1; 32], DOMAIN_ARGUMENTS), salt_of(&[1; 32], DOMAIN_DATA));
/// ```
pub fn salt_of(payload_salt: &[u8; 32], domain: &str) -> [u8; 32] {
    let root = hmac::Key::new(hmac::HMAC_SHA256, payload_salt);
    mac(
        &root,
        &[b"countersign.dev/salt/", domain.as_bytes(), b"@v1"],
    )
}

/// Id of one key of a user, by which a store tells it from a later key of the same user. It reveals nothing
/// about the secret that it is derived from, and stays the same under another master key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub [u8; 16]);

/// The secret of one user, ready for use. It is never shown, and is wiped when dropped.
///
/// Build it once and keep it: building derives seven keys and an id.
///
/// # Example
///
/// ```
/// use countersign_evidence::seal::UserKey;
///
/// let key = UserKey::from_bytes(&[7; 32]);
/// let sealed = key.seal([0; 12], b"ev_1", b"what was said");
/// assert_eq!(&**key.open(b"ev_1", &sealed)?, b"what was said");
/// assert!(key.open(b"ev_2", &sealed).is_err());
/// # Ok::<(), countersign_evidence::seal::SealError>(())
/// ```
pub struct UserKey {
    secret: Zeroizing<[u8; 32]>,
    id: KeyId,
    seal: SealKey,
    subject: hmac::Key,
    fingerprint: hmac::Key,
    index: hmac::Key,
    key: hmac::Key,
    downstream: hmac::Key,
    chosen: hmac::Key,
}

impl UserKey {
    /// Creates the key of these 32 bytes, which must come from a cryptographic source of randomness.
    pub fn from_bytes(secret: &[u8; 32]) -> Self {
        let root = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let mac = |label| hmac::Key::new(hmac::HMAC_SHA256, &*derive(&root, label));
        let mut id = [0; 16];
        id.iter_mut()
            .zip(derive(&root, "id").iter())
            .for_each(|(to, from)| *to = *from);
        Self {
            id: KeyId(id),
            seal: SealKey::new(&derive(&root, "seal")),
            subject: mac("subject"),
            fingerprint: mac("fingerprint"),
            index: mac("index"),
            key: mac("key"),
            downstream: mac("downstream"),
            chosen: mac("chosen"),
            secret: Zeroizing::new(*secret),
        }
    }

    /// Returns the id of the key.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// Returns the secret itself, for wrapping.
    pub fn secret_bytes(&self) -> &[u8; 32] {
        &self.secret
    }

    /// Seals bytes for one place: `aad` names it, and they only open with the same `aad`. A nonce is random and
    /// used once; if it is used twice with the same key, it only reveals whether the two texts are equal.
    pub fn seal(&self, nonce: [u8; 12], aad: &[u8], plain: &[u8]) -> Vec<u8> {
        self.seal.seal(nonce, aad, plain)
    }

    /// Opens what [`UserKey::seal`] sealed.
    pub fn open(&self, aad: &[u8], sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, SealError> {
        self.seal.open(aad, sealed)
    }

    /// Derives the log's pseudonym of this user: 32 hexadecimal digits.
    pub fn subject(&self, user_id: &str) -> String {
        short_text(&self.subject, &[user_id.as_bytes()])
    }

    /// Derives a fingerprint of bytes, such as the arguments of a call: equal for equal bytes of this user.
    pub fn fingerprint(&self, bytes: &[u8]) -> [u8; 32] {
        mac(&self.fingerprint, &[bytes])
    }

    /// Derives an index key by which a sealed value can be found.
    pub fn index(&self, value: &[u8]) -> [u8; 32] {
        mac(&self.index, &[value])
    }

    /// Derives the log's pseudonym of an idempotency key of this user.
    pub fn key_digest(&self, key: &str) -> [u8; 32] {
        mac(&self.key, &[key.as_bytes()])
    }

    /// Derives the log's pseudonym of a name that a caller or an issuer chose, such as a request id: 32
    /// hexadecimal digits. `what` separates different kinds of names.
    pub fn chosen(&self, what: &str, name: &str) -> String {
        short_text(&self.chosen, &[what.as_bytes(), &[0], name.as_bytes()])
    }

    /// Derives the log's pseudonym of a request id that the caller chose.
    pub fn request_id(&self, chosen: &RequestId) -> RequestId {
        checked_id(&self.chosen("request", chosen.as_str()))
    }

    /// Derives the log's pseudonym of a session, whose name the caller chose: `ss_` and 32 hexadecimal digits.
    pub fn session(&self, name: &str) -> String {
        format!("ss_{}", self.chosen("session", name))
    }

    /// Derives the log's pseudonym of a document of this user: 32 hexadecimal digits.
    pub fn document(&self, collection: &str, id: &str) -> String {
        self.chosen("document", &[collection, id].join("\0"))
    }

    /// Derives the idempotency key that a tool sends to its provider for this call: 32 hexadecimal digits. It
    /// is the same for every attempt, and reveals nothing about the caller's own key.
    pub fn downstream_key(&self, tool: &str, key: &str) -> String {
        let length = (tool.len() as u64).to_be_bytes();
        short_text(
            &self.downstream,
            &[&length, tool.as_bytes(), key.as_bytes()],
        )
    }
}

/// A key that authenticates the records that wait for the tree: without it, rows that were written into the database are not
/// taken for records. Every process of an installation derives the same one.
pub struct LeafKey(hmac::Key);

/// Length in bytes of the code that authenticates a record.
pub const LEAF_CODE_BYTES: usize = 16;

impl LeafKey {
    /// Derives the key from the one that seals what belongs to no user.
    pub fn of(shared: &UserKey) -> Self {
        let root = hmac::Key::new(hmac::HMAC_SHA256, shared.secret_bytes());
        Self(hmac::Key::new(hmac::HMAC_SHA256, &*derive(&root, "leaf")))
    }

    /// Computes the code of a record from its id and the hash of its leaf.
    pub fn code(&self, id: &str, leaf_hash: &[u8; 32]) -> [u8; LEAF_CODE_BYTES] {
        let code = mac(&self.0, &[id.as_bytes(), &[0], leaf_hash]);
        *code.first_chunk().expect("it has 32 bytes")
    }
}

/// Omits the secret, so that it stays out of logs.
impl fmt::Debug for LeafKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeafKey(..)")
    }
}

/// Omits the secret, so that it stays out of logs.
impl fmt::Debug for UserKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UserKey(..)")
    }
}

/// An AES-256-GCM-SIV key, with the frame of its sealed bytes.
struct SealKey(LessSafeKey);

impl SealKey {
    fn new(key: &[u8; 32]) -> Self {
        let key = UnboundKey::new(&AES_256_GCM_SIV, key).expect("the key has 32 bytes");
        Self(LessSafeKey::new(key))
    }

    fn seal(&self, nonce: [u8; 12], aad: &[u8], plain: &[u8]) -> Vec<u8> {
        let mut sealed = Vec::with_capacity(plain.len() + OVERHEAD_BYTES);
        sealed.push(VERSION);
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(plain);
        let (_, body) = sealed.split_at_mut(1 + NONCE_BYTES);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = self
            .0
            .seal_in_place_separate_tag(nonce, Aad::from(aad), body)
            .expect("a payload is far below the limit of 2^36 bytes");
        sealed.extend_from_slice(tag.as_ref());
        sealed
    }

    fn open(&self, aad: &[u8], sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, SealError> {
        let found = sealed.len();
        if found < OVERHEAD_BYTES {
            return Err(SealError::TooShort { found });
        }
        let (version, rest) = sealed.split_first().ok_or(SealError::TooShort { found })?;
        if *version != VERSION {
            return Err(SealError::UnknownVersion { found: *version });
        }
        let (nonce, body) = rest
            .split_first_chunk()
            .ok_or(SealError::TooShort { found })?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let mut plain = Zeroizing::new(body.to_vec());
        let length = self
            .0
            .open_in_place(nonce, Aad::from(aad), &mut plain)
            .map_err(|_| SealError::Refused)?
            .len();
        plain.truncate(length);
        Ok(plain)
    }
}

/// Derives one key of a secret for each use, so that the uses are independent.
fn derive(root: &hmac::Key, label: &str) -> Zeroizing<[u8; 32]> {
    Zeroizing::new(mac(
        root,
        &[b"countersign.dev/key/", label.as_bytes(), b"@v1"],
    ))
}

fn mac(key: &hmac::Key, parts: &[&[u8]]) -> [u8; 32] {
    let mut context = hmac::Context::with_key(key);
    for part in parts {
        context.update(part);
    }
    to_array(context.sign().as_ref())
}

fn short_text(key: &hmac::Key, parts: &[&[u8]]) -> String {
    let mut text = hex::encode(&mac(key, parts));
    text.truncate(32);
    text
}

fn checked_id(digits: &str) -> RequestId {
    RequestId::new(format!("{REQUEST_PREFIX}{digits}")).expect("a prefix and hexadecimal digits")
}

fn to_array(bytes: &[u8]) -> [u8; 32] {
    bytes.try_into().expect("SHA-256 gives 32 bytes")
}

#[cfg(test)]
mod tests;
