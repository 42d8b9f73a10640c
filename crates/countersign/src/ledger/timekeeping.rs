//! Time, which is not trusted: a clock that lies must not destroy anything.
//!
//! The store keeps a mark of the latest time that it has believed. The mark moves with the store's clock, but only by
//! plausible steps. While the clock is too far from it, in either direction, nothing is removed that cannot be put
//! back; the log says so once. It goes on when the clock agrees with the mark again, or when an operator trusts the
//! clock.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use countersign_contract::ToolName;
use jiff::{SignedDuration, Timestamp};

use super::claims::KeyDigest;
use super::{Entry, Error};
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
    fn dispose(&self, limit: usize, told: Told<Disposed>)
    -> BoxFuture<'_, Result<Disposal, Error>>;

    /// Removes tombstones, with their record: their keys are free again. Only an operator asks for that, and erasing a
    /// user; time alone never does.
    fn forget_keys<'a>(
        &'a self,
        which: &'a Forgotten,
        told: Told<usize>,
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
        }
    }
}
