//! A recording is read or refused with a place, never with a panic; what is read is what is written, and can be played.

#![no_main]

use countersign::contract::Digest;
use countersign::recording::Player;
use countersign_contract::recording::Recording;
use libfuzzer_sys::fuzz_target;

/// A recording with a masked call, an error and a dry run.
const VALID: &str = include_str!("../../docs/examples/recording.jsonl");

fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        check(text);
    }
    // The input as a patch: where, how much of it goes, and what comes instead.
    let Some(([high, low, cut], patch)) = data.split_first_chunk() else {
        return;
    };
    let at = usize::from(u16::from_be_bytes([*high, *low])) % VALID.len();
    let end = (at + usize::from(*cut)).min(VALID.len());
    let bytes = VALID.as_bytes();
    let patched = [&bytes[..at], patch, &bytes[end..]].concat();
    if let Ok(text) = std::str::from_utf8(&patched) {
        check(text);
    }
});

fn check(text: &str) {
    match Recording::parse(text) {
        Err(misread) => {
            assert!(misread.line >= 1 && misread.column >= 1);
            assert!(misread.line <= text.lines().count() + 1);
        }
        Ok(recording) => {
            let again = recording.to_text();
            assert_eq!(Recording::parse(&again).as_ref(), Ok(&recording));
            let calls = recording.calls.len() as u64;
            let player = Player::new(recording, Digest::of_bytes(again.as_bytes()));
            assert_eq!(player.counts().unused, calls);
        }
    }
}
