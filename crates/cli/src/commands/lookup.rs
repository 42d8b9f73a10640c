//! Look-up of records by any of their names: their id, the request id of their call, the id of the thing that the call made, the hash of
//! their leaf.

use std::str::FromStr;

use countersign::contract::id::InvalidId;
use countersign::contract::{Digest, RequestId, SnapshotId};
use countersign::ledger::LogRow;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::place::{Place, archive_failed};

/// Maximum number of records of one call that are looked at.
const RECORDS_MAX: usize = 100;

/// Maximum number of records that a hint names.
const NAMED_MAX: usize = 5;

/// Name by which a record is looked up.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Name {
    /// Its own id.
    Record(SnapshotId),
    /// The request id of its call, made by the gateway or chosen by the caller, or the id of the thing that the call made.
    Call(RequestId),
    /// The hash of its leaf.
    Leaf(Digest),
}

/// Owner of the call that a request id names.
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
pub(crate) struct Whose {
    /// User of the call; makes the search for an id that the caller chose faster
    #[arg(long, value_name = "USER")]
    pub(crate) user: Option<String>,
}

impl FromStr for Name {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        if text.starts_with("ev_") {
            return SnapshotId::new(text).map(Self::Record);
        }
        match text.parse() {
            Ok(hash) => Ok(Self::Leaf(hash)),
            Err(_) => RequestId::new(text).map(Self::Call),
        }
    }
}

impl Name {
    /// The name as it was given.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Record(id) => id.to_string(),
            Self::Call(name) => name.to_string(),
            Self::Leaf(hash) => hash.to_string(),
        }
    }

    /// The records that it names, newest first; at least one.
    pub(crate) fn all(
        &self,
        place: &Place,
        user: Option<&str>,
    ) -> Result<Vec<SnapshotId>, Failure> {
        let found = self.found(place, user)?;
        if !found.is_empty() {
            return Ok(found.into_iter().map(|row| row.id).collect());
        }
        Err(match self {
            Self::Record(id) => Failure::new(format!("record {id} does not exist"))
                .hint("`countersign evidence list` lists the newest records"),
            Self::Leaf(hash) => Failure::new(format!("no record has the leaf hash {hash}"))
                .hint("`countersign evidence list` lists the newest records"),
            Self::Call(name) => {
                Failure::new(format!("no call or order has the id {:?}", name.as_str())).hint(
                    "to find it: `countersign calls` (newest calls), `countersign claims list --state in_doubt` (calls in doubt). For an erased user, use a record id (ev_…)",
                )
            }
        }
        .refused())
    }

    /// Returns the records that it names, newest first; empty if there are none.
    pub(crate) fn found(&self, place: &Place, user: Option<&str>) -> Result<Vec<LogRow>, Failure> {
        let archive = place.archive();
        let runtime = &place.runtime;
        let found = match self {
            Self::Record(id) => runtime.block_on(archive.locate(id.as_str(), None, 1)),
            Self::Call(name) => runtime.block_on(archive.locate(name.as_str(), user, RECORDS_MAX)),
            Self::Leaf(hash) => {
                let found = runtime.block_on(archive.of_leaf(*hash));
                found.map(|row| row.into_iter().collect())
            }
        };
        found.map_err(archive_failed)
    }

    /// The one record that it names.
    pub(crate) fn one(&self, place: &Place, user: Option<&str>) -> Result<SnapshotId, Failure> {
        <[SnapshotId; 1]>::try_from(self.all(place, user)?)
            .map(|[id]| id)
            .map_err(|ids| {
                let message = format!("this id leads to {} records", ids.len());
                let named: Vec<&str> = ids.iter().take(NAMED_MAX).map(SnapshotId::as_str).collect();
                Failure::new(message).hint(format!("name one of them: {}", named.join(", ")))
            })
    }
}
