//! Any text: if it has a canonical form, it is JSON, and the canonical form is its own canonical form.

#![no_main]

use countersign_contract::canonical::{self, Error};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|text: &str| {
    let read = serde_json::from_str::<Value>(text);
    match canonical::from_json_text(text) {
        Ok(canonical) => {
            assert_eq!(
                canonical::from_json_text(&canonical).as_ref(),
                Ok(&canonical)
            );
            let value = read.expect("serde_json reads what we have read");
            assert_eq!(canonical::to_string(&value).as_ref(), Ok(&canonical));
        }
        Err(Error::Syntax { .. } | Error::LoneSurrogate { .. } | Error::NotFinite { .. }) => {
            assert!(read.is_err(), "serde_json reads what we refuse");
        }
        Err(
            Error::IntegerTooLarge { .. }
            | Error::DuplicateKey { .. }
            | Error::ReservedKey { .. }
            | Error::TooDeep { .. },
        ) => {}
    }
});
