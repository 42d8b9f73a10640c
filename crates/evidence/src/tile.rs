//! The stored form of the tree: tiles of 256 hashes and bundles of entries (C2SP tlog-tiles).
//!
//! A store has one row for each [`TileId`]: 32 bytes for every hash so far, overwritten as the tile grows. A
//! reader uses the beginning of a row that is longer than requested, so a proof for an older tree is read from
//! the same rows.

mod entries;
mod path;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher;

use crate::tree::{self, Frontier, Hash, ProofError};

pub use entries::{EntriesError, decode_entries, encode_entries};
pub use path::{InvalidPath, TileKind, TilePath};

/// Number of tree levels that a tile spans.
pub const HEIGHT: u32 = 8;

/// Number of hashes in a full tile.
pub const WIDTH: u16 = 1 << HEIGHT;

/// Tiles of a tree, or those of them that a proof needs.
pub type TileMap = BTreeMap<TileId, Vec<u8>>;

/// Position of a tile: the `index`th of its level, counted from the leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TileId {
    /// Level: 0 for leaf hashes; each level stands for [`HEIGHT`] levels of the tree.
    pub level: u8,
    /// Index within the level.
    pub index: u64,
}

/// A source of tiles.
pub trait TileReader {
    /// Returns at least the first `width` hashes of a tile. Further ones are ignored; `None` or fewer fail the
    /// proof.
    fn tile(&self, id: TileId, width: u16) -> Option<Cow<'_, [u8]>>;
}

impl TileReader for TileMap {
    fn tile(&self, id: TileId, _width: u16) -> Option<Cow<'_, [u8]>> {
        self.get(&id).map(|row| Cow::Borrowed(row.as_slice()))
    }
}

impl<S: BuildHasher> TileReader for HashMap<TileId, Vec<u8>, S> {
    fn tile(&self, id: TileId, _width: u16) -> Option<Cow<'_, [u8]>> {
        self.get(&id).map(|row| Cow::Borrowed(row.as_slice()))
    }
}

/// Returns the number of hashes that a tile has in a tree of `size` leaves.
pub const fn width_at(id: TileId, size: u64) -> u16 {
    let in_level = match size.checked_shr(id.level as u32 * HEIGHT) {
        Some(hashes) => hashes,
        None => 0,
    };
    // The widest tile starts far below the largest index, so an overflow of the product cannot go unnoticed.
    let before = id.index.saturating_mul(WIDTH as u64);
    let width = in_level.saturating_sub(before);
    if width < WIDTH as u64 {
        width as u16
    } else {
        WIDTH
    }
}

/// Appends to a tree that is stored as tiles.
///
/// It holds only the unfinished tile of every level: at most 8 KiB for each. Clone it to try a transaction that
/// may fail.
///
/// # Example
///
/// ```
/// use countersign_evidence::tile::{TileMap, TileWriter};
/// use countersign_evidence::tree::leaf_hash;
///
/// let mut writer = TileWriter::new();
/// let rows: TileMap = writer.append(&[leaf_hash(b"a")]).into_iter().collect();
///
/// // After a restart, the tiles are all that is needed.
/// let mut resumed = TileWriter::resume(1, &rows)?;
/// assert_eq!(resumed.append(&[leaf_hash(b"b")]), writer.append(&[leaf_hash(b"b")]));
/// assert_eq!(resumed.frontier().root(), writer.frontier().root());
/// # Ok::<(), countersign_evidence::tree::ProofError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TileWriter {
    frontier: Frontier,
    /// Unfinished row of each level; empty if a level has none.
    rows: Vec<Vec<Hash>>,
}

impl TileWriter {
    /// Creates the writer of an empty log.
    pub const fn new() -> Self {
        Self {
            frontier: Frontier::new(),
            rows: Vec::new(),
        }
    }

    /// Resumes a log of `size` leaves. The reader only needs [`TileWriter::tiles_to_resume`].
    pub fn resume(size: u64, reader: &impl TileReader) -> Result<Self, ProofError> {
        let mut rows = Vec::new();
        for (id, width) in Self::tiles_to_resume(size) {
            let missing = ProofError::MissingTile {
                level: id.level,
                index: id.index,
                width,
            };
            let bytes = reader.tile(id, width).ok_or(missing)?;
            let (hashes, _) = bytes.as_chunks::<32>();
            let row = hashes.get(..usize::from(width)).ok_or(missing)?;
            rows.resize(usize::from(id.level), Vec::new());
            rows.push(row.to_vec());
        }
        let frontier = tree::frontier(size, reader)?;
        Ok(Self { frontier, rows })
    }

    /// Returns the unfinished tiles of a log of `size` leaves, each with its width.
    pub fn tiles_to_resume(size: u64) -> Vec<(TileId, u16)> {
        let in_level = |level: u8| size >> (u32::from(level) * HEIGHT);
        (0..8)
            .map(|level| {
                let width = (in_level(level) % u64::from(WIDTH)) as u16;
                let index = in_level(level) / u64::from(WIDTH);
                (TileId { level, index }, width)
            })
            .filter(|(_, width)| *width > 0)
            .collect()
    }

    /// Appends leaves. Returns the complete rows to write. The work is linear in the number of new leaves.
    pub fn append(&mut self, leaves: &[Hash]) -> Vec<(TileId, Vec<u8>)> {
        let mut written = Vec::new();
        let mut size = self.frontier.size();
        // True for a level whose unfinished row has changed.
        let mut changed: Vec<bool> = vec![false; self.rows.len()];
        for leaf in leaves {
            self.frontier.push(*leaf);
            size += 1;
            let mut hash = *leaf;
            for level in 0_u8.. {
                let at = usize::from(level);
                if self.rows.len() == at {
                    self.rows.push(Vec::new());
                    changed.push(false);
                }
                let (Some(row), Some(dirty)) = (self.rows.get_mut(at), changed.get_mut(at)) else {
                    break;
                };
                row.push(hash);
                *dirty = row.len() < usize::from(WIDTH);
                if *dirty {
                    break;
                }
                let index = (size >> (u32::from(level) * HEIGHT)) / u64::from(WIDTH) - 1;
                written.push((TileId { level, index }, row.concat()));
                hash = tree::perfect_root(row);
                row.clear();
            }
        }
        let unfinished = Self::tiles_to_resume(size).into_iter().map(|(id, _)| id);
        written.extend(unfinished.filter_map(|id| {
            let level = usize::from(id.level);
            let row = self.rows.get(level)?;
            changed.get(level)?.then(|| (id, row.concat()))
        }));
        written
    }

    /// Returns the right edge, which has the size and the root.
    pub const fn frontier(&self) -> &Frontier {
        &self.frontier
    }
}

#[cfg(test)]
mod tests;
