//! The state after a round: what is lost, doubled or wrong, and what neither the server nor `verify` has named.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, bail};
use countersign_testkit::patience::comes_true;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::disk::Fault;
use super::load::{Told, judge};
use super::server::{Place, Server, Started, ask};

/// The counts of a run.
#[derive(Debug, Default)]
pub struct Counts {
    /// Lives of a server.
    pub rounds: u32,
    /// Operations of its files that had a fault.
    pub hits: u64,
    /// Answers of any kind.
    pub answers: usize,
    /// Keys that were acknowledged.
    pub acknowledged: usize,
    /// Starts that a failing disk has refused.
    pub refused_starts: u32,
    /// Acknowledged effects and records that are gone.
    pub lost: u32,
    /// Effects that happened twice.
    pub doubled: u32,
    /// Answers that must not be, and logs that do not verify on a disk that did not lie.
    pub wrong: u32,
    /// Rounds with damage, or with a store that takes nothing, in which neither the server nor `verify --all` said so.
    pub unnoticed: u32,
    /// Rounds with a lying disk in which the server or `verify --all` named the damage.
    pub noticed: u32,
    /// Each violation in words.
    pub violations: Vec<String>,
}

impl Counts {
    pub(super) fn wrong(&mut self, what: String) {
        self.wrong += 1;
        self.violations.push(what);
    }

    pub(super) fn unnoticed(&mut self, what: String) {
        self.unnoticed += 1;
        self.violations.push(what);
    }

    /// Adds the counts of another run.
    pub fn add(&mut self, more: Self) {
        self.rounds += more.rounds;
        self.hits += more.hits;
        self.answers += more.answers;
        self.acknowledged += more.acknowledged;
        self.refused_starts += more.refused_starts;
        self.lost += more.lost;
        self.doubled += more.doubled;
        self.wrong += more.wrong;
        self.unnoticed += more.unnoticed;
        self.noticed += more.noticed;
        self.violations.extend(more.violations);
    }
}

/// A round that is over, and its folder on a disk that works.
pub(super) struct Checked<'a> {
    pub(super) place: &'a Place,
    pub(super) fault: Fault,
    pub(super) told: &'a Told,
    /// True if also the records of reads have to be there.
    pub(super) keeps_reads: bool,
    pub(super) tail: &'a str,
}

/// Faults of one round.
#[derive(Debug, Default)]
struct Damage {
    lost: Vec<String>,
    doubled: Vec<String>,
    wrong: Vec<String>,
}

impl Damage {
    fn is_none(&self) -> bool {
        self.lost.is_empty() && self.doubled.is_empty() && self.wrong.is_empty()
    }
}

/// Longest wait for a record that is on its way.
const PATIENCE: Duration = Duration::from_secs(20);

impl Checked<'_> {
    /// Calls everything again, looks and verifies. False if the folder cannot be used again.
    pub(super) fn count(&self, counts: &mut Counts) -> Result<bool> {
        counts.answers += self.told.answers;
        counts.acknowledged += self.told.keys.values().flatten().count();
        let mut damage = Damage {
            wrong: self.told.wrong.clone(),
            ..Damage::default()
        };
        let findings = match Server::start(self.place, None)? {
            Started::Refused(said) => Some(format!("no start: {said}")),
            Started::Listens(server) => {
                self.again(&server.address, &mut damage)?;
                server.stop(Signal::TERM)?;
                self.place.verify()?
            }
        };
        let is_whole = damage.is_none() && findings.is_none();
        if self.fault.is_silent() {
            self.count_silent(&damage, findings.is_some(), counts);
        } else {
            damage.wrong.extend(findings);
            self.count_damage(damage, counts);
        }
        Ok(is_whole)
    }

    /// A lying disk does harm; the server or `verify` has to say so.
    fn count_silent(&self, damage: &Damage, is_found: bool, counts: &mut Counts) {
        counts.lost += damage.lost.len() as u32;
        counts.doubled += damage.doubled.len() as u32;
        counts.wrong += damage.wrong.len() as u32;
        counts.noticed += u32::from(is_found);
        if !damage.is_none() && !is_found {
            let what = format!("{}: {damage:?}", self.fault.as_str());
            counts.unnoticed(what);
        }
    }

    fn count_damage(&self, damage: Damage, counts: &mut Counts) {
        let name = self.fault.as_str();
        let tail = self.tail;
        counts.lost += damage.lost.len() as u32;
        counts.doubled += damage.doubled.len() as u32;
        counts.wrong += damage.wrong.len() as u32;
        let all = [damage.lost, damage.doubled, damage.wrong].concat();
        let all = all
            .into_iter()
            .map(|what| format!("{name}: {what} ({tail})"));
        counts.violations.extend(all);
    }

    fn again(&self, address: &str, damage: &mut Damage) -> Result<()> {
        let mut wanted: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (key, first) in &self.told.keys {
            let (status, reply) = key.call(address)?;
            let is_ok = reply.get("ok") == Some(&Value::Bool(true));
            let mut first = first.clone();
            let was_acknowledged = first.is_some();
            if let Some(wrong) = judge(&mut first, &reply) {
                damage
                    .wrong
                    .push(format!("{}: {status} {wrong}", key.text()));
            } else if !is_ok {
                damage
                    .wrong
                    .push(format!("{}: ends as {status} {reply}", key.text()));
            } else if was_acknowledged && reply.get("replayed") != Some(&Value::Bool(true)) {
                damage.lost.push(format!("{}: ran again", key.text()));
            }
            if let Some(id) = first.and_then(|first| first.evidence) {
                expect_record(address, &id, damage)?;
            }
            wanted.entry(&key.user).or_default().push(key.text());
        }
        if self.keeps_reads {
            for id in &self.told.reads {
                expect_record(address, id, damage)?;
            }
        }
        for (user, mut wanted) in wanted {
            let mut there = notes(address, user)?;
            there.sort_unstable();
            wanted.sort_unstable();
            let count = |of: &[String], text: &String| of.iter().filter(|it| *it == text).count();
            let lost = wanted.iter().filter(|text| count(&there, text) == 0);
            damage
                .lost
                .extend(lost.map(|text| format!("{text}: no effect")));
            let doubled = wanted.iter().filter(|text| count(&there, text) > 1);
            damage.doubled.extend(doubled.cloned());
            let foreign = there.iter().filter(|text| count(&wanted, text) == 0);
            damage
                .wrong
                .extend(foreign.map(|text| format!("{text}: not called")));
        }
        Ok(())
    }
}

fn expect_record(address: &str, id: &str, damage: &mut Damage) -> Result<()> {
    let path = format!("/v1/evidence/{id}");
    let mut last = None;
    let is_there = comes_true(PATIENCE, || {
        let answer = ask(address, "GET", &path, "");
        let is_final = matches!(answer, Ok((200 | 404 | 500, _)));
        last = Some(answer);
        is_final
    });
    match last {
        Some(Ok((200, _))) if is_there => Ok(()),
        Some(Ok((404, _))) => {
            damage.lost.push(format!("the record {id} is not there"));
            Ok(())
        }
        Some(Ok((status, reply))) => {
            damage
                .wrong
                .push(format!("the record {id}: {status} {reply}"));
            Ok(())
        }
        Some(Err(error)) => Err(error),
        None => bail!("the record {id} was not asked for"),
    }
}

/// Texts of a user's notes.
fn notes(address: &str, user: &str) -> Result<Vec<String>> {
    let body = json!({"arguments": {"limit": 1000}, "user_id": user}).to_string();
    let (status, reply) = ask(address, "POST", "/v1/tools/notes.list", &body)?;
    let Some(notes) = reply.get("data").and_then(Value::as_array) else {
        return Ok(vec![format!("no notes of {user}: {status} {reply}")]);
    };
    let text = |note: &Value| Some(note.get("text")?.as_str()?.to_owned());
    Ok(notes.iter().filter_map(text).collect())
}
