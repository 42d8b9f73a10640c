//! The process that the drill kills: it calls one tool again and again, each time with a key of its own, and says on stdout which calls
//! begin and which were answered.

use std::path::PathBuf;

use super::scratch::{Scratch, Subject, Try, count};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::place::PlaceOptions;
use crate::victim::{end_with_parent, say};

/// Name of the subcommand that the drill starts.
pub(crate) const COMMAND: &str = "drill-worker";

/// Maximum number of calls, after which a process that was not killed ends by itself.
const CALLS_MAX: usize = 2_000;

/// The process that `countersign drill` kills
#[derive(Debug, clap::Args)]
pub(crate) struct DrillWorker {
    #[arg(long)]
    folder: PathBuf,

    #[arg(long)]
    tool: String,

    #[arg(long)]
    user: String,

    #[arg(long)]
    times: usize,
}

impl DrillWorker {
    pub(crate) fn run(&self, options: &PlaceOptions) -> Result<Exit, Failure> {
        let mut scratch = Scratch::enter(options, self.folder.clone(), None, self.times)?;
        end_with_parent();
        let subjects = scratch.subjects()?;
        let is_meant = |subject: &&Subject| subject.name() == self.tool;
        let Some(subject) = subjects.iter().find(is_meant) else {
            return Err(Failure::new("the drill starts this itself"));
        };
        for number in 0..CALLS_MAX {
            let key = key(number);
            say(&format!("begin {number}"))?;
            let reply = scratch.confirmed(&Try {
                user: &self.user,
                tool: subject.name(),
                arguments: subject.text(),
                key: &key,
                dry_run: false,
            })?;
            if let Some(count) = count(&reply) {
                say(&format!("done {number} {count}"))?;
            }
        }
        Ok(Exit::Ok)
    }
}

/// Returns the key of a call.
pub(super) fn key(number: usize) -> String {
    format!("drill-kill-{number:05}")
}
