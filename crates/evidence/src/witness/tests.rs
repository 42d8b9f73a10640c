//! Requests that another implementation wrote, and its cases.

use super::*;
use crate::cosignature::Cosigner;
use crate::note::SigningKey;
use crate::tree::leaf_hash;

/// Requests of `TestRace` in `internal/witness/witness_test.go` of <https://github.com/FiloSottile/torchwood> at 1cadf59:
/// trees of 1, 3 and 5 leaves of a sigsum log.
const ORIGIN: &str =
    "sigsum.org/v1/tree/4d6d8825a6bb689d459628312889dfbb0bcd41b5211d9e1ce768b0ff0309e562";
const LOG: &str = "ffdc2d4d98e4124d3feaf788c0c2f9abfd796083d1f0495437f302ec79cf100f";
const ONE: &str = "old 0\n\n\
    sigsum.org/v1/tree/4d6d8825a6bb689d459628312889dfbb0bcd41b5211d9e1ce768b0ff0309e562\n1\n\
    KgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\n\
    \u{2014} sigsum.org/v1/tree/4d6d8825a6bb689d459628312889dfbb0bcd41b5211d9e1ce768b0ff0309e562 UgIom7fPZTqpxWWhyjWduBvTvGVqsokMbqTArsQilegKoFBJQjUFAmQ0+YeSPM3wfUQMFSzVnnNuWRTYrajXpNUbIQY=\n";
const THREE: &str = "old 1\n\
    KgEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\
    KgIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\n\
    sigsum.org/v1/tree/4d6d8825a6bb689d459628312889dfbb0bcd41b5211d9e1ce768b0ff0309e562\n3\n\
    RcCI1Nk56ZcSmIEfIn0SleqtV7uvrlXNccFx595Iwl0=\n\n\
    \u{2014} sigsum.org/v1/tree/4d6d8825a6bb689d459628312889dfbb0bcd41b5211d9e1ce768b0ff0309e562 UgIom2VbtIcdFbwFAy1n7s6IkAxIY6J/GQOTuZF2ORV39d75cbAj2aQYwyJre36kezNobZs4SUUdrcawfAB8WVrx6go=\n";
const FIVE: &str = "old 1\n\
    KgEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\
    +fUDV+k970B4I3uKrqJM4aP1lloPZP8mvr2Z4wRw2LI=\n\
    KgQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\n\
    sigsum.org/v1/tree/4d6d8825a6bb689d459628312889dfbb0bcd41b5211d9e1ce768b0ff0309e562\n5\n\
    QrtXrQZCCvpIgsSmOsah7HdICzMLLyDfxToMql9WTjY=\n\n\
    \u{2014} sigsum.org/v1/tree/4d6d8825a6bb689d459628312889dfbb0bcd41b5211d9e1ce768b0ff0309e562 UgIomw/EOJmWi0i1FQsOj+etB7F8IccFam/jgd6wzRns4QPVmyEZtdvl1U2KEmLOZ/ASRcWJi0tW90dJWAShei7sDww=\n";

fn log_key() -> VerifyingKey {
    VerifyingKey::new(ORIGIN, crate::hex::decode(LOG).unwrap()).unwrap()
}

#[test]
fn requests_of_another_implementation_are_answered_as_it_answers_them() {
    let key = log_key();
    let [one, three, five] = [ONE, THREE, FIVE].map(|text| {
        let request: AddCheckpoint = text.parse().unwrap();
        assert_eq!(
            (request.to_string(), request.origin()),
            (text.to_owned(), ORIGIN)
        );
        request
    });
    let first = one.check(&key, None).unwrap();
    assert_eq!(first.size, 1);
    assert_eq!(three.check(&key, Some(&first)).unwrap().size, 3);
    let latest = five.check(&key, Some(&first)).unwrap();
    assert_eq!(
        crate::hex::encode(&latest.root),
        "42bb57ad06420afa4882c4a63ac6a1ec77480b330b2f20dfc53a0caa5f564e36"
    );
    // The race: the smaller tree comes second, and nothing is rolled back.
    let refused = three.check(&key, Some(&latest)).unwrap_err();
    assert_eq!(
        (&refused, refused.status()),
        (&Refusal::OtherSize { known: 5 }, 409)
    );
    assert!(!refused.is_fork());
    // The same requests with the proofs exchanged prove nothing.
    let swapped = AddCheckpoint {
        proof: five.proof.clone(),
        ..three.clone()
    };
    let refused = swapped.check(&key, Some(&first)).unwrap_err();
    assert_eq!((refused.status(), refused.is_fork()), (422, true));
}

/// `TestTooManyProofs` of the same file, and other texts that are almost requests.
#[test]
fn what_is_no_request_is_refused() {
    let hash = "KgEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n";
    let (_, note) = ONE.split_once("\n\n").unwrap();
    let most = format!("old 0\n{}\n{note}", hash.repeat(63));
    assert_eq!(most.parse::<AddCheckpoint>().unwrap().proof.len(), 63);
    for text in [
        format!("old 0\n{}\n{note}", hash.repeat(64)),
        format!("old 00\n\n{note}"),
        format!("old +0\n\n{note}"),
        format!("old -1\n\n{note}"),
        format!("old\n\n{note}"),
        format!("size 0\n\n{note}"),
        format!("old 0\nKgE=\n\n{note}"),
        format!("old 0\n\n{}", note.trim_end()),
        format!("old 0\n{note}"),
        "old 0\n\n".to_owned(),
        String::new(),
        format!("{ONE}{}", "a".repeat(REQUEST_BYTES_MAX)),
    ] {
        let refused = text.parse::<AddCheckpoint>().unwrap_err();
        assert_eq!(refused.status(), 400, "{text}");
    }
}

/// The cases of `TestZeroSize` in the same file, and those that the protocol names.
#[test]
fn statuses_are_those_of_the_protocol() {
    let log = SigningKey::from_seed("example.com/log", &[7; 32]).unwrap();
    let leaf = leaf_hash(b"leaf");
    let known = Checkpoint::new("example.com/log", 1, leaf);
    let ask = |key: &VerifyingKey, known: Option<&Checkpoint>, old, size, root, proof: &[Hash]| {
        let note = Checkpoint::new("example.com/log", size, root);
        let request = AddCheckpoint {
            old_size: old,
            proof: proof.to_vec(),
            note: Note::parse(&note.sign(&log).unwrap()).unwrap(),
        };
        request
            .check(key, known)
            .map_err(|refusal| refusal.status())
    };
    let key = log.verifying_key();
    let empty = empty_root();
    assert!(ask(&key, None, 0, 0, empty, &[]).is_ok());
    assert!(ask(&key, None, 0, 1, leaf, &[]).is_ok());
    assert!(ask(&key, Some(&known), 1, 1, leaf, &[]).is_ok());
    for (status, known, old, size, root, proof) in [
        (422, None, 0, 0, leaf, vec![]),
        (422, None, 0, 0, [0; 32], vec![]),
        (422, None, 0, 0, empty, vec![leaf]),
        (422, None, 0, 1, leaf, vec![leaf]),
        (409, Some(&known), 0, 1, leaf, vec![leaf]),
        (400, Some(&known), 1, 0, empty, vec![]),
        (409, Some(&known), 1, 1, [1; 32], vec![]),
        (422, Some(&known), 1, 2, [1; 32], vec![leaf]),
        (422, Some(&known), 1, 1, leaf, vec![leaf]),
    ] {
        let found = ask(&key, known, old, size, root, &proof);
        assert_eq!(found, Err(status), "{old} to {size}");
    }
    let other = SigningKey::from_seed("example.com/log", &[8; 32]).unwrap();
    assert_eq!(ask(&other.verifying_key(), None, 0, 1, leaf, &[]), Err(403));
    // A witness's own key signs for no log.
    let witness = Cosigner::from_seed("example.com/log", &[7; 32]).unwrap();
    assert_ne!(witness.key().key_id(), key.key_id());
}
