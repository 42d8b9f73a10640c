//! What is wrong with a policy file, and where.

/// A policy file that is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct PolicyError {
    /// From 1; 0 where it is about the whole file.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: String,
}

impl PolicyError {
    /// What the reader of TOML says about a text.
    pub(super) fn of(text: &str, error: &toml::de::Error) -> Self {
        let start = error.span().map_or(0, |span| span.start);
        let before = text.get(..start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let in_line = before.get(line_start..).unwrap_or_default();
        // The first line of a message says all; the rest draws the place, which is told apart here.
        let message = error.message().lines().next().unwrap_or_default();
        Self {
            line: before.matches('\n').count() + 1,
            column: in_line.chars().count() + 1,
            message: message.to_owned(),
            hint: HINT.to_owned(),
        }
    }

    /// About the file as a whole.
    pub(super) fn of_file(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            line: 0,
            column: 0,
            message: message.into(),
            hint: hint.into(),
        }
    }

    pub(super) fn empty() -> Self {
        Self {
            line: 1,
            column: 1,
            message: "the file says nothing".to_owned(),
            hint: "write at least revision = \"…\"; what no rule names is denied".to_owned(),
        }
    }

    pub(super) fn too_large() -> Self {
        let message = format!("the file has more than {} bytes", super::FILE_BYTES_MAX);
        Self::of_file(message, HINT)
    }
}

const HINT: &str = "docs/identity.md shows every section with its members; docs/examples/policy.toml is a whole one";
