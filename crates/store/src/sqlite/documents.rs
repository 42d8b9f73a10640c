//! Documents and their declared indexes.

use countersign::BoxFuture;
use countersign::ledger::{
    CommitAnswer, DocumentKey, DocumentRead, DocumentRow, DocumentWrite, Documents, Error,
    FoundDocument, IndexEntry, OpenDocument, OpenPlace, Scan, ShapeRead, StoredDocument,
};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Rows, params};

use super::SqliteStore;
use super::failure::Failure;
use super::readers::at_one_moment;
use super::values::{bytes32, signed, unsigned};

impl Documents for SqliteStore {
    fn document<'a>(
        &'a self,
        key: &'a DocumentKey,
    ) -> BoxFuture<'a, Result<StoredDocument, Error>> {
        Box::pin(async move { Ok(self.readers.point(|connection| document(connection, key))?) })
    }

    fn scan<'a>(
        &'a self,
        user_id: &'a str,
        collection: &'a str,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Scan, Error>> {
        Box::pin(async move {
            Ok(self.readers.point(|connection| {
                at_one_moment(connection, |connection| {
                    Ok(Scan {
                        documents: scan(connection, [user_id, collection, prefix], after, limit)?,
                        shape: shape(connection, user_id, collection)?,
                    })
                })
            })?)
        })
    }

    fn find<'a>(
        &'a self,
        user_id: &'a str,
        collection: &'a str,
        entry: &'a IndexEntry,
        limit: usize,
    ) -> BoxFuture<'a, Result<Scan, Error>> {
        Box::pin(async move {
            Ok(self.readers.point(|connection| {
                at_one_moment(connection, |connection| {
                    Ok(Scan {
                        documents: find(connection, user_id, collection, entry, limit)?,
                        shape: shape(connection, user_id, collection)?,
                    })
                })
            })?)
        })
    }

    fn count_open<'a>(
        &'a self,
        collection: &'a str,
        after: Timestamp,
        limit: usize,
    ) -> BoxFuture<'a, Result<usize, Error>> {
        Box::pin(async move {
            let count = |connection: &Connection| count_open(connection, collection, after, limit);
            Ok(self.readers.point(count)?)
        })
    }

    fn open_documents<'a>(
        &'a self,
        collection: &'a str,
        after: &'a OpenPlace,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<OpenDocument>, Error>> {
        let (collection, after) = (collection.to_owned(), after.clone());
        self.list(move |connection| open_documents(connection, &collection, &after, limit))
    }

    fn all_documents<'a>(
        &'a self,
        after: Option<&'a DocumentKey>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DocumentRow>, Error>> {
        let after = after.cloned();
        self.list(move |connection| all_documents(connection, after.as_ref(), limit))
    }
}

/// Counts open documents. The name `$open` is written out in the statement, so that the partial index of open
/// documents is used.
fn count_open(
    connection: &Connection,
    collection: &str,
    after: Timestamp,
    limit: usize,
) -> Result<usize, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT count(*) FROM (SELECT 1 FROM document_entry
             WHERE name = '$open' AND collection = ?1 AND value > ?2 LIMIT ?3)",
    )?;
    let value = IndexEntry::open_until(after).value;
    let limit = signed(u64::try_from(limit).unwrap_or(u64::MAX));
    let count = statement.query_row(params![collection, value, limit], |row| row.get(0))?;
    Ok(usize::try_from(unsigned(count)).unwrap_or(usize::MAX))
}

fn all_documents(
    connection: &Connection,
    after: Option<&DocumentKey>,
    limit: usize,
) -> Result<Vec<DocumentRow>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT user_id, collection, id, version, body FROM document
         WHERE (user_id, collection, id) > (?1, ?2, ?3)
         ORDER BY user_id, collection, id LIMIT ?4",
    )?;
    // No document has an empty id, so this is before all of them.
    let [user_id, collection, id] =
        after.map_or([""; 3], |key| [&*key.user_id, &*key.collection, &*key.id]);
    let limit = signed(u64::try_from(limit).unwrap_or(u64::MAX));
    let mut rows = statement.query(params![user_id, collection, id, limit])?;
    let mut documents = Vec::new();
    while let Some(row) = rows.next()? {
        documents.push(DocumentRow {
            key: DocumentKey {
                user_id: row.get(0)?,
                collection: row.get(1)?,
                id: row.get(2)?,
            },
            version: unsigned(row.get(3)?),
            body: row.get(4)?,
        });
    }
    Ok(documents)
}

fn open_documents(
    connection: &Connection,
    collection: &str,
    after: &OpenPlace,
    limit: usize,
) -> Result<Vec<OpenDocument>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT entry.value, entry.user_id, entry.id, version, body
         FROM document_entry AS entry CROSS JOIN document USING (user_id, collection, id)
         WHERE entry.name = '$open' AND entry.collection = ?1 AND entry.value >= ?2
             AND (entry.value, entry.user_id, entry.id) > (?2, ?3, ?4) AND body IS NOT NULL
         ORDER BY entry.value, entry.user_id, entry.id LIMIT ?5",
    )?;
    let limit = signed(u64::try_from(limit).unwrap_or(u64::MAX));
    let wanted = params![collection, after.until, after.user_id, after.id, limit];
    let mut rows = statement.query(wanted)?;
    let mut open = Vec::new();
    while let Some(row) = rows.next()? {
        open.push(OpenDocument {
            place: OpenPlace {
                until: bytes32(row, 0)?,
                user_id: row.get(1)?,
                id: row.get(2)?,
            },
            version: unsigned(row.get(3)?),
            body: row.get(4)?,
        });
    }
    Ok(open)
}

fn document(connection: &Connection, key: &DocumentKey) -> Result<StoredDocument, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT version, body FROM document WHERE user_id = ?1 AND collection = ?2 AND id = ?3",
    )?;
    let found = statement.query_row(params![key.user_id, key.collection, key.id], |row| {
        Ok(StoredDocument {
            version: unsigned(row.get(0)?),
            body: row.get(1)?,
        })
    });
    Ok(found.optional()?.unwrap_or(StoredDocument {
        version: 0,
        body: None,
    }))
}

fn scan(
    connection: &Connection,
    [user_id, collection, prefix]: [&str; 3],
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<FoundDocument>, Failure> {
    // Ids compare byte by byte, so those with the prefix are adjacent and none comes before it.
    let (first, sql) = match after.filter(|after| *after >= prefix) {
        Some(after) => (
            after,
            "SELECT id, version, body FROM document
             WHERE user_id = ?1 AND collection = ?2 AND id > ?3 AND body IS NOT NULL ORDER BY id",
        ),
        None => (
            prefix,
            "SELECT id, version, body FROM document
             WHERE user_id = ?1 AND collection = ?2 AND id >= ?3 AND body IS NOT NULL ORDER BY id",
        ),
    };
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query([user_id, collection, first])?;
    found(rows, prefix, limit)
}

fn find(
    connection: &Connection,
    user_id: &str,
    collection: &str,
    entry: &IndexEntry,
    limit: usize,
) -> Result<Vec<FoundDocument>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT document.id, version, body FROM document_entry AS entry
         CROSS JOIN document USING (user_id, collection, id)
         WHERE entry.user_id = ?1 AND entry.collection = ?2 AND name = ?3 AND value = ?4
             AND body IS NOT NULL
         ORDER BY entry.id",
    )?;
    let rows = statement.query(params![user_id, collection, entry.index, entry.value])?;
    found(rows, "", limit)
}

fn found(mut rows: Rows<'_>, prefix: &str, limit: usize) -> Result<Vec<FoundDocument>, Failure> {
    let mut documents = Vec::new();
    while documents.len() < limit
        && let Some(row) = rows.next()?
    {
        let id: String = row.get(0)?;
        if !id.starts_with(prefix) {
            break;
        }
        documents.push(FoundDocument {
            id,
            version: unsigned(row.get(1)?),
            body: row.get(2)?,
        });
    }
    Ok(documents)
}

fn shape(connection: &Connection, user_id: &str, collection: &str) -> Result<u64, Failure> {
    let mut statement = connection
        .prepare_cached("SELECT shape FROM shape WHERE user_id = ?1 AND collection = ?2")?;
    let shape = statement.query_row([user_id, collection], |row| row.get(0));
    Ok(shape.optional()?.map_or(0, unsigned))
}

/// Returns the first document or shape that has changed since it was read.
pub(super) fn moved(
    connection: &Connection,
    reads: &[DocumentRead],
    shapes: &[ShapeRead],
) -> Result<Option<CommitAnswer>, Failure> {
    let mut version = connection.prepare_cached(
        "SELECT version FROM document WHERE user_id = ?1 AND collection = ?2 AND id = ?3",
    )?;
    for DocumentRead { key, version: read } in reads {
        let found = version.query_row([&key.user_id, &key.collection, &key.id], |row| row.get(0));
        if found.optional()?.map_or(0, unsigned) != *read {
            return Ok(Some(CommitAnswer::Moved {
                collection: key.collection.clone(),
                id: key.id.clone(),
            }));
        }
    }
    for read in shapes {
        if shape(connection, &read.user_id, &read.collection)? != read.shape {
            return Ok(Some(CommitAnswer::Moved {
                collection: read.collection.clone(),
                id: String::new(),
            }));
        }
    }
    Ok(None)
}

pub(super) fn write(connection: &Connection, write: &DocumentWrite) -> Result<(), Failure> {
    let key = &write.key;
    let entries = encoded(&write.entries);
    // A new document has no earlier version to be compared with.
    let (had_body, had_entries) = match write.version {
        0 => (false, Vec::new()),
        _ => before(connection, key)?,
    };
    if write.tracked && (had_body != write.body.is_some() || had_entries != entries) {
        let mut shape = connection.prepare_cached(
            "INSERT INTO shape (user_id, collection, shape) VALUES (?1, ?2, 1)
             ON CONFLICT (user_id, collection) DO UPDATE SET shape = shape + 1",
        )?;
        shape.execute([&key.user_id, &key.collection])?;
    }
    if had_entries != entries {
        replace_entries(connection, key, &had_entries, &write.entries)?;
    }
    let mut document = connection.prepare_cached(
        "INSERT INTO document (user_id, collection, id, version, entries, body)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (user_id, collection, id)
         DO UPDATE SET version = excluded.version, entries = excluded.entries, body = excluded.body",
    )?;
    document.execute(params![
        key.user_id,
        key.collection,
        key.id,
        signed(write.version.saturating_add(1)),
        entries,
        write.body,
    ])?;
    Ok(())
}

fn before(connection: &Connection, key: &DocumentKey) -> Result<(bool, Vec<u8>), Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT body IS NOT NULL, entries FROM document
         WHERE user_id = ?1 AND collection = ?2 AND id = ?3",
    )?;
    let found = statement.query_row([&key.user_id, &key.collection, &key.id], |row| {
        Ok((row.get(0)?, row.get(1)?))
    });
    Ok(found.optional()?.unwrap_or_default())
}

fn replace_entries(
    connection: &Connection,
    key: &DocumentKey,
    before: &[u8],
    now: &[IndexEntry],
) -> Result<(), Failure> {
    let mut delete = connection.prepare_cached(
        "DELETE FROM document_entry
         WHERE user_id = ?1 AND collection = ?2 AND name = ?3 AND value = ?4 AND id = ?5",
    )?;
    for entry in decoded(before)? {
        delete.execute(params![
            key.user_id,
            key.collection,
            entry.index,
            entry.value,
            key.id
        ])?;
    }
    let mut insert = connection.prepare_cached(
        "INSERT OR IGNORE INTO document_entry (user_id, collection, name, value, id)
         VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for entry in now {
        insert.execute(params![
            key.user_id,
            key.collection,
            entry.index,
            entry.value,
            key.id
        ])?;
    }
    Ok(())
}

/// Encodes index entries as one value: for each the length of its name, the name, and the 32 bytes.
fn encoded(entries: &[IndexEntry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in entries {
        let length =
            u32::try_from(entry.index.len()).expect("a declared name is no gigabytes long");
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(entry.index.as_bytes());
        bytes.extend_from_slice(&entry.value);
    }
    bytes
}

pub(super) fn decoded(mut bytes: &[u8]) -> Result<Vec<IndexEntry>, Failure> {
    let mut entries = Vec::new();
    while !bytes.is_empty() {
        let (entry, rest) =
            decoded_one(bytes).ok_or_else(|| Failure::damaged("the entries of a document"))?;
        entries.push(entry);
        bytes = rest;
    }
    Ok(entries)
}

fn decoded_one(bytes: &[u8]) -> Option<(IndexEntry, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (name, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    let (value, rest) = rest.split_first_chunk::<32>()?;
    let entry = IndexEntry {
        index: std::str::from_utf8(name).ok()?.to_owned(),
        value: *value,
    };
    Some((entry, rest))
}
