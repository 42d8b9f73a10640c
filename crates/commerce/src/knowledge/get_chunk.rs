//! `knowledge.get_chunk`, and the check of every citation before it is returned.

use countersign::contract::{
    Behaviour, ConflictReason, Digest, ErrorBody, ErrorCode, FaultSource, Source,
};
use countersign::{CallContext, Tool, ToolArgs, ToolError};
use serde::Deserialize;

use super::answer::{ChunkAnswer, CorpusUsed};
use super::citation::{Citation, verify};
use super::document::{Chunk, Document};
use super::library::Library;
use super::{NAME, SEARCH_TOOL};
use crate::words::Say;

/// The tool.
pub(super) struct GetChunk;

/// Arguments.
#[derive(Deserialize, ToolArgs)]
pub(super) struct GetChunkArgs {
    /// `chunk_id` from `knowledge.search`.
    #[arg(example = "batteries.en#2", min_length = 1, max_length = 128)]
    chunk_id: String,
    /// `citation.document_digest` of the search. The call is refused if the document has changed since.
    #[arg(pattern = "^sha256:[0-9a-f]{64}$")]
    expected_document_digest: Option<String>,
}

/// The maximum number of suggestions for an unknown id.
const SUGGESTIONS: usize = 3;

impl Tool for GetChunk {
    const NAME: &'static str = "knowledge.get_chunk";
    const DESCRIPTION: &'static str =
        "Reads one part of a document of the shop, with its citation.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Args = GetChunkArgs;
    type Output = ChunkAnswer;

    fn behaviour() -> Behaviour {
        super::cited()
    }

    async fn call(&self, ctx: &CallContext, args: GetChunkArgs) -> Result<ChunkAnswer, ToolError> {
        let library = Library::in_force(ctx)?;
        let (document, _) = library
            .chunk(&args.chunk_id)
            .ok_or_else(|| unknown(&library, &args.chunk_id))?;
        if let Some(expected) = &args.expected_document_digest {
            check_unchanged(document, expected)?;
        }
        let stored = ctx.texts().chunk(library.corpus(), &args.chunk_id).await?;
        let text = stored.map(|chunk| chunk.text).unwrap_or_default();
        let (document, chunk, citation) = cited(&library, &args.chunk_id, &text)?;
        ctx.source(source(ctx, document));
        let neighbour = |step: isize| {
            let at = document.chunks().iter().position(|own| own == chunk)?;
            let neighbour = document.chunks().get(at.checked_add_signed(step)?)?;
            Some(neighbour.id.clone())
        };
        Ok(ChunkAnswer {
            corpus: CorpusUsed {
                name: NAME.to_owned(),
                version: library.version(),
            },
            chunk_id: args.chunk_id,
            document_id: document.id.clone(),
            title: document.title.clone(),
            heading: chunk.heading.clone(),
            language: document.language.clone(),
            date: document.date.clone(),
            source: document.source.clone(),
            previous_chunk_id: neighbour(-1),
            next_chunk_id: neighbour(1),
            text,
            citation,
        })
    }
}

/// Makes the citation of a chunk that a store returned, if its text is byte for byte the range of the document that the
/// citation names. Any difference is our own fault, and is never answered.
pub(super) fn cited<'l>(
    library: &'l Library,
    chunk_id: &str,
    stored: &str,
) -> Result<(&'l Document, &'l Chunk, Citation), ToolError> {
    let (document, chunk) = library
        .chunk(chunk_id)
        .ok_or_else(|| fault(chunk_id, "the documents have no such part"))?;
    let citation = document.cite(chunk);
    let text = verify(&citation, document.text().as_bytes());
    let text = text.map_err(|error| fault(chunk_id, error))?;
    if text != stored {
        return Err(fault(chunk_id, "the store has another text"));
    }
    Ok((document, chunk, citation))
}

/// The document as a source of a reply.
pub(super) fn source(ctx: &CallContext, document: &Document) -> Source {
    Source {
        kind: "document".to_owned(),
        name: document.id.clone(),
        hash: document.digest().to_string(),
        ts: ctx.now().to_string(),
    }
}

fn fault(chunk_id: &str, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ToolError {
    let chunk_id = chunk_id.to_owned();
    let mut body = ErrorBody::new(ErrorCode::UpstreamError, Say::TextMismatch { chunk_id })
        .source(FaultSource::Gateway)
        .hint(Say::TellOperator);
    body.details.retryable = false;
    ToolError::from(body).with_source(cause).without_effect()
}

/// Checks that the document is still the one that was cited.
fn check_unchanged(document: &Document, expected: &str) -> Result<(), ToolError> {
    let found = document.digest();
    if expected.parse::<Digest>() == Ok(found) {
        return Ok(());
    }
    let message = Say::DocumentChanged {
        document_id: document.id.clone(),
    };
    Err(ToolError::conflict(ConflictReason::Version, message)
        .field("/expected_document_digest")
        .detail("expected_document_digest", expected)
        .detail("document_digest", found.to_string())
        .hint(Say::CiteAnew {
            tool: SEARCH_TOOL.to_owned(),
        }))
}

fn unknown(library: &Library, chunk_id: &str) -> ToolError {
    let message = Say::NoPart {
        chunk_id: chunk_id.to_owned(),
    };
    let error = ToolError::not_found(message).field("/chunk_id");
    let document = chunk_id
        .rsplit_once('#')
        .map_or(chunk_id, |(document, _)| document);
    if let Some(document) = library.document(document) {
        return error.hint(Say::PartsOf {
            document_id: document.id.clone(),
            count: document.chunks().len().to_string(),
        });
    }
    let nearest = nearest(library, document);
    let tool = SEARCH_TOOL.to_owned();
    let hint = match nearest.first().cloned() {
        Some(near) => Say::IsPartMeant { near, tool },
        None => Say::FindParts { tool },
    };
    error.detail("nearest", nearest).hint(hint)
}

/// The first chunks of the documents with the most similar ids.
fn nearest(library: &Library, document: &str) -> Vec<String> {
    let folded = document.to_lowercase();
    let mut alike: Vec<(f64, &str)> = library
        .documents()
        .iter()
        .map(|known| {
            (
                strsim::jaro_winkler(&folded, &known.id.to_lowercase()),
                known.id.as_str(),
            )
        })
        .filter(|(likeness, _)| *likeness >= 0.8)
        .collect();
    alike.sort_by(|(a, one), (b, other)| b.total_cmp(a).then(one.cmp(other)));
    let nearest = alike.into_iter().take(SUGGESTIONS);
    nearest.map(|(_, id)| format!("{id}#1")).collect()
}
