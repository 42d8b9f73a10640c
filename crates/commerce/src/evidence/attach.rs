//! `evidence.attach_to_draft_order`: attaches evidence to an order for later questions: another answer, or a document
//! in its original form, such as a payment mandate with all its signatures.

use countersign::contract::{Behaviour, Digest, Retention, SnapshotId};
use countersign::state::Collection;
use countersign::{CallContext, DryRun, Tool, ToolArgs, ToolError};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::behaviour;
use crate::checkout::Kept;
use crate::ground::{self, EvidenceId};
use crate::id::Id;
use crate::words::Say;

/// The documents themselves, sealed under the user's key and erased with the user.
const DOCUMENTS: Collection = Collection::of_user("draft_order_attachment");

/// The maximum size of a document, in bytes.
const ATTACHMENT_BYTES_MAX: usize = 64 * 1024;

/// The maximum number of attachments of one order.
const ATTACHED_MAX: usize = 32;

/// An attachment of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct Attached {
    /// Id of the attachment.
    pub attachment_id: String,
    /// Id of the draft order.
    pub draft_order_id: String,
    /// Kind of the attachment.
    pub kind: AttachmentKind,
    /// Digest: for a document the SHA-256 of its bytes, for an answer the hash of its leaf.
    pub digest: Digest,
    /// Size of a document in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<usize>,
    /// Evidence id of the attached answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<SnapshotId>,
    /// Time of the attachment.
    pub attached_at: Timestamp,
}

/// Kind of an attachment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, Deserialize, ToolArgs)]
#[serde(rename_all = "snake_case")]
pub enum AttachmentKind {
    /// Evidence of another answer.
    Evidence,
    /// Signed AP2 mandate for the items to buy.
    CheckoutMandate,
    /// Signed AP2 mandate for the amount to pay.
    PaymentMandate,
    /// Answer of a shop or a bank to a mandate.
    Receipt,
    /// Statement of the buyer.
    BuyerConsent,
    /// Any other document.
    Other,
}

/// The tool.
pub(super) struct AttachToDraftOrder;

/// Arguments.
#[derive(Deserialize, ToolArgs)]
pub(super) struct AttachArgs {
    /// `draft_order_id` from `checkout.create_draft_order`.
    #[arg(example = "order_0123456789abcdef")]
    draft_order_id: Id,
    /// `evidence.snapshot_id` of another reply; exactly one of this and `attachment`.
    #[arg(example = "ev_01a1e383-11f7-7cab-a9f3-00c0339b928b")]
    snapshot_id: Option<EvidenceId>,
    /// A document; exactly one of this and `snapshot_id`.
    attachment: Option<Document>,
}

/// A document.
#[derive(Deserialize, ToolArgs)]
pub(super) struct Document {
    /// Kind of the attachment.
    kind: AttachmentKind,
    /// Text of the document, byte for byte.
    #[arg(min_length = 1, max_length = 65_536, sensitive = "personal")]
    text: String,
}

impl Tool for AttachToDraftOrder {
    const NAME: &'static str = "evidence.attach_to_draft_order";
    const DESCRIPTION: &'static str =
        "Attaches another reply or a document of up to 64 KB to a draft order.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DRY_RUN: DryRun = DryRun::Simulate;
    type Args = AttachArgs;
    type Output = Attached;

    fn behaviour() -> Behaviour {
        Behaviour {
            retention: Retention::Long,
            ..behaviour::write_once()
        }
    }

    async fn call(&self, ctx: &CallContext, args: AttachArgs) -> Result<Attached, ToolError> {
        let mut kept = Kept::of(ctx, &args.draft_order_id).await?;
        if kept.attached.len() >= ATTACHED_MAX {
            let most = ATTACHED_MAX.to_string();
            let message = Say::AttachmentsFull { most };
            return Err(ToolError::invalid("/draft_order_id", message));
        }
        let attached = match (args.snapshot_id, args.attachment) {
            (Some(id), None) => answer(ctx, args.draft_order_id.into(), &id).await?,
            (None, Some(document)) => keep(ctx, args.draft_order_id.into(), document).await?,
            (Some(_), Some(_)) | (None, None) => {
                return Err(ToolError::invalid("/attachment", Say::AttachOne));
            }
        };
        kept.attached.push(attached.clone());
        kept.keep(ctx).await?;
        Ok(attached)
    }
}

/// Attaches an answer, which becomes a link of this call's record.
async fn answer(
    ctx: &CallContext,
    draft_order_id: String,
    id: &EvidenceId,
) -> Result<Attached, ToolError> {
    let (id, linked) = ground::look_at(ctx, "/snapshot_id", id, Say::GiveEvidence).await?;
    Ok(Attached {
        attachment_id: ctx.new_id("att_"),
        draft_order_id,
        kind: AttachmentKind::Evidence,
        digest: linked.leaf,
        bytes: None,
        snapshot_id: Some(id),
        attached_at: ctx.now(),
    })
}

/// Stores a document unchanged.
async fn keep(
    ctx: &CallContext,
    draft_order_id: String,
    document: Document,
) -> Result<Attached, ToolError> {
    let Document { kind, text } = document;
    let pointer = "/attachment/text";
    match kind {
        AttachmentKind::Evidence => {
            let message = Say::EvidenceByName;
            return Err(ToolError::invalid("/attachment/kind", message).hint(Say::UseSnapshotId));
        }
        AttachmentKind::CheckoutMandate
        | AttachmentKind::PaymentMandate
        | AttachmentKind::Receipt
        | AttachmentKind::BuyerConsent
        | AttachmentKind::Other => {}
    }
    if text.len() > ATTACHMENT_BYTES_MAX {
        let bytes = text.len().to_string();
        let most = ATTACHMENT_BYTES_MAX.to_string();
        return Err(ToolError::invalid(pointer, Say::DocumentBytes { bytes })
            .hint(Say::BytesAtMost { most }));
    }
    let attached = Attached {
        attachment_id: ctx.new_id("att_"),
        draft_order_id,
        kind,
        digest: Digest::of_bytes(text.as_bytes()),
        bytes: Some(text.len()),
        snapshot_id: None,
        attached_at: ctx.now(),
    };
    ctx.state()
        .put(&DOCUMENTS, &attached.attachment_id, &text)
        .await?;
    Ok(attached)
}
