//! Starts workers, ends them, and compares their answers with the effects that happened.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use crate::point::Point;
use crate::tools::{Kind, Ledger};
use crate::worker::{Told, confirmation_of};

mod check;
mod kills;
mod race;

pub use check::{Tally, Verdict, check};
pub(crate) use kills::Dice;
pub use kills::{Kills, kills};
pub use race::{Race, race};

/// The program, store and ledger that every worker of a run uses.
#[derive(Debug, Clone)]
pub struct Arena {
    /// The worker's program.
    pub program: PathBuf,
    /// `postgres://…`, or the path of a SQLite file.
    pub store: String,
    /// The ledger of effects.
    pub ledger: PathBuf,
}

/// The options of one worker.
#[derive(Debug, Clone)]
pub struct Start {
    /// The tool that it calls.
    pub kind: Kind,
    /// The idempotency keys, as numbers.
    pub keys: Range<u32>,
    /// Offset in the key range of the first call.
    pub turn: u32,
    /// Maximum number of concurrent calls.
    pub tasks: usize,
    /// The point at which it ends, and the number of passes until then. `None` if it runs to its end.
    pub die: Option<(Point, u32)>,
    /// True if it only pauses at that point.
    pub pauses: bool,
    /// The user that calls, and so the owner of the keys.
    pub user: String,
    /// True if all calls count in one document.
    pub together: bool,
    /// True if more time passes than a service behind a tool remembers keys for.
    pub outlasts_windows: bool,
}

impl Start {
    /// A worker that calls these keys and is not killed.
    pub fn new(kind: Kind, keys: Range<u32>) -> Self {
        Self {
            kind,
            keys,
            turn: 0,
            tasks: 8,
            die: None,
            pauses: false,
            user: "u_1".to_owned(),
            together: false,
            outlasts_windows: false,
        }
    }
}

/// A running worker process.
pub struct Running {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Arena {
    /// Starts a worker.
    pub fn start(&self, start: &Start) -> Result<Running> {
        let mut command = Command::new(&self.program);
        command
            .arg("worker")
            .args(["--store", &self.store])
            .arg("--ledger")
            .arg(&self.ledger)
            .args(["--tool", start.kind.tool()])
            .args(["--from", &start.keys.start.to_string()])
            .args(["--to", &start.keys.end.to_string()])
            .args(["--turn", &start.turn.to_string()])
            .args(["--tasks", &start.tasks.to_string()])
            .args(["--user", &start.user]);
        if start.together {
            command.arg("--together");
        }
        if let Some((point, nth)) = start.die {
            command
                .args(["--die", &point.to_string()])
                .args(["--nth", &nth.to_string()]);
            if start.pauses {
                command.arg("--pause");
            }
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("{} does not start", self.program.display()))?;
        let out = child.stdout.take().context("the worker has an output")?;
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                // The receiver is gone: the driver has given up this worker.
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Running { child, lines })
    }

    /// Counts the external effects so far, for each key of a tool.
    pub fn effects(&self, kind: Kind) -> Result<BTreeMap<u32, usize>> {
        self.counted(kind.tool())
    }

    /// Counts the confirmations by users so far, for each key of a tool.
    pub fn approvals(&self, kind: Kind) -> Result<BTreeMap<u32, usize>> {
        self.counted(&confirmation_of(kind))
    }

    fn counted(&self, name: &str) -> Result<BTreeMap<u32, usize>> {
        let mut counted = BTreeMap::new();
        for line in Ledger::at(&self.ledger).lines()? {
            let mut words = line.split(' ');
            let (first, n) = (words.next(), words.nth(1));
            if first == Some(name) {
                let n: u32 = n.unwrap_or_default().parse()?;
                *counted.entry(n).or_default() += 1;
            }
        }
        Ok(counted)
    }

    /// Runs a worker until its process ends; true if it was killed.
    pub fn run(&self, start: &Start, tally: &mut Tally) -> Result<bool> {
        self.start(start)?.finish(tally)
    }
}

impl Running {
    /// Reads this many answers, or fewer if the worker ends before.
    pub fn wait_for(&mut self, answers: usize, tally: &mut Tally) -> Result<()> {
        for _ in 0..answers {
            match self.lines.recv() {
                Ok(line) => tally.told(&parse(&line)?),
                Err(mpsc::RecvError) => break,
            }
        }
        Ok(())
    }

    /// Kills the process at once, in the middle of its work.
    pub fn kill(&mut self) -> Result<()> {
        Ok(self.child.kill()?)
    }

    /// Waits until the process is stopped.
    pub fn wait_paused(&self) -> Result<()> {
        let status = waitpid(Some(self.pid()?), WaitOptions::UNTRACED)?;
        match status {
            Some((_, status)) if status.stopped() => Ok(()),
            Some(_) | None => bail!("the worker ended instead of pausing"),
        }
    }

    /// Resumes a paused process.
    pub fn resume(&self) -> Result<()> {
        kill_process(self.pid()?, Signal::CONT)?;
        let mut line = self.child.stdin.as_ref().context("a worker has an input")?;
        Ok(line.write_all(b"\n")?)
    }

    fn pid(&self) -> Result<Pid> {
        let id = i32::try_from(self.child.id())?;
        Pid::from_raw(id).context("a process has a number")
    }

    /// Reads all remaining answers and waits for the process to end; true if it was killed.
    pub fn finish(mut self, tally: &mut Tally) -> Result<bool> {
        while let Ok(line) = self.lines.recv() {
            tally.told(&parse(&line)?);
        }
        let status = self.child.wait()?;
        if status.success() {
            return Ok(false);
        }
        if std::os::unix::process::ExitStatusExt::signal(&status) == Some(9) {
            return Ok(true);
        }
        bail!("a worker ended with {status}")
    }
}

fn parse(line: &str) -> Result<Told> {
    serde_json::from_str(line).with_context(|| format!("a worker said {line:?}"))
}

/// Path of the worker's program, beside the current program.
pub fn worker_program() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let mut folder = own.parent().map(Path::to_owned).unwrap_or_default();
    if folder.ends_with("deps") {
        folder.pop();
    }
    Ok(folder.join("countersign-torture"))
}
