//! The `countersign` command: reads the command line, runs one command, answers with an exit code.
//!
//! The result of a command goes to stdout, everything about it to stderr, so that stdout can always be piped. The rules for all commands
//! are in `docs/cli-style.md`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::place::{Need, PlaceFlags};
use crate::terminal::Terminal;

mod answer;
mod backend;
mod backup;
mod catalog;
mod commands;
mod config;
mod copies;
mod demo;
mod drill;
mod exit;
mod failure;
mod folder;
mod journal;
mod json;
mod junit;
mod keys;
mod notify;
mod operations;
mod paint;
mod place;
mod policy;
mod progress;
mod recording;
mod rules;
mod running;
mod served;
mod sign_in;
mod table;
mod telemetry;
mod terminal;
#[cfg(test)]
mod tests;
mod victim;
mod views;
mod witnesses;

/// Gateway between AI agents and their tools
///
/// Each call is validated and repaired, checked against policy, deduplicated, and logged with signed evidence.
#[derive(Debug, Parser)]
#[command(
    name = "countersign",
    version,
    arg_required_else_help = true,
    after_help = "Exit codes: 0 success, 1 the answer is an error or a refusal, 2 the command could not run,\n\
                  3 a verification failed, 4 a bundle is consistent but its signer was not checked.\n\
                  stdout has the result, stderr has everything else. NO_COLOR=1 turns colours off."
)]
struct Cli {
    /// Write JSON for programs
    #[arg(long, global = true)]
    json: bool,

    #[command(flatten)]
    place: PlaceFlags,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Approvals(commands::approvals::Approvals),
    Attention(commands::attention::AttentionCommand),
    Bind(commands::bind::Bind),
    Call(commands::call::Call),
    Calls(commands::calls::Calls),
    CallShow(commands::calls::CallShow),
    Case(commands::case::CaseCommand),
    Claims(commands::claims::Claims),
    Completions(commands::completions::Completions),
    Config(commands::config::ConfigCommand),
    Console(commands::console::Console),
    Demo(commands::demo::Demo),
    #[command(hide = true)]
    DemoWorker(demo::worker::Worker),
    Doctor(commands::doctor::Doctor),
    Drill(commands::drill::Drill),
    #[command(hide = true)]
    DrillWorker(drill::worker::DrillWorker),
    Evidence(commands::evidence::Evidence),
    Grants(commands::grants::Grants),
    Import(commands::import::Import),
    Init(commands::init::Init),
    Keys(commands::keys::Keys),
    Lint(commands::lint::Lint),
    Man(commands::man::Man),
    Mcp(commands::mcp::Mcp),
    Notify(commands::notify::NotifyCommand),
    Policy(commands::policy::PolicyCommand),
    Record(commands::record::Record),
    Replay(commands::replay::Replay),
    Rules(commands::rules::RulesCommand),
    Serve(commands::serve::Serve),
    Status(commands::status::Status),
    Store(commands::store::Store),
    Tools(commands::tools::Tools),
    Top(commands::top::Top),
    Upstreams(commands::upstreams::UpstreamsCommand),
    Verify(commands::verify::Verify),
    Witness(commands::witness::WitnessCommand),
    Wrap(commands::wrap::Wrap),
}

/// Many small pieces of memory live as long as one call, on several threads at once. `docs/benchmarks.md` compares it with the allocator of
/// the C library.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut terminal = Terminal::new(cli.json).naming(cli.place.in_words());
    let done = run(&cli, &mut terminal).and_then(|exit| {
        terminal.flush()?;
        Ok(exit)
    });
    done.unwrap_or_else(|failure| terminal.report(&failure))
        .into()
}

fn run(cli: &Cli, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let flags = &cli.place;
    let at_hand = |need, terminal: &mut Terminal| flags.read_at_hand(need, terminal);
    match &cli.command {
        Command::Approvals(approvals) => approvals.run(&at_hand(Need::Data, terminal)?, terminal),
        Command::Attention(attention) => {
            attention.run(&at_hand(Need::ServerOrFile, terminal)?, terminal)
        }
        Command::Bind(bind) => bind.run(flags, terminal),
        Command::Call(call) => call.run(&at_hand(Need::ServerOrFile, terminal)?, terminal),
        Command::Calls(calls) => calls.run(&at_hand(Need::Data, terminal)?, terminal),
        Command::CallShow(show) => show.run(&at_hand(Need::Data, terminal)?, terminal),
        Command::Case(case) => case.run(&at_hand(Need::Data, terminal)?, terminal),
        Command::Claims(claims) => claims.run(&at_hand(Need::Data, terminal)?, terminal),
        Command::Completions(completions) => completions.run(terminal),
        Command::Config(config) => config.run(flags, terminal),
        Command::Console(console) => console.run(&at_hand(Need::Data, terminal)?, terminal),
        Command::Demo(demo) => demo.run(terminal),
        Command::DemoWorker(worker) => worker.run(flags.data.as_deref()),
        Command::Doctor(doctor) => doctor.run(flags, terminal),
        Command::Drill(drill) => drill.run(&flags.read(terminal)?, terminal),
        Command::DrillWorker(worker) => worker.run(&flags.read_quietly()?),
        Command::Evidence(evidence) => evidence.run(&at_hand(Need::Data, terminal)?, terminal),
        Command::Grants(grants) => grants.run(&at_hand(Need::ServerOrFile, terminal)?, terminal),
        Command::Import(import) => import.run(terminal),
        Command::Init(init) => init.run(flags, terminal),
        Command::Keys(keys) => keys.run(&at_hand(Need::Data, terminal)?, terminal),
        Command::Lint(lint) => lint.run(flags, terminal),
        Command::Man(man) => man.run(terminal),
        Command::Mcp(mcp) => mcp.run(&flags.read(terminal)?, terminal),
        Command::Notify(notify) => notify.run(flags, terminal),
        Command::Policy(policy) => policy.run(&flags.read(terminal)?, terminal),
        Command::Record(record) => record.run(&at_hand(Need::ServerOrFile, terminal)?, terminal),
        Command::Replay(replay) => replay.run(&at_hand(Need::ServerOrFile, terminal)?, terminal),
        Command::Rules(rules) => rules.run(&at_hand(Need::Data, terminal)?, terminal),
        Command::Serve(serve) => serve.run(flags, terminal),
        Command::Status(status) => status.run(&at_hand(Need::ServerOrFile, terminal)?, terminal),
        Command::Store(store) => store.run(flags, terminal),
        Command::Tools(tools) => tools.run(&flags.read(terminal)?, terminal),
        Command::Top(top) => top.run(&at_hand(Need::Data, terminal)?, terminal),
        Command::Upstreams(upstreams) => upstreams.run(&flags.read(terminal)?, terminal),
        Command::Verify(verify) => verify.run(flags, terminal),
        Command::Witness(witness) => witness.run(terminal),
        Command::Wrap(wrap) => wrap.run(flags, terminal),
    }
}
