//! Records that another program writes into the database while they are not signed yet.

use std::sync::Arc;
use std::time::Duration;

use countersign::contract::{RecordKind, SnapshotId};
use countersign::ledger::{Durability, Entry, Error, Integration, Sequencing, Store};
use countersign::sequencer::{self, LastStop, Sequencer, Tick};
use countersign_evidence::note::SigningKey;
use countersign_evidence::seal::{LeafKey, UserKey};

/// The key that authenticates records.
fn leaf_key() -> LeafKey {
    LeafKey::of(&UserKey::from_bytes(&[7; 32]))
}

/// A record with this id.
pub fn entry(id: &str) -> Entry {
    Entry {
        sealed_under: None,
        id: SnapshotId::new(id).expect("a name"),
        user_id: String::new(),
        kind: RecordKind::Call,
        at: "2026-11-15T12:00:00Z".parse().expect("a time"),
        request_id: None,
        tool: None,
        code: None,
        leaf: id.as_bytes().to_vec(),
        payload: None,
        keep_payload: None,
    }
}

/// Writes a record that waits for the tree, durably.
pub async fn append(store: &dyn Store, id: &str) {
    let appended = store.append(entry(id).into(), Durability::Committed).await;
    appended.expect("there is room");
}

/// Gives the store its key; answers the number of records of an earlier version.
pub async fn authenticate(store: &dyn Store) -> usize {
    store.authenticate(leaf_key()).await.expect("it is written")
}

/// Adds the waiting records to the tree.
pub async fn integrate(store: &dyn Store) -> Result<Integration, Error> {
    let sequencing = Sequencing {
        holder: "a".to_owned(),
        lease: Duration::from_millis(1),
    };
    store.integrate(&sequencing, 100).await
}

/// Runs one round of a sequencer, which adds what waits and signs the tree.
pub async fn sign(store: &Arc<dyn Store>) -> Result<Tick, sequencer::Error> {
    let key = SigningKey::from_seed("example.com/log", &[7; 32]).expect("a key");
    let builder = Sequencer::builder(store.clone(), key)
        .holder("a")
        .lease(Duration::from_millis(1));
    let mut sequencer = builder.briefly().start(LastStop::default()).await?;
    sequencer.tick().await
}

/// True if nothing was signed because a record was written by another program.
pub fn is_refused(signed: &Result<Tick, sequencer::Error>, id: &str) -> bool {
    match signed {
        Err(sequencer::Error::Store(Error::Damaged { what })) => what.contains(id),
        Ok(_) | Err(_) => false,
    }
}
