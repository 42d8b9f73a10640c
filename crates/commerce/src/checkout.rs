//! From a cart to a draft order, and no further.
//!
//! Read `total` first (the one computation), then `grounds` (the answers that it rests on), `compute`, `draft` and
//! `lock`. `again` and `changed` compare an order with the current state of what it rests on, `gate` refuses orders
//! that must not be made, `own` finds what a user already holds.

use countersign::catalog::CatalogBuilder;

mod address;
mod again;
mod changed;
mod compute;
mod confirm;
mod draft;
mod gate;
mod grounds;
mod lock;
mod order;
mod own;
mod part;
mod select;
mod summary;
mod total;

pub use compute::Total;
pub use confirm::{ConfirmationItem, ConfirmationKind, Policy, PolicyAck};
pub(crate) use grounds::{Grounds, Pointers};
pub use lock::{Locked, LockedItem};
pub use order::{
    ComplianceSummary, DraftOrder, OrderFinding, OrderItem, OrderLock, OrderState, RuleUsed,
    TaxSummary,
};
pub(crate) use order::{Kept, RECORD_OF_ORDER};
pub use part::{GroundIds, Part};
pub use summary::OrderSummary;
pub use total::Breakdown;

/// The tool that computes a total. A draft order rests on its evidence, besides that of the areas.
pub const TOTAL_TOOL: &str = "checkout.compute_total";

/// The tool that makes draft orders.
pub const DRAFT_ORDER_TOOL: &str = "checkout.create_draft_order";

/// The tool that shows the state of a draft order.
pub const SUMMARY_TOOL: &str = "checkout.get_draft_order_summary";

/// Adds the tools of this area.
pub(crate) fn tools(builder: CatalogBuilder) -> CatalogBuilder {
    builder
        .tool(select::SelectShippingOption)
        .tool(compute::ComputeTotal)
        .tool(draft::CreateDraftOrder)
        .tool(summary::GetDraftOrderSummary)
        .tool(lock::LockPriceAndStock)
}
