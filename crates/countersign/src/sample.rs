//! Small tools, written with the public interface only (B21): two without state, three with notes, one of them with the
//! user's confirmation, and one that can be replayed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::contract::Issue;
use crate::words::Say;
use crate::{CallContext, Tool, ToolArgs, ToolError};

mod notes;
mod vat;

pub use notes::{
    AddNote, AddNoteArgs, ClearNotes, ClearNotesArgs, Cleared, ListNotes, ListNotesArgs, Note,
};
pub use vat::{Vat, VatAnswer, VatArgs};

/// `memory.search`: finds the notes that share words with a query.
#[derive(Debug, Clone)]
pub struct MemorySearch {
    notes: Vec<String>,
}

impl MemorySearch {
    /// Searches these notes.
    pub fn new<T: Into<String>>(notes: impl IntoIterator<Item = T>) -> Self {
        Self {
            notes: notes.into_iter().map(Into::into).collect(),
        }
    }
}

/// Arguments of `memory.search`.
#[derive(Debug, Clone, Deserialize, ToolArgs)]
pub struct MemorySearchArgs {
    /// Words to search for.
    #[arg(example = "milk")]
    pub query: String,
    /// Maximum number of notes.
    #[arg(default = 3, min = 1, max = 50, harmless)]
    pub limit: u32,
}

/// One note that `memory.search` found.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Found {
    /// The note.
    pub text: String,
    /// Share of the query's words that the note contains.
    pub score: f64,
}

impl Tool for MemorySearch {
    const NAME: &'static str = "memory.search";
    const DESCRIPTION: &'static str = "Finds notes by their words, best first.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Args = MemorySearchArgs;
    type Output = Vec<Found>;

    async fn call(&self, _: &CallContext, args: MemorySearchArgs) -> Result<Vec<Found>, ToolError> {
        let wanted: Vec<String> = words(&args.query).collect();
        if wanted.is_empty() {
            return Err(ToolError::invalid("/query", Say::NoWord));
        }
        let mut found: Vec<Found> = self
            .notes
            .iter()
            .filter_map(|note| {
                let held: Vec<String> = words(note).collect();
                let hits = wanted.iter().filter(|word| held.contains(word)).count();
                (hits > 0).then(|| Found {
                    text: note.clone(),
                    score: f64::from(hits as u32) / f64::from(wanted.len() as u32),
                })
            })
            .collect();
        // Stable: notes with the same score stay in their own order.
        found.sort_by(|a, b| b.score.total_cmp(&a.score));
        found.truncate(args.limit as usize);
        Ok(found)
    }
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

/// `diagnostics.echo`: answers the arguments, the binder's changes, and facts about the call.
#[derive(Debug, Clone, Copy)]
pub struct Diagnostics;

/// Arguments of `diagnostics.echo`.
#[derive(Debug, Clone, Deserialize, ToolArgs)]
pub struct DiagnosticsArgs {
    /// Any object.
    pub payload: Option<Map<String, Value>>,
    /// A note.
    pub note: Option<String>,
}

/// Answer of `diagnostics.echo`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Diagnosis {
    /// The payload as it was bound.
    pub payload: Option<Map<String, Value>>,
    /// The note as it was bound.
    pub note: Option<String>,
    /// Size of the arguments as sent, in bytes.
    pub raw_bytes: usize,
    /// Changes by the binder.
    pub issues: Vec<Issue>,
    /// `traceparent` header for a downstream call.
    pub traceparent: String,
    /// Time of the call.
    pub at: String,
    /// Time left for the call.
    pub remaining_ms: u64,
}

impl Tool for Diagnostics {
    const NAME: &'static str = "diagnostics.echo";
    const DESCRIPTION: &'static str = "Reports the arguments as received and as bound.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Args = DiagnosticsArgs;
    type Output = Diagnosis;

    async fn call(&self, ctx: &CallContext, args: DiagnosticsArgs) -> Result<Diagnosis, ToolError> {
        Ok(Diagnosis {
            payload: args.payload,
            note: args.note,
            raw_bytes: ctx.raw_arguments().len(),
            issues: ctx.issues().to_vec(),
            traceparent: ctx.traceparent(),
            at: ctx.now().to_string(),
            remaining_ms: u64::try_from(ctx.remaining().as_millis()).unwrap_or(u64::MAX),
        })
    }
}
