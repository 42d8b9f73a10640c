//! `/v1/cases/{id}`: everything that the log has about one order, call or record, and one bundle of it.

use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use countersign::archive::{Case, CasePart, CaseRecord, Error, Export, Standing};
use countersign::contract::{ErrorCode, EvidenceRecord, SnapshotId};
use countersign::denials::Denial;
use http::HeaderValue;
use serde::{Deserialize, Serialize};

use super::answer::{self, Kind, Refusal};
use super::sight::{self, Sight};
use super::{body, query};
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::strict;
use crate::words::Say;

/// Interval and maximum number of looks for a signature.
const SIGNED_LOOK_EVERY: Duration = Duration::from_millis(100);
const SIGNED_LOOKS_MAX: usize = 30;

type Id = Result<Path<String>, PathRejection>;

/// A case without its sealed content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShownCase {
    /// The name that led to it.
    pub name: String,
    /// The id of the thing that was named, such as a draft order; empty if a record or a call was named.
    pub things: Vec<String>,
    /// The user; empty if there is none, or if the user was erased.
    pub user_id: String,
    /// True if not all later records could be looked through.
    pub is_cut: bool,
    /// Its records, oldest first.
    pub records: Vec<ShownPart>,
}

/// A record of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShownPart {
    /// Its part in the case: `ground`, `named`, `followed` or `looked`.
    pub part: CasePart,
    /// The record.
    pub record: EvidenceRecord,
    /// Index in the tree; null while the record waits for it.
    pub index: Option<u64>,
    /// True if the sealed content is still kept.
    pub has_payload: bool,
    /// Size of the signed checkpoint that covers the record; null if there is none yet.
    pub signed_size: Option<u64>,
    /// False if the signed tree has another leaf in the record's place.
    pub is_intact: bool,
}

impl ShownCase {
    /// A case as it is shown, under the name that led to it.
    pub fn new(name: &str, case: Case) -> Self {
        Self {
            name: name.to_owned(),
            things: case.things,
            user_id: case.user_id,
            is_cut: case.is_cut,
            records: case.records.into_iter().map(ShownPart::from).collect(),
        }
    }
}

impl From<CaseRecord> for ShownPart {
    fn from(CaseRecord { shown, part }: CaseRecord) -> Self {
        let (signed_size, is_intact) = match shown.standing {
            Standing::Waiting | Standing::Unsigned => (None, true),
            Standing::Signed { size } => (Some(size), true),
            Standing::NotIncluded => (None, false),
        };
        Self {
            part,
            record: shown.record,
            index: shown.index,
            has_payload: shown.has_payload,
            signed_size,
            is_intact,
        }
    }
}

pub(super) async fn show(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    id: Id,
) -> Result<Response, Refusal> {
    let name = query::segment(id)?;
    let sight = sight::look(&gateway, &caller.principal, &name).await?;
    let case = seen(&gateway, &caller, &name, sight).await?;
    Ok(answer::json(&ShownCase::new(&name, case)))
}

/// Body of a request for a bundle.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// Reason for opening the content; without it, no content goes into the bundle.
    #[serde(default)]
    reason: Option<String>,
}

/// Returns one bundle of all records of the case. With a reason their content is opened: the access, its actor and
/// its reason are in the log before the content is shown.
pub(super) async fn bundle(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    id: Id,
    body: Body,
) -> Result<Response, Refusal> {
    let name = query::segment(id)?;
    let body = body::read(body, gateway.settings()).await?;
    let wanted = if body.is_empty() {
        Ok(Wanted::default())
    } else {
        strict::from_slice(&body)
    };
    let archive = gateway.archive();
    let Ok(Wanted { reason }) = wanted else {
        let denial = Denial::new("export", &caller.principal, "no_reason");
        archive.denials().note(denial).await;
        let message = Say::NotAReason;
        return Err(Refusal::new(ErrorCode::InvalidArgument, message)
            .field("/reason")
            .hint(Say::ReasonOrNothing));
    };
    let principal = &*caller.principal;
    let sight = if reason.is_some() {
        sight::look_for("export", &gateway, principal, &name).await?
    } else {
        sight::look(&gateway, principal, &name).await?
    };
    let case = seen(&gateway, &caller, &name, sight).await?;
    let ids: Vec<SnapshotId> = case
        .records
        .into_iter()
        .map(|record| record.shown.row.id)
        .collect();
    let export = match &reason {
        Some(reason) => Export::Opened {
            by: principal,
            reason,
        },
        None => Export::Records,
    };
    signed(&gateway, &ids).await;
    let bundle = archive.export(&ids, export, None).await?;
    let json = HeaderValue::from_static("application/json");
    Ok(answer::typed(bundle.to_json(), json))
}

/// Waits until the records of a case are under a signed checkpoint, for a bounded time: the newest may be a moment old.
async fn signed(gateway: &Gateway, ids: &[SnapshotId]) {
    let mut looks = 0;
    for id in ids {
        while looks < SIGNED_LOOKS_MAX
            && matches!(
                gateway.archive().proof(id).await,
                Err(Error::NotSignedYet { .. } | Error::NoCheckpoint)
            )
        {
            looks += 1;
            tokio::time::sleep(SIGNED_LOOK_EVERY).await;
        }
    }
}

/// The case that a caller may see: records that they may not see are left out.
async fn seen(
    gateway: &Gateway,
    caller: &Caller,
    name: &str,
    sight: Sight,
) -> Result<Case, Refusal> {
    let ids = match sight {
        Sight::Seen(id) => vec![id],
        Sight::Several(ids) => ids,
        Sight::NotTheirs(_) | Sight::Nothing => {
            return Err(answer::not_found(Kind::Case, name).hint(Say::NameForCase));
        }
    };
    let mut case = gateway.archive().case(name, &ids).await?;
    let principal = &caller.principal;
    case.records
        .retain(|record| sight::sees(principal, &record.shown.row));
    Ok(case)
}
