//! `/evidence`: the log, its newest signed checkpoint, and who opened what.

use askama::Template;
use axum::response::Response;
use countersign::contract::RecordKind;
use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::answer::{self, Stop};
use crate::frame::Frame;
use crate::session::Visit;
use crate::shown;

/// Maximum number of listed records.
const LISTED: usize = 50;

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
    /// The newest checkpoint, as it was signed.
    checkpoint: String,
    /// Operations on the log, newest first; shown to operators.
    acts: Vec<Act>,
    kind: String,
    #[serde(skip)]
    kinds: Vec<&'static str>,
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
}

#[derive(Deserialize)]
struct Listed {
    records: Vec<Act>,
}

pub(crate) async fn show(visit: Visit) -> Result<Response, Stop> {
    let status = visit.status().await;
    let frame = visit.framed(visit.words.evidence_log, "evidence", &status);
    let signed = visit.ask(Method::GET, "/v1/log/checkpoint", None).await?;
    let checkpoint = if signed.status.is_success() {
        String::from_utf8_lossy(&signed.body).into_owned()
    } else {
        String::new()
    };
    let asked = visit.asked("kind").unwrap_or("access");
    let kind = RecordKind::ALL
        .into_iter()
        .find(|kind| kind.as_str() == asked);
    let mut acts = Vec::new();
    if frame.is_operator {
        let kind = kind.unwrap_or(RecordKind::Access).as_str();
        let path = format!("/v1/evidence?kind={kind}&limit={LISTED}");
        let listed: Listed = visit.get(&path).await?;
        acts = listed.records;
        for act in &mut acts {
            act.moment = shown::moment(&act.at);
        }
    }
    let number = |name: &str| status.signing.get(name).and_then(Value::as_u64);
    let records = number("checkpoint_size").unwrap_or_default();
    let page = Page {
        is_signed: status.signing.get("is_running") == Some(&Value::Bool(true)),
        records,
        records_text: shown::number(records),
        unsigned: number("unsigned_records"),
        checkpoint,
        acts,
        kind: asked.to_owned(),
        kinds: RecordKind::ALL.map(RecordKind::as_str).to_vec(),
        frame,
    };
    answer::page(&visit, &page)
}
