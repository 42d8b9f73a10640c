//! A call again with other arguments, as a dry run, beside what was answered then.

use axum::extract::Path;
use axum::response::Response;
use countersign::contract::ReplyEnvelope;
use http::Method;
use serde::Serialize;
use serde_json::{Value, json};

use super::page;
use crate::answer::{self, Stop};
use crate::ask::segment;
use crate::session::{Posted, Visit};
use crate::shown::{self, Difference};

/// Longest recorded answer that a dry run is compared with, in bytes.
const COMPARED_BYTES_MAX: usize = 64 * 1024;

/// What the form of another try begins with.
#[derive(Serialize)]
pub(super) struct Draft {
    pub(super) tool: String,
    pub(super) user: String,
    pub(super) raw: String,
    /// The answer that was recorded, as JSON text.
    pub(super) recorded: String,
}

impl Draft {
    /// A call to try again; `None` if its answer is too long to be compared.
    pub(super) fn new(tool: &str, user: &str, bound: &Value, recorded: &Value) -> Option<Self> {
        let recorded = recorded.to_string();
        let fits = !tool.is_empty() && recorded.len() <= COMPARED_BYTES_MAX;
        fits.then(|| Self {
            tool: tool.to_owned(),
            user: user.to_owned(),
            raw: serde_json::to_string_pretty(bound).unwrap_or_default(),
            recorded,
        })
    }
}

/// A dry run beside the recorded answer.
#[derive(Serialize)]
pub(super) struct Again {
    pub(super) draft: Draft,
    pub(super) code: String,
    #[serde(skip)]
    pub(super) tone: &'static str,
    pub(super) message: String,
    pub(super) request_id: String,
    pub(super) differences: Vec<Difference>,
}

/// Makes the dry run by the API, and compares.
pub(crate) async fn again(Path(id): Path<String>, posted: Posted) -> Result<Response, Stop> {
    let visit = &posted.visit;
    let draft = Draft {
        tool: posted.get("tool").to_owned(),
        user: posted.get("user").to_owned(),
        raw: posted.get("raw").to_owned(),
        recorded: posted.get("recorded").to_owned(),
    };
    let reply = dry_run(visit, &draft).await?;
    let recorded = serde_json::from_str(&draft.recorded).unwrap_or_default();
    let error = reply.error.as_ref();
    let again = Again {
        code: error.map_or("OK".to_owned(), |error| error.code.to_string()),
        tone: if reply.ok { "ok" } else { "bad" },
        message: error
            .map(|error| error.message.to_string())
            .unwrap_or_default(),
        request_id: reply.request_id.to_string(),
        differences: shown::differences(&recorded, &reply.data),
        draft,
    };
    let mut page = page(visit, &id, None, None).await?;
    page.again = Some(again);
    answer::page(visit, &page)
}

async fn dry_run(visit: &Visit, draft: &Draft) -> Result<ReplyEnvelope, Stop> {
    let mut body = json!({"arguments": draft.raw, "dry_run": true, "locale": visit.words.tag});
    let may_name = visit.caller.principal.may_act_for_others && !draft.user.is_empty();
    if let (true, Some(members)) = (may_name, body.as_object_mut()) {
        members.insert("user_id".to_owned(), draft.user.as_str().into());
    }
    let path = format!("/v1/tools/{}", segment(&draft.tool));
    let answered = visit.ask(Method::POST, &path, Some(&body)).await?;
    serde_json::from_slice(&answered.body).map_err(|_| Stop::of(answered.status, &answered.body))
}
