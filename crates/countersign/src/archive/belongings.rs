//! Shared documents that name a user: they are erased with the user, in the same commit.

use std::sync::Arc;

use serde_json::Value;

use super::Archive;
use crate::BoxFuture;
use crate::ledger::{self, DocumentKey};

/// Finds shared documents of one kind, such as API keys.
pub trait Belongings: Send + Sync {
    /// Their name in the record of an erasure.
    fn name(&self) -> &'static str;

    /// The documents that name a user, as they are in the store now. Their ids go into the record, so an id must say
    /// nothing about the user.
    fn of_user<'a>(
        &'a self,
        user_id: &'a str,
    ) -> BoxFuture<'a, Result<Vec<DocumentKey>, ledger::Error>>;

    /// True if the store contradicts an act that the log has a record of, such as the end of a key. Usually an
    /// old document was put back.
    fn contradicts<'a>(&'a self, act: &'a Value) -> BoxFuture<'a, Result<bool, ledger::Error>>;

    /// Called after some were erased, so that nothing in memory outlives them.
    fn are_gone(&self) -> BoxFuture<'_, Result<(), ledger::Error>>;
}

impl Archive {
    /// Erases these with their users; replaces those of the same name.
    pub fn with_belongings(mut self, belongings: Arc<dyn Belongings>) -> Self {
        self.belongings
            .retain(|kind| kind.name() != belongings.name());
        self.belongings.push(belongings);
        self
    }
}
