//! Opening a sealed payload: a scope, a reason, and a record of the access before anything is shown.

use std::sync::Arc;

use countersign_contract::{EvidenceRecord, RecordKind, SnapshotId};
use countersign_evidence::seal::UserKey;
use serde_json::json;

use super::act::Deed;
use super::content::{self, Content, Tampering};
use super::proof::Standing;
use super::{Archive, Error, SCOPE_OPEN, reason, record_of, tampered};
use crate::executor::is_name;
use crate::ledger::{Durability, StoredRecord};
use crate::principal::Principal;
use crate::scribe::Draft;
use crate::vault::SHARED;

/// A record that was opened.
#[derive(Debug, Clone, PartialEq)]
pub struct Opened {
    /// The record.
    pub record: EvidenceRecord,
    /// The state of its proof.
    pub standing: Standing,
    /// The content: what was sent and answered.
    pub content: Content,
    /// The record of this very access; `None` if there was nothing left to open.
    pub access: Option<SnapshotId>,
}

impl Archive {
    /// Opens the payload of a record. The record of the access is durable before anything is opened; if it cannot be
    /// stored, nothing is opened.
    pub async fn open(
        &self,
        id: &SnapshotId,
        by: &Principal,
        reason: &str,
    ) -> Result<Opened, Error> {
        self.needs(by, SCOPE_OPEN, "open", Some(id)).await?;
        // An empty reason is refused before the record is even looked for.
        self.reasoned(reason, by, "open", Some(id)).await?;
        let stored = self.stored(id).await?;
        let record = record_of(&stored)?;
        let standing = self.standing(&stored).await?;
        if standing == Standing::NotIncluded {
            let index = stored.index.unwrap_or_default();
            return Err(tampered(&stored, Tampering::NotIncluded { index }));
        }
        let (content, access) = match self.keys_of(&stored).await? {
            _ if stored.payload.is_none() => (content::absent(&record, &stored.row), None),
            None => (Content::Erased, None),
            Some(keys) => {
                let access = ("open", by, reason);
                let access = self.write_access(&stored, &keys, access).await?;
                let content = open_stored(&stored, &record, &keys)?;
                (content, Some(access))
            }
        };
        Ok(Opened {
            record,
            standing,
            content,
            access,
        })
    }

    /// The key that the payload of a record is sealed under, if it still exists.
    pub(super) async fn keys_of(
        &self,
        stored: &StoredRecord,
    ) -> Result<Option<Arc<UserKey>>, Error> {
        // A call whose user id was refused is nobody's.
        let owner = match stored.row.user_id.as_str() {
            user_id if is_name(user_id) => user_id,
            _ => SHARED,
        };
        Ok(self.vault.existing_key(owner).await?)
    }

    /// Writes down who looks into a record, how, and why.
    pub(super) async fn write_access(
        &self,
        stored: &StoredRecord,
        keys: &UserKey,
        (event, by, reason): (&str, &Principal, &str),
    ) -> Result<SnapshotId, Error> {
        let user_id = &stored.row.user_id;
        let deed = Deed {
            kind: RecordKind::Access,
            user_id,
            keys: Some(keys),
            by,
            about: json!({"event": event, "record": stored.row.id.as_str()}),
            reason: &reason::checked(reason)?,
        };
        let entry = self.entry(&deed).await?;
        let id = entry.id.clone();
        let draft = Draft::from(entry);
        self.store.append(draft, Durability::Committed).await?;
        Ok(id)
    }
}

/// Checks and opens a payload. The caller has already recorded the access.
pub(super) fn open_stored(
    stored: &StoredRecord,
    record: &EvidenceRecord,
    keys: &UserKey,
) -> Result<Content, Error> {
    let Some(sealed) = &stored.payload else {
        return Ok(content::absent(record, &stored.row));
    };
    let tampered = |what| tampered(stored, what);
    content::check_sealed(record, sealed).map_err(tampered)?;
    let opened = content::open(record, &stored.row, sealed, keys).map_err(tampered)?;
    Ok(Content::Open(Box::new(opened.payload)))
}
