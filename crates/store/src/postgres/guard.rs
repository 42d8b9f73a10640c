//! The guard: a server that may lose commits, or that is another one than before, is not written to.
//!
//! Settings can change while the server runs, and a connection that is made again may lead to another server: an old
//! primary that was overtaken, or a copy. So every new connection is looked at, and the open ones from time to time.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::failure::{Failure, OpenError};
use super::options::PostgresOptions;
use super::unsigned;

/// Guard of one store. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Guard(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// The server of this store, and the latest timeline on which it was seen.
    server: Mutex<Option<Server>>,
    unfit: Mutex<Option<Unfit>>,
    accepts_lossy_server: bool,
    /// File that keeps the server beyond this process.
    file: Option<PathBuf>,
    /// Number of standbys that are not waited for, at the last look.
    standbys: AtomicU64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Server {
    system: i64,
    /// `None` for a standby.
    timeline: Option<i64>,
}

/// Reasons not to write to a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// A crash may lose or damage what was committed.
    /// Usually an operator has turned the setting off to make the server faster.
    #[error(
        "the server runs with {setting} = off and may lose commits when it crashes; turn it on"
    )]
    Lossy {
        /// Name of the setting.
        setting: &'static str,
    },
    /// The server is another one. Usually the address leads to a copy.
    #[error("the server is another one than before (system {found}, before {known})")]
    OtherServer {
        /// Its system identifier.
        found: i64,
        /// The system identifier at the first connection.
        known: i64,
    },
    /// The server is behind. Usually it is an old primary that was overtaken by a standby.
    #[error("the server is on timeline {found}, and {known} was seen before: it was overtaken")]
    Overtaken {
        /// Its timeline.
        found: i64,
        /// The latest timeline that was seen.
        known: i64,
    },
}

/// The settings that cannot be set for a session. A database that only speaks the protocol of PostgreSQL may lack them,
/// and then cannot be switched to lossy commits either.
const SETTINGS: &str = "SELECT coalesce(current_setting('fsync', true), 'on') = 'off', \
     coalesce(current_setting('full_page_writes', true), 'on') = 'off'";

/// The server's identity. The timeline is that of the file that is written now: the control file follows later.
const IDENTITY: &str = "SELECT s.system_identifier::bigint, CASE WHEN pg_is_in_recovery() THEN NULL \
       ELSE ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint END \
     FROM pg_control_system() s";

/// Standbys that follow without being waited for. None are seen if the role may not see them.
const ASYNCHRONOUS: &str = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'async'";

impl Guard {
    /// The guard of a store with these options. It begins with the server that the last run has seen.
    pub(super) fn of(options: &PostgresOptions) -> Result<Self, OpenError> {
        let file = options.identity_file.clone();
        let server = match &file {
            Some(path) => Server::read(path).map_err(|source| OpenError::Identity {
                path: path.clone(),
                source,
            })?,
            None => None,
        };
        Ok(Self(Arc::new(Inner {
            server: Mutex::new(server),
            unfit: Mutex::default(),
            accepts_lossy_server: options.accepts_lossy_server,
            file,
            standbys: AtomicU64::new(0),
        })))
    }

    /// Looks for standbys that follow without being waited for, and warns when there are some for the first time.
    pub(super) async fn look_for_standbys(&self, client: &Client) {
        let counted = client.query_one(ASYNCHRONOUS, &[]).await;
        let standbys = counted.map_or(0, |row| unsigned(row.get(0)));
        let before = self.0.standbys.swap(standbys, Ordering::Relaxed);
        if standbys > 0 && before == 0 {
            tracing::warn!(
                standbys,
                "standbys follow asynchronously: a failover to one may lose answered calls; name them in synchronous_standby_names"
            );
        }
    }

    /// Number of standbys that are not waited for, at the last look.
    pub(super) fn asynchronous_standbys(&self) -> u64 {
        self.0.standbys.load(Ordering::Relaxed)
    }

    /// True if the last look found a reason not to write. Connections are then made anew, and looked at.
    pub(super) fn is_broken(&self) -> bool {
        self.unfit().is_some()
    }

    /// Returns the reason not to write that the last look found.
    pub(super) fn unfit(&self) -> Option<Unfit> {
        self.reason().clone()
    }

    fn reason(&self) -> MutexGuard<'_, Option<Unfit>> {
        self.0.unfit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the server behind a connection.
    pub(super) async fn check(&self, client: &Client) -> Result<(), Failure> {
        let looked = self.look(client).await;
        match &looked {
            Ok(()) => *self.reason() = None,
            Err(Failure::Unfit(unfit)) => *self.reason() = Some(unfit.clone()),
            // A server that does not answer says nothing about its settings.
            Err(_) => {}
        }
        looked
    }

    async fn look(&self, client: &Client) -> Result<(), Failure> {
        let row = client.query_one(SETTINGS, &[]).await?;
        for (place, setting) in [(0, "fsync"), (1, "full_page_writes")] {
            if row.get(place) && !self.0.accepts_lossy_server {
                return Err(Unfit::Lossy { setting }.into());
            }
        }
        let row = match client.query_one(IDENTITY, &[]).await {
            Ok(row) => row,
            Err(error) if is_unknown(&error) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let found = Server {
            system: row.get(0),
            timeline: row.get(1),
        };
        Ok(self.compare(found)?)
    }

    fn compare(&self, found: Server) -> Result<(), Unfit> {
        let mut known = self.0.server.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(before) = *known else {
            *known = Some(found);
            self.keep(found);
            return Ok(());
        };
        if found.system != before.system {
            return Err(Unfit::OtherServer {
                found: found.system,
                known: before.system,
            });
        }
        if let (Some(found), Some(known)) = (found.timeline, before.timeline)
            && found < known
        {
            return Err(Unfit::Overtaken { found, known });
        }
        let latest = Server {
            timeline: found.timeline.max(before.timeline),
            ..found
        };
        if latest != before {
            *known = Some(latest);
            self.keep(latest);
        }
        Ok(())
    }

    /// Writes the server to the file. A disk that is full must not keep a server from reading.
    fn keep(&self, server: Server) {
        let Some(path) = &self.0.file else { return };
        if let Err(error) = server.write(path) {
            let path = path.display();
            tracing::warn!(%error, %path, "the identity of the database server could not be kept");
        }
    }
}

impl Server {
    /// Reads the server of an earlier run; `None` if there was none.
    fn read(path: &Path) -> io::Result<Option<Self>> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        let mut words = text.split_whitespace();
        let system = words.next().and_then(|word| word.parse().ok());
        let timeline = words.next().and_then(|word| word.parse().ok());
        let server = system.map(|system| Self { system, timeline });
        server
            .map(Some)
            .ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Replaces the file, durably.
    fn write(self, path: &Path) -> io::Result<()> {
        let new = path.with_extension("new");
        let mut file = fs::File::create(&new)?;
        let timeline = self
            .timeline
            .map_or_else(|| "-".to_owned(), |it| it.to_string());
        writeln!(file, "{} {timeline}", self.system)?;
        file.sync_all()?;
        fs::rename(&new, path)
    }
}

/// True if this server does not say who it is.
fn is_unknown(error: &tokio_postgres::Error) -> bool {
    let unknown = [
        SqlState::UNDEFINED_FUNCTION,
        SqlState::INSUFFICIENT_PRIVILEGE,
        SqlState::FEATURE_NOT_SUPPORTED,
    ];
    error.code().is_some_and(|code| unknown.contains(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_server_and_an_overtaken_one_are_refused() {
        let server = |system, timeline| Server { system, timeline };
        let guard = Guard::of(&PostgresOptions::new("")).unwrap();
        for (found, expected) in [
            (server(7, Some(1)), Ok(())),
            (server(7, None), Ok(())),
            (server(7, Some(3)), Ok(())),
            (
                server(7, Some(2)),
                Err(Unfit::Overtaken { found: 2, known: 3 }),
            ),
            (
                server(8, Some(9)),
                Err(Unfit::OtherServer { found: 8, known: 7 }),
            ),
            (server(7, Some(3)), Ok(())),
        ] {
            assert_eq!(guard.compare(found), expected, "{found:?}");
        }
    }

    /// A17: an old primary is not taken for a first server after a restart.
    #[test]
    fn the_server_is_known_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("postgres.server");
        let open = || Guard::of(&PostgresOptions::new("").identity_file(&file));
        let server = |system, timeline| Server { system, timeline };
        assert_eq!(open().unwrap().compare(server(7, Some(3))), Ok(()));
        let overtaken = Unfit::Overtaken { found: 2, known: 3 };
        assert_eq!(open().unwrap().compare(server(7, Some(2))), Err(overtaken));
        let other = Unfit::OtherServer { found: 8, known: 7 };
        assert_eq!(open().unwrap().compare(server(8, Some(9))), Err(other));
        assert_eq!(open().unwrap().compare(server(7, Some(4))), Ok(()));
        let overtaken = Unfit::Overtaken { found: 3, known: 4 };
        assert_eq!(open().unwrap().compare(server(7, Some(3))), Err(overtaken));
        fs::write(&file, "what is this").unwrap();
        assert!(matches!(open(), Err(OpenError::Identity { .. })));
    }
}
