//! `/v1/log`: the signed checkpoints and their tiles, as mirrors and auditors fetch them (C2SP tlog-tiles).

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use countersign::archive;
use countersign::contract::{Digest, ErrorCode, EvidenceRecord};
use countersign_evidence::checkpoint::Checkpoint;
use countersign_evidence::tile::{TileId, TileKind, TilePath, WIDTH, width_at};
use http::HeaderValue;
use http::header::CACHE_CONTROL;
use serde::Serialize;

use super::SCOPE_CALLS;
use super::answer::{self, Kind, Refusal};
use super::query::{self, Options};
use super::sight;
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::words::Say;

/// Returns the newest checkpoint, with the cosignatures that there are; a newer one may come at any moment.
pub(super) async fn checkpoint(State(gateway): State<Gateway>) -> Result<Response, Refusal> {
    let signed = gateway.archive().signed().await?;
    let (_, note) = signed.ok_or(archive::Error::NoCheckpoint)?;
    let note = match gateway.witnesses() {
        Some(witnesses) => witnesses.cosigned(note),
        None => note,
    };
    let mut response = answer::text(note);
    let fresh = HeaderValue::from_static("no-cache");
    response.headers_mut().insert(CACHE_CONTROL, fresh);
    Ok(response)
}

/// Default and maximum number of checkpoints in a list.
const LIMIT: usize = 20;
const LIMIT_MAX: usize = 200;

/// A list, the largest tree first.
#[derive(Serialize)]
struct Listed {
    checkpoints: Vec<Shown>,
    /// Cursor of the next page; `None` after the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A checkpoint of the list.
#[derive(Serialize)]
struct Shown {
    size: u64,
    root: String,
    /// The checkpoint as it was signed.
    note: String,
    /// Address of the tile with the last record under it.
    tile: String,
    /// Time of that record.
    #[serde(skip_serializing_if = "Option::is_none")]
    newest_at: Option<String>,
}

/// Lists signed checkpoints. They reveal nothing about anyone.
pub(super) async fn checkpoints(
    State(gateway): State<Gateway>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let options = Options::read(query.as_deref(), ["limit", "cursor"])?;
    let limit = options.limit(LIMIT, 1, LIMIT_MAX)?;
    let below = options.cursor(|cursor| cursor.parse().ok())?;
    // One more than is shown says whether there is another page.
    let signed = gateway
        .archive()
        .checkpoints(below, limit.saturating_add(1));
    let mut signed = signed.await?;
    let last = query::cut(&mut signed, limit);
    let next_cursor = last.map(|(checkpoint, _)| checkpoint.size.to_string());
    let mut checkpoints = Vec::new();
    for (checkpoint, note) in signed {
        let newest_at = newest_at(&gateway, checkpoint.size).await?;
        checkpoints.push(Shown::of(&checkpoint, note, newest_at));
    }
    Ok(answer::json(&Listed {
        checkpoints,
        next_cursor,
    }))
}

/// Time of the last record of a tree; `None` if it cannot be read, which a verification reports.
async fn newest_at(gateway: &Gateway, size: u64) -> Result<Option<String>, Refusal> {
    let Some(last) = size.checked_sub(1) else {
        return Ok(None);
    };
    let leaves = gateway.executor().store().leaves(last, 1).await;
    let leaves = leaves.map_err(archive::Error::Store)?;
    let leaf = leaves.first();
    let record = leaf.and_then(|leaf| serde_json::from_slice::<EvidenceRecord>(&leaf.bytes).ok());
    Ok(record.map(|record| record.at))
}

impl Shown {
    fn of(checkpoint: &Checkpoint, note: String, newest_at: Option<String>) -> Self {
        let id = TileId {
            level: 0,
            index: checkpoint.size.saturating_sub(1) / u64::from(WIDTH),
        };
        let tile = TilePath {
            kind: TileKind::Hashes(0),
            index: id.index,
            width: width_at(id, checkpoint.size),
        };
        Self {
            size: checkpoint.size,
            root: Digest(checkpoint.root).to_string(),
            note,
            tile: format!("/v1/log/{tile}"),
            newest_at,
        }
    }
}

/// Returns a tile. Hashes reveal nothing about anyone; the records themselves need the right to see all of
/// them.
pub(super) async fn tile(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, Refusal> {
    let path = query::segment(path)?;
    let missing = || answer::not_found(Kind::Tile, &path).hint(Say::TileSize);
    let wanted: TilePath = format!("tile/{path}").parse().map_err(|_| missing())?;
    let principal = &caller.principal;
    let cache = match wanted.kind {
        TileKind::Hashes(_) => "public, max-age=31536000, immutable",
        TileKind::Entries if sight::sees_all(principal) => "private, max-age=31536000, immutable",
        TileKind::Entries => {
            let message = Say::AllUsersRecords;
            return Err(
                Refusal::new(ErrorCode::Forbidden, message).hint(Say::UseScope {
                    scope: SCOPE_CALLS.to_string(),
                }),
            );
        }
    };
    let bytes = gateway.archive().tile(&wanted).await?.ok_or_else(missing)?;
    let octets = HeaderValue::from_static("application/octet-stream");
    let mut response = answer::typed(bytes, octets);
    let cache = HeaderValue::from_static(cache);
    response.headers_mut().insert(CACHE_CONTROL, cache);
    Ok(response)
}
