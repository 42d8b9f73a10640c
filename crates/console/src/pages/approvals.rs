//! `/approvals`: what waits for a person, and their answers.
//!
//! The digest of what is shown goes back with the answer, so an answer counts for exactly what was read.

use std::collections::BTreeMap;

use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use countersign::archive::SCOPE_OPEN;
use countersign::contract::tool::Narrower;
use countersign::contract::{Approval, ApprovalState};
use countersign_gateway::caller::Proof;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::call::{OpenedNow, kind_of};
use super::{docs, named};
use crate::answer::{self, Stop, see_other};
use crate::ask::{plain_segment, segment, with_query};
use crate::frame::Frame;
use crate::session::{Posted, Visit};
use crate::shown::{self, Line};
use crate::words::Words;

mod together;

pub(crate) use together::answer_all;

/// Maximum number of approvals on a page.
const LISTED: usize = 100;

#[derive(Deserialize)]
struct Listed {
    approvals: Vec<Approval>,
    #[serde(default)]
    next_cursor: Option<String>,
}

#[derive(Template, Serialize)]
#[template(path = "approvals.html")]
struct List {
    #[serde(skip)]
    frame: Frame,
    approvals: Vec<Approval>,
    #[serde(skip)]
    rows: Vec<Row>,
    state: &'static str,
    filters: Filters,
    /// States with their names and addresses.
    #[serde(skip)]
    states: Vec<(&'static str, &'static str, String)>,
    /// Address of the rows alone.
    #[serde(skip)]
    rows_at: String,
    /// Address of the newest.
    #[serde(skip)]
    newest: String,
    /// Questions of one shape that can be answered together.
    #[serde(skip)]
    groups: Vec<Group>,
    /// True if this is the page with the newest.
    #[serde(skip)]
    is_first: bool,
    /// Address of the page with older ones.
    #[serde(skip)]
    next: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// Filters of the list, as in the address; empty where it is not narrowed.
#[derive(Default, Serialize)]
struct Filters {
    tool: String,
    agent: String,
    user: String,
}

impl Filters {
    fn of(visit: &Visit) -> Self {
        Self::read(|name| visit.asked(name).unwrap_or_default())
    }

    fn read<'v>(value: impl Fn(&str) -> &'v str) -> Self {
        Self {
            tool: value("tool").trim().to_owned(),
            agent: value("agent").trim().to_owned(),
            user: value("user").trim().to_owned(),
        }
    }

    fn is_empty(&self) -> bool {
        self.tool.is_empty() && self.agent.is_empty() && self.user.is_empty()
    }

    /// The address of a page with these filters and more options.
    fn address(&self, path: &str, more: &[(&str, &str)]) -> String {
        let own = [
            ("tool", &*self.tool),
            ("agent", &self.agent),
            ("user", &self.user),
        ];
        with_query(path, own.into_iter().chain(more.iter().copied()))
    }

    /// The same for the API.
    fn asked(&self, more: &[(&str, &str)]) -> String {
        let own = [
            ("tool", &*self.tool),
            ("actor", &self.agent),
            ("user", &self.user),
        ];
        with_query("/v1/approvals", own.into_iter().chain(more.iter().copied()))
    }
}

#[derive(Template)]
#[template(path = "approvals_rows.html")]
struct Rows<'p> {
    w: &'static Words,
    rows: &'p [Row],
}

/// Questions of one shape: the same tool, asked by the same actor, with the same parameters.
struct Group {
    shape: String,
    tool: String,
    actor: String,
    count: usize,
    /// Query that leads back to this page of the list.
    at: String,
}

/// A question of the list.
struct Row {
    id: String,
    title: String,
    tool: String,
    actor: String,
    actor_kind: &'static str,
    user: String,
    amount: String,
    asked: String,
    expires: String,
    state: &'static str,
    tone: &'static str,
    four_eyes: bool,
    is_pending: bool,
    /// Address of its page, with the filters of the list.
    page: String,
    /// Approver who gave the first of two approvals.
    first_by: String,
}

pub(crate) async fn list(visit: Visit) -> Result<Response, Stop> {
    let state = visit.asked("state").and_then(ApprovalState::from_name);
    let state = state.unwrap_or(ApprovalState::Pending);
    if let Some(shape) = visit.asked("shape") {
        return together::show(&visit, shape).await;
    }
    let filters = Filters::of(&visit);
    let cursor = visit.asked("cursor").unwrap_or_default();
    let limit = LISTED.to_string();
    let options = [
        ("state", state.as_str()),
        ("limit", &limit),
        ("cursor", cursor),
    ];
    let listed: Listed = visit.get(&filters.asked(&options)).await?;
    let rows: Vec<Row> = listed
        .approvals
        .iter()
        .map(|one| row(&visit, one, &filters))
        .collect();
    if visit.asked("part") == Some("rows") {
        let w = visit.words;
        return answer::html(&Rows { w, rows: &rows });
    }
    let from = match cursor {
        "" => String::new(),
        cursor => format!("&cursor={}", segment(cursor)),
    };
    let groups = together::groups(&visit, &listed.approvals, &from);
    let at = |state: ApprovalState, more: (&str, &str)| {
        filters.address("/approvals", &[("state", state.as_str()), more])
    };
    let next = listed.next_cursor.as_deref();
    let next = next.map(|cursor| at(state, ("cursor", cursor)));
    let name = |state: ApprovalState| {
        (
            state.as_str(),
            state_name(state, &visit),
            at(state, ("", "")),
        )
    };
    let page = List {
        frame: visit.frame(visit.words.approvals, "approvals").await,
        rows,
        approvals: listed.approvals,
        state: state.as_str(),
        states: ApprovalState::ALL.map(name).to_vec(),
        rows_at: at(state, ("part", "rows")),
        newest: at(state, ("", "")),
        groups,
        is_first: cursor.is_empty(),
        next,
        next_cursor: listed.next_cursor,
        filters,
    };
    answer::page(&visit, &page)
}

fn row(visit: &Visit, approval: &Approval, filters: &Filters) -> Row {
    let now = visit.console.gateway.executor().now();
    let question = approval.question.as_ref();
    let title = question.map(|question| question.title.clone());
    Row {
        id: approval.id.clone(),
        title: title.or_else(|| approval.title.clone()).unwrap_or_default(),
        tool: approval.tool.to_string(),
        actor: approval.actor.id.clone(),
        actor_kind: kind_of(approval.actor.kind, visit.words),
        user: approval.user_id.clone(),
        amount: approval
            .ceiling
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        asked: shown::distance(&approval.asked_at, now, visit.words),
        expires: shown::distance(&approval.expires_at, now, visit.words),
        state: state_name(approval.state, visit),
        tone: tone(approval.state),
        four_eyes: approval.four_eyes,
        is_pending: approval.state == ApprovalState::Pending,
        page: filters.address(&format!("/approvals/{}", plain_segment(&approval.id)), &[]),
        first_by: approval
            .confirmed
            .as_ref()
            .map(|first| first.by.id.clone())
            .unwrap_or_default(),
    }
}

fn state_name(state: ApprovalState, visit: &Visit) -> &'static str {
    let w = visit.words;
    match state {
        ApprovalState::Pending => w.state_pending,
        ApprovalState::Approved => w.state_approved,
        ApprovalState::Denied => w.state_denied,
        ApprovalState::Used => w.state_used,
        ApprovalState::Expired => w.state_expired,
    }
}

fn tone(state: ApprovalState) -> &'static str {
    match state {
        ApprovalState::Pending => "warn",
        ApprovalState::Approved | ApprovalState::Used => "ok",
        ApprovalState::Denied => "bad",
        ApprovalState::Expired => "",
    }
}

#[derive(Template, Serialize)]
#[template(path = "approval.html")]
struct One {
    #[serde(skip)]
    frame: Frame,
    approval: Approval,
    #[serde(skip)]
    row: Row,
    #[serde(skip)]
    arguments: Vec<Line>,
    #[serde(skip)]
    would_answer: Vec<Line>,
    #[serde(skip)]
    narrowable: Vec<Narrowed>,
    #[serde(skip)]
    digest: String,
    /// The description of the tool as HTML.
    #[serde(skip)]
    description_html: String,
    #[serde(skip)]
    is_pending: bool,
    /// Filters of the list that led here.
    #[serde(skip)]
    filters: Filters,
    /// Address of the next question that waits, if this one waits no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    /// True if the signed-in caller may answer; an unproved caller may not.
    #[serde(skip)]
    may_answer: bool,
    /// Persons who may answer, and the rule and policy that asked.
    authority: Authority,
    /// The text of the model, if a person has just opened it.
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<Written>,
    /// True if the signed-in caller may open what the model wrote.
    #[serde(skip)]
    may_open: bool,
}

/// Persons who may answer an approval, and the rule that asked, as the API returns them.
#[derive(Deserialize, Serialize)]
struct Authority {
    user_id: String,
    scope: String,
    approvers: u8,
    policy: String,
    record: Option<String>,
    because: Vec<Because>,
}

/// An entry of the policy, as the API tells it.
#[derive(Deserialize, Serialize)]
pub(super) struct Because {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<usize>,
    pub(super) entry: String,
    pub(super) says: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ruling: Option<String>,
}

/// Text that the model wrote.
#[derive(Serialize)]
struct Written {
    /// Its arguments, byte for byte.
    raw: String,
    /// Reason why there is nothing to show.
    #[serde(skip)]
    gone: Option<&'static str>,
    /// Record of this access.
    access: Option<String>,
}

/// A parameter that the answer may make smaller.
struct Narrowed {
    pointer: String,
    form: &'static str,
    value: String,
}

pub(crate) async fn one(visit: Visit, Path(id): Path<String>) -> Result<Response, Stop> {
    let page = page(&visit, named(&id), None).await?;
    answer::page(&visit, &page)
}

/// Opens what the model wrote. The API writes down who opens it and why before it shows anything.
pub(crate) async fn open(Path(id): Path<String>, posted: Posted) -> Result<Response, Stop> {
    let visit = &posted.visit;
    let path = format!("/v1/approvals/{}/authority", segment(&id));
    let authority: Authority = visit.get(&path).await?;
    let record = authority.record.ok_or_else(|| Stop::not_found(visit))?;
    let path = format!("/v1/evidence/{}/open", segment(&record));
    let reason = posted.get("reason").trim();
    let shown: OpenedNow = visit.post(&path, &json!({"reason": reason})).await?;
    let written = Written {
        raw: shown.written(),
        gone: shown.gone(visit.words),
        access: shown.access,
    };
    let page = page(visit, &id, Some(written)).await?;
    answer::page(visit, &page)
}

async fn page(visit: &Visit, id: &str, written: Option<Written>) -> Result<One, Stop> {
    let path = format!("/v1/approvals/{}", segment(id));
    let approval: Approval = visit.get(&path).await?;
    let authority: Authority = visit.get(&format!("{path}/authority")).await?;
    let filters = match written {
        Some(_) => Filters::default(),
        None => Filters::of(visit),
    };
    let row = row(visit, &approval, &filters);
    let is_pending = approval.state == ApprovalState::Pending;
    let next = if is_pending {
        None
    } else {
        next_waiting(visit, &approval, &filters).await
    };
    let none = BTreeMap::new();
    let narrowed = |narrowing: &countersign::contract::tool::Narrowing| {
        let value = approval.arguments.pointer(&narrowing.pointer);
        Some(Narrowed {
            pointer: narrowing.pointer.clone(),
            form: match narrowing.to {
                Narrower::Lower => visit.words.narrow_lower,
                Narrower::Fewer => visit.words.narrow_fewer,
                Narrower::Subset => visit.words.narrow_subset,
            },
            value: value?.to_string(),
        })
    };
    Ok(One {
        frame: visit.frame(&row.title, "approvals").await,
        may_open: authority.record.is_some() && visit.caller.principal.holds(SCOPE_OPEN),
        authority,
        written,
        arguments: shown::lines(&approval.arguments, &none),
        would_answer: approval
            .would_answer
            .as_ref()
            .map(|value| shown::lines(value, &none))
            .unwrap_or_default(),
        narrowable: approval.narrowable.iter().filter_map(narrowed).collect(),
        digest: approval
            .shown_digest
            .map(|digest| digest.to_string())
            .unwrap_or_default(),
        description_html: docs::line(&approval.description),
        is_pending,
        next,
        filters,
        may_answer: may_answer(visit, &approval),
        row,
        approval,
    })
}

/// The address of the question to answer next: the newest of those that wait longer than this one, else the newest of all.
async fn next_waiting(visit: &Visit, approval: &Approval, filters: &Filters) -> Option<String> {
    let at: Timestamp = approval.asked_at.parse().ok()?;
    let behind = format!("{}.{}", at.as_nanosecond(), approval.id);
    for cursor in [&*behind, ""] {
        let options = [("state", "pending"), ("limit", "1"), ("cursor", cursor)];
        let listed: Listed = visit.get(&filters.asked(&options)).await.ok()?;
        if let Some(next) = listed.approvals.first() {
            let path = format!("/approvals/{}", plain_segment(&next.id));
            return Some(filters.address(&path, &[]));
        }
    }
    None
}

/// True if the signed-in caller may answer a question; an unproved caller may not.
fn may_answer(visit: &Visit, approval: &Approval) -> bool {
    approval.shown_digest.is_some() && visit.caller.proof != Proof::Loopback
}

/// Answers a question: by the API, which knows who may, and to what.
pub(crate) async fn answer(Path(id): Path<String>, posted: Posted) -> Result<Response, Stop> {
    let visit = &posted.visit;
    let decision = match posted.get("decision") {
        "approve" => "approve",
        _ => "deny",
    };
    let mut body = json!({"decision": decision});
    let Some(members) = body.as_object_mut() else {
        return Err(Stop::broken());
    };
    for name in ["shown_digest", "reason"] {
        let value = posted.get(name).trim();
        if !value.is_empty() {
            members.insert(name.to_owned(), value.into());
        }
    }
    let narrowed = narrowed(&posted.fields);
    if decision == "approve" && !narrowed.is_empty() {
        members.insert("narrowed".to_owned(), Value::Object(narrowed));
    }
    let path = format!("/v1/approvals/{}", segment(&id));
    let approval: Approval = visit.post(&path, &body).await?;
    if visit.wants_json {
        return answer::json(&approval);
    }
    // The filters of the list lead to the next question.
    let filters = Filters::read(|name| posted.get(&format!("list:{name}")));
    let path = format!("/approvals/{}", plain_segment(&id));
    Ok(see_other(&filters.address(&path, &[])))
}

/// The narrowed fields: those that differ from what was asked.
fn narrowed(fields: &[(String, String)]) -> Map<String, Value> {
    let value = |name: &str| {
        let found = fields.iter().find(|(known, _)| known == name);
        found.map(|(_, text)| text.trim())
    };
    let changed = fields.iter().filter_map(|(name, text)| {
        let pointer = name.strip_prefix("narrow:")?;
        let asked = value(&format!("asked:{pointer}"));
        let text = text.trim();
        if text.is_empty() || Some(text) == asked {
            return None;
        }
        let value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
        Some((pointer.to_owned(), value))
    });
    changed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_changed_is_narrowed() {
        let field = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let made = narrowed(&[
            field("narrow:/amount", "10"),
            field("asked:/amount", "20"),
            field("narrow:/limit", "5"),
            field("asked:/limit", "5"),
            field("narrow:/items", "[1]"),
            field("asked:/items", "[1,2]"),
        ]);
        assert_eq!(Value::Object(made), json!({"/amount": 10, "/items": [1]}));
    }
}
