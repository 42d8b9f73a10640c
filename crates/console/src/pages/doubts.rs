//! `/in-doubt`: calls in doubt: their effect may or may not have happened, and what an operator found out.

use askama::Template;
use axum::response::Response;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

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

/// A call in doubt as the API lists it.
#[derive(Deserialize, Serialize)]
struct Doubt {
    user_id: String,
    tool: String,
    key: String,
    attempt: u32,
    request_id: String,
    claimed_at: String,
    #[serde(default, skip_serializing)]
    moment: String,
}

#[derive(Deserialize)]
struct Listed {
    claims: Vec<Doubt>,
}

pub(crate) async fn show(visit: Visit) -> Result<Response, Stop> {
    let path = format!("/v1/claims?state=in_doubt&limit={LISTED}");
    let mut listed: Listed = visit.get_as_operator(&path).await?;
    for doubt in &mut listed.claims {
        doubt.moment = shown::moment(&doubt.claimed_at);
    }
    let page = Page {
        frame: visit.frame(visit.words.in_doubt_page, "doubts").await,
        calls: listed.claims,
        settled: visit.asked("settled").is_some(),
    };
    answer::page(&visit, &page)
}

/// Settles a call by the API, which asks for the scope and the reason, and keeps a record of both.
pub(crate) async fn settle(posted: Posted) -> Result<Response, Stop> {
    let visit = &posted.visit;
    let wrong = |message: &str| Stop::new(StatusCode::BAD_REQUEST, "INVALID_ARGUMENT", message);
    let attempt: Result<u32, _> = posted.get("attempt").parse();
    let mut body = json!({
        "user_id": posted.get("user"),
        "tool": posted.get("tool"),
        "key": posted.get("key"),
        "attempt": attempt.map_err(|_| wrong(visit.words.not_in_doubt))?,
        "outcome": "did_not_happen",
        "reason": posted.get("reason"),
    });
    if posted.get("outcome") == "happened"
        && let Some(members) = body.as_object_mut()
    {
        let given: Result<Value, _> = serde_json::from_str(posted.get("answer"));
        let given = given.map_err(|_| wrong(visit.words.answer_no_json))?;
        members.insert("outcome".to_owned(), "happened".into());
        members.insert("answer".to_owned(), given);
    }
    let settled: Value = visit.post("/v1/claims/settle", &body).await?;
    if visit.wants_json {
        return answer::json(&settled);
    }
    Ok(see_other("/in-doubt?settled=1"))
}
