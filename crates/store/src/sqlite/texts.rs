//! Texts, found by FTS5.
//!
//! A corpus may be large and there is one writer, so it is written in portions, and calls get their turn in
//! between. It is not visible before the last portion has marked it as complete. A crash leaves an incomplete
//! corpus, which is removed when the next one is kept.

use std::sync::Arc;

use countersign::BoxFuture;
use countersign::ledger::{
    CANDIDATES_MAX, Corpus, CorpusId, Error, TextChunk, TextHit, TextQuery, Texts, VERSIONS_KEPT,
};
use countersign::text::{Statistics, rank};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::SqliteStore;
use super::failure::Failure;
use super::values::{bounded, unsigned};
use super::writer::Done;

/// Chunks that one job writes or removes.
const PORTION: usize = 200;

impl Texts for SqliteStore {
    fn keep_corpus<'a>(&'a self, corpus: &'a Arc<Corpus>) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let _turn = self.keeping.lock().await;
            let known = self
                .readers
                .point(|connection| kept(connection, corpus.id()))?;
            if known.is_none() {
                self.remove_incomplete().await?;
                self.write_corpus(corpus).await?;
                self.remove_incomplete().await?;
            }
            Ok(())
        })
    }

    fn search<'a>(
        &'a self,
        query: &'a TextQuery,
    ) -> BoxFuture<'a, Result<Option<Vec<TextHit>>, Error>> {
        let query = query.clone();
        self.list(move |connection| {
            let Some(kept) = kept(connection, query.corpus())? else {
                return Ok(None);
            };
            search(connection, &kept, &query).map(Some)
        })
    }

    fn chunk<'a>(
        &'a self,
        corpus: &'a CorpusId,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<TextChunk>, Error>> {
        Box::pin(async move {
            Ok(self.readers.point(|connection| {
                let mut statement = connection.prepare_cached(
                    "SELECT id, language, text, text_chunk.words FROM text_corpus
                     JOIN text_chunk ON corpus = text_corpus.number
                     WHERE name = ?1 AND version = ?2 AND complete = 1 AND id = ?3",
                )?;
                let (name, version) = (&corpus.name, corpus.version.as_bytes());
                let found = statement.query_row(params![name, version, id], chunk);
                Ok(found.optional()?)
            })?)
        })
    }
}

impl SqliteStore {
    async fn write_corpus(&self, corpus: &Arc<Corpus>) -> Result<(), Failure> {
        let new = corpus.clone();
        let begun = self.writer.run(move |session| {
            let CorpusId { name, version } = new.id();
            session.connection.execute(
                "INSERT INTO text_corpus (name, version, complete, chunks, words)
                 VALUES (?1, ?2, 0, ?3, ?4)",
                params![
                    name,
                    version.as_bytes(),
                    bounded(new.chunks().len()),
                    new.words()
                ],
            )?;
            Ok(Done::Kept(session.connection.last_insert_rowid()))
        });
        let number = begun.await?;
        for from in (0..corpus.chunks().len()).step_by(PORTION) {
            let new = corpus.clone();
            let written = self.writer.run(move |session| {
                let portion = new.chunks().iter().skip(from).take(PORTION);
                portion
                    .into_iter()
                    .try_for_each(|chunk| add(session.connection, number, chunk))?;
                Ok(Done::Kept(()))
            });
            written.await?;
        }
        let name = corpus.id().name.clone();
        let completed = self.writer.run(move |session| {
            // The new corpus becomes visible and the outdated ones disappear at the same moment.
            let connection = session.connection;
            connection.execute(
                "UPDATE text_corpus SET complete = 1 WHERE number = ?1",
                [number],
            )?;
            connection.execute(
                "UPDATE text_corpus SET complete = 0 WHERE name = ?1 AND number NOT IN (
                     SELECT number FROM text_corpus WHERE name = ?1 AND complete = 1
                     ORDER BY number DESC LIMIT ?2)",
                params![name, bounded(VERSIONS_KEPT)],
            )?;
            Ok(Done::Kept(()))
        });
        completed.await
    }

    async fn remove_incomplete(&self) -> Result<(), Failure> {
        loop {
            let removed = self
                .writer
                .run(|session| Ok(Done::Kept(remove_portion(session.connection)?)));
            if removed.await? < PORTION {
                return Ok(());
            }
        }
    }
}

/// A complete corpus.
struct Kept {
    number: i64,
    chunks: u32,
    words: u32,
}

fn kept(connection: &Connection, corpus: &CorpusId) -> Result<Option<Kept>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT number, chunks, words FROM text_corpus
         WHERE name = ?1 AND version = ?2 AND complete = 1",
    )?;
    let found = statement.query_row(params![corpus.name, corpus.version.as_bytes()], |row| {
        Ok(Kept {
            number: row.get(0)?,
            chunks: row.get(1)?,
            words: row.get(2)?,
        })
    });
    Ok(found.optional()?)
}

fn search(
    connection: &Connection,
    kept: &Kept,
    query: &TextQuery,
) -> Result<Vec<TextHit>, Failure> {
    if query.words().is_empty() {
        return Ok(Vec::new());
    }
    let mut count =
        connection.prepare_cached("SELECT count(*) FROM text_index WHERE text_index MATCH ?1")?;
    let mut chunks_with = Vec::new();
    for word in query.words() {
        let asked = expression(kept.number, std::slice::from_ref(word));
        let with = unsigned(count.query_row([asked], |row| row.get(0))?);
        chunks_with.push(u32::try_from(with).unwrap_or(u32::MAX));
    }
    let statistics = Statistics {
        chunks: kept.chunks,
        words: kept.words,
        chunks_with,
    };
    let mut found = connection.prepare_cached(
        "SELECT id, language, text, text_chunk.words FROM text_index
         JOIN text_chunk ON text_chunk.number = text_index.rowid
         WHERE text_index MATCH ?1 AND (?2 IS NULL OR language = ?2)
         ORDER BY text_index.rank, id LIMIT ?3",
    )?;
    let asked = expression(kept.number, query.words());
    let limits = params![asked, query.wanted_language(), bounded(CANDIDATES_MAX)];
    let found = found.query_map(limits, chunk)?;
    let found = found.collect::<Result<Vec<_>, _>>()?;
    Ok(rank(query.words(), &statistics, found, query.hits_max()))
}

/// Matches chunks of a corpus that have one of these words. The words have only letters and digits, so nothing
/// in them can end a quote.
fn expression(corpus: i64, words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    format!(
        "corpus : \"c{corpus}\" AND words : ({})",
        words.join(" OR ")
    )
}

fn add(connection: &Connection, corpus: i64, chunk: &TextChunk) -> Result<(), Failure> {
    let mut row = connection.prepare_cached(
        "INSERT INTO text_chunk (corpus, id, language, text, words) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    let TextChunk {
        id,
        language,
        text,
        words,
    } = chunk;
    row.execute(params![corpus, id, language, text, words])?;
    let mut index = connection
        .prepare_cached("INSERT INTO text_index (rowid, corpus, words) VALUES (?1, ?2, ?3)")?;
    let number = connection.last_insert_rowid();
    index.execute(params![number, format!("c{corpus}"), words])?;
    Ok(())
}

/// Removes some chunks of invisible corpora, and those corpora when they have none left. Returns the number of
/// chunks.
fn remove_portion(connection: &Connection) -> Result<usize, Failure> {
    let mut some = connection.prepare_cached(
        "SELECT text_chunk.number FROM text_corpus
         JOIN text_chunk ON corpus = text_corpus.number
         WHERE complete = 0 LIMIT ?1",
    )?;
    let numbers = some.query_map([bounded(PORTION)], |row| row.get(0))?;
    let numbers = numbers.collect::<Result<Vec<i64>, _>>()?;
    let mut index = connection.prepare_cached("DELETE FROM text_index WHERE rowid = ?1")?;
    let mut row = connection.prepare_cached("DELETE FROM text_chunk WHERE number = ?1")?;
    for number in &numbers {
        index.execute([number])?;
        row.execute([number])?;
    }
    if numbers.len() < PORTION {
        connection.execute("DELETE FROM text_corpus WHERE complete = 0", [])?;
    }
    Ok(numbers.len())
}

fn chunk(row: &Row<'_>) -> rusqlite::Result<TextChunk> {
    Ok(TextChunk {
        id: row.get(0)?,
        language: row.get(1)?,
        text: row.get(2)?,
        words: row.get(3)?,
    })
}
