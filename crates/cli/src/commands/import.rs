//! `countersign import`: tools of others as configuration that a person reads.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::terminal::Terminal;

mod fetch;
mod mcp;
mod openapi;

/// Import tools from an OpenAPI document or from MCP servers
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Import {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Mcp(mcp::Mcp),
    Openapi(openapi::Openapi),
}

impl Import {
    pub(crate) fn run(&self, terminal: &mut Terminal) -> Result<Exit, Failure> {
        match &self.command {
            Command::Mcp(mcp) => mcp.run(terminal),
            Command::Openapi(openapi) => openapi.run(terminal),
        }
    }
}
