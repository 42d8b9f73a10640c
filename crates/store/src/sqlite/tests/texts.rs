//! Corpora whose writing was interrupted or abandoned.

use countersign::contract::Digest;
use countersign::ledger::{Corpus, TextChunk, TextQuery, Texts as _};

use super::*;

fn corpus(version: &[u8], chunks: usize) -> Arc<Corpus> {
    let chunks = (0..chunks).map(|n| TextChunk::new(n.to_string(), "en", "tax", &[]));
    let corpus = Corpus::new("shop", Digest::of_bytes(version), chunks.collect());
    Arc::new(corpus.expect("texts that fit"))
}

async fn found(store: &SqliteStore, corpus: &Corpus) -> Option<usize> {
    let query = TextQuery::new(corpus.id(), "tax").limit(100);
    let hits = store.search(&query).await.expect("it can be read");
    hits.map(|hits| hits.len())
}

fn rows(store: &SqliteStore) -> Vec<i64> {
    let tables = ["text_corpus", "text_chunk", "text_index"];
    let count = |table: &str| {
        let sql = format!("SELECT count(*) FROM {table}");
        let read = |connection: &Connection| Ok(connection.query_row(&sql, [], |row| row.get(0))?);
        store.readers.point(read).expect("a number")
    };
    tables.map(count).to_vec()
}

/// If the process ends while a corpus is written, or the caller goes away, nothing of the corpus is visible,
/// and the next one that is kept replaces it.
#[tokio::test]
async fn half_a_corpus_is_never_seen_and_goes() {
    let corpora = [corpus(b"1", 50), corpus(b"2", 50)];
    let mut unseen = 0;
    // The first job makes the corpus, the second one writes its chunks, the third makes it complete.
    for jobs in 0..4 {
        let folder = folder();
        let store = open(folder.path());
        let mut keeping = store.keep_corpus(&corpora[0]);
        let mut is_done = false;
        for _ in 0..=jobs {
            let polled = keeping
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()));
            is_done = is_done || polled.is_ready();
            if is_done {
                break;
            }
            // Runs after everything that was queued so far.
            let behind = store.writer.run(|_| Ok(Done::Kept(())));
            behind.await.expect("it is written");
        }
        drop(keeping);
        drop(store);
        let store = open(folder.path());
        let seen = found(&store, &corpora[0]).await;
        assert!(seen.is_none_or(|seen| seen == 50), "{jobs}: {seen:?}");
        store.keep_corpus(&corpora[1]).await.expect("it is kept");
        assert_eq!(found(&store, &corpora[1]).await, Some(50));
        unseen += u32::from(seen.is_none());
        let kept = if seen.is_some() { 2 } else { 1 };
        assert_eq!(rows(&store), [kept, 50 * kept, 50 * kept], "{jobs}");
        store.keep_corpus(&corpora[0]).await.expect("it is kept");
        assert_eq!(found(&store, &corpora[0]).await, Some(50));
        store.check().await.expect("the file is whole");
    }
    assert!(unseen > 0, "no corpus was left half written");
}
