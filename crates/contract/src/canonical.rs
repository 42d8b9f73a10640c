//! Canonical JSON (RFC 8785): one text for every value, so that equal values have equal digests.
//!
//! The bytes depend on nothing but the value: keys are sorted and numbers written here, so they are
//! the same whichever features of `serde_json` a build has switched on.

mod number;
mod scan;
mod value;
mod writer;

use serde_json::Value;

pub use number::number_to_string;

/// Maximum nesting depth of canonical JSON: the depth that `serde_json` still reads back.
pub const DEPTH_MAX: usize = 127;

/// Largest whole number, of either sign, that a double represents exactly: 2^53 − 1.
pub const INTEGER_MAX: u64 = (1 << 53) - 1;

/// Prefix of the keys that `serde_json` reserves.
const RESERVED_KEY: &str = "$serde_json::private::";

/// Returns the canonical text of a value.
///
/// # Errors
///
/// [`Error::IntegerTooLarge`], [`Error::ReservedKey`] and [`Error::TooDeep`]; with `serde_json/arbitrary_precision` also
/// [`Error::NotFinite`].
///
/// # Example
///
/// ```
/// use countersign_contract::canonical;
/// use serde_json::json;
///
/// let text = canonical::to_string(&json!({"total": 4.50, "currency": "USD"}))?;
/// assert_eq!(text, r#"{"currency":"USD","total":4.5}"#);
/// # Ok::<(), canonical::Error>(())
/// ```
pub fn to_string(value: &Value) -> Result<String, Error> {
    to_vec(value).map(into_string)
}

/// Returns the canonical text of a value, as bytes.
pub fn to_vec(value: &Value) -> Result<Vec<u8>, Error> {
    let mut out = Vec::with_capacity(128);
    write(value, &mut out)?;
    Ok(out)
}

/// Appends the canonical text of a value to `out`; on an error `out` is as it was before.
pub fn write(value: &Value, out: &mut Vec<u8>) -> Result<(), Error> {
    let before = out.len();
    value::walk(value, out).inspect_err(|_| out.truncate(before))
}

/// Reads a JSON text strictly and returns its canonical text.
///
/// This is the surer way where the text is at hand: a [`Value`] may already have lost a duplicate
/// key or the digits of a large integer, the text has not.
///
/// # Errors
///
/// Every [`Error`] can occur. The work is linear in the text but for sorting keys and for moving
/// the members of an object into place, once for every level they are nested in.
///
/// # Example
///
/// ```
/// use countersign_contract::canonical;
///
/// assert_eq!(canonical::from_json_text(r#" {"b": 1E2, "a": "\u0041"} "#)?, r#"{"a":"A","b":100}"#);
/// assert!(canonical::from_json_text(r#"{"a": 1, "a": 2}"#).is_err());
/// # Ok::<(), canonical::Error>(())
/// ```
pub fn from_json_text(text: &str) -> Result<String, Error> {
    // The canonical text is rarely longer: it loses white space and escapes, and gains only where
    // an exponent is written out.
    let mut out = Vec::with_capacity(text.len());
    scan::scan(text, &mut out)?;
    Ok(into_string(out))
}

/// Reason for which a value or a text has no canonical form. Every `path` is a JSON pointer (RFC 6901).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A whole number beyond [`INTEGER_MAX`], usually an id that was sent as a number: two different numbers would
    /// get the same text.
    #[error(
        "the whole number {number} at {path:?} is beyond ±{INTEGER_MAX}, where doubles cannot tell \
         neighbours apart; send it as a text"
    )]
    IntegerTooLarge {
        /// JSON pointer of the number.
        path: String,
        /// The number as it was written, at most 40 characters of it.
        number: String,
    },
    /// A number that no double can hold. Usually a model has written far too many digits.
    #[error("the number {number} at {path:?} is too large for a double; send it as a string")]
    NotFinite {
        /// JSON pointer of the number.
        path: String,
        /// The number as it was written, at most 40 characters of it.
        number: String,
    },
    /// An object has the same member twice. Usually a program has put two objects together as text.
    #[error("the member {path:?} is there twice; send it once")]
    DuplicateKey {
        /// The member.
        path: String,
    },
    /// A key that `serde_json` does not read as a key: with `raw_value` or `arbitrary_precision` switched on, an object that starts with it
    /// is read as another value altogether, and would differ from the value that was hashed.
    /// Usually the key was chosen to confuse a reader.
    #[error("the key {path:?} starts with {RESERVED_KEY:?}, which is reserved; rename it")]
    ReservedKey {
        /// The member.
        path: String,
    },
    /// Half of a surrogate pair, which no Unicode text can hold.
    /// Usually a program has cut a text between two halves of a character.
    #[error("half a surrogate pair in the text at {path:?}, byte {offset}; send whole characters")]
    LoneSurrogate {
        /// The text, or the object whose key it is in.
        path: String,
        /// The byte of the escape's backslash.
        offset: usize,
    },
    /// The value is nested deeper than [`DEPTH_MAX`], usually because it is hostile or generated.
    #[error("nested deeper than {DEPTH_MAX} levels at {path:?}; flatten it")]
    TooDeep {
        /// The first level that is too deep.
        path: String,
    },
    /// The text is not JSON, usually because it is cut off or has something behind the value.
    #[error("not JSON at byte {offset} ({path:?}): expected {expected}")]
    Syntax {
        /// The value that the fault is in.
        path: String,
        /// The byte where the text stops being JSON.
        offset: usize,
        /// Token that was expected there.
        expected: &'static str,
    },
}

impl Error {
    /// Returns the place as a JSON pointer; empty for the whole value.
    pub fn path(&self) -> &str {
        match self {
            Self::IntegerTooLarge { path, .. }
            | Self::NotFinite { path, .. }
            | Self::DuplicateKey { path }
            | Self::ReservedKey { path }
            | Self::LoneSurrogate { path, .. }
            | Self::TooDeep { path }
            | Self::Syntax { path, .. } => path,
        }
    }
}

fn into_string(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("only whole texts and ASCII are ever written")
}

#[cfg(test)]
mod tests;
