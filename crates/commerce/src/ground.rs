//! How one answer rests on another, or looks at it: by the name of its evidence, which only the gateway writes.
//!
//! What an agent says about an earlier answer is never believed. It names the evidence, and the answer is read
//! from there: of the same user, of the right tool, a real one and no dry run. The link becomes part of the
//! record, so that a decision can be walked back to what it rests on.

use std::collections::BTreeMap;

use countersign::contract::{Parameter, RecordKind, SnapshotId, ValueKind, Wording};
use countersign::state::Linked;
use countersign::{ArgValue, CallContext, ToolError};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::words::Say;

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

impl From<&SnapshotId> for EvidenceId {
    fn from(id: &SnapshotId) -> Self {
        Self(id.to_string())
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

/// An earlier answer that a call looks at, and may rest on.
#[derive(Debug, Clone, PartialEq)]
pub struct Ground<T> {
    /// Its evidence.
    pub id: SnapshotId,
    /// What it said.
    pub answer: T,
    /// Until when that may be relied on (A8).
    pub valid_until: Option<Timestamp>,
    /// The rule sets that it came from: name and version (A15).
    pub rules: BTreeMap<String, String>,
    /// The record of it, without its answer.
    linked: Linked,
}

impl<T> Ground<T> {
    /// Rests the call on it; false where its window is over, and then nothing may. An answer without a window says
    /// nothing about later: `evidence.create_snapshot` has none, and what it names is asked one by one.
    pub fn rests(&self, ctx: &CallContext) -> bool {
        self.valid_until.is_some() && ctx.rest_on(&self.linked).is_ok()
    }
}

/// Reads the answer of `tool` that the evidence at this JSON pointer of the arguments names.
pub async fn read<T: DeserializeOwned>(
    ctx: &CallContext,
    pointer: &str,
    id: &EvidenceId,
    tool: &str,
) -> Result<Ground<T>, ToolError> {
    let named = || tool.to_owned();
    let hint = || Say::CallAndGive { tool: named() };
    let (id, mut linked) = look_at(ctx, pointer, id, hint()).await?;
    let of = tool_of(&linked);
    if of != Some(tool) {
        let message = match of.map(str::to_owned) {
            Some(of) => Say::EvidenceOfOther { of, tool: named() },
            None => Say::EvidenceOfNoCall { tool: named() },
        };
        return Err(ToolError::invalid(pointer, message).hint(hint()));
    }
    let data = std::mem::take(&mut linked.data);
    let answer = serde_json::from_value(data).map_err(|error| {
        ToolError::not_found(Say::AnswerGone)
            .field(pointer)
            .hint(Say::CallAgain { tool: named() })
            .with_source(error)
    })?;
    Ok(Ground {
        id,
        answer,
        valid_until: linked.valid_until,
        rules: linked.record.rules.clone(),
        linked,
    })
}

/// Looks at the call that the evidence at this JSON pointer of the arguments names, whatever tool it was: of the same
/// user, a call that worked and was no dry run.
pub async fn look_at(
    ctx: &CallContext,
    pointer: &str,
    id: &EvidenceId,
    hint: impl Into<Wording>,
) -> Result<(SnapshotId, Linked), ToolError> {
    let hint = hint.into();
    let refused = |message: Say| ToolError::invalid(pointer, message).hint(hint.clone());
    let id: SnapshotId = id
        .as_str()
        .parse()
        .map_err(|_| refused(Say::NoEvidenceName))?;
    // Whether it is somebody else's or nobody's is not said.
    let linked = ctx.link(&id).await;
    let linked = linked.map_err(|error| error.field(pointer).hint(hint.clone()))?;
    let record = &linked.record;
    if record.kind != RecordKind::Call {
        return Err(refused(Say::NotOfACall));
    }
    let reply = record.reply.as_ref();
    if record.dry_run || reply.is_none_or(|reply| reply.code.is_some()) {
        return Err(refused(Say::NothingRestsOnIt));
    }
    Ok((id, linked))
}

/// The tool that was called.
pub fn tool_of(linked: &Linked) -> Option<&str> {
    linked.record.tool.as_ref().map(|of| of.name.as_str())
}
