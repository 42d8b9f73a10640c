//! What only an operator may say about time: that a clock is right, and that keys of long ago may be forgotten.

use std::sync::Arc;

use countersign_contract::{EvidenceRecord, RecordKind, Retention, SnapshotId};
use serde_json::{Value, json};

use super::act::Deed;
use super::{Archive, Error, SCOPE_ERASE, SCOPE_RESOLVE};
use crate::ledger::{Forgotten, Names, Passage, Told};
use crate::principal::Principal;
use crate::retention::RetentionPlan;
use crate::vault::SHARED;

impl Archive {
    /// Believes the store's clock from now on, with its record: what is past its time by that clock is removed.
    /// Returns what was found before.
    pub async fn trust_clock(
        &self,
        by: &Principal,
        reason: &str,
    ) -> Result<(Passage, SnapshotId), Error> {
        self.needs(by, SCOPE_ERASE, "trust_clock", None).await?;
        let reason = self.reasoned(reason, by, "trust_clock", None).await?;
        let (id, told) = self
            .telling(by, &reason, |found: &Passage| {
                json!({
                    "event": "clock_trusted",
                    "believed": found.mark.to_string(),
                    "clock": found.clock.to_string(),
                })
            })
            .await?;
        Ok((self.store.trust_time(told).await?, id))
    }

    /// Forgets tombstones, with their record: their keys are free again. Returns how many they were, and the record;
    /// `None` if there was none.
    pub async fn forget_keys(
        &self,
        which: &Forgotten,
        by: &Principal,
        reason: &str,
    ) -> Result<(usize, Option<SnapshotId>), Error> {
        self.needs(by, SCOPE_RESOLVE, "forget_keys", None).await?;
        let reason = self.reasoned(reason, by, "forget_keys", None).await?;
        let (before, tool) = (which.claimed_before.to_string(), which.tool.clone());
        let of_user = which.user_id.is_some();
        let (id, told) = self
            .telling(by, &reason, move |names: &Names| {
                let tool = tool.as_ref().map(ToString::to_string);
                json!({
                    "event": "keys_forgotten",
                    "keys": names.len(),
                    "names": names.to_string(),
                    "claimed_before": before,
                    "tool": tool,
                    "of_one_user": of_user,
                })
            })
            .await?;
        let forgotten = self.store.forget_keys(which, told).await?;
        Ok((forgotten, (forgotten > 0).then_some(id)))
    }

    /// Makes the record of an act when the store knows what was done.
    async fn telling<T: 'static>(
        &self,
        by: &Principal,
        reason: &str,
        about: impl Fn(&T) -> Value + Send + Sync + 'static,
    ) -> Result<(SnapshotId, Told<T>), Error> {
        let deed = Deed {
            kind: RecordKind::Config,
            user_id: "",
            keys: None,
            by,
            about: Value::Null,
            reason,
        };
        let id = self.ids.snapshot_id();
        let blank = EvidenceRecord {
            retention: Retention::Long,
            ..self.blank(&deed, id.clone())
        };
        let entropy = self.entropy();
        let shared = self.vault.key(SHARED).await?;
        let (archive, reason) = (self.clone(), reason.to_owned());
        let told = move |done: &T| {
            let mut record = EvidenceRecord {
                act: about(done),
                ..blank.clone()
            };
            let owner = (SHARED, &*shared);
            let sealed = Self::seal(&entropy, owner, &reason, &mut record, &[]);
            let mut entry = archive.entry_of(&record, "");
            entry.payload = Some(sealed);
            entry.keep_payload = RetentionPlan::default().of(record.retention);
            entry
        };
        Ok((id, Arc::new(told)))
    }
}
