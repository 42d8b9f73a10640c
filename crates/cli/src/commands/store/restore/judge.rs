//! Check that a restored store may continue its log, against the newest checkpoint outside of the store.

use countersign::archive::verify::Verification;
use countersign_evidence::checkpoint::Checkpoint;

use crate::copies;
use crate::failure::Failure;
use crate::journal::{CHECKPOINT, SIGNED};
use crate::place::{Place, archive_failed, store_failed};
use crate::progress::Bar;

/// Findings about the log that a store is a copy of.
pub(super) struct Judgement {
    /// Number of records in the store's tree.
    pub(super) size: u64,
    /// The newest signed note in the store.
    pub(super) signed: Option<String>,
    /// The newest note that is known at all.
    pub(super) newest: Option<String>,
    standing: Standing,
}

enum Standing {
    /// No record was signed after it.
    Newest,
    /// This number of records was signed after it.
    Older(u64),
    /// It cannot be known.
    Unknown,
}

impl Judgement {
    /// Verifies everything that is in the store, and compares it with the checkpoint in the folder and its copies.
    pub(super) fn of(place: &Place, is_copy: bool) -> Result<Self, Failure> {
        let store = place.store();
        let (signed, head) = place
            .runtime
            .block_on(async { Ok((store.checkpoint().await?, store.head().await?)) })
            .map_err(store_failed)?;
        let open = |note: &str| Checkpoint::open(note, &place.log_key).ok();
        let known = |note: Option<String>| note.and_then(|note| Some((open(&note)?, note)));
        // Of the notes in the folder only the signer's own tells that nothing came after it.
        let from_sequencer = known(place.folder.read(SIGNED)?);
        let is_own = from_sequencer.is_some();
        let newest = known(place.folder.read(CHECKPOINT)?);
        let copied = copies::read(place, &place.log_key).into_iter();
        let copied = copied.filter_map(|copy| copy.read.ok());
        let newest = [from_sequencer, newest]
            .into_iter()
            .flatten()
            .chain(copied)
            .max_by_key(|newest| newest.0.size);
        let signed_size = signed
            .as_deref()
            .and_then(open)
            .map_or(0, |signed| signed.size);
        let standing = match &newest {
            Some((known, _)) if known.size > head.size => {
                verified(place, None)?;
                Standing::Older(known.size - head.size)
            }
            Some((known, note)) => {
                verified(place, Some(note.clone()))?;
                // A checkpoint from before the copy says nothing about what came after it.
                if is_copy && (!is_own || known.size < signed_size) {
                    Standing::Unknown
                } else {
                    Standing::Newest
                }
            }
            None => {
                verified(place, None)?;
                if is_copy {
                    Standing::Unknown
                } else {
                    Standing::Newest
                }
            }
        };
        let newest = match newest {
            Some((known, note)) if known.size >= signed_size => Some(note),
            Some(_) | None => signed.clone(),
        };
        Ok(Self {
            size: head.size,
            signed,
            newest,
            standing,
        })
    }

    /// True if the log may go on under its own name.
    pub(super) fn is_newest(&self) -> bool {
        matches!(self.standing, Standing::Newest)
    }

    /// Returns the number of signed records that are lost; `None` if none are, or if it is not known.
    pub(super) fn lost(&self) -> Option<u64> {
        match self.standing {
            Standing::Newest | Standing::Unknown => None,
            Standing::Older(lost) => Some(lost),
        }
    }
}

/// Refuses a store whose log is not valid, or has not grown from this checkpoint.
pub(super) fn verified(place: &Place, held: Option<String>) -> Result<(), Failure> {
    place
        .runtime
        .block_on(place.backend.check())
        .map_err(store_failed)?;
    let verification = Verification {
        held,
        ..Verification::default()
    };
    let archive = place.archive();
    let bar = Bar::here(0, "records verified");
    let verified = archive.verify_all(&verification, |progress, size| {
        bar.set_length(size);
        bar.set_position(progress.size);
    });
    let report = place.runtime.block_on(verified);
    bar.finish_and_clear();
    let report = report.map_err(archive_failed)?;
    let Some(finding) = report.findings.first() else {
        return Ok(());
    };
    Err(
        Failure::new(format!("the log is not valid: {}", finding.fault))
            .hint("nothing was changed; use another backup")
            .not_verified(),
    )
}
