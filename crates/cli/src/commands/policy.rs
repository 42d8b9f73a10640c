//! `countersign policy`: look at a policy, ask it, and test it before it is in force.

use std::path::PathBuf;

use countersign_gateway::policy::Policy;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::place::PlaceOptions;
use crate::terminal::Terminal;
use crate::{config, policy};

mod ask;
pub(crate) mod check;
pub(crate) mod explain;
pub(crate) mod recorded;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod test;

/// Look at a policy, ask what it decides and why, and test it
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct PolicyCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Check(Check),
    Explain(explain::Explain),
    Replay(replay::Replay),
    Report(report::Report),
    Test(test::Test),
}

/// Show who may call what under a policy, its limits and budgets, and what in it looks like a mistake
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign policy check
  countersign policy check --policy policy.toml --json")]
struct Check {
    #[command(flatten)]
    source: Source,
}

/// Policy to look at.
#[derive(Debug, clap::Args)]
pub(crate) struct Source {
    /// The policy file; without it, that of the configuration
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
}

impl Source {
    /// The configuration with this policy.
    fn options(&self, options: &PlaceOptions) -> Result<PlaceOptions, Failure> {
        let given = config::path_flag("policy", "--policy", self.policy.as_ref())?;
        options.with(given.into_iter().collect())
    }

    /// The configuration with this policy, and the policy. Says if a server runs under another one, unless a file is named.
    fn read(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<(PlaceOptions, Policy), Failure> {
        let options = self.options(options)?;
        let read = policy::read(options.loaded());
        let policy = read.map_err(|error| policy::refused(options.loaded(), error))?;
        if self.policy.is_none()
            && let Ok(Some(running)) = options.running()
            && let Some(other) = policy::other_in_force(&running, &policy)
        {
            let (pid, this) = (running.about.pid, policy.revision());
            terminal.say(format_args!(
                "note: this is about the policy {this}. The server that runs (process {pid}) has another one, {other}: name its file with --policy"
            ))?;
        }
        Ok((options, policy))
    }
}

impl PolicyCommand {
    pub(crate) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        match &self.command {
            Command::Check(check) => {
                let (options, policy) = check.source.read(options, terminal)?;
                check::check(terminal, &policy, options.loaded())
            }
            Command::Explain(explain) => explain.run(options, terminal),
            Command::Replay(replay) => replay.run(options, terminal),
            Command::Report(report) => options.perform(report, terminal),
            Command::Test(test) => test.run(options, terminal),
        }
    }
}
