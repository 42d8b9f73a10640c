//! Reads of what upstreams offer beside tools: resources and prompts.

use countersign_contract::{Digest, RecordKind, SnapshotId};
use serde_json::json;

use super::act::Deed;
use super::{Archive, Error};
use crate::ledger::Durability;
use crate::principal::Principal;
use crate::scribe::Draft;

/// Maximum characters of an address that are kept.
const ADDRESS_MAX: usize = 1_000;

/// Something that a caller was given and that no tool answered.
#[derive(Debug, Clone, Copy)]
pub struct Read<'a> {
    /// Event, such as `resource_read`.
    pub event: &'static str,
    /// Name of the upstream.
    pub upstream: &'a str,
    /// Parameters of the request. Only the sealed part has them.
    pub address: &'a str,
    /// The answer; the record has a digest under the user's key, by which an answer is recognised.
    pub answer: &'a str,
}

impl Archive {
    /// Records that a caller was given something of an upstream. The record is kept behind the reply, like that of a call which only
    /// reads; an error means that it cannot be kept, so the answer must not be given.
    pub async fn note_read(&self, by: &Principal, read: &Read<'_>) -> Result<SnapshotId, Error> {
        let keys = self.vault.key(&by.user_id).await?;
        let print = Digest::of_bytes(&keys.fingerprint(read.answer.as_bytes()));
        let about = json!({
            "event": read.event,
            "upstream": read.upstream,
            "bytes": read.answer.len(),
            "answer": print.to_string(),
        });
        let address: String = read.address.chars().take(ADDRESS_MAX).collect();
        let deed = Deed {
            kind: RecordKind::Access,
            user_id: &by.user_id,
            keys: Some(&keys),
            by,
            about,
            reason: &address,
        };
        let entry = self.entry(&deed).await?;
        let id = entry.id.clone();
        let draft = Draft::from(entry);
        self.store.append(draft, Durability::Batched).await?;
        Ok(id)
    }
}
