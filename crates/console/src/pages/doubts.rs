//! `/in-doubt`: calls of which nobody knows whether their effect happened, and what an operator found out.

use askama::Template;
use axum::response::Response;
use countersign::archive::{Resolution, Resolved};
use countersign::ledger::{ClaimQuery, ClaimRow, ClaimState};
use http::StatusCode;
use serde::Serialize;
use serde_json::Value;

use crate::answer::{self, Stop, see_other};
use crate::frame::Frame;
use crate::session::{Posted, Visit};
use crate::shown;

/// Maximum number of listed calls.
const LISTED: usize = 100;

#[derive(Template, Serialize)]
#[template(path = "doubts.html")]
struct Page {
    #[serde(skip)]
    frame: Frame,
    calls: Vec<Doubt>,
    settled: bool,
}

#[derive(Serialize)]
struct Doubt {
    user_id: String,
    tool: String,
    key: String,
    attempt: u32,
    request_id: String,
    claimed_at: String,
    #[serde(skip)]
    moment: String,
}

pub(crate) async fn show(visit: Visit) -> Result<Response, Stop> {
    let frame = visit.frame(visit.words.in_doubt_page, "doubts").await;
    if !frame.is_operator {
        return Err(Stop::forbidden(&visit));
    }
    let rows = rows(&visit).await?;
    let doubt = |row: &ClaimRow| Doubt {
        user_id: row.scope.user_id.clone(),
        tool: row.scope.tool.to_string(),
        key: row.scope.key.to_string(),
        attempt: row.attempt,
        request_id: row.request_id.to_string(),
        claimed_at: row.claimed_at.to_string(),
        moment: shown::moment(&row.claimed_at.to_string()),
    };
    let page = Page {
        frame,
        calls: rows.iter().map(doubt).collect(),
        settled: visit.asked("settled").is_some(),
    };
    answer::page(&visit, &page)
}

async fn rows(visit: &Visit) -> Result<Vec<ClaimRow>, Stop> {
    let query = ClaimQuery {
        state: Some(ClaimState::InDoubt),
        user_id: None,
        limit: LISTED,
    };
    let claims = visit.console.gateway.archive().claims(&query).await;
    claims.map_err(|_| Stop::broken())
}

/// Settles a call. The archive asks for the scope and the reason, and keeps a record of both.
pub(crate) async fn settle(posted: Posted) -> Result<Response, Stop> {
    let visit = &posted.visit;
    let w = visit.words;
    let wrong = |message: &str| Stop::new(StatusCode::BAD_REQUEST, "INVALID_ARGUMENT", message);
    if visit.status().await.server.is_none() {
        return Err(Stop::forbidden(visit));
    }
    let rows = rows(visit).await?;
    let is_meant = |row: &&ClaimRow| {
        row.scope.key.to_string() == posted.get("key")
            && row.scope.user_id == posted.get("user")
            && row.scope.tool.as_str() == posted.get("tool")
            && row.attempt.to_string() == posted.get("attempt")
    };
    let row = rows
        .iter()
        .find(is_meant)
        .ok_or_else(|| wrong(w.not_in_doubt))?;
    let resolution = match posted.get("outcome") {
        "happened" => {
            let answer: Result<Value, _> = serde_json::from_str(posted.get("answer"));
            Resolution::Happened(answer.map_err(|_| wrong(w.answer_no_json))?)
        }
        _ => Resolution::DidNotHappen,
    };
    let (by, reason) = (&visit.caller.principal, posted.get("reason"));
    let archive = visit.console.gateway.archive();
    let resolved = archive.resolve_claim(&row.scope, row.attempt, resolution, by, reason);
    match resolved.await {
        Ok(Resolved::Settled(_)) => Ok(see_other("/in-doubt?settled=1")),
        Ok(Resolved::Fenced(_) | Resolved::NotInDoubt(_) | Resolved::NoClaim) => {
            Err(wrong(w.not_in_doubt))
        }
        Err(error) => {
            let mut stop = Stop::new(StatusCode::FORBIDDEN, "FORBIDDEN", &error.to_string());
            stop.hint = Some(w.for_operators_hint.to_owned());
            Err(stop)
        }
    }
}
