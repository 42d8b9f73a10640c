//! Records of the operator's changes: a policy, a key.

use std::fmt;
use std::sync::Arc;

use countersign::clock::Clock;
use countersign::contract::{Actor, RecordKind, Retention};
use countersign::ids::IdSource;
use countersign::ledger::{self, Durability, Entry, Store};
use countersign::scribe::{Act, Draft};
use countersign_evidence::seal::UserKey;
use jiff::Timestamp;
use serde_json::Value;

/// Writes records of kind `config`.
#[derive(Clone)]
pub struct Recorder {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
}

impl Recorder {
    /// Creates a recorder for this store.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, ids: Arc<dyn IdSource>) -> Self {
        Self { store, clock, ids }
    }

    /// Returns the time of its records.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Keeps a record of an action of this process itself. It is durable when this returns.
    pub async fn append(&self, about: Value) -> Result<(), ledger::Error> {
        let draft = Draft::from(self.entry(None, None, about));
        self.store.append(draft, Durability::Committed).await
    }

    /// Builds the record of a caller's action, and of the user it is about, if there is one.
    pub(crate) fn entry(
        &self,
        by: Option<&Actor>,
        user: Option<(&str, &UserKey)>,
        about: Value,
    ) -> Entry {
        let act = Act {
            kind: RecordKind::Config,
            at: self.clock.now(),
            user_id: user.map_or_else(String::new, |(user_id, _)| user_id.to_owned()),
            actor: by.cloned(),
            about,
            retention: Retention::Long,
        };
        act.entry(self.ids.snapshot_id(), user.map(|(_, keys)| keys))
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recorder")
    }
}
