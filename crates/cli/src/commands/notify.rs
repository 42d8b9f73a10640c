//! `countersign notify`: the outbox of notifications, and a test of its receivers.

use countersign::clock::{Clock as _, SystemClock};
use countersign::ids::{IdSource as _, RandomIds};
use countersign_gateway::notify::{self as messages, GIVE_UP_AFTER, Message, ShownNotice, Target};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::counted;
use crate::answer::{write_json, write_table};
use crate::config;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::notify;
use crate::operations::Operation;
use crate::place::{Need, Place, PlaceFlags, PlaceOptions, store_failed};
use crate::table::{Table, visible};
use crate::terminal::Terminal;

/// List notifications and their deliveries, test receivers, retry what was given up
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_long_help = "\
Examples:
  countersign notify test
  countersign notify list --json | jq '.[].deliveries'
  countersign notify retry ops

Receivers are [[notify]] entries of the configuration."
)]
pub(crate) struct NotifyCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    List(List),
    Test(Test),
    Retry(Retry),
}

/// List notifications with the state of each delivery, newest first
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub(crate) struct List {
    /// Maximum number of notifications
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
}

/// Send a test message to a receiver, or to all of them
///
/// The message is sent once, by this command, with the settings of the configuration file. Exit code 1 if a receiver did
/// not accept it.
#[derive(Debug, clap::Args)]
pub(crate) struct Test {
    /// Name of the receiver [default: all of them]
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

/// Send again the notifications to a receiver that were given up
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub(crate) struct Retry {
    /// Name of the receiver
    #[arg(value_name = "NAME")]
    name: String,
}

impl NotifyCommand {
    pub(crate) fn run(&self, flags: &PlaceFlags, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let at_hand = |terminal: &mut Terminal| flags.read_at_hand(Need::Data, terminal);
        match &self.command {
            Command::List(list) => at_hand(terminal)?.perform(list, terminal),
            Command::Test(test) => test.run(&flags.read(terminal)?, terminal),
            Command::Retry(retry) => at_hand(terminal)?.perform(retry, terminal),
        }
    }
}

impl Operation for List {
    const NAME: &'static str = "notify.list";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let store = place.store();
        let rows = place.wait(store.notices(self.limit))?;
        let rows = rows.map_err(store_failed)?;
        let shown: Vec<ShownNotice> = rows.into_iter().map(ShownNotice::from).collect();
        let mut table = Table::new([
            "AT",
            "KIND",
            "SUBJECT",
            "TO",
            "STATE",
            "ATTEMPTS",
            "LAST ERROR",
        ]);
        for notice in &shown {
            let at = format!("{:.0}", notice.at);
            for delivery in &notice.deliveries {
                table.row([
                    at.as_str(),
                    notice.kind,
                    &visible(&notice.subject),
                    &delivery.target,
                    delivery.state,
                    &delivery.attempts.to_string(),
                    delivery.last_error.as_deref().unwrap_or("-"),
                ]);
            }
        }
        write_table(terminal, &shown, table, "no notifications")?;
        Ok(Exit::Ok)
    }
}

impl Operation for Retry {
    const NAME: &'static str = "notify.retry";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let store = place.store();
        let retried = store.retry_deliveries(&self.name, GIVE_UP_AFTER);
        let retried = place.runtime.block_on(retried).map_err(store_failed)?;
        if terminal.is_for_programs() {
            write_json(terminal, &json!({"retried": retried}))?;
        } else {
            let notifications = counted(retried, "notification", "notifications");
            terminal.say(format_args!("ok: {notifications} will be sent again"))?;
        }
        Ok(Exit::Ok)
    }
}

impl Test {
    fn run(&self, options: &PlaceOptions, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let loaded = options.loaded();
        let targets = notify::targets(loaded).map_err(config::wrong)?;
        let is_meant = |target: &Target| self.name.as_ref().is_none_or(|name| *name == target.name);
        let targets: Vec<Target> = targets.into_iter().filter(is_meant).collect();
        if targets.is_empty() {
            let message = match &self.name {
                Some(name) => format!("no receiver has the name {name:?}"),
                None => "the configuration has no receivers".to_owned(),
            };
            let hint = "add a [[notify]] entry to the configuration: docs/notifications.md";
            return Err(Failure::new(message).hint(hint));
        }
        let server = &loaded.config().server;
        let base = match &server.public_url {
            Some(url) => url.to_string(),
            None => format!("http://{}", server.listen),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (clock, ids) = (SystemClock::new(), RandomIds::default());
        let (mut table, mut values) = (Table::new(["NAME", "KIND", "RESULT"]), Vec::new());
        let mut exit = Exit::Ok;
        for target in targets {
            let mut random = [0; 16];
            ids.fill(&mut random);
            let id = format!("msg_{:032x}", u128::from_be_bytes(random));
            let message = Message::test(id, clock.now(), &base);
            let sent = runtime.block_on(messages::send(&*target.channel, &message));
            let error = sent.err().map(|error| error.to_string());
            let result = error.as_deref().unwrap_or("delivered");
            table.row([target.name.as_str(), target.channel.kind(), result]);
            if error.is_some() {
                exit = Exit::Refused;
            }
            values.push(json!({
                "name": target.name,
                "kind": target.channel.kind(),
                "id": message.id,
                "delivered": error.is_none(),
                "error": error,
            }));
        }
        write_table(terminal, &values, table, "no receivers")?;
        Ok(exit)
    }
}
