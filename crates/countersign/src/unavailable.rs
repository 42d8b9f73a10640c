//! The error that every trait behind the executor shares: it could not answer at all.

use std::error::Error;

/// A part behind the executor (store, policy, limiter, approver) could not answer. Usually a network or disk failure.
///
/// The caller only gets the message that the gateway failed; the source goes to the log.
#[derive(Debug, thiserror::Error)]
#[error("{part} is unavailable")]
pub struct Unavailable {
    /// Name of the part, such as `store`.
    pub part: &'static str,
    /// The cause.
    #[source]
    pub source: Box<dyn Error + Send + Sync>,
}

impl Unavailable {
    /// An error of this part with this cause.
    pub fn new(part: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            part,
            source: source.into(),
        }
    }
}
