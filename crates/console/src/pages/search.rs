//! `/search`: one box for whatever people have in hand: a request, a record, an approval, an order, a user, a tool, a leaf, an idempotency
//! key.

use askama::Template;
use axum::response::Response;
use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::answer::{self, Stop, see_other};
use crate::ask::segment;
use crate::frame::Frame;
use crate::session::Visit;

#[derive(Template, Serialize)]
#[template(path = "search.html")]
struct Page {
    #[serde(skip)]
    frame: Frame,
    asked: String,
    /// Address of the page of what was meant.
    found: Option<String>,
}

/// Leads to the page of what was meant; the JSON twin says where it is.
pub(crate) async fn find(visit: Visit) -> Result<Response, Stop> {
    let asked = visit.asked("q").unwrap_or_default().trim().to_owned();
    let found = found(&visit, &asked).await;
    if let Some(found) = &found
        && !visit.wants_json
    {
        return Ok(see_other(found));
    }
    let frame = visit.frame(visit.words.search, "").await;
    let page = Page {
        frame,
        asked,
        found,
    };
    answer::page(&visit, &page)
}

/// The page of what was meant.
async fn found(visit: &Visit, asked: &str) -> Option<String> {
    if asked.is_empty() {
        return None;
    }
    let name = segment(asked);
    let is_there = async |path: String| {
        let answered = visit.ask(Method::GET, &path, None).await.ok()?;
        answered.status.is_success().then_some(answered)
    };
    if is_there(format!("/v1/tools/{name}")).await.is_some() {
        return Some(format!("/tools/{name}"));
    }
    if asked.starts_with("ap_") && is_there(format!("/v1/approvals/{name}")).await.is_some() {
        return Some(format!("/approvals/{name}"));
    }
    if is_there(format!("/v1/calls/{name}")).await.is_some() {
        return Some(format!("/calls/{name}"));
    }
    // An order, a record, or the hash of a leaf.
    if let Some(record) = is_there(format!("/v1/evidence/{name}")).await {
        let record: Value = record.read().ok()?;
        let id = record.pointer("/record/id").and_then(Value::as_str)?;
        // What a call has made is looked for by people who ask what happened, not how.
        let is_record = asked == id || asked.starts_with("sha256:");
        let page = if is_record { "calls" } else { "cases" };
        let name = if is_record { segment(id) } else { name };
        return Some(format!("/{page}/{name}"));
    }
    if is_there(format!("/v1/sessions/{name}?limit=1"))
        .await
        .is_some()
    {
        return Some(format!("/sessions/{name}"));
    }
    if let Some(call) = of_key(visit, asked).await {
        return Some(call);
    }
    let of_user = visit.calls(&[("user", asked)], 1).await.ok()?;
    (!of_user.calls.is_empty()).then(|| format!("/calls?user={name}"))
}

/// The call that took an idempotency key: `KEY`, or `USER KEY` where another user's is meant or there are too many users to look through.
async fn of_key(visit: &Visit, asked: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Taken {
        calls: Vec<Call>,
    }
    #[derive(Deserialize)]
    struct Call {
        evidence: String,
    }
    let named = asked.split_once(char::is_whitespace);
    let named = named.map(|(user, key)| {
        let (key, user) = (segment(key.trim_start()), segment(user));
        format!("/v1/calls?key={key}&user={user}")
    });
    let whole = format!("/v1/calls?key={}", segment(asked));
    for path in named.into_iter().chain([whole]) {
        let taken: Option<Taken> = visit.get(&path).await.ok();
        if let Some(call) = taken.and_then(|taken| taken.calls.into_iter().next()) {
            return Some(format!("/calls/{}", segment(&call.evidence)));
        }
    }
    None
}
