//! Records as resources: `evidence://ev_…`, for the user whose they are only.

use countersign::archive::{self, Standing};
use countersign::contract::SnapshotId;
use rmcp::ErrorData;
use rmcp::model::{CacheScope, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

use super::carriage;
use crate::gateway::Gateway;

/// The scheme of records.
const SCHEME: &str = "evidence://";

/// True if an address is one of a record.
pub(super) fn is_ours(uri: &str) -> bool {
    uri.starts_with(SCHEME)
}

/// The link to a record.
pub(super) fn link(id: &SnapshotId) -> Resource {
    carriage::linked(format!("{SCHEME}{id}"), id.to_string())
}

/// Returns the template of links to records.
pub(super) fn template() -> ResourceTemplate {
    ResourceTemplate::new("evidence://{snapshot_id}", "evidence")
        .with_title("Evidence")
        .with_description("The record of an earlier call, by the snapshot_id of its reply.")
        .with_mime_type("application/json")
}

/// A record of this user, without what is sealed. One of another user is not there.
pub(super) async fn read(
    gateway: &Gateway,
    user_id: &str,
    uri: &str,
) -> Result<ReadResourceResult, ErrorData> {
    let not_found = || {
        let data = json!({ "uri": uri });
        ErrorData::resource_not_found("there is no such resource", Some(data))
    };
    let id = uri.strip_prefix(SCHEME).ok_or_else(not_found)?;
    let id = SnapshotId::new(id).map_err(|_| not_found())?;
    let shown = match gateway.archive().show(&id).await {
        Ok(shown) => shown,
        Err(archive::Error::NoRecord { .. }) => return Err(not_found()),
        Err(error) => {
            tracing::error!(%error, "a record could not be read from the store");
            let message = "the record could not be read; ask again later";
            return Err(ErrorData::internal_error(message, None));
        }
    };
    if shown.row.user_id.is_empty() || shown.row.user_id != user_id {
        return Err(not_found());
    }
    let (standing, checkpoint_size) = match shown.standing {
        Standing::Waiting => ("waiting", None),
        Standing::Unsigned => ("unsigned", None),
        Standing::Signed { size } => ("signed", Some(size)),
        Standing::NotIncluded => ("not_included", None),
    };
    let text = json!({
        "record": shown.record,
        "index": shown.index,
        "standing": standing,
        "checkpoint_size": checkpoint_size,
        "has_payload": shown.has_payload,
    });
    let contents = ResourceContents::text(text.to_string(), uri).with_mime_type("application/json");
    Ok(ReadResourceResult::new(vec![contents])
        // Where it stands changes with the next checkpoint.
        .with_ttl_ms(0)
        .with_cache_scope(CacheScope::Private))
}
