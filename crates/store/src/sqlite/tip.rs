//! The end of the log, held in memory by the writer: the next place, the right edge of the tree, and the data
//! for adding records that are not in the tree yet.

use std::collections::VecDeque;

use countersign_evidence::tile::{TileId, TileMap, TileWriter};
use countersign_evidence::tree::{Hash, ProofError, leaf_hash};
use rusqlite::{Connection, OptionalExtension as _, Row};

use super::failure::Failure;
use super::log::entry::{Terms, terms};
use super::values::{bytes32, unsigned};
use crate::leaves::Leaves;

pub(super) struct Tip {
    /// Place of the next record.
    pub(super) next: u64,
    pub(super) tree: TileWriter,
    /// The newest records, up to `next`.
    waiting: VecDeque<Waiting>,
}

/// Data of a record that integration needs.
#[derive(Clone, Copy)]
pub(super) struct Waiting {
    pub(super) hash: Hash,
    pub(super) at: i64,
    pub(super) terms: Terms,
}

/// A point to return to if a job fails.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    next: u64,
}

/// Maximum records held in memory; if integration stops for long, the rest is read back.
const WAITING_MAX: usize = 1 << 16;

impl Tip {
    /// Loads the tip from the database. Fails if the tiles do not give the root of the head: a tree that was
    /// tampered with is not continued.
    pub(super) fn load(connection: &Connection) -> Result<Self, Failure> {
        let (size, root) = head(connection)?;
        let mut tiles = TileMap::new();
        let tree = loop {
            // The edge is read tile by tile on demand: there is one for each level.
            match TileWriter::resume(size, &tiles) {
                Ok(tree) => break tree,
                Err(ProofError::MissingTile {
                    level,
                    index,
                    width,
                }) => {
                    let id = TileId { level, index };
                    let bytes = tile(connection, id)?;
                    let is_new = bytes.is_some_and(|bytes| tiles.insert(id, bytes).is_none());
                    if !is_new {
                        let what = format!("tile {level}/{index} of width {width}");
                        return Err(Failure::Damaged { what });
                    }
                }
                Err(error @ (ProofError::NotInTree { .. } | ProofError::NotGrown { .. })) => {
                    return Err(Failure::damaged(format!("the tree ({error})")));
                }
            }
        };
        if tree.frontier().root() != root {
            let what =
                format!("the tree of {size} leaves: its tiles do not have the root of its head");
            return Err(Failure::Damaged { what });
        }
        let newest: Option<i64> =
            connection.query_row("SELECT max(idx) FROM record WHERE idx >= 0", [], |row| {
                row.get(0)
            })?;
        let next = newest.map_or(0, |newest| unsigned(newest) + 1);
        if next < size {
            let what = format!("the log: the tree has {size} leaves and the records end at {next}");
            return Err(Failure::Damaged { what });
        }
        check_places(connection, size, next)?;
        Ok(Self {
            next,
            tree,
            waiting: VecDeque::new(),
        })
    }

    /// Takes the next place.
    pub(super) fn push(&mut self, waiting: Waiting) {
        if self.waiting.len() >= WAITING_MAX {
            self.waiting.pop_front();
        }
        self.waiting.push_back(waiting);
        self.next += 1;
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { next: self.next }
    }

    pub(super) fn back_to(&mut self, mark: Mark) {
        let undone = usize::try_from(self.next - mark.next).unwrap_or(usize::MAX);
        let kept = self.waiting.len().saturating_sub(undone);
        self.waiting.truncate(kept);
        self.next = mark.next;
    }

    /// The records that follow the tree, at most `limit`.
    pub(super) fn after_tree(
        &self,
        connection: &Connection,
        leaves: &Leaves,
        limit: usize,
    ) -> Result<Vec<Waiting>, Failure> {
        let size = self.tree.frontier().size();
        let left = usize::try_from(self.next - size)
            .unwrap_or(usize::MAX)
            .min(limit);
        let first_waiting = self.next - self.waiting.len() as u64;
        match size.checked_sub(first_waiting) {
            Some(skipped) => {
                let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
                Ok(self
                    .waiting
                    .iter()
                    .skip(skipped)
                    .take(left)
                    .copied()
                    .collect())
            }
            None => read_waiting(connection, leaves, size, left),
        }
    }

    /// Removes a user's search term from the records that still wait.
    pub(super) fn forget_user(&mut self, term: i64) {
        for waiting in &mut self.waiting {
            let [user, _] = &mut waiting.terms;
            user.take_if(|user| *user == term);
        }
    }

    /// Drops the records that the tree now has.
    pub(super) fn integrated(&mut self, tree: TileWriter) {
        self.tree = tree;
        let left = usize::try_from(self.next - self.tree.frontier().size()).unwrap_or(usize::MAX);
        let done = self.waiting.len().saturating_sub(left);
        self.waiting.drain(..done);
    }
}

/// Checks that the records that wait for the tree follow it without gaps. A record that was inserted elsewhere
/// would be added, and signed, at a wrong place.
fn check_places(connection: &Connection, size: u64, next: u64) -> Result<(), Failure> {
    let waiting: i64 = connection.query_row(
        "SELECT (SELECT count(*) FROM record WHERE idx < 0)
              + (SELECT count(*) FROM record WHERE idx >= ?1)",
        [super::values::signed(size)],
        |row| row.get(0),
    )?;
    if unsigned(waiting) == next - size {
        return Ok(());
    }
    let what = format!(
        "the log: {waiting} records follow the tree of {size} leaves, and the newest is {}",
        next.saturating_sub(1)
    );
    Err(Failure::Damaged { what })
}

/// Reads records that another connection may have written, so their codes are checked.
fn read_waiting(
    connection: &Connection,
    leaves: &Leaves,
    from: u64,
    limit: usize,
) -> Result<Vec<Waiting>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT leaf, at, user_id, request_id, id, code_of_leaf FROM record
         WHERE idx >= ?1 ORDER BY idx LIMIT ?2",
    )?;
    let mut rows = statement.query([super::values::signed(from), super::values::bounded(limit)])?;
    let mut waiting = Vec::new();
    while let Some(row) = rows.next()? {
        let text = |column| {
            row.get_ref(column)?
                .as_str_or_null()
                .map_err(rusqlite::Error::from)
        };
        let user_id = text(2)?.unwrap_or_default();
        let hash = leaf_hash(row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?);
        check_code(leaves, row, 4, &hash)?;
        waiting.push(Waiting {
            hash,
            at: row.get(1)?,
            terms: terms(user_id, text(3)?),
        });
    }
    Ok(waiting)
}

/// Checks the code of a record, which stands in the column after its id.
pub(super) fn check_code(
    leaves: &Leaves,
    row: &Row<'_>,
    id: usize,
    hash: &Hash,
) -> Result<(), Failure> {
    let column = |place| row.get_ref(place);
    let code = column(id + 1)?.as_blob_or_null();
    let id = column(id)?.as_str().map_err(rusqlite::Error::from)?;
    let checked = leaves.check(id, hash, code.map_err(rusqlite::Error::from)?);
    checked.map_err(|what| Failure::Damaged { what })
}

pub(super) fn head(connection: &Connection) -> Result<(u64, Hash), Failure> {
    let mut statement = connection.prepare_cached("SELECT size, root FROM head")?;
    let mut rows = statement.query([])?;
    let row = rows
        .next()?
        .ok_or_else(|| Failure::damaged("the head of the log"))?;
    Ok((unsigned(row.get(0)?), bytes32(row, 1)?))
}

pub(super) fn tile(connection: &Connection, id: TileId) -> Result<Option<Vec<u8>>, Failure> {
    let mut statement = connection.prepare_cached("SELECT hashes FROM tile WHERE key = ?1")?;
    let found = statement.query_row([tile_key(id)], |row| row.get(0));
    Ok(found.optional()?)
}

const LEVEL_SHIFT: u32 = 48;

pub(super) fn tile_key(id: TileId) -> i64 {
    (i64::from(id.level) << LEVEL_SHIFT) | super::values::signed(id.index)
}

pub(super) fn tile_id(key: i64) -> TileId {
    TileId {
        level: u8::try_from(key >> LEVEL_SHIFT).unwrap_or(u8::MAX),
        index: unsigned(key & ((1 << LEVEL_SHIFT) - 1)),
    }
}
