//! `knowledge.search`.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use countersign::contract::Behaviour;
use countersign::ledger::TextHit;
use countersign::text::{excerpt, question_words};
use countersign::{CallContext, Tool, ToolArgs, ToolError};
use serde::Deserialize;

use super::answer::{CorpusUsed, Hit, SearchAnswer};
use super::library::Library;
use super::{NAME, cited, get_chunk};
use crate::words::Say;

/// The tool.
pub(super) struct Search;

/// Arguments.
#[derive(Deserialize, ToolArgs)]
pub(super) struct SearchArgs {
    /// Search words or a question, in Chinese or English.
    #[arg(
        example = "can I send a power bank by post",
        min_length = 1,
        max_length = 500
    )]
    query: String,
    /// Language of the results, such as en or zh.
    #[arg(example = "zh", min_length = 2, max_length = 35)]
    language: Option<String>,
    /// Maximum number of hits.
    #[arg(default = 5, min = 1, max = 20, harmless)]
    limit: u32,
}

/// The maximum length of a snippet, in characters.
const SNIPPET_CHARS_MAX: usize = 200;

impl Tool for Search {
    const NAME: &'static str = super::SEARCH_TOOL;
    const DESCRIPTION: &'static str = "Searches the shop's texts about shipping, taxes, returns, customs, batteries, payment, privacy, \
        care and more. Cite chunk_id and citation.document_digest. knowledge.get_chunk reads a whole \
        hit.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Args = SearchArgs;
    type Output = SearchAnswer;

    fn behaviour() -> Behaviour {
        cited()
    }

    async fn call(&self, ctx: &CallContext, args: SearchArgs) -> Result<SearchAnswer, ToolError> {
        let library = Library::in_force(ctx)?;
        let language = wanted(&library, args.language.as_deref())?;
        let (texts, corpus) = (ctx.texts(), library.corpus());
        let limit = args.limit as usize;
        let found = texts.search(corpus, &args.query, language.as_deref(), limit);
        let mut found = found.await?;
        if let Some(preferred) = preferred(&library, ctx, &args).filter(|_| language.is_none()) {
            let more = texts.search(corpus, &args.query, Some(&preferred), limit);
            found = merged(found, more.await?, &preferred, limit);
        }
        if found.is_empty() {
            nothing_found(ctx);
        }
        let words = question_words(&args.query);
        let hits = found.into_iter().map(|found| hit(&library, &words, found));
        let hits = hits.collect::<Result<Vec<Hit>, _>>()?;
        let documents: BTreeSet<&str> = hits.iter().map(|hit| hit.document_id.as_str()).collect();
        for document in documents.into_iter().filter_map(|id| library.document(id)) {
            ctx.source(get_chunk::source(ctx, document));
        }
        Ok(SearchAnswer {
            corpus: CorpusUsed {
                name: NAME.to_owned(),
                version: library.version(),
            },
            hits,
        })
    }
}

/// The requested language, as the documents write it.
fn wanted(library: &Library, language: Option<&str>) -> Result<Option<String>, ToolError> {
    let Some(asked) = language else {
        return Ok(None);
    };
    let primary = primary(asked);
    let known = library.languages();
    if known.contains(primary.as_str()) {
        return Ok(Some(primary));
    }
    let known: Vec<&str> = known.into_iter().collect();
    let (language, values) = (asked.to_owned(), known.join(", "));
    Err(ToolError::invalid("/language", Say::NoTextsIn { language })
        .hint(Say::OneOfOrNone { values }))
}

/// The language of the request, else that of the question; `None` if there are no texts in it.
fn preferred(library: &Library, ctx: &CallContext, args: &SearchArgs) -> Option<String> {
    let locale = ctx.request().locale.as_deref();
    let is_han = |letter: char| matches!(letter, '\u{3400}'..='\u{9fff}');
    let of_question = if args.query.contains(is_han) {
        "zh"
    } else {
        "en"
    };
    let language = locale.map_or_else(|| of_question.to_owned(), primary);
    let is_known = library.languages().contains(language.as_str());
    is_known.then_some(language)
}

/// The language of a BCP 47 tag.
fn primary(tag: &str) -> String {
    let primary = tag.split(['-', '_']).next().unwrap_or_default();
    primary.to_ascii_lowercase()
}

/// Merges both lists. A hit in the language of the request counts half as much again: it comes first if it is about as
/// good, and not if it only has a word in common.
fn merged(all: Vec<TextHit>, own: Vec<TextHit>, language: &str, limit: usize) -> Vec<TextHit> {
    let others = all.into_iter().filter(|hit| hit.language != language);
    let own = own.into_iter().map(|hit| TextHit {
        score: hit.score.saturating_add(hit.score / 2),
        ..hit
    });
    let mut merged: Vec<TextHit> = own.chain(others).collect();
    merged.sort_by(|a, b| (Reverse(a.score), &a.id).cmp(&(Reverse(b.score), &b.id)));
    merged.truncate(limit);
    merged
}

fn nothing_found(ctx: &CallContext) {
    ctx.remark("NOTHING_FOUND", Say::NothingFound);
}

fn hit(library: &Library, words: &[String], found: TextHit) -> Result<Hit, ToolError> {
    let (document, chunk, citation) = get_chunk::cited(library, &found.id, &found.text)?;
    let snippet = excerpt(&found.text, words, SNIPPET_CHARS_MAX);
    Ok(Hit {
        chunk_id: found.id,
        document_id: document.id.clone(),
        title: document.title.clone(),
        heading: chunk.heading.clone(),
        language: found.language,
        snippet: found.text.get(snippet).unwrap_or_default().to_owned(),
        score: found.score,
        citation,
    })
}
