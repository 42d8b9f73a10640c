//! `/holds` and `/erasures`: forms of other pages lead here. A hold is placed at once; an erasure is asked for twice, and the second
//! question names what goes and what stays.

use askama::Template;
use axum::response::Response;
use countersign_gateway::http::cases::ShownCase;
use http::{Method, StatusCode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::answer::{self, Stop};
use crate::ask::segment;
use crate::frame::Frame;
use crate::session::{Posted, Visit};

/// Result of an act.
#[derive(Template, Serialize)]
#[template(path = "kept.html")]
struct Kept {
    #[serde(skip)]
    frame: Frame,
    #[serde(skip)]
    title: String,
    sentence: String,
    /// The records of the act.
    evidence: Vec<String>,
    /// Page that the reader came from.
    #[serde(skip)]
    back: String,
}

/// The second question before an erasure.
#[derive(Template, Serialize)]
#[template(path = "erase.html")]
struct Sure {
    #[serde(skip)]
    frame: Frame,
    user: String,
    #[serde(skip)]
    reason: String,
    #[serde(skip)]
    back: String,
    /// True if another text than the user's id was entered.
    is_wrong: bool,
    /// Held things, for which the erasure would fail, and the pages that release them.
    held: Vec<(String, String)>,
}

#[derive(Deserialize)]
struct Done {
    records: Vec<String>,
    evidence: Vec<String>,
}

#[derive(Deserialize)]
struct Erased {
    evidence: String,
    payloads: u64,
    documents: u64,
    claims: u64,
    api_keys: u64,
}

/// The form's target: a user, or the name of an order, a call or a record.
enum Target<'a> {
    User(&'a str),
    Named(&'a str),
}

impl<'a> Target<'a> {
    fn of(posted: &'a Posted) -> Self {
        match posted.get("user").trim() {
            "" => Self::Named(posted.get("name")),
            user => Self::User(user),
        }
    }

    fn body(&self, reason: &str) -> Value {
        match self {
            Self::User(user) => json!({"user_id": user, "reason": reason}),
            Self::Named(name) => json!({"name": name, "reason": reason}),
        }
    }

    fn text(&self) -> &'a str {
        match self {
            Self::User(text) | Self::Named(text) => text,
        }
    }

    /// The page that has the form.
    fn page(&self) -> String {
        match self {
            Self::User(user) => format!("/calls?user={}", segment(user)),
            Self::Named(name) if name.starts_with("ev_") => format!("/calls/{}", segment(name)),
            Self::Named(name) => format!("/cases/{}", segment(name)),
        }
    }
}

/// A hold, as the list has it.
#[derive(Deserialize)]
struct Hold {
    order: Option<String>,
    record: Option<String>,
}

/// The holds of one user, or of all users; none if the reader may not know.
async fn holds(visit: &Visit, user: Option<&str>) -> Vec<Hold> {
    #[derive(Deserialize)]
    struct Listed {
        holds: Vec<Hold>,
    }
    let path = match user {
        Some(user) => format!("/v1/holds?user={}", segment(user)),
        None => "/v1/holds".to_owned(),
    };
    let listed = visit.get::<Listed>(&path).await;
    listed.map_or_else(|_| Vec::new(), |listed| listed.holds)
}

/// True if a hold covers one of these records, or everything of the user if that is known; false if the reader may not know.
pub(super) async fn held(visit: &Visit, user: Option<&str>, records: &[&str]) -> bool {
    let is_it = |hold: &Hold| match &hold.record {
        Some(record) => records.contains(&record.as_str()),
        None => user.is_some(),
    };
    holds(visit, user).await.iter().any(is_it)
}

/// The held things of a user, each with the page that releases it. The records of one order are one thing.
async fn releases(visit: &Visit, user: &str) -> Vec<(String, String)> {
    let held = holds(visit, Some(user)).await.into_iter();
    let mut held: Vec<_> = held
        .map(|hold| match (&hold.order, &hold.record) {
            (Some(named), _) | (None, Some(named)) => (named.clone(), Target::Named(named).page()),
            (None, None) => (user.to_owned(), Target::User(user).page()),
        })
        .collect();
    held.sort();
    held.dedup();
    held.truncate(HELD_SHOWN);
    held
}

/// Maximum number of held things that the question before an erasure names.
const HELD_SHOWN: usize = 10;

/// Places a hold, or releases one.
pub(crate) async fn hold(posted: Posted) -> Result<Response, Stop> {
    let (visit, target) = (&posted.visit, Target::of(&posted));
    let w = visit.words;
    let (path, title, sentence) = match posted.get("do") {
        "release" => ("/v1/holds/release", w.released, w.released_note),
        _ => ("/v1/holds", w.held, w.held_note),
    };
    let body = target.body(posted.get("reason").trim());
    let done: Done = done(visit, path, &body).await?;
    let count = done.records.len();
    let what = match count {
        0 => w.all_of_user.replace("{}", target.text()),
        _ => w
            .records_of
            .replace("{count}", &count.to_string())
            .replace("{}", target.text()),
    };
    let page = Kept {
        frame: visit.frame(title, "evidence").await,
        title: title.to_owned(),
        sentence: format!("{what} {sentence}"),
        evidence: done.evidence,
        back: target.page(),
    };
    answer::page(visit, &page)
}

/// Asks once more, and erases the user if the answer is their id.
pub(crate) async fn erase(posted: Posted) -> Result<Response, Stop> {
    let (visit, target) = (&posted.visit, Target::of(&posted));
    let w = visit.words;
    let reason = posted.get("reason").trim();
    let user = match target {
        Target::User(user) => user.to_owned(),
        Target::Named(name) => {
            let case: ShownCase = visit.get(&format!("/v1/cases/{}", segment(name))).await?;
            case.user_id
        }
    };
    if user.is_empty() {
        return Err(Stop::new(
            StatusCode::NOT_FOUND,
            "NOT_FOUND",
            w.no_user_left,
        ));
    }
    if reason.is_empty() {
        return Err(Stop::new(
            StatusCode::BAD_REQUEST,
            "INVALID_ARGUMENT",
            w.no_reason,
        ));
    }
    let sure = posted.get("sure").trim();
    if sure != user {
        let page = Sure {
            frame: visit.frame(w.erase_title, "evidence").await,
            is_wrong: !sure.is_empty(),
            reason: reason.to_owned(),
            back: target.page(),
            held: releases(visit, &user).await,
            user,
        };
        return answer::page(visit, &page);
    }
    let body = json!({"user_id": user, "reason": reason});
    let erased: Erased = done(visit, "/v1/erasures", &body).await?;
    let sentence = w
        .erased_counts
        .replace("{payloads}", &erased.payloads.to_string())
        .replace("{documents}", &erased.documents.to_string())
        .replace("{claims}", &erased.claims.to_string())
        .replace("{api_keys}", &erased.api_keys.to_string());
    let page = Kept {
        frame: visit.frame(w.erased_title, "evidence").await,
        title: w.erased_title.to_owned(),
        sentence,
        evidence: vec![erased.evidence],
        back: "/calls".to_owned(),
    };
    answer::page(visit, &page)
}

async fn done<T: DeserializeOwned>(visit: &Visit, path: &str, body: &Value) -> Result<T, Stop> {
    visit.ask(Method::POST, path, Some(body)).await?.read()
}
