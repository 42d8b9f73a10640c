//! Names of tools with stars in them.

use std::fmt;

use super::Written;

/// Names of tools, in which `*` stands for any characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamePattern(String);

/// The longest pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 128;

impl NamePattern {
    /// Returns the pattern as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Written for NamePattern {
    const NAME: &'static str = "NamePattern";
    const FORM: &'static str = "the name of a tool, in which * stands for any characters";

    fn read(text: &str) -> Option<Self> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.*/:@".contains(&byte);
        let is_fine = (1..=PATTERN_BYTES_MAX).contains(&text.len()) && text.bytes().all(fits);
        is_fine.then(|| Self(text.to_owned()))
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
