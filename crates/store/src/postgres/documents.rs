//! Documents in PostgreSQL.

use std::sync::Arc;

use countersign::BoxFuture;
use countersign::ledger::{
    DocumentKey, DocumentRow, Documents, Error, FoundDocument, IndexEntry, OpenDocument, OpenPlace,
    Scan, StoredDocument,
};
use jiff::Timestamp;
use tokio_postgres::Row;

use super::failure::Failure;
use super::held::digest;
use super::{PostgresStore, rows, unsigned};

impl Documents for PostgresStore {
    fn document<'a>(
        &'a self,
        key: &'a DocumentKey,
    ) -> BoxFuture<'a, Result<StoredDocument, Error>> {
        Box::pin(async move {
            let found = self
                .read(
                    "SELECT version, body FROM document \
                     WHERE user_id = $1 AND collection = $2 AND id = $3",
                    &[&key.user_id, &key.collection, &key.id],
                )
                .await?;
            let stored = found.first().map(|row| StoredDocument {
                version: unsigned(row.get(0)),
                body: row.get::<_, Option<&[u8]>>(1).map(Arc::from),
            });
            Ok(stored.unwrap_or(StoredDocument {
                version: 0,
                body: None,
            }))
        })
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
            let found = self
                .read(
                    "SELECT s.shape, d.id, d.version, d.body \
                     FROM (SELECT coalesce((SELECT shape FROM shape \
                             WHERE user_id = $1 AND collection = $2), 0) AS shape) s \
                     LEFT JOIN LATERAL (SELECT id, version, body FROM document \
                         WHERE user_id = $1 AND collection = $2 AND body IS NOT NULL \
                           AND id >= $3 AND ($4::text IS NULL OR id < $4) \
                           AND ($5::text IS NULL OR id > $5) \
                         ORDER BY id LIMIT $6) d ON true \
                     ORDER BY d.id",
                    &[
                        &user_id,
                        &collection,
                        &prefix,
                        &end_of(prefix),
                        &after,
                        &rows(limit),
                    ],
                )
                .await?;
            Ok(scan(&found))
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
            let value = entry.value.as_slice();
            let found = self
                .read(
                    "SELECT s.shape, d.id, d.version, d.body \
                     FROM (SELECT coalesce((SELECT shape FROM shape \
                             WHERE user_id = $1 AND collection = $2), 0) AS shape) s \
                     LEFT JOIN LATERAL (SELECT d.id, d.version, d.body FROM document_entry e \
                         JOIN document d ON d.user_id = e.user_id AND d.collection = e.collection \
                           AND d.id = e.id \
                         WHERE e.user_id = $1 AND e.collection = $2 AND e.name = $3 AND e.value = $4 \
                           AND d.body IS NOT NULL \
                         ORDER BY e.id LIMIT $5) d ON true \
                     ORDER BY d.id",
                    &[&user_id, &collection, &entry.index, &value, &rows(limit)],
                )
                .await?;
            Ok(scan(&found))
        })
    }

    /// Counts open documents. The name `$open` is written out in the statement, so that the partial index of
    /// open documents is used.
    fn count_open<'a>(
        &'a self,
        collection: &'a str,
        after: Timestamp,
        limit: usize,
    ) -> BoxFuture<'a, Result<usize, Error>> {
        Box::pin(async move {
            let after = IndexEntry::open_until(after);
            let found = self
                .read(
                    "SELECT count(*) FROM (SELECT 1 FROM document_entry \
                       WHERE name = '$open' AND collection = $1 AND value > $2 LIMIT $3) open",
                    &[&collection, &after.value.as_slice(), &rows(limit)],
                )
                .await?;
            let count = found.first().map_or(0, |row| unsigned(row.get(0)));
            Ok(usize::try_from(count).unwrap_or(usize::MAX))
        })
    }

    fn open_documents<'a>(
        &'a self,
        collection: &'a str,
        after: &'a OpenPlace,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<OpenDocument>, Error>> {
        Box::pin(async move {
            let found = self
                .read(
                    "SELECT e.value, e.user_id, e.id, d.version, d.body \
                     FROM document_entry e JOIN document d ON d.user_id = e.user_id \
                       AND d.collection = e.collection AND d.id = e.id \
                     WHERE e.name = '$open' AND e.collection = $1 AND e.value >= $2 \
                       AND (e.value, e.user_id, e.id) > ($2, $3, $4) AND d.body IS NOT NULL \
                     ORDER BY e.value, e.user_id, e.id LIMIT $5",
                    &[
                        &collection,
                        &after.until.as_slice(),
                        &after.user_id,
                        &after.id,
                        &rows(limit),
                    ],
                )
                .await?;
            let open = found.iter().map(|row| {
                Ok(OpenDocument {
                    place: OpenPlace {
                        until: digest(row, "value")?,
                        user_id: row.get("user_id"),
                        id: row.get("id"),
                    },
                    version: unsigned(row.get("version")),
                    body: row.get::<_, &[u8]>("body").into(),
                })
            });
            Ok(open.collect::<Result<_, Failure>>()?)
        })
    }

    fn all_documents<'a>(
        &'a self,
        after: Option<&'a DocumentKey>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DocumentRow>, Error>> {
        Box::pin(async move {
            // No document has an empty id, so this is before all of them.
            let [user_id, collection, id] =
                after.map_or([""; 3], |key| [&*key.user_id, &*key.collection, &*key.id]);
            let found = self
                .read(
                    "SELECT user_id, collection, id, version, body FROM document \
                     WHERE (user_id, collection, id) > ($1, $2, $3) \
                     ORDER BY user_id, collection, id LIMIT $4",
                    &[&user_id, &collection, &id, &rows(limit)],
                )
                .await?;
            let documents = found.iter().map(|row| DocumentRow {
                key: DocumentKey {
                    user_id: row.get("user_id"),
                    collection: row.get("collection"),
                    id: row.get("id"),
                },
                version: unsigned(row.get("version")),
                body: row.get::<_, Option<Vec<u8>>>("body").map(Arc::from),
            });
            Ok(documents.collect())
        })
    }
}

/// Reads a scan. There is at least one row, for the shape; it names no document if the collection is empty.
fn scan(found: &[Row]) -> Scan {
    let documents = found.iter().filter_map(|row| {
        Some(FoundDocument {
            id: row.get::<_, Option<String>>("id")?,
            version: unsigned(row.get("version")),
            body: row.get::<_, &[u8]>("body").into(),
        })
    });
    Scan {
        documents: documents.collect(),
        shape: found.first().map_or(0, |row| unsigned(row.get("shape"))),
    }
}

/// Returns the first string after all those that start with `prefix`; `None` if there is no such string.
///
/// Strings are ordered by their bytes, which is also the order of their characters.
fn end_of(prefix: &str) -> Option<String> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        // The range of characters skips the surrogates.
        if let Some(next) = (last..=char::MAX).nth(1) {
            end.push(next);
            return Some(end);
        }
    }
    None
}

/// Encodes all index entries of a document as one value: name and digest, one after the other.
pub(super) fn encode(entries: &[IndexEntry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in entries {
        let length = u32::try_from(entry.index.len()).unwrap_or(u32::MAX);
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(entry.index.as_bytes());
        bytes.extend_from_slice(&entry.value);
    }
    bytes
}

/// Decodes what [`encode`] has written.
pub(super) fn decode(mut bytes: &[u8]) -> Result<Vec<IndexEntry>, Failure> {
    let mut entries = Vec::new();
    while !bytes.is_empty() {
        let entry = split_entry(&mut bytes);
        entries.push(entry.ok_or_else(|| Failure::damaged("the index entries of a document"))?);
    }
    Ok(entries)
}

fn split_entry(bytes: &mut &[u8]) -> Option<IndexEntry> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let (index, rest) = rest.split_at_checked(length)?;
    let (value, rest) = rest.split_first_chunk::<32>()?;
    *bytes = rest;
    Some(IndexEntry {
        index: str::from_utf8(index).ok()?.to_owned(),
        value: *value,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_end_of_a_prefix_is_where_its_texts_end(
            prefix in "[a\u{d7ff}\u{e000}\u{10ffff}]{0,3}",
            text in "[\0ab\u{d7ff}\u{e000}\u{10ffff}]{0,5}",
        ) {
            let is_in = text >= prefix && end_of(&prefix).is_none_or(|end| text < end);
            prop_assert_eq!(is_in, text.starts_with(&prefix));
        }

        #[test]
        fn entries_are_read_as_they_were_written(entries in prop::collection::vec((".{0,9}", any::<[u8; 32]>()), 0..4)) {
            let entries: Vec<_> = entries
                .into_iter()
                .map(|(index, value)| IndexEntry { index, value })
                .collect();
            prop_assert_eq!(decode(&encode(&entries)).unwrap(), entries);
        }
    }

    #[test]
    fn entries_that_were_cut_are_damaged() {
        let whole = encode(&[IndexEntry {
            index: "by_sku".to_owned(),
            value: [7; 32],
        }]);
        for length in 1..whole.len() {
            assert!(decode(&whole[..length]).is_err(), "{length}");
        }
    }
}
