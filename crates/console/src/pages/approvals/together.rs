//! Questions of one shape on one page, and one decision about those that are chosen.
//!
//! Each of them is shown in full, is answered by a request of its own with the digest of what was shown, and has a record of its own.

use std::collections::{BTreeMap, BTreeSet};

use askama::Template;
use axum::response::Response;
use countersign::contract::{Approval, ApprovalState, Digest};
use http::StatusCode;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Group, Row, may_answer, row};
use crate::answer::{self, Stop};
use crate::ask::segment;
use crate::frame::Frame;
use crate::session::{Posted, Visit};
use crate::shown::{self, Line};

/// Fewest questions that are offered together.
const FEWEST: usize = 2;

/// Maximum number of waiting questions among which those of a shape are looked for.
const SEARCHED: usize = 1_000;

/// Maximum bytes of what the questions on the page hold, so that the page stays below 100 KB: each stands there with its lines.
const SHOWN_BYTES_MAX: usize = 24_000;

#[derive(Template, Serialize)]
#[template(path = "together.html")]
struct Page {
    #[serde(skip)]
    frame: Frame,
    shape: String,
    #[serde(skip)]
    tool: String,
    #[serde(skip)]
    asked: Vec<Asked>,
    approvals: Vec<Approval>,
    /// Number of further questions of the shape, which follow when these are answered.
    more: usize,
    /// Address of the page with those that follow.
    #[serde(skip)]
    next: Option<String>,
    /// Outcomes of the answered questions.
    outcomes: Vec<Outcome>,
}

/// A question with everything that its digest stands for.
struct Asked {
    row: Row,
    digest: String,
    lines: Vec<(String, String)>,
    irreversible: Vec<String>,
    arguments: Vec<Line>,
    would_answer: Vec<Line>,
}

/// Outcome of one question.
#[derive(Serialize)]
struct Outcome {
    id: String,
    title: String,
    #[serde(skip)]
    tone: &'static str,
    /// The new state, or why it is as it was.
    text: String,
    evidence: Option<String>,
}

/// The groups of questions that can be answered together, the largest first.
pub(super) fn groups(visit: &Visit, approvals: &[Approval], at: &str) -> Vec<Group> {
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    let open = approvals.iter().filter(|one| is_open(visit, one));
    for approval in open {
        let shape = shape(approval);
        let group = groups.entry(shape.clone()).or_insert_with(|| Group {
            shape,
            tool: approval.tool.to_string(),
            actor: approval.actor.id.clone(),
            count: 0,
            at: at.to_owned(),
        });
        group.count += 1;
    }
    let mut groups: Vec<Group> = groups.into_values().collect();
    groups.retain(|group| group.count >= FEWEST);
    groups.sort_by_key(|group| std::cmp::Reverse(group.count));
    groups
}

fn is_open(visit: &Visit, approval: &Approval) -> bool {
    approval.state == ApprovalState::Pending && may_answer(visit, approval)
}

/// The page of one shape, from a place of the inbox on.
pub(super) async fn show(visit: &Visit, shape: &str) -> Result<Response, Stop> {
    let from = visit.asked("cursor");
    let page = page(visit, shape, from, Vec::new()).await?;
    answer::page(visit, &page)
}

async fn page(
    visit: &Visit,
    wanted: &str,
    from: Option<&str>,
    outcomes: Vec<Outcome>,
) -> Result<Page, Stop> {
    let from = from.map(|cursor| format!("&cursor={}", segment(cursor)));
    let from = from.unwrap_or_default();
    let path = format!("/v1/approvals?state=pending&limit={SEARCHED}{from}");
    let listed: super::Listed = visit.get(&path).await?;
    let mut approvals = listed.approvals;
    approvals.retain(|one| is_open(visit, one) && shape(one) == wanted);
    let fitting = fitting(&approvals);
    let more = approvals.len() - fitting;
    approvals.truncate(fitting);
    let next = approvals.last().filter(|_| more > 0).and_then(|last| {
        let at: Timestamp = last.asked_at.parse().ok()?;
        let cursor = segment(&format!("{}.{}", at.as_nanosecond(), last.id));
        Some(format!("/approvals?shape={wanted}&cursor={cursor}"))
    });
    let tool = approvals.first().map(|one| one.tool.to_string());
    Ok(Page {
        more,
        next,
        frame: visit.frame(visit.words.together, "approvals").await,
        shape: wanted.to_owned(),
        tool: tool.unwrap_or_default(),
        asked: approvals.iter().map(|one| asked(visit, one)).collect(),
        approvals,
        outcomes,
    })
}

/// Number of questions that fit on one page; one always does.
fn fitting(approvals: &[Approval]) -> usize {
    let mut bytes = 0;
    let fitting = approvals.iter().take(super::LISTED).take_while(|one| {
        bytes += serde_json::to_vec(one).map_or(0, |text| text.len());
        bytes <= SHOWN_BYTES_MAX
    });
    fitting.count().max(1).min(approvals.len())
}

fn asked(visit: &Visit, approval: &Approval) -> Asked {
    let none = BTreeMap::new();
    let question = approval.question.as_ref();
    let lines = question.map(|question| {
        let lines = question.lines.iter();
        let lines = lines.map(|line| (line.label.clone(), line.value.clone()));
        lines.collect()
    });
    let would_answer = approval.would_answer.as_ref();
    Asked {
        row: row(visit, approval, &super::Filters::default()),
        digest: approval
            .shown_digest
            .map(|digest| digest.to_string())
            .unwrap_or_default(),
        lines: lines.unwrap_or_default(),
        irreversible: question
            .map(|question| question.irreversible.clone())
            .unwrap_or_default(),
        arguments: shown::lines(&approval.arguments, &none),
        would_answer: would_answer
            .map(|value| shown::lines(value, &none))
            .unwrap_or_default(),
    }
}

/// Answers the chosen questions, each by a request of its own. All have to be of the shape of the page.
pub(crate) async fn answer_all(posted: Posted) -> Result<Response, Stop> {
    let visit = &posted.visit;
    let wrong = |message: &str| Stop::new(StatusCode::BAD_REQUEST, "INVALID_ARGUMENT", message);
    let decision = match posted.get("decision") {
        "approve" => "approve",
        "deny" => "deny",
        _ => return Err(wrong(visit.words.nothing_chosen)),
    };
    let chosen = posted.fields.iter().filter(|(name, _)| name == "id");
    let chosen: BTreeSet<&str> = chosen.map(|(_, id)| id.as_str()).collect();
    if chosen.is_empty() || chosen.len() > super::LISTED {
        return Err(wrong(visit.words.nothing_chosen));
    }
    let wanted = posted.get("shape");
    let mut meant = Vec::new();
    for id in chosen {
        let path = format!("/v1/approvals/{}", segment(id));
        let approval: Approval = visit.get(&path).await?;
        if shape(&approval) != wanted {
            return Err(wrong(visit.words.other_shape));
        }
        meant.push(approval);
    }
    let mut outcomes = Vec::new();
    for approval in meant {
        let digest = posted.get(&format!("digest:{}", approval.id));
        let mut body = json!({"decision": decision, "shown_digest": digest});
        let reason = posted.get("reason").trim();
        if let Some(members) = body.as_object_mut()
            && !reason.is_empty()
        {
            members.insert("reason".to_owned(), reason.into());
        }
        outcomes.push(outcome(visit, &approval, &body).await);
    }
    let page = page(visit, wanted, None, outcomes).await?;
    answer::page(visit, &page)
}

/// Answers one of them.
async fn outcome(visit: &Visit, approval: &Approval, body: &Value) -> Outcome {
    let path = format!("/v1/approvals/{}", segment(&approval.id));
    let title = row(visit, approval, &super::Filters::default()).title;
    match visit.post::<Approval>(&path, body).await {
        Ok(answered) => {
            let row = row(visit, &answered, &super::Filters::default());
            let given = answered.answer.as_ref().or(answered.confirmed.as_ref());
            Outcome {
                id: answered.id.clone(),
                title,
                tone: row.tone,
                text: row.state.to_owned(),
                evidence: given.map(|given| given.evidence.to_string()),
            }
        }
        Err(stop) => Outcome {
            id: approval.id.clone(),
            title,
            tone: "bad",
            text: stop.message,
            evidence: None,
        },
    }
}

/// The shape of a question: who asks for which tool, with which parameters, and how many have to agree. The values differ.
fn shape(approval: &Approval) -> String {
    let mut places = Vec::new();
    gather(&approval.arguments, "", &mut places);
    let text = json!([
        approval.tool.as_str(),
        approval.actor.kind,
        approval.actor.id,
        approval.four_eyes,
        places,
    ]);
    let digest = Digest::of_bytes(text.to_string().as_bytes()).to_string();
    let digits = digest.trim_start_matches("sha256:");
    digits.chars().take(16).collect()
}

/// Every place of a value with the kind of what is there. The items of a list count as one place: a longer list has the same shape.
fn gather(value: &Value, place: &str, places: &mut Vec<String>) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(items) => {
            for item in items {
                gather(item, &format!("{place}/-"), places);
            }
            "list"
        }
        Value::Object(members) => {
            for (name, member) in members {
                gather(member, &format!("{place}/{name}"), places);
            }
            "object"
        }
    };
    let entry = format!("{place} {kind}");
    if !places.contains(&entry) {
        places.push(entry);
    }
    places.sort_unstable();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(value: &Value) -> Vec<String> {
        let mut places = Vec::new();
        gather(value, "", &mut places);
        places
    }

    /// Values do not make another shape; a parameter more or of another kind does.
    #[test]
    fn a_shape_is_of_the_parameters() {
        let base = places(&json!({"to": "ann", "items": [{"n": 1}]}));
        assert_eq!(
            base,
            places(&json!({"items": [{"n": 2}, {"n": 3}], "to": "bob"}))
        );
        for other in [
            json!({"to": "ann"}),
            json!({"to": 1, "items": [{"n": 1}]}),
            json!({"to": "ann", "items": [{"n": 1, "gift": true}]}),
            json!({"to": "ann", "items": [{"n": 1}], "x": null}),
        ] {
            assert_ne!(base, places(&other), "{other}");
        }
    }
}
