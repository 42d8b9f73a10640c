//! Disks that fail under a real server: clients call it while reads, writes and syncs of its files fail, are cut short or lie. Afterwards
//! every acknowledged answer, every effect and the whole log are compared.

mod check;
mod disk;
mod load;
mod server;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use countersign_testkit::patience::comes_true;
use rustix::process::Signal;

pub use check::Counts;
pub use disk::{Disk, Fault, Files, Library};
pub use load::Load;
pub use server::{Place, Server, Started, ask, ask_as};

use crate::driver::Dice;

/// A plan of rounds with one fault.
#[derive(Debug)]
pub struct Faults<'a> {
    /// The program `countersign`.
    pub program: &'a Path,
    /// The library under it.
    pub library: &'a Library,
    /// The fault.
    pub fault: Fault,
    /// Number of lives of a server.
    pub rounds: u32,
    /// Repeats a run, as far as processes can be repeated.
    pub seed: u64,
}

/// Answers before and after a fault.
const QUIET: usize = 20;

/// Answers while there is a fault.
const FAULTY: usize = 80;

/// Clients that call at the same time.
const CLIENTS: u32 = 4;

/// Longest wait for a server that has to accept writes again, or to say that it does not.
const PATIENCE: Duration = Duration::from_secs(20);

/// Longest time from a failed write until the server is not ready.
const NOTICED: Duration = Duration::from_secs(1);

/// Plays all rounds, each with a server that is ended in one of three ways.
pub fn faults(plan: &Faults<'_>) -> Result<Counts> {
    let mut dice = Dice(plan.seed | 1);
    let mut counts = Counts::default();
    let mut home = Home::new(plan)?;
    for round in 0..plan.rounds {
        counts.rounds += 1;
        let is_whole = play(plan, &home, round, &mut dice, &mut counts)?;
        // What a lying disk has damaged stays damaged.
        if !is_whole || plan.fault.is_silent() {
            home = Home::new(plan)?;
        }
    }
    Ok(counts)
}

/// A data folder of its own.
struct Home<'a> {
    place: Place,
    disk: Disk<'a>,
    /// Removed when the rest is gone.
    _folder: tempfile::TempDir,
}

impl<'a> Home<'a> {
    fn new(plan: &Faults<'a>) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let place = Place {
            program: plan.program.to_owned(),
            data: folder.path().join("data"),
            store: None,
        };
        let disk = Disk::new(plan.library, folder.path())?;
        Ok(Self {
            place,
            disk,
            _folder: folder,
        })
    }
}

/// How a round begins and ends, drawn from the dice.
struct Draw {
    files: Files,
    every: u32,
    seed: u32,
    from_start: bool,
    heals: bool,
    end: Signal,
}

impl Draw {
    fn of(dice: &mut Dice) -> Self {
        let pick = |dice: &mut Dice, of: &[u32]| {
            let n = dice.below(of.len() as u32) as usize;
            of.get(n).copied().unwrap_or(1)
        };
        let files = Files::ALL.get(dice.below(3) as usize).copied();
        Self {
            files: files.unwrap_or(Files::Both),
            every: pick(dice, &[1, 1, 3, 10, 40]),
            seed: dice.below(u32::MAX),
            from_start: dice.below(6) == 0,
            heals: dice.below(3) != 0,
            end: if dice.below(2) == 0 {
                Signal::KILL
            } else {
                Signal::TERM
            },
        }
    }
}

/// Plays one round. False if the folder cannot be used again.
fn play(
    plan: &Faults<'_>,
    home: &Home<'_>,
    round: u32,
    dice: &mut Dice,
    counts: &mut Counts,
) -> Result<bool> {
    let draw = Draw::of(dice);
    let hits = home.disk.hits()?;
    // A new folder has to begin on a disk that works: without keys there is nothing to lose.
    let from_start = draw.from_start && home.place.data.exists();
    if from_start {
        home.disk
            .begin(plan.fault, draw.files, draw.every, draw.seed)?;
    }
    let server = match Server::start(&home.place, Some(&home.disk))? {
        Started::Listens(server) => server,
        Started::Refused(_) if from_start => {
            counts.refused_starts += 1;
            home.disk.end()?;
            match Server::start(&home.place, Some(&home.disk))? {
                Started::Listens(server) => server,
                Started::Refused(said) => return Ok(refused(plan, counts, &said)),
            }
        }
        Started::Refused(said) => return Ok(refused(plan, counts, &said)),
    };
    let load = Load::start(&server.address, CLIENTS, round, plan.seed);
    let mut round = Round {
        plan,
        home,
        draw,
        server,
        counts,
    };
    let healed = round.disturb(&load);
    let told = load.stop();
    let healed = healed?;
    let end = round.draw.end;
    let tail = round.server.tail();
    round.server.stop(end)?;
    home.disk.end()?;
    counts.hits += home.disk.hits()? - hits;
    let checked = check::Checked {
        place: &home.place,
        fault: plan.fault,
        told: &told,
        // Records without a waiting caller may be lost with the process, and only then.
        keeps_reads: healed && end == Signal::TERM,
        tail: &tail,
    };
    checked.count(counts)
}

/// A folder on which no server starts any more.
fn refused(plan: &Faults<'_>, counts: &mut Counts, said: &str) -> bool {
    if plan.fault.is_silent() {
        counts.noticed += 1;
    } else {
        counts.wrong(format!("{}: no start: {said}", plan.fault.as_str()));
    }
    false
}

struct Round<'a, 'b> {
    plan: &'a Faults<'a>,
    home: &'a Home<'b>,
    draw: Draw,
    server: Server,
    counts: &'a mut Counts,
}

impl Round<'_, '_> {
    /// Lets calls be answered before, in and after the fault. True if the server accepts writes at the end.
    fn disturb(&mut self, load: &Load) -> Result<bool> {
        let Draw {
            files,
            every,
            seed,
            heals,
            ..
        } = self.draw;
        load.wait_for(QUIET, PATIENCE);
        self.home.disk.begin(self.plan.fault, files, every, seed)?;
        load.wait_for(FAULTY, PATIENCE);
        let is_stopped = every == 1 && files != Files::Database && self.plan.fault.stops_writes();
        if is_stopped {
            let says_so = || {
                matches!(
                    ask(&self.server.address, "GET", "/readyz", ""),
                    Ok((503, _))
                )
            };
            if !comes_true(NOTICED, says_so) {
                self.counts.unnoticed(format!(
                    "{}: nothing can be written, and the server is ready a second later",
                    self.plan.fault.as_str()
                ));
            }
        }
        if !heals {
            return Ok(false);
        }
        self.home.disk.end()?;
        let is_ready = || {
            matches!(
                ask(&self.server.address, "GET", "/readyz", ""),
                Ok((200, _))
            )
        };
        let is_ready = comes_true(PATIENCE, is_ready);
        if !is_ready && !self.plan.fault.is_silent() {
            let tail = self.server.tail();
            self.counts.wrong(format!(
                "{}: the disk works again, and the server is not ready: {tail}",
                self.plan.fault.as_str()
            ));
        }
        load.wait_for(QUIET, PATIENCE);
        Ok(is_ready)
    }
}

/// Path of the program `countersign`, beside the current program.
pub fn server_program() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let folder = own.parent().context("a program is in a folder")?;
    let folder = if folder.ends_with("deps") {
        folder.parent().unwrap_or(folder)
    } else {
        folder
    };
    Ok(folder.join("countersign"))
}
