//! The public part of the log for mirrors and auditors: tiles under the newest signed checkpoint (C2SP tlog-tiles).

use countersign_contract::SnapshotId;
use countersign_evidence::tile::{TileId, TileKind, TilePath, WIDTH, encode_entries, width_at};

use super::{Archive, Error};
use crate::ledger::LogRow;
use crate::principal::Principal;
use crate::replay::{self, Replayer};

impl Archive {
    /// The bytes of a tile; `None` unless the newest signed checkpoint covers all of it. They never change.
    pub async fn tile(&self, path: &TilePath) -> Result<Option<Vec<u8>>, Error> {
        let Some((checkpoint, _)) = self.signed().await? else {
            return Ok(None);
        };
        let level = match path.kind {
            TileKind::Hashes(level) => level,
            TileKind::Entries => 0,
        };
        let id = TileId {
            level,
            index: path.index,
        };
        if path.width == 0 || width_at(id, checkpoint.size) < path.width {
            return Ok(None);
        }
        match path.kind {
            TileKind::Hashes(_) => {
                let tiles = self.store.tiles(&[id]).await?;
                let row = tiles.into_iter().next().flatten();
                // A row grows; whoever asks for less gets its beginning.
                let bytes = usize::from(path.width) * 32;
                Ok(row.and_then(|row| row.get(..bytes).map(<[u8]>::to_vec)))
            }
            TileKind::Entries => {
                let first = path.index.saturating_mul(u64::from(WIDTH));
                let leaves = self.store.leaves(first, usize::from(path.width)).await?;
                let leaves: Vec<_> = leaves.into_iter().map(|leaf| leaf.bytes).collect();
                if leaves.len() < usize::from(path.width) {
                    return Ok(None);
                }
                Ok(encode_entries(&leaves).ok())
            }
        }
    }

    /// The row of a record, which names its user, before anything else of it is read.
    pub async fn row(&self, id: &SnapshotId) -> Result<LogRow, Error> {
        Ok(self.stored(id).await?.row)
    }

    /// Replays records of this log, on behalf of a principal who may open payloads.
    pub fn replayer(&self, by: Principal) -> Result<Replayer, replay::Error> {
        let replayer = Replayer::new(self.store.clone(), self.vault.clone(), by)?;
        Ok(replayer.with(self.clock.clone(), self.ids.clone()))
    }
}
