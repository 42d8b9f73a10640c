//! Any text as a model's answer with calls in it, whole and character by character: read or refused, never more.

#![no_main]

use countersign::dialect::written::{TextFormat, TextStream, read};
use countersign::dialect::{CALLS_MAX, Dialect, Provenance};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(written) = read(text, None) {
        assert!(written.calls.len() <= CALLS_MAX);
        assert!(written.prose.len() <= text.len());
        // Nothing is made up: a call's name and arguments stand in the text, unless they were encoded there.
        for call in &written.calls {
            let is_sent = call.arguments.provenance == Provenance::AsSent && !text.contains('\\');
            assert!(!is_sent || text.contains(&call.arguments.text), "{call:?}");
            assert!(text.contains('\\') || text.contains(&call.name), "{call:?}");
        }
        // What was read can be written down and read again.
        let message = Dialect::Text.message("", &written.calls);
        if let Ok(again) = Dialect::Text.calls_in(&message) {
            assert_eq!(again.len(), written.calls.len());
        }
    }
    for format in TextFormat::ALL {
        let _ = read(text, Some(format));
    }
    let mut stream = TextStream::new(None);
    for (at, _) in text.char_indices() {
        stream.advance(&text[..at]);
    }
});
