//! SHA-256 of bytes and of values; what records, approvals and sources compare.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::canonical;

/// A SHA-256 digest; `sha256:` and 64 lower-case hexadecimal digits on the wire.
///
/// # Example
///
/// ```
/// use countersign_contract::Digest;
/// use serde_json::json;
///
/// let digest = Digest::of_canonical(&json!({"b": 1.0, "a": null}))?;
/// assert_eq!(digest, Digest::of_bytes(br#"{"a":null,"b":1}"#));
/// assert_eq!(digest.to_string().parse(), Ok(digest));
/// # Ok::<(), countersign_contract::canonical::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

/// The text is not a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a digest: expected {PREFIX:?} and 64 lower-case hexadecimal digits")]
pub struct InvalidDigest;

const PREFIX: &str = "sha256:";

/// The length of the text form.
const TEXT_BYTES: usize = PREFIX.len() + 64;

impl Digest {
    /// Computes the digest of bytes as they are.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Computes the digest of a value's canonical JSON (A9).
    pub fn of_canonical(value: &Value) -> Result<Self, canonical::Error> {
        canonical::to_vec(value).map(|bytes| Self::of_bytes(&bytes))
    }

    /// Computes the digest of the canonical form of a JSON text.
    pub fn of_json_text(text: &str) -> Result<Self, canonical::Error> {
        canonical::from_json_text(text).map(|text| Self::of_bytes(text.as_bytes()))
    }

    /// The 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The wire form, on the stack.
    fn text(&self) -> [u8; TEXT_BYTES] {
        let digit = |nibble: u8| nibble + if nibble < 10 { b'0' } else { b'a' - 10 };
        let mut text = [0; TEXT_BYTES];
        let (prefix, digits) = text.split_at_mut(PREFIX.len());
        prefix.copy_from_slice(PREFIX.as_bytes());
        for (pair, byte) in digits.as_chunks_mut::<2>().0.iter_mut().zip(self.0) {
            *pair = [digit(byte >> 4), digit(byte & 0xf)];
        }
        text
    }
}

/// Digests bytes that arrive in portions, such as those of a large file.
///
/// # Example
///
/// ```
/// use std::io::Write as _;
///
/// use countersign_contract::Digest;
/// use countersign_contract::digest::Digester;
///
/// let mut digester = Digester::default();
/// digester.write_all(b"one ")?;
/// digester.write_all(b"text")?;
/// assert_eq!(digester.finish(), Digest::of_bytes(b"one text"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Digester(Sha256);

impl Digester {
    /// The digest of everything that was written.
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

impl std::io::Write for Digester {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for Digester {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digester(..)")
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.text()).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        let digits = text.strip_prefix(PREFIX).ok_or(InvalidDigest)?.as_bytes();
        let mut bytes = [0; 32];
        // One spelling only: digests are also compared as texts.
        let (pairs, []) = digits.as_chunks::<2>() else {
            return Err(InvalidDigest);
        };
        if pairs.len() != bytes.len() {
            return Err(InvalidDigest);
        }
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = (nibble(*high)? << 4) | nibble(*low)?;
        }
        Ok(Self(bytes))
    }
}

const fn nibble(digit: u8) -> Result<u8, InvalidDigest> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(InvalidDigest),
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(feature = "schemars")]
impl schemars::JsonSchema for Digest {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Digest".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^sha256:[0-9a-f]{64}$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 180-4's one-block example, and the empty message.
    #[test]
    fn known_digests() {
        for (message, digest) in [
            (
                "abc",
                "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            ),
            (
                "",
                "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            ),
        ] {
            assert_eq!(Digest::of_bytes(message.as_bytes()).to_string(), digest);
        }
    }

    /// A9: the digest is of the canonical JSON, so spelling and order do not matter.
    #[test]
    fn equal_values_have_equal_digests() {
        let from_text = Digest::of_json_text(r#"{ "b": [1.50, "\u0041"], "a": -0 }"#).unwrap();
        let value = serde_json::json!({"a": 0, "b": [1.5, "A"]});
        assert_eq!(from_text, Digest::of_canonical(&value).unwrap());
        assert_eq!(from_text, Digest::of_bytes(br#"{"a":0,"b":[1.5,"A"]}"#));
    }

    #[test]
    fn the_text_form_is_the_only_one() {
        let digest = Digest::of_bytes(b"abc");
        let text = digest.to_string();
        assert_eq!(text.parse(), Ok(digest));
        assert_eq!(
            serde_json::to_value(digest).unwrap(),
            serde_json::json!(text)
        );
        assert_eq!(
            serde_json::from_value::<Digest>(text.clone().into()).unwrap(),
            digest
        );
        for other in [
            text.to_uppercase(),
            text.replace("sha256:ba", "sha256:BA"),
            text.replace("sha256:", ""),
            format!("{text}0"),
            format!("{text}00"),
            text[..text.len() - 2].to_owned(),
            text.replace("ba78", "+a78"),
            String::new(),
        ] {
            assert_eq!(other.parse::<Digest>(), Err(InvalidDigest), "{other:?}");
        }
    }
}
