//! `countersign keys create`.

use std::io::Write as _;
use std::path::PathBuf;

use countersign::Effects;
use countersign::clock::{Clock as _, SystemClock};
use countersign::contract::tool::Effect;
use countersign::contract::{Actor, ActorType};
use countersign_gateway::identity::{KeysError, NewKey};
use countersign_gateway::operator::OPERATOR_SCOPES;
use countersign_gateway::policy::Period;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::shelf::{in_store, issued};
use crate::answer::write_json;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::operations::Operation;
use crate::place::{Place, PlaceOptions};
use crate::terminal::Terminal;
use crate::{config, policy};
use countersign_gateway::nearest::nearest;

/// Create an API key; its secret is shown only once
///
/// A key identifies a person, an agent or a system. An agent acts for one user (--for), for no user, or for the user
/// that each call names (--acts-for-others).
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign keys create --agent shopper --for u_123 --scope tools:call --policy policy.toml
  countersign keys create --agent reader --for u_123 --effects read
  countersign keys create --user ann --label \"Ann's laptop\" --expires 90d
  countersign keys create --system web-shop --acts-for-others

stdout has only the secret. As soon as one key exists, a server refuses callers without a credential.")]
pub(super) struct Create {
    #[command(flatten)]
    holder: Holder,

    /// User for whom the agent or system acts
    #[arg(long = "for", value_name = "USER", conflicts_with_all = ["user", "acts_for_others"])]
    for_user: Option<String>,

    /// Each call names its user and actor; for a trusted backend
    #[arg(long, conflicts_with = "user")]
    acts_for_others: bool,

    /// Scope of the key; may be repeated
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,

    /// Only tools with these effects: read, write, external [default: all]
    #[arg(long, value_name = "EFFECTS", value_delimiter = ',', value_parser = effect)]
    effects: Vec<Effect>,

    /// Warn about scopes that this policy does not use
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,

    /// Label for people
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    label: String,

    /// Lifetime, such as 90d [default: until revoked]
    #[arg(long, value_name = "PERIOD", value_parser = period)]
    expires: Option<Period>,
}

/// Holder of a key.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Holder {
    /// Id of the agent that holds the key
    #[arg(long, value_name = "ID")]
    agent: Option<String>,

    /// Id of the person who holds the key
    #[arg(long, value_name = "ID")]
    user: Option<String>,

    /// Id of the system that holds the key, such as the backend of a shop
    #[arg(long, value_name = "ID")]
    system: Option<String>,
}

impl Create {
    pub(super) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        let asked = Asked(self.key()?);
        let unknown = self.unknown_scopes(options)?;
        if options.is_memory()? {
            return Err(Failure::new("a store in memory cannot keep keys")
                .hint("leave --store out, or use a SQLite or PostgreSQL store"));
        }
        options.make_and_perform(&asked, terminal)?;
        for note in unknown {
            terminal.say(format_args!("note: {note}"))?;
        }
        Ok(Exit::Ok)
    }

    /// Returns a warning for each scope that neither an operator's action nor the policy asks for: it may be misspelt.
    fn unknown_scopes(&self, options: &PlaceOptions) -> Result<Vec<String>, Failure> {
        let named = config::path_flag("policy", "--policy", self.policy.as_ref())?;
        let options = options.with(named.into_iter().collect())?;
        let policy = policy::open(options.loaded())?.current();
        let policy = options.config().policy.is_some().then_some(policy);
        let mut known = OPERATOR_SCOPES.to_vec();
        known.extend(policy.iter().flat_map(|policy| policy.scopes()));
        let unknown = self
            .scopes
            .iter()
            .filter(|scope| !known.contains(&scope.as_str()));
        let told = unknown.map(|scope| {
            let told = if policy.is_some() {
                format!("neither the policy nor Countersign uses the scope {scope:?}")
            } else {
                format!(
                    "Countersign does not use the scope {scope:?}; check it against your policy with --policy FILE"
                )
            };
            match nearest(scope, known.iter().copied()) {
                Some(near) => format!("{told}; did you mean {near}?"),
                None => told,
            }
        });
        Ok(told.collect())
    }

    fn key(&self) -> Result<NewKey, Failure> {
        let Holder {
            agent,
            user,
            system,
        } = &self.holder;
        let (kind, id) = match (agent, user, system) {
            (Some(id), _, _) => (ActorType::Agent, id),
            (None, Some(id), _) => (ActorType::User, id),
            (None, None, Some(id)) => (ActorType::System, id),
            (None, None, None) => {
                return Err(
                    Failure::new("a key needs a holder").hint("use --agent, --user or --system")
                );
            }
        };
        // Whole seconds are enough for people.
        let now = Timestamp::from_second(SystemClock::new().now().as_second())?;
        let end = |period: Period| now.checked_add(period.duration());
        Ok(NewKey {
            label: self.label.clone(),
            actor: Actor {
                kind,
                id: id.clone(),
            },
            user_id: self.for_user.clone(),
            acts_for_others: self.acts_for_others,
            scopes: self.scopes.clone(),
            effects: Effects::of(self.effects.iter().copied()),
            expires_at: self.expires.map(end).transpose()?,
        })
    }
}

/// The key that is to be made.
#[derive(Serialize, Deserialize)]
pub(crate) struct Asked(NewKey);

impl Operation for Asked {
    const NAME: &'static str = "keys.create";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let new = self.0.clone();
        let kind = new.actor.kind;
        let (made, is_first) = in_store(place, async move |keys, by| {
            let is_first = !keys.are_used().await?;
            let made = keys.create(new, &by).await.map_err(|error| {
                let KeysError::Invalid { field, form } = error else {
                    return error;
                };
                let field = option_of(field, kind).unwrap_or(field);
                KeysError::Invalid { field, form }
            })?;
            Ok((issued(&made), is_first))
        })?;
        let exit = show_once(terminal, &made)?;
        if is_first {
            terminal.say(format_args!(
                "note: this is the first key: from now on every request to a server needs a credential"
            ))?;
        }
        Ok(exit)
    }
}

/// Maps a member of a request to the command-line option that sets it; `None` if there is no such option.
fn option_of(field: &str, kind: ActorType) -> Option<&'static str> {
    let holder = match kind {
        ActorType::Agent => "--agent",
        ActorType::User => "--user",
        ActorType::System => "--system",
    };
    match field {
        "/actor/id" => Some(holder),
        // A person acts for themselves, so it was not given on its own.
        "/user_id" if kind == ActorType::User => Some(holder),
        "/user_id" => Some("--for"),
        "/acts_for_others" => Some("--acts-for-others"),
        "/scopes" => Some("--scope"),
        "/effects" => Some("--effects"),
        "/label" => Some("--label"),
        "/expires_at" => Some("--expires"),
        _ => None,
    }
}

/// An effect on the command line.
fn effect(text: &str) -> Result<Effect, String> {
    let known = Effect::ALL.map(Effect::as_str).join(", ");
    let mut effects = Effect::ALL.into_iter();
    let found = effects.find(|effect| effect.as_str() == text);
    found.ok_or_else(|| format!("expected some of {known}"))
}

/// A period on the command line.
pub(super) fn period(text: &str) -> Result<Period, String> {
    let form = "expected a whole number with s, m, h or d, such as 90d, up to 366d";
    Period::new(text).ok_or_else(|| form.to_owned())
}

/// A new key, the one time that it can be shown.
pub(super) fn show_once(terminal: &mut Terminal, made: &Value) -> Result<Exit, Failure> {
    if terminal.is_for_programs() {
        write_json(terminal, made)?;
        return Ok(Exit::Ok);
    }
    let text = |pointer: &str| made.pointer(pointer).and_then(Value::as_str);
    let secret = text("/secret").unwrap_or_default();
    writeln!(terminal.data(), "{secret}")?;
    terminal.say(format_args!(
        "ok: created key {} of {} {}; the secret is not shown again",
        text("/key/id").unwrap_or_default(),
        text("/key/actor/type").unwrap_or_default(),
        text("/key/actor/id").unwrap_or_default(),
    ))?;
    Ok(Exit::Ok)
}
