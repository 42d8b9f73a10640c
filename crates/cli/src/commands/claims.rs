//! `countersign claims`: idempotency keys that are taken, and how to resolve those whose effect is in doubt.

use clap::ValueEnum;
use countersign::archive::{Resolution, Resolved};
use countersign::ledger::{ClaimQuery, ClaimRow, ClaimState};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::reason;
use crate::answer::{write_json, write_table};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::journal::Journal;
use crate::operations::Operation;
use crate::place::{Place, PlaceOptions, archive_failed, store_failed};
use crate::table::Table;
use crate::terminal::Terminal;

/// See which keys are taken, and say what became of a call that is in doubt
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Claims {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    List(List),
    Resolve(Resolve),
}

/// List keys, oldest first: all, or those in one state
#[derive(Debug, clap::Args, Serialize, Deserialize)]
#[command(after_long_help = "\
Examples:
  countersign claims list --state in_doubt
  countersign claims list --user u_7 --json")]
pub(crate) struct List {
    /// Only those in this state
    #[arg(long, value_enum, value_name = "STATE")]
    state: Option<State>,

    /// Only those of this user
    #[arg(long, value_name = "USER")]
    user: Option<String>,

    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
}

/// Say what became of a call that is in doubt; it is recorded
///
/// Look first, in the service that the tool calls. What happened becomes the answer of every repeat;
/// what did not happen may be called again.
#[derive(Debug, clap::Args, Serialize, Deserialize)]
#[command(
    after_long_help = "\
Examples:
  countersign claims resolve u_7 payments.charge e154ba2c --happened '{\"charge\": \"ch_1\"}' --reason 'seen in the books'
  countersign claims resolve u_7 payments.charge e154ba2c --did-not-happen --reason 'not in the books'",
    group = clap::ArgGroup::new("outcome").required(true)
)]
pub(crate) struct Resolve {
    /// On whose behalf it was called
    #[arg(value_name = "USER")]
    user: String,

    /// The tool
    #[arg(value_name = "TOOL")]
    tool: String,

    /// The key as `claims list` shows it; its beginning is enough
    #[arg(value_name = "KEY")]
    key: String,

    /// It had its effect; this is the answer
    #[arg(long, value_name = "JSON", group = "outcome")]
    happened: Option<String>,

    /// It had no effect
    #[arg(long, group = "outcome")]
    did_not_happen: bool,

    /// Why you know; it is sealed in the record
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,
}

/// The states, as the command line spells them.
#[derive(Debug, Clone, Copy, ValueEnum, Serialize, Deserialize)]
#[value(rename_all = "snake_case")]
enum State {
    /// No effect; may be claimed again
    Released,
    /// The owner may be causing the effect
    Running,
    /// Settled with an answer
    Succeeded,
    /// Settled with a final failure
    Failed,
    /// The effect may have happened
    InDoubt,
    /// Settled, and the answer is gone
    Tombstone,
}

impl From<State> for ClaimState {
    fn from(state: State) -> Self {
        match state {
            State::Released => Self::Released,
            State::Running => Self::Running,
            State::Succeeded => Self::Succeeded,
            State::Failed => Self::Failed,
            State::InDoubt => Self::InDoubt,
            State::Tombstone => Self::Tombstone,
        }
    }
}

impl Claims {
    pub(crate) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        match &self.command {
            Command::List(list) => options.perform(list, terminal),
            Command::Resolve(resolve) => {
                // What is wrong with it is told before anybody is asked.
                resolve.resolution()?;
                options.perform(resolve, terminal)
            }
        }
    }
}

impl Operation for List {
    const NAME: &'static str = "claims.list";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let query = ClaimQuery {
            state: self.state.map(ClaimState::from),
            user_id: self.user.clone(),
            limit: self.limit,
        };
        let rows = place
            .runtime
            .block_on(place.store().claims(&query))
            .map_err(store_failed)?;
        let shown: Vec<Shown<'_>> = rows.iter().map(Shown::of).collect();
        let mut table = Table::new(["CLAIMED AT", "STATE", "USER", "TOOL", "ATTEMPT", "KEY"]);
        for claim in &shown {
            table.row([
                &claim.claimed_at,
                claim.state,
                claim.user_id,
                claim.tool,
                &claim.attempt.to_string(),
                // Last, because it must not be cut: resolving needs it whole.
                &claim.key,
            ]);
        }
        write_table(terminal, &shown, &table, "there are no such keys")?;
        Ok(Exit::Ok)
    }
}

impl Operation for Resolve {
    const NAME: &'static str = "claims.resolve";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let resolution = self.resolution()?;
        let claim = self.claim(place)?;
        let mut journal = Journal::start(place)?;
        let (archive, by) = (place.archive(), &place.by);
        let resolved =
            archive.resolve_claim(&claim.scope, claim.attempt, resolution, by, &self.reason);
        let resolved = place.runtime.block_on(resolved).map_err(archive_failed)?;
        journal.sign(place)?;
        match resolved {
            Resolved::Settled(id) => {
                if terminal.is_for_programs() {
                    write_json(terminal, &json!({"evidence": id}))?;
                } else {
                    terminal.say("ok: the call is no longer in doubt")?;
                    terminal.say(format_args!("evidence: {id}"))?;
                }
                Ok(Exit::Ok)
            }
            Resolved::Fenced(id) => Err(Failure::new(format!(
                "somebody was faster, and theirs counts; what you said is recorded as {id}"
            ))
            .refused()),
            Resolved::NotInDoubt(state) => Err(Failure::new(format!(
                "the call is not in doubt any more: it is {}",
                state.as_str()
            ))
            .refused()),
            Resolved::NoClaim => Err(Failure::new("there is no such key any more").refused()),
        }
    }
}

impl Resolve {
    fn resolution(&self) -> Result<Resolution, Failure> {
        let Some(text) = &self.happened else {
            return Ok(Resolution::DidNotHappen);
        };
        let answer = serde_json::from_str(text).map_err(|error| {
            Failure::from(anyhow::Error::new(error).context("the answer is no JSON"))
                .hint("a text needs its quotes: --happened '\"ch_1\"'")
        })?;
        Ok(Resolution::Happened(answer))
    }

    /// The one claim in doubt that is meant.
    fn claim(&self, place: &Place) -> Result<ClaimRow, Failure> {
        let query = ClaimQuery {
            state: Some(ClaimState::InDoubt),
            user_id: Some(self.user.clone()),
            limit: 10_000,
        };
        let rows = place
            .runtime
            .block_on(place.store().claims(&query))
            .map_err(store_failed)?;
        let mut meant = rows.into_iter().filter(|row| {
            let key = row.scope.key.to_string();
            row.scope.tool.as_str() == self.tool && key.starts_with(&self.key)
        });
        let hint = "`countersign claims list --state in_doubt` shows those that there are";
        match (meant.next(), meant.next()) {
            (Some(row), None) => Ok(row),
            (Some(_), Some(_)) => {
                Err(Failure::new("more than one key begins so").hint("give more of it"))
            }
            (None, _) => Err(Failure::new("there is no such call in doubt").hint(hint)),
        }
    }
}

#[derive(Serialize)]
struct Shown<'a> {
    claimed_at: String,
    state: &'static str,
    user_id: &'a str,
    tool: &'a str,
    attempt: u32,
    key: String,
    request_id: &'a str,
}

impl<'a> Shown<'a> {
    fn of(row: &'a ClaimRow) -> Self {
        Self {
            claimed_at: row.claimed_at.to_string(),
            state: row.state.as_str(),
            user_id: &row.scope.user_id,
            tool: row.scope.tool.as_str(),
            attempt: row.attempt,
            key: row.scope.key.to_string(),
            request_id: row.request_id.as_str(),
        }
    }
}
