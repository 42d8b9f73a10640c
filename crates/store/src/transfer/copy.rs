//! Copies a SQLite file to an empty PostgreSQL database.

use std::time::Duration;

use countersign::ledger::{Error, Head, Integration, Log as _, Sequencing};
use countersign_contract::Digest;
use countersign_contract::evidence::EvidenceRecord;
use countersign_evidence::tree::{Frontier, leaf_hash};

use super::{Row, Source, TransferRecord};
use crate::postgres::PostgresStore;
use crate::sqlite::SqliteStore;

/// Rows that are copied at once.
const BATCH: usize = 500;

/// Copies everything into an empty PostgreSQL store, reads it back and compares it, row by row, before any of
/// it is visible there. If anything fails, the database is as empty as before.
///
/// No other process may use the two stores meanwhile: a change is a difference, and a difference stops the
/// copy. Records that wait for their place in the tree get it first.
pub async fn copy(
    from: &SqliteStore,
    to: &PostgresStore,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Report, CopyError> {
    integrate_all(from).await?;
    copy_rows(&mut from.dump()?, &mut from.dump()?, to, progress).await
}

/// Progress of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Current phase.
    pub phase: Phase,
    /// Rows of the phase that are done.
    pub rows: u64,
}

/// Phases of a copy, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Rows are written.
    Copy,
    /// Rows are read back and compared.
    Verify,
}

/// Counts of the rows that were copied and compared.
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
    /// Reservations in the pots.
    pub reservations: u64,
    /// Head of the tree, recomputed from the copied leaves.
    pub tree: Option<Head>,
}

/// A copy was not made.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The database is not empty, usually because the URL names the wrong one or an earlier copy succeeded.
    #[error("the database is not empty: {table} has rows")]
    NotEmpty {
        /// The first table that has rows.
        table: &'static str,
    },
    /// A row that was read back differs from the original, usually because a store was used meanwhile.
    #[error("{what} of the copy is not the one of the original")]
    Differs {
        /// Name of what differs.
        what: String,
    },
    /// The leaves do not give the root of the log's head, usually because the original is damaged or was
    /// edited.
    #[error("the leaves have another root than the head of the log, of size {size}")]
    Tree {
        /// Number of leaves according to the head.
        size: u64,
    },
    /// The leaves do not give the root of the newest signed checkpoint, usually because the original was
    /// edited.
    #[error("the first {size} leaves have another root than the newest signed checkpoint")]
    Signed {
        /// Number of leaves that were signed.
        size: u64,
    },
    /// A payload does not match the digest in its record, usually because the original is damaged.
    #[error("the payload of record {record} is not the one that the record names")]
    Payload {
        /// Id of the record.
        record: String,
    },
    /// Another process integrates records of the original, usually a running server.
    #[error("another process uses the original store")]
    InUse,
    /// A store did not answer. Usually its server cannot be reached, or its disk is full.
    #[error(transparent)]
    Store(#[from] Error),
}

/// Copies and compares the rows. It needs two readings of the same store, because the first one is used up when
/// the copy can be read.
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

/// Counts the compared rows, and checks that they are consistent with each other.
#[derive(Default)]
pub(crate) struct Verified {
    rows: u64,
    report: Report,
    leaves: Frontier,
    /// Signed head, until as many leaves have been read.
    signed: Option<Head>,
}

impl Verified {
    /// Requires the leaves to give this head on their way.
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

/// Checks a payload against the digest in its record; a record without a digest has nothing to compare.
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
