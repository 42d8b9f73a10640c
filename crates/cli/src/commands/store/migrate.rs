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

/// Copy the SQLite store to an empty PostgreSQL database, and compare both
///
/// Stop the server first. All data is copied: user keys, claims, documents, records, payloads, the tree of the log and
/// its checkpoints. Then the command reads everything back and computes the root of the tree from the copied records.
/// The SQLite file is not changed.
///
/// From then on use the new store with --store, and keep the data folder: it has the master key and the log key.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign store migrate --to postgres://app@db.example.org/countersign")]
pub(super) struct Migrate {
    /// Address of the empty database
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
            return Err(Failure::new("only a SQLite store can be migrated")
                .hint("name the file with --store sqlite:PATH"));
        };
        let StoreName::Postgres(_) = &self.to else {
            return Err(Failure::new("a store can only be migrated to PostgreSQL")
                .hint("name an empty database: --to postgres://USER@HOST/DATABASE"));
        };
        let bar = terminal.bar(0, "rows");
        let copied = place.runtime.block_on(async {
            let to = Backend::open(
                &self.to,
                place.binding().await?,
                &place.config().store,
                None,
            )
            .await?;
            let Backend::Postgres(to) = &to else {
                return Err(Failure::new("a store can only be migrated to PostgreSQL"));
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
            return failure.hint("create a new, empty database; this one was not changed");
        }
        failure.hint("the SQLite file was not changed; empty the database before you try again")
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
            "from now on use --store {} (or COUNTERSIGN_STORE) with the same data folder",
            self.to
        ))?;
        Ok(())
    }
}
