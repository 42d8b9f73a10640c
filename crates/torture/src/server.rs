//! The disturbances of a PostgreSQL server while processes work with it.

use std::time::Duration;

use anyhow::{Result, anyhow};
use countersign_store::postgres::{PostgresOptions, PostgresStore};
use countersign_testkit::postgres::TempPostgres;
use tokio_postgres::NoTls;

/// Longest wait for a statement.
const PATIENCE: Duration = Duration::from_secs(30);

/// Creates the schema.
pub fn prepare(url: &str) -> Result<()> {
    block_on(async {
        PostgresStore::open(PostgresOptions::new(url)).await?;
        Ok(())
    })
}

/// Expires the leases of all running calls, as the server's clock would do after a while.
pub fn expire_leases(url: &str) -> Result<()> {
    run(
        url,
        "UPDATE claim SET lease_until = now() - interval '1 second' WHERE state = 1; \
         UPDATE reservation SET lease_until = now() - interval '1 second'",
    )
}

/// Expires the retention of all settled answers.
pub fn expire_answers(url: &str) -> Result<()> {
    run(
        url,
        "UPDATE claim SET until = now() - interval '1 second' WHERE state IN (2, 3)",
    )
}

/// Lets the processes work for a moment, then cuts every connection, or restarts the server as after a crash every
/// fourth time.
pub fn disturb(server: &TempPostgres, url: &str, round: u32) -> Result<()> {
    // Not a wait for something to be done: the work between two disturbances.
    std::thread::sleep(Duration::from_millis(u64::from(round * 37 % 120)));
    if round.is_multiple_of(4) {
        server.restart_immediate();
        return Ok(());
    }
    run(
        url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
}

/// Runs a statement on a connection of its own.
pub fn run(url: &str, statement: &str) -> Result<()> {
    let work = async {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        let connection = tokio::spawn(connection);
        client.batch_execute(statement).await?;
        drop(client);
        // The result does not matter: the statement is done.
        let _ = connection.await;
        anyhow::Ok(())
    };
    // A server that stands still takes connections, and answers none.
    block_on(async { tokio::time::timeout(PATIENCE, work).await? })
}

/// Runs on a thread of its own, because the caller may be inside a runtime already.
fn block_on<F: Future<Output = Result<()>> + Send>(work: F) -> Result<()> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?
                .block_on(work)
        });
        thread
            .join()
            .map_err(|_| anyhow!("the thread has panicked"))?
    })
}
