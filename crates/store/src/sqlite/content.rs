//! Digest of everything in a file. A backup carries one, and a restore compares it: the signed log covers its records, and nothing but
//! this digest covers the rest (claims, documents, keys, budgets).

use std::io::Write as _;

use countersign_contract::Digest;
use countersign_contract::digest::Digester;
use rusqlite::Connection;
use rusqlite::types::ValueRef;

/// Removes the digest of an earlier backup from a file.
pub(super) fn remove(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch("DROP TABLE IF EXISTS backup_digest")
}

/// Writes the digest of everything else in the file into it.
pub(super) fn write(connection: &Connection) -> rusqlite::Result<()> {
    remove(connection)?;
    let digest = digest(connection)?;
    connection.execute_batch("CREATE TABLE backup_digest (sha256 BLOB NOT NULL) STRICT")?;
    let insert = "INSERT INTO backup_digest VALUES (?1)";
    connection.execute(insert, [digest.as_bytes().as_slice()])?;
    Ok(())
}

/// True if the file is as it was when its digest was written. A file without one was not made by a backup, or was opened by a server since.
pub(super) fn fits(connection: &Connection) -> rusqlite::Result<bool> {
    let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let carried = count("SELECT count(*) FROM sqlite_schema WHERE name = 'backup_digest'")?;
    if carried == 0 || count("SELECT coalesce(max(is_copy), 0) FROM installation")? == 0 {
        return Ok(true);
    }
    let read = "SELECT sha256 FROM backup_digest";
    let carried: Vec<u8> = connection.query_row(read, [], |row| row.get(0))?;
    Ok(carried == digest(connection)?.as_bytes())
}

/// Digests every row of every table, in the order of the file. A virtual table is covered by the tables that it is kept in.
fn digest(connection: &Connection) -> rusqlite::Result<Digest> {
    let mut digester = Digester::default();
    let tables = "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name <> 'backup_digest' \
                  AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name";
    let mut tables = connection.prepare(tables)?;
    let tables = tables.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    for table in tables {
        let (name, sql): (String, String) = table?;
        put(&mut digester, 5, name.as_bytes());
        put(&mut digester, 5, sql.as_bytes());
        let name = name.replace('"', "\"\"");
        let mut rows = connection.prepare(&format!("SELECT * FROM \"{name}\" NOT INDEXED"))?;
        let columns = rows.column_count();
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            for column in 0..columns {
                match row.get_ref(column)? {
                    ValueRef::Null => put(&mut digester, 0, &[]),
                    ValueRef::Integer(value) => put(&mut digester, 1, &value.to_le_bytes()),
                    ValueRef::Real(value) => put(&mut digester, 2, &value.to_le_bytes()),
                    ValueRef::Text(text) => put(&mut digester, 3, text),
                    ValueRef::Blob(bytes) => put(&mut digester, 4, bytes),
                }
            }
        }
    }
    Ok(digester.finish())
}

/// Adds a value with its kind and its length, so that no other values give the same bytes.
fn put(digester: &mut Digester, kind: u8, bytes: &[u8]) {
    let length = (bytes.len() as u64).to_le_bytes();
    for part in [&[kind][..], &length[..], bytes] {
        // A digester takes every write.
        digester.write_all(part).ok();
    }
}
