//! The parts that a draft order is made from.

use countersign::contract::SnapshotId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compliance::COMPLIANCE_TOOL;
use crate::pricing::QUOTE_TOOL;
use crate::shipping::SHIPPING_TOOL;
use crate::tax::TAX_TOOL;

use super::TOTAL_TOOL;

/// A part that a draft order rests on; errors name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The prices of the items.
    Quote,
    /// The shipping option and its price.
    Shipping,
    /// Duties and taxes.
    Tax,
    /// The compliance check.
    Compliance,
    /// The total.
    Total,
    /// The cart.
    Cart,
    /// The draft order itself.
    DraftOrder,
}

impl Part {
    /// The tool that gives it.
    pub const fn tool(self) -> &'static str {
        match self {
            Self::Quote => QUOTE_TOOL,
            Self::Shipping => SHIPPING_TOOL,
            Self::Tax => TAX_TOOL,
            Self::Compliance => COMPLIANCE_TOOL,
            Self::Total => TOTAL_TOOL,
            Self::Cart => "cart.get",
            Self::DraftOrder => super::DRAFT_ORDER_TOOL,
        }
    }

    /// Its name in `details`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Quote => "quote",
            Self::Shipping => "shipping",
            Self::Tax => "tax",
            Self::Compliance => "compliance",
            Self::Total => "total",
            Self::Cart => "cart",
            Self::DraftOrder => "draft_order",
        }
    }
}

/// Evidence ids of the answers that a total was computed from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct GroundIds {
    /// Evidence id of the price quote.
    pub quote_snapshot_id: SnapshotId,
    /// Evidence id of the shipping options.
    pub shipping_snapshot_id: SnapshotId,
    /// Evidence id of the duties and taxes.
    pub tax_snapshot_id: SnapshotId,
    /// Evidence id of the compliance check.
    pub compliance_snapshot_id: SnapshotId,
}
