//! Pots of money: the amounts that calls may still spend, and the reservations of calls that have not ended.
//!
//! ```text
//!            reserve, claim                 commit (spent)
//!   (free) ─────────────────► reserved ──────────────────────► spent
//!     ▲                          │
//!     └──────────────────────────┘ commit (released), release, or a lost owner's lease
//! ```
//!
//! A reservation is durable before the effect that it pays for begins, and ends in the very commit that
//! settles its call. It is ended by removing it, so that it cannot be ended twice.

use std::fmt;
use std::time::Duration;

use countersign_contract::SnapshotId;

use super::{Claim, Error};
use crate::BoxFuture;

/// Stores pots and reservations.
///
/// Rules that every implementation keeps:
///
/// - no reservation makes reserved and spent together exceed a pot's limit, under any race;
/// - a reservation draws on all of its pots or on none;
/// - a reservation ends once: a second end changes nothing;
/// - only the store's clock decides which window it is, and whether a lease is over.
pub trait Pots: Send + Sync + 'static {
    /// Reserves money, durably before this answers. A retry under the same id is safe.
    fn reserve<'a>(&'a self, request: &'a Reserve) -> BoxFuture<'a, Result<ReserveAnswer, Error>>;

    /// Checks if a reservation would be made now; changes nothing.
    fn check<'a>(&'a self, draws: &'a [Draw]) -> BoxFuture<'a, Result<ReserveAnswer, Error>>;

    /// Gives back the reservation of a call that had no effect. A reservation that has ended stays as it is.
    fn release<'a>(&'a self, id: &'a ReservationId) -> BoxFuture<'a, Result<(), Error>>;

    /// The reservation that was made with a claim; `None` if there is none, or if it has ended.
    fn reserved<'a>(
        &'a self,
        claim: &'a Claim,
    ) -> BoxFuture<'a, Result<Option<ReservationId>, Error>>;

    /// Pots for operators, by their keys; only those of this user if one is given.
    fn pots<'a>(
        &'a self,
        user_id: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<PotRow>, Error>>;
}

/// Identity of a pot. Another currency or another window is another pot; another limit is the same pot.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PotKey {
    /// The user that the pot belongs to; empty if it belongs to no single user. The pot is removed when that user is
    /// erased.
    pub user_id: String,
    /// The name of the budget.
    pub name: String,
    /// The agent or session that the pot belongs to; empty if the budget is not split by agent or session.
    pub holder: String,
    /// ISO 4217.
    pub currency: String,
    /// Length of a window in seconds; 0 if there is only one, which never ends.
    pub window_seconds: u64,
}

/// An amount that a call takes out of a pot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draw {
    /// The pot to draw on.
    pub pot: PotKey,
    /// In the smallest unit of the currency. Below zero it is a refund, which is credited when the call
    /// succeeds and sets nothing aside.
    pub amount: i64,
    /// Limit of the pot for what is reserved and spent together.
    pub limit: i64,
}

/// The name of a reservation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReservationId {
    /// The user whose call the reservation is for.
    pub user_id: String,
    /// Unique among all reservations.
    pub id: SnapshotId,
}

/// A request to reserve money.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reserve {
    /// Its name.
    pub id: ReservationId,
    /// Lease: the time for which the owner may be silent.
    pub lease: Duration,
    /// The end of the reservation if its owner is lost.
    pub lapse: Lapse,
    /// Amounts to draw, by pot; no pot twice.
    pub draws: Vec<Draw>,
}

/// The end of a reservation whose owner is lost. Closed; the numbers are what stores keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Lapse {
    /// It is given back: the effect would have been in the commit that did not happen.
    Release = 0,
    /// It counts as spent: the effect elsewhere may have happened.
    Spend = 1,
    /// It stays as long as the claim that it was made with is running or in doubt, and is given back when
    /// that has come to nothing.
    ByClaim = 2,
}

impl Lapse {
    /// The one that a store has kept as this number.
    pub fn from_number(number: i64) -> Option<Self> {
        [Self::Release, Self::Spend, Self::ByClaim]
            .into_iter()
            .find(|lapse| i64::from(*lapse as u8) == number)
    }
}

/// Answer to a [`Reserve`] request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReserveAnswer {
    /// It is set aside.
    Reserved,
    /// A pot has not enough left; nothing was set aside.
    Over(Overdrawn),
}

/// A pot without enough money: the one with the longest wait if there are several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overdrawn {
    /// Index of the draw that failed.
    pub draw: usize,
    /// Amount that is left in the pot.
    pub left: i64,
    /// Time until its next window begins; `None` if it has only one.
    pub next_window: Option<Duration>,
}

/// Change by which a commit ends the reservation of its call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpendChange {
    /// The reservation to end.
    pub id: ReservationId,
    /// The way in which it ends.
    pub end: SpendEnd,
}

/// The ways in which a reservation ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpendEnd {
    /// The call had no effect.
    Released,
    /// The effect happened. Amounts that were really spent, by draw; `None` if as much as was reserved.
    Spent(Vec<Option<i64>>),
    /// The effect is in this very commit, so it does not happen if the reservation has lapsed: then the commit answers
    /// [`Lapsed`](super::CommitAnswer::Lapsed) and does nothing.
    SpentHere(Vec<Option<i64>>),
}

/// A pot as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PotRow {
    /// Identity of the pot.
    pub key: PotKey,
    /// Start of its window in seconds since 1970; 0 if it has only one.
    pub window_start: i64,
    /// Set aside for calls that have not ended.
    pub reserved: i64,
    /// Spent, without what was refunded.
    pub spent: i64,
}

/// Retention of a pot after its window is over.
pub const POT_KEPT: Duration = Duration::from_hours(720);

/// Start of the window that contains a moment, in seconds since 1970.
pub fn window_start(now_seconds: i64, window_seconds: u64) -> i64 {
    match i64::try_from(window_seconds) {
        Ok(0) | Err(_) => 0,
        Ok(window) => now_seconds.div_euclid(window).saturating_mul(window),
    }
}

/// Checks a draw against the amounts that its pot has reserved and spent at this moment; `None` if there is enough.
///
/// Every store decides by this one rule.
pub fn overdrawn(
    index: usize,
    draw: &Draw,
    reserved: i64,
    spent: i64,
    now_seconds: i64,
) -> Option<Overdrawn> {
    let left = draw.limit.saturating_sub(reserved).saturating_sub(spent);
    if draw.amount <= 0 || draw.amount <= left {
        return None;
    }
    let window = i64::try_from(draw.pot.window_seconds).unwrap_or_default();
    let start = window_start(now_seconds, draw.pot.window_seconds);
    let next = start.saturating_add(window).saturating_sub(now_seconds);
    // What no window has room for does not get better by waiting.
    let comes_back = window > 0 && draw.amount <= draw.limit;
    Some(Overdrawn {
        draw: index,
        left,
        next_window: comes_back.then(|| Duration::from_secs(next.max(1).unsigned_abs())),
    })
}

/// The one of two pots with the longer wait; one that never fills is longest.
pub fn longer(first: Option<Overdrawn>, second: Option<Overdrawn>) -> Option<Overdrawn> {
    match (first, second) {
        (Some(first), Some(second)) => {
            let waits = |over: &Overdrawn| over.next_window.unwrap_or(Duration::MAX);
            Some(if waits(&second) > waits(&first) {
                second
            } else {
                first
            })
        }
        (first, second) => first.or(second),
    }
}

impl fmt::Display for PotKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.currency)
    }
}
