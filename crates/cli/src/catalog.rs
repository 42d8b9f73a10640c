//! The tools that there are: those of the program (the reference tools, which run a shop, and the samples, with a
//! handful of notes to search), and those of a configuration.

use std::sync::Arc;
use std::time::Duration;

use countersign::catalog::{Entry, Unmatched, select};
use countersign::sample::{AddNote, ClearNotes, Diagnostics, ListNotes, MemorySearch, Vat};
use countersign::{BoxFuture, Catalog};
use countersign_config::Loaded;
use countersign_gateway::nearest::nearest;
use countersign_gateway::recorder::Recorder;
use countersign_upstream::Upstreams;
use countersign_upstream::mcp::{FirstUse, Witness};
use serde_json::json;
use tokio::runtime::Handle;

use crate::config;
use crate::failure::Failure;

pub(crate) mod assemble;

/// Texts that `memory.search` searches.
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

/// Every tool of a configuration, to be looked at and not called: no secret is read.
pub(crate) fn declared(loaded: &Loaded) -> Result<Catalog, Failure> {
    let tools = assemble::declared(loaded).map_err(config::wrong)?;
    assemble::catalog(loaded, tools).map_err(config::wrong)
}

/// Every tool of a configuration, to be called.
pub(crate) fn ready(loaded: &Loaded) -> Result<Catalog, Failure> {
    Ok(ready_with_upstreams(loaded)?.0)
}

/// Builds the catalog, and returns the upstreams too, for callers that change them later.
pub(crate) fn ready_with_upstreams(loaded: &Loaded) -> Result<(Catalog, Arc<Upstreams>), Failure> {
    let assembled = assemble::ready(loaded, None).map_err(config::wrong)?;
    let catalog = assemble::catalog(loaded, assembled.tools).map_err(config::wrong)?;
    Ok((catalog, assembled.upstreams))
}

/// Writes approvals of first lists down, in the words of an operator's approval.
#[derive(Debug)]
pub(crate) struct FirstUses(pub(crate) Recorder);

impl Witness for FirstUses {
    fn first_use<'a>(&'a self, approved: &'a FirstUse) -> BoxFuture<'a, bool> {
        let FirstUse {
            upstream,
            pin,
            tools,
        } = approved;
        let about = json!({
            "event": "upstream_approved",
            "by": "first_use",
            "approval": {
                "upstream": upstream, "pin": pin.to_string(), "before": null, "tools": tools.len(),
                "added": tools, "removed": [], "changed": [], "reason": null,
            },
        });
        Box::pin(async move {
            let kept = self.0.append(about).await;
            if let Err(error) = &kept {
                tracing::error!(
                    upstream,
                    error = error as &dyn std::error::Error,
                    "its first list is not approved, because that cannot be recorded"
                );
            }
            kept.is_ok()
        })
    }
}

/// Lists the tools of the MCP servers at start. A server that does not answer delays the start only briefly, unless its tools were never
/// listed before.
pub(crate) fn ask(upstreams: &Upstreams, catalog: &Catalog, runtime: &Handle) {
    let wait = if upstreams.waits_for_a_first_list() {
        FIRST_WAIT
    } else {
        USUAL_WAIT
    };
    runtime.block_on(upstreams.discover(catalog, wait));
}

/// Longest wait for a server of which nothing is known: it may have to be downloaded.
const FIRST_WAIT: Duration = Duration::from_secs(30);

/// Longest wait for one whose tools are known.
const USUAL_WAIT: Duration = Duration::from_secs(2);

/// Every tool that the program brings itself.
pub(crate) fn program() -> Result<Catalog, countersign::catalog::Error> {
    let builder = Catalog::builder()
        .tool(MemorySearch::new(NOTES))
        .tool(Diagnostics)
        .tool(AddNote)
        .tool(ClearNotes)
        .tool(ListNotes)
        .tool(Vat);
    countersign_commerce::tools(builder).build()
}

/// Finds a tool by its name or provider alias. The error hints at the nearest name.
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
        None => "`countersign tools` lists all tools".to_owned(),
    };
    Failure::new(error.to_string()).hint(hint)
}
