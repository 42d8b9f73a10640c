//! Opening a database: who makes its tables, which schema it has, whether it keeps what it is given.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use countersign_store::postgres::{OpenError, PostgresOptions, PostgresStore};
use countersign_testkit::postgres::shared_postgres;
use tokio_postgres::{Client, NoTls};

fn options(url: impl Into<String>) -> PostgresOptions {
    PostgresOptions::new(url).connections_max(4).lanes(1)
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_start_at_once_migrate_once() {
    let url = shared_postgres().fresh_database();
    let mut starting = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let url = url.clone();
        starting.spawn(async move { PostgresStore::open(options(url)).await.map(drop) });
    }
    for started in starting.join_all().await {
        started.unwrap();
    }
    let client = connect(&url).await;
    let applied = "SELECT count(*) FROM schema_migration";
    let applied = client.query_one(applied, &[]).await.unwrap();
    assert_eq!(applied.get::<_, i64>(0), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_cannot_be_relied_on_is_refused() {
    let url = shared_postgres().fresh_database();
    drop(PostgresStore::open(options(&url)).await.unwrap());
    let client = connect(&url).await;
    let refusal = async |statement: &str, options: PostgresOptions| {
        client.batch_execute(statement).await.unwrap();
        let opened = PostgresStore::open(options).await;
        opened.map(drop).map_err(|error| error.to_string())
    };
    let (_, name) = url.rsplit_once('/').unwrap();
    let lossy = format!("ALTER DATABASE {name} SET synchronous_commit = off");
    assert_eq!(
        refusal(&lossy, options(&url)).await.unwrap_err(),
        "the server runs with synchronous_commit = off and forgets commits when it crashes; turn it on"
    );
    let accepted = options(&url).accept_lossy_server();
    assert_eq!(refusal(&lossy, accepted).await, Ok(()));
    let newer = format!(
        "ALTER DATABASE {name} RESET synchronous_commit; \
         INSERT INTO schema_migration VALUES (99, 'later', '', now())"
    );
    assert_eq!(
        refusal(&newer, options(&url)).await.unwrap_err(),
        "the store has schema 99, this program knows up to 6; use the program that last opened it, or \
         a newer one"
    );
    let changed = "DELETE FROM schema_migration WHERE number = 99; \
         UPDATE schema_migration SET checksum = 'x'";
    assert_eq!(
        refusal(changed, options(&url)).await.unwrap_err(),
        "migration 0001_ledger was applied with other statements than this program has; use the \
         release that made the store"
    );
    let few = PostgresStore::open(options(&url).connections_max(2)).await;
    assert!(matches!(
        few,
        Err(OpenError::Connections {
            found: 2,
            needed: 3
        })
    ));
}
