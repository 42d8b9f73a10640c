//! An answer, read again by the caller whom it was given to: what was too long for one reply.
//!
//! It is opened from its record, so that nothing is kept twice, and for as long as the payload of the record is kept. No scope is needed for
//! what the caller was answered already; that it was read again is in the log before it is shown, as with everything that is opened.

use std::sync::Arc;

use countersign_contract::evidence::Exact;
use countersign_contract::{EvidenceRecord, SnapshotId};
use countersign_evidence::seal::UserKey;

use super::content::Content;
use super::open::open_stored;
use super::{Archive, Error, record_of};
use crate::executor::Reader;
use crate::ledger::StoredRecord;
use crate::scribe::recorded_actor;

/// The record of an answer that a caller was given.
#[derive(Debug)]
pub struct Answered {
    stored: StoredRecord,
    record: EvidenceRecord,
    keys: Arc<UserKey>,
}

impl Answered {
    /// The tool that answered.
    pub fn tool(&self) -> Option<&str> {
        self.stored.row.tool.as_deref()
    }
}

impl Archive {
    /// The record of an answer that was given to this very caller: the same user, and the same actor.
    ///
    /// # Errors
    ///
    /// [`Error::NoRecord`] if there is none, if it is another user's, and if it isn't the answer of a tool.
    pub async fn answered(&self, id: &SnapshotId, reader: &Reader<'_>) -> Result<Answered, Error> {
        let none = || Error::NoRecord { id: id.clone() };
        let stored = self.stored(id).await?;
        if stored.row.user_id.is_empty() || stored.row.user_id != reader.user_id {
            return Err(none());
        }
        let record = record_of(&stored)?;
        let keys = self.keys_of(&stored).await?.ok_or_else(none)?;
        let is_proved = *reader.actor == reader.principal.actor;
        let actor = recorded_actor(reader.actor, reader.user_id, &keys, is_proved);
        let is_theirs = record.actor.as_ref() == Some(&actor);
        let is_answer = record.reply.as_ref().is_some_and(|it| it.code.is_none());
        if !is_theirs || !is_answer {
            return Err(none());
        }
        Ok(Answered {
            stored,
            record,
            keys,
        })
    }

    /// Opens an answer for its caller; `None` if its payload is not kept any more. The record of it is durable before.
    pub async fn read_again(
        &self,
        answered: &Answered,
        reader: &Reader<'_>,
    ) -> Result<Option<Exact>, Error> {
        let Answered {
            stored,
            record,
            keys,
        } = answered;
        if stored.payload.is_none() {
            return Ok(None);
        }
        let access = ("read_again", reader.principal, REASON);
        self.write_access(stored, keys, access).await?;
        Ok(match open_stored(stored, record, keys)? {
            Content::Open(payload) => payload.data,
            Content::Nothing | Content::Pruned | Content::Erased => None,
        })
    }
}

/// The reason that is sealed with the record of a reading.
const REASON: &str = "the rest of an answer, for the caller whom it was given to";
