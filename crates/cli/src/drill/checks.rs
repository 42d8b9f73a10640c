//! The checks, one function a guarantee.

use std::process::Command;
use std::sync::Arc;

use countersign::approve::Response;
use countersign::archive::verify::Verification;
use countersign::clock::{Clock as _, ManualClock};
use countersign::contract::{Actor, ActorType, ConflictReason, Effect, ErrorCode, ReplyEnvelope};
use countersign::ledger::MemoryStore;
use countersign::{Executor, Principal};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::Outcome;
use super::example;
use super::scratch::{Scratch, Subject, Try, asked, count};
use super::worker;
use crate::failure::Failure;
use crate::journal::CHECKPOINT;
use crate::place::{Place, archive_failed};
use crate::victim;

/// Maximum number of tools that one check tries.
const TOOLS_MAX: usize = 64;

/// Number of calls that race for one key.
const RACERS: usize = 20;

/// Number of calls that are answered before the process is killed.
const ANSWERED: usize = 20;

/// Collects what one check saw of several tools.
#[derive(Default)]
struct Seen {
    tried: usize,
    broken: Option<String>,
    skipped: Option<String>,
}

impl Seen {
    fn held(&mut self) {
        self.tried += 1;
    }

    fn broken(&mut self, tool: &str, what: &str) {
        self.tried += 1;
        self.broken.get_or_insert_with(|| format!("{tool}: {what}"));
    }

    fn skip(&mut self, why: impl Into<String>) {
        self.skipped.get_or_insert_with(|| why.into());
    }

    /// True counts as held.
    fn check(&mut self, tool: &str, is_held: bool, otherwise: &str) {
        if is_held {
            self.held();
        } else {
            self.broken(tool, otherwise);
        }
    }

    fn outcome(self) -> Outcome {
        match (self.broken, self.tried) {
            (Some(broken), _) => Outcome::Broken(broken),
            (None, 0) => Outcome::NotChecked(self.skipped.unwrap_or_else(|| {
                "no tool changes something and can be called with made-up arguments".to_owned()
            })),
            (None, 1) => Outcome::Held("1 tool".to_owned()),
            (None, tried) => Outcome::Held(format!("{tried} tools")),
        }
    }
}

/// Tries something with each tool that changes something, each with users of its own.
fn with_subjects(
    scratch: &mut Scratch,
    mut check: impl FnMut(&mut Scratch, &Subject, &mut Seen) -> Result<(), Failure>,
) -> Result<Outcome, Failure> {
    let mut seen = Seen::default();
    for subject in scratch.subjects()?.into_iter().take(TOOLS_MAX) {
        check(scratch, &subject, &mut seen)?;
    }
    Ok(seen.outcome())
}

fn plain<'a>(subject: &'a Subject, user: &'a str, key: &'a str) -> Try<'a> {
    Try {
        user,
        tool: subject.name(),
        arguments: subject.text(),
        key,
        dry_run: false,
    }
}

/// Describes why a call was refused, for a check that could not be made.
fn refused(subject: &Subject, reply: &ReplyEnvelope) -> String {
    let name = subject.name();
    match &reply.error {
        Some(error) => format!(
            "{name} was refused: {}: {}",
            error.code.as_str(),
            error.message
        ),
        None => format!("{name} does not count"),
    }
}

/// Makes the first call of a tool. The check is skipped if the policy refuses it.
fn first(
    scratch: &Scratch,
    tried: &Try<'_>,
    subject: &Subject,
    seen: &mut Seen,
) -> Result<Option<usize>, Failure> {
    let reply = scratch.confirmed(tried)?;
    let counted = count(&reply);
    if counted.is_none() {
        seen.skip(refused(subject, &reply));
    }
    Ok(counted)
}

/// True if exactly so many effects have happened: one more call counts one more.
fn has_effects(
    scratch: &Scratch,
    subject: &Subject,
    user: &str,
    effects: usize,
) -> Result<bool, Failure> {
    let next = scratch.confirmed(&plain(subject, user, "drill-next"))?;
    // The call that looks has its own effects.
    Ok(count(&next).is_none_or(|count| count == effects + 1))
}

pub(super) fn list_is_honest(scratch: &mut Scratch) -> Result<Outcome, Failure> {
    let user = scratch.user();
    let person = scratch.person(&user);
    let executor = scratch.executor()?.clone();
    let runtime = scratch.place()?.runtime.clone();
    let listed = runtime.block_on(executor.list(&person));
    let listed = listed.map_err(|error| Failure::new(error.message.to_string()))?;
    let is_listed = |name: &str| {
        listed
            .iter()
            .any(|entry| entry.spec().name.as_str() == name)
    };
    let mut seen = Seen::default();
    for entry in scratch.catalog().list() {
        let name = entry.spec().name.as_str();
        let Some(arguments) = example::arguments(&entry) else {
            seen.skip(format!("no arguments could be made for {name}"));
            continue;
        };
        let reply = scratch.call(&Try {
            user: &user,
            tool: name,
            arguments: Value::Object(arguments).to_string(),
            key: "drill-list",
            dry_run: true,
        })?;
        let code = reply.error.as_ref().map(|error| error.code);
        // A rule on the arguments may refuse a tool that is listed; no tool that is not listed may be called.
        let is_held = is_listed(name) || code == Some(ErrorCode::Forbidden);
        seen.check(name, is_held, "it is not in the list, and could be called");
    }
    Ok(seen.outcome())
}

pub(super) fn unknown_argument(scratch: &mut Scratch) -> Result<Outcome, Failure> {
    with_subjects(scratch, |scratch, subject, seen| {
        let user = scratch.user();
        let mut arguments = subject.arguments.clone();
        arguments.insert("drill_unknown".to_owned(), json!(1));
        let text = Value::Object(arguments).to_string();
        if subject.entry.arguments(&text).is_ok() {
            seen.skip(format!("{} accepts any argument", subject.name()));
            return Ok(());
        }
        let tried = Try {
            arguments: text,
            ..plain(subject, &user, "drill-1")
        };
        let reply = scratch.call(&tried)?;
        let code = reply.error.as_ref().map(|error| error.code);
        if matches!(code, Some(ErrorCode::RateLimited | ErrorCode::Forbidden)) {
            seen.skip(refused(subject, &reply));
            return Ok(());
        }
        let is_held =
            code == Some(ErrorCode::InvalidArgument) && has_effects(scratch, subject, &user, 0)?;
        seen.check(
            subject.name(),
            is_held,
            "it ran, or was not refused for its argument",
        );
        Ok(())
    })
}

pub(super) fn dry_run(scratch: &mut Scratch) -> Result<Outcome, Failure> {
    with_subjects(scratch, |scratch, subject, seen| {
        let user = scratch.user();
        let tried = Try {
            dry_run: true,
            ..plain(subject, &user, "drill-1")
        };
        scratch.call(&tried)?;
        let is_held = has_effects(scratch, subject, &user, 0)?;
        seen.check(subject.name(), is_held, "the dry run had an effect");
        Ok(())
    })
}

pub(super) fn repeat(scratch: &mut Scratch) -> Result<Outcome, Failure> {
    with_subjects(scratch, |scratch, subject, seen| {
        let user = scratch.user();
        let tried = plain(subject, &user, "drill-1");
        let Some(before) = first(scratch, &tried, subject, seen)? else {
            return Ok(());
        };
        let again = scratch.call(&tried)?;
        let is_same = again.replayed && count(&again) == Some(before);
        let is_held = is_same && has_effects(scratch, subject, &user, 1)?;
        seen.check(
            subject.name(),
            is_held,
            "the repeat ran, or got another answer",
        );
        Ok(())
    })
}

pub(super) fn other_arguments(scratch: &mut Scratch) -> Result<Outcome, Failure> {
    with_subjects(scratch, |scratch, subject, seen| {
        let Some(other) = example::others(&subject.entry, &subject.arguments) else {
            seen.skip(format!(
                "no second arguments could be made for {}",
                subject.name()
            ));
            return Ok(());
        };
        let user = scratch.user();
        let tried = plain(subject, &user, "drill-1");
        if first(scratch, &tried, subject, seen)?.is_none() {
            return Ok(());
        }
        let other = Try {
            arguments: Value::Object(other).to_string(),
            ..tried
        };
        let reply = scratch.confirmed(&other)?;
        let error = reply.error.as_ref();
        let is_refused = error.is_some_and(|error| {
            error.code == ErrorCode::Conflict
                && error.details.reason == Some(ConflictReason::KeyReused)
                || matches!(error.code, ErrorCode::Forbidden | ErrorCode::RateLimited)
        });
        let is_held = is_refused && has_effects(scratch, subject, &user, 1)?;
        seen.check(subject.name(), is_held, "the second call was not refused");
        Ok(())
    })
}

pub(super) fn race(scratch: &mut Scratch) -> Result<Outcome, Failure> {
    with_subjects(scratch, |scratch, subject, seen| {
        let user = scratch.user();
        let tried = plain(subject, &user, "drill-1");
        let probe = scratch.user();
        let probed = plain(subject, &probe, "drill-1");
        let needs_yes = asked(&scratch.call(&probed)?).is_some();
        let probed = scratch.confirmed(&probed)?;
        if count(&probed).is_none() {
            seen.skip(refused(subject, &probed));
            return Ok(());
        }
        // The user says yes before the race: the first call of a tool that needs it is only asked.
        if needs_yes && let Some(id) = asked(&scratch.call(&tried)?) {
            scratch.approve(&id, &user)?;
        }
        let runtime = scratch.place()?.runtime.clone();
        let calls: Vec<_> = (0..RACERS)
            .map(|_| {
                let (executor, call) = (scratch.executor()?.clone(), scratch.tool_call(&tried));
                Ok(runtime.spawn(async move { executor.execute(call).await }))
            })
            .collect::<Result<_, Failure>>()?;
        let mut answers = Vec::new();
        for call in calls {
            answers.push(runtime.block_on(call)?);
        }
        let counts: Vec<usize> = answers.iter().filter_map(count).collect();
        if counts.is_empty() {
            seen.skip(format!("{} was refused by a limit", subject.name()));
            return Ok(());
        }
        let is_one = counts.iter().all(|count| Some(count) == counts.first());
        let is_held = is_one && has_effects(scratch, subject, &user, 1)?;
        seen.check(subject.name(), is_held, "it ran more than once");
        Ok(())
    })
}

pub(super) fn other_user(scratch: &mut Scratch) -> Result<Outcome, Failure> {
    with_subjects(scratch, |scratch, subject, seen| {
        let (ann, ben) = (scratch.user(), scratch.user());
        if first(scratch, &plain(subject, &ann, "drill-1"), subject, seen)?.is_none() {
            return Ok(());
        }
        let other = scratch.confirmed(&plain(subject, &ben, "drill-1"))?;
        if count(&other).is_none() {
            seen.skip(refused(subject, &other));
            return Ok(());
        }
        let is_held = !other.replayed && count(&other) == Some(scratch.times);
        seen.check(
            subject.name(),
            is_held,
            "the second user got the first one's answer",
        );
        Ok(())
    })
}

pub(super) fn asks(scratch: &mut Scratch) -> Result<Outcome, Failure> {
    let outcome = with_subjects(scratch, |scratch, subject, seen| {
        let user = scratch.user();
        let tried = plain(subject, &user, "drill-1");
        if asked(&scratch.call(&tried)?).is_none() {
            seen.skip("no tool of this configuration needs a confirmation");
            return Ok(());
        }
        let still = asked(&scratch.call(&tried)?).is_some();
        let is_held = still && has_effects(scratch, subject, &user, 0)?;
        seen.check(subject.name(), is_held, "it ran before it was confirmed");
        Ok(())
    })?;
    Ok(outcome)
}

pub(super) fn approval(scratch: &mut Scratch) -> Result<Outcome, Failure> {
    with_subjects(scratch, |scratch, subject, seen| {
        let user = scratch.user();
        let tried = plain(subject, &user, "drill-1");
        let Some(id) = asked(&scratch.call(&tried)?) else {
            seen.skip("no tool of this configuration needs a confirmation");
            return Ok(());
        };
        let agent = Actor {
            kind: ActorType::Agent,
            id: "drill-agent".to_owned(),
        };
        let agent = Principal::new(agent, user.as_str());
        let executor = scratch.executor()?;
        let runtime = scratch.place()?.runtime.clone();
        let answer = Response::approve();
        let by_agent = executor.approvals().decide(&id, &agent, &answer);
        let is_refused = runtime.block_on(by_agent).is_err();
        seen.check(subject.name(), is_refused, "an agent approved its own call");
        scratch.approve(&id, &user)?;
        let ran = scratch.call(&tried)?;
        if count(&ran).is_none() {
            seen.skip(refused(subject, &ran));
            return Ok(());
        }
        let second = scratch.call(&plain(subject, &user, "drill-2"))?;
        seen.check(
            subject.name(),
            asked(&second).is_some(),
            "an approval was used twice",
        );
        Ok(())
    })
}

/// Runs on a store in memory with a clock that can be moved: hours are not waited for.
pub(super) fn expired_approval(scratch: &mut Scratch) -> Result<Outcome, Failure> {
    let mut seen = Seen::default();
    let real = scratch.place()?.clock.now();
    for subject in scratch.subjects()?.into_iter().take(TOOLS_MAX) {
        let clock = Arc::new(ManualClock::starting_at(real));
        let builder = Executor::builder(scratch.catalog().clone())
            .store(Arc::new(MemoryStore::with_clock(clock.clone())))
            .clock(clock.clone());
        let executor = scratch.decided(builder).build();
        let runtime = scratch.place()?.runtime.clone();
        let user = scratch.user();
        let tried = plain(&subject, &user, "drill-1");
        let call = || runtime.block_on(executor.execute(scratch.tool_call(&tried)));
        let Some(id) = asked(&call()) else {
            seen.skip("no tool of this configuration needs a confirmation");
            continue;
        };
        let person = scratch.person(&user);
        let approvals = executor.approvals();
        let approved = runtime.block_on(approvals.decide(&id, &person, &Response::approve()));
        let Ok(approved) = approved else {
            seen.skip(format!(
                "{} cannot be approved by its user alone",
                subject.name()
            ));
            continue;
        };
        let ends: Timestamp = approved.expires_at.parse()?;
        let left = ends.duration_since(clock.now()) + SignedDuration::from_secs(1);
        clock.advance(left.unsigned_abs());
        seen.check(
            subject.name(),
            asked(&call()).is_some(),
            "it ran on an expired approval",
        );
    }
    Ok(seen.outcome())
}

pub(super) fn killed(scratch: &mut Scratch) -> Result<Outcome, Failure> {
    let user = scratch.user();
    let mut reason = "no tool can be called".to_owned();
    let mut subject = None;
    for candidate in scratch.subjects()? {
        let probe = scratch.user();
        let reply = scratch.confirmed(&plain(&candidate, &probe, "drill-1"))?;
        match count(&reply) {
            Some(_) => {
                subject = Some(candidate);
                break;
            }
            None => reason = refused(&candidate, &reply),
        }
    }
    let Some(subject) = subject else {
        return Ok(Outcome::NotChecked(reason));
    };
    // A file has one owner: the process that will be killed.
    scratch.close()?;
    let (begun, done) = kill(scratch, &subject, &user)?;
    scratch.open()?;
    let mut is_kept = true;
    let mut in_doubt = 0;
    for number in 0..begun {
        let key = worker::key(number);
        let again = scratch.confirmed(&plain(&subject, &user, &key))?;
        let acknowledged = done.iter().find(|(known, _)| *known == number);
        match (acknowledged, count(&again)) {
            (Some((_, before)), now) => is_kept &= again.replayed && now == Some(*before),
            (None, Some(_)) => {}
            (None, None) => in_doubt += 1,
        }
    }
    let effects = scratch.confirmed(&plain(&subject, &user, "drill-next"))?;
    let effects = count(&effects).map_or(0, |count| count.saturating_sub(scratch.times));
    let is_once = match subject.entry.spec().behaviour.effect {
        Effect::Read | Effect::Write => effects == begun - in_doubt,
        // A call in doubt may have happened.
        Effect::External => effects <= begun && effects >= done.len(),
    };
    let figures = format!(
        "{}: {begun} begun, {} acknowledged, {in_doubt} in doubt",
        subject.name(),
        done.len()
    );
    Ok(match (is_kept, is_once) {
        (true, true) => Outcome::Held(figures),
        (false, _) => Outcome::Broken(format!("{figures}; an acknowledged answer is lost")),
        (true, false) => Outcome::Broken(format!("{figures}; {effects} effects")),
    })
}

/// Starts this program as a process of its own and kills it while it calls the tool. Returns the number of calls that it had begun, and
/// those that it had acknowledged with their answers.
fn kill(
    scratch: &Scratch,
    subject: &Subject,
    user: &str,
) -> Result<(usize, Vec<(usize, usize)>), Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    let config = scratch.options().loaded().document();
    if let Some(document) = config {
        command.arg("--config").arg(document.path());
    }
    command
        .arg(worker::COMMAND)
        .args(["--tool", subject.name(), "--user", user])
        .args(["--times", &scratch.times.to_string(), "--folder"])
        .arg(scratch.path());
    let (mut begun, mut done) = (0, Vec::new());
    victim::kill_when(&mut command, |line| {
        let mut words = line.split(' ');
        let word = words.next();
        let mut number = || words.next().and_then(|word| word.parse().ok());
        match (word, number()) {
            (Some("begin"), Some(number)) => begun = number + 1,
            (Some("done"), Some(number_of_call)) => {
                done.extend(number().map(|count| (number_of_call, count)));
            }
            // A line that the signal cut off says nothing.
            _ => {}
        }
        word == Some("begin") && done.len() >= ANSWERED
    })?;
    Ok((begun, done))
}

pub(super) fn log_verifies(scratch: &mut Scratch) -> Result<Outcome, Failure> {
    scratch.sign()?;
    let place = scratch.place()?;
    let (is_valid, what) = verified(place)?;
    Ok(if is_valid {
        Outcome::Held(what)
    } else {
        Outcome::Broken(what)
    })
}

/// Verifies the log of a place, with the number of its records or what is wrong.
pub(super) fn verified(place: &Place) -> Result<(bool, String), Failure> {
    let verification = Verification {
        held: place.folder.read(CHECKPOINT)?,
        is_held_beside: true,
        ..Verification::default()
    };
    let archive = place.archive();
    let report = archive.verify_all(&verification, |_, _| {});
    let report = place.runtime.block_on(report).map_err(archive_failed)?;
    Ok(match report.findings.first() {
        None => (report.is_valid(), format!("{} records", report.size)),
        Some(finding) => (false, finding.to_string()),
    })
}

pub(super) fn erasure(scratch: &mut Scratch) -> Result<Outcome, Failure> {
    let Some(subject) = scratch.subjects()?.into_iter().next() else {
        return Ok(Seen::default().outcome());
    };
    let user = scratch.user();
    scratch.confirmed(&plain(&subject, &user, "drill-1"))?;
    scratch.sign()?;
    let place = scratch.place()?;
    let archive = place.archive();
    let knows = || place.runtime.block_on(archive.knows_user(&user));
    if !knows().map_err(archive_failed)? {
        return Ok(Outcome::NotChecked(
            "the call left nothing to erase".to_owned(),
        ));
    }
    let erased = archive.erase(&user, &place.by, "drill");
    place.runtime.block_on(erased).map_err(archive_failed)?;
    let is_known = knows().map_err(archive_failed)?;
    scratch.sign()?;
    let (is_valid, what) = verified(scratch.place()?)?;
    Ok(match (is_known, is_valid) {
        (false, true) => Outcome::Held(what),
        (true, _) => Outcome::Broken("the user is still known".to_owned()),
        (false, false) => Outcome::Broken(what),
    })
}

/// Changes one byte of a record in the closed file: the verification has to find it.
pub(super) fn tampering(scratch: &mut Scratch) -> Result<Outcome, Failure> {
    scratch.close()?;
    let file = scratch.path().join("data/countersign.db");
    let mut bytes = std::fs::read(&file)?;
    let Some(at) = memchr::memmem::rfind(&bytes, b"\"request_id\":\"req_") else {
        return Ok(Outcome::NotChecked(
            "the file has no readable record".to_owned(),
        ));
    };
    let digit = at + b"\"request_id\":\"req_".len();
    if let Some(byte) = bytes.get_mut(digit) {
        *byte = if *byte == b'0' { b'1' } else { b'0' };
    }
    std::fs::write(&file, bytes)?;
    let place = match scratch.options().open() {
        Ok(place) => place,
        Err(failure) => {
            return Ok(Outcome::Held(format!(
                "it is not opened: {}",
                failure.error
            )));
        }
    };
    Ok(match verified(&place) {
        Ok((false, what)) => Outcome::Held(what),
        Err(failure) => Outcome::Held(failure.error.to_string()),
        Ok((true, _)) => Outcome::Broken("the log still verifies".to_owned()),
    })
}
