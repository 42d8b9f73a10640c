//! `countersign store backup`: one verified moment of the store in one file.

use std::path::{Path, PathBuf};

use countersign_store::sqlite::{BackupPhase, BackupProgress};
use serde::{Deserialize, Serialize};

use super::super::counted;
use crate::answer::write_json;
use crate::backup::{self, Made, Writer};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::journal::Journal;
use crate::operations::Operation;
use crate::place::{Place, PlaceOptions};
use crate::progress::Bar;
use crate::terminal::Terminal;

/// Back up the SQLite store to a new file, and verify the file
///
/// The server keeps answering calls. The backup has one consistent state of the store: the log with its newest signed
/// checkpoint, and all other data. Before it gets its name, its pages, its rows and the tree of the log are verified.
///
/// The backup does not contain the keys. Keep copies of master.key and log.key in another place, or use --with-keys.
/// Use `countersign store restore` to restore a backup; no other program can open it.
#[derive(Debug, clap::Args, Serialize, Deserialize)]
#[command(after_long_help = "\
Examples:
  countersign store backup /backups/countersign-2026-11-17.db
  countersign store backup /backups/all.db --with-keys")]
pub(crate) struct Backup {
    /// Path of the new file; an existing file is not overwritten
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Also write both keys to FILE.keys; both files together give access to all data
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
            match place.served {
                Some(_) => Writer::Server,
                None => Writer::Command,
            },
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
        "ok: backed up to {}: {}, {} of them signed",
        made.file.display(),
        counted(records, "record", "records"),
        made.signed,
    ))?;
    let without = "note: the backup has no keys; without copies of master.key and log.key it cannot be restored";
    match &made.keys {
        None => terminal.say(without)?,
        Some(keys) => terminal.say(format_args!(
            "note: the keys are in {}; keep the two files in different places, because both together give access to all data",
            Path::display(keys)
        ))?,
    }
    Ok(())
}
