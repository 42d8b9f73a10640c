//! What happens to a PostgreSQL server while processes work with it.

use std::time::Duration;

use anyhow::{Result, anyhow};
use countersign_store::postgres::{PostgresOptions, PostgresStore};
use countersign_testkit::postgres::TempPostgres;
use tokio_postgres::NoTls;

/// Makes the schema.
pub fn prepare(url: &str) -> Result<()> {
    block_on(async {
        PostgresStore::open(PostgresOptions::new(url)).await?;
        Ok(())
    })
}

/// The leases of everybody who runs are over: what the server's clock would do after a while.
pub fn expire_leases(url: &str) -> Result<()> {
    run(
        url,
        "UPDATE claim SET lease_until = now() - interval '1 second' WHERE state = 1; \
         UPDATE reservation SET lease_until = now() - interval '1 second'",
    )
}

/// The answers of everything that is settled are no longer kept.
pub fn expire_answers(url: &str) -> Result<()> {
    run(
        url,
        "UPDATE claim SET until = now() - interval '1 second' WHERE state IN (2, 3)",
    )
}

/// Cuts every connection, or restarts the server as if it had crashed, in turn, after a moment of work.
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

fn run(url: &str, statement: &str) -> Result<()> {
    block_on(async {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        let connection = tokio::spawn(connection);
        client.batch_execute(statement).await?;
        drop(client);
        // However it ends: what was asked for is done.
        let _ = connection.await;
        Ok(())
    })
}

/// On a thread of its own: whoever asks may be inside a runtime already.
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
