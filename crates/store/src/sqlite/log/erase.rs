//! Erasure of a user.

use countersign::ledger::{DocumentKey, Erased};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::entry::{Sealed, keep, user_term};
use super::integrate::BUCKET;
use crate::sqlite::failure::Failure;
use crate::sqlite::pots;
use crate::sqlite::tip::head;
use crate::sqlite::values::signed;
use crate::sqlite::writer::Session;

pub(super) fn erase(
    session: &mut Session<'_>,
    user_id: &str,
    also: &[DocumentKey],
    record: &Sealed,
) -> Result<Erased, Failure> {
    let connection = session.connection;
    if let Some(reason) = held_because(connection, user_id)? {
        return Err(Failure::UnderHold { reason });
    }
    let delete = |table: &str| {
        connection.execute(
            &format!("DELETE FROM {table} WHERE user_id = ?1"),
            [user_id],
        )
    };
    let erased = Erased {
        keys: delete("user_key")?,
        payloads: unname_records(connection, user_id)?,
        documents: delete("document")?,
        claims: delete("claim")?,
    };
    for key in also {
        let one = "DELETE FROM document WHERE user_id = ?1 AND collection = ?2 AND id = ?3";
        connection.execute(one, [&key.user_id, &key.collection, &key.id])?;
    }
    delete("document_entry")?;
    delete("shape")?;
    pots::erase(connection, user_id)?;
    keep(session, record)?;
    session.tip.forget_user(user_term(user_id));
    // The pages with the key and the name are still in the write-ahead log.
    *session.scrub = true;
    Ok(erased)
}

fn held_because(connection: &Connection, user_id: &str) -> Result<Option<String>, Failure> {
    let mut statement = connection
        .prepare_cached("SELECT reason FROM hold WHERE user_id = ?1 ORDER BY number LIMIT 1")?;
    Ok(statement
        .query_row([user_id], |row| row.get(0))
        .optional()?)
}

/// Removes the user's name from the records, and deletes their payloads. Returns the number of payloads.
fn unname_records(connection: &Connection, user_id: &str) -> Result<usize, Failure> {
    let (size, _) = head(connection)?;
    let term = user_term(user_id);
    connection.execute_batch(
        "CREATE TEMP TABLE IF NOT EXISTS erased (idx INTEGER PRIMARY KEY) STRICT; DELETE FROM erased",
    )?;
    // Records that are not in the tree yet are in no bucket.
    connection.execute(
        "INSERT INTO erased SELECT idx FROM record WHERE idx >= ?1 AND user_id = ?2",
        params![signed(size), user_id],
    )?;
    connection.execute(
        "INSERT INTO erased SELECT idx FROM bucket
         CROSS JOIN posting ON posting.bucket = bucket.number AND posting.term = ?1
         CROSS JOIN record USING (idx) WHERE record.user_id = ?2",
        params![term, user_id],
    )?;
    connection.execute(
        "DELETE FROM posting WHERE (bucket, term, idx) IN (
             SELECT idx / ?2, ?1, idx FROM erased)",
        [term, signed(BUCKET)],
    )?;
    connection.execute(
        "UPDATE record SET user_id = '' WHERE idx IN (SELECT idx FROM erased)",
        [],
    )?;
    connection.execute(
        "DELETE FROM payload_due WHERE (until, idx) IN (
             SELECT until, idx FROM payload CROSS JOIN erased USING (idx) WHERE until IS NOT NULL)",
        [],
    )?;
    let payloads = connection.execute(
        "DELETE FROM payload WHERE idx IN (SELECT idx FROM erased)",
        [],
    )?;
    connection.execute("DELETE FROM erased", [])?;
    Ok(payloads)
}
