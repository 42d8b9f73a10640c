//! How a PostgreSQL store connects, and for how long it waits for what.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use countersign::ledger::Binding;

/// Where the database is, and the limits of the store's patience.
///
/// # Example
///
/// ```
/// use countersign_store::postgres::PostgresOptions;
///
/// let options = PostgresOptions::new("postgres://app@db.example.com/countersign")
///     .ca_file("/etc/ssl/database-ca.pem")
///     .connections_max(32);
/// ```
#[derive(Clone)]
pub struct PostgresOptions {
    pub(super) url: String,
    pub(super) ca_file: Option<PathBuf>,
    pub(super) connections_max: usize,
    pub(super) lanes: usize,
    pub(super) batch_max: usize,
    pub(super) queue_max: usize,
    pub(super) connect_timeout: Duration,
    pub(super) acquire_timeout: Duration,
    pub(super) statement_timeout: Duration,
    pub(super) lock_timeout: Duration,
    pub(super) doubt_limit: Duration,
    pub(super) accepts_lossy_server: bool,
    pub(super) binding: Option<Binding>,
}

impl PostgresOptions {
    /// The database of this URL.
    ///
    /// `sslmode` may be `disable`, `prefer`, `require` or `verify-full`. A certificate is verified in each
    /// of the last three. Where the URL does not say, TLS is required, but not on the loopback
    /// interface or a Unix socket.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            ca_file: None,
            connections_max: 16,
            lanes: 2,
            batch_max: 128,
            queue_max: 4_096,
            connect_timeout: Duration::from_secs(5),
            acquire_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(10),
            lock_timeout: Duration::from_secs(2),
            doubt_limit: Duration::from_secs(20),
            accepts_lossy_server: false,
            binding: None,
        }
    }

    /// Certificates, as PEM, that the server's one is verified with instead of the public roots.
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.ca_file = Some(path.into());
        self
    }

    /// How many connections there may be; at least two more than [`Self::lanes`].
    pub fn connections_max(mut self, connections: usize) -> Self {
        self.connections_max = connections;
        self
    }

    /// How many transactions commit calls at the same time. Each takes all the calls that wait.
    pub fn lanes(mut self, lanes: usize) -> Self {
        self.lanes = lanes.max(1);
        self
    }

    /// How many calls one transaction may commit.
    pub fn batch_max(mut self, calls: usize) -> Self {
        self.batch_max = calls.max(1);
        self
    }

    /// How many calls and records may wait before their callers do.
    pub fn queue_max(mut self, waiting: usize) -> Self {
        self.queue_max = waiting.max(1);
        self
    }

    /// For how long connecting may take.
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// For how long a free connection is waited for.
    pub fn acquire_timeout(mut self, limit: Duration) -> Self {
        self.acquire_timeout = limit;
        self
    }

    /// For how long a statement may run.
    pub fn statement_timeout(mut self, limit: Duration) -> Self {
        self.statement_timeout = limit;
        self
    }

    /// For how long a statement may wait for a row that somebody else holds.
    pub fn lock_timeout(mut self, limit: Duration) -> Self {
        self.lock_timeout = limit;
        self
    }

    /// For how long the answer of a commit that was lost is looked for before the caller is told that
    /// it is not known.
    pub fn doubt_limit(mut self, limit: Duration) -> Self {
        self.doubt_limit = limit;
        self
    }

    /// Opens a database only if it belongs to these keys; one that belongs to none yet is bound to them.
    pub fn binding(mut self, binding: Binding) -> Self {
        self.binding = Some(binding);
        self
    }

    /// Takes a server that forgets commits when it crashes (`fsync` or `synchronous_commit` is off). For
    /// tests and trials: what was answered may be gone.
    pub fn accept_lossy_server(mut self) -> Self {
        self.accepts_lossy_server = true;
        self
    }
}

/// Without the URL: it has the password in it.
impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("connections_max", &self.connections_max)
            .field("lanes", &self.lanes)
            .field("batch_max", &self.batch_max)
            .field("binding", &self.binding)
            .finish_non_exhaustive()
    }
}
