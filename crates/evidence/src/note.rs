//! Signed notes (C2SP signed-note): a text with its signature lines.

use std::fmt;

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_contract::Digest;

use crate::hex;

/// Maximum length of a note that is read, in bytes.
pub const NOTE_BYTES_MAX: usize = 256 * 1024;

/// Maximum number of signatures of a note that is read.
pub const SIGNATURES_MAX: usize = 100;

/// Algorithm byte of Ed25519 in key ids and key texts.
const ED25519_ID: u8 = 1;

/// Beginning of a signature line: an em dash and a space.
const SIGNATURE_PREFIX: &str = "\u{2014} ";

/// A fault of a note, a key or a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    /// The name of a key is not valid. Usually the name of a log was chosen with a space or a plus in it.
    #[error(
        "the key name {0:?} is not valid: it is empty or has a space, a control character or a plus"
    )]
    InvalidName(String),
    /// The text is not a verifier key, usually because it was cut off when it was copied.
    #[error(
        "not a verifier key: expected NAME+HASH+BASE64 of an Ed25519 key, with the hash of the two"
    )]
    InvalidKey,
    /// The text is not a signed note, usually because its line breaks were changed.
    #[error("not a signed note: {0}")]
    Malformed(&'static str),
    /// The note has no signature of the given key, usually because it is from another log.
    #[error("the note is not signed by {name:?}")]
    NotSigned {
        /// Name of the key.
        name: String,
    },
    /// The signature does not match the text, usually because the text was altered.
    #[error("the signature of {name:?} is not of this text")]
    WrongSignature {
        /// Name of the key in the signature line.
        name: String,
    },
}

/// A key that signs notes under a name. It is derived from a seed that is kept elsewhere.
pub struct SigningKey {
    pair: Ed25519KeyPair,
    public: VerifyingKey,
}

/// Identity of a signer: a name and a public key. Its text form is `NAME+HASH+BASE64`.
///
/// # Example
///
/// ```
/// use countersign_evidence::note::{SigningKey, VerifyingKey};
///
/// let key = SigningKey::from_seed("example.com/log", &[7; 32])?;
/// let text = key.verifying_key().to_string();
/// assert_eq!(text.parse::<VerifyingKey>()?, key.verifying_key());
/// # Ok::<(), countersign_evidence::note::NoteError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct VerifyingKey {
    name: String,
    public: [u8; 32],
}

/// A parsed note; its signatures are not verified yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Text that was signed, with its last newline.
    pub text: String,
    /// Claimed signatures in their order; those of unknown keys are kept.
    pub signatures: Vec<Signature>,
}

/// One signature line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// Name of the key.
    pub name: String,
    /// Id that tells keys of the same name apart.
    pub key_id: [u8; 4],
    /// The other bytes, whose meaning depends on the kind of the key.
    pub bytes: Vec<u8>,
}

impl SigningKey {
    /// Creates the key of a 32-byte seed, under this name.
    pub fn from_seed(name: impl Into<String>, seed: &[u8; 32]) -> Result<Self, NoteError> {
        let name = checked_name(name.into())?;
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| NoteError::InvalidKey)?;
        let public = pair.public_key().as_ref().try_into();
        let public = public.map_err(|_| NoteError::InvalidKey)?;
        let public = VerifyingKey { name, public };
        Ok(Self { pair, public })
    }

    /// Returns the public key that verifies the signatures.
    pub fn verifying_key(&self) -> VerifyingKey {
        self.public.clone()
    }

    /// Returns the name that it signs under.
    pub fn name(&self) -> &str {
        &self.public.name
    }

    /// Signs bytes that no text of a note can be, such as those of a COSE message.
    pub(crate) fn sign_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        self.pair.sign(bytes).as_ref().to_vec()
    }

    /// Signs a text as a note.
    pub fn sign(&self, text: &str) -> Result<String, NoteError> {
        check_text(text)?;
        let signature = Signature {
            name: self.name().to_owned(),
            key_id: self.public.key_id(),
            bytes: self.pair.sign(text.as_bytes()).as_ref().to_vec(),
        };
        Ok(format!("{text}\n{signature}"))
    }
}

/// Omits the secret, so that it stays out of logs.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.public)
    }
}

impl VerifyingKey {
    /// Creates a key from its name and public bytes.
    pub fn new(name: impl Into<String>, public: [u8; 32]) -> Result<Self, NoteError> {
        let name = checked_name(name.into())?;
        Ok(Self { name, public })
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the Ed25519 public key.
    pub const fn public_bytes(&self) -> &[u8; 32] {
        &self.public
    }

    /// Returns the first four bytes of the hash of name and key.
    pub fn key_id(&self) -> [u8; 4] {
        key_id(&self.name, ED25519_ID, &self.public)
    }
}

impl fmt::Display for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        format_key(f, &self.name, ED25519_ID, &self.public)
    }
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl std::str::FromStr for VerifyingKey {
    type Err = NoteError;

    fn from_str(text: &str) -> Result<Self, NoteError> {
        let Some((name, ED25519_ID, public)) = parse_key(text) else {
            return Err(NoteError::InvalidKey);
        };
        let public = public.try_into().map_err(|_| NoteError::InvalidKey)?;
        Self::new(name, public)
    }
}

impl Note {
    /// Parses a note without verifying any signature.
    pub fn parse(note: &str) -> Result<Self, NoteError> {
        if note.len() > NOTE_BYTES_MAX {
            return Err(NoteError::Malformed("it is too long"));
        }
        let malformed = NoteError::Malformed("expected a text, an empty line and signature lines");
        let (text, lines) = note.rsplit_once("\n\n").ok_or_else(|| malformed.clone())?;
        let text = format!("{text}\n");
        check_text(&text)?;
        let lines = lines.strip_suffix('\n').ok_or(malformed)?;
        if lines.split('\n').count() > SIGNATURES_MAX {
            return Err(NoteError::Malformed("it has too many signatures"));
        }
        let signatures: Result<_, _> = lines.split('\n').map(Signature::parse).collect();
        Ok(Self {
            text,
            signatures: signatures?,
        })
    }

    /// Counts the signatures of other keys, which are not verified here.
    pub fn signatures_of_others(&self, key: &VerifyingKey) -> usize {
        let id = key.key_id();
        let of_others =
            |signature: &&Signature| signature.name != key.name || signature.key_id != id;
        self.signatures.iter().filter(of_others).count()
    }

    /// Checks that this key signed the text. Signatures of other keys are ignored.
    pub fn verify(&self, key: &VerifyingKey) -> Result<(), NoteError> {
        let id = key.key_id();
        let ours = |signature: &&Signature| signature.name == key.name && signature.key_id == id;
        let name = || key.name.clone();
        let mut signatures = self.signatures.iter().filter(ours).peekable();
        if signatures.peek().is_none() {
            return Err(NoteError::NotSigned { name: name() });
        }
        let public = UnparsedPublicKey::new(&ED25519, key.public);
        // A second, wrong line of the same key is a sign of tampering too.
        signatures
            .try_for_each(|signature| public.verify(self.text.as_bytes(), &signature.bytes))
            .map_err(|_| NoteError::WrongSignature { name: name() })
    }
}

/// Formats the note with its signature lines.
impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.text)?;
        let mut signatures = self.signatures.iter();
        signatures.try_for_each(|signature| write!(f, "{signature}"))
    }
}

/// Formats the signature line, with its newline.
impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = STANDARD.encode([self.key_id.as_slice(), &self.bytes].concat());
        writeln!(f, "{SIGNATURE_PREFIX}{} {bytes}", self.name)
    }
}

impl Signature {
    fn parse(line: &str) -> Result<Self, NoteError> {
        let malformed =
            NoteError::Malformed("expected \"\u{2014} NAME BASE64\" in a signature line");
        let rest = line.strip_prefix(SIGNATURE_PREFIX);
        let (name, base64) = rest
            .and_then(|rest| rest.split_once(' '))
            .ok_or_else(|| malformed.clone())?;
        let name = checked_name(name.to_owned())?;
        let bytes = STANDARD.decode(base64).map_err(|_| malformed.clone())?;
        let (key_id, bytes) = bytes.split_first_chunk().ok_or_else(|| malformed.clone())?;
        if bytes.is_empty() {
            return Err(malformed);
        }
        Ok(Self {
            name,
            key_id: *key_id,
            bytes: bytes.to_vec(),
        })
    }
}

/// Returns the first four bytes of the hash of a name, the kind of its key and the key.
pub(crate) fn key_id(name: &str, kind: u8, public: &[u8]) -> [u8; 4] {
    let bytes = [name.as_bytes(), &[b'\n', kind], public].concat();
    let [first, second, third, fourth, ..] = Digest::of_bytes(&bytes).0;
    [first, second, third, fourth]
}

/// Takes a verifier key apart: name, kind and public key. The hash in it has to be that of the others.
pub(crate) fn parse_key(text: &str) -> Option<(String, u8, Vec<u8>)> {
    let mut parts = text.splitn(3, '+');
    let (name, id, key) = (parts.next()?, parts.next()?, parts.next()?);
    let key = STANDARD.decode(key).ok()?;
    let (&kind, public) = key.split_first()?;
    let is_its_hash = hex::decode(id) == Some(key_id(name, kind, public));
    is_its_hash.then(|| (name.to_owned(), kind, public.to_vec()))
}

/// Formats a verifier key.
pub(crate) fn format_key(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    kind: u8,
    public: &[u8],
) -> fmt::Result {
    let id = hex::encode(&key_id(name, kind, public));
    let key = STANDARD.encode([[kind].as_slice(), public].concat());
    write!(f, "{name}+{id}+{key}")
}

pub(crate) fn checked_name(name: String) -> Result<String, NoteError> {
    let bad = |c: char| c.is_whitespace() || c.is_control() || c == '+';
    if name.is_empty() || name.contains(bad) {
        return Err(NoteError::InvalidName(name));
    }
    Ok(name)
}

/// Checks the text of a note. Other control characters could make a terminal show another text than the one
/// that was signed.
fn check_text(text: &str) -> Result<(), NoteError> {
    if !text.ends_with('\n') {
        return Err(NoteError::Malformed("its text does not end with a newline"));
    }
    if text.contains(|c: char| c < ' ' && c != '\n') {
        return Err(NoteError::Malformed("its text has a control character"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
