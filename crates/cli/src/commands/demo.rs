//! `countersign demo`: the whole story in a minute, for a person to watch.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::ValueEnum;
use serde_json::json;

use super::counted;
use crate::answer::write_json;
use crate::demo::{self, Tally};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::place::PlaceOptions;
use crate::rules::RuleOptions;
use crate::terminal::Terminal;

/// Watch an order from sloppy text to signed evidence, with a real kill -9
///
/// Everything runs on a real store in a folder of its own, which is removed at the end; your data is not touched.
/// Every step checks what it claims. Exit code 1 where a check fails.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign demo
  countersign demo --pace fast
  countersign demo --json
  countersign demo --keep

With --data DIR or --keep the folder stays: `countersign verify --all --data DIR` looks at it again.")]
pub(crate) struct Demo {
    /// How fast it goes [default: watch at a terminal, else fast]
    #[arg(long, value_enum, hide_default_value = true)]
    pace: Option<Pace>,

    /// Leave the folder there
    #[arg(long)]
    keep: bool,

    #[command(flatten)]
    rules: RuleOptions,
}

/// How fast a demo goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Pace {
    /// As fast as it can
    Fast,
    /// So that a person can read along
    Watch,
}

impl Demo {
    pub(crate) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        if options.names_store() {
            return Err(Failure::new("the demo has a store of its own")
                .hint("leave --store out; --data says where"));
        }
        let named = options.named_data();
        let temporary = tempfile::Builder::new()
            .prefix("countersign-demo-")
            .tempdir()?;
        let data = match named {
            Some(data) => unused(data)?,
            None => temporary.path().join("data"),
        };
        let stays = named.is_some() || self.keep;
        if !terminal.is_for_programs() {
            let end = if stays {
                "it stays"
            } else {
                "removed at the end"
            };
            writeln!(
                terminal.data(),
                "countersign demo: a shopping agent that can answer for its draft orders"
            )?;
            writeln!(terminal.data(), "data folder: {} ({end})", data.display())?;
        }
        let begun = Instant::now();
        let tally = demo::play(&data, &self.rules, self.is_slow(terminal), terminal)?;
        if named.is_none() && self.keep {
            let _stays = temporary.keep();
        }
        let folder = stays.then_some(data.as_path());
        say_tally(terminal, &tally, folder, begun.elapsed().as_secs_f64())?;
        Ok(if tally.failed.is_empty() {
            Exit::Ok
        } else {
            Exit::Refused
        })
    }

    fn is_slow(&self, terminal: &Terminal) -> bool {
        match self.pace {
            Some(Pace::Watch) => !terminal.is_for_programs(),
            Some(Pace::Fast) => false,
            None => !terminal.is_for_programs() && std::io::stdout().is_terminal(),
        }
    }
}

/// A folder that nobody has put anything into.
fn unused(data: &Path) -> Result<PathBuf, Failure> {
    let is_used = std::fs::read_dir(data).is_ok_and(|mut entries| entries.next().is_some());
    if is_used {
        let message = format!("{} is not empty", data.display());
        return Err(
            Failure::new(message).hint("the demo needs a folder of its own; name one that is new")
        );
    }
    Ok(data.to_owned())
}

fn say_tally(
    terminal: &mut Terminal,
    tally: &Tally,
    folder: Option<&Path>,
    seconds: f64,
) -> Result<(), Failure> {
    if terminal.is_for_programs() {
        let value = json!({
            "summary": {
                "steps": tally.steps,
                "checks": tally.checks,
                "failed": tally.failed,
                "seconds": seconds,
                "data": folder,
            },
        });
        return write_json(terminal, &value);
    }
    let steps = counted(tally.steps, "step", "steps");
    let checks = counted(tally.checks, "check", "checks");
    if tally.failed.is_empty() {
        writeln!(
            terminal.data(),
            "\n{steps}, {checks}, all hold ({seconds:.1} s)"
        )?;
    } else {
        writeln!(terminal.data(), "\n{steps}, {checks} ({seconds:.1} s)")?;
    }
    for failed in &tally.failed {
        terminal.say(format_args!("FAILED {failed}"))?;
    }
    if let Some(folder) = folder {
        let folder = folder.display();
        writeln!(
            terminal.data(),
            "look again: countersign verify --all --data {folder}"
        )?;
    }
    Ok(())
}
