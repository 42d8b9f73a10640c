//! Options of a PostgreSQL store: connections and timeouts.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use countersign::ledger::Binding;

/// Address of the database, and the limits and timeouts of the store.
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
    pub(super) identity_file: Option<PathBuf>,
}

impl PostgresOptions {
    /// Options for the database of this URL.
    ///
    /// `sslmode` may be `disable`, `prefer`, `require` or `verify-full`. Certificates are verified in each of
    /// the last three. If the URL does not set it, TLS is required, except on the loopback interface and on a
    /// Unix socket.
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
            identity_file: None,
        }
    }

    /// Sets a PEM file of certificates that the server's one is verified with instead of the public roots.
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.ca_file = Some(path.into());
        self
    }

    /// Sets the maximum number of connections; at least two more than [`Self::lanes`].
    pub fn connections_max(mut self, connections: usize) -> Self {
        self.connections_max = connections;
        self
    }

    /// Sets the number of transactions that commit calls concurrently. Each takes all the calls that wait.
    pub fn lanes(mut self, lanes: usize) -> Self {
        self.lanes = lanes.max(1);
        self
    }

    /// Sets the maximum number of calls in one transaction.
    pub fn batch_max(mut self, calls: usize) -> Self {
        self.batch_max = calls.max(1);
        self
    }

    /// Sets the maximum number of calls and records in each queue. Callers wait while it is full.
    pub fn queue_max(mut self, waiting: usize) -> Self {
        self.queue_max = waiting.max(1);
        self
    }

    /// Sets the timeout for connecting.
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// Sets the timeout for getting a free connection from the pool.
    pub fn acquire_timeout(mut self, limit: Duration) -> Self {
        self.acquire_timeout = limit;
        self
    }

    /// Sets the timeout for one statement.
    pub fn statement_timeout(mut self, limit: Duration) -> Self {
        self.statement_timeout = limit;
        self
    }

    /// Sets the timeout for a row lock that another transaction holds.
    pub fn lock_timeout(mut self, limit: Duration) -> Self {
        self.lock_timeout = limit;
        self
    }

    /// Sets the time limit for looking up the outcome of a commit whose answer was lost. After it the caller
    /// gets an error that says that the outcome is unknown.
    pub fn doubt_limit(mut self, limit: Duration) -> Self {
        self.doubt_limit = limit;
        self
    }

    /// Opens a database only if it belongs to these keys; a database that is not bound yet is bound to them.
    pub fn binding(mut self, binding: Binding) -> Self {
        self.binding = Some(binding);
        self
    }

    /// Keeps the identity of the server, and the latest timeline on which it was seen, in this file: after a restart too, no
    /// other server and no overtaken one is accepted. To move to another server, delete the file.
    pub fn identity_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.identity_file = Some(path.into());
        self
    }

    /// Accepts a server that may lose commits in a crash (`fsync` or `synchronous_commit` is off). For tests
    /// and trials: acknowledged calls may be lost.
    pub fn accept_lossy_server(mut self) -> Self {
        self.accepts_lossy_server = true;
        self
    }
}

/// Omits the URL, because it contains the password.
impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("ca_file", &self.ca_file)
            .field("connections_max", &self.connections_max)
            .field("lanes", &self.lanes)
            .field("batch_max", &self.batch_max)
            .field("queue_max", &self.queue_max)
            .field("connect_timeout", &self.connect_timeout)
            .field("acquire_timeout", &self.acquire_timeout)
            .field("statement_timeout", &self.statement_timeout)
            .field("lock_timeout", &self.lock_timeout)
            .field("doubt_limit", &self.doubt_limit)
            .field("accepts_lossy_server", &self.accepts_lossy_server)
            .field("binding", &self.binding)
            .field("identity_file", &self.identity_file)
            .finish_non_exhaustive()
    }
}
