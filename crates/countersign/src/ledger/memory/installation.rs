//! The installation of a store in memory, if a program binds it.

use std::future::ready;

use super::MemoryStore;
use crate::BoxFuture;
use crate::ledger::{
    Binding, DocumentKey, Entry, Error, Installation, Installations, NotOurs, Traces,
};

impl MemoryStore {
    /// Binds the store to these keys, as a durable store does when it is opened.
    pub fn bind(&self, binding: &Binding) -> Result<(), NotOurs> {
        let mut inner = self.lock();
        if let Some(found) = &inner.installation {
            return binding.check(found);
        }
        let newest = inner.checkpoints.last_key_value();
        let masters = inner.user_keys.values().map(|key| key.master.clone());
        let traces = Traces {
            checkpoint: newest.map(|(_, (_, note))| note.clone()),
            masters: masters.collect(),
        };
        inner.installation = Some(binding.first(&traces)?);
        Ok(())
    }
}

impl Installations for MemoryStore {
    fn installation(&self) -> BoxFuture<'_, Result<Option<Installation>, Error>> {
        let found = self.lock().installation.clone();
        Box::pin(ready(Ok(found)))
    }

    fn rebind<'a>(
        &'a self,
        from: &'a Installation,
        to: Installation,
        entry: Entry,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        let mut inner = self.lock();
        let is_ours = inner.installation.as_ref() == Some(from);
        if is_ours {
            inner.installation = Some(to);
            inner.keep(entry, false);
        }
        Box::pin(ready(Ok(is_ours)))
    }

    fn begin_log<'a>(
        &'a self,
        from: &'a Installation,
        to: Installation,
        forgotten: &'a [&'a str],
        entry: Entry,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        let mut inner = self.lock();
        let is_ours = inner.installation.as_ref() == Some(from);
        if is_ours {
            inner.installation = Some(to);
            inner.checkpoints.clear();
            let is_forgotten = |key: &DocumentKey| forgotten.contains(&key.collection.as_str());
            inner.documents.retain(|key, _| !is_forgotten(key));
            inner.keep(entry, false);
        }
        Box::pin(ready(Ok(is_ours)))
    }
}
