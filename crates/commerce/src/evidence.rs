//! Evidence snapshots, and their attachment to a draft order.

use countersign::catalog::CatalogBuilder;

mod attach;
mod snapshot;

pub use attach::{Attached, AttachmentKind};
pub use snapshot::{EvidenceSnapshot, Purpose, SnapshotEntry};

/// The tool that bundles the evidence that a draft order rests on.
pub const SNAPSHOT_TOOL: &str = "evidence.create_snapshot";

/// Adds the tools of this area.
pub(crate) fn tools(builder: CatalogBuilder) -> CatalogBuilder {
    builder
        .tool(snapshot::CreateSnapshot)
        .tool(attach::AttachToDraftOrder)
}
