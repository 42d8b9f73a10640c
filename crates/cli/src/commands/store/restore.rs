//! `countersign store restore`: puts a backup in place without bringing back an erased user or a revoked key, and without signing a log
//! twice.
//!
//! If the store that went on since the backup is still there, it stays, and only documents are put back. If it is not, the records signed
//! since the backup are lost; then a new log begins, whose first record names the old one.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::answer::write_json;
use crate::backend::StoreName;
use crate::commands::counted;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::place::PlaceOptions;
use crate::terminal::Terminal;

mod file;
mod judge;
mod log;
mod newer;
mod owner;

use judge::Judgement;
use owner::{Given, Owner};

/// Restore the store from a backup, without undoing erasures or revoked keys
///
/// Stop the server first. What happens depends on what is left in the data folder:
///
/// - The current store is still there: only documents are restored. The log, erasures, revoked keys, holds, approvals,
///   budgets and idempotency keys stay as they are now.
///
/// - The store is gone, and no signed record is missing in the backup: the log continues.
///
/// - The store is gone, and signed records are missing in the backup: the command refuses. With --accept-loss it
///   starts a new log. The first record of the new log names the old one. All API keys,
///   open approvals and grants end.
///
/// Without FILE, the command checks a store that you restored by other means, such as `pg_restore`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign store restore /backups/countersign-2026-11-17.db
  countersign store restore /backups/countersign-2026-11-17.db --accept-loss
  countersign store restore --store postgres://app@db.example.org/countersign")]
pub(super) struct Restore {
    /// Backup made by `countersign store backup` [default: check the store as it is]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// Start a new log if signed records are missing in the backup
    #[arg(long)]
    accept_loss: bool,
}

/// Outcome of a restore.
pub(super) struct Outcome {
    /// Number of records in the log.
    records: u64,
    /// The name of the log.
    origin: String,
    how: How,
}

/// State of the log after a restore.
pub(super) enum How {
    /// The log is the newest; only documents were put back.
    PutBack {
        documents: u64,
        removed: u64,
        left_out: u64,
        users_erased: u64,
    },
    /// No signed record is lost.
    Same,
    /// A new log goes on from the records.
    NewLog {
        /// Number of signed records that are lost; `None` if it is not known.
        lost: Option<u64>,
    },
}

impl Restore {
    pub(super) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        let (data, store) = options.names()?;
        if let Some(running) = options.running()? {
            return Err(running.in_the_way("a restore replaces its store"));
        }
        let owner = Owner::of(&data, &store)?;
        let outcome = self.restored(data, &store, options);
        // A restore that was refused has opened files too.
        let given = owner.give();
        tell(&outcome?, terminal)?;
        tell_given(&given, terminal)?;
        Ok(Exit::Ok)
    }

    fn restored(
        &self,
        data: PathBuf,
        store: &StoreName,
        options: &PlaceOptions,
    ) -> Result<Outcome, Failure> {
        match (&self.file, store) {
            (_, StoreName::Memory) => {
                Err(Failure::new("a store in memory cannot be restored").hint(
                    "use a SQLite or PostgreSQL store: --store sqlite:PATH or postgres://…",
                ))
            }
            (Some(_), StoreName::Postgres(_)) => {
                Err(Failure::new("a backup file can only be restored into a SQLite store").hint(
                    "restore it without --store, then copy it with `countersign store migrate --to postgres://…`; restore a file of pg_dump with pg_restore",
                ))
            }
            (Some(file), StoreName::Sqlite(path)) => {
                file::restore(data, path, file, options, self.accept_loss)
            }
            (None, StoreName::Sqlite(_) | StoreName::Postgres(_)) => {
                log::restore_in_place(data, store, options, self.accept_loss)
            }
        }
    }
}

/// Restores a backup into a folder that has no store, and returns the number of records of its log: for trying that it can be done.
pub(crate) fn into_empty(file: &Path, options: &PlaceOptions) -> Result<u64, Failure> {
    let (data, store) = options.names()?;
    let StoreName::Sqlite(path) = &store else {
        return Err(Failure::new(
            "a backup file can only be restored into a SQLite store",
        ));
    };
    Ok(file::restore(data, path, file, options, true)?.records)
}

/// Says who owns the files now, where the restore ran under another account.
fn tell_given(given: &Given, terminal: &mut Terminal) -> Result<(), Failure> {
    match given {
        Given::Nothing => {}
        Given::Files { count, uid } => terminal.say(format_args!(
            "note: {count} files were given to user id {uid}, the owner of the folder"
        ))?,
        Given::Refused { command } => terminal.say(format_args!(
            "to do: some files belong to the account that ran this command, and the server may not open them: run `{command}` as root"
        ))?,
    }
    Ok(())
}

fn tell(outcome: &Outcome, terminal: &mut Terminal) -> Result<(), Failure> {
    let Outcome {
        records, origin, ..
    } = outcome;
    if terminal.is_for_programs() {
        let mut value = json!({"log": origin, "records": records});
        let how = match &outcome.how {
            How::PutBack {
                documents,
                removed,
                left_out,
                users_erased,
            } => json!({
                "outcome": "put_back",
                "documents": documents,
                "removed": removed,
                "left_out": left_out,
                "users_erased": users_erased,
            }),
            How::Same => json!({"outcome": "same_log", "lost_unsigned": "unknown"}),
            How::NewLog { lost } => {
                json!({"outcome": "new_log", "lost_records": lost, "lost_unsigned": "unknown"})
            }
        };
        if let (Some(all), Some(how)) = (value.as_object_mut(), how.as_object()) {
            all.extend(how.clone());
        }
        return write_json(terminal, &value);
    }
    terminal.say(format_args!(
        "ok: restored; the log {origin} continues after record {records}"
    ))?;
    match &outcome.how {
        How::PutBack {
            documents,
            removed,
            left_out,
            users_erased,
        } => {
            terminal.say(format_args!(
                "note: {documents} documents restored, {removed} newer documents removed; everything else is unchanged"
            ))?;
            if *users_erased > 0 {
                terminal.say(format_args!(
                    "note: {users_erased} users were erased after the backup, so {left_out} of their documents were not restored"
                ))?;
            }
        }
        How::Same => {
            terminal.say("note: no signed record is lost that log.signed knows of")?;
            terminal.say(UNSIGNED)?;
            terminal.say(OLD_FOLDER)?;
        }
        How::NewLog { lost } => {
            match lost {
                Some(lost) => terminal.say(format_args!("note: {lost} signed records are lost"))?,
                None => terminal
                    .say("note: records after the backup are lost; their number is unknown")?,
            }
            terminal.say(UNSIGNED)?;
            for task in NEW_LOG_TASKS {
                terminal.say(format_args!("to do: {task}"))?;
            }
        }
    }
    Ok(())
}

/// A call is answered when its record is durable, and the checkpoint follows within a second: nothing outside of the lost store
/// knows of the records in between.
const UNSIGNED: &str = "note: calls answered in the last second before the old store stopped may be lost without a trace; ask your callers what they sent then";

/// Nothing here can see another folder with the same log.
const OLD_FOLDER: &str = "note: if the backup came from another folder, never start that folder again: the log would have two histories under one name";

/// Work that is left to the operator after a new log was started.
const NEW_LOG_TASKS: [&str; 4] = [
    "let your callers compare before they retry: idempotency keys used after the backup are unknown, so a repeated call would run a second time",
    "erase and hold again the users whose erasures and holds you know of: those after the backup are lost",
    "create new API keys with `countersign keys create`: all old keys, open approvals and grants have ended",
    "give the new log.pub to everyone who verifies your log",
];

/// A restore that would lose something.
fn would_lose(judgement: &Judgement, size: u64, folder: &Path) -> Failure {
    let message = match judgement.lost() {
        Some(lost) => format!(
            "{} would be lost: the log has {} signed records, the backup has {size}",
            counted(
                usize::try_from(lost).unwrap_or(usize::MAX),
                "signed record",
                "signed records"
            ),
            size + lost
        ),
        None => format!(
            "the backup has {size} records, and nothing in {} shows whether the log had more",
            folder.display()
        ),
    };
    // Files that show a newer log are here already, if the number is known.
    let newest = match judgement.lost() {
        Some(_) => "the newest store",
        None => "the newest store, or the files log.signed and checkpoint of its folder,",
    };
    Failure::new(message)
        .lines(vec![
            "Erasures, revoked keys, holds and answers after the backup would be undone.".to_owned(),
        ])
        .hint(format!(
            "copy {newest} to {} and run the command again; if that is gone, --accept-loss starts a new log",
            folder.display()
        ))
        .not_verified()
}
