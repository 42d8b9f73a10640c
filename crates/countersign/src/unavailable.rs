//! The failure that every trait behind the executor shares: it could not answer at all.

use std::error::Error;

/// A part behind the executor (store, policy, limiter, approver) could not answer.
///
/// The caller only ever learns that the gateway failed; the source goes to the log.
#[derive(Debug, thiserror::Error)]
#[error("{part} is unavailable")]
pub struct Unavailable {
    /// Which part, such as `store`.
    pub part: &'static str,
    /// Why.
    #[source]
    pub source: Box<dyn Error + Send + Sync>,
}

impl Unavailable {
    /// Names the part and keeps the cause.
    pub fn new(part: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            part,
            source: source.into(),
        }
    }
}
