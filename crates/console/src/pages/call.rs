//! `/calls/{id}`: one call. The answer in one sentence first, then the order in which a call lives.

use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use countersign::contract::EvidenceRecord;
use countersign::replay::DIFFERENCES_MAX;
use http::header::CONTENT_DISPOSITION;
use http::{HeaderValue, Method};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{keep, named};
use crate::answer::{self, Stop};
use crate::ask::segment;
use crate::frame::Frame;
use crate::session::{Posted, Visit};
use crate::shown::{self, Decision, Difference};

mod again;
mod opened;
mod view;

use again::Again;
pub(crate) use again::again;
pub(crate) use opened::OpenedNow;
use opened::{Opened, opened};
pub(crate) use view::kind_of;
use view::{Step, View, step, view, weight};

/// A record as the API shows it.
#[derive(Debug, Deserialize, Serialize)]
struct ShownRecord {
    record: EvidenceRecord,
    index: Option<u64>,
    has_payload: bool,
    proof: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decision: Option<Decision>,
}

#[derive(Debug, Deserialize)]
struct Records {
    records: Vec<ShownRecord>,
}

#[derive(Template, Serialize)]
#[template(path = "call.html")]
struct Page {
    #[serde(skip)]
    frame: Frame,
    /// All that is recorded of the call, newest first.
    records: Vec<ShownRecord>,
    #[serde(skip)]
    name: String,
    /// True if the record is about a user.
    #[serde(skip)]
    has_user: bool,
    /// True if a hold covers the record.
    is_held: bool,
    /// Address of the session that the call is part of, where it is known.
    session: Option<String>,
    #[serde(skip)]
    view: View,
    #[serde(skip)]
    history: Vec<Step>,
    repeats: Repeats,
    opened: Option<Opened>,
    checked: Option<Checked>,
    again: Option<Again>,
}

/// Later calls with the same key, which were answered with the answer of this one, as the API tells them.
#[derive(Default, Deserialize, Serialize)]
struct Repeats {
    repeats: Vec<Repeat>,
    is_cut: bool,
}

#[derive(Deserialize, Serialize)]
struct Repeat {
    evidence: String,
    at: String,
    dry_run: bool,
}

impl Repeat {
    fn moment(&self) -> String {
        shown::moment(&self.at)
    }
}

/// Result of a check of the evidence.
#[derive(Serialize)]
struct Checked {
    mode: String,
    result: String,
    differences: Vec<Difference>,
    #[serde(skip)]
    sentence: &'static str,
    #[serde(skip)]
    is_good: bool,
}

impl Checked {
    /// True if the API lists no more differences than these.
    fn is_cut(&self) -> bool {
        self.differences.len() >= DIFFERENCES_MAX
    }
}

pub(crate) async fn show(visit: Visit, Path(id): Path<String>) -> Result<Response, Stop> {
    let page = page(&visit, named(&id), None).await?;
    answer::page(&visit, &page)
}

/// Opens what is sealed. The API writes down who opens it and why before it shows anything.
pub(crate) async fn open(Path(id): Path<String>, posted: Posted) -> Result<Response, Stop> {
    let visit = &posted.visit;
    let path = format!("/v1/evidence/{}/open", segment(&id));
    let reason = posted.get("reason").trim();
    let shown: OpenedNow = visit.post(&path, &json!({"reason": reason})).await?;
    let mut page = page(visit, &id, None).await?;
    let entry = visit
        .console
        .gateway
        .executor()
        .catalog()
        .get(&page.view.tool);
    let read_again = |raw: &str| {
        let bound = entry.map(|entry| entry.binder().bind(raw));
        bound.map(|bound| bound.repairs).unwrap_or_default()
    };
    let mut opened = opened(shown, reason, read_again, visit.words);
    opened.offer_again(&page.view.tool);
    page.opened = Some(opened);
    // The page shows as much as people read; this is the whole.
    if posted.get("as") == "json" {
        return answer::json(&page);
    }
    answer::page(visit, &page)
}

/// Verifies a record, or computes it again and compares.
pub(crate) async fn check(Path(id): Path<String>, posted: Posted) -> Result<Response, Stop> {
    let visit = &posted.visit;
    let path = format!("/v1/evidence/{}/replay", segment(&id));
    let mode = match posted.get("mode") {
        "recompute" => "recompute",
        "in_force" => "in_force",
        _ => "verify",
    };
    let outcome: Outcome = visit.post(&path, &json!({"mode": mode})).await?;
    let w = visit.words;
    let (sentence, is_good) = match outcome.result.as_str() {
        "intact" => (w.check_intact, true),
        "broken" => (w.check_broken, false),
        "identical" => (w.check_same, true),
        "drift" | "other_code" => (w.check_differs, false),
        _ => (w.check_not_computed, true),
    };
    let checked = Checked {
        mode: mode.to_owned(),
        result: outcome.result,
        differences: outcome
            .differences
            .into_iter()
            .map(Compared::told)
            .collect(),
        sentence,
        is_good,
    };
    let page = page(visit, &id, Some(checked)).await?;
    answer::page(visit, &page)
}

/// The record with its proofs, as a file for a reader who has nothing else.
pub(crate) async fn bundle(visit: Visit, Path(id): Path<String>) -> Result<Response, Stop> {
    let path = format!("/v1/evidence/{}/bundle", segment(&id));
    let answered = visit.ask(Method::GET, &path, None).await?;
    if !answered.status.is_success() {
        return Err(Stop::of(answered.status, &answered.body));
    }
    let mut response = answer::typed(answered.body, "application/json");
    let kept = HeaderValue::from_static("attachment; filename=\"evidence-bundle.json\"");
    response.headers_mut().insert(CONTENT_DISPOSITION, kept);
    Ok(response)
}

#[derive(Deserialize)]
struct Outcome {
    result: String,
    #[serde(default)]
    differences: Vec<Compared>,
}

/// A difference as the API tells it.
#[derive(Deserialize)]
struct Compared {
    path: String,
    recorded: Option<Value>,
    computed: Option<Value>,
}

impl Compared {
    fn told(self) -> Difference {
        let text = |value: Option<Value>| value.as_ref().map(ToString::to_string);
        Difference {
            path: self.path,
            before: text(self.recorded).unwrap_or_default(),
            after: text(self.computed).unwrap_or_default(),
        }
    }
}

async fn page(visit: &Visit, name: &str, checked: Option<Checked>) -> Result<Page, Stop> {
    let records = if name.starts_with("ev_") {
        let path = format!("/v1/evidence/{}", segment(name));
        vec![visit.get::<ShownRecord>(&path).await?]
    } else {
        let path = format!("/v1/calls/{}", segment(name));
        visit.get::<Records>(&path).await?.records
    };
    let w = visit.words;
    let wanted = visit.asked("record");
    let chosen = records
        .iter()
        .find(|shown| Some(shown.record.id.as_str()) == wanted);
    // A repeat is the newest record; what it repeats says more.
    let told_most = || records.iter().max_by_key(|shown| weight(&shown.record));
    let chosen = chosen
        .or_else(told_most)
        .ok_or_else(|| Stop::not_found(visit))?;
    let session = session(visit, chosen.record.id.as_str()).await;
    let repeats = match &chosen.record.idempotency {
        Some(_) => repeats(visit, chosen.record.id.as_str()).await,
        None => Repeats::default(),
    };
    let view = view(chosen, w);
    let history = records
        .iter()
        .rev()
        .map(|shown| step(&shown.record, w))
        .collect();
    let title = if view.tool.is_empty() {
        name
    } else {
        &view.tool
    };
    let has_user = chosen.record.subject.is_some();
    let is_held = has_user && keep::held(visit, None, &[view.id.as_str()]).await;
    Ok(Page {
        frame: visit.frame(title, "calls").await,
        name: name.to_owned(),
        has_user,
        is_held,
        session,
        history,
        repeats,
        view,
        records,
        opened: None,
        checked,
        again: None,
    })
}

/// The repeats of a call; without them the page is still shown.
async fn repeats(visit: &Visit, evidence: &str) -> Repeats {
    let path = format!("/v1/evidence/{}/repeats", segment(evidence));
    visit.get(&path).await.unwrap_or_default()
}

/// The session of a call.
async fn session(visit: &Visit, evidence: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Strand {
        session: String,
    }
    let path = format!("/v1/sessions/{}?limit=1", segment(evidence));
    let found = visit.get::<Strand>(&path).await.ok()?;
    Some(format!("/sessions/{}", segment(&found.session)))
}
