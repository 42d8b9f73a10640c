//! The tools that are there without any set-up: the reference tools, which run a shop, and the samples, with
//! a handful of notes to search.

use std::sync::Arc;

use countersign::Catalog;
use countersign::catalog::Entry;
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
    catalog.get(name).ok_or_else(|| {
        let tools = catalog.list();
        let known = tools.iter().map(|entry| entry.name().as_str());
        let hint = match nearest(name, known) {
            Some(near) => format!("did you mean {near}?"),
            None => "`countersign tools` lists those that there are".to_owned(),
        };
        Failure::new(format!("there is no tool {name:?}")).hint(hint)
    })
}
