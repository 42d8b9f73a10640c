//! The users' data keys, wrapped by the master key. Destroying one makes everything sealed under it
//! unreadable; that is how a user is erased.

use super::Error;
use crate::BoxFuture;

/// Keeps wrapped keys.
pub trait Keyring: Send + Sync + 'static {
    /// The key of a user; none where there is none yet, or no more.
    fn user_key<'a>(&'a self, user_id: &'a str)
    -> BoxFuture<'a, Result<Option<WrappedKey>, Error>>;

    /// Keeps a new key, durably, unless the user has one by now; answers the one that counts.
    fn add_user_key<'a>(
        &'a self,
        user_id: &'a str,
        key: WrappedKey,
    ) -> BoxFuture<'a, Result<WrappedKey, Error>>;

    /// The users that have a key and come after this name, in the order of their names, at most `limit`.
    fn users<'a>(
        &'a self,
        after: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<String>, Error>>;

    /// Keys that another master key than this one wraps, with their users, at most `limit`.
    fn user_keys_not_under<'a>(
        &'a self,
        master: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, WrappedKey)>, Error>>;

    /// Replaces a wrapped key by the same one under another master key; false where it is no longer
    /// `old`.
    fn rewrap<'a>(
        &'a self,
        user_id: &'a str,
        old: &'a WrappedKey,
        new: WrappedKey,
    ) -> BoxFuture<'a, Result<bool, Error>>;
}

/// A user's key, wrapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrappedKey {
    /// The name of the master key that wraps it.
    pub master: String,
    /// The wrapped bytes.
    pub bytes: Vec<u8>,
}
