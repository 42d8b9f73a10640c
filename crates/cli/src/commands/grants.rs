//! `countersign grants`: what users let agents do without being asked each time.

use std::io::Write as _;
use std::sync::Arc;

use clap::ValueEnum;
use countersign::contract::grant::GrantAmount;
use countersign::contract::tool::AmountUnit;
use countersign::contract::{Actor, ActorType, Grant, GrantState, NewGrant, ToolName};
use countersign::grant::{self, StoredGrants, Wanted};
use countersign_gateway::moment::Moment;
use serde::{Deserialize, Serialize};

use crate::answer::{named, write_json, write_lines, write_table};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::journal::Journal;
use crate::operations::Operation;
use crate::place::{Place, PlaceOptions, store_failed};
use crate::table::{Table, visible};
use crate::terminal::Terminal;

/// Give agents standing authority within bounds, and revoke it
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Grants {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Clone, clap::Subcommand, Serialize, Deserialize)]
enum Command {
    Make(Box<Make>),
    List(List),
    Show(Show),
    Revoke(Revoke),
}

/// Make a grant: calls of an agent that it covers need no confirmation
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
#[command(after_long_help = "\
Examples:
  countersign grants make --user u_7 --to agent:a_1 --tool notes.clear --calls 3 --until 7d
  countersign grants make --user u_7 --to agent:a_1 --tool cart.add_item --until 2026-12-31 \\
    --amount '200.00 EUR' --amount-at /total --when 'args.total < 50'")]
struct Make {
    /// User who gives the authority
    #[arg(long, value_name = "USER")]
    user: String,

    /// Actor that gets the grant: agent:ID or system:ID
    #[arg(long, value_name = "ACTOR", value_parser = actor)]
    to: Actor,

    /// Tool that it covers; may be given several times
    #[arg(long = "tool", value_name = "TOOL", required = true)]
    tools: Vec<ToolName>,

    /// Condition on a call, as in rules of the policy
    #[arg(long, value_name = "CONDITION")]
    when: Option<String>,

    /// Maximum number of calls
    #[arg(long, value_name = "N")]
    calls: Option<u32>,

    /// Maximum amount a day, such as '200.00 EUR'
    #[arg(long, value_name = "AMOUNT", value_parser = money)]
    amount: Option<(String, String)>,

    /// JSON pointer to the amount in the arguments
    #[arg(long, value_name = "POINTER", requires = "amount")]
    amount_at: Option<String>,

    /// JSON pointer to the currency in the arguments
    #[arg(long, value_name = "POINTER", requires = "amount_at")]
    currency_at: Option<String>,

    /// End: a time such as 2026-12-31T12:00:00Z, a date, or how long from now, such as 7d
    #[arg(long, value_name = "TIME")]
    until: Moment,

    /// Grant that it is derived from; it never allows more than that one
    #[arg(long, value_name = "ID")]
    parent: Option<String>,
}

/// List grants, newest first
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
struct List {
    /// Only grants in this state
    #[arg(long, value_enum, value_name = "STATE", default_value = "active")]
    state: State,

    /// Only grants of this user
    #[arg(long, value_name = "USER")]
    user: Option<String>,

    /// Maximum number of rows
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
}

/// Show one grant: its bounds, and how much of it was used
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
struct Show {
    /// Id from `grants list`
    #[arg(value_name = "ID")]
    id: String,
}

/// Revoke a grant, and all that are derived from it
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
struct Revoke {
    /// Id from `grants list`
    #[arg(value_name = "ID")]
    id: String,

    /// Reason; stored encrypted, not in the log
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// The states, as the command line spells them.
#[derive(Debug, Clone, Copy, ValueEnum, Serialize, Deserialize)]
enum State {
    /// In any state
    All,
    /// In force
    Active,
    /// All calls were made
    #[value(alias = "used_up")]
    UsedUp,
    /// The time is over
    Ended,
    /// Revoked
    Revoked,
}

impl State {
    const fn wanted(self) -> Option<GrantState> {
        match self {
            Self::All => None,
            Self::Active => Some(GrantState::Active),
            Self::UsedUp => Some(GrantState::UsedUp),
            Self::Ended => Some(GrantState::Ended),
            Self::Revoked => Some(GrantState::Revoked),
        }
    }
}

impl Grants {
    pub(crate) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        options.perform(&Asked(self.command.clone()), terminal)
    }
}

/// One of the commands, as it is sent to the process that has the grants.
#[derive(Serialize, Deserialize)]
pub(crate) struct Asked(Command);

impl Operation for Asked {
    const NAME: &'static str = "grants";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let grants = place.grants();
        match &self.0 {
            Command::Make(make) => make.run(place, &grants, terminal),
            Command::List(list) => list.run(place, &grants, terminal),
            Command::Show(show) => {
                let grant = place.runtime.block_on(grants.show(&show.id, &place.by));
                let grant = grant.map_err(failed)?;
                write_lines(terminal, &grant, &lines(&grant))?;
                Ok(Exit::Ok)
            }
            Command::Revoke(revoke) => revoke.run(place, &grants, terminal),
        }
    }
}

impl Make {
    fn run(
        &self,
        place: &Place,
        grants: &Arc<StoredGrants>,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        let until = match self.until {
            Moment::At(at) => at,
            Moment::Ago(after) => place.clock.now().checked_add(after)?,
        };
        let amount = self.amount.as_ref().map(|(limit, currency)| GrantAmount {
            limit: limit.clone(),
            currency: currency.clone(),
            at: self.amount_at.clone(),
            currency_at: self.currency_at.clone(),
            unit: AmountUnit::Major,
        });
        let new = NewGrant {
            user_id: Some(self.user.clone()),
            to: self.to.clone(),
            tools: self.tools.clone(),
            when: self.when.clone(),
            calls: self.calls,
            amount,
            until: until.to_string(),
            parent: self.parent.clone(),
        };
        let mut journal = Journal::start(place)?;
        let made = place.runtime.block_on(grants.make(&place.by, &new));
        let made = made.map_err(failed)?;
        journal.sign(place)?;
        if terminal.is_for_programs() {
            write_json(terminal, &made)?;
            return Ok(Exit::Ok);
        }
        writeln!(terminal.data(), "{}", made.id)?;
        terminal.say(format_args!(
            "granted: {} may call {} for {} until {}",
            visible(&named(&made.to)),
            listed(&made),
            visible(&made.user_id),
            made.until
        ))?;
        terminal.say(format_args!("evidence: {}", made.evidence))?;
        Ok(Exit::Ok)
    }
}

impl List {
    fn run(
        &self,
        place: &Place,
        grants: &Arc<StoredGrants>,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        let wanted = Wanted {
            user_id: self.user.clone(),
            state: self.state.wanted(),
            limit: self.limit,
            ..Wanted::default()
        };
        let found = place.runtime.block_on(grants.list(&place.by, &wanted));
        let found = found.map_err(failed)?;
        let mut table = Table::new([
            "MADE AT", "STATE", "USER", "TO", "TOOLS", "CALLS", "UNTIL", "ID",
        ]);
        for grant in &found {
            table.row([
                &grant.made_at,
                grant.state.as_str(),
                &grant.user_id,
                &named(&grant.to),
                &listed(grant),
                &calls(grant),
                &grant.until,
                // Last, because it must not be cut: revoking needs it.
                &grant.id,
            ]);
        }
        write_table(
            terminal,
            &found,
            table,
            "no grants match; --state all lists those that have ended, too",
        )?;
        Ok(Exit::Ok)
    }
}

impl Revoke {
    fn run(
        &self,
        place: &Place,
        grants: &Arc<StoredGrants>,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        let mut journal = Journal::start(place)?;
        let revoked = grants.revoke(&self.id, &place.by, self.reason.as_deref());
        let revoked = place.runtime.block_on(revoked).map_err(failed)?;
        journal.sign(place)?;
        if terminal.is_for_programs() {
            write_json(terminal, &revoked)?;
            return Ok(Exit::Ok);
        }
        terminal.say(format_args!(
            "revoked: calls under {} and under grants derived from it need a confirmation again",
            revoked.id
        ))?;
        if let Some(revocation) = &revoked.revoked {
            terminal.say(format_args!("evidence: {}", revocation.evidence))?;
        }
        Ok(Exit::Ok)
    }
}

/// Reads `agent:a_1`.
fn actor(text: &str) -> Result<Actor, String> {
    let form = "expected agent:ID or system:ID";
    let (kind, id) = text.split_once(':').ok_or(form)?;
    let kind = match kind {
        "agent" => ActorType::Agent,
        "system" => ActorType::System,
        _ => return Err(form.to_owned()),
    };
    let id = id.to_owned();
    Ok(Actor { kind, id })
}

/// Reads `200.00 EUR`.
fn money(text: &str) -> Result<(String, String), String> {
    let (amount, currency) = text
        .split_once(' ')
        .ok_or("expected an amount and a currency, such as '200.00 EUR'")?;
    Ok((amount.to_owned(), currency.trim().to_owned()))
}

fn listed(grant: &Grant) -> String {
    let tools: Vec<&str> = grant.tools.iter().map(ToolName::as_str).collect();
    tools.join(", ")
}

fn calls(grant: &Grant) -> String {
    let used = grant.used.calls;
    grant
        .calls
        .map_or_else(|| used.to_string(), |most| format!("{used} of {most}"))
}

fn lines(grant: &Grant) -> Vec<(&str, String)> {
    let mut lines = vec![
        ("grant", grant.id.clone()),
        ("state", grant.state.as_str().to_owned()),
        ("user", grant.user_id.clone()),
        ("to", named(&grant.to)),
        ("tools", listed(grant)),
    ];
    lines.extend(grant.when.clone().map(|when| ("when", when)));
    lines.push(("calls", calls(grant)));
    if let Some(amount) = &grant.amount {
        let today = grant.used.today.as_deref().unwrap_or("nothing");
        let most = format!("{} {}", amount.limit, amount.currency);
        lines.push(("amount today", format!("{today} of {most}")));
    }
    lines.push(("until", grant.until.clone()));
    lines.extend(grant.parent.clone().map(|parent| ("derived from", parent)));
    lines.push(("made by", named(&grant.made_by)));
    lines.push(("made at", grant.made_at.clone()));
    lines.push(("evidence", grant.evidence.to_string()));
    if let Some(revoked) = &grant.revoked {
        lines.push(("revoked by", named(&revoked.by)));
        lines.push(("revoked at", revoked.at.clone()));
        lines.extend(revoked.reason.clone().map(|reason| ("reason", reason)));
        lines.push(("evidence of it", revoked.evidence.to_string()));
    }
    lines
}

/// Turns an error of the grants into a failure with a hint.
fn failed(error: grant::Error) -> Failure {
    match error {
        grant::Error::Store(error) => store_failed(error),
        grant::Error::Unknown(_) => {
            Failure::from(error).hint("`countersign grants list --state all` lists all grants")
        }
        grant::Error::TooMany { .. } => Failure::from(error).refused(),
        grant::Error::Agent
        | grant::Error::NotTheirs
        | grant::Error::Invalid { .. }
        | grant::Error::Condition { .. }
        | grant::Error::Wider { .. }
        | grant::Error::Reason => Failure::from(error),
    }
}
