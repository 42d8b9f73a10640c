//! `countersign attention`: everything that needs a person now.

use std::io::Write as _;

use countersign::contract::Language;
use countersign_gateway::status::View;
use serde_json::Value;

use super::status::unserved;
use crate::answer::write_json;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::place::{Place, PlaceOptions};
use crate::policy;
use crate::table::visible;
use crate::terminal::Terminal;

/// List everything that needs a person now, with the command that settles it
///
/// Open questions, calls in doubt, a rejected policy, unsigned records, budgets of users and agents that are spent or nearly spent, a clock that jumped. Asks the running
/// server. Without a server it reads the store.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign attention
  countersign attention --check || notify-the-team
  countersign attention --json | jq '.items[].kind'")]
pub(crate) struct AttentionCommand {
    /// End with code 1 if something needs a person
    #[arg(long)]
    check: bool,
}

impl AttentionCommand {
    pub(crate) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        let attention: Value = match options.running()? {
            Some(running) => serde_json::from_str(&running.ask("/v1/attention")?)?,
            None => of_store(&options.open()?)?,
        };
        let items = attention.get("items").and_then(Value::as_array);
        let items = items.map(Vec::as_slice).unwrap_or_default();
        if terminal.is_for_programs() {
            write_json(terminal, &attention)?;
        } else {
            let more = attention.get("more").and_then(Value::as_u64);
            show(terminal, items, more.unwrap_or_default())?;
        }
        Ok(if self.check && !items.is_empty() {
            Exit::Refused
        } else {
            Exit::Ok
        })
    }
}

/// Returns the items of the store alone, without a server.
fn of_store(place: &Place) -> Result<Value, Failure> {
    let (gateway, caller) = unserved(place, policy::open(place.loaded())?)?;
    let attention = gateway.attention(&caller, View::Operator, Language::English);
    let attention = place.runtime.block_on(attention);
    let attention = attention.map_err(|error| Failure::from(anyhow::Error::new(error)))?;
    Ok(serde_json::to_value(attention)?)
}

fn show(terminal: &mut Terminal, items: &[Value], more: u64) -> Result<(), Failure> {
    if items.is_empty() {
        writeln!(terminal.data(), "nothing needs you")?;
        return Ok(());
    }
    for item in items {
        let text = |member: &str| {
            let text = item.get(member).and_then(Value::as_str);
            visible(text.unwrap_or_default())
        };
        let member = |name: &str| item.get(name).and_then(Value::as_str);
        let who = match (member("user_id"), member("agent")) {
            (Some(user_id), _) => format!(" (user {})", visible(user_id)),
            (None, Some(agent)) => format!(" (agent {})", visible(agent)),
            (None, None) => String::new(),
        };
        let since = match item.get("since").and_then(Value::as_str) {
            Some(since) => format!(", since {since}"),
            None => String::new(),
        };
        writeln!(
            terminal.data(),
            "{}: {}{who}{since}",
            text("kind"),
            text("what")
        )?;
        writeln!(terminal.data(), "  settle: {}", text("settle"))?;
    }
    if more > 0 {
        writeln!(terminal.data(), "and {more} more")?;
    }
    Ok(())
}
