//! Which tools a rule is about.

use std::fmt;

use countersign_contract::ToolName;

/// A tool by its name, all tools under a name (`notes.*`), or all tools (`*`).
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
pub struct ToolPattern(Kind);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Kind {
    Every,
    /// With the dot at its end.
    Under(String),
    One(ToolName),
}

/// A text names no tools.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is neither a tool's name, nor one that ends in .*, nor *")]
pub struct InvalidPattern {
    /// The text.
    pub text: String,
}

impl ToolPattern {
    /// Every tool.
    pub const EVERY: Self = Self(Kind::Every);

    /// Reads a pattern.
    pub fn new(text: &str) -> Result<Self, InvalidPattern> {
        let invalid = || InvalidPattern {
            text: text.chars().take(128).collect(),
        };
        if text == "*" {
            return Ok(Self::EVERY);
        }
        let Some(under) = text.strip_suffix(".*") else {
            let name = ToolName::new(text).map_err(|_| invalid())?;
            return Ok(Self(Kind::One(name)));
        };
        // What stands before the star has to be able to begin a name.
        ToolName::new(format!("{under}.x")).map_err(|_| invalid())?;
        Ok(Self(Kind::Under(format!("{under}."))))
    }

    /// Whether it is about this tool.
    pub fn matches(&self, tool: &ToolName) -> bool {
        match &self.0 {
            Kind::Every => true,
            Kind::Under(start) => tool.as_str().starts_with(start),
            Kind::One(name) => name == tool,
        }
    }
}

impl From<ToolName> for ToolPattern {
    fn from(name: ToolName) -> Self {
        Self(Kind::One(name))
    }
}

impl fmt::Display for ToolPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Every => f.write_str("*"),
            Kind::Under(start) => write!(f, "{start}*"),
            Kind::One(name) => write!(f, "{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_written_as_it_is_read() {
        for text in ["*", "notes.*", "notes.add", "a.b.*"] {
            assert_eq!(ToolPattern::new(text).unwrap().to_string(), text);
        }
        for text in ["", ".*", "**", "notes.*.add", "no tes.*", "*.add"] {
            assert!(ToolPattern::new(text).is_err(), "{text}");
        }
    }
}
