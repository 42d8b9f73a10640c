//! The users' data keys, wrapped by the master key. Destroying a key makes everything sealed under it unreadable: this
//! erases the user.

use std::sync::Arc;

use countersign_evidence::seal::KeyId;

use super::Error;
use crate::BoxFuture;

/// Stores wrapped keys.
pub trait Keyring: Send + Sync + 'static {
    /// The key of a user; `None` if there is none yet, or if it was destroyed.
    fn user_key<'a>(&'a self, user_id: &'a str)
    -> BoxFuture<'a, Result<Option<WrappedKey>, Error>>;

    /// Stores a new key, durably, unless the user has one by now; answers the stored one.
    fn add_user_key<'a>(
        &'a self,
        user_id: &'a str,
        key: WrappedKey,
    ) -> BoxFuture<'a, Result<WrappedKey, Error>>;

    /// The users that have a key and come after this name, with their keys, in the order of their names, at most
    /// `limit`.
    fn user_keys<'a>(
        &'a self,
        after: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, WrappedKey)>, Error>>;

    /// Keys that another master key than this one wraps, with their users, at most `limit`.
    fn user_keys_not_under<'a>(
        &'a self,
        master: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, WrappedKey)>, Error>>;

    /// Replaces a wrapped key by the same one under another master key; false if it is no longer `old`.
    fn rewrap<'a>(
        &'a self,
        user_id: &'a str,
        old: &'a WrappedKey,
        new: WrappedKey,
    ) -> BoxFuture<'a, Result<bool, Error>>;

    /// Calls `told` with the id of a user whenever something arrives that was sealed under a key which is no longer the
    /// user's: the process that cached that key has missed an erasure. A store of one process never calls it.
    fn on_lost_key(&self, told: LostKeyFn) {
        drop(told);
    }
}

/// Callback for users whose cached key is out of date. It is called on the store's own path, so it must only note the
/// user.
pub type LostKeyFn = Arc<dyn Fn(&str) + Send + Sync>;

/// A user's key, wrapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrappedKey {
    /// The key's own id; `None` if an older version stored it, which gave keys no ids. Such a key counts as equal to
    /// the caller's key, because every later key of the user has an id.
    pub id: Option<KeyId>,
    /// The id of the master key that wraps it.
    pub master: String,
    /// The wrapped bytes.
    pub bytes: Vec<u8>,
}
