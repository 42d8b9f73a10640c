//! Search for tools: BM25 over their names, descriptions and arguments, in English and Chinese, with the words and the rank that
//! every text of this program is found by ([`countersign::text`]). A tool whose name is made of the question's words gains on that.
//!
//! Only the tools that the caller may call are counted, so that no score tells of others.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use countersign::catalog::Entry;
use countersign::contract::{Digest, ToolSpec};
use countersign::ledger::TextChunk;
use countersign::text::{self, Statistics, indexed_words, question_words};
use serde_json::Value;

use super::REMEMBERED_MAX;

/// Gain of a name that is made of the question's words and of no others.
const NAME_GAIN: f64 = 3.0;

/// Maximum part of a description that is indexed, in bytes.
const TEXT_BYTES_MAX: usize = 4 * 1024;

/// Maximum number of arguments of a tool that are indexed.
const ARGUMENTS_MAX: usize = 32;

/// Maximum number of areas that a search without a result lists.
const AREAS_MAX: usize = 50;

/// The words of every tool that was ever searched, by the digest of its declaration.
#[derive(Default)]
pub(super) struct Index {
    known: Mutex<HashMap<Digest, Arc<Indexed>>>,
}

/// The words of one tool.
struct Indexed {
    chunk: TextChunk,
    /// Words of its name, each once.
    name: BTreeSet<String>,
}

/// Result of a search.
pub(super) struct Found {
    /// The tools, best first.
    pub(super) tools: Vec<Arc<Entry>>,
    /// Number of tools that have a word of the question.
    pub(super) count: usize,
}

impl Index {
    /// The tools that have a word of the question, best first, at most `limit`. A tool whose very name is asked for comes first.
    pub(super) fn search(&self, entries: &[Arc<Entry>], question: &str, limit: usize) -> Found {
        let words = question_words(&spaced(question));
        let indexed: Vec<Arc<Indexed>> = entries.iter().map(|it| self.indexed(it)).collect();
        let (statistics, candidates) = looked_through(&words, &indexed);
        let names = Names::of(&words, &indexed);
        let count = candidates.len();
        let hits = text::rank(&words, &statistics, candidates, count);
        let by_name: HashMap<&str, (&Arc<Entry>, &Arc<Indexed>)> = entries
            .iter()
            .zip(&indexed)
            .map(|(entry, indexed)| (entry.name().as_str(), (entry, indexed)))
            .collect();
        let asked = question.trim();
        let mut ranked: Vec<(bool, f64, &Arc<Entry>)> = hits
            .iter()
            .filter_map(|hit| {
                let (entry, indexed) = by_name.get(hit.id.as_str())?;
                let is_asked = entry.name().as_str() == asked || entry.alias() == asked;
                let gain = 1.0 + NAME_GAIN * names.likeness(&indexed.name);
                // In whole thousandths, so that the last bit of a logarithm decides nothing.
                let score = (f64::from(hit.score) * gain).round();
                Some((is_asked, score, *entry))
            })
            .collect();
        ranked.sort_by(|(is_asked, score, entry), (is_other, other_score, other)| {
            is_other
                .cmp(is_asked)
                .then(other_score.total_cmp(score))
                .then_with(|| entry.name().cmp(other.name()))
        });
        let tools = ranked
            .into_iter()
            .take(limit)
            .map(|(.., entry)| entry.clone());
        Found {
            tools: tools.collect(),
            count,
        }
    }

    fn indexed(&self, entry: &Entry) -> Arc<Indexed> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(indexed) = known.get(&entry.digest()) {
            return indexed.clone();
        }
        let indexed = Arc::new(indexed_of(entry.spec()));
        if known.len() >= REMEMBERED_MAX {
            known.clear();
        }
        known.insert(entry.digest(), indexed.clone());
        indexed
    }
}

/// The chunks that have a word of the question, and what all of them say about its words.
fn looked_through(words: &[String], indexed: &[Arc<Indexed>]) -> (Statistics, Vec<TextChunk>) {
    let places = words.iter().enumerate();
    let places: HashMap<&str, usize> = places.map(|(at, word)| (word.as_str(), at)).collect();
    let mut statistics = Statistics {
        chunks: u32::try_from(indexed.len()).unwrap_or(u32::MAX),
        words: 0,
        chunks_with: vec![0; words.len()],
    };
    let mut candidates = Vec::new();
    for Indexed { chunk, .. } in indexed.iter().map(|it| &**it) {
        statistics.words = statistics.words.saturating_add(text::length(&chunk.words));
        let found = chunk.words.split(' ').filter_map(|word| places.get(word));
        let found: BTreeSet<usize> = found.copied().collect();
        for place in &found {
            if let Some(count) = statistics.chunks_with.get_mut(*place) {
                *count += 1;
            }
        }
        if !found.is_empty() {
            candidates.push(chunk.clone());
        }
    }
    (statistics, candidates)
}

/// Weights of the words of names: the fewer names have a word, the more it tells.
struct Names<'w> {
    question: BTreeSet<&'w str>,
    weights: HashMap<&'w str, f64>,
    /// The weight of a word that no name has.
    unknown: f64,
}

impl<'w> Names<'w> {
    fn of(question: &'w [String], indexed: &'w [Arc<Indexed>]) -> Self {
        let mut counts: HashMap<&str, u32> = HashMap::new();
        for word in indexed.iter().flat_map(|it| &it.name) {
            *counts.entry(word).or_default() += 1;
        }
        let all = f64::from(u32::try_from(indexed.len()).unwrap_or(u32::MAX));
        let weight = |with: f64| (1.0 + (all - with + 0.5).max(0.0) / (with + 0.5)).ln();
        let weights = counts.into_iter();
        let weights = weights.map(|(word, with)| (word, weight(f64::from(with))));
        Self {
            question: question.iter().map(String::as_str).collect(),
            weights: weights.collect(),
            unknown: weight(0.0),
        }
    }

    /// From 0, no word of the question, to 1, the words of the question and no others.
    fn likeness(&self, name: &BTreeSet<String>) -> f64 {
        let weight = |word: &str| self.weights.get(word).copied().unwrap_or(self.unknown);
        let shared = name
            .iter()
            .filter(|word| self.question.contains(word.as_str()));
        let shared: f64 = shared.map(|word| weight(word)).sum();
        let of_name: f64 = name.iter().map(|word| weight(word)).sum();
        let of_question: f64 = self.question.iter().map(|word| weight(word)).sum();
        let both = of_name + of_question;
        if both > 0.0 { 2.0 * shared / both } else { 0.0 }
    }
}

/// The areas of these tools, by the first word of their names, with how many tools each has; the largest first.
pub(super) fn areas(entries: &[Arc<Entry>]) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in entries {
        let name = entry.name().as_str();
        let area = name.split(['.', '_', '-', '/']).next().unwrap_or(name);
        *counts.entry(area).or_default() += 1;
    }
    let mut areas: Vec<(String, usize)> = counts
        .into_iter()
        .map(|(area, count)| (area.to_owned(), count))
        .collect();
    areas.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
    areas.truncate(AREAS_MAX);
    areas
}

fn indexed_of(spec: &ToolSpec) -> Indexed {
    let name = spaced(spec.name.as_str());
    let schema = spec.json_schema();
    let arguments = arguments(&schema);
    let mut texts: Vec<&str> = vec![&name];
    texts.extend(spec.title.as_deref());
    texts.push(start(&spec.description));
    texts.push(&arguments);
    let chunk = TextChunk {
        id: spec.name.to_string(),
        language: String::new(),
        text: String::new(),
        words: indexed_words(&texts),
    };
    let name = indexed_words(&[&name]);
    Indexed {
        chunk,
        name: name.split(' ').map(str::to_owned).collect(),
    }
}

/// Names and descriptions of the arguments.
fn arguments(schema: &Value) -> String {
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut text = String::new();
    for (name, property) in properties.into_iter().flatten().take(ARGUMENTS_MAX) {
        let description = property.get("description").and_then(Value::as_str);
        text.push_str(&spaced(name));
        text.push(' ');
        text.push_str(start(description.unwrap_or_default()));
        text.push('\n');
        if text.len() > TEXT_BYTES_MAX {
            break;
        }
    }
    text
}

/// A name as words: `crm.createTicket` is `crm create Ticket`.
fn spaced(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 8);
    let mut was_small = false;
    for letter in name.chars() {
        if letter.is_uppercase() && was_small {
            words.push(' ');
        }
        was_small = letter.is_lowercase() || letter.is_ascii_digit();
        words.push(if matches!(letter, '_' | '.' | '-' | '/' | ':') {
            ' '
        } else {
            letter
        });
    }
    words
}

fn start(text: &str) -> &str {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use countersign::contract::ToolName;
    use countersign::{Arguments, BoxFuture, CallContext, Catalog, DynTool, Reply, ToolError};

    use super::*;

    fn entries() -> Vec<Arc<Entry>> {
        let tools = [
            (
                "crm.createTicket",
                "Opens a support ticket for a customer. 新建客户工单。",
            ),
            ("crm.list_tickets", "Lists the tickets of a customer."),
            (
                "billing.refund",
                "Pays money back to a customer. 退款给客户。",
            ),
            (
                "weather.forecast",
                "Tells the weather of the next days. 天气预报。",
            ),
        ];
        let mut builder = Catalog::builder();
        for (name, description) in tools {
            let spec = ToolSpec::new(ToolName::new(name).unwrap(), description);
            builder = builder.dyn_tool(Arc::new(Still(spec)));
        }
        builder.build().unwrap().list()
    }

    struct Still(ToolSpec);

    impl DynTool for Still {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }

        fn call<'a>(
            &'a self,
            _: &'a CallContext,
            _: Arguments,
        ) -> BoxFuture<'a, Result<Reply, ToolError>> {
            Box::pin(async { Ok(Reply::from(Value::Null)) })
        }
    }

    #[track_caller]
    fn check(question: &str, expected: &[&str]) {
        let found = Index::default().search(&entries(), question, 10);
        let names: Vec<&str> = found.tools.iter().map(|it| it.name().as_str()).collect();
        assert_eq!(names, expected, "{question}");
        assert_eq!(found.count, expected.len(), "{question}");
    }

    #[test]
    fn tools_are_found_by_what_they_do_in_both_languages() {
        check("create a ticket", &["crm.createTicket", "crm.list_tickets"]);
        // The name that says it and nothing else comes before one that mentions it.
        check("list tickets", &["crm.list_tickets", "crm.createTicket"]);
        check("refunds", &["billing.refund"]);
        check("退款", &["billing.refund"]);
        check("天气", &["weather.forecast"]);
        check("工单", &["crm.createTicket"]);
        check("submarine", &[]);
        check("", &[]);
    }

    #[test]
    fn the_name_itself_comes_first() {
        for question in ["crm.list_tickets", "crm_list_tickets"] {
            let found = Index::default().search(&entries(), question, 1);
            let first = found.tools.first().map(|it| it.name().to_string());
            assert_eq!(first.as_deref(), Some("crm.list_tickets"));
        }
    }

    #[test]
    fn areas_are_counted() {
        let areas = areas(&entries());
        assert_eq!(areas.first(), Some(&("crm".to_owned(), 2)));
        assert_eq!(areas.len(), 3);
    }
}
