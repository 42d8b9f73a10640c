//! Part of step 3: a request id that the caller chose names one call of the user (A2). A second use is a warning
//! that names the first.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use countersign_contract::{RecordKind, RequestId};

use super::stop::Stop;
use super::trail::Trail;
use super::{Executor, store_fault};
use crate::ledger::LogQuery;
use crate::words::Say;

/// Request ids of this process whose records may still wait for their batch.
#[derive(Debug, Default)]
pub(super) struct Recent(Mutex<Generations>);

#[derive(Debug, Default)]
struct Generations {
    newer: HashSet<RequestId>,
    older: HashSet<RequestId>,
}

/// The code of the warning.
pub(super) const REUSED: &str = "REQUEST_ID_REUSED";

/// Maximum number of ids in one generation. Records wait for less than a second, so two generations are enough.
const GENERATION_MAX: usize = 8_192;

/// Maximum number of earlier uses that are searched for the first.
const USES_MAX: usize = 64;

impl Recent {
    /// Notes a use; true if there was one before.
    fn is_repeated(&self, id: RequestId) -> bool {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.newer.len() >= GENERATION_MAX {
            seen.older = std::mem::take(&mut seen.newer);
        }
        let is_older = seen.older.contains(&id);
        !seen.newer.insert(id) || is_older
    }
}

impl Executor {
    /// Warns if the caller's own request id already names an earlier call of this user.
    pub(super) async fn warn_of_reuse(&self, user_id: &str, trail: &mut Trail) -> Result<(), Stop> {
        let Some(request_id) = trail.log_id().filter(|_| trail.facts.is_id_chosen) else {
            return Ok(());
        };
        let is_recent = self.parts.recent.is_repeated(request_id.clone());
        let earlier = LogQuery {
            user_id: Some(user_id.to_owned()),
            request_id: Some(request_id),
            limit: USES_MAX,
            ..LogQuery::default()
        };
        let earlier = self.parts.store.records(&earlier).await;
        let mut earlier = earlier.map_err(|error| store_fault(&error))?;
        // The repeat of a call that died before its record is the very retry that it needs.
        earlier.retain(|row| row.kind != RecordKind::Intent);
        let message = match earlier.last() {
            Some(first) => Say::RequestIdReused {
                evidence: first.id.to_string(),
            },
            None if is_recent => Say::RequestIdJustUsed,
            None => return Ok(()),
        };
        trail.warn(REUSED, &message);
        Ok(())
    }
}
