//! The plan of a proof: its nodes, and the tiles that hold them.

use crate::tile::{self, TileId, TileReader};
use crate::tree::{Hash, ProofError, fold, node_hash};

/// A perfect subtree: `2^level` leaves from `index · 2^level` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Node {
    level: u32,
    index: u64,
}

/// Hashes of a proof in their order; each is folded from adjacent perfect subtrees.
#[derive(Debug)]
pub(super) struct Plan(Vec<Vec<Node>>);

impl Plan {
    /// Plans `PATH(m, D[n])` of RFC 6962, section 2.1.1.
    pub(super) fn inclusion(index: u64, size: u64) -> Result<Self, ProofError> {
        if index >= size || size > super::SIZE_MAX {
            return Err(ProofError::NotInTree { index, size });
        }
        let (mut start, mut end) = (0, size);
        let mut hashes = Vec::new();
        while end - start > 1 {
            let middle = start + split(end - start);
            if index < middle {
                hashes.push(cover(middle, end));
                end = middle;
            } else {
                hashes.push(cover(start, middle));
                start = middle;
            }
        }
        hashes.reverse();
        Ok(Self(hashes))
    }

    /// Plans `PROOF(m, D[n])` of RFC 6962, section 2.1.2; empty for the empty tree and for the same size.
    pub(super) fn consistency(old: u64, new: u64) -> Result<Self, ProofError> {
        if old > new || new > super::SIZE_MAX {
            return Err(ProofError::NotGrown { old, new });
        }
        if old == 0 || old == new {
            return Ok(Self(Vec::new()));
        }
        let (mut start, mut end) = (0, new);
        let mut hashes = Vec::new();
        while end != old {
            let middle = start + split(end - start);
            if old <= middle {
                hashes.push(cover(middle, end));
                end = middle;
            } else {
                hashes.push(cover(start, middle));
                start = middle;
            }
        }
        // The verifier already has the old root; it needs this subtree only if it is smaller.
        if start != 0 {
            hashes.push(cover(start, end));
        }
        hashes.reverse();
        Ok(Self(hashes))
    }

    /// Plans the right edge itself, the largest subtree first.
    pub(super) fn frontier(size: u64) -> Self {
        Self(cover(0, size).into_iter().map(|node| vec![node]).collect())
    }

    /// Returns the tiles that hold the nodes, each once and as wide as any node needs.
    pub(super) fn tiles(&self) -> Vec<(TileId, u16)> {
        let mut tiles = std::collections::BTreeMap::new();
        for (id, first, count) in self.0.iter().flatten().map(|node| node.place()) {
            let width: &mut u16 = tiles.entry(id).or_default();
            *width = (*width).max(first + count);
        }
        tiles.into_iter().collect()
    }

    /// Reads the hashes of the proof.
    pub(super) fn read(&self, reader: &impl TileReader) -> Result<Vec<Hash>, ProofError> {
        let hash = |nodes: &Vec<Node>| {
            let subtrees: Result<Vec<Hash>, _> =
                nodes.iter().map(|node| node.read(reader)).collect();
            Ok(fold(&subtrees?).expect("no cover is empty"))
        };
        self.0.iter().map(hash).collect()
    }
}

impl Node {
    /// Returns the node's tile, and the range of the tile's hashes that it is the root of: offset and number.
    fn place(self) -> (TileId, u16, u16) {
        let within = self.level % tile::HEIGHT;
        let first = self.index << within;
        let id = TileId {
            level: (self.level / tile::HEIGHT) as u8,
            index: first / u64::from(tile::WIDTH),
        };
        (id, (first % u64::from(tile::WIDTH)) as u16, 1 << within)
    }

    fn read(self, reader: &impl TileReader) -> Result<Hash, ProofError> {
        let (id, first, count) = self.place();
        let width = first + count;
        let row = reader.tile(id, width);
        let hashes = row.as_deref().and_then(|row| {
            let (hashes, _) = row.as_chunks::<32>();
            hashes.get(usize::from(first)..usize::from(width))
        });
        hashes.map(perfect_root).ok_or(ProofError::MissingTile {
            level: id.level,
            index: id.index,
            width,
        })
    }
}

/// Computes the root over hashes whose number is a power of two.
pub(crate) fn perfect_root(hashes: &[Hash]) -> Hash {
    let mut row = hashes.to_vec();
    while row.len() > 1 {
        row = row
            .as_chunks::<2>()
            .0
            .iter()
            .map(|[left, right]| node_hash(left, right))
            .collect();
    }
    *row.first().expect("a power of two is not zero")
}

/// Returns the largest power of two below `size`, which is at least two.
const fn split(size: u64) -> u64 {
    1 << (size - 1).ilog2()
}

/// Returns the perfect subtrees of a range that starts at a multiple of its length's highest bit.
fn cover(start: u64, end: u64) -> Vec<Node> {
    let mut nodes = Vec::new();
    let mut start = start;
    while start < end {
        let level = (end - start).ilog2();
        let index = start >> level;
        nodes.push(Node { level, index });
        start += 1 << level;
    }
    nodes
}
