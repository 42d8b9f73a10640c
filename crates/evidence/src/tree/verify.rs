//! Verification of a proof, as RFC 9162 (sections 2.1.3.2 and 2.1.4.2) describes it.

use crate::tree::{Hash, SIZE_MAX, empty_root, node_hash};

/// Reason why a proof is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidProof {
    /// The leaf cannot be in a tree of this size.
    /// Usually the proof was made for a newer checkpoint than the one that is given.
    #[error("leaf {index} is not in a tree of {size} leaves")]
    NotInTree {
        /// Index of the leaf.
        index: u64,
        /// Size of the tree.
        size: u64,
    },
    /// The earlier tree is the larger one, usually because the two were swapped.
    #[error("a tree of {new} leaves did not grow from one of {old}")]
    NotGrown {
        /// Size of the earlier tree.
        old: u64,
        /// Size of the later tree.
        new: u64,
    },
    /// The proof has fewer or more hashes than the sizes require.
    /// Usually the proof was made for other sizes, or was cut.
    #[error("the proof has {found} hashes, which is not what these sizes ask for")]
    WrongLength {
        /// Number of hashes.
        found: usize,
    },
    /// The hashes do not lead to the root, usually because the leaf, the proof or the root was altered.
    #[error("the proof leads to another root")]
    OtherRoot,
    /// The hashes do not lead to the root of the earlier tree.
    /// Usually the earlier checkpoint is of another log, or the log was rewritten.
    #[error("the proof leads to another root of the earlier tree")]
    OtherOldRoot,
}

/// Checks that the leaf with this hash is at `index` of the tree with this size and root.
pub fn verify_inclusion(
    leaf: &Hash,
    index: u64,
    size: u64,
    proof: &[Hash],
    root: &Hash,
) -> Result<(), InvalidProof> {
    if root_of_inclusion(leaf, index, size, proof)? == *root {
        return Ok(());
    }
    Err(InvalidProof::OtherRoot)
}

/// Computes the root that an inclusion proof leads to. It says nothing until a signature of that root is verified.
pub fn root_of_inclusion(
    leaf: &Hash,
    index: u64,
    size: u64,
    proof: &[Hash],
) -> Result<Hash, InvalidProof> {
    if index >= size || size > SIZE_MAX {
        return Err(InvalidProof::NotInTree { index, size });
    }
    let wrong_length = InvalidProof::WrongLength { found: proof.len() };
    let (mut node, mut last, mut hash) = (index, size - 1, *leaf);
    for sibling in proof {
        if last == 0 {
            return Err(wrong_length);
        }
        if node & 1 == 1 || node == last {
            hash = node_hash(sibling, &hash);
            // On the right edge a node without sibling is its own parent.
            let levels = node.trailing_zeros();
            (node, last) = (node >> levels, last >> levels);
        } else {
            hash = node_hash(&hash, sibling);
        }
        (node, last) = (node >> 1, last >> 1);
    }
    if last == 0 {
        Ok(hash)
    } else {
        Err(wrong_length)
    }
}

/// Checks that the tree of `new_size` and `new_root` begins with the tree of `old_size` and `old_root`.
pub fn verify_consistency(
    old_size: u64,
    old_root: &Hash,
    new_size: u64,
    new_root: &Hash,
    proof: &[Hash],
) -> Result<(), InvalidProof> {
    let (old, new) = (old_size, new_size);
    if old > new || new > SIZE_MAX {
        return Err(InvalidProof::NotGrown { old, new });
    }
    if old == 0 || old == new {
        let known = if old == 0 { empty_root() } else { *new_root };
        return match (proof.is_empty(), *old_root == known) {
            (false, _) => Err(InvalidProof::WrongLength { found: proof.len() }),
            (true, false) => Err(InvalidProof::OtherOldRoot),
            (true, true) => Ok(()),
        };
    }
    walk_consistency(old, old_root, new, new_root, proof)
}

/// Computes both roots from the proof at once; both sizes are at least one and differ.
fn walk_consistency(
    old: u64,
    old_root: &Hash,
    new: u64,
    new_root: &Hash,
    proof: &[Hash],
) -> Result<(), InvalidProof> {
    let wrong_length = InvalidProof::WrongLength { found: proof.len() };
    // An old tree that is perfect is a node of the new one, and its root is not sent again.
    let (first, rest) = if old.is_power_of_two() {
        (old_root, proof)
    } else {
        proof.split_first().ok_or(wrong_length)?
    };
    let levels = (old - 1).trailing_ones();
    let (mut node, mut last) = ((old - 1) >> levels, (new - 1) >> levels);
    let (mut before, mut after) = (*first, *first);
    for sibling in rest {
        if last == 0 {
            return Err(wrong_length);
        }
        if node & 1 == 1 || node == last {
            before = node_hash(sibling, &before);
            after = node_hash(sibling, &after);
            let levels = node.trailing_zeros();
            (node, last) = (node >> levels, last >> levels);
        } else {
            after = node_hash(&after, sibling);
        }
        (node, last) = (node >> 1, last >> 1);
    }
    match (last == 0, before == *old_root, after == *new_root) {
        (false, _, _) => Err(wrong_length),
        (true, false, _) => Err(InvalidProof::OtherOldRoot),
        (true, true, false) => Err(InvalidProof::OtherRoot),
        (true, true, true) => Ok(()),
    }
}
