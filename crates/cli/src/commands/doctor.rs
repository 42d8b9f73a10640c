//! `countersign doctor`: whether an installation is in order, point by point.

use countersign::ledger::{ClaimQuery, ClaimState};
use countersign_config::sections::Keys;
use countersign_evidence::checkpoint::Checkpoint;
use serde::{Deserialize, Serialize};

use super::counted;
use crate::answer::write_table;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::journal::CHECKPOINT;
use crate::keys::{self, LOG, LOG_PUBLIC, MASTER, MASTER_OLD, MasterSource};
use crate::operations::Operation;
use crate::place::{Place, PlaceOptions, store_failed};
use crate::rules::kept;
use crate::running::Running;
use crate::table::Table;
use crate::terminal::Terminal;

/// Look whether everything is in order: folder, keys, store, log, disk
///
/// Changes nothing. Exit code 1 where something is wrong.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign doctor
  countersign doctor --json | jq '.[] | select(.state != \"ok\")'")]
pub(crate) struct Doctor {}

/// State of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Standing {
    Ok,
    /// Worth knowing.
    Note,
    /// Has to be looked at.
    Wrong,
}

#[derive(Serialize)]
struct Point {
    what: &'static str,
    state: Standing,
    found: String,
}

#[derive(Default)]
struct Points(Vec<Point>);

impl Points {
    fn add(&mut self, what: &'static str, state: Standing, found: impl Into<String>) {
        let found = found.into();
        self.0.push(Point { what, state, found });
    }

    /// Adds a point. A check that could not be made is added as a point too, in the state `Wrong`.
    fn add_result(&mut self, what: &'static str, found: Result<(Standing, String), Failure>) {
        let (state, found) = found.unwrap_or_else(|failure| (Standing::Wrong, told(failure)));
        self.add(what, state, found);
    }
}

/// A failure in one line.
fn told(failure: Failure) -> String {
    let hint = failure.hint.map(|hint| format!("; {hint}"));
    format!("{:#}{}", failure.error, hint.unwrap_or_default())
}

impl Doctor {
    #[expect(clippy::unused_self, reason = "every command is run through itself")]
    pub(crate) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        let (data, store) = options.names()?;
        let folder = match Folder::existing(data) {
            Ok(folder) => folder,
            Err(failure) => {
                let hint = failure.hint.unwrap_or_default();
                let mut points = Points::default();
                let found = format!("{}; {hint}", failure.error);
                points.add("data folder", Standing::Note, found);
                return points.write(terminal);
            }
        };
        let asked = Asked {
            store: store.to_string(),
            server: None,
        };
        match options.running() {
            Ok(Some(running)) => {
                let server = Some(running.ask("/readyz").map_or_else(
                    |failure| (Standing::Wrong, told(failure)),
                    |answer| server(&running, &answer),
                ));
                running.perform(&Asked { server, ..asked }, terminal)
            }
            Ok(None) => {
                let mut points = asked.begin(&folder, &options.config().keys);
                match options.open() {
                    Ok(place) => examine_store(&place, &mut points),
                    Err(failure) => points.add_result("store opens", Err(failure)),
                }
                points.write(terminal)
            }
            // Somebody is there who is not the server of this folder.
            Err(failure) => {
                let mut points = asked.begin(&folder, &options.config().keys);
                points.add_result("server", Err(failure));
                points.write(terminal)
            }
        }
    }
}

/// The operation, with the findings that the command has made already.
#[derive(Serialize, Deserialize)]
pub(crate) struct Asked {
    /// The store, as the command line names it.
    store: String,
    /// Finding about the running server; `None` if there is no server.
    server: Option<(Standing, String)>,
}

impl Operation for Asked {
    const NAME: &'static str = "doctor";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let mut points = self.begin(&place.folder, &place.config().keys);
        examine_store(place, &mut points);
        points.write(terminal)
    }
}

impl Asked {
    fn begin(&self, folder: &Folder, named: &Keys) -> Points {
        let mut points = Points::default();
        examine_folder(folder, named, &mut points);
        points.add("store", Standing::Ok, &*self.store);
        if let Some((state, found)) = &self.server {
            points.add("server", *state, &**found);
        }
        points
    }
}

impl Points {
    fn write(&self, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let mut table = Table::new(["STATE", "WHAT", "FOUND"]);
        for point in &self.0 {
            let state = match point.state {
                Standing::Ok => "ok",
                Standing::Note => "note",
                Standing::Wrong => "WRONG",
            };
            table.row([state, point.what, &point.found]);
        }
        write_table(terminal, &self.0, &table, "")?;
        let is_wrong = |point: &Point| point.state == Standing::Wrong;
        Ok(if self.0.iter().any(is_wrong) {
            Exit::Refused
        } else {
            Exit::Ok
        })
    }
}

fn examine_folder(folder: &Folder, named: &Keys, points: &mut Points) {
    points.add_result("data folder", private_folder(folder));
    points.add_result("master key", master(folder, named));
    if folder.file(MASTER_OLD).exists() {
        let found = "a rotation is not finished; run `countersign keys rotate-master`";
        points.add("old master key", Standing::Note, found);
    }
    points.add_result("log key", log_key(folder));
    points.add_result("kept rules", kept_rules(folder));
    points.add_result("disk", disk(folder));
}

fn private_folder(folder: &Folder) -> Result<(Standing, String), Failure> {
    let path = folder.path().display();
    let mode = folder.mode("")?.unwrap_or_default();
    Ok(if mode.trailing_zeros() >= 6 {
        (Standing::Ok, format!("{path} (mode {mode:04o})"))
    } else {
        let found = format!("{path} may be read by others (mode {mode:04o}); chmod 700 {path}");
        (Standing::Note, found)
    })
}

fn master(folder: &Folder, named: &Keys) -> Result<(Standing, String), Failure> {
    Ok(match keys::master(folder, named)? {
        Some((key, MasterSource::Folder)) => (Standing::Ok, format!("{} in {MASTER}", key.id())),
        Some((key, MasterSource::NamedFile)) => {
            let found = format!("{} in the file that keys.master names", key.id());
            (Standing::Ok, found)
        }
        Some((key, MasterSource::Environment)) => {
            (Standing::Ok, format!("{} in the environment", key.id()))
        }
        None => (Standing::Wrong, format!("{MASTER} is missing")),
    })
}

fn log_key(folder: &Folder) -> Result<(Standing, String), Failure> {
    let Some(key) = keys::log(folder)? else {
        return Ok((Standing::Wrong, format!("{LOG} is missing")));
    };
    let public = key.verifying_key().to_string();
    let written = folder.read(LOG_PUBLIC)?.unwrap_or_default();
    Ok(if written.trim() == public {
        (Standing::Ok, public)
    } else {
        (
            Standing::Wrong,
            format!("{LOG_PUBLIC} is not of {LOG}; it should be {public}"),
        )
    })
}

/// Checks the kept rules: those that were in force once, and are needed to compute old calls again.
fn kept_rules(folder: &Folder) -> Result<(Standing, String), Failure> {
    let files = kept::files(folder)?;
    let problems: Vec<String> = files
        .iter()
        .filter_map(|file| file.usable().err())
        .collect();
    Ok(if problems.is_empty() {
        (Standing::Ok, counted(files.len(), "version", "versions"))
    } else {
        (Standing::Wrong, problems.join("; "))
    })
}

fn disk(folder: &Folder) -> Result<(Standing, String), Failure> {
    /// Free space below which the doctor warns: the space that the guard of the store keeps free, and room to act.
    const LOW_BYTES: u64 = 512 * 1024 * 1024;
    let stat = rustix::fs::statvfs(folder.path()).map_err(std::io::Error::from)?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let found = format!("{} MiB free", free / (1024 * 1024));
    Ok(if free < LOW_BYTES {
        (
            Standing::Wrong,
            format!("{found}; make room before writing stops"),
        )
    } else {
        (Standing::Ok, found)
    })
}

fn examine_store(place: &Place, points: &mut Points) {
    for (what, state, found) in place.backend.particulars() {
        let state = if state { Standing::Ok } else { Standing::Note };
        points.add(what, state, found);
    }
    points.add_result("log", log(place));
    points.add_result("in doubt", in_doubt(place));
}

/// Builds the finding about a running server from its answer.
fn server(running: &Running, answer: &str) -> (Standing, String) {
    let answer = answer.trim();
    let found = format!(
        "works at {} (process {}): {}",
        running.place(),
        running.about.pid,
        answer.replace('\n', "; ")
    );
    let state = if answer == "ready" {
        Standing::Ok
    } else {
        Standing::Note
    };
    (state, found)
}

/// The tree in the store beside the checkpoint that is kept outside of it.
fn log(place: &Place) -> Result<(Standing, String), Failure> {
    // In this order: the tree of a server grows meanwhile, and never shrinks.
    let note = place.folder.read(CHECKPOINT)?;
    let head = place
        .runtime
        .block_on(place.store().head())
        .map_err(store_failed)?;
    let Some(note) = note else {
        let state = if head.size == 0 {
            Standing::Ok
        } else {
            Standing::Note
        };
        return Ok((state, format!("{}, no checkpoint", records(head.size))));
    };
    // The key that is on the disk now: it signs after the next start.
    let key = keys::log(&place.folder)?;
    let key = key.map_or_else(|| place.log_key.clone(), |key| key.verifying_key());
    let signed = Checkpoint::open(&note, &key)?;
    let found = format!("{}, signed for {}", records(head.size), signed.size);
    Ok(if signed.size > head.size {
        (
            Standing::Wrong,
            format!("{found}: records are gone; run `countersign verify --all`"),
        )
    } else if signed.size == head.size && signed.root != head.root {
        (
            Standing::Wrong,
            format!("{found}: it was rewritten; run `countersign verify --all`"),
        )
    } else {
        (Standing::Ok, found)
    })
}

fn records(count: u64) -> String {
    format!("{count} {}", if count == 1 { "record" } else { "records" })
}

fn in_doubt(place: &Place) -> Result<(Standing, String), Failure> {
    const SHOWN_MAX: usize = 1_000;
    let query = ClaimQuery {
        state: Some(ClaimState::InDoubt),
        user_id: None,
        limit: SHOWN_MAX,
    };
    let count = place
        .runtime
        .block_on(place.store().claims(&query))
        .map_err(store_failed)?
        .len();
    Ok(match count {
        0 => (Standing::Ok, "no call".to_owned()),
        SHOWN_MAX => (
            Standing::Wrong,
            format!("{count} calls or more; see `countersign claims list`"),
        ),
        _ => {
            let calls = counted(count, "call", "calls");
            let found = format!("{calls}; see `countersign claims list --state in_doubt`");
            (Standing::Wrong, found)
        }
    })
}
