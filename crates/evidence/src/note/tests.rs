//! Notes of other implementations, and texts that are almost notes.

use super::*;

/// The checkpoint of the Go checksum database on 23 September 2024, and its key.
const SUMDB_KEY: &str = "sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8";
const SUMDB_NOTE: &str = "go.sum database tree\n30055305\n\
    mXfgRcJ0bG0j3CPdKwgGWtUzBUbX67saZGRmFuJGGsM=\n\n\
    \u{2014} sum.golang.org Az3grpgEild5qw7+5dtV13Kf1C2Xurm8q4fhdxvcsDHnqNTaxL2AFjBY+2TyGKevucFcAAlWFJJYle3EJlDCrQ+y3A8=\n";

/// The key and the note of the C2SP signed-note example.
const FOO_KEY: &str = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k";
const FOO_NOTE: &str = "This is an example message.\n\n\
    \u{2014} example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n";

fn key(name: &str) -> SigningKey {
    SigningKey::from_seed(name, &[7; 32]).unwrap()
}

#[test]
fn notes_of_others_are_understood() {
    for (text, note) in [(SUMDB_KEY, SUMDB_NOTE), (FOO_KEY, FOO_NOTE)] {
        let key: VerifyingKey = text.parse().unwrap();
        assert_eq!(key.to_string(), text);
        assert_eq!(Note::parse(note).unwrap().verify(&key), Ok(()));
        let altered = Note::parse(&note.replacen('a', "b", 1)).unwrap();
        let name = key.name().to_owned();
        assert_eq!(
            altered.verify(&key),
            Err(NoteError::WrongSignature { name })
        );
    }
}

/// RFC 8032, section 7.1, test 1: the key of this seed.
#[test]
fn the_key_of_a_seed_is_known() {
    let seed =
        hex::decode("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60").unwrap();
    let key = SigningKey::from_seed("a", &seed).unwrap().verifying_key();
    let public = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
    assert_eq!(hex::encode(key.public_bytes()), public);
}

/// A witness adds its line; neither side has to know the other.
#[test]
fn signatures_of_others_are_kept_and_ignored() {
    let (log, witness) = (key("log"), key("witness"));
    let note = log.sign("text\n").unwrap();
    let line = witness.sign("text\n").unwrap().replace("text\n\n", "");
    let both = Note::parse(&format!("{note}{line}")).unwrap();
    assert_eq!(both.signatures.len(), 2);
    assert_eq!(both.verify(&log.verifying_key()), Ok(()));
    assert_eq!(both.verify(&witness.verifying_key()), Ok(()));
    let name = "other".to_owned();
    assert_eq!(
        both.verify(&key("other").verifying_key()),
        Err(NoteError::NotSigned { name })
    );
    // The same name with another key is another signer.
    let other = SigningKey::from_seed("log", &[8; 32])
        .unwrap()
        .verifying_key();
    assert!(matches!(
        both.verify(&other),
        Err(NoteError::NotSigned { .. })
    ));
    // A second line of the log must be valid as well.
    let line = log
        .sign("other text\n")
        .unwrap()
        .replace("other text\n\n", "");
    let twice = Note::parse(&format!("{note}{line}")).unwrap();
    assert!(matches!(
        twice.verify(&log.verifying_key()),
        Err(NoteError::WrongSignature { .. })
    ));
}

#[test]
fn what_is_nearly_a_note_is_refused() {
    let line = "\u{2014} log AAAAAAA=\n";
    assert!(Note::parse(&format!("a\n\nb\n\n{line}{line}")).is_ok());
    for note in [
        String::new(),
        "a\n".to_owned(),
        format!("a\n{line}"),
        format!("a\n\n{line}\n"),
        format!("a\n\n{}", line.trim_end()),
        format!("a\r\n\n{line}"),
        format!("a\u{1b}\n\n{line}"),
        "a\n\n- log AAAAAAA=\n".to_owned(),
        "a\n\n\u{2014} log AAAAAA==\n".to_owned(),
        "a\n\n\u{2014} log AAAAAAB=\n".to_owned(),
        "a\n\n\u{2014} log AAAAAAA\n".to_owned(),
        "a\n\n\u{2014} log\n".to_owned(),
        "a\n\n\u{2014} l+g AAAAAAA=\n".to_owned(),
        format!("a\n\n{}", line.repeat(SIGNATURES_MAX + 1)),
        format!("{}\n\n{line}", "a".repeat(NOTE_BYTES_MAX)),
    ] {
        assert!(Note::parse(&note).is_err(), "{note:?}");
    }
    for text in ["no newline", "tab\t\n"] {
        assert!(
            matches!(key("log").sign(text), Err(NoteError::Malformed(_))),
            "{text:?}"
        );
    }
}

#[test]
fn keys_and_names_have_one_spelling() {
    for at in 0..FOO_KEY.len() {
        let mut altered = FOO_KEY.as_bytes().to_vec();
        altered[at] ^= 1;
        let altered = String::from_utf8(altered).unwrap();
        assert!(altered.parse::<VerifyingKey>().is_err(), "{altered}");
        assert!(FOO_KEY[..at].parse::<VerifyingKey>().is_err());
    }
    for name in ["", "a b", "a+b", "a\nb", "a\u{2003}b", "a\u{7f}"] {
        assert_eq!(
            SigningKey::from_seed(name, &[7; 32]).unwrap_err(),
            NoteError::InvalidName(name.to_owned())
        );
    }
    assert!(!format!("{:?}", key("log")).contains("07070707"));
}
