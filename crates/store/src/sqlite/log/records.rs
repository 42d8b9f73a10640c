//! Searching records.
//!
//! Records in the order of time have a table, and so have those of one code, one tool or one kind, and those whose call
//! has an id that the caller chose. Records of one user, or of a call whose id we made, are searched bucket by bucket, from the newest on, until no older one can belong to the answer.
//! Records that are not in the tree yet are in none of these and are read one by one.

use std::collections::HashSet;
use std::slice;

use countersign::ledger::{FoundLeaf, LogQuery, LogRow, StoredRecord};
use countersign_contract::{ErrorCode, RecordKind, RequestId, SnapshotId};
use rusqlite::{Connection, Row, Rows, ToSql, params};

use super::entry::{is_made, request_term, user_term};
use crate::sqlite::failure::Failure;
use crate::sqlite::time::{micros, timestamp};
use crate::sqlite::tip::head;
use crate::sqlite::values::{bounded, parsed, parsed_option, signed, unsigned};

/// Columns that [`row`] reads, in its order.
macro_rules! columns {
    () => {
        "record.id, user_id, kind, record.at, record.request_id, tool, code"
    };
}

/// Condition of a query; [`Filter`] has its parameters.
macro_rules! filter {
    () => {
        " record.at >= ?1 AND record.at <= ?2 AND (record.at, record.id) < (?3, ?4) AND (?5 IS NULL OR user_id = ?5)
          AND (?6 IS NULL OR tool = ?6) AND (?7 IS NULL OR code = ?7) AND (NOT ?8 OR code IS NULL)
          AND (?9 IS NULL OR kind = ?9) AND (?10 IS NULL OR record.request_id = ?10)"
    };
}

pub(super) fn one(
    connection: &Connection,
    id: &SnapshotId,
) -> Result<Option<StoredRecord>, Failure> {
    let (size, _) = head(connection)?;
    let mut statement = connection.prepare_cached(concat!(
        "SELECT ",
        columns!(),
        ", idx, leaf, (SELECT bytes FROM payload WHERE payload.idx = record.idx)
         FROM record WHERE id = ?1"
    ))?;
    let mut rows = statement.query([id.as_str()])?;
    let Some(found) = rows.next()? else {
        return Ok(None);
    };
    let place = unsigned(found.get(7)?);
    Ok(Some(StoredRecord {
        row: row(found)?,
        index: (place < size).then_some(place),
        leaf: found.get(8)?,
        payload: found.get(9)?,
    }))
}

pub(super) fn leaves_of(
    connection: &Connection,
    ids: &[SnapshotId],
) -> Result<Vec<FoundLeaf>, Failure> {
    let mut statement = connection.prepare_cached(concat!(
        "SELECT ",
        columns!(),
        ", leaf FROM record WHERE id = ?1"
    ))?;
    let mut leaves = Vec::with_capacity(ids.len());
    for id in ids {
        let mut rows = statement.query([id.as_str()])?;
        leaves.push(match rows.next()? {
            Some(found) => Some((row(found)?, found.get(7)?)),
            None => None,
        });
    }
    Ok(leaves)
}

pub(super) fn matching(connection: &Connection, query: &LogQuery) -> Result<Vec<LogRow>, Failure> {
    let filter = Filter::of(query);
    // A call has fewer records than a user, so it is preferred.
    if let Some(id) = &query.request_id {
        return by_requests(connection, &filter, slice::from_ref(id), query.limit);
    }
    if !query.request_ids.is_empty() {
        return by_requests(connection, &filter, &query.request_ids, query.limit);
    }
    let user = query.user_id.as_ref().filter(|user_id| !user_id.is_empty());
    let facet = narrowest(connection, &filter, &facets(query))?;
    match (user, facet) {
        (Some(user_id), None | Some((_, Found::Many))) => {
            by_term(connection, &filter, user_term(user_id), query.limit)
        }
        (_, Some((facet, _))) => by_facet(connection, &filter, &facet, query.limit),
        (None, None) => by_time(connection, &filter, query.limit),
    }
}

/// Names of the facets that every record of the answer has.
fn facets(query: &LogQuery) -> Vec<String> {
    let code = query.code.map(|code| format!("code:{}", code.as_str()));
    let kind = query.kind.filter(|kind| *kind != RecordKind::Call);
    let kind = kind.map(|kind| format!("kind:{}", kind.as_str()));
    let tool = query.tool.as_ref().map(|tool| format!("tool:{tool}"));
    [code, kind, tool].into_iter().flatten().collect()
}

/// Number of records with a facet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    Few(i64),
    Many,
}

/// Records that are counted: reading as many of them one by one takes a few milliseconds.
const FEW: i64 = if cfg!(test) { 4 } else { 2_000 };

/// The facet that the fewest records have; `None` if there is none to choose.
fn narrowest(
    connection: &Connection,
    filter: &Filter<'_>,
    facets: &[String],
) -> Result<Option<(String, Found)>, Failure> {
    let mut count = connection.prepare_cached(
        "SELECT count(*) FROM (SELECT 1 FROM facet WHERE name = ?1 AND at >= ?2 AND at <= ?3 LIMIT ?4)",
    )?;
    let mut best: Option<(String, Found)> = None;
    for name in facets {
        let parameters = params![name, filter.since, filter.until, FEW];
        let found = match count.query_row(parameters, |row| row.get(0))? {
            FEW.. => Found::Many,
            few => Found::Few(few),
        };
        if best.as_ref().is_none_or(|(_, fewest)| found < *fewest) {
            best = Some((name.clone(), found));
        }
    }
    Ok(best)
}

fn by_facet(
    connection: &Connection,
    filter: &Filter<'_>,
    facet: &str,
    limit: usize,
) -> Result<Vec<LogRow>, Failure> {
    let mut found = not_in_tree(connection, filter)?;
    let mut statement = connection.prepare_cached(concat!(
        "SELECT ",
        columns!(),
        " FROM facet CROSS JOIN record USING (idx) WHERE facet.name = ?12 AND facet.at >= ?1 AND facet.at <= ?2 AND",
        filter!(),
        " ORDER BY facet.at DESC, facet.id DESC LIMIT ?11"
    ))?;
    let limit_bound = bounded(limit);
    found.extend(rows(
        statement.query(&*filter.with(&[&limit_bound, &facet]))?,
    )?);
    newest_first(&mut found, limit);
    Ok(found)
}

fn by_time(
    connection: &Connection,
    filter: &Filter<'_>,
    limit: usize,
) -> Result<Vec<LogRow>, Failure> {
    let mut found = not_in_tree(connection, filter)?;
    let mut statement = connection.prepare_cached(concat!(
        "SELECT ",
        columns!(),
        " FROM timeline CROSS JOIN record USING (idx) WHERE timeline.at >= ?1 AND timeline.at <= ?2 AND",
        filter!(),
        " ORDER BY timeline.at DESC, timeline.id DESC LIMIT ?11"
    ))?;
    let limit_bound = bounded(limit);
    found.extend(rows(statement.query(&*filter.with(&[&limit_bound]))?)?);
    newest_first(&mut found, limit);
    Ok(found)
}

fn by_term(
    connection: &Connection,
    filter: &Filter<'_>,
    term: i64,
    limit: usize,
) -> Result<Vec<LogRow>, Failure> {
    let mut found = not_in_tree(connection, filter)?;
    let mut in_bucket = connection.prepare_cached(concat!(
        "SELECT ",
        columns!(),
        " FROM posting CROSS JOIN record USING (idx) WHERE bucket = ?11 AND term = ?12 AND",
        filter!()
    ))?;
    let mut buckets = connection.prepare_cached(
        "SELECT number, oldest, newest, newest_so_far FROM bucket ORDER BY number DESC",
    )?;
    let mut buckets = buckets.query([])?;
    newest_first(&mut found, limit);
    while let Some(bucket) = buckets.next()? {
        let (number, oldest): (i64, i64) = (bucket.get(0)?, bucket.get(1)?);
        let (newest, newest_so_far): (i64, i64) = (bucket.get(2)?, bucket.get(3)?);
        let is_full = found.len() >= limit;
        let is_older = |last: &LogRow| newest_so_far < micros(last.at);
        if newest_so_far < filter.since || is_full && found.last().is_none_or(is_older) {
            break;
        }
        if newest < filter.since || oldest > filter.until {
            continue;
        }
        found.extend(rows(in_bucket.query(&*filter.with(&[&number, &term]))?)?);
        newest_first(&mut found, limit);
    }
    Ok(found)
}

/// Records of any of these calls.
fn by_requests(
    connection: &Connection,
    filter: &Filter<'_>,
    ids: &[RequestId],
    limit: usize,
) -> Result<Vec<LogRow>, Failure> {
    let ids = ids.iter().map(RequestId::as_str);
    let (made, chosen): (HashSet<&str>, HashSet<&str>) = ids.partition(|id| is_made(id));
    let mut found = by_chosen(connection, filter, &chosen, limit)?;
    for id in made {
        found.extend(by_made(connection, filter, id, limit)?);
    }
    newest_first(&mut found, limit);
    Ok(found)
}

fn by_made(
    connection: &Connection,
    filter: &Filter<'_>,
    id: &str,
    limit: usize,
) -> Result<Vec<LogRow>, Failure> {
    let filter = Filter {
        request_id: Some(id),
        ..*filter
    };
    by_term(connection, &filter, request_term(id), limit)
}

/// Records by ids that callers chose: one look-up an id.
fn by_chosen(
    connection: &Connection,
    filter: &Filter<'_>,
    ids: &HashSet<&str>,
    limit: usize,
) -> Result<Vec<LogRow>, Failure> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut found = not_in_tree(connection, filter)?;
    found.retain(|row| {
        let id = row.request_id.as_ref();
        id.is_some_and(|id| ids.contains(id.as_str()))
    });
    let mut statement = connection.prepare_cached(concat!(
        "SELECT ",
        columns!(),
        " FROM chosen CROSS JOIN record USING (idx)
          WHERE chosen.request_id IN (SELECT value FROM json_each(?11)) AND",
        filter!()
    ))?;
    let ids = serde_json::json!(ids).to_string();
    found.extend(rows(statement.query(&*filter.with(&[&ids]))?)?);
    newest_first(&mut found, limit);
    Ok(found)
}

fn not_in_tree(connection: &Connection, filter: &Filter<'_>) -> Result<Vec<LogRow>, Failure> {
    let size = signed(head(connection)?.0);
    let mut statement = connection.prepare_cached(concat!(
        "SELECT ",
        columns!(),
        " FROM record WHERE idx >= ?11 AND",
        filter!()
    ))?;
    rows(statement.query(&*filter.with(&[&size]))?)
}

fn newest_first(rows: &mut Vec<LogRow>, limit: usize) {
    rows.sort_by(|a, b| (b.at, b.id.as_str()).cmp(&(a.at, a.id.as_str())));
    rows.truncate(limit);
}

/// Parameters of a query. A missing bound becomes one that every record meets.
#[derive(Clone, Copy)]
struct Filter<'q> {
    since: i64,
    /// Inclusive upper bound: the query's `until`, or the page's edge.
    until: i64,
    before_at: i64,
    before_id: &'q str,
    user_id: Option<&'q str>,
    tool: Option<&'q str>,
    code: Option<&'q str>,
    ok_only: bool,
    kind: Option<&'q str>,
    request_id: Option<&'q str>,
}

impl<'q> Filter<'q> {
    fn of(query: &'q LogQuery) -> Self {
        let before = query.before.as_ref();
        let before_at = before.map_or(i64::MAX, |(at, _)| micros(*at));
        let until = query.until.map_or(i64::MAX, |until| micros(until) - 1);
        Self {
            since: query.since.map_or(i64::MIN, micros),
            until: until.min(before_at),
            before_at,
            before_id: before.map_or("", |(_, id)| id.as_str()),
            user_id: query.user_id.as_deref(),
            tool: query.tool.as_deref(),
            code: query.code.map(ErrorCode::as_str),
            ok_only: query.ok_only,
            kind: query.kind.map(RecordKind::as_str),
            request_id: query.request_id.as_ref().map(RequestId::as_str),
        }
    }

    fn with<'p>(&'p self, more: &[&'p dyn ToSql]) -> Vec<&'p dyn ToSql> {
        let mut parameters: Vec<&dyn ToSql> = vec![
            &self.since,
            &self.until,
            &self.before_at,
            &self.before_id,
            &self.user_id,
            &self.tool,
            &self.code,
            &self.ok_only,
            &self.kind,
            &self.request_id,
        ];
        parameters.extend(more);
        parameters
    }
}

fn rows(mut rows: Rows<'_>) -> Result<Vec<LogRow>, Failure> {
    let mut found = Vec::new();
    while let Some(one) = rows.next()? {
        found.push(row(one)?);
    }
    Ok(found)
}

/// Reads a record from a row that begins with its columns.
pub(in crate::sqlite) fn row(row: &Row<'_>) -> Result<LogRow, Failure> {
    let kind: String = row.get(2)?;
    let is_kind = |known: &RecordKind| known.as_str() == kind;
    let known = RecordKind::ALL.into_iter().find(is_kind);
    Ok(LogRow {
        id: parsed(row, 0)?,
        user_id: row.get(1)?,
        kind: known.ok_or_else(|| Failure::damaged(format!("a record of kind {kind:?}")))?,
        at: timestamp(row.get(3)?),
        request_id: parsed_option(row, 4)?,
        tool: row.get(5)?,
        code: parsed_option(row, 6)?,
    })
}
