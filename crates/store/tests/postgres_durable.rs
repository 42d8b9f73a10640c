//! A PostgreSQL server whose settings change while the store is open, and addresses of several servers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use countersign::ledger::{Durability, Log as _, Timekeeping as _};
use countersign_store::postgres::{PostgresOptions, PostgresStore};
use countersign_testkit::ledger::build::{entry, record_id, told};
use countersign_testkit::patience::until;
use countersign_testkit::postgres::{TempPostgres, shared_postgres};
use tokio_postgres::{Client, NoTls};

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

fn options(url: &str) -> PostgresOptions {
    PostgresOptions::new(url).connections_max(4).lanes(1)
}

/// Changes a setting of the server, and waits until a session that is open has it.
async fn change(client: &Client, setting: &str, value: &str) {
    let alter = format!("ALTER SYSTEM SET {setting} = {value}");
    client.batch_execute(&alter).await.unwrap();
    client
        .batch_execute("SELECT pg_reload_conf()")
        .await
        .unwrap();
    let show = format!("SHOW {setting}");
    until(async || {
        let row = client.query_one(&show, &[]).await.unwrap();
        row.get::<_, &str>(0) == value
    })
    .await;
}

/// A19: a commit waits for the disk, also after the server was set otherwise, on connections that are open and on
/// new ones.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_is_durable_whatever_the_server_says() {
    let server = TempPostgres::start();
    let url = server.fresh_database();
    let store = PostgresStore::open(options(&url)).await.unwrap();
    let client = connect(&url).await;
    let spy = "CREATE TABLE seen (id text, setting text);
         CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             INSERT INTO seen VALUES (NEW.id, current_setting('synchronous_commit')); RETURN NEW;
         END $$;
         CREATE TRIGGER see AFTER INSERT ON record FOR EACH ROW EXECUTE FUNCTION see()";
    client.batch_execute(spy).await.unwrap();
    change(&client, "synchronous_commit", "off").await;
    let keep = async |id: &str| {
        let kept = store.append(entry(id, "u_1").into(), Durability::Committed);
        kept.await.unwrap();
        let found = "SELECT setting FROM seen WHERE id = $1";
        let id = record_id(id);
        let row = client.query_one(found, &[&id.as_str()]).await.unwrap();
        row.get::<_, String>(0)
    };
    assert_eq!(keep("ev_open").await, "on");
    let others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE application_name = 'countersign' AND datname = current_database()";
    client.batch_execute(others).await.unwrap();
    assert_eq!(keep("ev_new").await, "on");
}

/// A19: a setting that no session can override stops the writes until it is right again.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_became_lossy_is_not_written_to() {
    let server = TempPostgres::start();
    let url = server.fresh_database();
    let store = PostgresStore::open(options(&url)).await.unwrap();
    let keep = async |id: &str| {
        let kept = store.append(entry(id, "u_1").into(), Durability::Committed);
        kept.await
    };
    keep("ev_1").await.unwrap();
    let client = connect(&url).await;
    for setting in ["fsync", "full_page_writes"] {
        change(&client, setting, "off").await;
        let told_of = store.observe_time(told()).await.unwrap_err();
        let told_of = format!("{told_of:?}");
        assert!(told_of.contains(setting), "{told_of}");
        let id = format!("ev_{}", setting.replace('_', "-"));
        keep(&id).await.unwrap_err();
        change(&client, setting, "on").await;
        store.observe_time(told()).await.unwrap();
        keep(&id).await.unwrap();
    }
}

/// Of several servers the one that takes writes is used; one that is away is passed over.
#[tokio::test(flavor = "multi_thread")]
async fn an_address_may_name_several_servers() {
    let url = shared_postgres().fresh_database();
    let (before, after) = url.split_once('@').unwrap();
    let (host, database) = after.split_once('/').unwrap();
    // Nobody listens on the first port.
    let several = format!("{before}@127.0.0.1:1,{host}/{database}");
    let store = PostgresStore::open(options(&several)).await.unwrap();
    let kept = store.append(entry("ev_1", "u_1").into(), Durability::Committed);
    kept.await.unwrap();
    let written = store.record(&record_id("ev_1")).await.unwrap();
    assert!(written.is_some());
    let read_only = format!(
        "ALTER DATABASE {} SET default_transaction_read_only = on",
        database.split('?').next().unwrap()
    );
    connect(&url).await.batch_execute(&read_only).await.unwrap();
    let refused = PostgresStore::open(options(&several)).await;
    assert!(refused.is_err());
}
