//! Pots of money: what calls may still spend, and what was set aside for calls that have not ended.
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

/// Keeps pots, and what was set aside.
///
/// Rules that every implementation keeps:
///
/// - what is reserved and spent never exceeds a pot's limit by a reservation, whatever races with it;
/// - a reservation draws on all of its pots or on none;
/// - a reservation ends once: what comes second changes nothing;
/// - only the store's clock decides which window it is, and whether a lease is over.
pub trait Pots: Send + Sync + 'static {
    /// Sets money aside. It is durable before this answers. Asking again under the same id is safe.
    fn reserve<'a>(&'a self, request: &'a Reserve) -> BoxFuture<'a, Result<ReserveAnswer, Error>>;

    /// Whether a reservation would be made now; changes nothing.
    fn check<'a>(&'a self, draws: &'a [Draw]) -> BoxFuture<'a, Result<ReserveAnswer, Error>>;

    /// Gives a reservation back whose call has come to nothing. One that has ended stays as it is.
    fn release<'a>(&'a self, id: &'a ReservationId) -> BoxFuture<'a, Result<(), Error>>;

    /// The reservation that was made with a claim, where there is one that has not ended.
    fn reserved<'a>(
        &'a self,
        claim: &'a Claim,
    ) -> BoxFuture<'a, Result<Option<ReservationId>, Error>>;

    /// Pots for operators, by their keys; of this user only where one is given.
    fn pots<'a>(
        &'a self,
        user_id: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<PotRow>, Error>>;
}

/// Which pot. Another currency or another window is another pot; another limit is the same one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PotKey {
    /// Whose it is; empty where it is nobody's in particular. It goes when that user is erased.
    pub user_id: String,
    /// The name of the budget.
    pub name: String,
    /// Which agent or session it belongs to; empty where the budget has no such parts.
    pub holder: String,
    /// ISO 4217.
    pub currency: String,
    /// How long a window is, in seconds; 0 where there is only one, which never ends.
    pub window_seconds: u64,
}

/// What a call takes out of a pot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draw {
    /// Which pot.
    pub pot: PotKey,
    /// In the smallest unit of the currency. Below zero it is a refund, which is credited when the call
    /// succeeds and sets nothing aside.
    pub amount: i64,
    /// What may be reserved and spent at most.
    pub limit: i64,
}

/// The name of a reservation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReservationId {
    /// Whose call it is for.
    pub user_id: String,
    /// Unique among all reservations.
    pub id: SnapshotId,
}

/// Asks for money.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reserve {
    /// Its name.
    pub id: ReservationId,
    /// For how long the owner may be silent.
    pub lease: Duration,
    /// What a lost owner leaves behind.
    pub lapse: Lapse,
    /// What is taken out of which pot; no pot twice.
    pub draws: Vec<Draw>,
}

/// What becomes of a reservation whose owner is lost. Closed; the numbers are what stores keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Lapse {
    /// It is given back: the effect would have been in the commit that never was.
    Release = 0,
    /// It counts as spent: nobody can say that the effect elsewhere did not happen.
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

/// What became of asking for money.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReserveAnswer {
    /// It is set aside.
    Reserved,
    /// There is not enough in a pot; nothing was set aside.
    Over(Overdrawn),
}

/// A pot that has not enough: the one that takes longest where there are several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overdrawn {
    /// Which of the draws.
    pub draw: usize,
    /// What is left in it.
    pub left: i64,
    /// When its next window begins; none where it has only one.
    pub next_window: Option<Duration>,
}

/// How a commit ends the reservation of its call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpendChange {
    /// Which one.
    pub id: ReservationId,
    /// How it ends.
    pub end: SpendEnd,
}

/// How a reservation ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpendEnd {
    /// The call came to nothing.
    Released,
    /// The effect is there. What was really spent, by draw; as much as was reserved where nothing is said.
    Spent(Vec<Option<i64>>),
    /// The effect is in this very commit, so there is none where the reservation has been given up:
    /// then the commit answers [`Lapsed`](super::CommitAnswer::Lapsed) and does nothing.
    SpentHere(Vec<Option<i64>>),
}

/// A pot as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PotRow {
    /// Which one.
    pub key: PotKey,
    /// When its window began, in seconds since 1970; 0 where it has only one.
    pub window_start: i64,
    /// Set aside for calls that have not ended.
    pub reserved: i64,
    /// Spent, without what was refunded.
    pub spent: i64,
}

/// For how long a pot is kept after its window is over.
pub const POT_KEPT: Duration = Duration::from_hours(720);

/// When the window began that a moment is in, in seconds since 1970.
pub fn window_start(now_seconds: i64, window_seconds: u64) -> i64 {
    match i64::try_from(window_seconds) {
        Ok(0) | Err(_) => 0,
        Ok(window) => now_seconds.div_euclid(window).saturating_mul(window),
    }
}

/// What a draw answers, given what its pot has reserved and spent at this moment.
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

/// The one of two pots that keeps the caller waiting longer; one that never fills is longest.
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
