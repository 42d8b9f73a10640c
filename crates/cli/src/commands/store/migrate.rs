//! `countersign store migrate`: from a SQLite file to PostgreSQL.

use countersign_store::transfer::{self, CopyError, Phase, Report};
use serde_json::json;

use super::super::counted;
use crate::answer::write_json;
use crate::backend::{Backend, StoreName};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::place::PlaceOptions;
use crate::terminal::Terminal;

/// Copy everything from the SQLite file into an empty PostgreSQL database, and compare
///
/// Keys, claims, documents, records, payloads, the tree and its checkpoints are copied; then all of it is
/// read back, and the root of the tree is computed again from the copied records. The file stays as it
/// is. Use the new store with --store from then on, and keep the data folder: the master key and the
/// log's key are there.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign store migrate --to postgres://app@db.example.org/countersign")]
pub(super) struct Migrate {
    /// The empty database
    #[arg(long, value_name = "ADDRESS")]
    to: StoreName,
}

impl Migrate {
    pub(super) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        let place = options.open()?;
        let Backend::Sqlite(from) = &place.backend else {
            return Err(Failure::new("only a SQLite store can be copied from")
                .hint("name it with --store sqlite:PATH"));
        };
        let StoreName::Postgres(_) = &self.to else {
            return Err(Failure::new("only PostgreSQL can be copied to")
                .hint("name an empty database: --to postgres://USER@HOST/DATABASE"));
        };
        let bar = terminal.bar(0, "rows");
        let copied = place.runtime.block_on(async {
            let to = Backend::open(&self.to, place.binding().await?, &place.config().store).await?;
            let Backend::Postgres(to) = &to else {
                return Err(Failure::new("only PostgreSQL can be copied to"));
            };
            let mut show = |progress: transfer::Progress| {
                bar.set_message(match progress.phase {
                    Phase::Copy => "copied",
                    Phase::Verify => "compared",
                });
                bar.set_length(progress.rows);
                bar.set_position(progress.rows);
            };
            let copied = transfer::copy(from, to, &mut show).await;
            copied.map_err(|error| self.failed(error))
        });
        bar.finish_and_clear();
        let report = copied?;
        self.tell(&report, terminal)?;
        Ok(Exit::Ok)
    }

    fn failed(&self, error: CopyError) -> Failure {
        let is_full = matches!(error, CopyError::NotEmpty { .. });
        let error = anyhow::Error::new(error).context(format!("cannot copy to {}", self.to));
        let failure = Failure::from(error);
        if is_full {
            return failure.hint("make a new database: what is in this one is not touched");
        }
        failure.hint("the file is as it was; empty the database before you try again")
    }

    fn tell(&self, report: &Report, terminal: &mut Terminal) -> Result<(), Failure> {
        if terminal.is_for_programs() {
            return write_json(
                terminal,
                &json!({
                    "to": self.to.to_string(),
                    "user_keys": report.user_keys,
                    "claims": report.claims,
                    "documents": report.documents,
                    "records": report.records,
                    "payloads": report.payloads,
                    "checkpoints": report.checkpoints,
                    "holds": report.holds,
                    "pots": report.pots,
                    "tree_size": report.tree.map_or(0, |tree| tree.size),
                }),
            );
        }
        let number = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        terminal.say(format_args!(
            "copied and compared: {}, {}, {}, {}",
            counted(number(report.records), "record", "records"),
            counted(number(report.payloads), "payload", "payloads"),
            counted(number(report.claims), "claim", "claims"),
            counted(number(report.documents), "document", "documents"),
        ))?;
        terminal.say(format_args!(
            "from now on: --store {} (or COUNTERSIGN_STORE), with the same data folder",
            self.to
        ))?;
        Ok(())
    }
}
