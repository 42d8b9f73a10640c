//! The tables of a SQLite store, and the changes that are made to their rows.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use anyhow::Result;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

/// The meaning of a table, or of one of its columns, for what is verified. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// A change has to be named.
    Guarded,
    /// A change frees nothing and hides nothing; the reason.
    Harmless(&'static str),
    /// A change is not compared with anything; what it can do.
    Open(&'static str),
}

/// The standing of a column of a table; of the whole row if there is no column.
pub fn standing(table: &str, column: Option<&str>) -> Standing {
    use Standing::{Guarded, Harmless, Open};
    match (table, column) {
        ("timeline" | "facet" | "posting" | "bucket" | "chosen" | "document_entry", _)
        | ("document", Some("entries")) => Harmless("an index for searches, made of the rows"),
        ("payload_due", _) => Harmless("an index of payloads; their removals have a record"),
        ("text_corpus" | "text_chunk", _) => Harmless("made again of files"),
        ("notice" | "notice_delivery", _) => Harmless("made of open questions and calls in doubt"),
        ("run", _) => Harmless("starts of processes; the log has records of its own"),
        ("checkpoint", _) => Harmless("an earlier signed note; the newest is compared"),
        (
            "claim",
            Some(
                "recovery" | "recovery_seconds" | "first_claim" | "claimed_at" | "lease_until"
                | "until" | "request_id",
            ),
        ) => Harmless("of a settled claim: no repeat runs, whatever it says"),
        ("claim", Some("fingerprint" | "parts")) => {
            Open("a repeat is refused, or other arguments get the stored answer; nothing runs")
        }
        ("pot", Some("reserved")) => Open("money that waits for a call can be spent as well"),
        ("time_mark", _) => Open("a clock that has jumped is believed"),
        ("user_key", Some("id")) => {
            Open("new records of the user are kept like those of an erased one")
        }
        ("payload", Some("until")) => Harmless("a payload that is removed too early is named then"),
        ("record", Some("fenced")) => Harmless("the record itself says it"),
        ("migration", _) => Harmless("a start compares the checksums"),
        ("hold", Some("number" | "reason")) => Harmless("for people; the reason is sealed"),
        ("installation", _) => Harmless("bound again by the next start; the keys decide"),
        ("shape", _) => Harmless("a wrong count of changes only has a call run again"),
        (_, _) => Guarded,
    }
}

/// A change of one row.
#[derive(Debug)]
pub(super) struct Mutation {
    table: String,
    kind: Kind,
    /// Names and values of the columns that find the row.
    key: Vec<(String, Value)>,
}

#[derive(Debug)]
enum Kind {
    /// The row is made as it was.
    PutBack(Vec<(String, Value)>),
    /// The row is removed.
    Deleted,
    /// One column is changed.
    Changed(String, Value),
}

impl Mutation {
    /// True if one column is changed.
    pub(super) fn is_of_column(&self) -> bool {
        matches!(self.kind, Kind::Changed(..))
    }

    /// The standing of what is changed.
    pub(super) fn standing(&self) -> Standing {
        match &self.kind {
            Kind::Changed(column, _) => standing(&self.table, Some(column)),
            Kind::PutBack(_) | Kind::Deleted => standing(&self.table, None),
        }
    }

    /// Makes the change in a database that no process has open.
    pub(super) fn make(&self, database: &Path) -> Result<()> {
        let connection = Connection::open(database)?;
        let found = self.key.iter().map(|(name, _)| format!("{name} IS ?"));
        let found = found.collect::<Vec<_>>().join(" AND ");
        let key = || self.key.iter().map(|(_, value)| value.clone());
        let table = &self.table;
        let (sql, values): (String, Vec<Value>) = match &self.kind {
            Kind::Deleted => (
                format!("DELETE FROM {table} WHERE {found}"),
                key().collect(),
            ),
            Kind::Changed(column, value) => (
                format!("UPDATE {table} SET {column} = ? WHERE {found}"),
                std::iter::once(value.clone()).chain(key()).collect(),
            ),
            Kind::PutBack(row) => {
                let names: Vec<&str> = row.iter().map(|(name, _)| name.as_str()).collect();
                let marks = vec!["?"; names.len()].join(", ");
                let names = names.join(", ");
                let sql = format!("INSERT OR REPLACE INTO {table} ({names}) VALUES ({marks})");
                (sql, row.iter().map(|(_, value)| value.clone()).collect())
            }
        };
        connection.execute(&sql, params_from_iter(values))?;
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        Ok(())
    }
}

impl fmt::Display for Mutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.key.iter();
        let key = key.map(|(name, value)| format!("{name}={}", shown(value)));
        let key = key.collect::<Vec<_>>().join(" ");
        let table = &self.table;
        match &self.kind {
            Kind::PutBack(_) => write!(f, "{table}: the row {key} was put back"),
            Kind::Deleted => write!(f, "{table}: the row {key} was deleted"),
            Kind::Changed(column, value) => {
                let value = shown(value);
                write!(f, "{table}: {column} of the row {key} became {value}")
            }
        }
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => text.chars().take(40).collect(),
        Value::Blob(bytes) => format!("{} bytes", bytes.len()),
    }
}

type Row = Vec<Value>;

/// A table as it is.
struct Table {
    columns: Vec<String>,
    /// Places of the columns of the primary key.
    key: Vec<usize>,
    /// Rows by a text of their key.
    rows: BTreeMap<String, Row>,
}

impl Table {
    fn key_of(&self, row: &Row) -> Vec<(String, Value)> {
        let places = self.key.iter();
        let named =
            |place: &usize| Some((self.columns.get(*place)?.clone(), row.get(*place)?.clone()));
        places.filter_map(named).collect()
    }
}

/// Rows of one table that are deleted and changed.
const CHANGED_ROWS: usize = 4;

/// Every change: rows that differ put back, some rows deleted, and each column of some rows changed.
pub(super) fn mutations(old: &Path, new: &Path) -> Result<Vec<Mutation>> {
    let (old, new) = (read(old)?, read(new)?);
    let mut all = Vec::new();
    for (name, now) in &new {
        let Some(before) = old.get(name) else {
            continue;
        };
        for (id, row) in &before.rows {
            if now.rows.get(id) != Some(row) {
                let named = before.columns.iter().cloned().zip(row.iter().cloned());
                all.push(Mutation {
                    table: name.clone(),
                    kind: Kind::PutBack(named.collect()),
                    key: before.key_of(row),
                });
            }
        }
        let step = now.rows.len().div_ceil(CHANGED_ROWS).max(1);
        for row in now.rows.values().rev().step_by(step) {
            let key = now.key_of(row);
            all.push(Mutation {
                table: name.clone(),
                kind: Kind::Deleted,
                key: key.clone(),
            });
            all.extend(now.columns.iter().zip(row).map(|(column, value)| Mutation {
                table: name.clone(),
                kind: Kind::Changed(column.clone(), other(value)),
                key: key.clone(),
            }));
        }
    }
    Ok(all)
}

/// Another value of the same kind.
fn other(value: &Value) -> Value {
    match value {
        Value::Null => Value::Integer(1),
        Value::Integer(number) if *number > 0 => Value::Integer(number - 1),
        Value::Integer(number) => Value::Integer(number + 1),
        Value::Real(number) => Value::Real(number + 1.0),
        Value::Text(text) => Value::Text(format!("{text}x")),
        Value::Blob(bytes) => {
            let mut bytes = bytes.clone();
            match bytes.last_mut() {
                Some(last) => *last ^= 1,
                None => bytes.push(1),
            }
            Value::Blob(bytes)
        }
    }
}

fn read(database: &Path) -> Result<BTreeMap<String, Table>> {
    let connection = Connection::open(database)?;
    let mut names = connection.prepare(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
         AND name NOT LIKE 'text_index%' ORDER BY name",
    )?;
    let names = names.query_map([], |row| row.get(0))?;
    let names: Vec<String> = names.collect::<Result<_, _>>()?;
    let mut tables = BTreeMap::new();
    for name in names {
        tables.insert(name.clone(), table(&connection, &name)?);
    }
    Ok(tables)
}

fn table(connection: &Connection, name: &str) -> Result<Table> {
    let mut info = connection.prepare(&format!("PRAGMA table_info({name})"))?;
    let info = info.query_map([], |row| Ok((row.get(1)?, row.get(5)?)))?;
    let info: Vec<(String, i64)> = info.collect::<Result<_, _>>()?;
    let key = info.iter().enumerate().filter(|(_, (_, place))| *place > 0);
    let key: Vec<usize> = key.map(|(n, _)| n).collect();
    let columns: Vec<String> = info.into_iter().map(|(name, _)| name).collect();
    let mut table = Table {
        columns,
        key,
        rows: BTreeMap::new(),
    };
    let sql = format!("SELECT {} FROM {name}", table.columns.join(", "));
    let mut select = connection.prepare(&sql)?;
    let width = table.columns.len();
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let row: Row = (0..width).map(|n| row.get(n)).collect::<Result<_, _>>()?;
        let id = format!("{:?}", table.key_of(&row));
        table.rows.insert(id, row);
    }
    Ok(table)
}
