//! `/notifications`: the newest notices of what needed a person, and what became of their deliveries.

use askama::Template;
use axum::response::Response;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::answer::{self, Stop};
use crate::frame::Frame;
use crate::session::Visit;
use crate::shown;
use crate::words::Words;

#[derive(Template, Serialize)]
#[template(path = "notifications.html")]
struct Page {
    #[serde(skip)]
    frame: Frame,
    #[serde(flatten)]
    outbox: Outbox,
}

/// The outbox as the API tells it.
#[derive(Deserialize, Serialize)]
struct Outbox {
    targets: Vec<Target>,
    notifications: Vec<Notice>,
}

#[derive(Deserialize, Serialize)]
struct Target {
    name: String,
    kind: String,
    events: Vec<String>,
    /// The events as people read them.
    #[serde(skip)]
    events_text: String,
}

#[derive(Deserialize, Serialize)]
struct Notice {
    id: String,
    kind: String,
    subject: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    gone_at: Option<String>,
    page: String,
    deliveries: Vec<Delivery>,
    #[serde(skip)]
    word: &'static str,
    #[serde(skip)]
    moment: String,
    #[serde(skip)]
    ago: String,
}

#[derive(Deserialize, Serialize)]
struct Delivery {
    target: String,
    state: String,
    attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delivered_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    #[serde(skip)]
    tone: &'static str,
    #[serde(skip)]
    word: &'static str,
    /// Time of the state, or of the next attempt, as people read it.
    #[serde(skip)]
    when: String,
}

pub(crate) async fn show(visit: Visit) -> Result<Response, Stop> {
    let mut outbox: Outbox = visit.get_as_operator("/v1/notifications").await?;
    let now = visit.console.gateway.executor().now();
    let w = visit.words;
    for target in &mut outbox.targets {
        let events = target.events.iter().map(|kind| named(kind, w));
        target.events_text = events.collect::<Vec<_>>().join(w.comma);
    }
    for notice in &mut outbox.notifications {
        notice.word = named(&notice.kind, w);
        notice.moment = shown::moment(&notice.at);
        notice.ago = shown::distance(&notice.at, now, w);
        for delivery in &mut notice.deliveries {
            let (tone, word, at) = match delivery.state.as_str() {
                "delivered" => ("ok", w.delivery_delivered, &delivery.delivered_at),
                "failed" => ("bad", w.delivery_failed, &delivery.failed_at),
                _ => ("warn", w.delivery_waiting, &delivery.next_at),
            };
            let is_due = |at: &str| at.parse::<Timestamp>().is_ok_and(|at| at <= now);
            delivery.when = match at.as_deref() {
                // An attempt whose time has come is made as soon as the receiver's turn is.
                Some(at) if word == w.delivery_waiting && is_due(at) => w.due_now.to_owned(),
                Some(at) => shown::distance(at, now, w),
                None => String::new(),
            };
            (delivery.tone, delivery.word) = (tone, word);
        }
    }
    let page = Page {
        frame: visit.frame(w.notifications, "notifications").await,
        outbox,
    };
    answer::page(&visit, &page)
}

fn named(kind: &str, w: &'static Words) -> &'static str {
    match kind {
        "question" => w.notice_question,
        "call_in_doubt" => w.notice_call_in_doubt,
        "verification_failed" => w.notice_verification_failed,
        "definitions_changed" => w.notice_definitions_changed,
        "budget_used_up" => w.notice_budget_used_up,
        _ => w.notifications,
    }
}
