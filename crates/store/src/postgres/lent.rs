//! A connection for a transaction that is written out in statements.
//!
//! The pool does not end a transaction that a connection is in. A future that waits for a statement may be
//! dropped at any moment, for example at a call's deadline, and the next user of the connection would then work
//! in that open transaction. So the connection only returns to the pool when its user says that the transaction
//! is over.

use deadpool_postgres::{Client, Object};

use super::failure::Failure;

/// A connection that is closed when it is dropped, which rolls its transaction back.
pub(super) struct Lent(Option<Client>);

impl Lent {
    pub(super) fn new(client: Client) -> Self {
        Self(Some(client))
    }

    pub(super) fn client(&self) -> Result<&Client, Failure> {
        self.0.as_ref().ok_or(Failure::Closed)
    }

    /// Returns the connection to the pool; its transaction is over.
    pub(super) fn give_back(self) {
        drop(self.into_client());
    }

    pub(super) fn into_client(mut self) -> Result<Client, Failure> {
        self.0.take().ok_or(Failure::Closed)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            drop(Object::take(client));
        }
    }
}
