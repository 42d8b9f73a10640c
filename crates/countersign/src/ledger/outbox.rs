//! The outbox: notices of what needs a person, and their deliveries to the targets that want them.
//!
//! ```text
//!             keep_notices                       take_deliveries            end_delivery
//!   finding ───────────────► notice ─┬─ delivery ───────────────► leased ─────────────────► delivered
//!                                    └─ delivery      ▲                  │
//!                                                     └── lease is over ─┴─ failed, again later, or given up
//! ```
//!
//! A notice holds nothing personal: a kind, ids of our own making, the name of a tool or an upstream, times, and the path
//! of a page.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use countersign_contract::ToolName;
use jiff::Timestamp;

use super::Error;
use crate::BoxFuture;

/// Stores notices and their deliveries.
///
/// Rules that every implementation keeps:
///
/// - a finding has one open notice, under any race; one that was gone and comes back has a new one;
/// - every open notice has a delivery for each target that wants it, and none twice;
/// - a delivery is given to one sender at a time, until its lease is over;
/// - a delivery that was made stays made, whatever a late sender says;
/// - only the store's clock decides about leases, waits and ends.
pub trait Outbox: Send + Sync + 'static {
    /// Keeps the findings of one look, durably before this answers. Returns the ids of the new notices. A retry of the
    /// same look is safe.
    fn keep_notices<'a>(&'a self, look: &'a Look) -> BoxFuture<'a, Result<Vec<String>, Error>>;

    /// Leases deliveries that are due to these targets, the longest due first, at most `limit`, and counts the attempt.
    /// A delivery whose time is over after at least one attempt is given up instead.
    fn take_deliveries<'a>(
        &'a self,
        targets: &'a [String],
        lease: Duration,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Delivery>, Error>>;

    /// Ends an attempt. A failure of an attempt that is not the newest changes nothing; a success always counts.
    fn end_delivery<'a>(
        &'a self,
        delivery: &'a DeliveryId,
        end: &'a DeliveryEnd,
    ) -> BoxFuture<'a, Result<(), Error>>;

    /// Makes the deliveries to a target that were given up due again, for this time. Returns their number.
    fn retry_deliveries<'a>(
        &'a self,
        target: &'a str,
        give_up_after: Duration,
    ) -> BoxFuture<'a, Result<usize, Error>>;

    /// Notices with their deliveries, newest first.
    fn notices(&self, limit: usize) -> BoxFuture<'_, Result<Vec<NoticeRow>, Error>>;

    /// The number of deliveries that were given up, by target.
    fn failed_deliveries(&self) -> BoxFuture<'_, Result<Vec<FailedDeliveries>, Error>>;
}

/// The kinds of notices. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NoticeKind {
    /// A question that waits for an approval.
    Question,
    /// A call whose effect may or may not have happened.
    CallInDoubt,
    /// A verification of the log that found a fault.
    VerificationFailed,
    /// Tools of an upstream that are not as they were approved.
    DefinitionsChanged,
    /// A budget of which at most a tenth is left.
    BudgetUsedUp,
}

impl NoticeKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [
        Self::Question,
        Self::CallInDoubt,
        Self::VerificationFailed,
        Self::DefinitionsChanged,
        Self::BudgetUsedUp,
    ];

    /// Its name in messages, settings and stores.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Question => "question",
            Self::CallInDoubt => "call_in_doubt",
            Self::VerificationFailed => "verification_failed",
            Self::DefinitionsChanged => "definitions_changed",
            Self::BudgetUsedUp => "budget_used_up",
        }
    }
}

impl fmt::Display for NoticeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text names no kind of notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown kind of notice")]
pub struct UnknownNoticeKind;

impl FromStr for NoticeKind {
    type Err = UnknownNoticeKind;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|kind| kind.as_str() == text);
        found.ok_or(UnknownNoticeKind)
    }
}

/// One look at everything that needs a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// The findings; no kind and subject twice.
    pub findings: Vec<Finding>,
    /// Kinds of which every finding was seen: only of these a notice ends because its finding was not.
    pub complete: Vec<NoticeKind>,
    /// Time after which a notice ends if no process has seen its finding. Processes that share a store do not see the same
    /// at the same moment.
    pub gone_after: Duration,
    /// Time after which a delivery is given up.
    pub give_up_after: Duration,
    /// Number of newest notices that are kept; older ones are removed when they have ended and nothing is due.
    pub kept_max: usize,
}

impl Look {
    /// Age of the last look at a finding from which on it is noted again: an idle outbox is written that often.
    pub fn refresh_after(&self) -> Duration {
        self.gone_after / 3
    }
}

/// Something that needs a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Notice to keep if there is no open one of this kind and subject.
    pub notice: Notice,
    /// Names of the targets that want it.
    pub targets: Vec<String>,
}

/// A notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Id of the message, the same in every attempt.
    pub id: String,
    /// Its kind.
    pub kind: NoticeKind,
    /// Subject: what tells it from other findings of its kind. No personal data.
    pub subject: String,
    /// Tool that it concerns.
    pub tool: Option<ToolName>,
    /// Time since when a person is needed; `None` if it is not known.
    pub since: Option<Timestamp>,
    /// Path of the console's page.
    pub page: String,
}

/// Name of one attempt of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryId {
    /// Id of the notice.
    pub notice_id: String,
    /// Name of the target.
    pub target: String,
    /// Number of the attempt, from 1.
    pub attempt: u32,
}

/// A delivery that a sender has leased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Its name.
    pub id: DeliveryId,
    /// The notice to send.
    pub notice: Notice,
    /// Time at which the notice was kept.
    pub at: Timestamp,
}

/// The end of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryEnd {
    /// The target has accepted it.
    Delivered,
    /// The target has not accepted it, or not said so.
    Failed {
        /// Wait before the next attempt.
        retry_after: Duration,
        /// Reason, without secrets and without what the target answered.
        error: String,
    },
}

/// A notice as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoticeRow {
    /// The notice.
    pub notice: Notice,
    /// Time at which it was kept.
    pub at: Timestamp,
    /// Time at which its finding was gone; `None` while it is there.
    pub gone_at: Option<Timestamp>,
    /// Its deliveries, by target.
    pub deliveries: Vec<DeliveryRow>,
}

/// A delivery as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryRow {
    /// Name of the target.
    pub target: String,
    /// Number of attempts.
    pub attempts: u32,
    /// Time of the next attempt, or end of the lease of the running one. Without meaning once it has ended.
    pub next_at: Timestamp,
    /// Time at which the target accepted it.
    pub delivered_at: Option<Timestamp>,
    /// Time at which it was given up.
    pub failed_at: Option<Timestamp>,
    /// Reason why the newest failed attempt failed.
    pub last_error: Option<String>,
}

impl DeliveryRow {
    /// Its state, by name: `delivered`, `failed`, or `waiting`.
    pub fn state(&self) -> &'static str {
        match (self.delivered_at, self.failed_at) {
            (Some(_), _) => "delivered",
            (None, Some(_)) => "failed",
            (None, None) => "waiting",
        }
    }
}

/// Deliveries to a target that were given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedDeliveries {
    /// Name of the target.
    pub target: String,
    /// Their number.
    pub count: u64,
    /// Time since when: when the first of them was given up.
    pub since: Timestamp,
}
