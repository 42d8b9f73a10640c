//! The roots that the tree has to have at certain sizes: those of the signed checkpoint, of the auditor's checkpoint,
//! and of the store's own head.

use countersign_contract::Digest;
use countersign_evidence::checkpoint::Checkpoint;
use countersign_evidence::note::Note;
use countersign_evidence::tree::Hash;

use super::{Fault, Found, NotChecked, Whose};
use crate::archive::{Archive, Error};
use crate::ledger::Head;

pub(super) struct Marks(Vec<(Whose, u64, Hash)>);

impl Marks {
    pub(super) async fn read(
        archive: &Archive,
        head: &Head,
        kept: Option<&str>,
        found: &mut Found,
    ) -> Result<Self, Error> {
        let signed = archive.store.checkpoint().await?;
        let mut marks = vec![(Whose::Head, head.size, head.root)];
        if signed.is_none() && head.size > 0 {
            found.add(None, None, Fault::NeverSigned);
        }
        for (whose, note) in [(Whose::Signed, signed.as_deref()), (Whose::Held, kept)] {
            let Some(note) = note else { continue };
            let opened = Checkpoint::open(note, &archive.key);
            if let (Whose::Held, Err(error)) = (whose, &opened) {
                // It may be of a log that this one continues; that is known at the end.
                found.held_elsewhere = Some((note.to_owned(), error.clone()));
                continue;
            }
            if Note::parse(note).is_ok_and(|note| note.signatures_of_others(&archive.key) > 0) {
                found.not_checked.insert(NotChecked::FurtherSignatures);
            }
            match opened {
                Err(error) => found.add(None, None, Fault::Checkpoint { whose, error }),
                Ok(checkpoint) if checkpoint.size > head.size => {
                    let fault = Fault::Shorter {
                        whose,
                        signed: checkpoint.size,
                        found: head.size,
                    };
                    found.add(None, None, fault);
                    marks.push((whose, checkpoint.size, checkpoint.root));
                }
                Ok(checkpoint) => marks.push((whose, checkpoint.size, checkpoint.root)),
            }
        }
        let marks = Self(marks);
        if let (Some(held), Some(signed)) =
            (marks.size_of(Whose::Held), marks.size_of(Whose::Signed))
            && signed < held
        {
            found.add(None, None, Fault::Replayed { held, signed });
        }
        Ok(marks)
    }

    /// The sizes at which a batch has to be cut, so that the root there is known.
    pub(super) fn between(&self, from: u64, to: u64) -> Vec<u64> {
        let sizes = self.0.iter().map(|(_, size, _)| *size);
        let mut sizes: Vec<u64> = sizes.filter(|size| from < *size && *size <= to).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// Marks no larger than the size that a run begins with.
    pub(super) fn behind(&self, start: u64) -> Vec<(Whose, u64, Hash)> {
        let behind = self.0.iter().filter(|(_, size, _)| *size <= start);
        behind.copied().collect()
    }

    pub(super) fn check(&self, size: u64, root: &Hash, found: &mut Found) {
        for (whose, marked, expected) in &self.0 {
            if *marked == size && expected != root {
                let fault = Fault::RootDiffers {
                    whose: *whose,
                    size,
                    expected: Digest(*expected),
                    found: Digest(*root),
                };
                found.add(None, None, fault);
            }
        }
    }

    pub(super) fn size_of(&self, whose: Whose) -> Option<u64> {
        let mark = self.0.iter().find(|(other, _, _)| *other == whose)?;
        Some(mark.1)
    }
}
