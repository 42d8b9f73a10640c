//! `countersign demo`: the whole story in a minute, for a person to watch.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use countersign_config::value::StoreAddress;
use serde_json::json;
use tempfile::TempDir;
use tokio::signal::unix::{SignalKind, signal};

use super::counted;
use crate::answer::write_json;
use crate::demo::{self, Tally};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::rules::RuleOptions;
use crate::terminal::Terminal;

/// Maximum number of attempts to remove a folder in use, and the pause between them.
const REMOVALS_MAX: u32 = 50;
const REMOVAL_PAUSE: Duration = Duration::from_millis(20);

/// Play a demo: an order from malformed text to signed evidence, with a real kill -9
///
/// The demo uses a temporary store and removes it at the end; your data is not touched. Every step checks its claims.
/// Exit code 1 if a check fails.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign demo
  countersign demo --pace fast
  countersign demo --json
  countersign demo --keep

With --json there is one line of JSON a step, and one with the summary at the end.
With --data or --keep the folder is kept: verify it again with `countersign verify --all --data DIR`.")]
pub(crate) struct Demo {
    /// Speed [default: watch at a terminal, otherwise fast]
    #[arg(long, value_enum, hide_default_value = true)]
    pace: Option<Pace>,

    /// New or empty folder for the data, which is kept [default: a temporary folder]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Keep the temporary folder
    #[arg(long)]
    keep: bool,

    /// The demo has a store of its own, and refuses another one.
    #[arg(long, hide = true)]
    store: Option<StoreAddress>,

    /// The same of the log.
    #[arg(long, hide = true)]
    log_origin: Option<String>,

    #[command(flatten)]
    rules: RuleOptions,
}

/// Speed of a demo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Pace {
    /// As fast as possible
    Fast,
    /// Slow enough to read
    Watch,
}

impl Demo {
    pub(crate) fn run(&self, terminal: &mut Terminal) -> Result<Exit, Failure> {
        if self.store.is_some() || self.log_origin.is_some() {
            return Err(Failure::new("the demo uses its own store")
                .hint("leave out --store and --log-origin; --data names the folder"));
        }
        let (data, temporary) = if let Some(data) = &self.data {
            (unused(data)?, None)
        } else {
            let temporary = temporary()?;
            (temporary.path().join("data"), Some(temporary))
        };
        let stays = self.data.is_some() || self.keep;
        if let Some(temporary) = temporary.as_ref().filter(|_| !stays) {
            remove_when_told_to_stop(temporary.path().to_owned())?;
        }
        if !terminal.is_for_programs() {
            let end = if stays { "kept" } else { "removed at the end" };
            writeln!(
                terminal.data(),
                "countersign demo: a shopping agent that can answer for its draft orders"
            )?;
            writeln!(terminal.data(), "data folder: {} ({end})", data.display())?;
        }
        let begun = Instant::now();
        let tally = demo::play(&data, &self.rules, self.is_slow(terminal), terminal)?;
        if let Some(temporary) = temporary.filter(|_| self.keep) {
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

/// Makes a temporary folder that is removed when the demo ends.
fn temporary() -> Result<TempDir, Failure> {
    let made = tempfile::Builder::new()
        .prefix("countersign-demo-")
        .tempdir();
    made.map_err(|error| {
        let folder = std::env::temp_dir();
        let message = format!("cannot create a folder in {}: {error}", folder.display());
        Failure::new(message).hint("set TMPDIR to a folder that can be written, or use --data DIR")
    })
}

/// Removes the folder on Ctrl-C and SIGTERM before the process ends, so that a demo that is stopped leaves no keys behind.
fn remove_when_told_to_stop(folder: PathBuf) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let guard = runtime.enter();
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut told = signal(SignalKind::terminate())?;
    drop(guard);
    std::thread::spawn(move || {
        let code = runtime.block_on(async {
            tokio::select! {
                _ = interrupted.recv() => 130,
                _ = told.recv() => 143,
            }
        });
        // The story may be writing a file into a folder that is being emptied.
        for _ in 0..REMOVALS_MAX {
            if std::fs::remove_dir_all(&folder).is_ok() || !folder.exists() {
                break;
            }
            std::thread::sleep(REMOVAL_PAUSE);
        }
        std::process::exit(code);
    });
    Ok(())
}

/// Checks that a folder is new or empty.
fn unused(data: &Path) -> Result<PathBuf, Failure> {
    let is_used = std::fs::read_dir(data).is_ok_and(|mut entries| entries.next().is_some());
    if is_used {
        let message = format!("{} is not empty", data.display());
        return Err(Failure::new(message).hint("name a new or empty folder"));
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
            "\n{steps}, {checks}, all passed ({seconds:.1} s)"
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
            "verify again: countersign verify --all --data {folder}"
        )?;
    }
    Ok(())
}
