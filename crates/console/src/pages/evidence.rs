//! `/evidence`: the log, its signed checkpoints with their tiles and witnesses, and who did what with it, and why.

use std::collections::BTreeMap;

use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use countersign::archive::SCOPE_OPEN;
use countersign::contract::evidence::RecordedActor;
use countersign::contract::{ActorType, RecordKind};
use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::call::kind_of;
use super::overview::Log;
use crate::answer::{self, Stop};
use crate::ask::with_query;
use crate::frame::Frame;
use crate::session::{Posted, Visit};
use crate::shown;

/// Maximum number of acts on a page.
const LISTED: usize = 50;

/// Maximum number of checkpoints on a page.
const CHECKPOINTS: usize = 10;

#[derive(Template, Serialize)]
#[template(path = "evidence.html")]
struct Page {
    #[serde(skip)]
    frame: Frame,
    is_signed: bool,
    records: u64,
    #[serde(skip)]
    records_text: String,
    unsigned: Option<u64>,
    /// The last verification of the whole log since the server began.
    log: Log,
    /// The newest checkpoint, as it was signed.
    checkpoint: String,
    /// Names of those who have countersigned the newest checkpoint.
    witnesses: Vec<String>,
    /// Witnesses that the server asks.
    asked: Vec<AskedWitness>,
    /// Signed checkpoints, the largest tree first.
    checkpoints: Vec<Signed>,
    /// Address of the page with smaller trees.
    #[serde(skip)]
    next_signed: Option<String>,
    /// Operations on the log, newest first; shown to operators.
    acts: Vec<Act>,
    kind: String,
    #[serde(skip)]
    kinds: Vec<&'static str>,
    /// Address of the page with older acts.
    #[serde(skip)]
    next: Option<String>,
    /// Place of this page, for the form that opens its reasons.
    #[serde(skip)]
    at: At,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    /// True if the signed-in caller may open the reasons of these acts.
    #[serde(skip)]
    may_open: bool,
}

/// A witness as the API lists it.
#[derive(Deserialize, Serialize)]
struct AskedWitness {
    name: String,
    size: u64,
    state: String,
}

/// A signed checkpoint as the API lists it.
#[derive(Deserialize, Serialize)]
struct Signed {
    size: u64,
    root: String,
    /// Address of the tile with the hash of the last record under it.
    tile: String,
    /// Time of that record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    newest_at: Option<String>,
}

impl Signed {
    fn moment(&self) -> String {
        let at = self.newest_at.as_deref();
        at.map(shown::moment).unwrap_or_default()
    }
}

/// A record as the API lists it.
#[derive(Deserialize, Serialize)]
struct Act {
    at: String,
    #[serde(default, skip_serializing)]
    moment: String,
    kind: String,
    evidence: String,
    user_id: String,
    tool: Option<String>,
    by: Option<RecordedActor>,
    #[serde(default, skip_serializing)]
    who: String,
    event: Option<String>,
    about: Vec<String>,
    has_reason: bool,
    /// The reason, if a person has just opened it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Listed {
    records: Vec<Act>,
    #[serde(default)]
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct SignedListed {
    checkpoints: Vec<Signed>,
    #[serde(default)]
    next_cursor: Option<String>,
}

/// A place of the lists of the page.
#[derive(Clone, Default)]
struct At {
    kind: String,
    cursor: String,
    signed: String,
}

impl At {
    /// The address of this place.
    fn address(&self) -> String {
        let options = [
            ("kind", self.kind.as_str()),
            ("cursor", &self.cursor),
            ("signed", &self.signed),
        ];
        with_query("/evidence", options)
    }
}

pub(crate) async fn show(visit: Visit) -> Result<Response, Stop> {
    let asked = |name| visit.asked(name).unwrap_or_default().to_owned();
    let at = At {
        kind: asked("kind"),
        cursor: asked("cursor"),
        signed: asked("signed"),
    };
    let page = page(&visit, &at, &BTreeMap::new()).await?;
    answer::page(&visit, &page)
}

/// Opens the reasons of the acts on a page. The API writes down who opens them and why before it shows anything.
pub(crate) async fn reasons(posted: Posted) -> Result<Response, Stop> {
    #[derive(Deserialize)]
    struct Reasons {
        reasons: Vec<Given>,
    }
    #[derive(Deserialize)]
    struct Given {
        evidence: String,
        reason: Option<String>,
    }
    let visit = &posted.visit;
    let at = At {
        kind: posted.get("kind").to_owned(),
        cursor: posted.get("cursor").to_owned(),
        signed: posted.get("signed").to_owned(),
    };
    let records = posted.fields.iter().filter(|(name, _)| name == "record");
    let records: Vec<&str> = records.map(|(_, id)| id.as_str()).collect();
    let body = json!({"records": records, "reason": posted.get("reason").trim()});
    let given: Reasons = visit.post("/v1/evidence/reasons", &body).await?;
    let given = given.reasons.into_iter();
    let given = given.map(|one| (one.evidence, one.reason.unwrap_or_default()));
    let page = page(visit, &at, &given.collect()).await?;
    answer::page(visit, &page)
}

/// A tile under the newest checkpoint, as the API gives it.
pub(crate) async fn tile(visit: Visit, Path(path): Path<String>) -> Result<Response, Stop> {
    let path = format!("/v1/log/tile/{path}");
    let answered = visit.ask(Method::GET, &path, None).await?;
    if !answered.status.is_success() {
        return Err(Stop::of(answered.status, &answered.body));
    }
    Ok(answer::typed(answered.body, "application/octet-stream"))
}

async fn page(visit: &Visit, at: &At, reasons: &BTreeMap<String, String>) -> Result<Page, Stop> {
    let status = visit.status().await;
    let frame = visit.framed(visit.words.evidence_log, "evidence", &status);
    let known = RecordKind::ALL.map(RecordKind::as_str);
    let kind = known.into_iter().find(|kind| *kind == at.kind);
    let kind = kind.unwrap_or(RecordKind::Access.as_str());
    let mut listed = Listed {
        records: Vec::new(),
        next_cursor: None,
    };
    if frame.is_operator {
        let limit = LISTED.to_string();
        let options = [("kind", kind), ("limit", &limit), ("cursor", &at.cursor)];
        listed = visit.get(&with_query("/v1/evidence", options)).await?;
        for act in &mut listed.records {
            act.moment = shown::moment(&act.at);
            act.who = act.by.as_ref().map(|by| who(by, visit)).unwrap_or_default();
            act.reason = reasons.get(&act.evidence).cloned();
        }
    }
    let limit = CHECKPOINTS.to_string();
    let options = [("limit", limit.as_str()), ("cursor", &at.signed)];
    let signed: SignedListed = visit
        .get(&with_query("/v1/log/checkpoints", options))
        .await?;
    let checkpoint = checkpoint(visit).await?;
    let number = |name: &str| status.signing.get(name).and_then(Value::as_u64);
    let records = number("checkpoint_size").unwrap_or_default();
    let has_reasons = listed.records.iter().any(|act| act.has_reason);
    let next = listed.next_cursor.as_ref().map(|cursor| {
        let at = At {
            kind: kind.to_owned(),
            cursor: cursor.clone(),
            ..at.clone()
        };
        at.address()
    });
    let next_signed = signed.next_cursor.map(|signed| {
        let at = At {
            signed,
            ..at.clone()
        };
        at.address()
    });
    Ok(Page {
        is_signed: status.signing.get("is_running") == Some(&Value::Bool(true)),
        records,
        records_text: shown::number(records),
        unsigned: number("unsigned_records"),
        log: Log::of(&status.signing, visit.words),
        witnesses: witnesses(&checkpoint),
        asked: status
            .signing
            .get("witnesses")
            .and_then(|asked| Vec::deserialize(asked).ok())
            .unwrap_or_default(),
        checkpoint,
        checkpoints: signed.checkpoints,
        next_signed,
        may_open: has_reasons && reasons.is_empty() && visit.caller.principal.holds(SCOPE_OPEN),
        acts: listed.records,
        kind: kind.to_owned(),
        kinds: known.to_vec(),
        next,
        at: at.clone(),
        next_cursor: listed.next_cursor,
        frame,
    })
}

/// The newest checkpoint; empty if there is none.
async fn checkpoint(visit: &Visit) -> Result<String, Stop> {
    let newest = visit.ask(Method::GET, "/v1/log/checkpoint", None).await?;
    if !newest.status.is_success() {
        return Ok(String::new());
    }
    Ok(String::from_utf8_lossy(&newest.body).into_owned())
}

/// Actor: a program by its name, a person by the digest in the record.
fn who(by: &RecordedActor, visit: &Visit) -> String {
    match by.kind {
        ActorType::System => by.id.clone(),
        ActorType::User | ActorType::Agent => {
            format!("{} {}", kind_of(by.kind, visit.words), shown::short(&by.id))
        }
    }
}

/// Names under a checkpoint but the first, which is the log's own.
fn witnesses(note: &str) -> Vec<String> {
    let signatures = note.lines().filter_map(|line| line.strip_prefix("— "));
    let names = signatures.filter_map(|line| line.split(' ').next());
    names.skip(1).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_signature_is_the_logs_own() {
        let note = "example.com/log\n3\nAAAA\n\n— example.com/log abc\n";
        assert!(witnesses(note).is_empty() && witnesses("").is_empty());
        let witnessed = format!("{note}— witness.example/w1 def\n");
        assert_eq!(witnesses(&witnessed), ["witness.example/w1"]);
    }
}
