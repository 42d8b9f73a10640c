//! Reading records: by id, and by the other columns that can be searched.

use std::collections::HashMap;

use countersign::ledger::{FoundLeaf, LogQuery, LogRow, StoredRecord};
use countersign_contract::{ErrorCode, RecordKind, SnapshotId};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::postgres::claims::request_id;
use crate::postgres::failure::Failure;
use crate::postgres::records::{nanos, timestamp};
use crate::postgres::{PostgresStore, rows, unsigned};

/// The columns that [`shown`] reads, of a record that the statement calls `r`.
const COLUMNS: &str = "r.user_id, r.id, r.kind, r.at_ns, r.request_id, r.tool, r.code";

impl PostgresStore {
    pub(super) async fn stored_record(
        &self,
        id: &SnapshotId,
    ) -> Result<Option<StoredRecord>, Failure> {
        let query = format!(
            "SELECT {COLUMNS}, r.leaf, l.idx, p.body FROM record r \
             LEFT JOIN log_leaf l ON l.id = r.id \
             LEFT JOIN payload p ON p.user_id = r.user_id AND p.id = r.id \
             WHERE r.id = $1"
        );
        let found = self.read(&query, &[&id.as_str()]).await?;
        let stored = found.first().map(|row| {
            Ok(StoredRecord {
                row: shown(row)?,
                index: row.get::<_, Option<i64>>("idx").map(unsigned),
                leaf: row.get("leaf"),
                payload: row.get("body"),
            })
        });
        stored.transpose()
    }

    pub(super) async fn leaves_of_records(
        &self,
        ids: &[SnapshotId],
    ) -> Result<Vec<FoundLeaf>, Failure> {
        let named: Vec<&str> = ids.iter().map(SnapshotId::as_str).collect();
        let sql = format!("SELECT {COLUMNS}, r.leaf FROM record r WHERE r.id = ANY($1::text[])");
        let mut leaves = HashMap::new();
        for row in self.read_anew(&sql, &[&named]).await? {
            let found = shown(&row)?;
            leaves.insert(found.id.clone(), (found, row.get("leaf")));
        }
        Ok(ids.iter().map(|id| leaves.get(id).cloned()).collect())
    }

    pub(super) async fn matching(&self, query: &LogQuery) -> Result<Vec<LogRow>, Failure> {
        let mut wanted = Wanted::default();
        wanted.add("r.user_id = ", query.user_id.as_deref());
        wanted.add("r.tool = ", query.tool.as_deref());
        wanted.add("r.code = ", query.code.map(ErrorCode::as_str));
        wanted.add("r.kind = ", query.kind.map(RecordKind::as_str));
        let request = query.request_id.as_ref();
        wanted.add("r.request_id = ", request.map(|id| id.as_str().to_owned()));
        if !query.request_ids.is_empty() {
            let ids = query.request_ids.iter();
            let ids: Vec<String> = ids.map(|id| id.as_str().to_owned()).collect();
            let place = wanted.param(ids);
            wanted
                .conditions
                .push(format!("r.request_id = ANY({place})"));
        }
        wanted.add("r.at_ns >= ", query.since.map(nanos));
        wanted.add("r.at_ns < ", query.until.map(nanos));
        if query.ok_only {
            wanted.conditions.push("r.code IS NULL".to_owned());
        }
        if let Some((at, id)) = &query.before {
            let at = wanted.param(nanos(*at));
            let id = wanted.param(id.as_str().to_owned());
            wanted
                .conditions
                .push(format!("(r.at_ns, r.id) < ({at}, {id})"));
        }
        let limit = wanted.param(rows(query.limit));
        let conditions = match wanted.conditions.as_slice() {
            [] => String::new(),
            conditions => format!("WHERE {}", conditions.join(" AND ")),
        };
        let sql = format!(
            "SELECT {COLUMNS} FROM record r {conditions} \
             ORDER BY r.at_ns DESC, r.id DESC LIMIT {limit}"
        );
        let params: Vec<&(dyn ToSql + Sync)> =
            wanted.params.iter().map(|param| &**param as _).collect();
        let found = self.read_anew(&sql, &params).await?;
        found.iter().map(shown).collect()
    }
}

/// Conditions of a query and their parameters. Only constant strings become part of the statement.
#[derive(Default)]
struct Wanted<'q> {
    conditions: Vec<String>,
    params: Vec<Box<dyn ToSql + Sync + Send + 'q>>,
}

impl<'q> Wanted<'q> {
    fn add(&mut self, condition: &str, value: Option<impl ToSql + Sync + Send + 'q>) {
        if let Some(value) = value {
            let place = self.param(value);
            self.conditions.push(format!("{condition}{place}"));
        }
    }

    fn param(&mut self, value: impl ToSql + Sync + Send + 'q) -> String {
        self.params.push(Box::new(value));
        format!("${}", self.params.len())
    }
}

/// Reads a record as lists show it.
pub(in crate::postgres) fn shown(row: &Row) -> Result<LogRow, Failure> {
    let id: &str = row.get("id");
    let damaged = || Failure::damaged(format!("the record {id}"));
    let kind: &str = row.get("kind");
    let kind = RecordKind::ALL
        .into_iter()
        .find(|known| known.as_str() == kind);
    let code: Option<&str> = row.get("code");
    let request: Option<&str> = row.get("request_id");
    Ok(LogRow {
        id: SnapshotId::new(id).map_err(|_| damaged())?,
        user_id: row.get("user_id"),
        kind: kind.ok_or_else(damaged)?,
        at: timestamp(row.get("at_ns")),
        request_id: request.map(request_id).transpose()?,
        tool: row.get("tool"),
        code: code
            .map(|code| code.parse().map_err(|_| damaged()))
            .transpose()?,
    })
}
