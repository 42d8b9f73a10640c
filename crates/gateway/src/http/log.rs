//! `/v1/log`: the signed checkpoint and its tiles, as mirrors and auditors fetch them (C2SP tlog-tiles).

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use countersign::archive;
use countersign::contract::ErrorCode;
use countersign_evidence::tile::{TileKind, TilePath};
use http::HeaderValue;
use http::header::CACHE_CONTROL;

use super::SCOPE_CALLS;
use super::answer::{self, Refusal};
use super::{query, sight};
use crate::caller::Caller;
use crate::gateway::Gateway;

/// Returns the newest checkpoint; a newer one may come at any moment.
pub(super) async fn checkpoint(State(gateway): State<Gateway>) -> Result<Response, Refusal> {
    let signed = gateway.archive().signed().await?;
    let (_, note) = signed.ok_or(archive::Error::NoCheckpoint)?;
    let mut response = answer::text(note);
    let fresh = HeaderValue::from_static("no-cache");
    response.headers_mut().insert(CACHE_CONTROL, fresh);
    Ok(response)
}

/// Returns a tile. Hashes reveal nothing about anyone; the records themselves need the right to see all of
/// them.
pub(super) async fn tile(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, Refusal> {
    let path = query::segment(path)?;
    let missing = || {
        answer::not_found("tile", &path).hint("GET /v1/log/checkpoint says how large the log is")
    };
    let wanted: TilePath = format!("tile/{path}").parse().map_err(|_| missing())?;
    let principal = &caller.principal;
    let cache = match wanted.kind {
        TileKind::Hashes(_) => "public, max-age=31536000, immutable",
        TileKind::Entries if sight::sees_all(principal) => "private, max-age=31536000, immutable",
        TileKind::Entries => {
            let message = "the records of all users may not be seen with this credential";
            return Err(Refusal::new(ErrorCode::Forbidden, message)
                .hint(format!("use a credential with the scope {SCOPE_CALLS}")));
        }
    };
    let bytes = gateway.archive().tile(&wanted).await?.ok_or_else(missing)?;
    let octets = HeaderValue::from_static("application/octet-stream");
    let mut response = answer::typed(bytes, octets);
    let cache = HeaderValue::from_static(cache);
    response.headers_mut().insert(CACHE_CONTROL, cache);
    Ok(response)
}
