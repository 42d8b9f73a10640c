//! Verifying the whole log: every leaf, the tree over them, its tiles, the signatures and, on request, every record
//! with its row, its payload and its links.
//!
//! Leaves are streamed in batches and hashed off the runtime's threads while the next batch is fetched, so memory does
//! not grow with the log. Nothing stops at the first fault: if the log was tampered with in one place, the report still
//! covers the rest.

use std::collections::BTreeSet;
use std::sync::Arc;

use countersign_contract::Digest;
use countersign_evidence::bundle::Verdict;
use countersign_evidence::checkpoint::{Checkpoint, CheckpointError};
use countersign_evidence::tile::TileWriter;
use countersign_evidence::tree;
use serde::{Deserialize, Serialize};

use super::growth::{NotGrown, grown, tiles};
use super::{Archive, Error};
use crate::ledger::{self, Head, Leaf};

mod batch;
mod documents;
mod earlier;
mod finding;
mod gone;
mod marks;
mod not_checked;
mod pots;
mod records;
mod state;

use batch::{Batch, Hashed};
use earlier::Begun;
pub use earlier::{EarlierLog, HeldEarlier, HeldStanding};
pub use finding::{Fault, Finding, Whose};
use gone::Gone;
use marks::Marks;
pub use not_checked::NotChecked;
use state::State;

/// Depth of a verification.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Depth {
    /// Leaves, tree, tiles and signatures: proves that nothing in the log was changed, cut or inserted.
    Tree,
    /// The records too: each leaf is a record, and its row, its payload and its links agree with it.
    #[default]
    Records,
}

/// Options of a verification.
#[derive(Debug, Clone, Default)]
pub struct Verification {
    /// Progress of an earlier run, to go on from.
    pub from: Option<Progress>,
    /// A signed note that an auditor kept: the log has to have grown from it.
    pub held: Option<String>,
    /// True if `held` is stored beside the log, so that an attacker who rolls back the one can roll back the other.
    pub is_held_beside: bool,
    /// Checkpoints of this log that are kept at other places, each with the name of its place: the log has to have grown
    /// from every one of them.
    pub copies: Vec<(Arc<str>, Checkpoint)>,
    /// Depth of the verification.
    pub depth: Depth,
}

/// Progress of a verification: all that is needed to go on from there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// Number of leaves that are verified.
    pub size: u64,
    /// The right edge of the tree over them.
    pub edge: Vec<Digest>,
    /// Number of faults that were found so far.
    pub faults: u64,
}

/// Report of a verification.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VerifyReport {
    /// Origin of the log.
    pub origin: String,
    /// Number of leaves that this run has checked.
    pub checked: u64,
    /// Number of leaves in the log.
    pub size: u64,
    /// The size of the newest signed checkpoint, if it is valid.
    pub signed: Option<u64>,
    /// The size of the checkpoint that the auditor kept, if it is valid.
    pub held: Option<u64>,
    /// The checkpoint that the auditor kept, if it is of a log that this one continues and contradicts nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_earlier: Option<HeldEarlier>,
    /// Payloads whose digest agrees with their record.
    pub payloads: u64,
    /// Payloads that were pruned or erased; their records are still valid.
    pub payloads_gone: u64,
    /// Logs that this one continues after a restore, and whose records still agree with their checkpoints.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub earlier_logs: Vec<EarlierLog>,
    /// Checks that this verification did not make.
    pub not_checked: Vec<NotChecked>,
    /// Every fault, the first thousand of them.
    pub findings: Vec<Finding>,
    /// Number of further faults, including those of the run that this one continued.
    pub further_findings: u64,
    /// Progress, to go on from when the log has grown.
    pub progress: Progress,
}

/// Maximum number of findings in a report.
const FINDINGS_MAX: usize = 1_000;

/// Number of leaves that are fetched at once.
const BATCH: u64 = 4_096;

impl VerifyReport {
    /// True if no fault was found.
    pub fn is_valid(&self) -> bool {
        self.findings.is_empty() && self.further_findings == 0
    }

    /// The verdict. The key of the log is the operator's own, so the signer is always checked.
    pub fn verdict(&self) -> Verdict {
        if self.is_valid() {
            Verdict::Valid
        } else {
            Verdict::Invalid
        }
    }
}

impl Archive {
    /// Verifies the log as it is now. `on_progress` is called after each batch with the progress and the number of
    /// leaves; with that, an interrupted run can go on.
    pub async fn verify_all(
        &self,
        verification: &Verification,
        mut on_progress: impl FnMut(&Progress, u64) + Send,
    ) -> Result<VerifyReport, Error> {
        let head = self.store.head().await?;
        let mut found = Found::default();
        let marks = Marks::read(self, &head, verification.held.as_deref(), &mut found).await?;
        let mut writer = self.resume(verification, &head, &mut found).await?;
        let start = writer.frontier().size();
        let mut at = start;
        let mut next = self.leaves(at, head.size).await?;
        while at < head.size {
            let leaves = match in_order(at, next, head.size) {
                Ok(leaves) => leaves,
                // What follows a gap has no place.
                Err(fault) => {
                    found.add(Some(at), None, fault);
                    break;
                }
            };
            let end = at + leaves.len() as u64;
            let batch = Batch {
                leaves,
                writer,
                splits: marks.between(at, end),
                depth: verification.depth,
                seeks_beginnings: found.held_elsewhere.is_some(),
            };
            let hashing = tokio::task::spawn_blocking(move || batch.hash());
            // The next batch is on its way while this one is hashed.
            next = self.leaves(end, head.size).await?;
            let hashed = hashing.await.map_err(|_| ledger::Error::Damaged {
                what: format!("the batch of leaves from {at} on"),
            })?;
            writer = self.check(hashed, &marks, &mut found).await?;
            at = end;
            on_progress(&found.progress(&writer), head.size);
        }
        if writer.frontier().size() == head.size {
            self.check_behind(&marks, start, &writer, &mut found)
                .await?;
            let begun = std::mem::take(&mut found.begun);
            earlier::check(self, begun, &whole(&writer), &mut found).await?;
            self.check_copies(&verification.copies, &whole(&writer), &mut found)
                .await?;
        }
        if let Some((_, error)) = found.held_elsewhere.take() {
            let whose = Whose::Held;
            found.add(None, None, Fault::Checkpoint { whose, error });
        }
        let (gone, mut state) = (
            std::mem::take(&mut found.gone),
            std::mem::take(&mut found.state),
        );
        state.read_waiting(self, !gone.is_empty()).await?;
        let mut late = gone.faults(state.disposed());
        late.extend(state.faults(self).await?);
        // A record that is not what it was says nothing about state.
        let doubted: BTreeSet<_> = found.findings.iter().map(|finding| finding.index).collect();
        for finding in late {
            if !doubted.contains(&finding.index) {
                found.push(finding);
            }
        }
        found.leave_open(verification, start);
        Ok(found.report(self, start, &head, &marks, &writer))
    }

    async fn leaves(&self, from: u64, size: u64) -> Result<Vec<Leaf>, ledger::Error> {
        let limit = size.saturating_sub(from).min(BATCH);
        if limit == 0 {
            return Ok(Vec::new());
        }
        self.store.leaves(from, limit as usize).await
    }

    /// The tree as far as it was verified before. If the store's tiles do not belong to that tree, everything is
    /// verified from the start.
    async fn resume(
        &self,
        verification: &Verification,
        head: &Head,
        found: &mut Found,
    ) -> Result<TileWriter, Error> {
        let Some(from) = &verification.from else {
            return Ok(TileWriter::new());
        };
        let size = from.size;
        if size > head.size {
            let fault = Fault::Shorter {
                whose: Whose::Progress,
                signed: size,
                found: head.size,
            };
            found.add(None, None, fault);
            return Ok(TileWriter::new());
        }
        let mut wanted = TileWriter::tiles_to_resume(size);
        wanted.extend(tree::tiles_for_frontier(size));
        let tiles = tiles(&*self.store, &wanted).await?;
        let edge = from.edge.iter().map(|hash| hash.0);
        match TileWriter::resume(size, &tiles) {
            Ok(writer) if writer.frontier().hashes().iter().copied().eq(edge) => {
                found.before = from.faults;
                Ok(writer)
            }
            Ok(_) | Err(_) => {
                found.add(None, None, Fault::EdgeDiffers { size });
                Ok(TileWriter::new())
            }
        }
    }

    /// Compares the computed tree with the stored one.
    async fn check(
        &self,
        hashed: Hashed,
        marks: &Marks,
        found: &mut Found,
    ) -> Result<TileWriter, Error> {
        for (size, root) in &hashed.roots {
            marks.check(*size, root, found);
        }
        let ids: Vec<_> = hashed.tiles.iter().map(|(id, _)| *id).collect();
        let kept = self.store.tiles(&ids).await?;
        for ((id, computed), kept) in hashed.tiles.iter().zip(kept) {
            batch::compare_tile(*id, computed, kept.as_deref(), found);
        }
        for finding in hashed.findings {
            found.push(finding);
        }
        found.begun.extend(hashed.begun);
        records::check(self, hashed.records, found).await?;
        Ok(hashed.writer)
    }

    /// Proves checkpoints no larger than the starting size from the tiles: the whole tree has just been computed, so a
    /// proof that leads to its root cannot be made up.
    async fn check_behind(
        &self,
        marks: &Marks,
        start: u64,
        writer: &TileWriter,
        found: &mut Found,
    ) -> Result<(), Error> {
        let whole = whole(writer);
        for (whose, size, root) in marks.behind(start) {
            let old = Checkpoint::new(self.key.name(), size, root);
            match grown(&*self.store, &old, &whole).await {
                Ok(_) => {}
                Err(NotGrown::Store(error)) => return Err(error.into()),
                Err(
                    NotGrown::RolledBack { .. }
                    | NotGrown::Forked { .. }
                    | NotGrown::Damaged { .. }
                    | NotGrown::Tile(_),
                ) => found.add(None, None, Fault::NotShown { whose, size }),
            }
        }
        Ok(())
    }

    /// Compares the computed tree with the checkpoints that are kept at other places.
    async fn check_copies(
        &self,
        copies: &[(Arc<str>, Checkpoint)],
        whole: &Head,
        found: &mut Found,
    ) -> Result<(), Error> {
        for (name, copy) in copies {
            match grown(&*self.store, copy, whole).await {
                Ok(_) => {}
                Err(NotGrown::Store(error)) => return Err(error.into()),
                Err(
                    error @ (NotGrown::RolledBack { .. }
                    | NotGrown::Forked { .. }
                    | NotGrown::Damaged { .. }
                    | NotGrown::Tile(_)),
                ) => {
                    let (name, reason) = (name.clone(), error.to_string().into());
                    found.add(None, None, Fault::Copy { name, reason });
                }
            }
        }
        Ok(())
    }
}

/// The findings so far.
#[derive(Debug, Default)]
pub(super) struct Found {
    findings: Vec<Finding>,
    further: u64,
    before: u64,
    payloads: u64,
    payloads_gone: u64,
    gone: Gone,
    state: State,
    not_checked: BTreeSet<NotChecked>,
    /// Records that begin this log as the continuation of another one, until the whole tree is known.
    begun: Vec<Begun>,
    earlier: Vec<EarlierLog>,
    /// A kept note that is no checkpoint of this log, with the reason, until the earlier logs are known.
    held_elsewhere: Option<(String, CheckpointError)>,
    held_earlier: Option<HeldEarlier>,
}

impl Found {
    fn add(&mut self, index: Option<u64>, id: Option<Arc<str>>, fault: Fault) {
        self.push(Finding { index, id, fault });
    }

    fn push(&mut self, finding: Finding) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        } else {
            self.further += 1;
        }
    }

    /// Adds the checks that this kind of run never makes.
    fn leave_open(&mut self, verification: &Verification, start: u64) {
        // A checkpoint of an earlier log says nothing about what came after it.
        let has_held = verification.held.is_some() && self.held_earlier.is_none();
        let has_copy = !verification.copies.is_empty();
        let open = [
            (NotChecked::Records, verification.depth == Depth::Tree),
            (NotChecked::EarlierRun, start > 0),
            (NotChecked::Rewriting, !has_held && !has_copy),
            (
                NotChecked::Rollback,
                has_held && verification.is_held_beside && !has_copy,
            ),
            (NotChecked::SealedPayloads, self.payloads > 0),
            (NotChecked::PayloadsGone, self.payloads_gone > 0),
            (NotChecked::State, true),
        ];
        let open = open.into_iter().filter(|(_, is_open)| *is_open);
        self.not_checked.extend(open.map(|(what, _)| what));
    }

    fn progress(&self, writer: &TileWriter) -> Progress {
        let frontier = writer.frontier();
        Progress {
            size: frontier.size(),
            edge: frontier.hashes().iter().copied().map(Digest).collect(),
            faults: self.before + self.further + self.findings.len() as u64,
        }
    }

    fn report(
        self,
        archive: &Archive,
        start: u64,
        head: &Head,
        marks: &Marks,
        writer: &TileWriter,
    ) -> VerifyReport {
        let progress = self.progress(writer);
        let holds = |whose: Whose| {
            let mark = marks.size_of(whose)?;
            let is_faulty = |finding: &Finding| finding.fault.whose() == Some(whose);
            let is_reached = mark <= progress.size && !self.findings.iter().any(is_faulty);
            is_reached.then_some(mark)
        };
        VerifyReport {
            origin: archive.key.name().to_owned(),
            checked: progress.size - start,
            size: head.size,
            signed: holds(Whose::Signed),
            held: holds(Whose::Held),
            held_earlier: self.held_earlier,
            payloads: self.payloads,
            payloads_gone: self.payloads_gone,
            earlier_logs: self.earlier,
            not_checked: self.not_checked.into_iter().collect(),
            further_findings: self.further + self.before,
            findings: self.findings,
            progress,
        }
    }
}

/// The tree that was computed.
fn whole(writer: &TileWriter) -> Head {
    Head {
        size: writer.frontier().size(),
        root: writer.frontier().root(),
    }
}

/// The leaves up to the first that is out of order, which is reported when it is fetched again.
fn in_order(from: u64, mut leaves: Vec<Leaf>, size: u64) -> Result<Vec<Leaf>, Fault> {
    let in_place = leaves.iter().zip(from..);
    let count = in_place
        .take_while(|(leaf, place)| leaf.index == *place)
        .count();
    match leaves.first() {
        None => Err(Fault::LeafMissing { size }),
        Some(first) if count == 0 => Err(Fault::OutOfOrder { found: first.index }),
        Some(_) => {
            leaves.truncate(count);
            Ok(leaves)
        }
    }
}
