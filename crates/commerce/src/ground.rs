//! How one answer rests on another: by the name of its evidence, which only the gateway writes.
//!
//! What an agent says about an earlier answer is never believed. It names the evidence, and the answer is read
//! from there: of the same user, of the right tool, a real one and no dry run. The link becomes part of the
//! record, so that a decision can be walked back to what it rests on.

use countersign::contract::{Parameter, RecordKind, SnapshotId, ValueKind};
use countersign::{ArgValue, CallContext, ToolError};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The name of an answer's evidence as an argument: `evidence.snapshot_id` of its reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EvidenceId(String);

impl EvidenceId {
    /// The name as it was sent.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ArgValue for EvidenceId {
    const KIND: ValueKind = ValueKind::String;

    fn describe(mut parameter: Parameter) -> Parameter {
        parameter.bounds.pattern = Some("^ev_".to_owned());
        parameter.bounds.max_length = Some(64);
        parameter
    }
}

/// An earlier answer that a call rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct Ground<T> {
    /// Its evidence.
    pub id: SnapshotId,
    /// What it said.
    pub answer: T,
    /// Until when that may be relied on (A8).
    pub valid_until: Option<Timestamp>,
}

impl<T> Ground<T> {
    /// Whether it may still be relied on.
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        self.valid_until.is_none_or(|until| now < until)
    }
}

/// Reads the answer of `tool` that the evidence at this JSON pointer of the arguments names.
pub async fn read<T: DeserializeOwned>(
    ctx: &CallContext,
    pointer: &str,
    id: &EvidenceId,
    tool: &str,
) -> Result<Ground<T>, ToolError> {
    let refused = |message: String| {
        ToolError::invalid(pointer, message)
            .hint(format!("give evidence.snapshot_id of a reply of {tool}"))
    };
    let id: SnapshotId = id
        .as_str()
        .parse()
        .map_err(|_| refused("this is no name of evidence".to_owned()))?;
    let linked = ctx.link(&id).await.map_err(|error| {
        // Whether it is somebody else's or nobody's is not said.
        error.field(pointer).hint(format!(
            "call {tool} and give evidence.snapshot_id of its reply"
        ))
    })?;
    let record = &linked.record;
    let of = record.tool.as_ref().map(|of| of.name.as_str());
    if record.kind != RecordKind::Call || of != Some(tool) {
        let of = of.unwrap_or("no call");
        return Err(refused(format!("this is evidence of {of}, not of {tool}")));
    }
    if record.dry_run
        || record
            .reply
            .as_ref()
            .is_none_or(|reply| reply.code.is_some())
    {
        let message = "this call did not succeed, or was a dry run; nothing can rest on it";
        return Err(refused(message.to_owned()));
    }
    let answer = serde_json::from_value(linked.data).map_err(|error| {
        ToolError::not_found("what this call answered is no longer kept")
            .field(pointer)
            .hint(format!("call {tool} again"))
            .with_source(error)
    })?;
    Ok(Ground {
        id,
        answer,
        valid_until: linked.valid_until,
    })
}
