//! `/grants`: what users let their agents do without being asked each time, with a form to give more and a way to take it
//! back.

use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use countersign::contract::{Grant, GrantState, ToolName};
use countersign_gateway::caller::Proof;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::call::kind_of;
use crate::answer::{self, Stop, see_other};
use crate::ask::{segment, with_query};
use crate::frame::Frame;
use crate::session::{Posted, Visit};
use crate::shown;

/// Maximum number of grants on a page.
const LISTED: usize = 100;

#[derive(Deserialize)]
struct Listed {
    grants: Vec<Grant>,
    #[serde(default)]
    next_cursor: Option<String>,
}

#[derive(Template, Serialize)]
#[template(path = "grants.html")]
struct Page {
    #[serde(skip)]
    frame: Frame,
    grants: Vec<Grant>,
    #[serde(skip)]
    rows: Vec<Row>,
    state: &'static str,
    #[serde(skip)]
    states: Vec<(&'static str, &'static str)>,
    /// True if the signed-in caller may give and take authority; an unproved caller may not.
    #[serde(skip)]
    may_grant: bool,
    /// True if this is the page with the newest.
    #[serde(skip)]
    is_first: bool,
    /// Address of the page with older ones.
    #[serde(skip)]
    next: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A grant of the list.
struct Row {
    id: String,
    to: String,
    kind: &'static str,
    user: String,
    tools: String,
    when: String,
    calls: String,
    amount: String,
    until: String,
    parent: String,
    evidence: String,
    state: &'static str,
    tone: &'static str,
    is_active: bool,
}

pub(crate) async fn list(visit: Visit) -> Result<Response, Stop> {
    let state = visit.asked("state").and_then(GrantState::from_name);
    let state = state.unwrap_or(GrantState::Active);
    let cursor = visit.asked("cursor");
    let limit = LISTED.to_string();
    let options = [
        ("state", state.as_str()),
        ("limit", &limit),
        ("cursor", cursor.unwrap_or_default()),
    ];
    let listed: Listed = visit.get(&with_query("/v1/grants", options)).await?;
    let next = listed.next_cursor.as_deref().map(|cursor| {
        let options = [("state", state.as_str()), ("cursor", cursor)];
        with_query("/grants", options)
    });
    let name = |state: GrantState| (state.as_str(), state_name(state, &visit));
    let page = Page {
        frame: visit.frame(visit.words.grants, "grants").await,
        rows: listed.grants.iter().map(|one| row(&visit, one)).collect(),
        grants: listed.grants,
        state: state.as_str(),
        states: GrantState::ALL.map(name).to_vec(),
        may_grant: visit.caller.proof != Proof::Loopback,
        is_first: cursor.is_none(),
        next,
        next_cursor: listed.next_cursor,
    };
    answer::page(&visit, &page)
}

fn row(visit: &Visit, grant: &Grant) -> Row {
    let now = visit.console.gateway.executor().now();
    let tools: Vec<&str> = grant.tools.iter().map(ToolName::as_str).collect();
    let used = grant.used.calls;
    let most = grant.calls.map(|most| format!("{used} / {most}"));
    let amount = grant.amount.as_ref().map(|amount| {
        let today = grant.used.today.as_deref().unwrap_or("0");
        format!("{today} / {} {}", amount.limit, amount.currency)
    });
    Row {
        id: grant.id.clone(),
        to: grant.to.id.clone(),
        kind: kind_of(grant.to.kind, visit.words),
        user: grant.user_id.clone(),
        tools: tools.join(", "),
        when: grant.when.clone().unwrap_or_default(),
        calls: most.unwrap_or_else(|| used.to_string()),
        amount: amount.unwrap_or_default(),
        until: shown::distance(&grant.until, now, visit.words),
        parent: grant.parent.clone().unwrap_or_default(),
        evidence: grant.evidence.to_string(),
        state: state_name(grant.state, visit),
        tone: match grant.state {
            GrantState::Active => "ok",
            GrantState::UsedUp => "warn",
            GrantState::Ended => "",
            GrantState::Revoked => "bad",
        },
        is_active: grant.state == GrantState::Active,
    }
}

fn state_name(state: GrantState, visit: &Visit) -> &'static str {
    let w = visit.words;
    match state {
        GrantState::Active => w.grant_active,
        GrantState::UsedUp => w.grant_used_up,
        GrantState::Ended => w.grant_ended,
        GrantState::Revoked => w.grant_revoked,
    }
}

/// Makes a grant: by the API, which knows who may.
pub(crate) async fn make(posted: Posted) -> Result<Response, Stop> {
    let visit = &posted.visit;
    let grant: Grant = visit.post("/v1/grants", &filled_in(&posted)).await?;
    if visit.wants_json {
        return answer::json(&grant);
    }
    Ok(see_other("/grants"))
}

/// The grant as it was filled in; what was left empty is left out.
fn filled_in(posted: &Posted) -> Value {
    let text = |name: &str| posted.get(name).trim();
    let tools = text("tools").split([',', ' ', '\n', '\r']);
    let tools: Vec<&str> = tools.filter(|tool| !tool.is_empty()).collect();
    let kind = match text("kind") {
        "system" => "system",
        _ => "agent",
    };
    let until = text("until");
    // A day is meant whole.
    let until = if until.len() == "2027-01-31".len() {
        format!("{until}T23:59:59Z")
    } else {
        until.to_owned()
    };
    let mut body = Map::from_iter([
        ("to".to_owned(), json!({"type": kind, "id": text("to")})),
        ("tools".to_owned(), json!(tools)),
        ("until".to_owned(), json!(until)),
    ]);
    for name in ["user_id", "when", "parent"] {
        if !text(name).is_empty() {
            body.insert(name.to_owned(), text(name).into());
        }
    }
    if !text("calls").is_empty() {
        let calls = text("calls").parse::<u32>();
        let calls = calls.map_or_else(|_| Value::from(text("calls")), Value::from);
        body.insert("calls".to_owned(), calls);
    }
    if !text("limit").is_empty() {
        let mut amount = Map::from_iter([
            ("limit".to_owned(), json!(text("limit"))),
            ("currency".to_owned(), json!(text("currency"))),
        ]);
        for name in ["at", "currency_at", "unit"] {
            if !text(name).is_empty() {
                amount.insert(name.to_owned(), text(name).into());
            }
        }
        body.insert("amount".to_owned(), Value::Object(amount));
    }
    Value::Object(body)
}

/// Revokes a grant: by the API, which knows who may.
pub(crate) async fn revoke(Path(id): Path<String>, posted: Posted) -> Result<Response, Stop> {
    let visit = &posted.visit;
    let reason = posted.get("reason").trim();
    let path = format!("/v1/grants/{}/revoke", segment(&id));
    let grant: Grant = visit.post(&path, &json!({"reason": reason})).await?;
    if visit.wants_json {
        return answer::json(&grant);
    }
    Ok(see_other("/grants"))
}
