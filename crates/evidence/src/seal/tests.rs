//! Sealed bytes only open in one place; pseudonyms of a user depend on the key and on the use.

use super::*;

/// RFC 8452, appendix C.2: a known answer of AES-256-GCM-SIV.
#[test]
fn the_cipher_gives_its_known_answer() {
    let mut key = [0; 32];
    key[0] = 1;
    let mut nonce = [0; 12];
    nonce[0] = 3;
    let mut aad = [0; 1];
    aad[0] = 1;
    let plain = hex::decode::<8>("0200000000000000").unwrap();
    let sealed = SealKey::new(&key).seal(nonce, &aad, &plain);
    let expected = "1de22967237a813291213f267e3b452f02d01ae33e4ec854";
    assert_eq!(
        hex::encode(&sealed),
        format!("01{}{expected}", hex::encode(&nonce))
    );
}

#[test]
fn every_altered_byte_is_refused() {
    let key = UserKey::from_bytes(&[7; 32]);
    let sealed = key.seal([1; 12], b"u1/ev_1", b"said");
    assert_eq!(sealed.len(), 4 + OVERHEAD_BYTES);
    assert_eq!(key.open(b"u1/ev_1", &sealed).unwrap().as_slice(), b"said");
    for at in 0..sealed.len() {
        let mut altered = sealed.clone();
        altered[at] ^= 1;
        assert!(key.open(b"u1/ev_1", &altered).is_err(), "byte {at}");
        assert!(key.open(b"u1/ev_1", &sealed[..at]).is_err(), "cut at {at}");
    }
    assert_eq!(
        key.open(b"u1/ev_2", &sealed).unwrap_err(),
        SealError::Refused
    );
    let other = UserKey::from_bytes(&[8; 32]);
    assert_eq!(
        other.open(b"u1/ev_1", &sealed).unwrap_err(),
        SealError::Refused
    );
    assert_eq!(
        key.open(b"", &[2; 29]).unwrap_err(),
        SealError::UnknownVersion { found: 2 }
    );
    assert_eq!(
        key.open(b"", &[1; 28]).unwrap_err(),
        SealError::TooShort { found: 28 }
    );
    assert!(
        key.open(b"", &key.seal([1; 12], b"", b""))
            .unwrap()
            .is_empty()
    );
}

/// One value under six uses and two keys has twelve pseudonyms, and each key an id of its own.
#[test]
fn names_depend_on_key_and_use() {
    let names = |secret: u8| {
        let key = UserKey::from_bytes(&[secret; 32]);
        let short = |digest: [u8; 32]| hex::encode(&digest)[..32].to_owned();
        [
            key.subject("v"),
            key.downstream_key("", "v"),
            short(key.fingerprint(b"v")),
            short(key.index(b"v")),
            short(key.key_digest("v")),
            key.chosen("", "v"),
            hex::encode(&key.id().0),
        ]
    };
    let all: std::collections::BTreeSet<String> = names(1).into_iter().chain(names(2)).collect();
    assert_eq!(all.len(), 14);
    assert!(all.iter().all(|name| name.len() == 32));
    assert_eq!(names(1), names(1));
    let key = UserKey::from_bytes(&[1; 32]);
    assert_ne!(key.downstream_key("a", "bc"), key.downstream_key("ab", "c"));
    assert_ne!(key.chosen("a", "bc"), key.chosen("ab", "c"));
    assert_eq!(format!("{key:?}"), "UserKey(..)");
}

/// The definition of the commitment, written out.
#[test]
fn a_commitment_is_the_hash_of_domain_salt_and_text() {
    let text = [
        b"countersign.dev/commit/data@v1\n".as_slice(),
        &[5; 32],
        b"{}",
    ]
    .concat();
    assert_eq!(
        commit(DOMAIN_DATA, &[5; 32], b"{}"),
        Digest::of_bytes(&text)
    );
}

/// A2: a request id that the caller chose is a keyed digest, the same for every look-up of that user.
#[test]
fn a_chosen_request_id_is_named_by_a_digest() {
    let name = |secret: u8, chosen: &str| {
        let key = UserKey::from_bytes(&[secret; 32]);
        let chosen = RequestId::new(chosen).unwrap();
        key.request_id(&chosen).to_string()
    };
    let first = name(1, "erika.mustermann.1");
    assert_eq!(first, name(1, "erika.mustermann.1"));
    assert_ne!(first, name(2, "erika.mustermann.1"));
    assert_ne!(first, name(1, "erika.mustermann.2"));
    let digits = first.strip_prefix(REQUEST_PREFIX).unwrap();
    assert_eq!(digits.len(), 32);
    assert!(digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
    let key = UserKey::from_bytes(&[1; 32]);
    assert_eq!(digits, key.chosen("request", "erika.mustermann.1"));
}

/// The definition of the salt of a value, written out; every value of a payload has its own.
#[test]
fn a_salt_is_derived_from_the_payload_and_the_domain() {
    let root = hmac::Key::new(hmac::HMAC_SHA256, &[5; 32]);
    let expected = hmac::sign(&root, b"countersign.dev/salt/raw@v1");
    assert_eq!(salt_of(&[5; 32], DOMAIN_RAW), expected.as_ref());
    let domains = [DOMAIN_ARGUMENTS, DOMAIN_DATA, DOMAIN_RAW, DOMAIN_SHOWN];
    let salts: std::collections::BTreeSet<_> =
        domains.map(|domain| salt_of(&[5; 32], domain)).into();
    assert_eq!(salts.len(), 4);
}
