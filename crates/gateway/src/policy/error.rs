//! Mistakes in a policy file, with their place.

/// A policy file that is not accepted, usually because of a misspelt member or a value of the wrong form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct PolicyError {
    /// Line, from 1; 0 if the mistake is about the whole file.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// Description of the mistake.
    pub message: String,
    /// Hint what to do.
    pub hint: String,
}

/// Guide that a hint names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guide {
    /// Rules and conditions.
    Conditions,
    /// Limits and budgets.
    Limits,
}

impl PolicyError {
    /// Converts an error of the TOML parser.
    pub(super) fn of(text: &str, error: &toml::de::Error) -> Self {
        let start = error.span().map_or(0, |span| span.start);
        let before = text.get(..start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let in_line = before.get(line_start..).unwrap_or_default();
        // The first line of a message is the message; the rest draws the place, which is reported separately
        // here.
        let message = error.message().lines().next().unwrap_or_default();
        let hint = if message.starts_with("duplicate key") {
            DOUBLED
        } else {
            HINT
        };
        Self {
            line: before.matches('\n').count() + 1,
            column: in_line.chars().count() + 1,
            message: message.to_owned(),
            hint: hint.to_owned(),
        }
    }

    /// Creates a mistake at a place.
    pub(super) fn at(line: usize, column: usize, message: String) -> Self {
        Self {
            line,
            column,
            message,
            hint: HINT.to_owned(),
        }
    }

    /// Names the guide about the section that has the mistake.
    pub(super) fn see(self, guide: Guide) -> Self {
        let hint = match guide {
            Guide::Conditions => {
                "docs/conditions.md shows rules, and what their conditions may look at; `countersign tools NAME` shows the arguments of a tool"
            }
            Guide::Limits => {
                "docs/limits.md shows limits and budgets; `countersign tools NAME` shows the arguments of a tool"
            }
        };
        Self {
            hint: hint.to_owned(),
            ..self
        }
    }

    /// Creates a mistake about the file as a whole.
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

const DOUBLED: &str = "this table or member appears twice: keep one, or write a list with double brackets: [[limits.user]]";
const HINT: &str = "see docs/policy.md; docs/configuration.md lists every section and member; docs/examples/policy.toml is a full example";
