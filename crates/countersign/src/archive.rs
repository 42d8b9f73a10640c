//! The archive: operations of operators and auditors on the log (look, open, prove, export, hold, erase, resolve,
//! forget keys, trust the clock, verify).
//!
//! Every operation that shows or changes something personal needs a scope of its own and a reason, and leaves a record.
//! Opening leaves it *before* anything is shown: no record, no plaintext.

use std::fmt;
use std::sync::Arc;

use countersign_contract::{EvidenceRecord, RecordKind, RequestId, SnapshotId};
use countersign_evidence::checkpoint::CheckpointError;
use countersign_evidence::note::{SigningKey, VerifyingKey};
use countersign_evidence::receipt::ReceiptFault;

use crate::clock::Clock;
use crate::denials::Denials;
use crate::ids::IdSource;
use crate::ledger::{self, ClaimQuery, ClaimRow, LogQuery, LogRow, Store, StoredRecord};
use crate::retention::RetentionPlan;
use crate::vault::Vault;

mod act;
mod again;
mod belongings;
mod case;
mod content;
mod denied;
mod doubt;
mod erase;
mod export;
pub(crate) mod growth;
mod listed;
mod locate;
mod manner;
mod open;
mod opened;
mod proof;
mod published;
mod read;
mod reason;
mod recording;
mod repeats;
mod resolve;
mod time;
mod trail;
pub mod verify;
mod words;

pub use again::Answered;
pub use belongings::Belongings;
pub use case::{Case, CasePart, CaseRecord};
pub use content::{Content, Tampering};
pub use doubt::KeyedClaim;
pub use erase::{Coverage, Erasure};
pub use export::Export;
pub use growth::NotGrown;
pub use locate::KnownThing;
pub use manner::Manner;
pub use open::Opened;
pub use opened::OpenedCall;
pub use proof::{CoseForm, Proof, Standing};
pub use read::Read;
pub use recording::{LeftOut, Recorded, RecordedCalls};
pub use repeats::{Repeat, Repeats};
pub use resolve::{Resolution, Resolved};
pub use trail::{TRAIL_PAGE_MAX, Trail, TrailEntry, TrailForm};
pub use words::ListedHold;

/// Grants opening payloads.
pub const SCOPE_OPEN: &str = "evidence:open";

/// Grants erasing users, and trusting a clock by which content is removed.
pub const SCOPE_ERASE: &str = "evidence:erase";

/// Grants placing and lifting holds.
pub const SCOPE_HOLD: &str = "evidence:hold";

/// Grants stating the outcome of a call that is in doubt, and forgetting keys of settled ones.
pub const SCOPE_RESOLVE: &str = "claims:resolve";

/// Errors of the archive.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store failed. Usually the database cannot be reached, or the disk is full.
    #[error(transparent)]
    Store(#[from] ledger::Error),
    /// The caller's credential lacks a scope. Usually the key was made without `--scope evidence:open` or its like.
    #[error("the credential does not grant {scope:?}")]
    MissingScope {
        /// The scope that is required.
        scope: &'static str,
    },
    /// No reason was given. Operations on personal data require one. Usually the option or the field was left empty.
    #[error("a reason is needed: at least one visible character")]
    NoReason,
    /// No user id was given. An operation about a user needs one. Usually a variable of a script was empty.
    #[error("a user id is needed")]
    NoUser,
    /// The store has nothing of this user. Usually the id is mistyped, or the user was erased.
    #[error("the store has nothing of a user {user_id:?}")]
    UnknownUser {
        /// The user id that was given.
        user_id: String,
    },
    /// No record has this id. Usually the id is mistyped, or belongs to another log.
    #[error("there is no record {id}")]
    NoRecord {
        /// Its name.
        id: SnapshotId,
    },
    /// A record does not match the log. Usually it was changed in the store after it was written.
    #[error("the record {id} was tampered with: {what}")]
    Tampered {
        /// Its name.
        id: SnapshotId,
        /// The difference.
        what: Tampering,
    },
    /// A leaf of the log is not a record. Usually a later version wrote it, or the store is damaged.
    #[error("leaf {index} of the log is not a record that this program can read")]
    NotARecord {
        /// Its place in the tree.
        index: u64,
    },
    /// The log has no signed checkpoint yet, which a proof needs.
    /// Usually the store is new, and nothing was signed yet.
    #[error("the log has no signed checkpoint yet")]
    NoCheckpoint,
    /// The record is not in the tree yet, or waits for the next signature. A retry after a second usually succeeds.
    #[error("the record {id} is not under a signed checkpoint yet; ask again in a second")]
    NotSignedYet {
        /// Its name.
        id: SnapshotId,
    },
    /// The newest checkpoint in the store is not one of this log. Usually the store belongs to another log key.
    #[error("the newest checkpoint in the store is not valid: {0}")]
    Checkpoint(#[from] CheckpointError),
    /// The checkpoint that the auditor kept is not one of this log.
    /// Usually it is of another installation, or the file was altered.
    #[error("the supplied checkpoint is not valid: {0}")]
    Held(#[source] CheckpointError),
    /// This archive has no key to sign receipts with. Usually the server of a replica was started without `log.key`.
    #[error("this server does not have the key that signs the log")]
    NoSigner,
    /// The receipt could not be made from a proof that holds. Usually this is a fault of this program.
    #[error("the receipt could not be made: {0}")]
    Receipt(#[from] ReceiptFault),
    /// The tree does not continue the checkpoint that was signed: the log was rolled back, rewritten or damaged.
    /// Usually an old copy of the store was put back.
    #[error(transparent)]
    NotGrown(#[from] NotGrown),
    /// More records were requested than one operation may have. Usually a filter was left out.
    #[error("{found} records are too many at once: at most {limit}")]
    TooMany {
        /// Number of records that were requested.
        found: usize,
        /// Maximum number of records.
        limit: usize,
    },
    /// The id does not show which user it belongs to, and there are too many users to search all of them: name the
    /// user. Usually the caller chose the id of the request.
    #[error(
        "{name:?} is not an id of the gateway, and there are more than {max} users whose id it could be", max = locate::USERS_MAX
    )]
    NameTheUser {
        /// The id that was searched for.
        name: String,
    },
    /// The answer that the operator gave has no canonical JSON form. Usually it has a number that no double can hold.
    #[error("the answer has no canonical form: {0}")]
    NotCanonical(#[from] countersign_contract::canonical::Error),
}

/// The log of one store, for operators and auditors.
#[derive(Clone)]
pub struct Archive {
    store: Arc<dyn Store>,
    vault: Arc<Vault>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    key: VerifyingKey,
    /// Key that signs receipts; `None` if this archive signs none.
    signer: Option<Arc<SigningKey>>,
    denials: Denials,
    things: Arc<[KnownThing]>,
    belongings: Vec<Arc<dyn Belongings>>,
    retention: RetentionPlan,
}

/// A record as it is stored, without its sealed payload.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    /// Its row.
    pub row: LogRow,
    /// The record itself.
    pub record: EvidenceRecord,
    /// Its place in the tree; `None` while it waits for integration.
    pub index: Option<u64>,
    /// True if its sealed payload is still stored.
    pub has_payload: bool,
    /// The state of its proof.
    pub standing: Standing,
}

impl Archive {
    /// The log that this key signs; the key's name is the log's origin.
    pub fn new(
        store: Arc<dyn Store>,
        vault: Arc<Vault>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
        key: VerifyingKey,
    ) -> Self {
        let denials = Denials::new(store.clone(), vault.clone(), clock.clone(), ids.clone());
        Self {
            store,
            vault,
            clock,
            ids,
            key,
            signer: None,
            denials,
            things: Arc::default(),
            belongings: Vec::new(),
            retention: RetentionPlan::default(),
        }
    }

    /// Sets the retention of payloads, if it is not the default: one that is gone before its end is a fault.
    pub fn retention(mut self, retention: RetentionPlan) -> Self {
        self.retention = retention;
        self
    }

    /// One record, with the state of its proof. Nothing is opened.
    pub async fn show(&self, id: &SnapshotId) -> Result<Shown, Error> {
        let stored = self.stored(id).await?;
        let record = self.record_of_user(&stored).await?;
        let standing = self.standing(&stored).await?;
        Ok(Shown {
            record,
            index: stored.index,
            has_payload: stored.payload.is_some(),
            standing,
            row: stored.row,
        })
    }

    /// Lists records that match a filter, newest first.
    pub async fn list(&self, query: &LogQuery) -> Result<Vec<LogRow>, Error> {
        Ok(self.store.records(query).await?)
    }

    /// The records of these rows, without their proofs.
    pub async fn records(&self, rows: &[LogRow]) -> Result<Vec<EvidenceRecord>, Error> {
        let mut records = Vec::with_capacity(rows.len());
        for row in rows {
            let stored = self.stored(&row.id).await?;
            records.push(self.record_of_user(&stored).await?);
        }
        Ok(records)
    }

    /// The records of a call, newest first, by the id that the gateway made or the caller chose. An id that the gateway
    /// made is found at once. An id that a caller chose is stored as a digest under the user's key, so without a user
    /// it is searched for user by user; with more than a thousand users that fails with [`Error::NameTheUser`].
    ///
    /// The intent of a call, which is written before an effect elsewhere, is listed only if there is no other record.
    pub async fn of_request(
        &self,
        request_id: &RequestId,
        user_id: Option<&str>,
        limit: usize,
    ) -> Result<Vec<LogRow>, Error> {
        let mut rows = self
            .with_intents(request_id, user_id, limit.saturating_mul(2))
            .await?;
        if rows.iter().any(|row| row.kind != RecordKind::Intent) {
            rows.retain(|row| row.kind != RecordKind::Intent);
        }
        rows.truncate(limit);
        Ok(rows)
    }

    /// The records of a call as [`of_request`](Self::of_request) finds them, always with its intents.
    pub async fn with_intents(
        &self,
        request_id: &RequestId,
        user_id: Option<&str>,
        limit: usize,
    ) -> Result<Vec<LogRow>, Error> {
        // A record of a plain read may still wait for its batch.
        self.store.flush().await?;
        let made = LogQuery {
            request_id: Some(request_id.clone()),
            user_id: user_id.map(str::to_owned),
            limit,
            ..LogQuery::default()
        };
        let mut rows = self.store.records(&made).await?;
        if user_id.is_none() && !rows.is_empty() {
            return Ok(rows);
        }
        let users = self.users_meant(user_id, request_id.as_str()).await?;
        if !users.is_empty() {
            let chosen = users.iter().map(|(_, keys)| keys.request_id(request_id));
            let chosen = LogQuery {
                request_ids: chosen.collect(),
                user_id: user_id.map(str::to_owned),
                limit,
                ..LogQuery::default()
            };
            rows.extend(self.store.records(&chosen).await?);
        }
        rows.sort_by(|left, right| (right.at, &right.id).cmp(&(left.at, &left.id)));
        rows.truncate(limit);
        Ok(rows)
    }

    /// Claims, oldest first.
    pub async fn claims(&self, query: &ClaimQuery) -> Result<Vec<ClaimRow>, Error> {
        Ok(self.store.claims(query).await?)
    }

    /// The record in a leaf, which has to be about the user that its row names. This cannot be checked if the user's
    /// key is gone or cannot be opened.
    async fn record_of_user(&self, stored: &StoredRecord) -> Result<EvidenceRecord, Error> {
        let record = record_of(stored)?;
        let is_erased = stored.row.user_id.is_empty();
        if let Ok(Some(keys)) = self.keys_of(stored).await
            && !is_erased
            && !content::is_of_user(&stored.row, &record, &keys)
        {
            return Err(tampered(stored, Tampering::Row("user")));
        }
        Ok(record)
    }

    async fn stored(&self, id: &SnapshotId) -> Result<StoredRecord, Error> {
        let stored = ledger::awaited_record(&*self.store, id).await?;
        stored.ok_or_else(|| Error::NoRecord { id: id.clone() })
    }
}

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Archive({})", self.key.name())
    }
}

/// The record in a leaf, which has to be the one that its row names.
fn record_of(stored: &StoredRecord) -> Result<EvidenceRecord, Error> {
    content::record_of(stored).map_err(|what| tampered(stored, what))
}

fn tampered(stored: &StoredRecord, what: Tampering) -> Error {
    Error::Tampered {
        id: stored.row.id.clone(),
        what,
    }
}
