//! Records by their own id, or by the request id of their call.

use std::str::FromStr;

use countersign::contract::id::InvalidId;
use countersign::contract::{RequestId, SnapshotId};

use crate::failure::Failure;
use crate::place::{Place, archive_failed};

/// How many records of one call are looked at.
const RECORDS_MAX: usize = 100;

/// How many records a hint names.
const NAMED_MAX: usize = 5;

/// What a record is asked for by.
#[derive(Debug, Clone)]
pub(crate) enum Name {
    /// Its own id.
    Record(SnapshotId),
    /// The request id of its call, whether the gateway made it or the caller chose it.
    Call(RequestId),
}

/// Whose call a request id names.
#[derive(Debug, clap::Args)]
pub(crate) struct Whose {
    /// The user of the call; without it every user is looked through for an id that a caller chose
    #[arg(long, value_name = "USER")]
    pub(crate) user: Option<String>,
}

impl FromStr for Name {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        if text.starts_with("ev_") {
            SnapshotId::new(text).map(Self::Record)
        } else {
            RequestId::new(text).map(Self::Call)
        }
    }
}

impl Name {
    /// The records that it names, newest first; at least one.
    pub(crate) fn all(
        &self,
        place: &Place,
        user: Option<&str>,
    ) -> Result<Vec<SnapshotId>, Failure> {
        let request_id = match self {
            Self::Record(id) => return Ok(vec![id.clone()]),
            Self::Call(request_id) => request_id,
        };
        let archive = place.archive();
        let found = archive.of_request(request_id, user, RECORDS_MAX);
        let rows = place.runtime.block_on(found).map_err(archive_failed)?;
        if rows.is_empty() {
            let message = format!("there is no call {:?}", request_id.as_str());
            return Err(Failure::new(message).hint("`countersign calls` lists the newest ones"));
        }
        Ok(rows.into_iter().map(|row| row.id).collect())
    }

    /// The one record that it names.
    pub(crate) fn one(&self, place: &Place, user: Option<&str>) -> Result<SnapshotId, Failure> {
        <[SnapshotId; 1]>::try_from(self.all(place, user)?)
            .map(|[id]| id)
            .map_err(|ids| {
                let message = format!("the call has {} records", ids.len());
                let named: Vec<&str> = ids.iter().take(NAMED_MAX).map(SnapshotId::as_str).collect();
                Failure::new(message).hint(format!("name one of them: {}", named.join(", ")))
            })
    }
}
