//! `countersign store backup`: one verified moment of the store in one file.

use std::path::{Path, PathBuf};

use countersign_store::sqlite::{BackupPhase, BackupProgress};
use serde::{Deserialize, Serialize};

use super::super::counted;
use crate::answer::write_json;
use crate::backup::{self, Made};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::journal::Journal;
use crate::operations::Operation;
use crate::place::{Place, PlaceOptions};
use crate::progress::Bar;
use crate::terminal::Terminal;

/// Write one moment of the store to a new file, and verify it
///
/// Calls go on meanwhile. The file has the log with its newest signed checkpoint, and everything else that the store
/// keeps; its pages, its rows and the tree over its records are read back before it gets its name. The keys are not in
/// it: keep copies of master.key and log.key elsewhere, or ask for them with --with-keys.
///
/// A backup is opened by `countersign store restore` and by nothing else.
#[derive(Debug, clap::Args, Serialize, Deserialize)]
#[command(after_long_help = "\
Examples:
  countersign store backup /backups/countersign-2026-11-17.db
  countersign store backup /backups/all.db --with-keys")]
pub(crate) struct Backup {
    /// The file, which must not be there yet
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Write the master key and the log's key to FILE.keys: whoever has both files can read everything
    #[arg(long)]
    with_keys: bool,
}

impl Backup {
    pub(super) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        // A server that carries it out may work in another folder.
        let asked = Self {
            file: std::path::absolute(&self.file)?,
            with_keys: self.with_keys,
        };
        options.perform(&asked, terminal)
    }
}

impl Operation for Backup {
    const NAME: &'static str = "store.backup";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        // Everything that was committed is under the checkpoint that goes with it.
        Journal::start(place)?.sign(place)?;
        let bar = terminal.bar(0, "copied");
        let mut show = |progress: BackupProgress| show(&bar, progress);
        let made = place.runtime.block_on(backup::backup(
            &place.backend,
            &place.folder,
            &self.file,
            self.with_keys,
            &mut show,
        ));
        bar.finish_and_clear();
        tell(&made?, terminal)?;
        Ok(Exit::Ok)
    }
}

/// Shows how far a backup is.
pub(crate) fn show(bar: &Bar, progress: BackupProgress) {
    bar.set_message(match progress.phase {
        BackupPhase::Copy => "bytes copied",
        BackupPhase::Verify => "rows verified",
    });
    bar.set_length(progress.total);
    bar.set_position(progress.done);
}

fn tell(made: &Made, terminal: &mut Terminal) -> Result<(), Failure> {
    if terminal.is_for_programs() {
        return write_json(terminal, made);
    }
    let records = usize::try_from(made.records).unwrap_or(usize::MAX);
    terminal.say(format_args!(
        "ok: {} has {}, {} of them signed",
        made.file.display(),
        counted(records, "record", "records"),
        made.signed,
    ))?;
    let without =
        "note: the keys are not in it: it is of no use without copies of master.key and log.key";
    match &made.keys {
        None => terminal.say(without)?,
        Some(keys) => terminal.say(format_args!(
            "note: the keys are in {}: keep it apart, whoever has both files can read everything",
            Path::display(keys)
        ))?,
    }
    Ok(())
}
