//! The guard: a server that may lose commits, or that is another one than before, is not written to.
//!
//! Settings can change while the server runs, and a connection that is made again may lead to another server: an old
//! primary that was overtaken, or a copy. So every new connection is looked at, and the open ones from time to time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::failure::Failure;

/// Guard of one store. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Guard(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// The server of this store, and the latest timeline on which it was seen.
    server: Mutex<Option<Server>>,
    unfit: Mutex<Option<Unfit>>,
    accepts_lossy_server: bool,
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
    #[error(
        "PostgreSQL is an old primary: its timeline is {found}, but {known} was seen before. Connect to the current primary"
    )]
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

impl Guard {
    pub(super) fn new(accepts_lossy_server: bool) -> Self {
        Self(Arc::new(Inner {
            server: Mutex::default(),
            unfit: Mutex::default(),
            accepts_lossy_server,
        }))
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
        *known = Some(Server {
            timeline: found.timeline.max(before.timeline),
            ..found
        });
        Ok(())
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
        let guard = Guard::new(false);
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
}
