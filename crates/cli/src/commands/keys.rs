//! `countersign keys`: the API keys of callers, and the master key of the installation.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::place::PlaceOptions;
use crate::terminal::Terminal;

pub(crate) mod change;
pub(crate) mod create;
pub(crate) mod list;
pub(crate) mod master;
mod shelf;

/// Create, list, rotate and revoke API keys; rotate the master key
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Keys {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Create(create::Create),
    List(list::List),
    Rotate(change::Rotate),
    Revoke(change::Revoke),
    RotateMaster(master::RotateMaster),
}

impl Keys {
    pub(crate) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        match &self.command {
            Command::Create(create) => create.run(options, terminal),
            Command::List(list) => options.perform(list, terminal),
            Command::Rotate(rotate) => rotate.run(options, terminal),
            Command::Revoke(revoke) => revoke.run(options, terminal),
            Command::RotateMaster(rotate) => options.perform(rotate, terminal),
        }
    }
}
