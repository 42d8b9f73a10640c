//! Brings a database file to the schema of this program.

use countersign::ledger::Binding;
use rusqlite::{Connection, TransactionBehavior, params};

use super::installation::bind;
use super::open::OpenError;
use crate::migrate::{Applied, Migration, MigrationError, pending};

/// All migrations, in their order.
pub(super) const MIGRATIONS: &[Migration] = &[
    Migration {
        number: 1,
        name: "store",
        sql: include_str!("../../migrations/sqlite/0001_store.sql"),
    },
    Migration {
        number: 2,
        name: "pots",
        sql: include_str!("../../migrations/sqlite/0002_pots.sql"),
    },
    Migration {
        number: 3,
        name: "texts",
        sql: include_str!("../../migrations/sqlite/0003_texts.sql"),
    },
    Migration {
        number: 4,
        name: "open",
        sql: include_str!("../../migrations/sqlite/0004_open.sql"),
    },
    Migration {
        number: 5,
        name: "installation",
        sql: include_str!("../../migrations/sqlite/0005_installation.sql"),
    },
    Migration {
        number: 6,
        name: "key_id",
        sql: include_str!("../../migrations/sqlite/0006_key_id.sql"),
    },
    Migration {
        number: 7,
        name: "time",
        sql: include_str!("../../migrations/sqlite/0007_time.sql"),
    },
    Migration {
        number: 8,
        name: "facet",
        sql: include_str!("../../migrations/sqlite/0008_facet.sql"),
    },
    Migration {
        number: 9,
        name: "notice",
        sql: include_str!("../../migrations/sqlite/0009_notice.sql"),
    },
    Migration {
        number: 10,
        name: "chosen",
        sql: include_str!("../../migrations/sqlite/0010_chosen.sql"),
    },
    Migration {
        number: 11,
        name: "leaf_code",
        sql: include_str!("../../migrations/sqlite/0011_leaf_code.sql"),
    },
];

/// Applies the missing migrations and binds the file to its keys, in one transaction: a file of another
/// installation stays unchanged.
pub(super) fn migrate(
    connection: &mut Connection,
    known: &[Migration],
    binding: Option<&Binding>,
) -> Result<(), OpenError> {
    let version: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let newest = known.last().map_or(0, |migration| migration.number);
    if version > newest {
        let error = MigrationError::Newer {
            found: version,
            known: newest,
        };
        return Err(error.into());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(
        "CREATE TABLE IF NOT EXISTS migration (
            number INTEGER PRIMARY KEY,
            name TEXT NOT NULL,
            checksum BLOB NOT NULL
        ) STRICT",
    )?;
    for migration in pending(known, &applied(&transaction)?)? {
        transaction.execute_batch(migration.sql)?;
        transaction.execute(
            "INSERT INTO migration VALUES (?1, ?2, ?3)",
            params![migration.number, migration.name, migration.checksum()],
        )?;
        transaction.pragma_update(None, "user_version", migration.number)?;
    }
    if let Some(binding) = binding {
        bind(&transaction, binding)?;
    }
    Ok(transaction.commit()?)
}

fn applied(connection: &Connection) -> rusqlite::Result<Vec<Applied>> {
    let mut statement =
        connection.prepare("SELECT number, name, checksum FROM migration ORDER BY number")?;
    let rows = statement.query_map([], |row| {
        Ok(Applied {
            number: row.get(0)?,
            name: row.get(1)?,
            checksum: row.get(2)?,
        })
    })?;
    rows.collect()
}
