//! The `countersign` command: reads the command line, runs one command, answers with an exit code.
//!
//! What a command computes goes to stdout, everything about it to stderr, so that stdout can always
//! be piped. The rules for all commands are in `docs/cli-style.md`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::place::PlaceOptions;
use crate::terminal::Terminal;

mod answer;
mod backend;
mod backup;
mod catalog;
mod commands;
mod demo;
mod exit;
mod failure;
mod folder;
mod journal;
mod json;
mod keys;
mod moment;
mod operations;
mod place;
mod policy;
mod progress;
mod rules;
mod running;
mod served;
mod table;
mod telemetry;
mod terminal;
mod views;

/// The tool layer for AI agents: what models write is bound to declared types, run once, and answered
/// in one envelope.
#[derive(Debug, Parser)]
#[command(
    name = "countersign",
    version,
    arg_required_else_help = true,
    after_help = "Exit codes: 0 ok, 1 the call answered an error or the text is not bound, 2 wrong use,\n\
                  3 a verification failed, 4 a bundle is consistent but the signer was not checked.\n\
                  What a command computes is on stdout, everything else on stderr."
)]
struct Cli {
    /// Write JSON for programs instead of text for people
    #[arg(long, global = true)]
    json: bool,

    #[command(flatten)]
    place: PlaceOptions,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Approvals(commands::approvals::Approvals),
    Bind(commands::bind::Bind),
    Call(commands::call::Call),
    Calls(commands::calls::Calls),
    CallShow(commands::calls::CallShow),
    Claims(commands::claims::Claims),
    Demo(commands::demo::Demo),
    #[command(hide = true)]
    DemoWorker(demo::worker::Worker),
    Doctor(commands::doctor::Doctor),
    Evidence(commands::evidence::Evidence),
    Keys(commands::keys::Keys),
    Mcp(commands::mcp::Mcp),
    Replay(commands::replay::Replay),
    Rules(commands::rules::RulesCommand),
    Serve(commands::serve::Serve),
    Status(commands::status::Status),
    Store(commands::store::Store),
    Tools(commands::tools::Tools),
    Verify(commands::verify::Verify),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut terminal = Terminal::new(cli.json);
    let done = run(&cli, &mut terminal).and_then(|exit| {
        terminal.flush()?;
        Ok(exit)
    });
    done.unwrap_or_else(|failure| terminal.report(&failure))
        .into()
}

fn run(cli: &Cli, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let place = &cli.place;
    match &cli.command {
        Command::Approvals(approvals) => approvals.run(place, terminal),
        Command::Bind(bind) => bind.run(terminal),
        Command::Call(call) => call.run(place, terminal),
        Command::Calls(calls) => calls.run(place, terminal),
        Command::CallShow(show) => show.run(place, terminal),
        Command::Claims(claims) => claims.run(place, terminal),
        Command::Demo(demo) => demo.run(terminal),
        Command::DemoWorker(worker) => worker.run(place.named_data()),
        Command::Doctor(doctor) => doctor.run(place, terminal),
        Command::Evidence(evidence) => evidence.run(place, terminal),
        Command::Keys(keys) => keys.run(place, terminal),
        Command::Mcp(mcp) => mcp.run(place, terminal),
        Command::Replay(replay) => replay.run(place, terminal),
        Command::Rules(rules) => rules.run(place, terminal),
        Command::Serve(serve) => serve.run(place, terminal),
        Command::Status(status) => status.run(place, terminal),
        Command::Store(store) => store.run(place, terminal),
        Command::Tools(tools) => tools.run(terminal),
        Command::Verify(verify) => verify.run(place, terminal),
    }
}
