//! Texts: corpora that tools search. They belong to no user, and hold nothing personal: unlike documents they are
//! stored in the clear, because sealed data cannot be searched.
//!
//! A corpus is made from files and can be made again, so it is not moved when a store is moved to another one.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use countersign_contract::Digest;

use super::Error;
use crate::BoxFuture;
use crate::text::{indexed_words, length, question_words};

/// Stores corpora, and searches for chunks in them.
///
/// Rules that every implementation keeps:
///
/// - a version of a corpus is there whole or not at all, for every reader and after every crash;
/// - it never changes: keeping it again does nothing;
/// - the newest [`VERSIONS_KEPT`] versions of a name are kept, so that processes with another release each find
///   their own, and older ones go with the next that is kept;
/// - the same question gets the same hits with the same scores from every store, as long as no more than
///   [`CANDIDATES_MAX`] chunks have a word of it; a store looks at no more than that, the best by its own rank.
pub trait Texts: Send + Sync + 'static {
    /// Stores a version of a corpus, unless it is stored already.
    fn keep_corpus<'a>(&'a self, corpus: &'a Arc<Corpus>) -> BoxFuture<'a, Result<(), Error>>;

    /// The chunks that contain a word of the question, best first; empty if the corpus is not kept.
    fn search<'a>(
        &'a self,
        query: &'a TextQuery,
    ) -> BoxFuture<'a, Result<Option<Vec<TextHit>>, Error>>;

    /// One chunk; `None` if there is no such chunk, or the corpus is not kept.
    fn chunk<'a>(
        &'a self,
        corpus: &'a CorpusId,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<TextChunk>, Error>>;
}

/// Number of versions of one corpus that are kept.
pub const VERSIONS_KEPT: usize = 3;

/// Maximum number of hits of a search.
pub const HITS_MAX: usize = 100;

/// Maximum number of chunks that are ranked for one search.
pub const CANDIDATES_MAX: usize = 512;

/// Maximum number of chunks in a corpus.
pub const CHUNKS_MAX: usize = 20_000;

/// Maximum length of one chunk in bytes.
pub const CHUNK_BYTES_MAX: usize = 8 * 1024;

/// Name and version of a corpus.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CorpusId {
    /// Such as `knowledge`.
    pub name: String,
    /// The digest of what it was made from.
    pub version: Digest,
}

/// Texts that are searched together, in one version.
pub struct Corpus {
    id: CorpusId,
    chunks: Vec<TextChunk>,
    ids: HashSet<String>,
    words: u32,
}

/// A piece of a text, with the words that it is found by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextChunk {
    /// Its name in the corpus.
    pub id: String,
    /// Such as `en`.
    pub language: String,
    /// The text as it is written.
    pub text: String,
    /// The text as it is indexed: letters and digits with one space between words.
    pub words: String,
}

impl TextChunk {
    /// A piece of a text. It is found by the words of its headings as well.
    pub fn new(
        id: impl Into<String>,
        language: impl Into<String>,
        text: impl Into<String>,
        headings: &[&str],
    ) -> Self {
        let text = text.into();
        let mut texts = headings.to_vec();
        texts.push(&text);
        Self {
            id: id.into(),
            language: language.into(),
            words: indexed_words(&texts),
            text,
        }
    }
}

/// Errors of chunks that cannot form a corpus.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CorpusError {
    /// The document has more than [`CHUNKS_MAX`] chunks. Usually the chunks were made too small.
    #[error("{count} chunks are too many, {CHUNKS_MAX} is the most")]
    TooMany {
        /// Number of chunks.
        count: usize,
    },
    /// Two chunks have the same name. Usually a document was added twice.
    #[error("there are two chunks {id:?}")]
    Twice {
        /// Their name.
        id: String,
    },
    /// A chunk is too long, has a zero byte in it, or its words are not those of [`TextChunk::new`].
    /// Usually the chunk was not made by that function.
    #[error(
        "the chunk {id:?} is longer than {CHUNK_BYTES_MAX} bytes, has a zero byte, or strange words"
    )]
    Unfit {
        /// Its name.
        id: String,
    },
}

impl Corpus {
    /// A corpus of these chunks. Other chunks need another version: nothing of a version is ever replaced.
    pub fn new(
        name: impl Into<String>,
        version: Digest,
        chunks: Vec<TextChunk>,
    ) -> Result<Self, CorpusError> {
        if chunks.len() > CHUNKS_MAX {
            let count = chunks.len();
            return Err(CorpusError::TooMany { count });
        }
        let mut ids = HashSet::new();
        let mut words = 0_u32;
        for chunk in &chunks {
            let id = chunk.id.clone();
            let parts = [&chunk.id, &chunk.language, &chunk.text, &chunk.words];
            let is_fit = |part: &&String| part.len() <= 8 * CHUNK_BYTES_MAX && !part.contains('\0');
            if chunk.text.len() > CHUNK_BYTES_MAX
                || !parts.iter().all(is_fit)
                || !is_plain(&chunk.words)
            {
                return Err(CorpusError::Unfit { id });
            }
            if !ids.insert(id.clone()) {
                return Err(CorpusError::Twice { id });
            }
            words = words.saturating_add(length(&chunk.words));
        }
        Ok(Self {
            id: CorpusId {
                name: name.into(),
                version,
            },
            chunks,
            ids,
            words,
        })
    }

    /// Its name and version.
    pub fn id(&self) -> &CorpusId {
        &self.id
    }

    /// Its chunks, in their order.
    pub fn chunks(&self) -> &[TextChunk] {
        &self.chunks
    }

    /// True if it has this chunk.
    pub fn has(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// Number of words in all its chunks; in Chinese, Japanese and Korean the pairs of characters are counted.
    pub fn words(&self) -> u32 {
        self.words
    }
}

impl fmt::Debug for Corpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, version, chunks) = (&self.id.name, self.id.version, self.chunks.len());
        write!(f, "Corpus({name} {version}, {chunks} chunks)")
    }
}

/// True if words have letters and digits only, so that they can stand between quotes of any database.
fn is_plain(words: &str) -> bool {
    let is_plain = |byte: u8| byte == b' ' || byte.is_ascii_alphanumeric() || !byte.is_ascii();
    words.bytes().all(is_plain)
}

/// A question to a corpus. It is made of words only, whatever was asked: no text is a query of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextQuery {
    corpus: CorpusId,
    words: Vec<String>,
    language: Option<String>,
    limit: usize,
}

impl TextQuery {
    /// A question in the words of a person or a model. Ten hits, in every language.
    pub fn new(corpus: &CorpusId, question: &str) -> Self {
        Self {
            corpus: corpus.clone(),
            words: question_words(question),
            language: None,
            limit: 10,
        }
    }

    /// Restricts the search to chunks of one language.
    pub fn language(mut self, language: impl Into<String>) -> Self {
        // A zero byte is in no language, and not every database takes one.
        self.language = Some(language.into().replace('\0', "\u{fffd}"));
        self
    }

    /// Limits the number of hits, never above [`HITS_MAX`].
    pub fn limit(mut self, hits: usize) -> Self {
        self.limit = hits.min(HITS_MAX);
        self
    }

    /// The corpus to search.
    pub fn corpus(&self) -> &CorpusId {
        &self.corpus
    }

    /// The words to search for, each once; letters and digits only.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// The language to search in; `None` if all.
    pub fn wanted_language(&self) -> Option<&str> {
        self.language.as_deref()
    }

    /// Maximum number of hits.
    pub fn hits_max(&self) -> usize {
        self.limit
    }
}

/// A chunk that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextHit {
    /// Its name in the corpus.
    pub id: String,
    /// Its language.
    pub language: String,
    /// The text as it is written.
    pub text: String,
    /// Relevance in thousandths; comparable with other hits of the same search only.
    pub score: u32,
}
