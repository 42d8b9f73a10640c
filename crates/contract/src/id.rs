//! Names and ids as types: parsed once, then known to be well formed.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Error for a text that is not a well-formed name or id, usually because it is empty, too long or has a space.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {text:?} is not valid: {rule}")]
pub struct InvalidId {
    what: &'static str,
    text: String,
    rule: &'static str,
}

// The three differ only in their rule; the macro keeps their conversions alike.
macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $rule:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks the text and wraps it.
            pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidId> {
                let text = text.as_ref();
                let check: fn(&str) -> bool = $check;
                if check(text) {
                    Ok(Self(text.into()))
                } else {
                    Err(InvalidId {
                        what: $what,
                        text: text.chars().take(80).collect(),
                        rule: $rule,
                    })
                }
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Self::new(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                Self::new(&*text).map_err(serde::de::Error::custom)
            }
        }

        #[cfg(feature = "schemars")]
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "description": $rule })
            }
        }
    };
}

text_id! {
    /// The canonical name of a tool, such as `pricing.get_realtime_quote`.
    ///
    /// # Example
    ///
    /// ```
    /// use countersign_contract::ToolName;
    ///
    /// assert!(ToolName::new("memory.search").is_ok());
    /// assert!(ToolName::new("memory search").is_err());
    /// ```
    ToolName, "tool name",
    "1 to 128 of A-Z a-z 0-9 _ - . and a letter first",
    |text| {
        text.len() <= 128
            && text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
    }
}

text_id! {
    /// The id of one call, unique along the whole chain; audit and replay look it up (A2).
    RequestId, "request id", "1 to 128 visible ASCII characters",
    |text| (1..=128).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic())
}

text_id! {
    /// The id of an evidence snapshot; `ev_` and up to 64 letters, digits or dashes.
    SnapshotId, "snapshot id", "ev_ and 1 to 64 of A-Z a-z 0-9 -",
    |text| {
        text.strip_prefix("ev_").is_some_and(|rest| {
            (1..=64).contains(&rest.len())
                && rest.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        })
    }
}
