//! COSE receipts (RFC 9942) and SCITT statements (RFC 9943): the same proofs in the form of the IETF.
//!
//! A receipt is an inclusion proof whose root the log signs as a COSE message. The verifiable data structure is
//! `RFC9162_SHA256`, which is the tree of this log, and the entry is the leaf of the record. A statement carries that leaf
//! as its payload, signed by the log, with the receipt attached: one file in which any COSE reader finds the record and
//! its proof.
//!
//! The key is the one that signs the checkpoints. No text of a note can be taken for a COSE message or the other
//! way round: what COSE signs begins with a byte with which no UTF-8 text does.

use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_contract::{Digest, EvidenceRecord};

use crate::bundle::{self, LEAF_BYTES_MAX};
use crate::cbor::Value;
use crate::note::{SigningKey, VerifyingKey};
use crate::tree::{Hash, InvalidProof, leaf_hash, root_of_inclusion};

/// Media type of a receipt.
pub const RECEIPT_TYPE: &str = "application/scitt-receipt+cose";

/// Media type of a statement.
pub const STATEMENT_TYPE: &str = "application/scitt-statement+cose";

/// Extension of files with a receipt.
pub const RECEIPT_EXTENSION: &str = "receipt";

/// Extension of files with a statement.
pub const STATEMENT_EXTENSION: &str = "scitt";

/// Maximum size of a statement or receipt that is read, in bytes.
pub const STATEMENT_BYTES_MAX: usize = LEAF_BYTES_MAX + (16 << 10);

/// Media type of the record in a statement.
const CONTENT_TYPE: &str = "application/json";

/// Tag of a message with one signature.
const SIGN1: u64 = 18;

/// Algorithm `EdDSA`, which every implementation of COSE knows.
const EDDSA: i64 = -8;

/// Verifiable data structure `RFC9162_SHA256`.
const RFC9162_SHA256: u64 = 1;

/// Labels of header parameters.
mod label {
    pub(super) const ALGORITHM: i64 = 1;
    pub(super) const CONTENT_TYPE: i64 = 3;
    pub(super) const KEY_ID: i64 = 4;
    pub(super) const CLAIMS: i64 = 15;
    pub(super) const RECEIPTS: i64 = 394;
    pub(super) const STRUCTURE: i64 = 395;
    pub(super) const PROOFS: i64 = 396;
    /// Inclusion proofs, among the proofs.
    pub(super) const INCLUSION: i64 = -1;
    /// Issuer, among the claims.
    pub(super) const ISSUER: i64 = 1;
    /// Subject, among the claims.
    pub(super) const SUBJECT: i64 = 2;
}

/// Claim of a receipt: the number of leaves and the index of the record. The proof has both outside of what is signed, and
/// other numbers can lead to the same root.
const PLACE: &str = "countersign.dev/place";

/// A record with its proof, for which a receipt is signed.
///
/// Its root has to be one that the log has signed before: a receipt states nothing that a checkpoint does not.
#[derive(Debug, Clone, Copy)]
pub struct Proved<'a> {
    /// Canonical JSON of the record.
    pub leaf: &'a str,
    /// Id of the record: the subject of receipt and statement.
    pub id: &'a str,
    /// Index in the log.
    pub index: u64,
    /// Number of leaves of the tree.
    pub size: u64,
    /// Inclusion proof, lowest first.
    pub hashes: &'a [Hash],
}

/// A statement that was verified: the record and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Verified {
    /// The record.
    pub record: EvidenceRecord,
    /// Index in the log.
    pub index: u64,
    /// Number of leaves of the tree that the receipt is about.
    pub size: u64,
    /// Root of that tree.
    pub root: Hash,
}

/// Reason why a receipt or a statement is not made or not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReceiptFault {
    /// The bytes are not the message, usually because the file is another one or was cut.
    #[error("not a statement or receipt of this kind: {0}")]
    Malformed(&'static str),
    /// Another key signed, usually because the key of another log was given.
    #[error("the message names another key")]
    OtherKey,
    /// A signature does not match, usually because the message was altered.
    #[error("the signature of the {0} is not valid")]
    WrongSignature(&'static str),
    /// The leaf cannot be where the proof says, usually because the proof was altered.
    #[error(transparent)]
    NotIncluded(#[from] InvalidProof),
}

/// Signs the receipt of a record.
pub fn receipt(key: &SigningKey, proved: &Proved<'_>) -> Result<Vec<u8>, ReceiptFault> {
    Ok(made_receipt(key, proved)?.encode())
}

/// Signs the statement of a record, and attaches its receipt.
pub fn statement(key: &SigningKey, proved: &Proved<'_>) -> Result<Vec<u8>, ReceiptFault> {
    let receipt = Value::Bytes(receipt(key, proved)?);
    let protected = Kind::Statement.protected(&key.verifying_key(), proved.id);
    let unprotected = Value::map([(label::RECEIPTS, Value::Array(vec![receipt]))]);
    let payload = proved.leaf.as_bytes();
    let signature = key.sign_bytes(&to_be_signed(&protected, payload));
    let message = sign1(
        protected,
        unprotected,
        Value::Bytes(payload.to_vec()),
        signature,
    );
    Ok(message.encode())
}

/// Verifies a receipt for this leaf.
pub fn verify_receipt(
    bytes: &[u8],
    leaf: &str,
    key: &VerifyingKey,
) -> Result<Verified, ReceiptFault> {
    let message = Message::read(bytes)?;
    let record = record(leaf)?;
    if message.payload != Value::Null {
        return Err(ReceiptFault::Malformed("the root is not detached"));
    }
    let proofs = message.only(label::PROOFS)?;
    let Value::Map(kinds) = proofs else {
        return Err(ReceiptFault::Malformed("the proofs are not a map"));
    };
    let inclusion = proofs.member(label::INCLUSION).and_then(Value::as_array);
    let (1, Some([Value::Bytes(proof)])) = (kinds.len(), inclusion) else {
        return Err(ReceiptFault::Malformed("expected one inclusion proof"));
    };
    let (size, index, hashes) =
        read_proof(proof).ok_or(ReceiptFault::Malformed("not an inclusion proof"))?;
    message.check_protected(&record, key, Kind::Receipt { size, index })?;
    let root = root_of_inclusion(&leaf_hash(leaf.as_bytes()), index, size, &hashes)?;
    message.check_signature("receipt", &root, key)?;
    Ok(Verified {
        record,
        index,
        size,
        root,
    })
}

/// Verifies a statement and its receipt. Nothing of it is returned unless both hold.
pub fn verify_statement(bytes: &[u8], key: &VerifyingKey) -> Result<Verified, ReceiptFault> {
    let message = Message::read(bytes)?;
    let leaf = message.payload.as_bytes().map(str::from_utf8);
    let Some(Ok(leaf)) = leaf else {
        return Err(ReceiptFault::Malformed("the payload is not a record"));
    };
    message.check_protected(&record(leaf)?, key, Kind::Statement)?;
    message.check_signature("statement", leaf.as_bytes(), key)?;
    let receipts = message.only(label::RECEIPTS)?.as_array();
    let Some([Value::Bytes(receipt)]) = receipts else {
        return Err(ReceiptFault::Malformed("expected one receipt"));
    };
    verify_receipt(receipt, leaf, key)
}

/// Returns the public key of a log as PEM, in which other tools expect it.
pub fn public_key_pem(key: &VerifyingKey) -> String {
    // SubjectPublicKeyInfo of an Ed25519 key (RFC 8410): always the same bytes before the key.
    const SPKI: [u8; 12] = [
        0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
    ];
    let encoded = STANDARD.encode([SPKI.as_slice(), key.public_bytes()].concat());
    format!("-----BEGIN PUBLIC KEY-----\n{encoded}\n-----END PUBLIC KEY-----\n")
}

/// Returns the id of a key in COSE messages: its thumbprint (RFC 9679).
pub fn key_id(key: &VerifyingKey) -> [u8; 32] {
    let public = Value::Bytes(key.public_bytes().to_vec());
    let key = Value::map([
        (1, Value::integer(1)),
        (-1, Value::integer(6)),
        (-2, public),
    ]);
    Digest::of_bytes(&key.encode()).0
}

fn made_receipt(key: &SigningKey, proved: &Proved<'_>) -> Result<Value, ReceiptFault> {
    let leaf = leaf_hash(proved.leaf.as_bytes());
    let root = root_of_inclusion(&leaf, proved.index, proved.size, proved.hashes)?;
    let (size, index) = (proved.size, proved.index);
    let protected = Kind::Receipt { size, index }.protected(&key.verifying_key(), proved.id);
    let path = proved.hashes.iter().map(|hash| Value::Bytes(hash.to_vec()));
    let proof = Value::Array(vec![
        Value::Unsigned(proved.size),
        Value::Unsigned(proved.index),
        Value::Array(path.collect()),
    ]);
    let inclusion = Value::Array(vec![Value::Bytes(proof.encode())]);
    let proofs = Value::map([(label::INCLUSION, inclusion)]);
    let unprotected = Value::map([(label::PROOFS, proofs)]);
    let signature = key.sign_bytes(&to_be_signed(&protected, &root));
    Ok(sign1(protected, unprotected, Value::Null, signature))
}

/// Kind of a message.
#[derive(Clone, Copy)]
enum Kind {
    Statement,
    Receipt { size: u64, index: u64 },
}

impl Kind {
    /// Returns the encoded header that is signed.
    fn protected(self, key: &VerifyingKey, subject: &str) -> Vec<u8> {
        let issuer = (Value::integer(label::ISSUER), Value::text(key.name()));
        let subject = (Value::integer(label::SUBJECT), Value::text(subject));
        let (own, claims) = match self {
            Self::Statement => {
                let own = (label::CONTENT_TYPE, Value::text(CONTENT_TYPE));
                (own, Value::sorted([issuer, subject]))
            }
            Self::Receipt { size, index } => {
                let own = (label::STRUCTURE, Value::Unsigned(RFC9162_SHA256));
                let place = [size, index].map(Value::Unsigned);
                let place = (Value::text(PLACE), Value::Array(place.into()));
                (own, Value::sorted([issuer, subject, place]))
            }
        };
        let header = Value::map([
            (label::ALGORITHM, Value::integer(EDDSA)),
            (label::KEY_ID, Value::Bytes(key_id(key).to_vec())),
            (label::CLAIMS, claims),
            own,
        ]);
        header.encode()
    }
}

/// Returns the bytes that are signed: the `Sig_structure` of RFC 9052.
fn to_be_signed(protected: &[u8], payload: &[u8]) -> Vec<u8> {
    let structure = Value::Array(vec![
        Value::text("Signature1"),
        Value::Bytes(protected.to_vec()),
        Value::Bytes(Vec::new()),
        Value::Bytes(payload.to_vec()),
    ]);
    structure.encode()
}

fn sign1(protected: Vec<u8>, unprotected: Value, payload: Value, signature: Vec<u8>) -> Value {
    let parts = vec![
        Value::Bytes(protected),
        unprotected,
        payload,
        Value::Bytes(signature),
    ];
    Value::Tag(SIGN1, Box::new(Value::Array(parts)))
}

fn record(leaf: &str) -> Result<EvidenceRecord, ReceiptFault> {
    bundle::record_of(leaf).map_err(|_| ReceiptFault::Malformed("the payload is not a record"))
}

fn read_proof(bytes: &[u8]) -> Option<(u64, u64, Vec<Hash>)> {
    let proof = Value::decode(bytes)?;
    let [size, index, path] = proof.as_array()? else {
        return None;
    };
    let path = path.as_array()?.iter();
    let hashes: Option<Vec<Hash>> = path.map(|hash| hash.as_bytes()?.try_into().ok()).collect();
    Some((size.as_unsigned()?, index.as_unsigned()?, hashes?))
}

/// A message with one signature, taken apart.
struct Message {
    protected: Vec<u8>,
    unprotected: Value,
    payload: Value,
    signature: Vec<u8>,
}

impl Message {
    fn read(bytes: &[u8]) -> Result<Self, ReceiptFault> {
        let malformed = ReceiptFault::Malformed;
        if bytes.len() > STATEMENT_BYTES_MAX {
            return Err(malformed("it is too long"));
        }
        let value = Value::decode(bytes).ok_or(malformed("it is not deterministic CBOR"))?;
        let Value::Tag(SIGN1, parts) = value else {
            return Err(malformed("it is not a message with one signature"));
        };
        let parts = match *parts {
            Value::Array(parts) => <[Value; 4]>::try_from(parts).ok(),
            _ => None,
        };
        let Some(
            [
                Value::Bytes(protected),
                unprotected,
                payload,
                Value::Bytes(signature),
            ],
        ) = parts
        else {
            return Err(malformed("it does not have the four parts of a message"));
        };
        Ok(Self {
            protected,
            unprotected,
            payload,
            signature,
        })
    }

    /// The header has to be exactly the one that this key writes for the record: other parameters could change the
    /// meaning of the message.
    fn check_protected(
        &self,
        record: &EvidenceRecord,
        key: &VerifyingKey,
        kind: Kind,
    ) -> Result<(), ReceiptFault> {
        if self.protected == kind.protected(key, record.id.as_str()) {
            return Ok(());
        }
        let header = Value::decode(&self.protected);
        let named = header.as_ref().and_then(|header| {
            let claims = header.member(label::CLAIMS)?;
            let issuer = claims.member(label::ISSUER)?.as_text()?;
            Some((issuer, header.member(label::KEY_ID)?.as_bytes()?))
        });
        if named.is_some_and(|named| named != (key.name(), &key_id(key)[..])) {
            return Err(ReceiptFault::OtherKey);
        }
        Err(ReceiptFault::Malformed("its protected header is another"))
    }

    fn check_signature(
        &self,
        what: &'static str,
        payload: &[u8],
        key: &VerifyingKey,
    ) -> Result<(), ReceiptFault> {
        let signed = to_be_signed(&self.protected, payload);
        UnparsedPublicKey::new(&ED25519, key.public_bytes())
            .verify(&signed, &self.signature)
            .map_err(|_| ReceiptFault::WrongSignature(what))
    }

    /// Returns the unprotected parameter of this name, which has to be the only one.
    fn only(&self, name: i64) -> Result<&Value, ReceiptFault> {
        match (&self.unprotected, self.unprotected.member(name)) {
            (Value::Map(members), Some(value)) if members.len() == 1 => Ok(value),
            _ => Err(ReceiptFault::Malformed("its unprotected header is another")),
        }
    }
}

#[cfg(test)]
mod tests;
