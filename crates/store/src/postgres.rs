//! The PostgreSQL store: for any number of processes that share one database.
//!
//! Every rule of [`countersign::ledger`] is kept by the statements themselves, at READ COMMITTED and by the
//! database's own clock, so it does not matter how many processes there are or what their clocks say.
//! What calls commit goes through a few lanes: each takes all the calls that wait and commits them in one
//! transaction. A call whose answer is lost with its connection is looked up by its record, which is the
//! first row that its transaction writes.
//!
//! Read the modules in this order: `commit` is the heart.

mod appender;
mod claims;
mod commit;
mod connect;
mod documents;
mod dump;
mod failure;
mod held;
mod import;
mod installation;
mod keyring;
mod lent;
mod log;
mod options;
mod paces;
mod pots;
mod records;
mod schema;
mod texts;
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
use commit::Lanes;
use connect::limited;
use log::sequence::Edge;

pub use dump::Dump;
pub use failure::{Failure, OpenError};
pub use options::PostgresOptions;

/// A store in a PostgreSQL database. Cloning it shares connections and queues.
#[derive(Clone)]
pub struct PostgresStore {
    inner: Arc<Inner>,
}

struct Inner {
    pool: Pool,
    options: PostgresOptions,
    lanes: Lanes,
    appender: Appender,
    /// The right edge of the tree as this process left it; one integration at a time.
    edge: Mutex<Option<Edge>>,
    /// A name that no other process has, and a number: together they name one claiming.
    name: String,
    claimings: AtomicU64,
}

/// What a statement is given.
type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

impl PostgresStore {
    /// Connects, checks the server, brings the tables up to date and starts the lanes on the current
    /// runtime.
    pub async fn open(options: PostgresOptions) -> Result<Self, OpenError> {
        let pool = connect::pool(&options)?;
        let mut client = pool.get().await.map_err(Failure::from)?;
        schema::check(&client, &options).await?;
        schema::migrate(&mut client, options.binding.as_ref()).await?;
        drop(client);
        let lanes = Lanes::start(&pool, &options);
        let appender = Appender::start(lanes.clone(), &options);
        let name = format!("{:016x}", RandomState::new().hash_one("claiming"));
        Ok(Self {
            inner: Arc::new(Inner {
                pool,
                options,
                lanes,
                appender,
                edge: Mutex::new(None),
                name,
                claimings: AtomicU64::new(0),
            }),
        })
    }

    /// A name for one claiming: nobody else draws it.
    fn claiming(&self) -> String {
        let number = self.inner.claimings.fetch_add(1, Ordering::Relaxed);
        format!("{}-{number}", self.inner.name)
    }

    async fn client(&self) -> Result<Client, Failure> {
        Ok(self.inner.pool.get().await?)
    }

    /// A statement that changes nothing. A connection that broke is replaced once.
    async fn read(&self, sql: &str, params: Params<'_>) -> Result<Vec<Row>, Failure> {
        match self.run(sql, params).await {
            Err(failure) if failure.is_lost() => {
                self.forget_idle();
                self.run(sql, params).await
            }
            answered => answered,
        }
    }

    /// One statement, tried once; it is a transaction of its own.
    async fn run(&self, sql: &str, params: Params<'_>) -> Result<Vec<Row>, Failure> {
        let client = self.client().await?;
        let answered = limited(self.patience(), async {
            let statement = client.prepare_cached(sql).await?;
            client.query(&statement, params).await
        })
        .await;
        if matches!(answered, Err(Failure::Silent { .. })) {
            drop(deadpool_postgres::Object::take(client));
        }
        answered
    }

    /// The server ends a statement before this; whoever is silent for longer is gone.
    fn patience(&self) -> Duration {
        patience(&self.inner.options)
    }

    /// A server that went away took every connection with it, also those that have not noticed.
    fn forget_idle(&self) {
        self.inner.pool.retain(|_, _| false);
    }
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

/// A number of ours in a column.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number of ours from a column; none of them is below zero.
fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// A limit for a statement.
fn rows(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Microseconds; a thousand years are for ever, and no time that they are added to overflows.
fn micros(duration: Duration) -> i64 {
    const MAX: i64 = 1_000 * 365 * 24 * 60 * 60 * 1_000_000;
    i64::try_from(duration.as_micros()).unwrap_or(MAX).min(MAX)
}
