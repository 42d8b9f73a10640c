//! `countersign store trust-clock`: an operator says that the clock is right.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::super::reason;
use crate::answer::write_json;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::journal::Journal;
use crate::operations::Operation;
use crate::place::{Place, PlaceOptions, archive_failed};
use crate::terminal::Terminal;

/// Say that the store's clock is right, after it has jumped; it is recorded
///
/// While the clock is more than three days ahead of the last time that was believed, or behind it, nothing is removed:
/// no content, no answer of a key, no old budget. Look at the clock first. If it is right, because the store was off for so long, this
/// command says so, and what is past its time is removed. If it is wrong, set it: nothing else is needed then.
#[derive(Debug, clap::Args, Serialize, Deserialize)]
#[command(after_long_help = "\
Example:
  countersign store trust-clock --reason 'the server was off for two weeks'")]
pub(crate) struct TrustClock {
    /// Reason why the clock is right; it is sealed in the record
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,
}

impl TrustClock {
    pub(super) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        options.perform(self, terminal)
    }
}

impl Operation for TrustClock {
    const NAME: &'static str = "store.trust_clock";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let mut journal = Journal::start(place)?;
        let (archive, by) = (place.archive(), &place.by);
        let trusted = archive.trust_clock(by, &self.reason);
        let (found, id) = place.runtime.block_on(trusted).map_err(archive_failed)?;
        journal.sign(place)?;
        if terminal.is_for_programs() {
            let said = json!({
                "clock": found.clock.to_string(),
                "believed_before": found.mark.to_string(),
                "evidence": id,
            });
            write_json(terminal, &said)?;
        } else {
            terminal.say(format_args!("ok: the clock is trusted: {:.0}", found.clock))?;
            terminal.say(format_args!("before: {:.0}", found.mark))?;
            terminal.say(format_args!("evidence: {id}"))?;
        }
        Ok(Exit::Ok)
    }
}
