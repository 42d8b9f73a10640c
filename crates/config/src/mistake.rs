//! Mistakes in a configuration, with their places.

use std::fmt;

use serde::Serialize;

/// One mistake. No member repeats a value of the file, because it may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mistake {
    /// The file as it was named; for a variable or a flag, its name.
    pub file: String,
    /// Line, from 1; 0 if it is about the whole file, a variable or a flag.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// The key with its tables, such as `server.listen` or `tool[2].name`; empty where the text is no TOML.
    pub key: String,
    /// The mistake: lower case, no full stop.
    pub message: String,
    /// The form that was expected, where one was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// The key that was probably meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.message)?;
        if let Some(expected) = &self.expected {
            write!(f, "; expected {expected}")?;
        }
        if let Some(suggestion) = &self.suggestion {
            write!(f, "; did you mean {suggestion}?")?;
        }
        Ok(())
    }
}

/// All that is wrong, in the order of the file. There is at least one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{}", lines(.0))]
#[serde(transparent)]
pub struct Mistakes(pub Vec<Mistake>);

fn lines(mistakes: &[Mistake]) -> String {
    let lines: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    lines.join("\n")
}
