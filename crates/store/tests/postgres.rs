//! The PostgreSQL store keeps the contract of a store, on a real server and with two replicas.

use std::sync::Arc;
use std::time::Duration;

use countersign::BoxFuture;
use countersign::contract::{Digest, RequestId, SnapshotId};
use countersign::ledger::{
    Claims as _, Corpus, Draw, KeyDigest, Lapse, Log as _, LogQuery, PotKey, Pots as _,
    ReservationId, Reserve, ReserveAnswer, Store, TextChunk, TextQuery, Texts as _,
    Timekeeping as _,
};
use countersign_store::postgres::{PostgresOptions, PostgresStore};
use countersign_testkit::ledger::build::{bound_to, told};
use countersign_testkit::ledger::{Fixture, Fresh, forged, lockstep};
use countersign_testkit::ledger_contract;
use countersign_testkit::patience::until;
use countersign_testkit::postgres::shared_postgres;

struct Replicas;

impl Fixture for Replicas {
    fn fresh(&self) -> BoxFuture<'_, Fresh> {
        let url = shared_postgres().fresh_database();
        let options = PostgresOptions::new(url)
            .connections_max(6)
            .binding(bound_to(1));
        Box::pin(async move {
            let store = PostgresStore::open(options.clone()).await;
            let replica = PostgresStore::open(options).await;
            let store = Arc::new(store.expect("a fresh database"));
            let replica = Arc::new(replica.expect("one that is there already"));
            Fresh::new(store).with_replica(replica)
        })
    }
}

ledger_contract!(Replicas);

#[test]
fn it_answers_as_the_model_does() {
    lockstep(&Replicas, 24);
}

/// A corpus that lacks chunks, for example one that an earlier release left half written, counts as missing and
/// is written again.
#[tokio::test]
async fn a_corpus_without_all_its_chunks_is_kept_anew() {
    let url = shared_postgres().fresh_database();
    let store = PostgresStore::open(PostgresOptions::new(url.clone())).await;
    let store = store.expect("a fresh database");
    let chunks = ["a", "b"].map(|id| TextChunk::new(id, "en", "tax", &[]));
    let corpus = Corpus::new("shop", Digest::of_bytes(b"1"), chunks.to_vec());
    let corpus = Arc::new(corpus.expect("texts that fit"));
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls)
        .await
        .expect("the same database");
    tokio::spawn(connection);
    for lost in [
        "DELETE FROM text_chunk WHERE id = 'a'",
        "DELETE FROM text_chunk",
    ] {
        store.keep_corpus(&corpus).await.expect("it is kept");
        client.batch_execute(lost).await.expect("they are gone");
        for question in ["tax", ""] {
            let query = TextQuery::new(corpus.id(), question);
            let found = store.search(&query).await.expect("an answer");
            assert_eq!(found, None, "{lost}: {question:?}");
        }
        store.keep_corpus(&corpus).await.expect("it is kept anew");
        let query = TextQuery::new(corpus.id(), "tax");
        let found = store.search(&query).await.expect("an answer");
        assert_eq!(found.map(|hits| hits.len()), Some(2), "{lost}");
    }
}

/// B17: lists and searches read no whole table, neither right after many calls, before the server has statistics, nor after a
/// statement ran so often that the server would keep one plan for all values.
#[tokio::test]
async fn lists_and_searches_use_indexes_without_statistics() {
    let url = shared_postgres().fresh_database();
    let options = PostgresOptions::new(url.clone())
        .connections_max(6)
        .lanes(1);
    let opened = async || {
        let store = PostgresStore::open(options.clone()).await;
        store.expect("a database")
    };
    drop(opened().await);
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls)
        .await
        .expect("the same database");
    tokio::spawn(connection);
    // The indexes were made by reading the tables.
    let before = whole_reads(&client).await;
    let store = opened().await;
    let filled = "INSERT INTO record \
             (user_id, id, kind, at_ns, request_id, tool, code, fenced, leaf) \
         SELECT 'u_' || n % 50, 'ev_' || n, 'call', n, 'req_' || n, 'shop.buy', NULL, false, '\\x00' \
         FROM generate_series(1, 20000) AS n; \
         INSERT INTO claim (user_id, tool, key_digest, state, attempt, fingerprint, parts, recovery, \
             recovery_seconds, request_id, token, first_claim, claimed_at) \
         SELECT 'u_' || n % 50, 'shop.buy', sha256(n::text::bytea), 2, 1, '\\x00', '\\x00', 0, 0, \
             'req_' || n, 't', now(), now() \
         FROM generate_series(1, 20000) AS n";
    client
        .batch_execute(filled)
        .await
        .expect("rows are written");
    let keys: Vec<_> = (0..50)
        .map(|n| (format!("u_{n}"), KeyDigest([7; 32])))
        .collect();
    let unknown = LogQuery {
        request_ids: (0..50)
            .map(|n| RequestId::new(format!("req_unknown_{n}")).expect("an id"))
            .collect(),
        limit: 50,
        ..LogQuery::default()
    };
    let newest = LogQuery {
        request_ids: Vec::new(),
        ..unknown.clone()
    };
    for _ in 0..8 {
        assert_eq!(store.records(&unknown).await.expect("a list").len(), 0);
        assert_eq!(store.records(&newest).await.expect("a list").len(), 50);
        assert_eq!(store.claims_of(&keys, 50).await.expect("a list").len(), 0);
    }
    drop(store);
    assert_eq!(whole_reads(&client).await, before);
}

/// The number of times that each table was read whole, once all connections of stores have ended: then each has told the server what it read.
async fn whole_reads(client: &tokio_postgres::Client) -> Vec<(String, i64)> {
    let others = "SELECT count(*) FROM pg_stat_activity \
         WHERE datname = current_database() AND application_name = 'countersign'";
    until(async || {
        let row = client.query_one(others, &[]).await.expect("a count");
        row.get::<_, i64>(0) == 0
    })
    .await;
    let whole = "SELECT relname::text, seq_scan FROM pg_stat_user_tables \
         WHERE relname IN ('claim', 'record') ORDER BY relname";
    let whole = client.query(whole, &[]).await.expect("counts");
    whole.iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// A16, A17: a record that waits for the tree is added, and signed, only as this installation has written it: without
/// the keys no program adds one or changes one, also if the tree was grown by hand.
#[tokio::test]
async fn a_record_that_another_program_wrote_is_not_signed() {
    const FORGE: &str = "INSERT INTO record (user_id, id, kind, at_ns, fenced, leaf) \
         VALUES ('', 'ev_forged', 'call', 0, false, '{}'); \
         INSERT INTO outbox (user_id, id) VALUES ('', 'ev_forged')";
    const CHANGE: &str = "UPDATE record SET leaf = '{}' WHERE id = 'ev_2'";
    for (attack, named) in [(FORGE, "ev_forged"), (CHANGE, "ev_2")] {
        for is_grown in [false, true] {
            let url = shared_postgres().fresh_database();
            let open = async || {
                let options = PostgresOptions::new(url.clone())
                    .connections_max(4)
                    .lanes(1);
                let store = PostgresStore::open(options).await.expect("a database");
                let store: Arc<dyn Store> = Arc::new(store);
                store
            };
            let store = open().await;
            assert_eq!(forged::authenticate(&*store).await, 0);
            forged::append(&*store, "ev_1").await;
            forged::sign(&store).await.expect("it is as it was written");
            forged::append(&*store, "ev_2").await;
            let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls)
                .await
                .expect("the same database");
            tokio::spawn(connection);
            client.batch_execute(attack).await.expect("a row");
            if is_grown {
                // Without the key the rows become leaves of a tree that is in order.
                forged::integrate(&*open().await)
                    .await
                    .expect("there is room");
            }
            let signed = forged::sign(&store).await;
            assert!(forged::is_refused(&signed, named), "{attack}: {signed:?}");
        }
    }
}

/// Records that an earlier version left unsigned are accepted once, when the database is first opened with the key.
#[tokio::test]
async fn records_of_an_earlier_version_are_accepted_once() {
    let url = shared_postgres().fresh_database();
    let options = PostgresOptions::new(url).connections_max(4).lanes(1);
    let store = PostgresStore::open(options)
        .await
        .expect("a fresh database");
    let store: Arc<dyn Store> = Arc::new(store);
    forged::append(&*store, "ev_1").await;
    forged::integrate(&*store).await.expect("there is room");
    forged::append(&*store, "ev_2").await;
    assert_eq!(forged::authenticate(&*store).await, 2);
    forged::sign(&store).await.expect("both are accepted");
    assert_eq!(forged::authenticate(&*store).await, 0);
}

/// A17: while the server's clock is not believed, a budget counts in the window of the time that was.
#[tokio::test]
async fn a_clock_that_jumps_opens_no_window() {
    const BEFORE: &str = "UPDATE time_mark SET at = now() - interval '73 hours' WHERE one = 1";
    let url = shared_postgres().fresh_database();
    let options = PostgresOptions::new(url.clone())
        .connections_max(4)
        .lanes(1);
    let store = PostgresStore::open(options)
        .await
        .expect("a fresh database");
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls)
        .await
        .expect("the same database");
    tokio::spawn(connection);
    client.batch_execute(BEFORE).await.expect("there is a mark");
    let draw = Draw {
        pot: PotKey {
            user_id: String::new(),
            name: "daily".to_owned(),
            holder: String::new(),
            currency: String::new(),
            window_seconds: 86_400,
        },
        amount: 100,
        limit: 100,
    };
    let request = Reserve {
        id: ReservationId {
            user_id: "u_1".to_owned(),
            id: SnapshotId::new("ev_1").expect("a name"),
        },
        draws: vec![draw.clone()],
        lapse: Lapse::Release,
        lease: Duration::from_mins(1),
    };
    let reserved = store.reserve(&request).await.expect("the database works");
    assert_eq!(reserved, ReserveAnswer::Reserved);
    let same = "SELECT window_start = floor(extract(epoch FROM m.at) / 86400)::bigint * 86400 \
         FROM pot, time_mark m";
    let same = client.query_one(same, &[]).await.expect("one pot");
    assert!(same.get::<_, bool>(0));
    let refused = store
        .check(std::slice::from_ref(&draw))
        .await
        .expect("the database works");
    assert!(matches!(refused, ReserveAnswer::Over(_)), "{refused:?}");
    store.trust_time(told()).await.expect("the database works");
    let free = store.check(&[draw]).await.expect("the database works");
    assert_eq!(free, ReserveAnswer::Reserved);
}
