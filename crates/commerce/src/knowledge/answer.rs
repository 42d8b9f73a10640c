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
    /// Best first.
    pub hits: Vec<Hit>,
}

/// Which texts an answer is from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct CorpusUsed {
    /// Its name.
    pub name: String,
    /// Its version: one changed byte of one document is another one.
    pub version: Digest,
}

/// A part of a document that answers.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct Hit {
    /// `knowledge.get_chunk` reads all of it by this.
    pub chunk_id: String,
    /// The document.
    pub document_id: String,
    /// Title.
    pub title: String,
    /// The heading that the part stands under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heading: Option<String>,
    /// Its language.
    pub language: String,
    /// The words that were found and what stands around them, as they are written.
    pub snippet: String,
    /// Score in thousandths; only for comparing hits of one answer.
    pub score: u32,
    /// Citation.
    pub citation: Citation,
}

/// A part of a document.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct ChunkAnswer {
    /// Corpus that was read.
    pub corpus: CorpusUsed,
    /// Its name.
    pub chunk_id: String,
    /// The document.
    pub document_id: String,
    /// Title.
    pub title: String,
    /// The heading that the part stands under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heading: Option<String>,
    /// Its language.
    pub language: String,
    /// The day that the document was written or checked.
    pub date: String,
    /// Source.
    pub source: String,
    /// The part, as it is written.
    pub text: String,
    /// Citation.
    pub citation: Citation,
    /// The part before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_chunk_id: Option<String>,
    /// The part after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_chunk_id: Option<String>,
}
