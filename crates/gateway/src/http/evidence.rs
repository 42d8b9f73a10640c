//! `/v1/evidence/{id}`: a record, its proof, and, with a scope and a reason, its sealed content.

use axum::Extension;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use countersign::archive::{self, Content, CoseForm, Export, Opened, Shown, Standing};
use countersign::contract::evidence::Payload;
use countersign::contract::{ErrorCode, EvidenceRecord, RequestId, SnapshotId};
use countersign::denials::Denial;
use countersign_evidence::receipt::{RECEIPT_TYPE, STATEMENT_TYPE};
use http::HeaderValue;
use serde::{Deserialize, Serialize};

use super::answer::{self, Refusal};
use super::decision::{self, Decision};
use super::{body, query, sight};
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::strict;
use crate::words::Say;

type Id = Result<Path<String>, PathRejection>;

/// A record without its sealed content.
#[derive(Serialize)]
pub(super) struct ShownRecord {
    record: EvidenceRecord,
    /// Index in the tree; null while the record waits for it.
    index: Option<u64>,
    /// True if the sealed content is still kept.
    has_payload: bool,
    proof: ShownStanding,
    /// The decision of a person that the call rests on.
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<Decision>,
}

/// State of a record's proof.
#[derive(Serialize)]
#[serde(rename_all = "snake_case", tag = "state")]
enum ShownStanding {
    /// The record waits for the tree.
    Waiting,
    /// The record waits for a signature.
    Unsigned,
    /// A signed checkpoint of this size covers the record.
    Signed { size: u64 },
    /// The signed tree has another leaf in the record's place.
    NotIncluded,
}

impl ShownRecord {
    /// Records with the decisions that they rest on.
    pub(super) async fn all(
        gateway: &Gateway,
        shown: Vec<Shown>,
    ) -> Result<Vec<Self>, archive::Error> {
        let decisions = decision::of(gateway, shown.iter().map(|one| &one.record)).await?;
        let all = shown.into_iter().zip(decisions);
        let all = all.map(|(shown, decision)| Self {
            record: shown.record,
            index: shown.index,
            has_payload: shown.has_payload,
            proof: shown.standing.into(),
            decision,
        });
        Ok(all.collect())
    }
}

impl From<Standing> for ShownStanding {
    fn from(standing: Standing) -> Self {
        match standing {
            Standing::Waiting => Self::Waiting,
            Standing::Unsigned => Self::Unsigned,
            Standing::Signed { size } => Self::Signed { size },
            Standing::NotIncluded => Self::NotIncluded,
        }
    }
}

pub(super) async fn show(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    id: Id,
) -> Result<Response, Refusal> {
    let id = find(&gateway, &caller, id).await?;
    let shown = gateway.archive().show(&id).await?;
    let shown = ShownRecord::all(&gateway, vec![shown]).await?;
    Ok(answer::json(&shown.first()))
}

/// Later calls with the same key, which were answered with the answer of a call.
#[derive(Serialize)]
struct ShownRepeats {
    repeats: Vec<ShownRepeat>,
    /// True if the user has more later calls than were looked through.
    is_cut: bool,
}

#[derive(Serialize)]
struct ShownRepeat {
    evidence: SnapshotId,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<RequestId>,
    at: String,
    dry_run: bool,
}

/// Lists the repeats of a call, oldest first.
pub(super) async fn repeats(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    id: Id,
) -> Result<Response, Refusal> {
    let id = find(&gateway, &caller, id).await?;
    let found = gateway.archive().repeats(&id).await?;
    let shown = found.repeats.into_iter().map(|one| ShownRepeat {
        evidence: one.id,
        request_id: one.request_id,
        at: one.at.to_string(),
        dry_run: one.dry_run,
    });
    Ok(answer::json(&ShownRepeats {
        repeats: shown.collect(),
        is_cut: found.is_cut,
    }))
}

/// Returns the inclusion proof of the record, in the form of C2SP, with the cosignatures that there are.
pub(super) async fn proof(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    id: Id,
) -> Result<Response, Refusal> {
    let id = find(&gateway, &caller, id).await?;
    let mut proof = gateway.archive().proof(&id).await?;
    if let Some(witnesses) = gateway.witnesses() {
        proof.note = witnesses.cosigned(proof.note);
    }
    Ok(answer::text(proof.into_tlog_proof().to_string()))
}

/// Returns the inclusion proof of the record as a COSE receipt.
pub(super) async fn receipt(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    id: Id,
) -> Result<Response, Refusal> {
    let id = find(&gateway, &caller, id).await?;
    let bytes = gateway.archive().cose(&id, CoseForm::Receipt).await?;
    let kind = HeaderValue::from_static(RECEIPT_TYPE);
    Ok(answer::typed(bytes, kind))
}

/// Returns the record as a SCITT statement with its receipt.
pub(super) async fn statement(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    id: Id,
) -> Result<Response, Refusal> {
    let id = find(&gateway, &caller, id).await?;
    let bytes = gateway.archive().cose(&id, CoseForm::Statement).await?;
    let kind = HeaderValue::from_static(STATEMENT_TYPE);
    Ok(answer::typed(bytes, kind))
}

/// Returns the record, the records it links and the proofs, for a verifier that has only this file.
pub(super) async fn bundle(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    id: Id,
) -> Result<Response, Refusal> {
    let id = find(&gateway, &caller, id).await?;
    let archive = gateway.archive();
    let bundle = archive.export(&[id], Export::Records, None).await?;
    let json = HeaderValue::from_static("application/json");
    Ok(answer::typed(bundle.to_json(), json))
}

/// Body of a request to open a record: its reason.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reason {
    reason: String,
}

/// Opened content.
#[derive(Serialize)]
struct ShownContent {
    evidence: SnapshotId,
    content: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Box<Payload>>,
    /// Record of this access; null if there was nothing left to open.
    access: Option<SnapshotId>,
}

impl From<Opened> for ShownContent {
    fn from(opened: Opened) -> Self {
        let (content, payload) = match opened.content {
            Content::Open(payload) => ("open", Some(payload)),
            Content::Nothing => ("nothing", None),
            Content::Pruned => ("pruned", None),
            Content::Erased => ("erased", None),
        };
        Self {
            evidence: opened.record.id,
            content,
            payload,
            access: opened.access,
        }
    }
}

/// Opens the sealed content. The access, its actor and its reason are in the log before the content is shown.
pub(super) async fn open(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    id: Id,
    body: Body,
) -> Result<Response, Refusal> {
    let id = find_for("open", &gateway, &caller, id).await?;
    let body = body::read(body, gateway.settings()).await?;
    let archive = gateway.archive();
    let Ok(Reason { reason }) = strict::from_slice(&body) else {
        let denial = Denial::new("open", &caller.principal, "no_reason");
        archive.denials().note(denial.about(id.as_str())).await;
        let message = Say::NotAReason;
        return Err(Refusal::new(ErrorCode::InvalidArgument, message)
            .field("/reason")
            .hint(Say::SendReason));
    };
    let opened = archive.open(&id, &caller.principal, &reason).await?;
    Ok(answer::json(&ShownContent::from(opened)))
}

pub(super) async fn find(
    gateway: &Gateway,
    caller: &Caller,
    id: Id,
) -> Result<SnapshotId, Refusal> {
    let id = query::segment(id)?;
    sight::find(gateway, &caller.principal, &id).await
}

/// Same as `find`, for operations that need more than read access: a denial is recorded.
pub(super) async fn find_for(
    event: &'static str,
    gateway: &Gateway,
    caller: &Caller,
    id: Id,
) -> Result<SnapshotId, Refusal> {
    let id = query::segment(id)?;
    sight::find_for(event, gateway, &caller.principal, &id).await
}
