//! `evidence.create_snapshot`: bundles several answers under one id, each with the hash of its leaf.

use countersign::contract::tool::EvidenceRule;
use countersign::contract::{Behaviour, Digest, Retention, SnapshotId};
use countersign::{CallContext, Tool, ToolArgs, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ground::{self, EvidenceId};
use crate::words::Say;

/// Answers that belong together. Nothing is copied: each is named, with the hash of its leaf in the log, so that
/// none can be exchanged for another later.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct EvidenceSnapshot {
    /// Purpose.
    pub purpose: Purpose,
    /// Each once, in the order in which they were named.
    pub entries: Vec<SnapshotEntry>,
    /// When the first of them stops being fresh, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<String>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct SnapshotEntry {
    /// Its evidence.
    pub snapshot_id: SnapshotId,
    /// Tool that gave the answer.
    pub tool: String,
    /// When it was asked, RFC 3339.
    pub at: String,
    /// The hash of its leaf.
    pub leaf: Digest,
    /// Commitment in its record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commitment: Option<Digest>,
    /// Until when it may be relied on, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<String>,
}

/// Purpose of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, Deserialize, ToolArgs)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A draft order is to rest on it.
    DraftOrder,
    /// A party disputes what was said.
    Dispute,
    /// To look at.
    Review,
}

/// The tool.
pub(super) struct CreateSnapshot;

/// Arguments.
#[derive(Deserialize, ToolArgs)]
pub(super) struct CreateSnapshotArgs {
    /// `evidence.snapshot_id` of each reply. For a draft order: the quote, the shipping options, the taxes, the compliance check and the total.
    #[arg(
        min_items = 1,
        max_items = 32,
        alias = "ids",
        example = ["ev_01a1e383-11f7-7cab-a9f3-00c0339b928b"]
    )]
    snapshot_ids: Vec<EvidenceId>,
    /// Purpose.
    #[arg(default = "draft_order")]
    purpose: Purpose,
}

impl Tool for CreateSnapshot {
    const NAME: &'static str = super::SNAPSHOT_TOOL;
    const DESCRIPTION: &'static str =
        "Bundles the evidence of earlier replies under one id, for checkout.create_draft_order.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Args = CreateSnapshotArgs;
    type Output = EvidenceSnapshot;

    fn behaviour() -> Behaviour {
        Behaviour {
            evidence: EvidenceRule::Required,
            retention: Retention::Long,
            ..Behaviour::default()
        }
    }

    async fn call(
        &self,
        ctx: &CallContext,
        args: CreateSnapshotArgs,
    ) -> Result<EvidenceSnapshot, ToolError> {
        let mut entries: Vec<SnapshotEntry> = Vec::with_capacity(args.snapshot_ids.len());
        let mut until = None;
        for (at, id) in args.snapshot_ids.iter().enumerate() {
            let pointer = format!("/snapshot_ids/{at}");
            let (id, linked) = ground::look_at(ctx, &pointer, id, Say::GiveEvidence).await?;
            if entries.iter().any(|entry| entry.snapshot_id == id) {
                continue;
            }
            let ends = linked.valid_until;
            until = ends
                .map(|ends| until.map_or(ends, |until| ends.min(until)))
                .or(until);
            entries.push(SnapshotEntry {
                snapshot_id: id,
                tool: ground::tool_of(&linked).unwrap_or_default().to_owned(),
                leaf: linked.leaf,
                commitment: linked.record.reply.and_then(|reply| reply.commitment),
                at: linked.record.at,
                valid_until: ends.map(|ends| ends.to_string()),
            });
        }
        if until.is_some_and(|until| until <= ctx.now()) {
            ctx.remark("EVIDENCE_EXPIRED", Say::EvidenceExpired);
        }
        Ok(EvidenceSnapshot {
            purpose: args.purpose,
            entries,
            valid_until: until.map(|until: jiff::Timestamp| until.to_string()),
        })
    }
}
