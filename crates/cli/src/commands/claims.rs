//! `countersign claims`: idempotency keys that are taken, and how to resolve those whose effect is in doubt.

use clap::ValueEnum;
use countersign::archive::{KeyedClaim, Resolution, Resolved};
use countersign::executor::LookedUp;
use countersign::ledger::{ClaimQuery, ClaimRow, ClaimState};
use countersign::rules::Rules;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::reason;
use crate::answer::{write_json, write_table};
use crate::catalog;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::journal::Journal;
use crate::operations::Operation;
use crate::place::{Place, PlaceOptions, archive_failed, store_failed};
use crate::table::Table;
use crate::terminal::Terminal;

pub(crate) mod forget;

use forget::Forget;

/// List idempotency keys, settle calls that are in doubt, and forget old keys
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
    Forget(Forget),
}

/// List idempotency keys with the state of their calls, oldest first
#[derive(Debug, clap::Args, Serialize, Deserialize)]
#[command(after_long_help = "\
Examples:
  countersign claims list --state in_doubt
  countersign claims list --key order-4711
  countersign claims list --user u_7 --json

--key takes the caller's idempotency key, the key that your service received, or the KEY of this list.")]
pub(crate) struct List {
    /// Only keys in this state
    #[arg(long, value_enum, value_name = "STATE")]
    state: Option<State>,

    /// Only keys of this user
    #[arg(long, value_name = "USER")]
    user: Option<String>,

    /// Only this key: the caller's, the service's, or the first 8 digits or more of KEY
    #[arg(long, value_name = "KEY")]
    key: Option<String>,

    /// Maximum number of rows
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
}

/// Settle a call that is in doubt: state whether its effect happened, or ask its tool
///
/// Check in the service that the tool calls first. If the effect happened, every repeat of the call gets
/// your answer. If it did not happen, the call may be made again. Your statement is recorded.
///
/// With --ask the tool is asked, as it declares it with `recovery.reconcile`. A server asks by itself, too, and goes on
/// asking: use --ask to know it now.
#[derive(Debug, clap::Args, Serialize, Deserialize)]
#[command(
    after_long_help = "\
Examples:
  countersign claims resolve u_7 payments.charge e154ba2c --ask
  countersign claims resolve u_7 payments.charge e154ba2c --happened '{\"charge\": \"ch_1\"}' --reason 'seen in the books'
  countersign claims resolve u_7 payments.charge e154ba2c --did-not-happen --reason 'not in the books'",
    group = clap::ArgGroup::new("outcome").required(true)
)]
pub(crate) struct Resolve {
    /// User of the call
    #[arg(value_name = "USER")]
    user: String,

    /// Tool of the call
    #[arg(value_name = "TOOL")]
    tool: String,

    /// Key of the call: the caller's, the service's, or the beginning of KEY in `claims list`
    #[arg(value_name = "KEY")]
    key: String,

    /// The effect happened; JSON is the answer for repeats
    #[arg(long, value_name = "JSON", group = "outcome")]
    happened: Option<String>,

    /// The effect did not happen
    #[arg(long, group = "outcome")]
    did_not_happen: bool,

    /// Ask the tool, by its declared look-up
    #[arg(long, group = "outcome", conflicts_with = "reason")]
    ask: bool,

    /// Reason for your answer; sealed in the record
    #[arg(long, value_name = "TEXT", value_parser = reason, required_unless_present = "ask")]
    reason: Option<String>,
}

/// Maximum number of claims that a key is searched in.
const SEARCHED_MAX: usize = 10_000;

/// Digits of a key's digest in a list. They are enough to resolve the call.
const SHOWN_DIGITS: usize = 16;

/// The states, as the command line spells them.
#[derive(Debug, Clone, Copy, ValueEnum, Serialize, Deserialize)]
#[value(rename_all = "snake_case")]
enum State {
    /// No effect; the call may be made again
    Released,
    /// The call is running
    Running,
    /// The call succeeded; repeats get its answer
    Succeeded,
    /// The call failed for good; repeats get its error
    Failed,
    /// The effect may or may not have happened; an operator must settle it
    InDoubt,
    /// The call ended, and its answer has expired
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
            Command::Forget(forget) => options.perform(forget, terminal),
            Command::Resolve(resolve) => {
                // A mistake in the options is reported before a server is asked.
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
            limit: if self.key.is_some() {
                SEARCHED_MAX
            } else {
                self.limit
            },
            ..ClaimQuery::default()
        };
        let archive = place.archive();
        let claims = place.wait(async {
            let rows = archive.claims(&query).await?;
            match &self.key {
                Some(key) => archive.with_key(rows, key).await,
                None => archive.keyed(rows).await,
            }
        })?;
        let mut claims = claims.map_err(archive_failed)?;
        claims.truncate(self.limit);
        let shown: Vec<Shown<'_>> = claims.iter().map(Shown::of).collect();
        let mut table = Table::new([
            "CLAIMED AT",
            "STATE",
            "USER",
            "TOOL",
            "ATTEMPT",
            "KEY",
            "SERVICE KEY",
        ]);
        for claim in &shown {
            table.row([
                &claim.claimed_at,
                claim.state,
                claim.user_id,
                claim.tool,
                &claim.attempt.to_string(),
                claim.key.get(..SHOWN_DIGITS).unwrap_or(&claim.key),
                claim.service_key.unwrap_or("-"),
            ]);
        }
        write_table(terminal, &shown, table, "no keys match")?;
        Ok(Exit::Ok)
    }
}

impl Operation for Resolve {
    const NAME: &'static str = "claims.resolve";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let resolution = self.resolution()?;
        let claim = self.claim(place)?;
        if self.ask {
            return ask(&claim, place, terminal);
        }
        let mut journal = Journal::start(place)?;
        let (archive, by) = (place.archive(), &place.by);
        let reason = self.reason.as_deref().unwrap_or_default();
        let resolved = archive.resolve_claim(&claim.scope, claim.attempt, resolution, by, reason);
        let resolved = place.runtime.block_on(resolved).map_err(archive_failed)?;
        journal.sign(place)?;
        match resolved {
            Resolved::Settled(id) => {
                if terminal.is_for_programs() {
                    write_json(terminal, &json!({"evidence": id}))?;
                } else {
                    terminal.say("ok: the call is settled")?;
                    terminal.say(format_args!("evidence: {id}"))?;
                }
                Ok(Exit::Ok)
            }
            Resolved::Fenced(id) => Err(Failure::new(format!(
                "another operator or the call itself settled it first, and that counts; your statement is recorded as {id}"
            ))
            .refused()),
            Resolved::NotInDoubt(state) => Err(Failure::new(format!(
                "the call is not in doubt: its state is {}",
                state.as_str()
            ))
            .refused()),
            Resolved::NoClaim => Err(Failure::new("the key does not exist any more").refused()),
        }
    }
}

impl Resolve {
    fn resolution(&self) -> Result<Resolution, Failure> {
        let Some(text) = &self.happened else {
            return Ok(Resolution::DidNotHappen);
        };
        let answer = serde_json::from_str(text).map_err(|error| {
            Failure::from(anyhow::Error::new(error).context("the answer is not valid JSON"))
                .hint("a string needs quotes: --happened '\"ch_1\"'")
        })?;
        Ok(Resolution::Happened(answer))
    }

    /// The one claim in doubt that is meant.
    fn claim(&self, place: &Place) -> Result<ClaimRow, Failure> {
        let query = ClaimQuery {
            state: Some(ClaimState::InDoubt),
            user_id: Some(self.user.clone()),
            limit: SEARCHED_MAX,
            ..ClaimQuery::default()
        };
        let archive = place.archive();
        let meant = place.runtime.block_on(async {
            let mut rows = archive.claims(&query).await?;
            rows.retain(|row| row.scope.tool.as_str() == self.tool);
            archive.with_key(rows, &self.key).await
        });
        let mut meant = meant.map_err(archive_failed)?.into_iter();
        let hint = "`countersign claims list --state in_doubt` lists the calls in doubt";
        match (meant.next(), meant.next()) {
            (Some(claim), None) => Ok(claim.row),
            (Some(_), Some(_)) => Err(Failure::new("more than one key starts with these digits")
                .hint("give more digits of the key")),
            (None, _) => {
                Err(Failure::new("no call in doubt has this user, tool and key").hint(hint))
            }
        }
    }
}

/// Asks the tool of a call in doubt what became of it, with the tools of the server if one has the store.
fn ask(claim: &ClaimRow, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let executor = if let Some(served) = &place.served {
        served.gateway.executor().clone()
    } else {
        let catalog = catalog::ready(place.loaded())?;
        place.executor(catalog, Rules::default())
    };
    let mut journal = Journal::start(place)?;
    let asked = executor.ask_about(claim, Some(&place.by.actor));
    let found = place.runtime.block_on(asked).map_err(store_failed)?;
    journal.sign(place)?;
    let state = "state the outcome with --happened or --did-not-happen";
    let (id, happened) = match found {
        LookedUp::Happened(id) => (id, true),
        LookedUp::DidNotHappen(id) => (id, false),
        LookedUp::TooEarly { retry_after } => {
            let seconds = retry_after.as_secs().saturating_add(1);
            return Err(Failure::new(
                "the effect was not found, but a request may still be on its way",
            )
            .hint(format!("ask again in {seconds} s"))
            .refused());
        }
        LookedUp::Unknown => {
            let message = "the tool could not tell what became of the call";
            return Err(Failure::new(message).hint(state).refused());
        }
        LookedUp::NoLookUp => {
            let message = format!("the tool {} declares no look-up", claim.scope.tool);
            return Err(Failure::new(message).hint(state).refused());
        }
        LookedUp::NotKept => {
            let message = "the arguments of the call are not stored, so it cannot be looked up";
            return Err(Failure::new(message).hint(state).refused());
        }
        LookedUp::NotInDoubt => {
            let message = "the call is not in doubt any more";
            return Err(Failure::new(message).refused());
        }
    };
    if terminal.is_for_programs() {
        write_json(terminal, &json!({"evidence": id, "happened": happened}))?;
    } else {
        terminal.say(if happened {
            "ok: the tool says that it happened; repeats get what it found"
        } else {
            "ok: the tool says that it did not happen; the call may be made again"
        })?;
        terminal.say(format_args!("evidence: {id}"))?;
    }
    Ok(Exit::Ok)
}

#[derive(Serialize)]
struct Shown<'a> {
    claimed_at: String,
    state: &'static str,
    user_id: &'a str,
    tool: &'a str,
    attempt: u32,
    key: String,
    service_key: Option<&'a str>,
    request_id: &'a str,
}

impl<'a> Shown<'a> {
    fn of(claim: &'a KeyedClaim) -> Self {
        let KeyedClaim { row, service_key } = claim;
        Self {
            claimed_at: row.claimed_at.to_string(),
            state: row.state.as_str(),
            user_id: &row.scope.user_id,
            tool: row.scope.tool.as_str(),
            attempt: row.attempt,
            key: row.scope.key.to_string(),
            service_key: service_key.as_deref(),
            request_id: row.request_id.as_str(),
        }
    }
}
