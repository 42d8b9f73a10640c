//! `countersign witness`: cosigns the checkpoints of other logs as long as they only grow.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use countersign_config::sections::Telemetry;
use countersign_config::value::Listen;
use countersign_evidence::note::VerifyingKey;
use countersign_gateway::witness::{Witness, log_id};
use serde_json::json;
use tokio::net::TcpListener;

use super::serve::{cannot_listen, signals};
use crate::answer::write_json;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::place::clock_and_ids;
use crate::terminal::Terminal;
use crate::{keys, telemetry};

/// Run a witness: cosign checkpoints of logs that only grow
///
/// A log sends its new checkpoints to this process, best on a machine of another organisation. It cosigns one only if the
/// log continues the one before, so a log that was put back or has a second history is noticed. It speaks C2SP
/// tlog-witness, so it also follows logs of other programs. Ctrl-C or SIGTERM stops it.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign witness --folder witness --name witness.example.com/w1 --log log.pub
  countersign witness --folder witness --log log.pub --log other.pub --listen 0.0.0.0:8790")]
pub(crate) struct WitnessCommand {
    /// Folder with the key of the witness and the latest checkpoint of each log
    #[arg(long, value_name = "DIR")]
    folder: PathBuf,

    /// Name of a new witness, such as witness.example.com/w1
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Public key of a log to follow: the text of its log.pub, or its path; may be repeated
    #[arg(long = "log", value_name = "KEY", required = true)]
    logs: Vec<String>,

    /// Listen address, or only a port on 127.0.0.1; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8790")]
    listen: Listen,
}

/// File that the running witness of a folder has locked.
const LOCK: &str = "witness.lock";

impl WitnessCommand {
    pub(crate) fn run(&self, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let (clock, ids) = clock_and_ids();
        let folder = Folder::make(self.folder.clone())?;
        // Two witnesses of one key would each cosign its own history.
        let lock = std::fs::File::create(folder.file(LOCK))?;
        lock.try_lock().map_err(|_| {
            Failure::new(format!(
                "another witness runs in {}",
                folder.path().display()
            ))
            .hint("stop it, or use another folder")
        })?;
        let cosigner = keys::witness(&folder, self.name.as_deref(), &*ids)?;
        let key = cosigner.key().to_string();
        let logs = self.logs.iter().map(|log| keys::public(log));
        let logs = logs.collect::<Result<Vec<_>, _>>()?;
        let witness = Witness::new(cosigner, clock.clone(), keeper(&folder));
        let witness = follow(witness, &logs, &folder)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        let dropped = Arc::new(AtomicU64::new(0));
        let log = Telemetry::default();
        let telemetry = telemetry::start(&log, runtime.handle(), terminal, clock, dropped)?;
        let listener = runtime.block_on(TcpListener::bind(*self.listen));
        let listener = listener.map_err(|error| cannot_listen(*self.listen, error))?;
        let mut signals = runtime.block_on(async { signals() })?;
        let url = format!("http://{}", listener.local_addr()?);
        say_where(terminal, &url, &key, &logs)?;
        runtime.block_on(witness.serve(listener, async {
            // The one who sends lives as long as the process.
            let _ = signals.wait_for(|count| *count > 0).await;
        }));
        drop((telemetry, lock));
        terminal.say("stopped")?;
        Ok(Exit::Ok)
    }
}

/// Keeps the latest checkpoint of a log in the folder.
fn keeper(folder: &Folder) -> impl Fn(&str, &str) -> std::io::Result<()> + use<> {
    let folder = folder.clone();
    move |id: &str, note: &str| {
        let written = folder.write(&checkpoint_file(id), note, 0o644);
        written.map_err(|failure| std::io::Error::other(failure.error))
    }
}

/// Follows all logs, each from its latest checkpoint in the folder.
fn follow(witness: Witness, logs: &[VerifyingKey], folder: &Folder) -> Result<Witness, Failure> {
    logs.iter().try_fold(witness, |witness, log| {
        let name = checkpoint_file(&log_id(log.name()));
        let latest = folder.read(&name)?;
        witness.follow(log.clone(), latest).map_err(|error| {
            let path = folder.file(&name);
            let context = format!("{} is not a checkpoint of this log", path.display());
            Failure::from(anyhow::Error::new(error).context(context))
                .hint("give the key that signed it; move the file away only if you know why the log has a new key")
        })
    })
}

/// Says where the witness is, and what its logs need to ask it.
fn say_where(
    terminal: &mut Terminal,
    url: &str,
    key: &str,
    logs: &[VerifyingKey],
) -> Result<(), Failure> {
    let copy = |log: &VerifyingKey| format!("{url}/checkpoint/{}", log_id(log.name()));
    let copies: Vec<String> = logs.iter().map(copy).collect();
    if terminal.is_for_programs() {
        write_json(terminal, &json!({"url": url, "key": key, "copies": copies}))?;
        return Ok(terminal.data().flush()?);
    }
    terminal.say(format_args!("listening on {url}"))?;
    let data = terminal.data();
    for (log, copy) in logs.iter().zip(copies) {
        writeln!(data, "# settings for countersign.toml of {}", log.name())?;
        writeln!(data, "[log]\ncopies = [\"{copy}\"]\n")?;
        writeln!(data, "[[witness]]\nurl = \"{url}\"\nkey = \"{key}\"")?;
    }
    Ok(data.flush()?)
}

fn checkpoint_file(id: &str) -> String {
    format!("{id}.checkpoint")
}
