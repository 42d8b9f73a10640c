//! The result of binding: the arguments, every change, and the optional parameters that could not be read.

use countersign_contract::{BindStatus, Issue};

use crate::arguments::Arguments;

/// Result of binding a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// Status, which decides whether the call may run.
    pub status: BindStatus,
    /// The arguments that run, or, if the text is incomplete, those that arrived. `None` if the text was
    /// refused.
    pub arguments: Option<Arguments>,
    /// Every change and every refusal, refusals first.
    pub issues: Vec<Issue>,
    /// Optional parameters that could not be read and count as absent, if the declaration allows it (B9).
    pub unreadable: Vec<Unreadable>,
    /// Place of every repair of the syntax in the raw text, as `[start, end)` in bytes, in the order of the text; at
    /// most 1,000. An issue has only the first place of its kind.
    pub repairs: Vec<[usize; 2]>,
}

/// An optional parameter that could not be read, reported to the tool, which gets it as absent.
#[derive(Debug, Clone, PartialEq)]
pub struct Unreadable {
    /// JSON pointer of the parameter in the arguments.
    pub path: String,
    /// Value of the parameter as it was sent, byte for byte; as JSON if the arguments were encoded as a string.
    pub text: String,
    /// Errors that explain why it could not be read; at least one.
    pub errors: Vec<Issue>,
}

impl Bound {
    /// Creates the result of a text that may not run.
    pub fn refused(issues: Vec<Issue>) -> Self {
        Self {
            status: BindStatus::Refused,
            arguments: None,
            issues,
            unreadable: Vec::new(),
            repairs: Vec::new(),
        }
    }

    /// True if a call with these arguments may run.
    pub fn is_executable(&self) -> bool {
        self.status.is_executable()
    }
}
