//! Cosignatures of witnesses that other people wrote and run.

use super::*;
use crate::note::SigningKey;
use crate::tree::empty_root;

/// The checkpoint of the CT log `arche2025h1.staging.ct.transparency.dev` on 23 May 2026, with the cosignatures of four
/// witnesses of the public witness network, each run by another operator. The log's first line is a signature of RFC 6962, which is
/// of no kind that is read here.
const NOTE: &str = "arche2025h1.staging.ct.transparency.dev\n1432088532\n\
    U7WM79jrzyhGZ5/GUBTpM7NzwdyfFx61t3RovgcC4Ro=\n\n\
    \u{2014} arche2025h1.staging.ct.transparency.dev zTM8sQAAAZ5W0WdjBAMARjBEAiBjW5IQf9pvsYLfQFX6hoGREPMHbdQ3urbllzalApkptQIgIpwtEroeW2BXaHAI4kJXFbon5Ch9MNL5zRNZ55lvGt0=\n\
    \u{2014} arche2025h1.staging.ct.transparency.dev ui8GwCF1+kWqZrxGdhj4aX3gcw7XUlXQQabg/27lefwhUkzbC3NygNI75MdhL1bfTW9g8Ei59RA23oHP7Ry1k3ZFWwQ=\n\
    \u{2014} transparency.dev/DEV:witness-little-garden 2AQqhwAAAABqEiEgzgFIqqhbUoDwjMWE6UP8nd8/KYTzwZ2rhIgcqoXHAwVkjZr4AscylP3v7sEodkRAErumC2q44vdgJY096st5BQ==\n\
    \u{2014} witness1.smartit.nu/witness1 pIyCDwAAAABqEiEghIp82KWebrw7/oHQwlTAm3g2RKS4+eebl8eO0WH+/iEcxZ75W3u5hNI7TOQtmJbqmNWVuE0tgh0XwzdZsDsUAQ==\n\
    \u{2014} remora.n621.de 2net5wAAAABqEiEgPlfF3V06o0Y+fHM+J5J9s27wgxxcOVSpZ/2g/KSiXCg9DEZI+aVCIobWX9sXTynk5XeU/zZ0WBxtqB0DrAWfBw==\n\
    \u{2014} witness.stagemole.eu Z/euoAAAAABqEiEgw0i+7g2ENfDAWHmtRzCfKTHSDwYDJA2NmKeGi9Y8FtEyOUvVr+AJmIY/2TUFucgKi7lI7cUiOvKFYe/TmN9DAg==\n";

/// The keys that the operators of these witnesses publish on their own pages.
const KEYS: [&str; 4] = [
    "transparency.dev/DEV:witness-little-garden+d8042a87+BCtusOxINQNUTN5Oj8HObRkh2yHf/MwYaGX4CPdiVEPM",
    "witness1.smartit.nu/witness1+a48c820f+BPSFWg9G6KPiO7QPryYO5Xq4oYJJ+kAvLKLSimDhoxMO",
    "remora.n621.de+da77ade7+BOvN63jn/bLvkieywe8R6UYAtVtNbZpXh34x7onlmtw2",
    "witness.stagemole.eu+67f7aea0+BEqSG3yu9YrmcM3BHvQYTxwFj3uSWakQepafafpUqklv",
];
const LOG_KEY: &str =
    "arche2025h1.staging.ct.transparency.dev+ba2f06c0+AU0vHmlGCS/PdN8b2OaGmKprLI8HKM+dJ472xgFYh15f";

/// Key and checkpoint of an ML-DSA-44 cosigner: `cmd/litewitness/testdata/mldsa.txt` of
/// <https://github.com/FiloSottile/torchwood> at fac5716.
const ML_DSA_KEY: &str = include_str!("vectors/mldsa-log.key");
const ML_DSA_NOTE: &str = include_str!("vectors/mldsa-log.note");

fn refused(key: &WitnessKey, note: &str) -> bool {
    Note::parse(note).is_ok_and(|note| key.verify(&note).is_err())
}

#[test]
fn cosignatures_of_public_witnesses_are_verified() {
    let note = Note::parse(NOTE).unwrap();
    assert_eq!(note.to_string(), NOTE);
    assert_eq!(note.verify(&LOG_KEY.parse().unwrap()), Ok(()));
    for text in KEYS {
        let key: WitnessKey = text.parse().unwrap();
        assert_eq!(key.to_string(), text);
        assert_eq!(key.verify(&note), Ok(1_779_573_024), "{text}");
        for (from, to) in [("1432088532", "1432088533"), ("U7WM", "U7WN")] {
            assert!(refused(&key, &NOTE.replace(from, to)), "{text}: {from}");
        }
        // The time is signed as well.
        assert!(refused(&key, &NOTE.replace("qEiEg", "qEiEh")), "{text}");
    }
}

#[test]
fn a_cosignature_of_ml_dsa_is_verified() {
    let key: WitnessKey = ML_DSA_KEY.trim().parse().unwrap();
    assert_eq!(key.to_string(), ML_DSA_KEY.trim());
    assert_eq!(key.verify(&Note::parse(ML_DSA_NOTE).unwrap()), Ok(0));
    for (from, to) in [
        ("mldsa-log\n1\n", "mldsa-log\n2\n"),
        ("example.com/mldsa-log\n1", "example.org/mldsa-log\n1"),
        ("+zoE", "+zoF"),
        ("td9FxQAAAAAAAAAA", "td9FxQAAAAAAAAAB"),
        ("kjFvCxC6", "kjFvCxC7"),
    ] {
        assert!(refused(&key, &ML_DSA_NOTE.replacen(from, to, 1)), "{from}");
    }
}

/// A key of a log, a kind that is not known and a changed key are no keys of a witness.
#[test]
fn keys_have_one_spelling() {
    assert_eq!(LOG_KEY.parse::<WitnessKey>(), Err(InvalidWitnessKey));
    let text = KEYS[2];
    for at in 0..text.len() {
        let mut altered = text.as_bytes().to_vec();
        altered[at] ^= 1;
        let altered = String::from_utf8(altered).unwrap();
        assert!(altered.parse::<WitnessKey>().is_err(), "{altered}");
        assert!(text[..at].parse::<WitnessKey>().is_err());
    }
}

/// The seed of a published witness gives its published key: `witness_key.pem` of the file above has both.
#[test]
fn the_key_of_a_seed_is_known_and_its_cosignature_verifies() {
    let seed =
        crate::hex::decode("6a9507533d490db294526b2e82f69b7408904f7ca64a1509a1ef4fa58449ea3b")
            .unwrap();
    let witness = Cosigner::from_seed("example.com/witness", &seed).unwrap();
    let public = "c79d9041ab96b82d4638a9c0d870d789d58fcdf3c8e9f0c49cd0ebc1d5b76837";
    assert_eq!(crate::hex::encode(witness.key().bytes()), public);

    let log = SigningKey::from_seed("example.com/log", &[7; 32]).unwrap();
    let mut checkpoint = Checkpoint::new("example.com/log", 0, empty_root());
    checkpoint.extensions.push("an extension".to_owned());
    let mut note = Note::parse(&checkpoint.sign(&log).unwrap()).unwrap();
    let not_signed = NoteError::NotSigned {
        name: "example.com/witness".to_owned(),
    };
    assert_eq!(witness.key().verify(&note), Err(not_signed.into()));
    for time in [5, 9, 7] {
        let cosignature = witness.cosign(&note.text, time).unwrap();
        note.signatures.push(cosignature);
    }
    assert_eq!(witness.key().verify(&note), Ok(9));
    // A witness makes no statement about a text that is no checkpoint, and a log's key is no witness's key.
    assert!(witness.cosign("no checkpoint\n", 5).is_err());
    let same = SigningKey::from_seed("example.com/witness", &seed).unwrap();
    assert!(note.verify(&same.verifying_key()).is_err());
    // One wrong line of the same key is enough.
    let mut wrong = note.signatures.last().unwrap().clone();
    wrong.bytes[0] ^= 0x80;
    note.signatures.push(wrong);
    assert!(witness.key().verify(&note).is_err());
}
