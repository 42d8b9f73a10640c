//! Patterns of tool names, for rules.

use std::borrow::Cow;
use std::fmt;

use countersign_contract::ToolName;

/// A pattern of tool names, in which `*` stands for any characters, none included: `notes.add`, `notes.*`, `*`.
///
/// # Example
///
/// ```
/// use countersign::contract::ToolName;
/// use countersign::pattern::ToolPattern;
///
/// let notes = ToolPattern::new("notes.*")?;
/// assert!(notes.matches(&ToolName::new("notes.add")?));
/// assert!(!notes.matches(&ToolName::new("notebook.add")?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ToolPattern(Cow<'static, str>);

/// The error for a text that is not a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a pattern: 1 to {BYTES_MAX} letters, digits and _ . - * / : @")]
pub struct InvalidPattern {
    /// The text, or its beginning.
    pub text: String,
}

/// Maximum length of a pattern.
const BYTES_MAX: usize = 128;

impl ToolPattern {
    /// Every tool.
    pub const EVERY: Self = Self(Cow::Borrowed("*"));

    /// Reads a pattern.
    pub fn new(text: &str) -> Result<Self, InvalidPattern> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.*/:@".contains(&byte);
        if text.is_empty() || text.len() > BYTES_MAX || !text.bytes().all(fits) {
            return Err(InvalidPattern {
                text: text.chars().take(BYTES_MAX).collect(),
            });
        }
        Ok(Self(Cow::Owned(text.to_owned())))
    }

    /// True if it matches this tool.
    pub fn matches(&self, tool: &ToolName) -> bool {
        fits(&self.0, tool.as_str())
    }
}

/// True if a name matches a pattern in which `*` stands for any characters, none included.
pub fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part).and_then(|at| rest.get(at + part.len()..)) {
            Some(after) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

impl From<ToolName> for ToolPattern {
    fn from(name: ToolName) -> Self {
        Self(Cow::Owned(name.to_string()))
    }
}

impl fmt::Display for ToolPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, tool, expected) in [
            ("*", "notes.add", true),
            ("notes.*", "notes.add", true),
            ("notes.*", "notebook.add", false),
            ("notes.add", "notes.add", true),
            ("notes.add", "notes.added", false),
            ("*.add", "notes.add", true),
            ("n*s.*d", "notes.add", true),
            ("n*s.*d", "notes.adds", false),
            // What is matched once is not matched twice.
            ("notes.a*.add", "notes.add", false),
            ("*notes.add*notes.add", "notes.add", false),
            ("notes.add*", "notes.add", true),
        ] {
            let found = ToolPattern::new(pattern).unwrap();
            let tool = ToolName::new(tool).unwrap();
            assert_eq!(found.matches(&tool), expected, "{pattern} {tool}");
            assert_eq!(found.to_string(), pattern);
        }
        for text in ["", "no tes", "a\\b", "é.*"] {
            assert!(ToolPattern::new(text).is_err(), "{text}");
        }
    }
}
