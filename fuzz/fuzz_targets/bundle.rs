//! A bundle that was tampered with is refused or means the same; reading one never panics.

#![no_main]

use countersign_contract::canonical;
use countersign_evidence::bundle::{Bundle, Opened, Value, Verdict};
use countersign_evidence::checkpoint::Checkpoint;
use countersign_evidence::note::{Note, VerifyingKey};
use countersign_evidence::tile::{TilePath, decode_entries};
use libfuzzer_sys::fuzz_target;

/// Valid bundles: with everything opened, grown from an older checkpoint, and with records of version 2.
const BUNDLES: [&str; 3] = [
    include_str!("../../docs/evidence-vectors/bundles/valid-opened.json"),
    include_str!("../../docs/evidence-vectors/bundles/held-grown.json"),
    include_str!("../../docs/evidence-vectors/bundles/v2-valid-opened.json"),
];

fuzz_target!(|data: &[u8]| {
    // The input as it is.
    if let Ok(bundle) = Bundle::parse(data) {
        let report = bundle.verify(None, Some(&bundle.checkpoint));
        let expected = match report.findings.is_empty() {
            true => Verdict::Consistent,
            false => Verdict::Invalid,
        };
        assert_eq!(report.verdict, expected);
        // What was read is what is written.
        assert_eq!(Bundle::parse(bundle.to_json()).as_ref(), Ok(&bundle));
    }
    let _ = decode_entries(data);
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = (Note::parse(text), text.parse::<VerifyingKey>());
        let _ = text.parse::<Checkpoint>();
        if let Ok(path) = text.parse::<TilePath>() {
            assert_eq!(path.to_string(), text);
        }
    }

    // The input as a patch: which bundle, where, how much of it goes, and what comes instead.
    let Some(([which, high, low, cut], patch)) = data.split_first_chunk() else {
        return;
    };
    let bundle = BUNDLES[usize::from(*which) % BUNDLES.len()];
    let at = usize::from(u16::from_be_bytes([*high, *low])) % bundle.len();
    let end = (at + usize::from(*cut)).min(bundle.len());
    let bytes = bundle.as_bytes();
    let patched = [&bytes[..at], patch, &bytes[end..]].concat();
    let Ok(read) = Bundle::parse(&patched) else {
        return;
    };
    let key: VerifyingKey = Bundle::parse(bundle)
        .expect("it is valid")
        .public_key
        .parse()
        .expect("it is valid");
    if read.verify(Some(&key), None).is_valid() {
        // What is optional may be left out; what is there is what was there.
        let (mut read, mut original) = (read, Bundle::parse(bundle).expect("it is valid"));
        if read.earlier.is_none() {
            original.earlier = None;
        }
        for (read, original) in read.records.iter_mut().zip(&mut original.records) {
            if read.payload.is_none() {
                original.payload = None;
            }
            let (kept, opened) = (said(&read.opened), said(&original.opened));
            for (kept, opened) in kept.iter().zip(opened) {
                assert!(kept.is_none() || *kept == opened, "{kept:?}");
            }
            (read.opened, original.opened) = (None, None);
        }
        let meaning = |bundle: &Bundle| canonical::from_json_text(&bundle.to_json());
        assert_eq!(meaning(&read), meaning(&original));
    }
});

/// Returns the opened content: salts and committed texts. A value and the text of its canonical form mean the same.
fn said(opened: &Option<Opened>) -> [Option<(String, String)>; 4] {
    Value::ALL.map(|value| {
        let opening = opened.as_ref()?.of(value)?;
        let text = match (&opening.value, &opening.text) {
            (Some(value), _) => canonical::to_string(value).expect("it was read from such a text"),
            (None, text) => text.clone().unwrap_or_default(),
        };
        Some((opening.salt.clone(), text))
    })
}
