//! `evidence.create_snapshot`: bundles several answers under one id, each with the hash of its leaf.

use countersign::contract::tool::EvidenceRule;
use countersign::contract::{Behaviour, Digest, Retention, SnapshotId};
use countersign::{CallContext, Tool, ToolArgs, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ground::{self, EvidenceId};
use crate::words::Say;

/// A list of earlier answers under one evidence id. Each entry has the leaf hash of its answer, so that no answer can be exchanged later.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct EvidenceSnapshot {
    /// Purpose of the snapshot.
    pub purpose: Purpose,
    /// The answers, each once, in the given order.
    pub entries: Vec<SnapshotEntry>,
    /// Time at which the first answer expires, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<String>,
}

/// One answer of a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct SnapshotEntry {
    /// Evidence id of the answer.
    pub snapshot_id: SnapshotId,
    /// Tool that gave the answer.
    pub tool: String,
    /// Time of the answer, RFC 3339.
    pub at: String,
    /// Leaf hash of the answer.
    pub leaf: Digest,
    /// Commitment to the answer, from its record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commitment: Option<Digest>,
    /// Expiry of the answer, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<String>,
}

/// Purpose of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, Deserialize, ToolArgs)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Basis of a draft order.
    DraftOrder,
    /// A party disputes an answer or an order.
    Dispute,
    /// For review only.
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
    /// Purpose of the snapshot.
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
