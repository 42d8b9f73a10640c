//! Opening a database: creation of the tables, the schema's version, and servers that may lose commits.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use countersign::ledger::{Installations as _, Keyring as _, NotOurs, WrappedKey};
use countersign_store::postgres::{OpenError, PostgresOptions, PostgresStore};
use countersign_testkit::ledger::build::bound_to;
use countersign_testkit::postgres::{Pooler, shared_postgres};
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
    let files = std::fs::read_dir("migrations/postgres").unwrap().count();
    assert_eq!(applied.get::<_, i64>(0), i64::try_from(files).unwrap());
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
        "the store has schema 99, this program knows up to 12; use the program that last opened it, or \
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

/// U7: of processes that start at once with keys of their own on a fresh database, one binds it, and the others are
/// refused before they have written anything.
#[tokio::test(flavor = "multi_thread")]
async fn racing_keys_bind_a_database_once() {
    let url = shared_postgres().fresh_database();
    let mut starting = tokio::task::JoinSet::new();
    for n in 1..=8 {
        let options = options(&url).binding(bound_to(n));
        starting.spawn(async move { (n, PostgresStore::open(options).await.map(drop)) });
    }
    let started = starting.join_all().await;
    let (opened, refused): (Vec<_>, Vec<_>) =
        started.into_iter().partition(|(_, opened)| opened.is_ok());
    assert_eq!((opened.len(), refused.len()), (1, 7), "{refused:?}");
    let winner = opened[0].0;
    for (n, refused) in &refused {
        let Err(OpenError::Installation(NotOurs::OtherMaster { bound, ours })) = refused else {
            panic!("{n}: {refused:?}");
        };
        assert_eq!((bound, ours), (&format!("m_{winner}"), &format!("m_{n}")));
    }
    let again = PostgresStore::open(options(&url).binding(bound_to(winner))).await;
    let found = again.unwrap().installation().await.unwrap().unwrap();
    assert_eq!(found.id, format!("in_{winner}"));
}

/// U7: a database that already has data can only be bound by the keys of that data.
#[tokio::test(flavor = "multi_thread")]
async fn an_older_database_is_bound_by_its_own_keys() {
    let url = shared_postgres().fresh_database();
    let store = PostgresStore::open(options(&url)).await.unwrap();
    let wrapped = WrappedKey {
        id: None,
        master: "m_1".to_owned(),
        bytes: vec![1],
    };
    store.add_user_key("u_1", wrapped).await.unwrap();
    drop(store);
    let open = async |binding| {
        let opened = PostgresStore::open(options(&url).binding(binding)).await;
        opened.map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(
        open(bound_to(2)).await.unwrap_err(),
        "the keys in the store were not wrapped by the master key in use, m_2"
    );
    let client = connect(&url).await;
    let bound = client.query("SELECT 1 FROM installation", &[]).await;
    assert!(bound.unwrap().is_empty(), "nothing was written");
    open(bound_to(1)).await.unwrap();
    assert_eq!(
        open(bound_to(2)).await.unwrap_err(),
        "the data belongs to the master key m_1, and the one in use is m_2"
    );
}

/// N1: tables that were made again from a dump are a copy, which only a restore opens.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_from_a_dump_is_a_copy() {
    let url = shared_postgres().fresh_database();
    drop(
        PostgresStore::open(options(&url).binding(bound_to(1)))
            .await
            .unwrap(),
    );
    let client = connect(&url).await;
    let again = "ALTER TABLE installation RENAME TO before;
        CREATE TABLE installation (LIKE before INCLUDING ALL);
        INSERT INTO installation SELECT * FROM before; DROP TABLE before";
    client.batch_execute(again).await.unwrap();
    let opened = PostgresStore::open(options(&url).binding(bound_to(1))).await;
    assert!(matches!(
        opened,
        Err(OpenError::Installation(NotOurs::Copy))
    ));
    let mut restoring = bound_to(1);
    restoring.accepts_copy = true;
    drop(
        PostgresStore::open(options(&url).binding(restoring))
            .await
            .unwrap(),
    );
}

/// A17: a pooler that lends one session to many connections is refused; in its session mode it works.
#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_that_shares_sessions_is_refused() {
    let url = shared_postgres().fresh_database();
    let pooler = Pooler::start(&url, "transaction");
    let refused = PostgresStore::open(options(pooler.url())).await;
    assert!(matches!(refused, Err(OpenError::Pooled)), "{refused:?}");
    let pooler = Pooler::start(&url, "session");
    let store = PostgresStore::open(options(pooler.url())).await.unwrap();
    assert_eq!(store.installation().await.unwrap(), None);
}
