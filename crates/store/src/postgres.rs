//! The PostgreSQL store: for any number of processes that share one database.
//!
//! Every rule of [`countersign::ledger`] is kept by the statements themselves, at READ COMMITTED and by the
//! database's own clock, so it does not matter how many processes there are or what their clocks say. Commits
//! of calls go through a few lanes: each lane takes all the calls that wait and commits them in one
//! transaction. A call whose answer is lost with its connection is looked up by its record, which is the first
//! row that its transaction writes.
//!
//! Read the modules in this order: `commit` is the heart.

mod appender;
mod claims;
mod commit;
mod connect;
mod documents;
mod dump;
mod failure;
mod guard;
mod health;
mod held;
mod import;
mod installation;
mod keyring;
mod lent;
mod log;
mod options;
mod outbox;
mod paces;
mod pots;
mod records;
mod schema;
mod texts;
mod timekeeping;
mod vitals;

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use deadpool_postgres::{Client, Pool};
use tokio::sync::Mutex;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use appender::Appender;
use commit::{Lanes, Shared};
use connect::limited;
use guard::Guard;
use health::Health;
use keyring::LostKeys;
use log::sequence::Edge;

use crate::leaves::Leaves;

pub use dump::Dump;
pub use failure::{Failure, OpenError};
pub use guard::Unfit;
pub use options::PostgresOptions;

/// A store in a PostgreSQL database. Cloning it shares connections and queues.
#[derive(Clone)]
pub struct PostgresStore {
    inner: Arc<Inner>,
}

struct Inner {
    pool: Pool,
    options: PostgresOptions,
    guard: Guard,
    lanes: Lanes,
    lost_keys: LostKeys,
    leaves: Leaves,
    health: Health,
    appender: Appender,
    /// The right edge of the tree as this process left it; one integration at a time.
    edge: Mutex<Option<Edge>>,
    /// A name that no other process has, and a counter: together they identify one claim attempt.
    name: String,
    claimings: AtomicU64,
}

/// Parameters of a statement.
type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

impl PostgresStore {
    /// Connects, checks the server, brings the tables up to date and starts the lanes on the current
    /// runtime.
    pub async fn open(options: PostgresOptions) -> Result<Self, OpenError> {
        let guard = Guard::of(&options)?;
        let pool = connect::pool(&options, &guard)?;
        let client = pool.get().await;
        let mut client = client.map_err(|error| match guard.unfit() {
            Some(Unfit::Lossy { setting }) => OpenError::Lossy { setting },
            Some(unfit) => OpenError::from(Failure::from(unfit)),
            None => OpenError::from(Failure::from(error)),
        })?;
        let other = pool.get().await.map_err(Failure::from)?;
        if connect::share_session(&client, &other).await? {
            return Err(OpenError::Pooled);
        }
        drop(other);
        schema::check(&client, &options).await?;
        guard.look_for_standbys(&client).await;
        schema::migrate(&mut client, options.binding.as_ref()).await?;
        drop(client);
        let lost_keys = LostKeys::default();
        let leaves = Leaves::default();
        let health = Health::default();
        let shared = Shared {
            guard: guard.clone(),
            leaves: leaves.clone(),
            health: health.clone(),
        };
        let lanes = Lanes::start(&pool, &options, &lost_keys, shared);
        let appender = Appender::start(lanes.clone(), &options);
        let name = format!("{:016x}", RandomState::new().hash_one("claiming"));
        Ok(Self {
            inner: Arc::new(Inner {
                pool,
                options,
                guard,
                lanes,
                lost_keys,
                leaves,
                health,
                appender,
                edge: Mutex::new(None),
                name,
                claimings: AtomicU64::new(0),
            }),
        })
    }

    /// Returns a unique token for one claim attempt.
    fn claiming(&self) -> String {
        let number = self.inner.claimings.fetch_add(1, Ordering::Relaxed);
        format!("{}-{number}", self.inner.name)
    }

    /// Number of standbys that follow without being waited for: a failover to one may lose answered calls.
    pub fn asynchronous_standbys(&self) -> u64 {
        self.inner.guard.asynchronous_standbys()
    }

    async fn client(&self) -> Result<Client, Failure> {
        Ok(self.inner.pool.get().await?)
    }

    /// Runs a statement that changes nothing. If the connection breaks, it is tried once more on a new one.
    async fn read(&self, sql: &str, params: Params<'_>) -> Result<Vec<Row>, Failure> {
        self.read_with(Planning::Kept, sql, params).await
    }

    /// Same as [`Self::read`], for a statement whose best plan depends on its values: on how many there are in a list, or on
    /// how rare one is. The server would keep one plan for all values after the fifth time.
    async fn read_anew(&self, sql: &str, params: Params<'_>) -> Result<Vec<Row>, Failure> {
        self.read_with(Planning::Anew, sql, params).await
    }

    async fn read_with(
        &self,
        planning: Planning,
        sql: &str,
        params: Params<'_>,
    ) -> Result<Vec<Row>, Failure> {
        match self.run_with(planning, sql, params).await {
            Err(failure) if failure.is_lost() => {
                self.forget_idle();
                self.run_with(planning, sql, params).await
            }
            answered => answered,
        }
    }

    /// Runs one statement, once; it is a transaction of its own.
    async fn run(&self, sql: &str, params: Params<'_>) -> Result<Vec<Row>, Failure> {
        self.run_with(Planning::Kept, sql, params).await
    }

    async fn run_with(
        &self,
        planning: Planning,
        sql: &str,
        params: Params<'_>,
    ) -> Result<Vec<Row>, Failure> {
        let client = self.client().await?;
        let answered = limited(self.patience(), async {
            let statement = match planning {
                Planning::Kept => client.prepare_cached(sql).await?,
                Planning::Anew => client.prepare(sql).await?,
            };
            client.query(&statement, params).await
        })
        .await;
        if matches!(answered, Err(Failure::Silent { .. })) {
            drop(deadpool_postgres::Object::take(client));
        }
        answered
    }

    /// Time limit for an answer of the server. The server ends a statement before it, so a server that is
    /// silent for longer is gone.
    fn patience(&self) -> Duration {
        patience(&self.inner.options)
    }

    /// Drops all idle connections: a server that went away took every connection with it, also those that have
    /// not noticed.
    fn forget_idle(&self) {
        self.inner.pool.retain(|_, _| false);
    }
}

/// The time for which the server keeps the plan of a statement.
#[derive(Clone, Copy)]
enum Planning {
    /// The plan is kept with the connection.
    Kept,
    /// Each run is planned for its values.
    Anew,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = self.inner.pool.status();
        write!(f, "PostgresStore({} connections)", status.size)
    }
}

fn patience(options: &PostgresOptions) -> Duration {
    options.statement_timeout + Duration::from_secs(2)
}

/// Converts an unsigned number for a `bigint` column.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts a number from a `bigint` column; the store writes none below zero.
fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// Converts a row limit for a statement.
fn rows(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Converts a duration to microseconds, at most a thousand years, so that adding it to a time never overflows.
fn micros(duration: Duration) -> i64 {
    const MAX: i64 = 1_000 * 365 * 24 * 60 * 60 * 1_000_000;
    i64::try_from(duration.as_micros()).unwrap_or(MAX).min(MAX)
}
