//! `countersign status`: the state and the problems of the running server, or of the store alone.

use std::io::Write as _;
use std::sync::Arc;

use countersign::contract::Language;
use countersign::rules::Rules;
use countersign_gateway::Gateway;
use countersign_gateway::caller::{Caller, Proof};
use countersign_gateway::identity::Identity;
use countersign_gateway::policy::{LivePolicy, Policy};
use countersign_gateway::status::{About, View};
use serde_json::{Value, json};

use crate::answer::write_json;
use crate::catalog;
use crate::config::parts;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::notify;
use crate::place::{Place, PlaceOptions};
use crate::running::query;
use crate::table::Table;
use crate::terminal::Terminal;

mod lines;

/// Show problems and state of the server: policy, store, keys, signing, limits, budgets
///
/// Asks the running server. Without a server it shows the state of the store.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign status
  countersign status --user u_7 --agent shopper
  countersign status --json | jq .problems")]
pub(crate) struct Status {
    /// Show limits and budgets of this user
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// Show limits and budgets of this agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
}

impl Status {
    pub(crate) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        let status = match options.running()? {
            Some(running) => {
                let path = query(
                    "/v1/status",
                    &[("user", self.user.clone()), ("agent", self.agent.clone())],
                );
                let mut status: Value = serde_json::from_str(&running.ask(&path)?)?;
                set(&mut status, "address", json!(running.place()));
                set(&mut status, "process", json!(running.about.pid));
                status
            }
            None => self.of_store(&options.open()?)?,
        };
        if terminal.is_for_programs() {
            write_json(terminal, &status)?;
            return Ok(Exit::Ok);
        }
        show(terminal, &status)
    }

    /// Returns the status of the store alone, without a server.
    fn of_store(&self, place: &Place) -> Result<Value, Failure> {
        let policy = LivePolicy::fixed(Policy::allow_all());
        let (gateway, caller) = unserved(place, policy)?;
        let about = About {
            user_id: self.user.as_deref().unwrap_or_default(),
            agent: self.agent.as_deref(),
        };
        let status = gateway.status(&caller, about, View::Operator, Language::English);
        let mut status = serde_json::to_value(place.runtime.block_on(status))?;
        for of_server in ["program", "policy"] {
            set(&mut status, of_server, Value::Null);
        }
        Ok(status)
    }
}

/// Returns a gateway over the store without a listener, and the operator as its caller.
pub(super) fn unserved(place: &Place, policy: LivePolicy) -> Result<(Gateway, Caller), Failure> {
    let identity = Identity::new(place.clock.clone(), Arc::new(policy)).api_keys(place.api_keys());
    let executor = place.executor(catalog::declared(place.loaded())?, Rules::default());
    let settings = parts::settings(place.config());
    let gateway = Gateway::new(
        executor,
        place.archive(),
        place.ids.clone(),
        identity,
        settings,
    );
    // Where a secret cannot be read, a server would not start either; what is stored is shown all the same.
    gateway.set_notify(notify::targets(place.loaded()).unwrap_or_default());
    let caller = Caller {
        principal: Arc::new(place.by.clone()),
        proof: Proof::Operator,
    };
    Ok((gateway, caller))
}

fn set(status: &mut Value, member: &str, value: Value) {
    if let Some(members) = status.as_object_mut() {
        members.insert(member.to_owned(), value);
    }
}

/// Shows the status, problems first.
fn show(terminal: &mut Terminal, status: &Value) -> Result<Exit, Failure> {
    let problems = status.get("problems").and_then(Value::as_array);
    for problem in problems.into_iter().flatten() {
        let text = |member: &str| {
            problem
                .get(member)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        writeln!(
            terminal.data(),
            "problem: {}",
            crate::table::visible(text("message"))
        )?;
        writeln!(
            terminal.data(),
            "hint: {}",
            crate::table::visible(text("hint"))
        )?;
    }
    let mut table = Table::new(["WHAT", "STATE"]);
    for (what, state) in lines::of(status) {
        table.row([what, &state]);
    }
    let table = table.on(terminal);
    writeln!(terminal.data(), "{table}")?;
    for table in [lines::limits(status), lines::budgets(status)] {
        if !table.is_empty() {
            let table = table.on(terminal);
            writeln!(terminal.data(), "\n{table}")?;
        }
    }
    Ok(Exit::Ok)
}
