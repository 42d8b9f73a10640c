//! Texts with a meaning: a text that the binder has checked keeps its type in the tool's code.

use std::fmt;

use countersign_contract::ValueKind;
use serde::{Deserialize, Serialize};

use super::ArgValue;

/// Texts that differ in nothing but their name and kind.
macro_rules! text_types {
    ($($(#[$meta:meta])* $name:ident => $kind:expr;)*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Takes the text as it is.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The text as it came.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The text as it came, owned.
            pub fn into_string(self) -> String {
                self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl ArgValue for $name {
            const KIND: ValueKind = $kind;
        }
    )*};
}

text_types! {
    /// A URI in the spelling in which it was sent.
    ///
    /// The binder warns if it is not absolute, and keeps the text (B6): check before you follow it.
    ///
    /// # Example
    ///
    /// ```
    /// let page: countersign::Uri = serde_json::from_str(r#""https://example.com/a?b""#)?;
    /// assert_eq!(page.as_str(), "https://example.com/a?b");
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    Uri => ValueKind::Uri;

    /// The id of an attachment of the conversation.
    ///
    /// # Example
    ///
    /// ```
    /// let photo = countersign::Attachment::new("att_7");
    /// assert_eq!(photo.to_string(), "att_7");
    /// ```
    Attachment => ValueKind::AttachmentReference;
}
