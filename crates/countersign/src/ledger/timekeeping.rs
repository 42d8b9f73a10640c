//! Time, which is not trusted: a clock that lies must not destroy anything.
//!
//! The store keeps a mark of the latest time that it has believed. The mark moves with the store's clock, but only by
//! plausible steps. While the clock is too far from it, in either direction, nothing is removed that cannot be put
//! back; the log says so once. It goes on when the clock agrees with the mark again, or when an operator trusts the
//! clock.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use countersign_contract::{Digest, ToolName};
use jiff::{SignedDuration, Timestamp};

use super::claims::KeyDigest;
use super::{Entry, Error, Hex};
use crate::BoxFuture;

/// The longest step forward that the mark follows by itself: a server that was off over a long weekend.
pub const TIME_STEP_MAX: Duration = Duration::from_hours(72);

/// The furthest that the clock may be behind the mark: clocks are corrected by that much.
pub const TIME_LAG_MAX: Duration = Duration::from_mins(5);

/// Age of the mark from which on it is moved: an idle store writes no more often than that.
pub const MARK_MOVES_AFTER: Duration = Duration::from_secs(30);

/// Makes the record of what a transaction has done, within that transaction. It may be asked more than once.
pub type Told<T> = Arc<dyn Fn(&T) -> Entry + Send + Sync>;

/// Keeps the time, and removes what time alone removes.
pub trait Timekeeping: Send + Sync + 'static {
    /// Compares the clock with the mark, and moves the mark if the step is plausible. The first disagreement is
    /// recorded, and so is its end. A store without a mark takes the time of its newest record for one.
    fn observe_time(&self, told: Told<Passage>) -> BoxFuture<'_, Result<Passage, Error>>;

    /// Sets the mark to the clock, with its record, because an operator says that the clock is right. Returns what was
    /// found before.
    fn trust_time(&self, told: Told<Passage>) -> BoxFuture<'_, Result<Passage, Error>>;

    /// Removes what is past its time, at most `limit` of each kind, with its record, in one transaction: payloads past
    /// their retention that are not under a hold, the replies of settled claims, and pots [some time](super::POT_KEPT)
    /// after their window. Of a claim a tombstone stays. Nothing is removed while the clock disagrees with the mark.
    fn dispose(&self, limit: usize, told: Told<Removed>) -> BoxFuture<'_, Result<Disposal, Error>>;

    /// Removes tombstones, with their record: their keys are free again. Only an operator asks for that, and erasing a
    /// user; time alone never does.
    fn forget_keys<'a>(
        &'a self,
        which: &'a Forgotten,
        told: Told<Names>,
    ) -> BoxFuture<'a, Result<usize, Error>>;
}

/// The mark and the clock at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passage {
    /// The latest time that was believed.
    pub mark: Timestamp,
    /// The store's clock.
    pub clock: Timestamp,
}

/// The ways in which a clock disagrees with the mark. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jump {
    /// The clock is further ahead than a server is usually off.
    Ahead,
    /// The clock is behind a time that was believed before.
    Behind,
}

impl Jump {
    /// Its name in records and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ahead => "ahead",
            Self::Behind => "behind",
        }
    }
}

impl Passage {
    /// Difference between clock and mark; `None` if they agree.
    pub fn jump(&self) -> Option<Jump> {
        let step = self.step();
        if step > signed(TIME_STEP_MAX) {
            Some(Jump::Ahead)
        } else if step < -signed(TIME_LAG_MAX) {
            Some(Jump::Behind)
        } else {
            None
        }
    }

    /// Time from the mark to the clock.
    pub fn step(&self) -> SignedDuration {
        self.clock.duration_since(self.mark)
    }

    /// True if the clock agrees and the mark is old enough to be moved.
    pub fn moves_mark(&self) -> bool {
        self.jump().is_none() && self.step() >= signed(MARK_MOVES_AFTER)
    }
}

/// Says by how much the clock disagrees, for people.
impl fmt::Display for Passage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let days = self.step().abs().as_hours() / 24;
        let hours = self.step().abs().as_hours() % 24;
        let (clock, mark) = (self.clock, self.mark);
        match self.jump() {
            None => write!(f, "the clock agrees with the last time that was believed"),
            Some(Jump::Ahead) => write!(
                f,
                "the clock says {clock:.0}, {days} days and {hours} hours after {mark:.0}, the last time that was believed"
            ),
            Some(Jump::Behind) => write!(
                f,
                "the clock says {clock:.0}, {days} days and {hours} hours before {mark:.0}, the last time that was believed"
            ),
        }
    }
}

/// Counts of what was removed because its time was over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Disposed {
    /// Sealed payloads.
    pub payloads: usize,
    /// Replies of settled claims; their tombstones stay.
    pub replies: usize,
    /// Pots, long after their window.
    pub pots: usize,
}

impl Disposed {
    /// True if nothing was removed. If false, there may be more.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

/// Short names of rows that were removed, for the record of their removal: without it a missing row is a fault.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names(Vec<Name>);

/// The first bytes of a digest. A writer to the database cannot choose what is digested: ids and keys are random.
pub type Name = [u8; 8];

impl Names {
    /// Adds the name of a record.
    pub fn add_record(&mut self, id: &str) {
        self.0.push(Self::of_record(id));
    }

    /// Adds the name of an idempotency key.
    pub fn add_key(&mut self, tool: &str, key: &KeyDigest) {
        self.0.push(Self::of_key(tool, key));
    }

    /// The name of a record.
    pub fn of_record(id: &str) -> Name {
        name(id.as_bytes())
    }

    /// The name of an idempotency key.
    pub fn of_key(tool: &str, key: &KeyDigest) -> Name {
        name(&[tool.as_bytes(), &key.0].join(&0))
    }

    /// The number of names.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there is no name.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads the names in a record.
    pub fn parse(text: &str) -> impl Iterator<Item = Name> {
        let digits = text.as_bytes().chunks_exact(16);
        let number = |digits| u64::from_str_radix(str::from_utf8(digits).ok()?, 16).ok();
        digits.filter_map(number).map(u64::to_be_bytes)
    }
}

/// The names as they stand in a record: 16 hexadecimal digits each, without separators.
impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|name| Hex(name).fmt(f))
    }
}

fn name(bytes: &[u8]) -> Name {
    let digest = Digest::of_bytes(bytes);
    let first = digest.as_bytes().first_chunk();
    *first.expect("a digest has 32 bytes")
}

/// Result of a disposal, for its record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Removed {
    /// The counts.
    pub counts: Disposed,
    /// The records whose payloads were removed.
    pub payloads: Names,
}

/// Answer to a disposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposal {
    /// This was removed.
    Done(Disposed),
    /// The clock disagrees with the mark. Nothing was removed.
    Stopped(Passage),
}

impl Disposal {
    /// Returns the removed data, by kind.
    pub fn disposed(self) -> Disposed {
        match self {
            Self::Done(disposed) => disposed,
            Self::Stopped(_) => Disposed::default(),
        }
    }
}

/// The tombstones that an operator wants to be forgotten. All conditions must match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forgotten {
    /// Only those whose last claim is older than this.
    pub claimed_before: Timestamp,
    /// Only those of this user.
    pub user_id: Option<String>,
    /// Only those of this tool.
    pub tool: Option<ToolName>,
    /// Only this key.
    pub key: Option<KeyDigest>,
    /// Maximum number.
    pub limit: usize,
}

/// The time by which windows of budgets open: the clock, but the mark while they disagree. A clock that jumps opens no
/// window.
pub fn window_time(mark: Option<Timestamp>, clock: Timestamp) -> Timestamp {
    let Some(mark) = mark else {
        return clock;
    };
    match (Passage { mark, clock }).jump() {
        None => clock.max(mark),
        Some(Jump::Ahead | Jump::Behind) => mark,
    }
}

fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_plausible_up_to_its_bounds() {
        let mark: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        for (seconds, expected) in [
            (0, None),
            (3 * 24 * 3_600, None),
            (3 * 24 * 3_600 + 1, Some(Jump::Ahead)),
            (3 * 365 * 24 * 3_600, Some(Jump::Ahead)),
            (-300, None),
            (-301, Some(Jump::Behind)),
            (-10 * 365 * 24 * 3_600, Some(Jump::Behind)),
        ] {
            let clock = mark + SignedDuration::from_secs(seconds);
            let passage = Passage { mark, clock };
            assert_eq!(passage.jump(), expected, "{seconds}");
            assert_eq!(passage.moves_mark(), expected.is_none() && seconds >= 30);
            let expected = match expected {
                None => clock.max(mark),
                Some(_) => mark,
            };
            assert_eq!(window_time(Some(mark), clock), expected, "{seconds}");
            assert_eq!(window_time(None, clock), clock);
        }
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        let mut names = Names::default();
        names.add_record("ev_1");
        names.add_key("orders.place", &KeyDigest([7; 32]));
        let text = names.to_string();
        assert_eq!(text.len(), 32);
        let read: Vec<Name> = Names::parse(&text).collect();
        assert_eq!(read, names.0);
        assert_eq!(read.first(), Some(&Names::of_record("ev_1")));
    }
}
