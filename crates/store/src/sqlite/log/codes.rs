//! Codes of the records that no checkpoint covers.

use countersign_evidence::tree::{Hash, leaf_hash};
use rusqlite::{Connection, params};

use crate::leaves::Leaves;
use crate::sqlite::failure::Failure;
use crate::sqlite::tip::{check_code, head};
use crate::sqlite::values::{bounded, signed};

/// True if the records of an earlier version have their codes.
pub(super) fn are_complete(connection: &Connection) -> Result<bool, Failure> {
    Ok(connection.query_row("SELECT has_codes FROM head", [], |row| row.get(0))?)
}

/// Gives codes to the unsigned records that an earlier version left without, once.
pub(super) fn complete(connection: &Connection, leaves: &Leaves) -> Result<usize, Failure> {
    if are_complete(connection)? {
        return Ok(0);
    }
    let completed = add_missing(connection, leaves)?;
    connection.execute("UPDATE head SET has_codes = 1", [])?;
    Ok(completed)
}

/// Gives codes to the unsigned records that have none. An operator who begins a new log accepts them as they are.
pub(in crate::sqlite) fn add_missing(
    connection: &Connection,
    leaves: &Leaves,
) -> Result<usize, Failure> {
    let mut bare = connection.prepare(
        "SELECT idx, id, leaf FROM record WHERE code_of_leaf IS NULL
             AND idx >= coalesce((SELECT max(size) FROM checkpoint), 0)",
    )?;
    let mut rows = bare.query([])?;
    let mut codes = Vec::new();
    while let Some(row) = rows.next()? {
        let (place, id): (i64, String) = (row.get(0)?, row.get(1)?);
        let leaf = row.get_ref(2)?.as_blob().map_err(rusqlite::Error::from)?;
        codes.push((place, leaves.code_of_leaf(&id, leaf)));
    }
    drop(rows);
    let mut set = connection.prepare("UPDATE record SET code_of_leaf = ?2 WHERE idx = ?1")?;
    for (place, code) in &codes {
        set.execute(params![place, code])?;
    }
    Ok(codes.len())
}

/// Reads the hashes of leaves whose codes are valid.
pub(super) fn checked(
    connection: &Connection,
    leaves: &Leaves,
    from: u64,
    limit: usize,
) -> Result<Vec<Hash>, Failure> {
    let (size, _) = head(connection)?;
    let mut statement = connection.prepare_cached(
        "SELECT leaf, id, code_of_leaf FROM record WHERE idx >= ?1 AND idx < ?2 ORDER BY idx LIMIT ?3",
    )?;
    let mut rows = statement.query([signed(from), signed(size), bounded(limit)])?;
    let mut hashes = Vec::new();
    while let Some(row) = rows.next()? {
        let hash = leaf_hash(row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?);
        check_code(leaves, row, 1, &hash)?;
        hashes.push(hash);
    }
    Ok(hashes)
}
