//! `countersign store restore`: puts a backup in place without bringing back an erased user or a revoked key, and without signing a log
//! twice.
//!
//! If the store that went on since the backup is still there, it stays, and only documents are put back. If it is not, the records signed
//! since the backup are lost; then a new log begins, whose first record names the old one.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::answer::write_json;
use crate::backend::StoreName;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::place::PlaceOptions;
use crate::terminal::Terminal;

mod file;
mod judge;
mod log;
mod newer;

use judge::Judgement;

/// Put a backup in its place, and go on from it without a fork
///
/// Where the store that went on since the backup is still there, only documents are put back: the log, erasures, revoked
/// keys, holds, approvals, budgets and keys of calls stay as they are now. Where it is not, the newest `checkpoint` in the
/// folder tells whether anything that was signed would be lost; then this is refused, unless you accept the loss. A new log
/// begins then: its first record names the last known checkpoint of the old one, and all API keys and open approvals end.
///
/// Without FILE, the store that was put in its place by other means, such as `pg_restore`, is looked at in the same way.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign store restore /backups/countersign-2026-11-17.db
  countersign store restore /backups/countersign-2026-11-17.db --accept-loss
  countersign store restore --store postgres://app@db.example.org/countersign")]
pub(super) struct Restore {
    /// A file that `countersign store backup` has made [default: the store as it is]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// Begin a new log where records that were signed after the backup are lost
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
            return Err(running.in_the_way("a restore puts another store in the place of its own"));
        }
        let outcome = match (&self.file, &store) {
            (_, StoreName::Memory) => {
                return Err(Failure::new("nothing is restored into a store in memory")
                    .hint("name a store that stays"));
            }
            (Some(_), StoreName::Postgres(_)) => {
                return Err(Failure::new("a backup file is restored into a SQLite store").hint(
                    "leave --store out and then `countersign store migrate --to` an empty database; what pg_dump has made is restored with pg_restore",
                ));
            }
            (Some(file), StoreName::Sqlite(path)) => {
                file::restore(data, path, file, options, self.accept_loss)?
            }
            (None, StoreName::Sqlite(_) | StoreName::Postgres(_)) => {
                log::restore_in_place(data, &store, options, self.accept_loss)?
            }
        };
        tell(&outcome, terminal)?;
        Ok(Exit::Ok)
    }
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
        "ok: the log {origin} goes on from {records} records"
    ))?;
    match &outcome.how {
        How::PutBack {
            documents,
            removed,
            left_out,
            users_erased,
        } => {
            terminal.say(format_args!(
                "note: {documents} documents are as in the backup, {removed} newer ones are gone; everything else stays as it was"
            ))?;
            if *users_erased > 0 {
                terminal.say(format_args!(
                    "note: {users_erased} users of the backup were erased since: {left_out} documents of theirs were left out"
                ))?;
            }
        }
        How::Same => {
            terminal.say("note: nothing that was signed is lost")?;
            terminal.say(UNSIGNED)?;
        }
        How::NewLog { lost } => {
            match lost {
                Some(lost) => terminal.say(format_args!(
                    "note: {lost} signed records are lost, with the erasures, holds and answers in them: erase and hold again what you know of"
                ))?,
                None => terminal.say(
                    "note: records after the backup are lost, if there were any: erase and hold again what you know of",
                )?,
            }
            terminal.say(UNSIGNED)?;
            terminal.say(
                "note: all API keys and open approvals have ended: make keys with `countersign keys create`; give log.pub to those who check your log",
            )?;
        }
    }
    Ok(())
}

/// A call is answered when its record is durable, and the checkpoint follows within a second: nothing outside of the lost store
/// knows of the records in between.
const UNSIGNED: &str = "note: calls that were answered in the last second before the old store ended, and were not signed yet, may be lost; nothing names them: compare with what your callers have";

/// A restore that would lose something.
fn would_lose(judgement: &Judgement, size: u64, folder: &Path) -> Failure {
    let message = match judgement.lost() {
        Some(lost) => format!(
            "the log was signed for {} records in this folder, the restored store has {size}: {lost} records would be lost, with the erasures, revocations, holds and answers in them",
            size + lost
        ),
        None => format!(
            "nothing shows that the log ended with the {size} records of this copy: what was erased, revoked or answered since would be undone"
        ),
    };
    Failure::new(message)
        .hint(format!(
            "put the store that went on, or the newest checkpoint of its folder, into {}; --accept-loss begins a new log instead",
            folder.display()
        ))
        .not_verified()
}
