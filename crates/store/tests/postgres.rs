//! The PostgreSQL store keeps the contract of a store, on a real server and with two replicas.

use std::sync::Arc;

use countersign::BoxFuture;
use countersign::contract::Digest;
use countersign::ledger::{Corpus, TextChunk, TextQuery, Texts as _};
use countersign_store::postgres::{PostgresOptions, PostgresStore};
use countersign_testkit::ledger::build::bound_to;
use countersign_testkit::ledger::{Fixture, Fresh, lockstep};
use countersign_testkit::ledger_contract;
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
