//! Converts an answer of `checkout.get_draft_order_summary` to the content that both standards show.

use serde::Deserialize as _;
use serde_json::Value;

use super::{Session, SessionLine, SessionShipping, SessionState, Unbalanced};
use crate::checkout::{ConfirmationKind, OrderItem, OrderState, OrderSummary};

/// The tool whose answer a page is made from.
pub use crate::checkout::SUMMARY_TOOL;

/// The argument of [`SUMMARY_TOOL`] that names the order.
pub const SUMMARY_ARGUMENT: &str = "draft_order_id";

/// The reason why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The JSON is not an answer of [`SUMMARY_TOOL`]. Usually it is an answer of another tool.
    #[error("this is not a summary of a draft order")]
    NoSummary(#[source] serde_json::Error),
    /// The parts of the order do not add up to its total, which is a bug of the tools.
    /// Usually a rule was added without its line in the totals.
    #[error(transparent)]
    Unbalanced(#[from] Unbalanced),
}

impl Session {
    /// Reads the content of an order from an answer of [`SUMMARY_TOOL`].
    pub fn read(data: &Value) -> Result<Self, PageError> {
        let summary = OrderSummary::deserialize(data).map_err(PageError::NoSummary)?;
        Ok(summary.into())
    }
}

impl From<OrderSummary> for Session {
    fn from(summary: OrderSummary) -> Self {
        let order = summary.draft_order;
        let costs = order.pricing_breakdown;
        Self {
            id: summary.draft_order_id,
            state: match summary.state {
                OrderState::Open => SessionState::Open,
                OrderState::Locked => SessionState::Locked,
                OrderState::IntentCreated => SessionState::Payable,
                OrderState::Expired => SessionState::Expired,
            },
            lines: order.items.into_iter().map(line).collect(),
            shipping: SessionShipping {
                option_id: order.shipping_option_id,
                carrier: order.carrier,
                service: order.service,
                days_min: order.sla.days_min,
                days_max: order.sla.days_max,
                price: costs.shipping,
            },
            destination: order.destination,
            duty: costs.duty,
            tax: costs.tax,
            fees: costs.fees,
            total: costs.total,
            due_on_delivery: costs.due_on_delivery,
            acknowledge: summary
                .policy_ack_required
                .into_iter()
                .map(|ack| ack.text)
                .collect(),
            confirm: summary
                .must_confirm
                .into_iter()
                .map(|item| (name_of(item.kind).to_owned(), item.text))
                .collect(),
            created_at: order.created_at,
            expires_at: summary.expires_at,
            held_until: summary.lock.map(|lock| lock.expires_at),
            quote_snapshot_id: order.grounds.quote_snapshot_id.to_string(),
            evidence_snapshot_id: order.evidence_snapshot_id.to_string(),
        }
    }
}

fn line(item: OrderItem) -> SessionLine {
    SessionLine {
        sku: item.sku,
        offer_id: item.offer_id,
        title: item.title,
        quantity: item.quantity,
        unit_price: item.unit_price,
        line_total: item.line_total,
    }
}

/// The code of a confirmation. UCP leaves message codes open; these are the names of our own wire format.
const fn name_of(kind: ConfirmationKind) -> &'static str {
    match kind {
        ConfirmationKind::TaxUncertainty => "tax_uncertainty",
        ConfirmationKind::CustomsFields => "customs_fields",
        ConfirmationKind::ComplianceRisk => "compliance_risk",
        ConfirmationKind::ReturnCost => "return_cost",
        ConfirmationKind::RouteLimits => "route_limits",
    }
}
