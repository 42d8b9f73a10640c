//! Wrapped keys in memory.

use std::future::ready;

use super::MemoryStore;
use crate::BoxFuture;
use crate::ledger::{Error, Keyring, WrappedKey};

impl Keyring for MemoryStore {
    fn user_key<'a>(
        &'a self,
        user_id: &'a str,
    ) -> BoxFuture<'a, Result<Option<WrappedKey>, Error>> {
        let key = self.lock().user_keys.get(user_id).cloned();
        Box::pin(ready(Ok(key)))
    }

    fn add_user_key<'a>(
        &'a self,
        user_id: &'a str,
        key: WrappedKey,
    ) -> BoxFuture<'a, Result<WrappedKey, Error>> {
        let mut inner = self.lock();
        let counts = inner.user_keys.entry(user_id.to_owned()).or_insert(key);
        Box::pin(ready(Ok(counts.clone())))
    }

    fn user_keys<'a>(
        &'a self,
        after: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, WrappedKey)>, Error>> {
        let inner = self.lock();
        let behind = inner
            .user_keys
            .iter()
            .filter(|(user_id, _)| user_id.as_str() > after);
        let mut users: Vec<_> = behind
            .map(|(user_id, key)| (user_id.clone(), key.clone()))
            .collect();
        users.sort_by(|(left, _), (right, _)| left.cmp(right));
        users.truncate(limit);
        Box::pin(ready(Ok(users)))
    }

    fn user_keys_not_under<'a>(
        &'a self,
        master: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, WrappedKey)>, Error>> {
        let inner = self.lock();
        let others = inner
            .user_keys
            .iter()
            .filter(|(_, key)| key.master != master);
        let others = others
            .take(limit)
            .map(|(user_id, key)| (user_id.clone(), key.clone()))
            .collect();
        Box::pin(ready(Ok(others)))
    }

    fn rewrap<'a>(
        &'a self,
        user_id: &'a str,
        old: &'a WrappedKey,
        new: WrappedKey,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        let mut inner = self.lock();
        let replaced = match inner.user_keys.get_mut(user_id) {
            Some(key) if key == old => {
                *key = new;
                true
            }
            Some(_) | None => false,
        };
        Box::pin(ready(Ok(replaced)))
    }
}
