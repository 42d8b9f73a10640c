//! Answers of witnesses, right and wrong.

use countersign_evidence::checkpoint::Checkpoint;
use countersign_evidence::cosignature::Cosigner;
use countersign_evidence::note::SigningKey;

use super::*;

fn note(size: u64) -> String {
    let log = SigningKey::from_seed("example.com/log", &[7; 32]).unwrap();
    Checkpoint::new("example.com/log", size, [3; 32])
        .sign(&log)
        .unwrap()
}

fn line(seed: u8, note: &str) -> String {
    let witness = Cosigner::from_seed("witness.example/w1", &[seed; 32]).unwrap();
    let text = &Note::parse(note).unwrap().text;
    witness.cosign(text, 1_800_000_000).unwrap().to_string()
}

fn witnesses() -> Witnesses {
    let witness = Cosigner::from_seed("witness.example/w1", &[8; 32]).unwrap();
    Witnesses::new([("http://w.example/".to_owned(), witness.key().clone())])
}

/// The cosignature of the configured key is taken; others in the answer are left out, and it is served with its own
/// checkpoint only.
#[test]
fn a_cosignature_is_served_with_its_checkpoint() {
    let (two, three) = (note(2), note(3));
    let witnesses = witnesses();
    let asked = &witnesses.0[0];
    assert_eq!(asked.url, "http://w.example/add-checkpoint");
    let answer = format!("{}{}", line(9, &two), line(8, &two));
    asked.take(Note::parse(&two).unwrap(), &answer, 2).unwrap();
    assert_eq!(witnesses.states()[0].size, 2);
    assert_eq!(
        witnesses.cosigned(two.clone()),
        format!("{two}{}", line(8, &two))
    );
    assert_eq!(witnesses.cosigned(three.clone()), three);
}

#[test]
fn an_answer_without_a_valid_cosignature_is_refused() {
    let (two, three) = (note(2), note(3));
    let plain = SigningKey::from_seed("witness.example/w1", &[8; 32]).unwrap();
    let text = Note::parse(&two).unwrap().text;
    let plain = plain.sign(&text).unwrap().replace(&format!("{text}\n"), "");
    for answer in [
        String::new(),
        "ok\n".to_owned(),
        line(9, &two),
        line(8, &three),
        plain,
        line(8, &two).trim_end().to_owned(),
    ] {
        let witnesses = witnesses();
        let taken = witnesses.0[0].take(Note::parse(&two).unwrap(), &answer, 2);
        assert!(matches!(taken, Err(Trouble::Silent(_))), "{answer}");
        assert_eq!(witnesses.states()[0].size, 0);
        assert_eq!(witnesses.cosigned(two.clone()), two);
    }
}
