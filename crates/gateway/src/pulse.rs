//! The pulse: what happened in the last two hours, in memory, for people who watch.
//!
//! Stores keep records, not figures, and counting records anew for every look would cost more the longer a server runs.
//! So calls are counted as they are answered, by the minute, by tool and by error. After a start, what this process did not see is
//! recalled (`pulse/recall.rs`) from the newest records of the log.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use countersign::contract::ErrorCode;
use countersign::observe::{Answered, Observer};
use jiff::{SignedDuration, Timestamp};
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
    /// Time of the oldest record that figures were recalled from; `None` before that.
    since: Option<Timestamp>,
}

/// A kind of failure: its code, its tool and the tool's version.
type Kind = (&'static str, Arc<str>, String);

/// Number of failures, and the times between which they occurred.
#[derive(Debug)]
struct Spell {
    count: u64,
    /// First failure after the last pause of [`QUIET`].
    first: Timestamp,
    last: Timestamp,
    /// Number of failures in each minute of the last hour, oldest first; minutes without one are left out.
    recent: VecDeque<(i64, u64)>,
}

/// Time without a failure after which the next one is new.
const QUIET: SignedDuration = SignedDuration::from_hours(6);

/// Minutes of the last hour.
const HOUR: i64 = 60;

/// An answered call, or several that one record stands for.
#[derive(Debug, Clone)]
struct Counting<'c> {
    code: Option<ErrorCode>,
    /// Name and version, if there is such a tool.
    tool: Option<(&'c str, &'c str)>,
    is_repaired: bool,
    /// Duration; `None` if it is not known.
    took_us: Option<u64>,
    count: u64,
    /// Times of the first and the last of them.
    between: [Timestamp; 2],
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

/// The figures of one tool since [`Figures::since`].
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
    /// Number of calls in the last hour.
    pub last_hour: u64,
    /// First of them after the last six hours without one.
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
    /// Time since which tools, codes and failures are counted, if that is before the process began.
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

    /// The counters at this time.
    pub fn figures(&self, now: Timestamp) -> Figures {
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
            failures: counted.failures(now),
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
        let tool = answered.tool.as_ref();
        let tool = tool.map(|entry| (entry.name().as_str(), entry.spec().version.as_str()));
        let mut counted = self.counted();
        counted.count(&Counting {
            code: answered.code,
            tool,
            is_repaired: answered.binding.is_repaired(),
            took_us: Some(answered.phases.worked_us()),
            count: 1,
            between: [answered.at; 2],
        });
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
    /// Counts a call by its minute, its tool, its code and its kind of failure.
    fn count(&mut self, call: &Counting<'_>) {
        self.in_minute(call);
        self.by_kind(call);
    }

    fn in_minute(&mut self, call: &Counting<'_>) {
        let (count, is_error) = (call.count, call.is_error());
        let [_, last] = call.between;
        let minute = self.minute(minute_of(last));
        minute.calls += count;
        minute.errors += if is_error { count } else { 0 };
        minute.questions += if call.is_question() { count } else { 0 };
        minute.repaired += if call.is_repaired { count } else { 0 };
        minute.took.add(call);
    }

    fn by_kind(&mut self, call: &Counting<'_>) {
        let code = call.code.map_or("OK", ErrorCode::as_str);
        *self.codes.entry(code).or_default() += call.count;
        let Some((name, version)) = call.tool else {
            return;
        };
        if call.is_error() {
            let kind = (code, name.into(), version.to_owned());
            self.failed(kind, call.count, call.between);
        }
        if !self.tools.contains_key(name) {
            self.tools.insert(name.into(), OfTool::default());
        }
        if let Some(of) = self.tools.get_mut(name) {
            of.calls += call.count;
            of.errors += if call.is_error() { call.count } else { 0 };
            of.took.add(call);
        }
    }

    /// Counts failures of one kind between two times.
    fn failed(&mut self, kind: Kind, count: u64, [first, last]: [Timestamp; 2]) {
        if self.failures.len() >= FAILURES_MAX && !self.failures.contains_key(&kind) {
            return;
        }
        let spell = self.failures.entry(kind).or_insert(Spell {
            count: 0,
            first,
            last,
            recent: VecDeque::new(),
        });
        spell.count += count;
        spell.reach(first, last);
        spell.add_recent(minute_of(last), count);
    }

    fn failures(&self, now: Timestamp) -> Vec<Failures> {
        let hour_began = minute_of(now) - HOUR;
        let one = |((code, tool, version), spell): (&Kind, &Spell)| Failures {
            code,
            tool: tool.to_string(),
            version: version.clone(),
            count: spell.count,
            last_hour: spell.since(hour_began),
            first: spell.first,
            last: spell.last,
        };
        let mut failures: Vec<Failures> = self.failures.iter().map(one).collect();
        failures.sort_by_key(|failure| std::cmp::Reverse(failure.last));
        failures
    }

    /// The counts of a minute. What is older than the oldest minute that is kept counts for that one.
    fn minute(&mut self, minute: i64) -> &mut OfMinute {
        let newest = self.minutes.back().map_or(minute, |last| last.minute);
        let kept_from = newest.max(minute) - MINUTES;
        while self.minutes.front().is_some_and(|m| m.minute <= kept_from) {
            self.minutes.pop_front();
        }
        let minute = minute.max(kept_from + 1);
        let found = self
            .minutes
            .binary_search_by_key(&minute, |known| known.minute);
        let at = found.unwrap_or_else(|at| {
            let new = OfMinute {
                minute,
                ..OfMinute::default()
            };
            self.minutes.insert(at, new);
            at
        });
        // It was made above where there was none.
        self.minutes
            .get_mut(at)
            .expect("a position that was found is there")
    }
}

impl Counting<'_> {
    fn is_question(&self) -> bool {
        self.code.is_some_and(ErrorCode::is_question)
    }

    fn is_error(&self) -> bool {
        self.code.is_some() && !self.is_question()
    }
}

impl Spell {
    /// Lets the spell begin and end with failures of this time. A pause of [`QUIET`] lies between two spells, and the later one is kept.
    fn reach(&mut self, first: Timestamp, last: Timestamp) {
        if first.duration_since(self.last) > QUIET {
            self.first = first;
        } else if self.first.duration_since(last) <= QUIET {
            self.first = self.first.min(first);
        }
        self.last = self.last.max(last);
    }

    fn add_recent(&mut self, minute: i64, count: u64) {
        let newest = self.recent.back().map_or(minute, |(last, _)| *last);
        if minute <= newest - HOUR {
            return;
        }
        match self
            .recent
            .binary_search_by_key(&minute, |(known, _)| *known)
        {
            Ok(at) => {
                if let Some((_, known)) = self.recent.get_mut(at) {
                    *known += count;
                }
            }
            Err(at) => self.recent.insert(at, (minute, count)),
        }
        let oldest = newest.max(minute) - HOUR;
        while self
            .recent
            .front()
            .is_some_and(|(known, _)| *known <= oldest)
        {
            self.recent.pop_front();
        }
    }

    /// Number of failures after this minute.
    fn since(&self, minute: i64) -> u64 {
        let recent = self.recent.iter();
        let recent = recent.filter(|(known, _)| *known > minute);
        recent.map(|(_, count)| count).sum()
    }
}

fn minute_of(at: Timestamp) -> i64 {
    at.as_second().div_euclid(60)
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
    fn add(&mut self, call: &Counting<'_>) {
        let step = call.took_us.map(step_of);
        if let Some(step) = step.and_then(|step| self.0.get_mut(step)) {
            *step += call.count;
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
        let took = |counted: &mut Counted, minute: i64, took_us: u64| {
            counted.count(&Counting {
                code: None,
                tool: None,
                is_repaired: false,
                took_us: Some(took_us),
                count: 1,
                between: [Timestamp::from_second(minute * 60).unwrap(); 2],
            });
        };
        for _ in 0..99 {
            took(&mut counted, 7, 1_000);
        }
        took(&mut counted, 7, 900_000);
        took(&mut counted, 8, 50);
        let told: Vec<Minute> = counted.minutes.iter().map(OfMinute::figures).collect();
        let within = |end: u64, took: u64| end >= took && end <= took + took / 4 + 1;
        assert!(within(told[0].p50_us, 1_000) && within(told[0].p99_us, 1_000));
        assert!(within(told[1].p50_us, 50) && within(told[1].p99_us, 50));
        took(&mut counted, 7, 900_000);
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
            .failures(at(10))
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

    /// B17: a failure is new after six hours without one, in whichever order records are read; the last hour is counted apart.
    #[test]
    fn a_failure_is_new_after_a_pause() {
        let at = |hour: i64| Timestamp::from_second(hour * 3_600).unwrap();
        let hours = [0, 1, 20, 24, 25];
        let mut newest_first = hours;
        newest_first.reverse();
        // What this process sees comes in the order of time; what is recalled comes newest first.
        for order in [hours, newest_first] {
            let mut counted = Counted::default();
            for hour in order {
                let kind = ("TIMEOUT", Arc::from("a.b"), "1".to_owned());
                counted.failed(kind, 2, [at(hour); 2]);
            }
            let told = counted.failures(at(25)).remove(0);
            assert_eq!((told.first, told.last), (at(20), at(25)));
            assert_eq!((told.count, told.last_hour), (10, 2));
            assert_eq!(counted.failures(at(27))[0].last_hour, 0);
        }
    }

    #[test]
    fn old_minutes_are_dropped_and_late_calls_count_for_the_oldest_that_is_kept() {
        let mut counted = Counted::default();
        for minute in 0..500 {
            counted.minute(minute).calls += 1;
        }
        assert_eq!(counted.minutes.len(), 120);
        counted.minute(3).calls += 1;
        let all: u64 = counted.minutes.iter().map(|minute| minute.calls).sum();
        assert_eq!(all, 121);
        // A minute that was left out is put in its place.
        let mut counted = Counted::default();
        for minute in [7, 5, 6, 5] {
            counted.minute(minute).calls += 1;
        }
        let told: Vec<_> = counted
            .minutes
            .iter()
            .map(|it| (it.minute, it.calls))
            .collect();
        assert_eq!(told, [(5, 2), (6, 1), (7, 1)]);
    }
}
