//! The Merkle tree of RFC 6962: hashes, the growing right edge, and proofs.
//!
//! A proof is planned first (its nodes are determined) and then read, so that a store can fetch all the tiles
//! of a proof at once: [`tiles_for_inclusion`], [`tiles_for_consistency`].

mod plan;
mod verify;

use aws_lc_rs::digest::{Context, SHA256, digest};

use crate::tile::{TileId, TileReader};
use plan::Plan;
pub(crate) use plan::perfect_root;
pub use verify::{InvalidProof, root_of_inclusion, verify_consistency, verify_inclusion};

/// A node of the tree: a SHA-256 digest.
pub type Hash = [u8; 32];

/// Maximum number of leaves; far beyond any real log, and small enough that sums do not overflow.
pub const SIZE_MAX: u64 = 1 << 62;

/// Reason why a requested proof cannot be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// The leaf is not in a tree of this size.
    /// Usually the proof is asked for before the leaf was sealed, or with the size of an older checkpoint.
    #[error("leaf {index} is not in a tree of {size} leaves")]
    NotInTree {
        /// Index of the leaf.
        index: u64,
        /// Size of the tree.
        size: u64,
    },
    /// The later tree is smaller than the earlier one, usually because the two sizes were swapped.
    #[error("a tree of {new} leaves did not grow from one of {old}")]
    NotGrown {
        /// Size that should be the earlier one.
        old: u64,
        /// Size that should be the later one.
        new: u64,
    },
    /// The reader lacks a tile of the tree, usually because the store is damaged or incomplete.
    #[error("tile {level}/{index} of width {width} is missing or cut short")]
    MissingTile {
        /// Level of the tile.
        level: u8,
        /// Index in the level.
        index: u64,
        /// Number of hashes that are needed.
        width: u16,
    },
}

/// Computes the hash of a leaf: SHA-256 of a zero byte and the leaf.
pub fn leaf_hash(leaf: &[u8]) -> Hash {
    let mut context = Context::new(&SHA256);
    context.update(&[0]);
    context.update(leaf);
    to_hash(context.finish())
}

/// Computes the hash of an inner node: SHA-256 of a one byte and its two children.
pub fn node_hash(left: &Hash, right: &Hash) -> Hash {
    let mut bytes = [1; 65];
    let (_, children) = bytes.split_at_mut(1);
    let (first, second) = children.split_at_mut(32);
    first.copy_from_slice(left);
    second.copy_from_slice(right);
    to_hash(digest(&SHA256, &bytes))
}

/// Returns the root of a tree without leaves: SHA-256 of nothing.
pub fn empty_root() -> Hash {
    to_hash(digest(&SHA256, b""))
}

/// The right edge of a tree: everything that is needed to append to it and to compute its root.
///
/// One hash for every set bit of the size: the perfect subtrees that the tree consists of, the
/// largest first.
///
/// # Example
///
/// ```
/// use countersign_evidence::tree::{Frontier, leaf_hash, node_hash};
///
/// let (a, b) = (leaf_hash(b"a"), leaf_hash(b"b"));
/// let mut frontier = Frontier::new();
/// frontier.push(a);
/// frontier.push(b);
/// assert_eq!(frontier.root(), node_hash(&a, &b));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frontier {
    size: u64,
    hashes: Vec<Hash>,
}

/// The number of hashes does not match the size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a tree of {size} leaves has an edge of {expected} hashes, not {found}")]
pub struct InvalidFrontier {
    size: u64,
    expected: u32,
    found: usize,
}

impl Frontier {
    /// Creates the edge of the empty tree.
    pub const fn new() -> Self {
        Self {
            size: 0,
            hashes: Vec::new(),
        }
    }

    /// Restores a stored edge.
    pub fn from_parts(size: u64, hashes: Vec<Hash>) -> Result<Self, InvalidFrontier> {
        let expected = size.count_ones();
        if size > SIZE_MAX || hashes.len() != expected as usize {
            let found = hashes.len();
            return Err(InvalidFrontier {
                size,
                expected,
                found,
            });
        }
        Ok(Self { size, hashes })
    }

    /// Appends one leaf.
    pub fn push(&mut self, leaf: Hash) {
        let mut node = leaf;
        // For every trailing one bit, the new leaf completes a perfect subtree to a larger one.
        for _ in 0..self.size.trailing_ones() {
            if let Some(left) = self.hashes.pop() {
                node = node_hash(&left, &node);
            }
        }
        self.hashes.push(node);
        self.size += 1;
    }

    /// Returns the number of leaves.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Returns the root of the tree.
    pub fn root(&self) -> Hash {
        fold(&self.hashes).unwrap_or_else(empty_root)
    }

    /// Returns the hashes to store, for [`Frontier::from_parts`].
    pub fn hashes(&self) -> &[Hash] {
        &self.hashes
    }
}

/// Builds the proof that leaf `index` is in the tree of `size` leaves: the siblings on the way to the root,
/// lowest first.
pub fn inclusion_proof(
    index: u64,
    size: u64,
    reader: &impl TileReader,
) -> Result<Vec<Hash>, ProofError> {
    Plan::inclusion(index, size)?.read(reader)
}

/// Builds the proof that the tree of `new` leaves begins with the tree of `old` leaves.
pub fn consistency_proof(
    old: u64,
    new: u64,
    reader: &impl TileReader,
) -> Result<Vec<Hash>, ProofError> {
    Plan::consistency(old, new)?.read(reader)
}

/// Returns the tiles that [`inclusion_proof`] reads, each with its minimum width.
pub fn tiles_for_inclusion(index: u64, size: u64) -> Result<Vec<(TileId, u16)>, ProofError> {
    Ok(Plan::inclusion(index, size)?.tiles())
}

/// Returns the tiles that [`consistency_proof`] reads, each with its minimum width.
pub fn tiles_for_consistency(old: u64, new: u64) -> Result<Vec<(TileId, u16)>, ProofError> {
    Ok(Plan::consistency(old, new)?.tiles())
}

/// Returns the tiles that hold the right edge of a tree of `size` leaves.
pub fn tiles_for_frontier(size: u64) -> Vec<(TileId, u16)> {
    Plan::frontier(size).tiles()
}

/// Reads the right edge of a tree of `size` leaves from its tiles.
pub fn frontier(size: u64, reader: &impl TileReader) -> Result<Frontier, ProofError> {
    let hashes = Plan::frontier(size).read(reader)?;
    Ok(Frontier { size, hashes })
}

/// Computes the hash over adjacent subtrees, the largest first.
fn fold(hashes: &[Hash]) -> Option<Hash> {
    let (last, rest) = hashes.split_last()?;
    let join = |right: Hash, left: &Hash| node_hash(left, &right);
    Some(rest.iter().rev().fold(*last, join))
}

fn to_hash(digest: aws_lc_rs::digest::Digest) -> Hash {
    digest.as_ref().try_into().expect("SHA-256 gives 32 bytes")
}

#[cfg(test)]
mod tests;
