//! The tool's access to a corpus.

use std::fmt;
use std::sync::Arc;

use countersign_contract::{ErrorBody, ErrorCode, FaultSource};

use crate::ledger::{self, Corpus, Store, TextChunk, TextHit, TextQuery};
use crate::tool::ToolError;
use crate::words::Say;

/// Reads corpora: texts that belong to no user and that tools search. Found in
/// [`CallContext::texts`](crate::CallContext::texts).
///
/// A corpus is named by its content, so a version never changes. The first search stores a corpus that the store does
/// not have yet; after that it is found by the index of the store. It is made from files, and can always be made again:
/// no call depends on the time of that.
///
/// # Example
///
/// ```
/// use std::sync::Arc;
///
/// use countersign::contract::Digest;
/// use countersign::ledger::{Corpus, TextChunk};
/// use countersign::{CallContext, Principal};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let chunks = vec![
///     TextChunk::new("post#1", "en", "Batteries travel by road.", &["Post"]),
///     TextChunk::new("post.zh#1", "zh", "锂电池只能走陆运。", &["邮寄"]),
/// ];
/// let version = Digest::of_bytes(b"the files that the chunks are from");
/// let corpus = Arc::new(Corpus::new("help", version, chunks)?);
///
/// let ctx = CallContext::standalone(&Principal::user("u_1"), "{}");
/// let hits = ctx.texts().search(&corpus, "电池", None, 10).await?;
/// assert_eq!(hits[0].id, "post.zh#1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TextReader<'c> {
    store: &'c Arc<dyn Store>,
}

impl<'c> TextReader<'c> {
    pub(crate) fn new(store: &'c Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// The chunks of a corpus that answer a question best, by score and then by id; only those of one language if one
    /// is named. At most `limit`, and never more than [`HITS_MAX`](ledger::HITS_MAX).
    pub async fn search(
        &self,
        corpus: &Arc<Corpus>,
        question: &str,
        language: Option<&str>,
        limit: usize,
    ) -> Result<Vec<TextHit>, ToolError> {
        let query = TextQuery::new(corpus.id(), question).limit(limit);
        let query = match language {
            Some(language) => query.language(language),
            None => query,
        };
        if let Some(hits) = self.store.search(&query).await.map_err(failed)? {
            return Ok(hits);
        }
        self.store.keep_corpus(corpus).await.map_err(failed)?;
        let hits = self.store.search(&query).await.map_err(failed)?;
        hits.ok_or_else(|| {
            // Others keep so many versions at this moment that this one is gone again.
            let body = ErrorBody::new(ErrorCode::UpstreamError, Say::TextsReplaced);
            ToolError::from(body.source(FaultSource::Gateway).retry_after_ms(1_000))
        })
    }

    /// One chunk of a corpus as the store has it; `None` if the corpus has no such chunk.
    pub async fn chunk(
        &self,
        corpus: &Arc<Corpus>,
        id: &str,
    ) -> Result<Option<TextChunk>, ToolError> {
        if !corpus.has(id) {
            return Ok(None);
        }
        let found = self.store.chunk(corpus.id(), id).await.map_err(failed)?;
        if found.is_some() {
            return Ok(found);
        }
        self.store.keep_corpus(corpus).await.map_err(failed)?;
        self.store.chunk(corpus.id(), id).await.map_err(failed)
    }
}

impl fmt::Debug for TextReader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextReader").finish_non_exhaustive()
    }
}

fn failed(error: ledger::Error) -> ToolError {
    let body = ErrorBody::new(ErrorCode::UpstreamError, Say::TextsUnread)
        .source(FaultSource::Gateway)
        .hint(Say::SameLater);
    ToolError::from(body).with_source(error).without_effect()
}
