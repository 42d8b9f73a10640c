//! The `countersign` command: reads the command line, runs one command, answers with an exit code.
//!
//! What a command computes goes to stdout, everything about it to stderr, so that stdout can always
//! be piped. The rules for all commands are in `docs/cli-style.md`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::terminal::Terminal;

mod commands;
mod exit;
mod failure;
mod json;
mod nearest;
mod samples;
mod table;
mod terminal;

/// The tool layer for AI agents: what models write is bound to declared types, run once, and answered
/// in one envelope.
#[derive(Debug, Parser)]
#[command(
    name = "countersign",
    version,
    arg_required_else_help = true,
    after_help = "Exit codes: 0 ok, 1 the call answered an error or the text is not bound, 2 wrong use.\n\
                  What a command computes is on stdout, everything else on stderr."
)]
struct Cli {
    /// Write JSON for programs instead of text for people
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Bind(commands::bind::Bind),
    Call(commands::call::Call),
    Tools(commands::tools::Tools),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut terminal = Terminal::new(cli.json);
    let done = run(&cli.command, &mut terminal).and_then(|exit| {
        terminal.flush()?;
        Ok(exit)
    });
    done.unwrap_or_else(|failure| terminal.report(&failure))
        .into()
}

fn run(command: &Command, terminal: &mut Terminal) -> Result<Exit, Failure> {
    match command {
        Command::Bind(bind) => bind.run(terminal),
        Command::Call(call) => call.run(terminal),
        Command::Tools(tools) => tools.run(terminal),
    }
}
