//! Receipts and statements: what is made is verified, and what is altered is not.

use countersign_contract::evidence::RecordKind;
use countersign_contract::{SnapshotId, canonical};

use super::*;
use crate::hex;
use crate::tile::{TileMap, TileWriter};
use crate::tree;

const NAME: &str = "example.com/log";

fn key() -> SigningKey {
    SigningKey::from_seed(NAME, &[7; 32]).unwrap()
}

fn id(index: usize) -> String {
    format!("ev_{index}")
}

fn leaf(index: usize) -> String {
    let id = SnapshotId::new(id(index)).unwrap();
    let record = EvidenceRecord::new(RecordKind::Config, id, "2026-11-15T12:00:00Z");
    canonical::to_string(&serde_json::to_value(&record).unwrap()).unwrap()
}

/// A log of this many records, as its tiles and root.
fn log(size: usize) -> (TileMap, Hash) {
    let hashes: Vec<Hash> = (0..size)
        .map(|index| leaf_hash(leaf(index).as_bytes()))
        .collect();
    let mut writer = TileWriter::new();
    let tiles = writer.append(&hashes).into_iter().collect();
    (tiles, writer.frontier().root())
}

fn with_proved<T>(index: usize, size: usize, then: impl FnOnce(&Proved<'_>) -> T) -> T {
    let (tiles, _) = log(size);
    let hashes = tree::inclusion_proof(index as u64, size as u64, &tiles).unwrap();
    then(&Proved {
        leaf: &leaf(index),
        id: &id(index),
        index: index as u64,
        size: size as u64,
        hashes: &hashes,
    })
}

#[test]
fn every_record_of_every_log_is_proved() {
    for size in 1..=9 {
        for index in 0..size {
            let made = with_proved(index, size, |proved| statement(&key(), proved).unwrap());
            let verified = verify_statement(&made, &key().verifying_key()).unwrap();
            assert_eq!(verified.record.id.as_str(), id(index));
            assert_eq!((verified.index, verified.size), (index as u64, size as u64));
            assert_eq!(verified.root, log(size).1);
        }
    }
}

/// The bytes of a receipt are the same each time, and are those of the standards.
#[test]
fn a_receipt_has_one_spelling() {
    let made = with_proved(1, 2, |proved| receipt(&key(), proved).unwrap());
    let again = with_proved(1, 2, |proved| receipt(&key(), proved).unwrap());
    assert_eq!(made, again);
    let (protected, rest) = (kid_and_claims(), hex::encode(&made));
    // Tag 18, four parts, the protected header.
    assert!(rest.starts_with(&format!("d28458{:02x}{protected}", protected.len() / 2)));
    // The proofs: 396 → { -1 → [ [2, 1, [the sibling]] ] }; the root is detached.
    let sibling = hex::encode(&leaf_hash(leaf(0).as_bytes()));
    let proofs = format!("a119018ca120815826830201815820{sibling}f65840");
    assert!(rest.contains(&proofs), "{rest}");
}

fn kid_and_claims() -> String {
    let name = hex::encode(NAME.as_bytes());
    let kid = hex::encode(&key_id(&key().verifying_key()));
    let place = hex::encode(PLACE.as_bytes());
    format!("a40127045820{kid}0fa3016f{name}026465765f3175{place}82020119018b01")
}

#[test]
fn every_flipped_bit_is_caught() {
    let made = with_proved(4, 7, |proved| statement(&key(), proved).unwrap());
    for at in 0..made.len() {
        for bit in 0..8 {
            let mut altered = made.clone();
            altered[at] ^= 1 << bit;
            let verified = verify_statement(&altered, &key().verifying_key());
            assert!(verified.is_err(), "bit {bit} of byte {at}");
        }
    }
}

/// Another place in the tree can lead to the same root, so the place is signed as well.
#[test]
fn another_place_with_the_same_root_is_caught() {
    let fold = |index, size| {
        with_proved(4, 5, |proved| {
            root_of_inclusion(
                &leaf_hash(proved.leaf.as_bytes()),
                index,
                size,
                proved.hashes,
            )
        })
    };
    assert_eq!(fold(4, 5), fold(1, 2));
    let made = with_proved(4, 5, |proved| receipt(&key(), proved).unwrap());
    let Some(Value::Tag(SIGN1, message)) = Value::decode(&made) else {
        panic!("not a message");
    };
    let Value::Array(mut parts) = *message else {
        panic!("not four parts");
    };
    let proof = with_proved(4, 5, |proved| {
        Value::Array(vec![
            Value::Unsigned(2),
            Value::Unsigned(1),
            Value::Array(vec![Value::Bytes(proved.hashes[0].to_vec())]),
        ])
    });
    let inclusion = Value::Array(vec![Value::Bytes(proof.encode())]);
    let proofs = Value::map([(label::INCLUSION, inclusion)]);
    parts[1] = Value::map([(label::PROOFS, proofs)]);
    let altered = Value::Tag(SIGN1, Box::new(Value::Array(parts))).encode();
    let verified = verify_receipt(&altered, &leaf(4), &key().verifying_key());
    assert_eq!(
        verified,
        Err(ReceiptFault::Malformed("its protected header is another"))
    );
}

#[test]
fn another_key_and_another_record_are_refused() {
    let made = with_proved(1, 3, |proved| statement(&key(), proved).unwrap());
    let other = SigningKey::from_seed(NAME, &[8; 32])
        .unwrap()
        .verifying_key();
    assert_eq!(verify_statement(&made, &other), Err(ReceiptFault::OtherKey));
    let made = with_proved(1, 3, |proved| receipt(&key(), proved).unwrap());
    let verified = verify_receipt(&made, &leaf(2), &key().verifying_key());
    assert!(verified.is_err(), "{verified:?}");
    let made = with_proved(1, 3, |proved| {
        let wrong = Proved {
            index: 3,
            ..*proved
        };
        receipt(&key(), &wrong)
    });
    assert!(
        matches!(made, Err(ReceiptFault::NotIncluded(_))),
        "{made:?}"
    );
}

/// The form that `openssl pkey -pubin` reads.
#[test]
fn the_key_is_written_as_pem() {
    let key = VerifyingKey::new(NAME, [0; 32]).unwrap();
    assert_eq!(
        public_key_pem(&key),
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n-----END PUBLIC KEY-----\n"
    );
}

/// RFC 9679: the digest of the required members, sorted.
#[test]
fn the_id_of_a_key_is_its_thumbprint() {
    let public = hex::decode("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
    let key = VerifyingKey::new(NAME, public.unwrap()).unwrap();
    let expected = Digest::of_bytes(
        &[
            &[0xa3, 0x01, 0x01, 0x20, 0x06, 0x21, 0x58, 0x20][..],
            key.public_bytes(),
        ]
        .concat(),
    );
    assert_eq!(key_id(&key), expected.0);
}
