//! The last verification of the whole log in this process.

use jiff::Timestamp;
use serde::Serialize;

use crate::gateway::Gateway;

/// A verification of the whole log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Number of records that were verified.
    pub size: u64,
    /// Time of its end.
    pub at: Timestamp,
    /// True if no fault was found.
    pub is_valid: bool,
    /// True if records were compared with their rows, payloads and links, and not the tree alone.
    pub with_records: bool,
}

impl Gateway {
    /// Keeps the result of a verification of the whole log, for the status.
    pub fn keep_verified(&self, size: u64, is_valid: bool, with_records: bool) {
        let at = self.executor().now();
        self.verified().store(Some(
            Verified {
                size,
                at,
                is_valid,
                with_records,
            }
            .into(),
        ));
    }
}
