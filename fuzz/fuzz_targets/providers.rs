//! Any text as a provider's message and, line by line, as its stream: read or refused, never more.

#![no_main]

use countersign::dialect::{CALLS_MAX, Dialect, MESSAGE_BYTES_MAX};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for dialect in Dialect::ALL {
        if let Ok(calls) = dialect.calls(text) {
            assert!(calls.len() <= CALLS_MAX);
            // What was read can be written down and read again.
            let message = dialect.message("", &calls);
            if let Ok(again) = dialect.calls_in(&message) {
                assert_eq!(again.len(), calls.len());
            }
        }
        let mut stream = dialect.stream();
        if text.lines().any(|line| stream.push(line).is_err()) {
            continue;
        }
        if let Ok(end) = stream.finish() {
            let bytes: usize = end.calls.iter().map(|call| call.arguments.text.len()).sum();
            assert!(bytes <= MESSAGE_BYTES_MAX + 2 * CALLS_MAX);
        }
    }
});
