//! Any text is an OpenAPI document or not: reading it never panics, every operation is a tool or refused, and the configuration that is
//! written can be read and used.

#![no_main]

use countersign_upstream::openapi::{Options, import, write};
use libfuzzer_sys::fuzz_target;

/// Documents that are patched.
const DOCUMENTS: [&str; 3] = [
    include_str!("../../crates/upstream/tests/openapi/documents/bodies.yaml"),
    include_str!("../../crates/upstream/tests/openapi/documents/schemas.yaml"),
    include_str!("../../crates/upstream/tests/openapi/documents/swagger.json"),
];

fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        check(text);
    }
    // The input as a patch: which document, where, how much of it goes, and what comes instead.
    let Some(([which, high, low, cut], patch)) = data.split_first_chunk() else {
        return;
    };
    let document = DOCUMENTS[usize::from(*which) % DOCUMENTS.len()].as_bytes();
    let at = usize::from(u16::from_be_bytes([*high, *low])) % document.len();
    let end = (at + usize::from(*cut)).min(document.len());
    let patched = [&document[..at], patch, &document[end..]].concat();
    check(&String::from_utf8_lossy(&patched));
});

fn check(text: &str) {
    let Ok(import) = import(text, &Options::default()) else {
        return;
    };
    let report = &import.report;
    assert_eq!(report.operations, report.tools.len() + report.refused.len());
    let read = write::read(&write::toml(&import, &[])).expect("it is TOML");
    assert_eq!(read.check(), []);
}
