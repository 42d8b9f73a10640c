//! Consistency check: the tree in the store continues a checkpoint that an auditor kept.

use countersign_evidence::checkpoint::Checkpoint;
use countersign_evidence::tile::{TileId, TileMap};
use countersign_evidence::tree::{self, Hash, ProofError};

use crate::ledger::{self, Head, Store};

/// Reasons why a tree is not the continuation of a checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum NotGrown {
    /// The store failed. Usually the database cannot be reached, or the disk is full.
    #[error(transparent)]
    Store(#[from] ledger::Error),
    /// Records under a signed checkpoint are missing: the log was rolled back.
    /// Usually an old backup was put back without `store restore`.
    #[error(
        "the log was rolled back: it has {found} records, and a checkpoint of {held} was signed before"
    )]
    RolledBack {
        /// The size that was signed.
        held: u64,
        /// The size that was found.
        found: u64,
    },
    /// The log was rewritten: there are two histories of one log.
    /// Usually two copies of one store were both written to.
    #[error(
        "the log was rewritten: its first {size} records have another root than was signed before"
    )]
    Forked {
        /// The size that was signed.
        size: u64,
    },
    /// The tiles do not lead to the root that the store names: the store is damaged.
    /// Usually the disk has lost writes, or a file was copied while it was in use.
    #[error("the tree of {size} records is damaged: its tiles do not lead to its root")]
    Damaged {
        /// The size of the tree.
        size: u64,
    },
    /// A tile is missing. Usually rows were deleted from the database.
    #[error(transparent)]
    Tile(#[from] ProofError),
}

/// The proof that the tree `to` begins with the tree of the checkpoint.
pub(crate) async fn grown(
    store: &dyn Store,
    from: &Checkpoint,
    to: &Head,
) -> Result<Vec<Hash>, NotGrown> {
    let (held, found) = (from.size, to.size);
    if held > found {
        return Err(NotGrown::RolledBack { held, found });
    }
    let mut wanted = tree::tiles_for_consistency(held, found)?;
    wanted.extend(tree::tiles_for_frontier(found));
    let tiles = tiles(store, &wanted).await?;
    let proof = tree::consistency_proof(held, found, &tiles)?;
    if tree::verify_consistency(held, &from.root, found, &to.root, &proof).is_ok() {
        return Ok(proof);
    }
    // A fork is a whole tree of its own; anything less is damage.
    if tree::frontier(found, &tiles)?.root() == to.root {
        return Err(NotGrown::Forked { size: held });
    }
    Err(NotGrown::Damaged { size: found })
}

/// The tiles of a plan, as far as the store has them.
pub(crate) async fn tiles(
    store: &dyn Store,
    wanted: &[(TileId, u16)],
) -> Result<TileMap, ledger::Error> {
    let mut ids: Vec<TileId> = wanted.iter().map(|(id, _)| *id).collect();
    ids.sort_unstable();
    ids.dedup();
    let found = store.tiles(&ids).await?;
    let there = ids.into_iter().zip(found);
    Ok(there.filter_map(|(id, row)| Some((id, row?))).collect())
}
