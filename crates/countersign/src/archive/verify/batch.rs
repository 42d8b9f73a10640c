//! One batch of leaves: pure computation, done off the runtime's threads.

use std::sync::Arc;

use countersign_contract::EvidenceRecord;
use countersign_contract::evidence::LeafError;
use countersign_evidence::tile::{TileId, TileWriter, WIDTH};
use countersign_evidence::tree::{Hash, leaf_hash};

use super::earlier::{self, Begun};
use super::{Depth, Fault, Finding, Found};
use crate::ledger::Leaf;

pub(super) struct Batch {
    pub(super) leaves: Vec<Leaf>,
    pub(super) writer: TileWriter,
    /// Sizes at which the root is needed, in rising order.
    pub(super) splits: Vec<u64>,
    pub(super) depth: Depth,
    /// True if records that begin a log are read at every depth.
    pub(super) seeks_beginnings: bool,
}

pub(super) struct Hashed {
    pub(super) writer: TileWriter,
    pub(super) roots: Vec<(u64, Hash)>,
    pub(super) tiles: Vec<(TileId, Vec<u8>)>,
    pub(super) records: Vec<ReadRecord>,
    pub(super) begun: Vec<Begun>,
    pub(super) findings: Vec<Finding>,
}

/// A leaf that is a record.
pub(super) struct ReadRecord {
    pub(super) index: u64,
    pub(super) leaf: Vec<u8>,
    pub(super) record: EvidenceRecord,
}

impl Batch {
    pub(super) fn hash(self) -> Hashed {
        let mut writer = self.writer;
        let hashes: Vec<Hash> = self
            .leaves
            .iter()
            .map(|leaf| leaf_hash(&leaf.bytes))
            .collect();
        let (mut roots, mut tiles) = (Vec::new(), Vec::new());
        let mut rest = hashes.as_slice();
        for size in self.splits {
            let upto = size.saturating_sub(writer.frontier().size()) as usize;
            let (now, later) = rest.split_at_checked(upto).unwrap_or((rest, &[]));
            tiles.extend(writer.append(now));
            roots.push((writer.frontier().size(), writer.frontier().root()));
            rest = later;
        }
        tiles.extend(writer.append(rest));
        let mut done = Hashed {
            writer,
            roots,
            tiles,
            records: Vec::new(),
            begun: Vec::new(),
            findings: Vec::new(),
        };
        match self.depth {
            Depth::Tree if self.seeks_beginnings => {
                let records = self.leaves.into_iter().filter_map(beginning);
                done.begun = earlier::begun(&records.collect::<Vec<_>>());
            }
            Depth::Tree => {}
            Depth::Records => {
                done.read(self.leaves);
                done.begun = earlier::begun(&done.records);
            }
        }
        done
    }
}

impl Hashed {
    fn read(&mut self, leaves: Vec<Leaf>) {
        for Leaf { index, bytes } in leaves {
            match read(&bytes) {
                Ok(record) => self.records.push(ReadRecord {
                    index,
                    leaf: bytes,
                    record,
                }),
                Err(fault) => self.findings.push(Finding {
                    index: Some(index),
                    id: None,
                    fault,
                }),
            }
        }
    }
}

/// Reads a leaf that may begin a log; `None` for all others.
fn beginning(Leaf { index, bytes }: Leaf) -> Option<ReadRecord> {
    let text = str::from_utf8(&bytes).ok();
    text.filter(|text| text.contains(earlier::LOG_BEGUN))?;
    let record = read(&bytes).ok()?;
    Some(ReadRecord {
        index,
        leaf: bytes,
        record,
    })
}

/// Reads the record of a leaf.
pub(super) fn read(leaf: &[u8]) -> Result<EvidenceRecord, Fault> {
    let text = str::from_utf8(leaf).map_err(|_| Fault::LeafNotCanonical)?;
    EvidenceRecord::from_leaf(text).map_err(|error| match error {
        LeafError::NotCanonical(_) => Fault::LeafNotCanonical,
        error @ (LeafError::UnknownVersion { .. }
        | LeafError::Shape { .. }
        | LeafError::Foreign { .. }
        | LeafError::Missing { .. }
        | LeafError::Spelling) => Fault::LeafNotARecord(error),
    })
}

/// Compares a computed tile with the stored one, which may have grown since.
pub(super) fn compare_tile(id: TileId, computed: &[u8], kept: Option<&[u8]>, found: &mut Found) {
    let TileId { level, index } = id;
    let Some(kept) = kept.filter(|kept| kept.len() >= computed.len()) else {
        found.add(None, None, Fault::TileMissing { level, index });
        return;
    };
    let (computed, _) = computed.as_chunks::<32>();
    let (kept, rest) = kept.as_chunks::<32>();
    if !rest.is_empty() || kept.len() > usize::from(WIDTH) {
        found.add(None, None, Fault::TileDiffers { level, index });
    }
    let first = index * u64::from(WIDTH);
    for (place, (computed, kept)) in (first..).zip(computed.iter().zip(kept)) {
        if computed == kept {
            continue;
        }
        if level == 0 {
            found.add(Some(place), None::<Arc<str>>, Fault::HashDiffers);
        } else {
            found.add(None, None, Fault::TileDiffers { level, index });
            break;
        }
    }
}
