//! Links from one answer to an earlier one that it reads or rests on, by the id of its evidence, which only the gateway
//! assigns.
//!
//! An agent's claim about an earlier answer is never believed. It names the evidence, and the answer is read from
//! there: of the same user, of the right tool, a real call and no dry run. The link becomes part of the record, so that
//! a decision can be traced back to everything it rests on.

use std::collections::BTreeMap;

use countersign::contract::{Parameter, RecordKind, SnapshotId, ValueKind, Wording};
use countersign::state::Linked;
use countersign::{ArgValue, CallContext, ToolError};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::words::Say;

/// The id of an answer's evidence as an argument: `evidence.snapshot_id` of its reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EvidenceId(String);

impl EvidenceId {
    /// The id as it was sent.
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

/// An earlier answer that a call reads, and may rest on.
#[derive(Debug, Clone, PartialEq)]
pub struct Ground<T> {
    /// The id of its evidence.
    pub id: SnapshotId,
    /// The answer.
    pub answer: T,
    /// The end of its TTL (A8); `None` if it has none.
    pub valid_until: Option<Timestamp>,
    /// The rule sets that it was computed with: name and version (A15).
    pub rules: BTreeMap<String, String>,
    /// Its record, without the answer.
    linked: Linked,
}

impl<T> Ground<T> {
    /// Rests the call on this answer; false if its TTL is over, and then the call must not rest on it. It is also false
    /// for an answer without a TTL, such as that of `evidence.create_snapshot`: the answers that it names are checked
    /// one by one.
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

/// Reads the record of the call that the evidence at this JSON pointer of the arguments names, whatever its tool: of
/// the same user, a call that succeeded and was no dry run.
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
    // Another user's evidence is answered exactly like a missing one.
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

/// The name of the tool that was called.
pub fn tool_of(linked: &Linked) -> Option<&str> {
    linked.record.tool.as_ref().map(|of| of.name.as_str())
}
