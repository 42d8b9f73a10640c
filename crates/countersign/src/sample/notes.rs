//! Notes that stay: the smallest tools with state, through the call's unit of work.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::contract::tool::{Change, Confirmation, EvidenceRule};
use crate::contract::{Behaviour, Effect};
use crate::state::Collection;
use crate::words::Say;
use crate::{CallContext, DryRun, Question, Tool, ToolArgs, ToolError};

/// The collection of notes; scanned, so that adding and listing at the same moment notice each other.
const NOTES: Collection = Collection::of_user("note").scanned();

/// Maximum number of notes of a user.
const NOTES_MAX: usize = 1_000;

/// `notes.add`: keeps a note of the user.
#[derive(Debug, Clone, Copy)]
pub struct AddNote;

/// Arguments of `notes.add`.
#[derive(Debug, Clone, Deserialize, ToolArgs)]
pub struct AddNoteArgs {
    /// Text of the note.
    #[arg(example = "buy milk", max_length = 2000, sensitive = "personal")]
    pub text: String,
}

/// A note that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Note {
    /// Id of the note, unique for the user.
    pub id: String,
    /// Text of the note.
    pub text: String,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    text: String,
}

impl Tool for AddNote {
    const NAME: &'static str = "notes.add";
    const DESCRIPTION: &'static str = "Stores a note.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    /// Nothing but the state is changed, and a dry run does not commit it.
    const DRY_RUN: DryRun = DryRun::Simulate;
    type Args = AddNoteArgs;
    type Output = Note;

    fn behaviour() -> Behaviour {
        Behaviour {
            effect: Effect::Write,
            change: Change::Adds,
            evidence: EvidenceRule::Required,
            ..Behaviour::default()
        }
    }

    async fn call(&self, ctx: &CallContext, args: AddNoteArgs) -> Result<Note, ToolError> {
        let state = ctx.state();
        let kept: Vec<(String, Stored)> = state.scan(&NOTES, "", NOTES_MAX).await?;
        if kept.len() >= NOTES_MAX {
            let most = NOTES_MAX.to_string();
            return Err(ToolError::invalid("", Say::TooManyNotes { most }));
        }
        let id = format!("n_{:04}", kept.len() + 1);
        let note = Stored { text: args.text };
        state.put(&NOTES, &id, &note).await?;
        let text = note.text;
        Ok(Note { id, text })
    }
}

/// `notes.list`: the notes of the user.
#[derive(Debug, Clone, Copy)]
pub struct ListNotes;

/// Arguments of `notes.list`.
#[derive(Debug, Clone, Deserialize, ToolArgs)]
pub struct ListNotesArgs {
    /// Maximum number of notes.
    #[arg(default = 20, min = 1, max = 1000, harmless)]
    pub limit: u32,
}

impl Tool for ListNotes {
    const NAME: &'static str = "notes.list";
    const DESCRIPTION: &'static str = "Lists the stored notes, oldest first.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Args = ListNotesArgs;
    type Output = Vec<Note>;

    async fn call(&self, ctx: &CallContext, args: ListNotesArgs) -> Result<Vec<Note>, ToolError> {
        let limit = args.limit as usize;
        let kept: Vec<(String, Stored)> = ctx.state().scan(&NOTES, "", limit).await?;
        let note = |(id, stored): (String, Stored)| Note {
            id,
            text: stored.text,
        };
        Ok(kept.into_iter().map(note).collect())
    }
}

/// `notes.clear`: forgets notes of the user, once the user has confirmed it.
#[derive(Debug, Clone, Copy)]
pub struct ClearNotes;

/// Arguments of `notes.clear`.
#[derive(Debug, Clone, Deserialize, ToolArgs)]
pub struct ClearNotesArgs {
    /// Number of the oldest notes to keep.
    #[arg(default = 0, min = 0, max = 1000, harmless)]
    pub keep: u32,
}

/// Answer of `notes.clear`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Cleared {
    /// Number of deleted notes.
    pub cleared: usize,
}

/// Maximum number of notes that are cleared at once: a call writes only a limited number of documents.
const CLEARED_MAX: usize = 200;

impl Tool for ClearNotes {
    const NAME: &'static str = "notes.clear";
    const DESCRIPTION: &'static str = "Deletes notes, the newest first.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DRY_RUN: DryRun = DryRun::Simulate;
    type Args = ClearNotesArgs;
    type Output = Cleared;

    fn behaviour() -> Behaviour {
        Behaviour {
            confirmation: Confirmation::Always,
            ..AddNote::behaviour()
        }
    }

    async fn call(&self, ctx: &CallContext, args: ClearNotesArgs) -> Result<Cleared, ToolError> {
        let state = ctx.state();
        let kept: Vec<(String, Stored)> = state.scan(&NOTES, "", NOTES_MAX).await?;
        let over = kept.iter().skip(args.keep as usize).rev();
        let mut cleared = 0;
        for (id, _) in over.take(CLEARED_MAX) {
            state.delete(&NOTES, id).await?;
            cleared += 1;
        }
        Ok(Cleared { cleared })
    }

    async fn question(
        &self,
        ctx: &CallContext,
        args: ClearNotesArgs,
    ) -> Result<Option<Question>, ToolError> {
        let kept: Vec<(String, Stored)> = ctx.state().scan(&NOTES, "", NOTES_MAX).await?;
        let over = kept.len().saturating_sub(args.keep as usize);
        let cleared = over.min(CLEARED_MAX);
        let count = cleared.to_string();
        let question = Question::new(Say::ForgetNotes { count })
            .line(Say::NotesNow, kept.len().to_string())
            .line(Say::NotesAfterwards, (kept.len() - cleared).to_string())
            .irreversible(Say::NotesAreGone);
        Ok(Some(question))
    }
}
