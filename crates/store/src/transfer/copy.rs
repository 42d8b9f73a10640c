//! Moving from a SQLite file to an empty PostgreSQL database.

use std::time::Duration;

use countersign::ledger::{Error, Head, Integration, Log as _, Sequencing};
use countersign_contract::Digest;
use countersign_contract::evidence::EvidenceRecord;
use countersign_evidence::tree::{Frontier, leaf_hash};

use super::{Row, Source, TransferRecord};
use crate::postgres::PostgresStore;
use crate::sqlite::SqliteStore;

/// So many rows are moved at once.
const BATCH: usize = 500;

/// Copies everything into a PostgreSQL store that has nothing in it, reads it back and compares it, row by
/// row, before anything of it can be seen there. Whatever fails, the database is as empty as before.
///
/// Nobody else may use the two stores meanwhile: what changes in between is a difference, and a
/// difference stops the copy. Records that wait for their place in the tree get it first.
pub async fn copy(
    from: &SqliteStore,
    to: &PostgresStore,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Report, CopyError> {
    integrate_all(from).await?;
    copy_rows(&mut from.dump()?, &mut from.dump()?, to, progress).await
}

/// How far a copy is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What is being done.
    pub phase: Phase,
    /// How many rows of it are done.
    pub rows: u64,
}

/// What a copy does, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Rows are written.
    Copy,
    /// They are read back and compared.
    Verify,
}

/// What was copied, and compared with what it was copied from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Report {
    /// Keys of users.
    pub user_keys: u64,
    /// Claims.
    pub claims: u64,
    /// Documents, deleted ones too.
    pub documents: u64,
    /// Shapes of collections.
    pub shapes: u64,
    /// Records.
    pub records: u64,
    /// Sealed payloads.
    pub payloads: u64,
    /// Tiles of the tree.
    pub tiles: u64,
    /// Signed checkpoints.
    pub checkpoints: u64,
    /// Holds.
    pub holds: u64,
    /// Pots of money.
    pub pots: u64,
    /// What was set aside in them.
    pub reservations: u64,
    /// The tree, which was computed again from the leaves that were copied.
    pub tree: Option<Head>,
}

/// A copy was not done.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// There is something already.
    #[error("the database is not empty: {table} has rows")]
    NotEmpty {
        /// The first table that has rows.
        table: &'static str,
    },
    /// What was read back is not what was written.
    #[error("{what} of the copy is not the one of the original")]
    Differs {
        /// What it is.
        what: String,
    },
    /// The tree over the leaves is not the one that the log says.
    #[error("the leaves have another root than the head of the log, of size {size}")]
    Tree {
        /// How many leaves the head says there are.
        size: u64,
    },
    /// The tree over the leaves is not the one that was signed.
    #[error("the first {size} leaves have another root than the newest signed checkpoint")]
    Signed {
        /// How many leaves were signed.
        size: u64,
    },
    /// A payload is not the one that its record was made of.
    #[error("the payload of record {record} is not the one that the record names")]
    Payload {
        /// The record.
        record: String,
    },
    /// Somebody else integrates records of the original.
    #[error("another process uses the original store")]
    InUse,
    /// A store did not answer.
    #[error(transparent)]
    Store(#[from] Error),
}

/// Two readings of the same store, because the first one is gone when the copy can be read.
async fn copy_rows(
    from: &mut dyn Source,
    again: &mut dyn Source,
    to: &PostgresStore,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Report, CopyError> {
    let import = to.import().await?;
    let mut import = import.map_err(|table| CopyError::NotEmpty { table })?;
    let mut rows = 0;
    loop {
        let batch = from.next_batch(BATCH).await?;
        if batch.is_empty() {
            break;
        }
        rows += batch.len() as u64;
        import.add(batch).await?;
        let phase = Phase::Copy;
        progress(Progress { phase, rows });
    }
    let mut verified = Verified::default();
    loop {
        let original = again.next_batch(BATCH).await?;
        let copied = import.added().next_batch(BATCH).await?;
        for (original, copied) in original.iter().zip(&copied) {
            if original != copied {
                let what = name(original);
                return Err(CopyError::Differs { what });
            }
            verified.add(copied)?;
        }
        if original.len() != copied.len() {
            let what = "the number of rows".to_owned();
            return Err(CopyError::Differs { what });
        }
        if copied.is_empty() {
            break;
        }
        let (phase, rows) = (Phase::Verify, verified.rows);
        progress(Progress { phase, rows });
    }
    let report = verified.finish()?;
    import.commit().await?;
    Ok(report)
}

async fn integrate_all(from: &SqliteStore) -> Result<(), CopyError> {
    let sequencing = Sequencing {
        holder: "copy".to_owned(),
        lease: Duration::from_mins(1),
    };
    from.flush().await?;
    loop {
        match from.integrate(&sequencing, BATCH).await? {
            Integration::Done { added: 0, .. } => return Ok(()),
            Integration::Done { .. } => {}
            Integration::NotOurs => return Err(CopyError::InUse),
        }
    }
}

/// Counts what was compared, and checks what the rows say of each other.
#[derive(Default)]
pub(crate) struct Verified {
    rows: u64,
    report: Report,
    leaves: Frontier,
    /// A tree that was signed, until the leaves have come as far.
    signed: Option<Head>,
}

impl Verified {
    /// The leaves have to give this tree on their way.
    pub(crate) fn expecting(signed: Option<Head>) -> Self {
        Self {
            signed: signed.filter(|signed| signed.size > 0),
            ..Self::default()
        }
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    pub(crate) fn add(&mut self, row: &Row) -> Result<(), CopyError> {
        self.rows += 1;
        let report = &mut self.report;
        match row {
            Row::UserKey { .. } => report.user_keys += 1,
            Row::Claim(_) => report.claims += 1,
            Row::Document { .. } => report.documents += 1,
            Row::Shape { .. } => report.shapes += 1,
            Row::Record(record) => {
                report.records += 1;
                if let Some(payload) = &record.payload {
                    report.payloads += 1;
                    is_named(record, payload)?;
                }
                if record.index == Some(self.leaves.size()) {
                    self.leaves.push(leaf_hash(&record.leaf));
                    self.compare_signed()?;
                }
            }
            Row::Tile { .. } => report.tiles += 1,
            Row::Head(head) => report.tree = Some(*head),
            Row::Checkpoint { .. } => report.checkpoints += 1,
            Row::Hold(_) => report.holds += 1,
            Row::Pot(_) => report.pots += 1,
            Row::Reservation(_) => report.reservations += 1,
        }
        Ok(())
    }

    fn compare_signed(&mut self) -> Result<(), CopyError> {
        let size = self.leaves.size();
        match self.signed.take_if(|signed| signed.size == size) {
            Some(signed) if signed.root != self.leaves.root() => Err(CopyError::Signed { size }),
            Some(_) | None => Ok(()),
        }
    }

    pub(crate) fn finish(self) -> Result<Report, CopyError> {
        if let Some(Head { size, .. }) = self.signed {
            return Err(CopyError::Signed { size });
        }
        let size = self.report.tree.map_or(0, |tree| tree.size);
        let computed = Head {
            size: self.leaves.size(),
            root: self.leaves.root(),
        };
        if self.report.tree == Some(computed) {
            Ok(self.report)
        } else {
            Err(CopyError::Tree { size })
        }
    }
}

/// A record names the digest of its payload; one that names none has nothing to compare.
fn is_named(record: &TransferRecord, payload: &[u8]) -> Result<(), CopyError> {
    let read = serde_json::from_slice::<EvidenceRecord>(&record.leaf);
    let named = read.ok().and_then(|read| read.payload);
    if named.is_none_or(|named| named == Digest::of_bytes(payload)) {
        return Ok(());
    }
    Err(CopyError::Payload {
        record: record.row.id.to_string(),
    })
}

fn name(row: &Row) -> String {
    match row {
        Row::UserKey { .. } => "the key of a user".to_owned(),
        Row::Claim(claim) => format!("the claim of key {}", claim.scope.key),
        Row::Document { key, .. } => format!("a document of collection {}", key.collection),
        Row::Shape { collection, .. } => format!("the shape of collection {collection}"),
        Row::Record(record) => format!("record {}", record.row.id),
        Row::Tile { id, .. } => format!("tile {} of level {}", id.index, id.level),
        Row::Head(_) => "the head of the log".to_owned(),
        Row::Checkpoint { head, .. } => format!("the checkpoint of size {}", head.size),
        Row::Hold(_) => "a hold".to_owned(),
        Row::Pot(pot) => format!("the pot {}", pot.key),
        Row::Reservation(reserved) => format!("what {} has set aside", reserved.id.id),
    }
}
