//! Texts in PostgreSQL, found by a GIN index over `tsvector`.
//!
//! The store builds the vectors itself: the server's parser takes a Chinese sentence for one word, and its
//! notion of a letter depends on the database's locale. The score of a chunk is computed as in every other
//! store. Only if very many chunks have a word of the question does the server preselect some: those with its
//! rare words, which `ts_rank_cd` does not weigh, and among equals by that rank.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use countersign::BoxFuture;
use countersign::ledger::{
    CANDIDATES_MAX, Corpus, CorpusId, Error, TextChunk, TextHit, TextQuery, Texts, VERSIONS_KEPT,
};
use countersign::text::{Statistics, rank};
use deadpool_postgres::Client;
use tokio_postgres::Row;

use super::failure::Failure;
use super::lent::Lent;
use super::{PostgresStore, rows, unsigned};

/// Number of chunks that one statement writes.
const PORTION: usize = 500;

/// Limits of a `tsvector`: the highest position, and the most positions of one word.
const PLACE_MAX: usize = 16_383;
const PLACES_MAX: usize = 255;

impl Texts for PostgresStore {
    fn keep_corpus<'a>(&'a self, corpus: &'a Arc<Corpus>) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            if self.has_corpus(corpus.id()).await? {
                return Ok(());
            }
            let lent = Lent::new(self.client().await?);
            keep(lent.client()?, corpus).await?;
            lent.give_back();
            Ok(())
        })
    }

    fn search<'a>(
        &'a self,
        query: &'a TextQuery,
    ) -> BoxFuture<'a, Result<Option<Vec<TextHit>>, Error>> {
        Box::pin(async move { Ok(self.found(query).await?) })
    }

    fn chunk<'a>(
        &'a self,
        corpus: &'a CorpusId,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<TextChunk>, Error>> {
        Box::pin(async move {
            // No chunk has such a name, and the server rejects NUL.
            if id.contains('\0') {
                return Ok(None);
            }
            let (name, version) = (&corpus.name, corpus.version.as_bytes().as_slice());
            let found = self
                .read(
                    "SELECT id, language, body, words FROM text_chunk \
                     WHERE name = $1 AND version = $2 AND id = $3",
                    &[name, &version, &id],
                )
                .await?;
            Ok(found.first().map(chunk))
        })
    }
}

impl PostgresStore {
    /// True if the corpus is complete: one that lacks some of its chunks would answer questions wrongly for
    /// ever.
    async fn has_corpus(&self, corpus: &CorpusId) -> Result<bool, Failure> {
        let (name, version) = (&corpus.name, corpus.version.as_bytes().as_slice());
        let found = self
            .read(
                "SELECT 1 FROM text_corpus t WHERE name = $1 AND version = $2 \
                   AND chunks = (SELECT count(*) FROM text_chunk c \
                     WHERE c.name = t.name AND c.version = t.version)",
                &[name, &version],
            )
            .await?;
        Ok(!found.is_empty())
    }

    async fn found(&self, query: &TextQuery) -> Result<Option<Vec<TextHit>>, Failure> {
        if query.words().is_empty() {
            let is_kept = self.has_corpus(query.corpus()).await?;
            return Ok(is_kept.then(Vec::new));
        }
        let Some(statistics) = self.statistics(query).await? else {
            return Ok(None);
        };
        let CorpusId { name, version } = query.corpus();
        let asked = single_expressions(query.words());
        // At least one row if the corpus exists: it may have been deleted since its statistics were read.
        let found = self
            .read(
                "SELECT f.id, f.language, f.body, f.words FROM text_corpus t \
                 LEFT JOIN LATERAL (SELECT c.id, c.language, c.body, c.words FROM text_chunk c \
                     WHERE c.name = t.name AND c.version = t.version \
                       AND c.vector @@ $3::text::tsquery \
                       AND ($4::text IS NULL OR c.language = $4) \
                     ORDER BY (SELECT sum(w.rarity) \
                         FROM unnest($5::text[], $6::float8[]) AS w (word, rarity) \
                         WHERE c.vector @@ w.word::tsquery) DESC, \
                       ts_rank_cd(c.vector, $3::text::tsquery) DESC, c.id LIMIT $7) f ON true \
                 WHERE t.name = $1 AND t.version = $2",
                &[
                    name,
                    &version.as_bytes().as_slice(),
                    &asked.join(" | "),
                    &query.wanted_language(),
                    &asked,
                    &statistics.rarity(),
                    &rows(CANDIDATES_MAX),
                ],
            )
            .await?;
        if found.is_empty() {
            return Ok(None);
        }
        let is_chunk = |row: &&Row| row.get::<_, Option<&str>>("id").is_some();
        let chunks = found.iter().filter(is_chunk).map(chunk);
        let hits = rank(query.words(), &statistics, chunks, query.hits_max());
        Ok(Some(hits))
    }

    /// `None` if the corpus is missing or incomplete: then it is written again.
    async fn statistics(&self, query: &TextQuery) -> Result<Option<Statistics>, Failure> {
        let CorpusId { name, version } = query.corpus();
        let asked = single_expressions(query.words());
        let found = self
            .read(
                "SELECT t.chunks, t.words, (SELECT count(*) FROM text_chunk c \
                     WHERE c.name = t.name AND c.version = t.version \
                       AND c.vector @@ w.word::tsquery) AS chunks_with \
                 FROM text_corpus t CROSS JOIN unnest($3::text[]) WITH ORDINALITY AS w (word, n) \
                 WHERE t.name = $1 AND t.version = $2 \
                   AND t.chunks = (SELECT count(*) FROM text_chunk k \
                     WHERE k.name = t.name AND k.version = t.version) \
                 ORDER BY w.n",
                &[name, &version.as_bytes().as_slice(), &asked],
            )
            .await?;
        let Some(first) = found.first() else {
            return Ok(None);
        };
        let number =
            |row: &Row, column: &str| u32::try_from(unsigned(row.get(column))).unwrap_or(u32::MAX);
        Ok(Some(Statistics {
            chunks: number(first, "chunks"),
            words: number(first, "words"),
            chunks_with: found.iter().map(|row| number(row, "chunks_with")).collect(),
        }))
    }
}

/// Writes a corpus in one transaction. Other writers of corpora wait; readers do not.
async fn keep(client: &Client, corpus: &Corpus) -> Result<(), Failure> {
    let CorpusId { name, version } = corpus.id();
    let version = version.as_bytes().as_slice();
    let begin = "BEGIN; SET LOCAL lock_timeout = '60s'; SET LOCAL statement_timeout = '60s'; \
         LOCK TABLE text_corpus IN SHARE ROW EXCLUSIVE MODE";
    client.batch_execute(begin).await?;
    // An incomplete corpus is written again.
    client
        .execute(
            "WITH broken AS MATERIALIZED (SELECT version FROM text_corpus t \
                   WHERE name = $1 AND version = $2 AND chunks <> (SELECT count(*) \
                     FROM text_chunk c WHERE c.name = t.name AND c.version = t.version)), \
                 chunks AS (DELETE FROM text_chunk c USING broken \
                   WHERE c.name = $1 AND c.version = broken.version) \
             DELETE FROM text_corpus t USING broken \
             WHERE t.name = $1 AND t.version = broken.version",
            &[name, &version],
        )
        .await?;
    let added = client
        .execute(
            "INSERT INTO text_corpus (name, version, chunks, words, kept_at) \
             VALUES ($1, $2, $3, $4, clock_timestamp()) ON CONFLICT DO NOTHING",
            &[
                name,
                &version,
                &rows(corpus.chunks().len()),
                &i64::from(corpus.words()),
            ],
        )
        .await?;
    if added > 0 {
        for portion in corpus.chunks().chunks(PORTION) {
            add(client, corpus.id(), portion).await?;
        }
        // In one statement, because the decision depends on the rows that were there before, and on the order
        // of time.
        client
            .execute(
                "WITH old AS MATERIALIZED (SELECT version FROM text_corpus WHERE name = $1 \
                       ORDER BY version = $2 DESC, kept_at DESC OFFSET $3), \
                     chunks AS (DELETE FROM text_chunk c USING old \
                       WHERE c.name = $1 AND c.version = old.version) \
                 DELETE FROM text_corpus t USING old WHERE t.name = $1 AND t.version = old.version",
                &[name, &version, &rows(VERSIONS_KEPT)],
            )
            .await?;
    }
    client.batch_execute("COMMIT").await?;
    Ok(())
}

async fn add(client: &Client, corpus: &CorpusId, chunks: &[TextChunk]) -> Result<(), Failure> {
    let column = |of: fn(&TextChunk) -> &str| chunks.iter().map(of).collect::<Vec<&str>>();
    let vectors: Vec<String> = chunks.iter().map(|chunk| vector(&chunk.words)).collect();
    client
        .execute(
            "INSERT INTO text_chunk (name, version, id, language, body, words, vector) \
             SELECT $1, $2, c.id, c.language, c.body, c.words, c.vector::tsvector \
             FROM unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::text[]) \
               AS c (id, language, body, words, vector)",
            &[
                &corpus.name,
                &corpus.version.as_bytes().as_slice(),
                &column(|chunk| &chunk.id),
                &column(|chunk| &chunk.language),
                &column(|chunk| &chunk.text),
                &column(|chunk| &chunk.words),
                &vectors,
            ],
        )
        .await?;
    Ok(())
}

/// Builds one expression for each word. A word has only letters and digits, so nothing in it can end a quote.
fn single_expressions(words: &[String]) -> Vec<String> {
    words.iter().map(|word| format!("'{word}'")).collect()
}

/// Formats words with their positions as the text form of a `tsvector`.
fn vector(words: &str) -> String {
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, word) in words.split(' ').enumerate() {
        let of_word = places.entry(word).or_default();
        if of_word.len() < PLACES_MAX {
            of_word.push((at + 1).min(PLACE_MAX));
        }
    }
    let mut text = String::new();
    for (word, places) in places.iter().filter(|(word, _)| !word.is_empty()) {
        let places: Vec<String> = places.iter().map(usize::to_string).collect();
        // Writing to a `String` does not fail.
        let _ = write!(text, "'{word}':{} ", places.join(","));
    }
    text
}

fn chunk(row: &Row) -> TextChunk {
    TextChunk {
        id: row.get("id"),
        language: row.get("language"),
        text: row.get("body"),
        words: row.get("words"),
    }
}
