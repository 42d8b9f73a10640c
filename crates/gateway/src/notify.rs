//! Notifications: what needs a person, sent to where people look.
//!
//! ```text
//!   questions, doubts, verifications, pins, budgets ──► look ──► outbox (in the store) ──► send ──► webhook, e-mail
//! ```
//!
//! Findings are derived from the durable state every few seconds, so no call waits for a notification, and none is lost
//! with a process. A message says the kind, ids, the name of a tool, a time and a link; it has no argument, no answer and
//! no user. The link is the plain address of a page and carries no authority.
//!
//! Each message is sent at least once: a process that dies between sending and recording sends it again, under the same
//! id.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use countersign::BoxFuture;
use countersign::ledger::{self, Delivery, DeliveryEnd, DeliveryRow, NoticeKind, NoticeRow};
use futures_util::future::join_all;
use jiff::Timestamp;
use serde::Serialize;

use crate::gateway::Gateway;

mod email;
mod look;
mod webhook;

pub use email::{Email, EmailError, EmailOptions, Encryption};
pub use webhook::{InvalidSecret, Webhook, WebhookSecret};

use look::Looker;

/// Time after which a delivery is given up.
pub const GIVE_UP_AFTER: Duration = Duration::from_hours(72);

/// Interval between two looks at what needs a person, and at what is due.
const TICK: Duration = Duration::from_secs(1);

/// Time limit for one attempt of a delivery, the recording not included.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// Lease of a delivery: longer than an attempt and its recording take.
const LEASE: Duration = Duration::from_secs(20);

/// Maximum number of deliveries at a time.
const BATCH: usize = 8;

/// First wait after a failure, and the longest.
const BACK_OFF: Duration = Duration::from_secs(5);
const BACK_OFF_MAX: Duration = Duration::from_hours(1);

/// Maximum length of the reason of a failure, in characters.
const ERROR_CHARS_MAX: usize = 200;

/// A receiver of notifications.
#[derive(Clone)]
pub struct Target {
    /// Its name in the configuration.
    pub name: String,
    /// Kinds that it is sent.
    pub kinds: Vec<NoticeKind>,
    /// The way to it.
    pub channel: Arc<dyn Channel>,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("name", &self.name)
            .field("kinds", &self.kinds)
            .field("channel", &self.channel.kind())
            .finish()
    }
}

/// A way to send a message.
pub trait Channel: Send + Sync + 'static {
    /// Its kind, as the configuration spells it.
    fn kind(&self) -> &'static str;

    /// Sends a message, once. It has arrived only if this says so.
    fn send<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, Result<(), Undelivered>>;
}

/// A message was not accepted. The text has no secret, no address, and nothing that the receiver answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Undelivered(pub String);

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its id, the same in every attempt.
    pub id: String,
    /// Kind of the notice, or `test`.
    pub kind: &'static str,
    /// Subject: the id of a question, the digest of a key, the name of an upstream or a budget.
    pub subject: String,
    /// Tool that it concerns.
    pub tool: Option<String>,
    /// Time since when a person is needed.
    pub since: Option<Timestamp>,
    /// Time at which it was found.
    pub at: Timestamp,
    /// Time of this attempt.
    pub sent_at: Timestamp,
    /// Address of the page.
    pub link: String,
}

impl Message {
    /// A message that says nothing, to see whether it arrives.
    pub fn test(id: String, now: Timestamp, base: &str) -> Self {
        Self {
            id,
            kind: "test",
            subject: "test".to_owned(),
            tool: None,
            since: None,
            at: now,
            sent_at: now,
            link: link(base, "/notifications"),
        }
    }

    fn of(delivery: &Delivery, base: &str, sent_at: Timestamp) -> Self {
        let notice = &delivery.notice;
        Self {
            id: notice.id.clone(),
            kind: notice.kind.as_str(),
            subject: notice.subject.clone(),
            tool: notice.tool.as_ref().map(ToString::to_string),
            since: notice.since,
            at: delivery.at,
            sent_at,
            link: link(base, &notice.page),
        }
    }
}

fn link(base: &str, page: &str) -> String {
    format!("{}{page}", base.trim_end_matches('/'))
}

/// Sends a message within the time limit of an attempt.
pub async fn send(channel: &dyn Channel, message: &Message) -> Result<(), Undelivered> {
    let sent = tokio::time::timeout(SEND_TIMEOUT, channel.send(message)).await;
    let sent = sent.unwrap_or_else(|_| {
        let seconds = SEND_TIMEOUT.as_secs();
        Err(Undelivered(format!("no answer within {seconds} seconds")))
    });
    sent.map_err(|Undelivered(why)| Undelivered(why.chars().take(ERROR_CHARS_MAX).collect()))
}

/// Looks for what needs a person, and sends what is due.
pub struct Notifier {
    gateway: Gateway,
    /// Address of the console.
    base: String,
    looker: Looker,
}

impl fmt::Debug for Notifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Notifier({})", self.base)
    }
}

/// Errors of a pass: the store does not answer, and the next pass tries again.
#[derive(Debug, thiserror::Error)]
pub enum PassError {
    /// The outbox could not be read or written, usually because the store does not answer.
    #[error("the outbox could not be read or written")]
    Store(#[from] ledger::Error),
    /// The questions could not be read, usually because the store does not answer.
    #[error("the questions could not be read")]
    Questions(#[from] countersign::approve::Error),
    /// The claims could not be read, usually because the store does not answer.
    #[error("the calls in doubt could not be read")]
    Claims(#[from] countersign::archive::Error),
}

impl Notifier {
    /// Notifies about this gateway, with links to this address of its console.
    pub fn new(gateway: Gateway, base: impl Into<String>) -> Self {
        Self {
            looker: Looker::new(&gateway),
            gateway,
            base: base.into(),
        }
    }

    /// Makes pass after pass, for ever.
    pub async fn run(mut self) {
        let mut is_failing = false;
        loop {
            let done = self.pass().await;
            if let Err(error) = &done
                && !is_failing
            {
                tracing::warn!(
                    error = error as &dyn std::error::Error,
                    "notifications wait: the store does not answer"
                );
            }
            is_failing = done.is_err();
            tokio::time::sleep(TICK).await;
        }
    }

    /// Looks, if it is time to, and sends what is due. Does nothing while there are no targets.
    pub async fn pass(&mut self) -> Result<(), PassError> {
        let targets = self.gateway.notify_targets();
        if targets.is_empty() {
            return Ok(());
        }
        self.looker.look(&self.gateway, &targets).await?;
        let names: Vec<String> = targets.iter().map(|target| target.name.clone()).collect();
        let store = self.gateway.executor().store();
        loop {
            let due = store.take_deliveries(&names, LEASE, BATCH).await?;
            let is_last = due.len() < BATCH;
            let mut sending = Vec::new();
            for delivery in &due {
                sending.push(deliver(&self.gateway, &targets, delivery, &self.base));
            }
            for sent in join_all(sending).await {
                sent?;
            }
            if is_last {
                return Ok(());
            }
        }
    }
}

/// Sends one message, and records what became of it.
async fn deliver(
    gateway: &Gateway,
    targets: &[Target],
    delivery: &Delivery,
    base: &str,
) -> Result<(), ledger::Error> {
    let id = &delivery.id;
    let Some(target) = targets.iter().find(|target| target.name == id.target) else {
        return Ok(());
    };
    let message = Message::of(delivery, base, gateway.executor().now());
    let end = match send(&*target.channel, &message).await {
        Ok(()) => DeliveryEnd::Delivered,
        Err(Undelivered(error)) => {
            tracing::warn!(
                target_name = target.name,
                notice = id.notice_id,
                attempt = id.attempt,
                error,
                "a notification was not delivered; it is tried again"
            );
            let mut random = [0; 8];
            gateway.ids().fill(&mut random);
            DeliveryEnd::Failed {
                retry_after: back_off(id.attempt, u64::from_le_bytes(random)),
                error,
            }
        }
    };
    gateway.executor().store().end_delivery(id, &end).await
}

/// Wait after the failure of an attempt: twice as long each time, and between half and all of it by chance, so that
/// senders that failed together do not come back together.
fn back_off(attempt: u32, random: u64) -> Duration {
    let doubled = 1_u32.checked_shl(attempt.saturating_sub(1).min(31));
    let whole = BACK_OFF.saturating_mul(doubled.unwrap_or(u32::MAX));
    let whole = whole.min(BACK_OFF_MAX);
    let half = whole / 2;
    let span = u64::try_from(half.as_millis()).unwrap_or(u64::MAX).max(1);
    half + Duration::from_millis(random % span)
}

/// The outbox as operators see it.
#[derive(Debug, Clone, Serialize)]
pub struct Notifications {
    /// Receivers of the configuration.
    pub targets: Vec<ShownTarget>,
    /// Notices, newest first.
    pub notifications: Vec<ShownNotice>,
}

/// A receiver.
#[derive(Debug, Clone, Serialize)]
pub struct ShownTarget {
    /// Its name.
    pub name: String,
    /// Kind of its channel.
    pub kind: &'static str,
    /// Kinds that it is sent.
    pub events: Vec<&'static str>,
}

/// A notice with its deliveries.
#[derive(Debug, Clone, Serialize)]
pub struct ShownNotice {
    /// Id of the message.
    pub id: String,
    /// Its kind.
    pub kind: &'static str,
    /// Its subject.
    pub subject: String,
    /// Tool that it concerns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Time since when a person is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Time at which it was found.
    pub at: Timestamp,
    /// Time at which it was gone; absent while it waits for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gone_at: Option<Timestamp>,
    /// Page on which it is settled.
    pub page: String,
    /// Its deliveries, by target.
    pub deliveries: Vec<ShownDelivery>,
}

/// A delivery.
#[derive(Debug, Clone, Serialize)]
pub struct ShownDelivery {
    /// Name of the target.
    pub target: String,
    /// `waiting`, `delivered` or `failed`.
    pub state: &'static str,
    /// Number of attempts.
    pub attempts: u32,
    /// Time of the next attempt, while it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_at: Option<Timestamp>,
    /// Time at which the target accepted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered_at: Option<Timestamp>,
    /// Time at which it was given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_at: Option<Timestamp>,
    /// Reason why the newest failed attempt failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

impl From<&Target> for ShownTarget {
    fn from(target: &Target) -> Self {
        Self {
            name: target.name.clone(),
            kind: target.channel.kind(),
            events: target.kinds.iter().map(|kind| kind.as_str()).collect(),
        }
    }
}

impl From<NoticeRow> for ShownNotice {
    fn from(row: NoticeRow) -> Self {
        let notice = row.notice;
        Self {
            id: notice.id,
            kind: notice.kind.as_str(),
            subject: notice.subject,
            tool: notice.tool.map(|tool| tool.to_string()),
            since: notice.since,
            at: row.at,
            gone_at: row.gone_at,
            page: notice.page,
            deliveries: row
                .deliveries
                .into_iter()
                .map(ShownDelivery::from)
                .collect(),
        }
    }
}

impl From<DeliveryRow> for ShownDelivery {
    fn from(row: DeliveryRow) -> Self {
        let state = row.state();
        Self {
            target: row.target,
            state,
            attempts: row.attempts,
            next_at: (state == "waiting").then_some(row.next_at),
            delivered_at: row.delivered_at,
            failed_at: row.failed_at,
            last_error: row.last_error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_an_hour_with_jitter() {
        let seconds = |attempt, random| back_off(attempt, random).as_secs_f64();
        for (attempt, whole) in [(1, 5.0), (2, 10.0), (5, 80.0), (10, 2_560.0), (11, 3_600.0)] {
            assert!(
                (seconds(attempt, 0) - whole / 2.0).abs() < 0.01,
                "{attempt}"
            );
            for random in [1, 77_777, u64::MAX] {
                let wait = seconds(attempt, random);
                assert!((whole / 2.0..whole).contains(&wait), "{attempt}: {wait}");
            }
        }
        assert!(seconds(u32::MAX, u64::MAX) <= 3_600.0);
        assert_ne!(back_off(3, 1), back_off(3, 9_000));
    }

    #[test]
    fn a_link_is_the_address_of_a_page_and_nothing_else() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        for base in ["https://tools.example.com", "https://tools.example.com/"] {
            let message = Message::test("msg_1".to_owned(), now, base);
            assert_eq!(message.link, "https://tools.example.com/notifications");
        }
    }
}
