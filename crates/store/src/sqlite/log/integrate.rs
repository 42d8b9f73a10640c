//! Integration: adds committed records to the tree and to the search index.

use std::collections::BTreeMap;

use countersign::ledger::{Head, Integration};
use rusqlite::{Connection, params};

use crate::sqlite::failure::Failure;
use crate::sqlite::tip::{Waiting, tile_key};
use crate::sqlite::values::signed;
use crate::sqlite::writer::Session;

/// Records in one bucket of the search index. Tests have many small ones.
pub(super) const BUCKET: u64 = if cfg!(test) { 8 } else { 4_096 };

pub(super) fn integrate(session: &mut Session<'_>, limit: usize) -> Result<Integration, Failure> {
    let connection = session.connection;
    let new = session.tip.after_tree(connection, session.leaves, limit)?;
    let mut tree = session.tip.tree.clone();
    let first = tree.frontier().size();
    if !new.is_empty() {
        let hashes: Vec<_> = new.iter().map(|record| record.hash).collect();
        let mut tile = connection.prepare_cached(
            "INSERT INTO tile (key, hashes) VALUES (?1, ?2)
             ON CONFLICT (key) DO UPDATE SET hashes = excluded.hashes",
        )?;
        for (id, bytes) in tree.append(&hashes) {
            tile.execute(params![tile_key(id), bytes])?;
        }
        let mut head = connection.prepare_cached("UPDATE head SET size = ?1, root = ?2")?;
        let frontier = tree.frontier();
        head.execute(params![signed(frontier.size()), frontier.root()])?;
        post(connection, first, &new)?;
        let new = [signed(first), signed(frontier.size())];
        for sql in [
            "INSERT INTO timeline (at, id, idx) SELECT at, id, idx FROM record
             WHERE idx >= ?1 AND idx < ?2 ORDER BY at, id",
            "INSERT INTO facet (name, at, id, idx) SELECT name, at, id, idx FROM (
                 SELECT 'code:' || code AS name, at, id, idx FROM record
                     WHERE idx >= ?1 AND idx < ?2 AND code IS NOT NULL
                 UNION ALL SELECT 'tool:' || tool, at, id, idx FROM record
                     WHERE idx >= ?1 AND idx < ?2 AND tool IS NOT NULL
                 UNION ALL SELECT 'kind:' || kind, at, id, idx FROM record
                     WHERE idx >= ?1 AND idx < ?2 AND kind <> 'call'
             ) ORDER BY name, at, id",
            "INSERT INTO chosen (request_id, idx) SELECT request_id, idx FROM record
             WHERE idx >= ?1 AND idx < ?2 AND request_id NOT GLOB 'req[_]*' ORDER BY request_id, idx",
            "INSERT INTO payload_due (until, idx) SELECT until, idx FROM payload
             WHERE idx >= ?1 AND idx < ?2 AND until IS NOT NULL ORDER BY until, idx",
        ] {
            connection.prepare_cached(sql)?.execute(new)?;
        }
    }
    let head = Head {
        size: tree.frontier().size(),
        root: tree.frontier().root(),
    };
    session.tip.integrated(tree);
    Ok(Integration::Done {
        head,
        added: new.len(),
    })
}

/// Writes the search terms of the records, sorted, so that pages are filled one after the other.
fn post(connection: &Connection, first: u64, new: &[Waiting]) -> Result<(), Failure> {
    let mut postings = Vec::with_capacity(new.len() * 2);
    let mut spans: BTreeMap<u64, (i64, i64)> = BTreeMap::new();
    for (place, record) in (first..).zip(new) {
        let bucket = place / BUCKET;
        let terms = record.terms.iter().flatten();
        postings.extend(terms.map(|term| [signed(bucket), *term, signed(place)]));
        let (oldest, newest) = spans.entry(bucket).or_insert((record.at, record.at));
        *oldest = record.at.min(*oldest);
        *newest = record.at.max(*newest);
    }
    postings.sort_unstable();
    let mut insert = connection
        .prepare_cached("INSERT OR IGNORE INTO posting (bucket, term, idx) VALUES (?1, ?2, ?3)")?;
    for posting in postings {
        insert.execute(posting)?;
    }
    let mut span = connection.prepare_cached(
        "INSERT INTO bucket (number, oldest, newest, newest_so_far)
         VALUES (?1, ?2, ?3, max(?3, coalesce(
             (SELECT newest_so_far FROM bucket WHERE number < ?1 ORDER BY number DESC LIMIT 1), ?3)))
         ON CONFLICT (number) DO UPDATE SET
             oldest = min(oldest, excluded.oldest),
             newest = max(newest, excluded.newest),
             newest_so_far = max(newest_so_far, excluded.newest_so_far)",
    )?;
    for (bucket, (oldest, newest)) in spans {
        span.execute([signed(bucket), oldest, newest])?;
    }
    Ok(())
}
