//! The shop's knowledge base: full text in Chinese and English, with citations that can be checked.
//!
//! The texts are files, those of [`Library::embedded`] or of a folder of the operator. Together they are a rule set, so
//! every record names the version that an answer was found in, and an old answer can be computed again. The index of
//! the store only finds chunks; the text of an answer comes from the file. A citation names the bytes of the file, and
//! [`verify`] checks it without us.

use countersign::catalog::CatalogBuilder;
use countersign::contract::Behaviour;
use countersign::contract::tool::{EvidenceRule, Replay};

mod answer;
mod chunking;
mod citation;
mod document;
mod embedded;
mod get_chunk;
mod library;
mod search;

pub use answer::{ChunkAnswer, CorpusUsed, Hit, SearchAnswer};
pub use citation::{Citation, CitationError, verify};
pub use document::{Chunk, Document};
pub(crate) use library::embedded_data;
pub use library::{Library, LibraryError};

/// The name of the rule set, and of the corpus.
pub const NAME: &str = "knowledge";

/// The tool whose answers are cited.
pub const SEARCH_TOOL: &str = "knowledge.search";

/// Adds the tools of this area.
pub(crate) fn tools(builder: CatalogBuilder) -> CatalogBuilder {
    builder.tool(search::Search).tool(get_chunk::GetChunk)
}

/// The behaviour of tools whose answers are cited. They leave evidence (A14). The same question to the same version has
/// the same answer; a text has no TTL, only a version.
fn cited() -> Behaviour {
    Behaviour {
        evidence: EvidenceRule::Required,
        replay: Replay::Pure {
            volatile: Vec::new(),
        },
        ..Behaviour::default()
    }
}
