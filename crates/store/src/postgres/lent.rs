//! A connection for a transaction that is written out in statements.
//!
//! The pool does not end what a connection is in the middle of. Whoever waits for a statement may be dropped at any
//! moment, a call at its deadline for one, and the next one to get that connection would do their work in a
//! transaction of somebody else. So it goes back only when its user says that it is through.

use deadpool_postgres::{Client, Object};

use super::failure::Failure;

/// A connection that is closed when it is dropped, which undoes what it was doing.
pub(super) struct Lent(Option<Client>);

impl Lent {
    pub(super) fn new(client: Client) -> Self {
        Self(Some(client))
    }

    pub(super) fn client(&self) -> Result<&Client, Failure> {
        self.0.as_ref().ok_or(Failure::Closed)
    }

    /// Its transaction is over; others may use it.
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
