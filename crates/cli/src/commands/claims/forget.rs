//! `countersign claims forget`: keys of long ago become free again.

use countersign::contract::ToolName;
use countersign::ledger::Forgotten;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::super::{counted, reason};
use crate::answer::write_json;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::journal::Journal;
use crate::operations::Operation;
use crate::place::{Place, archive_failed};
use crate::terminal::Terminal;

/// Forget keys whose answers are gone: a call with such a key runs again; it is recorded
///
/// A key whose answer is past its retention leaves a digest that refuses the key. It stays until its user is erased, because a late
/// repeat must not run a second time. Forget keys only when no caller can still repeat such a call.
#[derive(Debug, clap::Args, Serialize, Deserialize)]
#[command(after_long_help = "\
Examples:
  countersign claims forget --days 400 --reason 'no client keeps keys for a year'
  countersign claims forget --days 90 --tool orders.create --user u_7 --reason 'the client was replaced'")]
pub(crate) struct Forget {
    /// Only keys that were last used so many days ago, or longer
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: u32,

    /// Only those of this user
    #[arg(long, value_name = "USER")]
    user: Option<String>,

    /// Only those of this tool
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,

    /// Why no caller repeats such a call; sealed in the record
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,
}

/// Maximum number of keys that one transaction removes; each has a record.
const AT_ONCE: usize = 1_024;

impl Operation for Forget {
    const NAME: &'static str = "claims.forget";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let days = SignedDuration::from_hours(24 * i64::from(self.days));
        let now = place.clock.now();
        let named = self.tool.as_deref().map(ToolName::new).transpose();
        let tool = named.map_err(anyhow::Error::new)?;
        let which = Forgotten {
            claimed_before: now.checked_sub(days).unwrap_or(Timestamp::MIN),
            user_id: self.user.clone(),
            tool,
            key: None,
            limit: AT_ONCE,
        };
        let mut journal = Journal::start(place)?;
        let (archive, by) = (place.archive(), &place.by);
        let (mut keys, mut records) = (0, Vec::new());
        loop {
            let forgotten = archive.forget_keys(&which, by, &self.reason);
            let (some, record) = place.runtime.block_on(forgotten).map_err(archive_failed)?;
            keys += some;
            records.extend(record);
            if some < AT_ONCE {
                break;
            }
        }
        journal.sign(place)?;
        if terminal.is_for_programs() {
            write_json(terminal, &json!({"keys": keys, "evidence": records}))?;
        } else {
            terminal.say(format_args!(
                "ok: {} forgotten",
                counted(keys, "key", "keys")
            ))?;
            for id in records {
                terminal.say(format_args!("evidence: {id}"))?;
            }
        }
        Ok(Exit::Ok)
    }
}
