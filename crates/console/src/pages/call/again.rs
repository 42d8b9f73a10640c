//! A call again with other arguments, as a dry run, beside what was answered then.

use axum::extract::Path;
use axum::response::Response;
use countersign::contract::ReplyEnvelope;
use http::Method;
use serde::Serialize;
use serde_json::{Value, json};

use super::{OpenedNow, page};
use crate::answer::{self, Stop};
use crate::ask::segment;
use crate::form::digits;
use crate::session::{Posted, Visit};
use crate::shown::{self, Difference, Differences};

/// Longest arguments that are edited on the page, in bytes of HTML: the page stays below 100 KB with them.
const EDITED_BYTES_MAX: usize = 16_000;

/// Values with which the form of another try is filled.
#[derive(Debug, Serialize)]
pub(super) struct Draft {
    pub(super) raw: String,
    /// The reason of the opening: the recorded answer is opened again, to compare it.
    pub(super) reason: String,
}

impl Draft {
    /// A call to try again; `None` if its arguments are too long to be edited on the page.
    pub(super) fn new(bound: &Value, reason: &str) -> Option<Self> {
        let raw = digits::pretty(bound);
        (shown::escaped_len(&raw) <= EDITED_BYTES_MAX).then(|| Self {
            raw,
            reason: reason.to_owned(),
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
    /// Reason why the recorded answer is missing; `None` if it was compared.
    pub(super) gone: Option<&'static str>,
    pub(super) differences: Vec<Difference>,
    /// Number of differences that are not listed.
    pub(super) more: usize,
    #[serde(skip)]
    pub(super) more_text: String,
}

/// Makes the dry run by the API, and compares. The tool, the user and the recorded answer are those of the record, which is
/// opened for it; a browser only says what is tried.
pub(crate) async fn again(Path(id): Path<String>, posted: Posted) -> Result<Response, Stop> {
    let visit = &posted.visit;
    let draft = Draft {
        raw: posted.get("raw").to_owned(),
        reason: posted.get("reason").trim().to_owned(),
    };
    let path = format!("/v1/evidence/{}/open", segment(&id));
    let opened: OpenedNow = visit.post(&path, &json!({"reason": draft.reason})).await?;
    let mut page = page(visit, &id, None).await?;
    let reply = dry_run(visit, &page.view.tool, opened.user(), &draft.raw).await?;
    let gone = opened.gone(visit.words);
    let found = match gone {
        None => shown::differences(&opened.answered(), &reply.data),
        Some(_) => Differences::default(),
    };
    let error = reply.error.as_ref();
    page.again = Some(Again {
        code: error.map_or("OK".to_owned(), |error| error.code.to_string()),
        tone: if reply.ok { "ok" } else { "bad" },
        message: error
            .map(|error| error.message.to_string())
            .unwrap_or_default(),
        request_id: reply.request_id.to_string(),
        differences: found.listed,
        more: found.more,
        more_text: visit
            .words
            .more_differences
            .replace("{}", &shown::number(found.more as u64)),
        gone,
        draft,
    });
    answer::page(visit, &page)
}

async fn dry_run(visit: &Visit, tool: &str, user: &str, raw: &str) -> Result<ReplyEnvelope, Stop> {
    let mut body = json!({"arguments": raw, "dry_run": true, "locale": visit.words.tag});
    let may_name = visit.caller.principal.may_act_for_others && !user.is_empty();
    if let (true, Some(members)) = (may_name, body.as_object_mut()) {
        members.insert("user_id".to_owned(), user.into());
    }
    let path = format!("/v1/tools/{}", segment(tool));
    let answered = visit.ask(Method::POST, &path, Some(&body)).await?;
    serde_json::from_slice(&answered.body).map_err(|_| Stop::of(answered.status, &answered.body))
}
