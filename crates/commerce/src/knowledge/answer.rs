//! The answers of the knowledge tools, with their citations.

use countersign::contract::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::citation::Citation;

/// Result of a search.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct SearchAnswer {
    /// Corpus that was searched.
    pub corpus: CorpusUsed,
    /// Hits, best first.
    pub hits: Vec<Hit>,
}

/// The documents that an answer is from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct CorpusUsed {
    /// Name of the corpus.
    pub name: String,
    /// Version of the corpus; a change of one byte in a document changes it.
    pub version: Digest,
}

/// A part of a document that matches the search.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct Hit {
    /// Id of the part; `knowledge.get_chunk` returns the whole part.
    pub chunk_id: String,
    /// Id of the document.
    pub document_id: String,
    /// Title.
    pub title: String,
    /// Heading above the part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heading: Option<String>,
    /// Language of the document.
    pub language: String,
    /// Excerpt around the words that matched.
    pub snippet: String,
    /// Score in thousandths. Compare only hits of one answer.
    pub score: u32,
    /// Citation of the part.
    pub citation: Citation,
}

/// A part of a document.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct ChunkAnswer {
    /// Corpus that was read.
    pub corpus: CorpusUsed,
    /// Id of the part.
    pub chunk_id: String,
    /// Id of the document.
    pub document_id: String,
    /// Title.
    pub title: String,
    /// Heading above the part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heading: Option<String>,
    /// Language of the document.
    pub language: String,
    /// Date on which the document was written or checked.
    pub date: String,
    /// Source of the document.
    pub source: String,
    /// Text of the part.
    pub text: String,
    /// Citation of the part.
    pub citation: Citation,
    /// Id of the previous part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_chunk_id: Option<String>,
    /// Id of the next part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_chunk_id: Option<String>,
}
