//! Checks of the server's settings, and the migrations of its tables.

use countersign::ledger::Binding;
use deadpool_postgres::Client;
use tokio_postgres::error::SqlState;

use super::failure::{Failure, OpenError};
use super::installation::bind;
use super::options::PostgresOptions;
use crate::migrate::{Applied, Migration, pending};

/// Oldest supported major version of the server.
const MAJOR_MIN: i32 = 13;

/// Maximum attempts to create the migration table while others do the same.
const RACES_MAX: u32 = 10;

/// Migrations in their order; a released one is never changed.
pub(super) const MIGRATIONS: &[Migration] = &[
    Migration {
        number: 1,
        name: "ledger",
        sql: include_str!("../../migrations/postgres/0001_ledger.sql"),
    },
    Migration {
        number: 2,
        name: "pots",
        sql: include_str!("../../migrations/postgres/0002_pots.sql"),
    },
    Migration {
        number: 3,
        name: "paces",
        sql: include_str!("../../migrations/postgres/0003_paces.sql"),
    },
    Migration {
        number: 4,
        name: "texts",
        sql: include_str!("../../migrations/postgres/0004_texts.sql"),
    },
    Migration {
        number: 5,
        name: "outbox_order",
        sql: include_str!("../../migrations/postgres/0005_outbox_order.sql"),
    },
    Migration {
        number: 6,
        name: "open",
        sql: include_str!("../../migrations/postgres/0006_open.sql"),
    },
    Migration {
        number: 7,
        name: "installation",
        sql: include_str!("../../migrations/postgres/0007_installation.sql"),
    },
    Migration {
        number: 8,
        name: "key_id",
        sql: include_str!("../../migrations/postgres/0008_key_id.sql"),
    },
    Migration {
        number: 9,
        name: "time",
        sql: include_str!("../../migrations/postgres/0009_time.sql"),
    },
    Migration {
        number: 10,
        name: "facet",
        sql: include_str!("../../migrations/postgres/0010_facet.sql"),
    },
    Migration {
        number: 11,
        name: "notice",
        sql: include_str!("../../migrations/postgres/0011_notice.sql"),
    },
    Migration {
        number: 12,
        name: "leaf_code",
        sql: include_str!("../../migrations/postgres/0012_leaf_code.sql"),
    },
];

/// Refuses a server that cannot keep the store's promises.
pub(super) async fn check(client: &Client, options: &PostgresOptions) -> Result<(), OpenError> {
    // A database that only speaks the protocol of PostgreSQL may lack the last two settings, and
    // then cannot be switched to lossy commits either. The last one is that of the server, which each session overrides.
    const SETTINGS: &str = "SELECT current_setting('server_version_num'), \
         current_setting('server_encoding'), \
         coalesce(current_setting('fsync', true), 'on'), \
         coalesce((SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit'), 'on')";
    let row = client.query_one(SETTINGS, &[]).await;
    let row = row.map_err(Failure::from)?;
    let version: String = row.get(0);
    let found = version.parse().unwrap_or(0) / 10_000;
    if found < MAJOR_MIN {
        let needed = MAJOR_MIN;
        return Err(OpenError::TooOld { found, needed });
    }
    let encoding: String = row.get(1);
    if encoding != "UTF8" {
        return Err(OpenError::Encoding { found: encoding });
    }
    for (place, setting) in [(2, "fsync"), (3, "synchronous_commit")] {
        if row.get::<_, &str>(place) == "off" {
            if !options.accepts_lossy_server {
                return Err(OpenError::Lossy { setting });
            }
            tracing::warn!(
                setting,
                "PostgreSQL runs with this setting off and loses commits when it crashes"
            );
        }
    }
    Ok(())
}

/// Migrates the tables and binds them to their keys, in one transaction. Processes that start at the same time
/// wait for each other: if they have different keys, the first one wins.
pub(super) async fn migrate(
    client: &mut Client,
    binding: Option<&Binding>,
) -> Result<(), OpenError> {
    make_migration_table(client).await?;
    let transaction = client.transaction().await.map_err(Failure::from)?;
    // Reading the applied migrations and applying the rest is atomic: a second process finds them applied.
    let lock = "SET LOCAL lock_timeout = '60s'; SET LOCAL statement_timeout = 0; \
         LOCK TABLE schema_migration IN ACCESS EXCLUSIVE MODE";
    let locked = transaction.batch_execute(lock).await;
    locked.map_err(Failure::from)?;
    let query = "SELECT number, name, checksum FROM schema_migration ORDER BY number";
    let rows = transaction.query(query, &[]).await;
    let applied: Vec<Applied> = rows
        .map_err(Failure::from)?
        .iter()
        .map(|row| Applied {
            number: u32::try_from(row.get::<_, i32>(0)).unwrap_or(u32::MAX),
            name: row.get(1),
            checksum: row.get(2),
        })
        .collect();
    for migration in pending(MIGRATIONS, &applied)? {
        let done = transaction.batch_execute(migration.sql).await;
        done.map_err(Failure::from)?;
        let number = i32::try_from(migration.number).unwrap_or(i32::MAX);
        let checksum = migration.checksum();
        let noted = transaction
            .execute(
                "INSERT INTO schema_migration (number, name, checksum, applied_at) \
                 VALUES ($1, $2, $3, now())",
                &[&number, &migration.name, &checksum.as_slice()],
            )
            .await;
        noted.map_err(Failure::from)?;
        tracing::info!(
            number,
            name = migration.name,
            "the database schema was migrated"
        );
    }
    if let Some(binding) = binding {
        bind(&transaction, binding).await?;
    }
    transaction.commit().await.map_err(Failure::from)?;
    Ok(())
}

/// Creates the migration table. If two processes create it at the same moment, one of them fails despite `IF
/// NOT EXISTS`, and is retried.
async fn make_migration_table(client: &Client) -> Result<(), Failure> {
    const TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_migration (
        number integer NOT NULL, name text NOT NULL, checksum bytea NOT NULL,
        applied_at timestamptz NOT NULL, PRIMARY KEY (number))";
    for _ in 0..RACES_MAX {
        match client.batch_execute(TABLE).await {
            Ok(()) => return Ok(()),
            Err(error) if is_race(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Failure::Contended {
        what: "the table of migrations",
        tries: RACES_MAX,
    })
}

fn is_race(error: &tokio_postgres::Error) -> bool {
    let races = [
        SqlState::UNIQUE_VIOLATION,
        SqlState::DUPLICATE_TABLE,
        SqlState::DUPLICATE_OBJECT,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
    ];
    error.code().is_some_and(|code| races.contains(code))
}
