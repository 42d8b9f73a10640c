//! The store of a command: its name, and how it is opened.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use countersign::ledger::{self, Binding, MemoryStore, NotOurs, Store};
use countersign_config::sections;
use countersign_store::postgres::{self, PostgresStore};
use countersign_store::sqlite::{OpenError, PreviousRun, SqliteOptions, SqliteStore};

use crate::config::parts;
use crate::failure::Failure;

/// A store, with its whole address.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum StoreName {
    Memory,
    Sqlite(PathBuf),
    /// The whole address; it may hold a password.
    Postgres(String),
}

/// A store that is open. Clones share it.
#[derive(Clone)]
pub(crate) enum Backend {
    Memory(Arc<MemoryStore>),
    Sqlite(Arc<SqliteStore>),
    Postgres(Arc<PostgresStore>),
}

/// Timeout for a file of the store that another command has.
const FILE_WAIT: Duration = Duration::from_secs(10);

/// Poll interval while a command waits for the file.
const FILE_LOOK: Duration = Duration::from_millis(20);

impl FromStr for StoreName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "memory" {
            return Ok(Self::Memory);
        }
        if let Some(path) = text.strip_prefix("sqlite:").filter(|path| !path.is_empty()) {
            return Ok(Self::Sqlite(path.into()));
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(text.to_owned()));
        }
        Err("expected sqlite:PATH, postgres://USER@HOST/DATABASE or memory".to_owned())
    }
}

/// The name, without the password of an address.
impl std::fmt::Display for StoreName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(address) => {
                // Everything before the last `@` may be a user and a password; the options may hold one.
                let plain = address.split('?').next().unwrap_or_default();
                let host = plain.rsplit_once('@').map_or_else(
                    || plain.split_once("://").map_or("", |(_, host)| host),
                    |(_, host)| host,
                );
                write!(f, "postgres://{host}")
            }
        }
    }
}

impl std::fmt::Debug for StoreName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StoreName({self})")
    }
}

impl Backend {
    /// The store, if it belongs to these keys.
    pub(crate) async fn open(
        name: &StoreName,
        binding: Binding,
        options: &sections::Store,
        identity_file: Option<PathBuf>,
    ) -> Result<Self, Failure> {
        match name {
            StoreName::Memory => Ok(Self::Memory(Arc::new(MemoryStore::new().keeping_log()))),
            StoreName::Sqlite(path) => Ok(Self::Sqlite(Arc::new(
                open_file(path, parts::sqlite_options(&options.sqlite, binding)).await?,
            ))),
            StoreName::Postgres(address) => {
                let mut options =
                    parts::postgres_options(&options.postgres, address).binding(binding);
                if let Some(file) = identity_file {
                    options = options.identity_file(file);
                }
                let store = PostgresStore::open(options).await;
                let store = store.map_err(|error| {
                    let hint = postgres_hint(&error);
                    not_opened(error, name, hint)
                })?;
                Ok(Self::Postgres(Arc::new(store)))
            }
        }
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Memory(store) => store.clone(),
            Self::Sqlite(store) => store.clone(),
            Self::Postgres(store) => store.clone(),
        }
    }

    /// True if no other process can be using the store now.
    pub(crate) fn is_alone(&self) -> bool {
        match self {
            Self::Memory(_) | Self::Sqlite(_) => true,
            Self::Postgres(_) => false,
        }
    }

    /// True if the previous run did not end in order, such as after a crash.
    pub(crate) fn was_lost(&self) -> bool {
        match self {
            Self::Memory(_) | Self::Postgres(_) => false,
            Self::Sqlite(store) => matches!(store.previous_run(), PreviousRun::Lost { .. }),
        }
    }

    /// Notes that the log has the record of a run that was lost.
    pub(crate) async fn lost_run_recorded(&self) -> Result<(), ledger::Error> {
        match self {
            Self::Sqlite(store) if self.was_lost() => store.lost_run_recorded().await,
            Self::Memory(_) | Self::Sqlite(_) | Self::Postgres(_) => Ok(()),
        }
    }

    /// Describes the state of the store, one entry per fact: its name, true if it is in order, and the finding.
    pub(crate) fn particulars(&self) -> Vec<(&'static str, bool, String)> {
        match self {
            Self::Memory(_) => Vec::new(),
            Self::Postgres(store) => match store.asynchronous_standbys() {
                0 => Vec::new(),
                count => {
                    let found = format!(
                        "{count} follow asynchronously; a failover to one may lose answered calls: name them in synchronous_standby_names"
                    );
                    vec![("standbys", false, found)]
                }
            },
            Self::Sqlite(store) => {
                let ended = match store.previous_run() {
                    PreviousRun::None => (true, "there was none".to_owned()),
                    PreviousRun::Closed => (true, "ended in order".to_owned()),
                    PreviousRun::Lost { started_at } => {
                        let found = format!(
                            "did not end in order (began {started_at}); records of plain reads may be missing"
                        );
                        (false, found)
                    }
                };
                vec![("run before", ended.0, ended.1)]
            }
        }
    }

    /// Looks at every page of the file, where there is one.
    pub(crate) async fn check(&self) -> Result<(), ledger::Error> {
        match self {
            Self::Memory(_) | Self::Postgres(_) => Ok(()),
            Self::Sqlite(store) => store.check().await,
        }
    }
}

/// Commands that are started together take turns: a file has one owner at a time.
async fn open_file(path: &Path, options: SqliteOptions) -> Result<SqliteStore, Failure> {
    let begun = Instant::now();
    loop {
        match SqliteStore::open(path, options.clone()) {
            Err(OpenError::InUse { .. }) if begun.elapsed() < FILE_WAIT => {
                tokio::time::sleep(FILE_LOOK).await;
            }
            opened => {
                return opened.map_err(|error| {
                    let OpenError::Installation(refused) = &error else {
                        return error.into();
                    };
                    let hint = Some(keys_hint(refused));
                    not_opened(error, &StoreName::Sqlite(path.to_owned()), hint)
                });
            }
        }
    }
}

fn not_opened(
    error: impl std::error::Error + Send + Sync + 'static,
    name: &StoreName,
    hint: Option<&'static str>,
) -> Failure {
    let error = anyhow::Error::new(error).context(format!("cannot use {name}"));
    let failure = Failure::from(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Returns the hint for an operator whose database cannot be used: the setting to look at, and what to check.
fn postgres_hint(error: &postgres::OpenError) -> Option<&'static str> {
    match error {
        postgres::OpenError::Installation(refused) => Some(keys_hint(refused)),
        postgres::OpenError::Database(postgres::Failure::Unfit(
            postgres::Unfit::OtherServer { .. } | postgres::Unfit::Overtaken { .. },
        )) => Some(
            "stop the server that was overtaken; if you have moved to this one on purpose, delete the file `postgres.server` in the data folder",
        ),
        postgres::OpenError::Database(_) => Some(
            "check that PostgreSQL runs and answers at this address (`pg_isready -h HOST -p PORT`), and that the user, password and database of store.url (--store, COUNTERSIGN_STORE) are right",
        ),
        postgres::OpenError::Url(_) => Some(
            "correct store.url (--store, COUNTERSIGN_STORE): postgres://USER:PASSWORD@HOST:PORT/DATABASE, with other characters of the password percent-encoded",
        ),
        postgres::OpenError::Certificates { .. } | postgres::OpenError::Tls(_) => {
            Some("correct store.postgres.ca_file: a PEM file with the certificates that you trust")
        }
        postgres::OpenError::Connections { .. } => Some("raise store.postgres.connections_max"),
        postgres::OpenError::TooOld { .. }
        | postgres::OpenError::Pooled
        | postgres::OpenError::Identity { .. }
        | postgres::OpenError::Encoding { .. }
        | postgres::OpenError::Lossy { .. } => {
            Some("change the server or its database, or name another one with store.url")
        }
        postgres::OpenError::Migration(_) => None,
    }
}

/// The log that a store belongs to, where that is why it was not opened.
pub(crate) fn bound_log(failure: &Failure) -> Option<&str> {
    let of_sqlite = failure.error.downcast_ref::<OpenError>();
    let of_postgres = failure.error.downcast_ref::<postgres::OpenError>();
    let ((Some(OpenError::Installation(refused)), _)
    | (_, Some(postgres::OpenError::Installation(refused)))) = (of_sqlite, of_postgres)
    else {
        return None;
    };
    match refused {
        NotOurs::OtherLog { bound, .. } => Some(bound),
        NotOurs::OtherMaster { .. }
        | NotOurs::NotSigned { .. }
        | NotOurs::NotWrapped { .. }
        | NotOurs::Copy => None,
    }
}

/// Returns the hint for an operator whose keys are not those of the store.
pub(crate) fn keys_hint(refused: &NotOurs) -> &'static str {
    match refused {
        NotOurs::OtherMaster { .. }
        | NotOurs::OtherLog { .. }
        | NotOurs::NotSigned { .. }
        | NotOurs::NotWrapped { .. } => {
            "copy master.key and log.key from the data folder that made this store into yours, or use another store; nothing was written"
        }
        NotOurs::Copy => {
            "`countersign store restore` puts it in its place, and says what would be lost; nothing was written"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_shown_without_its_password() {
        let check = |text: &str, shown: &str| {
            assert_eq!(text.parse::<StoreName>().unwrap().to_string(), shown);
        };
        check("memory", "memory");
        check("sqlite:a/b.db", "sqlite:a/b.db");
        check(
            "postgres://u:s3cret@db:5432/x?password=s",
            "postgres://db:5432/x",
        );
        check("postgresql://u:p%40@q@db/x", "postgres://db/x");
        check("postgres://db/x", "postgres://db/x");
        for text in ["", "sqlite:", "mysql://x", "countersign.db"] {
            assert!(text.parse::<StoreName>().is_err(), "{text}");
        }
    }
}
