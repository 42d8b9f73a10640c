//! `countersign store`: where everything is kept.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::place::{Need, PlaceFlags};
use crate::terminal::Terminal;

pub(crate) mod backup;
pub(crate) mod clock;
mod migrate;
pub(crate) mod restore;

/// Back up, restore or migrate the store, or trust its clock
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Store {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Backup(backup::Backup),
    Restore(restore::Restore),
    Migrate(migrate::Migrate),
    TrustClock(clock::TrustClock),
}

impl Store {
    pub(crate) fn run(&self, flags: &PlaceFlags, terminal: &mut Terminal) -> Result<Exit, Failure> {
        match &self.command {
            Command::Backup(backup) => {
                backup.run(&flags.read_at_hand(Need::Data, terminal)?, terminal)
            }
            Command::Restore(restore) => restore.run(&flags.read(terminal)?, terminal),
            Command::Migrate(migrate) => migrate.run(&flags.read(terminal)?, terminal),
            Command::TrustClock(trust) => {
                trust.run(&flags.read_at_hand(Need::Data, terminal)?, terminal)
            }
        }
    }
}
