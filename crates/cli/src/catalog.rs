//! The tools that are there without any set-up: the reference tools, which run a shop, and the samples, with
//! a handful of notes to search.

use std::sync::Arc;

use countersign::Catalog;
use countersign::catalog::{Entry, Unmatched, select};
use countersign::sample::{AddNote, ClearNotes, Diagnostics, ListNotes, MemorySearch, Vat};
use countersign_gateway::nearest::nearest;

use crate::failure::Failure;

/// What `memory.search` finds.
const NOTES: [&str; 8] = [
    "agent state is kept per session and expires after a day",
    "an agent retries a call with the same key, so that it happens once",
    "the state of a draft order is one of open, confirmed, cancelled",
    "quotes hold for sixty seconds; ask again before the order",
    "tool names are lower case with a dot: area.verb",
    "buy milk and coffee for the office",
    "customs forms need the origin of every item",
    "东京的会议改到星期三",
];

/// All tools.
pub(crate) fn all() -> Result<Catalog, Failure> {
    let builder = Catalog::builder()
        .tool(MemorySearch::new(NOTES))
        .tool(Diagnostics)
        .tool(AddNote)
        .tool(ClearNotes)
        .tool(ListNotes)
        .tool(Vat);
    Ok(countersign_commerce::tools(builder).build()?)
}

/// A tool by its name or provider alias; where there is none, the nearest name is the hint.
pub(crate) fn find(catalog: &Catalog, name: &str) -> Result<Arc<Entry>, Failure> {
    match catalog.get(name) {
        Some(entry) => Ok(entry),
        None => Err(unmatched(
            &Unmatched::Name(name.to_owned()),
            &catalog.list(),
        )),
    }
}

/// The tools that names and patterns ask for; all of them where nothing is asked for.
pub(crate) fn choose(catalog: &Catalog, asked: &[String]) -> Result<Vec<Arc<Entry>>, Failure> {
    let entries = catalog.list();
    if asked.is_empty() {
        return Ok(entries);
    }
    select(&entries, asked.iter().map(String::as_str)).map_err(|error| unmatched(&error, &entries))
}

fn unmatched(error: &Unmatched, entries: &[Arc<Entry>]) -> Failure {
    let known = error.alternatives(entries);
    let hint = match nearest(error.asked(), known.iter().map(String::as_str)) {
        Some(near) => format!("did you mean {near}?"),
        None => "`countersign tools` lists those that there are".to_owned(),
    };
    Failure::new(error.to_string()).hint(hint)
}
