//! The decision of a person that a call rests on: times of the question and of the answer, from the record of the answer.

use std::collections::BTreeMap;

use countersign::archive;
use countersign::contract::evidence::LinkRole;
use countersign::contract::{EvidenceRecord, RecordKind, SnapshotId};
use serde::Serialize;
use serde_json::Value;

use crate::gateway::Gateway;

/// A question to a person, and its answer.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Decision {
    asked_at: String,
    answered_at: String,
    /// Record of the answer.
    evidence: SnapshotId,
}

impl Decision {
    /// The decision in the record of an answer; `None` for any other record.
    fn read(record: EvidenceRecord) -> Option<Self> {
        let is_answer = record.kind == RecordKind::Approval;
        let asked_at = record.act.get("asked_at").and_then(Value::as_str);
        Some(Self {
            asked_at: asked_at.filter(|_| is_answer)?.to_owned(),
            answered_at: record.at,
            evidence: record.id,
        })
    }
}

/// Returns the decision that each call rests on, in the order of the calls.
pub(super) async fn of<'r>(
    gateway: &Gateway,
    records: impl IntoIterator<Item = &'r EvidenceRecord>,
) -> Result<Vec<Option<Decision>>, archive::Error> {
    let asked: Vec<Vec<SnapshotId>> = records.into_iter().map(rests_on).collect();
    let wanted: Vec<SnapshotId> = asked.iter().flatten().cloned().collect();
    let leaves = gateway.executor().store().leaves_of(&wanted).await?;
    let mut known = BTreeMap::new();
    for (_, leaf) in leaves.into_iter().flatten() {
        // A leaf that cannot be read is what a verification finds.
        let record = serde_json::from_slice::<EvidenceRecord>(&leaf).ok();
        if let Some(decision) = record.and_then(Decision::read) {
            known.insert(decision.evidence.clone(), decision);
        }
    }
    let of_call = |links: &Vec<SnapshotId>| links.iter().find_map(|id| known.get(id).cloned());
    Ok(asked.iter().map(of_call).collect())
}

/// The records that a call rests on.
fn rests_on(record: &EvidenceRecord) -> Vec<SnapshotId> {
    let links = record.links.iter().filter(|link| match link.role {
        Some(LinkRole::RestsOn) | None => true,
        Some(LinkRole::LookedAt) => false,
    });
    links.map(|link| link.id.clone()).collect()
}
