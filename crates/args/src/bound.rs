//! What became of a text: the arguments, every change, and what the tool is told instead of a value.

use countersign_contract::{BindStatus, Issue};

use crate::arguments::Arguments;

/// What became of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// Whether it may run.
    pub status: BindStatus,
    /// The arguments: what runs, or, where the text is incomplete, what arrived. None when refused.
    pub arguments: Option<Arguments>,
    /// Every change and every refusal, refusals first.
    pub issues: Vec<Issue>,
    /// The optional parameters that could not be read and count as absent, where the declaration says so (B9).
    pub unreadable: Vec<Unreadable>,
}

/// An optional parameter that could not be read: for the tool, which gets it as absent.
#[derive(Debug, Clone, PartialEq)]
pub struct Unreadable {
    /// JSON pointer of the parameter in the arguments.
    pub path: String,
    /// The parameter's value as it was sent, byte for byte. Where the arguments were encoded as a string, as JSON.
    pub text: String,
    /// Why it could not be read: one error at least.
    pub errors: Vec<Issue>,
}

impl Bound {
    /// A text that may not run.
    pub fn refused(issues: Vec<Issue>) -> Self {
        Self {
            status: BindStatus::Refused,
            arguments: None,
            issues,
            unreadable: Vec::new(),
        }
    }

    /// Whether a call with these arguments may run.
    pub fn is_executable(&self) -> bool {
        self.status.is_executable()
    }
}
