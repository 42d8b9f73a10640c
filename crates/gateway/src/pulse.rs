//! The pulse: what happened in the last two hours, in memory, for people who watch.
//!
//! Stores keep records, not figures, and counting records anew for every look would cost more the longer a server runs.
//! So calls are counted as they are answered, by the minute and by tool, since this process began. Errors and sessions go back further:
//! after a start they are recalled (`pulse/recall.rs`) from the newest records of the log.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use countersign::contract::ErrorCode;
use countersign::observe::{Answered, Observer};
use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::watch;

use crate::strands::{Strand, Strands};

mod recall;

/// Minutes that are kept.
pub const MINUTES: i64 = 120;

/// Four steps for every doubling, from one microsecond on.
const STEPS: usize = 4 * 40;

/// Counts calls as they are answered, and tells who waits for the next one.
#[derive(Debug)]
pub struct Pulse {
    beats: watch::Sender<u64>,
    counted: Mutex<Counted>,
    strands: Strands,
}

#[derive(Debug, Default)]
struct Counted {
    /// Oldest first; minutes without a call are left out.
    minutes: VecDeque<OfMinute>,
    tools: BTreeMap<Arc<str>, OfTool>,
    codes: BTreeMap<&'static str, u64>,
    failures: BTreeMap<Kind, Spell>,
    /// Time of the oldest record that codes and failures were recalled from; `None` before that.
    since: Option<Timestamp>,
}

/// A kind of failure: its code, its tool and the tool's version.
type Kind = (&'static str, Arc<str>, String);

/// Number of failures, and the time of the first.
#[derive(Debug, Clone, Copy)]
struct Spell {
    count: u64,
    first: Timestamp,
    last: Timestamp,
}

/// Maximum number of kinds of failures; those of further kinds are only counted by their code.
const FAILURES_MAX: usize = 2_000;

/// One minute.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Minute {
    /// Minutes since 1970.
    pub minute: i64,
    /// Calls that were answered.
    pub calls: u64,
    /// Number of calls that ended with an error.
    pub errors: u64,
    /// Number of calls that ended with a question to the user.
    pub questions: u64,
    /// Number of calls with repaired arguments.
    pub repaired: u64,
    /// Half of them took at most so long, waiting for a person left out.
    pub p50_us: u64,
    /// All but one in a hundred took at most so long.
    pub p99_us: u64,
}

#[derive(Debug, Default)]
struct OfMinute {
    minute: i64,
    calls: u64,
    errors: u64,
    questions: u64,
    repaired: u64,
    took: Times,
}

#[derive(Debug, Default)]
struct OfTool {
    calls: u64,
    errors: u64,
    took: Times,
}

/// Number of calls by the time that they took, in [steps](STEPS).
#[derive(Debug)]
struct Times(Vec<u64>);

impl Default for Times {
    fn default() -> Self {
        Self(vec![0; STEPS])
    }
}

/// The figures of one tool since the process began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolFigures {
    /// Its name.
    pub tool: String,
    /// Calls that were answered.
    pub calls: u64,
    /// Number of calls that ended with an error.
    pub errors: u64,
    /// Half of them took at most so long, waiting for a person left out.
    pub p50_us: u64,
    /// All but one in a hundred took at most so long.
    pub p99_us: u64,
}

/// Errors of one code, tool and version since [`Figures::since`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failures {
    /// Error code.
    pub code: &'static str,
    /// Name of the tool.
    pub tool: String,
    /// Version of the tool.
    pub version: String,
    /// Number of calls.
    pub count: u64,
    /// First of them.
    pub first: Timestamp,
    /// Newest of them.
    pub last: Timestamp,
}

/// All figures.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// The last [`MINUTES`], oldest first; minutes without a call are left out.
    pub minutes: Vec<Minute>,
    /// By tool, the busiest first.
    pub tools: Vec<ToolFigures>,
    /// Number of answers by code since [`Figures::since`].
    pub codes: BTreeMap<&'static str, u64>,
    /// Errors by code, tool and version, the newest first.
    pub failures: Vec<Failures>,
    /// Time since which codes and failures are counted, if that is before the process began.
    pub since: Option<Timestamp>,
}

impl Default for Pulse {
    fn default() -> Self {
        Self {
            beats: watch::Sender::new(0),
            counted: Mutex::default(),
            strands: Strands::default(),
        }
    }
}

impl Pulse {
    /// Changes with every call that is answered.
    pub fn beats(&self) -> watch::Receiver<u64> {
        self.beats.subscribe()
    }

    /// The counters.
    pub fn figures(&self) -> Figures {
        let counted = self.counted();
        let figures = |(tool, of): (&Arc<str>, &OfTool)| ToolFigures {
            tool: tool.to_string(),
            calls: of.calls,
            errors: of.errors,
            p50_us: of.took.at_most(50),
            p99_us: of.took.at_most(99),
        };
        let mut tools: Vec<ToolFigures> = counted.tools.iter().map(figures).collect();
        tools.sort_by_key(|tool| std::cmp::Reverse(tool.calls));
        Figures {
            minutes: counted.minutes.iter().map(OfMinute::figures).collect(),
            tools,
            codes: counted.codes.clone(),
            failures: counted.failures(),
            since: counted.since,
        }
    }

    /// Groups of calls that belong together.
    pub(crate) fn strands(&self) -> &Strands {
        &self.strands
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Pulse {
    fn answered(&self, answered: &Answered) {
        let is_question = answered.code.is_some_and(ErrorCode::is_question);
        let is_error = answered.code.is_some() && !is_question;
        let is_repaired = answered.binding.is_repaired();
        let took_us = answered.phases.worked_us();
        let mut counted = self.counted();
        let minute = counted.minute(answered.at.as_second().div_euclid(60));
        minute.calls += 1;
        minute.errors += u64::from(is_error);
        minute.questions += u64::from(is_question);
        minute.repaired += u64::from(is_repaired);
        minute.took.add(took_us);
        let code = answered.code.map_or("OK", ErrorCode::as_str);
        *counted.codes.entry(code).or_default() += 1;
        if let Some(entry) = &answered.tool {
            let name = entry.name().as_str();
            if is_error {
                let version = entry.spec().version.clone();
                counted.failed((code, name.into(), version), 1, [answered.at; 2]);
            }
            if !counted.tools.contains_key(name) {
                counted.tools.insert(name.into(), OfTool::default());
            }
            if let Some(of) = counted.tools.get_mut(name) {
                of.calls += 1;
                of.errors += u64::from(is_error);
                of.took.add(took_us);
            }
        }
        drop(counted);
        let session = answered.session.as_deref().and_then(Strand::read);
        if let (Some(session), Some(call)) = (session, &answered.snapshot_id) {
            self.strands.add(session, call.clone());
        }
        self.beats
            .send_modify(|beats| *beats = beats.wrapping_add(1));
    }
}

impl Counted {
    /// Counts failures of one kind between two times.
    fn failed(&mut self, kind: Kind, count: u64, [first, last]: [Timestamp; 2]) {
        if self.failures.len() >= FAILURES_MAX && !self.failures.contains_key(&kind) {
            return;
        }
        let spell = self.failures.entry(kind).or_insert(Spell {
            count: 0,
            first,
            last,
        });
        spell.count += count;
        spell.first = spell.first.min(first);
        spell.last = spell.last.max(last);
    }

    fn failures(&self) -> Vec<Failures> {
        let one = |((code, tool, version), spell): (&Kind, &Spell)| Failures {
            code,
            tool: tool.to_string(),
            version: version.clone(),
            count: spell.count,
            first: spell.first,
            last: spell.last,
        };
        let mut failures: Vec<Failures> = self.failures.iter().map(one).collect();
        failures.sort_by_key(|failure| std::cmp::Reverse(failure.last));
        failures
    }

    /// The counts of a minute. A call that arrived long ago counts for the newest one.
    fn minute(&mut self, minute: i64) -> &mut OfMinute {
        let newest = self.minutes.back().map_or(i64::MIN, |last| last.minute);
        if minute > newest {
            let kept_from = minute - MINUTES;
            while self.minutes.front().is_some_and(|m| m.minute <= kept_from) {
                self.minutes.pop_front();
            }
            self.minutes.push_back(OfMinute {
                minute,
                ..OfMinute::default()
            });
        }
        let at = self
            .minutes
            .iter()
            .rposition(|known| known.minute <= minute);
        let at = at.unwrap_or_default();
        // There is one: the newest was made above where there was none.
        self.minutes
            .get_mut(at)
            .expect("a position that was found is there")
    }
}

impl OfMinute {
    fn figures(&self) -> Minute {
        Minute {
            minute: self.minute,
            calls: self.calls,
            errors: self.errors,
            questions: self.questions,
            repaired: self.repaired,
            p50_us: self.took.at_most(50),
            p99_us: self.took.at_most(99),
        }
    }
}

impl Times {
    fn add(&mut self, took_us: u64) {
        if let Some(step) = self.0.get_mut(step_of(took_us)) {
            *step += 1;
        }
    }

    /// Within which time so many of a hundred calls were answered.
    fn at_most(&self, percent: u64) -> u64 {
        let all: u64 = self.0.iter().sum();
        let wanted = (all * percent).div_ceil(100);
        let mut seen = 0;
        for (step, count) in self.0.iter().enumerate() {
            seen += count;
            if seen >= wanted && all > 0 {
                return end_of(step);
            }
        }
        0
    }
}

/// The step of a time: its power of two, and a quarter of it.
fn step_of(took_us: u64) -> usize {
    let took = took_us.max(1);
    let power = took.ilog2();
    let quarter = if power < 2 {
        0
    } else {
        (took >> (power - 2)) & 3
    };
    ((power as usize) * 4 + quarter as usize).min(STEPS - 1)
}

/// The longest time of a step.
fn end_of(step: usize) -> u64 {
    let (power, quarter) = (step / 4, step % 4);
    if power < 2 {
        return (2_u64 << power) - 1;
    }
    ((1_u64 << power) * (5 + quarter as u64)) / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_lies_within_its_step() {
        for took in [1, 2, 3, 4, 5, 7, 8, 1_000, 1_023, 1_024, 999_999, 1 << 38] {
            let end = end_of(step_of(took));
            assert!(end >= took, "{took} {end}");
            assert!(took < 8 || end <= took + took / 4 + 1, "{took} {end}");
        }
        assert_eq!(step_of(u64::MAX), STEPS - 1);
    }

    /// B17: a minute knows how long its calls took, and nothing of another one's.
    #[test]
    fn a_minute_has_its_own_times() {
        let mut counted = Counted::default();
        for _ in 0..99 {
            counted.minute(7).took.add(1_000);
        }
        counted.minute(7).took.add(900_000);
        counted.minute(8).took.add(50);
        let told: Vec<Minute> = counted.minutes.iter().map(OfMinute::figures).collect();
        let within = |end: u64, took: u64| end >= took && end <= took + took / 4 + 1;
        assert!(within(told[0].p50_us, 1_000) && within(told[0].p99_us, 1_000));
        assert!(within(told[1].p50_us, 50) && within(told[1].p99_us, 50));
        counted.minute(7).took.add(900_000);
        let told = counted.minutes[0].figures();
        assert!(within(told.p99_us, 900_000), "{told:?}");
    }

    /// Failures are counted by code, tool and version, with their first and last time, the newest first.
    #[test]
    fn failures_say_since_when() {
        let mut counted = Counted::default();
        let at = |second| Timestamp::from_second(second).unwrap();
        let kind = |code, version: &str| (code, Arc::from("a.b"), version.to_owned());
        for (second, code, version) in [
            (5, "CONFLICT", "1"),
            (3, "CONFLICT", "1"),
            (9, "CONFLICT", "2"),
            (4, "TIMEOUT", "1"),
        ] {
            counted.failed(kind(code, version), 1, [at(second); 2]);
        }
        let told: Vec<_> = counted
            .failures()
            .into_iter()
            .map(|one| (one.code, one.version, one.count, one.first, one.last))
            .collect();
        let of = |code, version: &str, count, first, last| {
            (code, version.to_owned(), count, at(first), at(last))
        };
        assert_eq!(
            told,
            [
                of("CONFLICT", "2", 1, 9, 9),
                of("CONFLICT", "1", 2, 3, 5),
                of("TIMEOUT", "1", 1, 4, 4),
            ]
        );
    }

    #[test]
    fn old_minutes_are_dropped_and_late_calls_count_for_a_minute_that_is_there() {
        let mut counted = Counted::default();
        for minute in 0..500 {
            counted.minute(minute).calls += 1;
        }
        assert_eq!(counted.minutes.len(), 120);
        counted.minute(3).calls += 1;
        let all: u64 = counted.minutes.iter().map(|minute| minute.calls).sum();
        assert_eq!(all, 121);
    }
}
