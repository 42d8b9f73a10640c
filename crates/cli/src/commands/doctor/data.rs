//! Checks of the data: folder, keys, rules, disk, store, clock, log and calls in doubt.

use countersign::ledger::{ClaimQuery, ClaimState, LogQuery};
use countersign_config::sections::Keys;
use countersign_evidence::checkpoint::Checkpoint;
use countersign_gateway::witness::Trouble;
use jiff::SignedDuration;

use super::{Found, Points, Standing};
use crate::commands::counted;
use crate::copies::{self, Outcome};
use crate::failure::Failure;
use crate::folder::Folder;
use crate::journal::CHECKPOINT;
use crate::keys::{self, LOG, LOG_PUBLIC, MASTER, MASTER_OLD, MasterSource};
use crate::place::{Place, store_failed};
use crate::rules::kept;

/// Maximum difference between the clock and the newest record, in seconds. Servers on several machines differ a little.
const CLOCK_SECONDS_MAX: i64 = 5;

/// Checks the folder and its keys.
pub(super) fn folder(folder: &Folder, named: &Keys, points: &mut Points) {
    points.check("data folder", private(folder));
    points.check("master key", master(folder, named));
    if folder.file(MASTER_OLD).exists() {
        let found = "the rotation of the master key is not finished";
        let advice = "run `countersign keys rotate-master` again";
        points.add("old master key", Found::note(found, advice));
    }
    points.check("log key", log_key(folder));
    points.check("kept rules", kept_rules(folder));
    points.check("disk", disk(folder));
}

/// Checks the store.
pub(super) fn store(place: &Place, points: &mut Points) {
    for (what, is_fine, found) in place.backend.particulars() {
        let state = if is_fine {
            Standing::Ok
        } else {
            Standing::Note
        };
        let advice = "run `countersign verify --all`";
        let advice = (!is_fine).then(|| advice.to_owned());
        points.add(what, Found::new(state, found, advice));
    }
    points.check("clock", clock(place));
    points.check("writes", writes(place));
    points.check("removals", removals(place));
    points.check("log", log(place));
    points.check("signing", signing(place));
    copies(place, points);
    witnesses(place, points);
    points.check("in doubt", in_doubt(place));
}

fn private(folder: &Folder) -> Result<Found, Failure> {
    let path = folder.path().display();
    let mode = folder.mode("")?.unwrap_or_default();
    Ok(if mode.trailing_zeros() >= 6 {
        Found::ok(format!("{path} (mode {mode:04o})"))
    } else {
        Found::note(
            format!("other accounts can read {path} (mode {mode:04o})"),
            format!("run `chmod 700 {path}`"),
        )
    })
}

fn master(folder: &Folder, named: &Keys) -> Result<Found, Failure> {
    Ok(match keys::master(folder, named)? {
        Some((key, MasterSource::Folder)) => Found::ok(format!("{} in {MASTER}", key.id())),
        Some((key, MasterSource::NamedFile)) => {
            Found::ok(format!("{} in the file of keys.master", key.id()))
        }
        Some((key, MasterSource::Environment)) => {
            Found::ok(format!("{} in the environment", key.id()))
        }
        None => Found::wrong(
            format!("{MASTER} is missing: no payload can be read"),
            format!(
                "copy {MASTER} from a backup to {}, or set COUNTERSIGN_MASTER_KEY as the service does",
                folder.path().display()
            ),
        ),
    })
}

fn log_key(folder: &Folder) -> Result<Found, Failure> {
    let Some(key) = keys::log(folder)? else {
        return Ok(Found::wrong(
            format!("{LOG} is missing: nothing can be signed"),
            format!("copy {LOG} from a backup to {}", folder.path().display()),
        ));
    };
    let public = key.verifying_key().to_string();
    let written = folder.read(LOG_PUBLIC)?.unwrap_or_default();
    Ok(if written.trim() == public {
        Found::ok(public)
    } else {
        Found::wrong(
            format!("{LOG_PUBLIC} does not belong to {LOG}"),
            format!("write this line to {LOG_PUBLIC}: {public}"),
        )
    })
}

/// Checks the kept rules: those that were in force once, and are needed to compute old calls again.
fn kept_rules(folder: &Folder) -> Result<Found, Failure> {
    let files = kept::files(folder)?;
    let problems: Vec<String> = files
        .iter()
        .filter_map(|file| file.usable().err())
        .collect();
    Ok(if problems.is_empty() {
        Found::ok(counted(files.len(), "version", "versions"))
    } else {
        Found::wrong(
            problems.join("; "),
            "restore these files from a backup: calls that used them cannot be computed again",
        )
    })
}

fn disk(folder: &Folder) -> Result<Found, Failure> {
    /// Free space below which the doctor warns: the space that the guard of the store keeps free, and room to act.
    const LOW_BYTES: u64 = 512 * 1024 * 1024;
    let stat = rustix::fs::statvfs(folder.path()).map_err(std::io::Error::from)?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let found = format!("{} MiB free", free / (1024 * 1024));
    Ok(if free < LOW_BYTES {
        let advice = format!("make room on the disk of {}", folder.path().display());
        Found::wrong(format!("{found}: calls are refused soon"), advice)
    } else {
        Found::ok(found)
    })
}

/// Compares the clock with the newest record, which cannot be from the future.
fn clock(place: &Place) -> Result<Found, Failure> {
    let newest = LogQuery {
        limit: 1,
        ..LogQuery::default()
    };
    let newest = place.runtime.block_on(place.store().records(&newest));
    let newest = newest.map_err(store_failed)?;
    let now = place.clock.now();
    let Some(newest) = newest.first() else {
        return Ok(Found::ok("no record to compare with yet"));
    };
    let ahead = newest.at.duration_since(now).as_secs();
    Ok(if ahead > CLOCK_SECONDS_MAX {
        Found::wrong(
            format!("the clock is {ahead} s behind the newest record"),
            "set the clock of this machine, and keep it right with NTP",
        )
    } else {
        Found::ok("right: later than the newest record")
    })
}

/// Compares the tree in the store with the checkpoint that is kept outside of it.
fn log(place: &Place) -> Result<Found, Failure> {
    const VERIFY: &str = "run `countersign verify --all`, and restore a backup if it finds faults";
    // In this order: the tree of a server grows meanwhile, and never shrinks.
    let note = place.folder.read(CHECKPOINT)?;
    let store = place.store();
    let (in_store, head) = place
        .runtime
        .block_on(async { Ok((store.checkpoint().await?, store.head().await?)) })
        .map_err(store_failed)?;
    let records = usize::try_from(head.size).unwrap_or(usize::MAX);
    let records = counted(records, "record", "records");
    // One server of several signs, and keeps the newest checkpoint in its own folder.
    let in_store = in_store.and_then(|note| Checkpoint::open(&note, &place.log_key).ok());
    let in_store = in_store.map_or(0, |signed| signed.size);
    let Some(note) = note else {
        if in_store > 0 {
            return Ok(Found::ok(format!(
                "{records}, {in_store} signed by another server of this store; this folder has no checkpoint to compare with"
            )));
        }
        let found = format!("{records}, no signed checkpoint");
        let advice = "start the server, or make a call: both sign the log";
        return Ok(if head.size == 0 {
            Found::ok(found)
        } else {
            Found::note(found, advice)
        });
    };
    // The key that is on the disk now: it signs after the next start.
    let key = keys::log(&place.folder)?;
    let key = key.map_or_else(|| place.log_key.clone(), |key| key.verifying_key());
    let signed = Checkpoint::open(&note, &key)?;
    let found = if in_store > signed.size && in_store <= head.size {
        let here = signed.size;
        format!("{records}, {in_store} signed; the checkpoint in this folder is of {here}")
    } else {
        format!("{records}, {} signed", signed.size)
    };
    Ok(if signed.size > head.size {
        Found::wrong(format!("{found}: records are missing"), VERIFY)
    } else if signed.size == head.size && signed.root != head.root {
        Found::wrong(format!("{found}: the log was rewritten"), VERIFY)
    } else {
        Found::ok(found)
    })
}

/// Compares the log with the copies of its checkpoint.
fn copies(place: &Place, points: &mut Points) {
    let compared = match copies::compare(place) {
        Ok(compared) => compared,
        Err(failure) => return points.add("copies", failure.into()),
    };
    for copy in compared {
        let name = &copy.name;
        let found = match copy.outcome {
            Outcome::Continued(size) => {
                Found::ok(format!("{name}: the log continues its {size} records"))
            }
            Outcome::Unread(reason) => {
                Found::note(format!("{name}: not compared: {reason}"), copies::UNREAD)
            }
            Outcome::Contradicted(error) => {
                Found::wrong(format!("{name}: {error}"), copies::CONTRADICTED)
            }
        };
        points.add("copy", found);
    }
}

/// Shows the state of the witnesses. Only a server asks them, so without one there is none.
fn witnesses(place: &Place, points: &mut Points) {
    let served = place.served.as_ref();
    let states = served.and_then(|served| Some(served.gateway.witnesses()?.states()));
    for state in states.unwrap_or_default() {
        let (name, size) = (&state.name, state.size);
        let found = match &state.trouble {
            None => Found::ok(format!("{name}: {size} records cosigned")),
            Some(trouble @ Trouble::Silent(_)) => Found::note(
                format!("{name}: {size} records cosigned: {trouble}"),
                "start the witness, and let it follow this log; the server asks it again",
            ),
            Some(trouble @ Trouble::Refuses(_)) => {
                Found::wrong(format!("{name}: {trouble}"), copies::CONTRADICTED)
            }
        };
        points.add("witness", found);
    }
}

/// Checks that everything in the tree is under a signed checkpoint.
fn signing(place: &Place) -> Result<Found, Failure> {
    let store = place.store();
    let (note, head) = place
        .runtime
        .block_on(async { Ok((store.checkpoint().await?, store.head().await?)) })
        .map_err(store_failed)?;
    let signed = note.and_then(|note| Checkpoint::open(&note, &place.log_key).ok());
    let signed = signed.map_or(0, |signed| signed.size);
    let waiting = head.size.saturating_sub(signed);
    let records = usize::try_from(waiting).unwrap_or(usize::MAX);
    let records = counted(records, "record", "records");
    Ok(match (waiting, &place.served) {
        (0, _) => Found::ok("every record is signed"),
        // The signer of a server comes every second.
        (_, Some(_)) => Found::ok(format!("{records} signed next")),
        (_, None) => Found::note(
            format!("{records} not signed yet"),
            "start the server, or make a call: both sign the log",
        ),
    })
}

/// Checks that the store accepts writes, and shows its last commit.
fn writes(place: &Place) -> Result<Found, Failure> {
    let vitals = place.runtime.block_on(place.store().vitals());
    let vitals = vitals.map_err(store_failed)?;
    let last = match vitals.newest_record {
        Some(at) => format!("the newest record is from {at:.0}"),
        None => "no record yet".to_owned(),
    };
    Ok(if vitals.is_writable {
        Found::ok(last)
    } else {
        let errors = vitals.write_errors;
        Found::wrong(
            format!("the store accepts no writes ({errors} failed); {last}"),
            "make room on its disk, or make its database writable",
        )
    })
}

/// Checks that the store's clock agrees with the last time that was believed: otherwise nothing is removed.
fn removals(place: &Place) -> Result<Found, Failure> {
    /// Time for which an installation may be off without being told that something is wrong.
    const OFF_MAX: SignedDuration = SignedDuration::from_hours(31 * 24);
    let vitals = place.runtime.block_on(place.store().vitals());
    let passage = vitals.map_err(store_failed)?.passage;
    let Some(passage) = passage.filter(|passage| passage.jump().is_some()) else {
        return Ok(Found::ok("on: data is deleted when its retention is over"));
    };
    let found = format!("{passage}; nothing is deleted until the clock is right");
    let advice = "set the clock, or run `countersign store trust-clock`";
    // An installation may well be off for some weeks.
    let is_usual = passage.step().is_positive() && passage.step() < OFF_MAX;
    Ok(if is_usual {
        Found::note(found, advice)
    } else {
        Found::wrong(found, advice)
    })
}

fn in_doubt(place: &Place) -> Result<Found, Failure> {
    const SHOWN_MAX: usize = 1_000;
    let query = ClaimQuery {
        state: Some(ClaimState::InDoubt),
        limit: SHOWN_MAX,
        ..ClaimQuery::default()
    };
    let count = place
        .runtime
        .block_on(place.store().claims(&query))
        .map_err(store_failed)?
        .len();
    let or_more = if count == SHOWN_MAX { " or more" } else { "" };
    Ok(match count {
        0 => Found::ok("no call is in doubt"),
        _ => Found::wrong(
            format!("{}{or_more}", counted(count, "call", "calls")),
            "find out what happened, and settle each with `countersign claims resolve`; `countersign claims list --state in_doubt` lists them",
        ),
    })
}
