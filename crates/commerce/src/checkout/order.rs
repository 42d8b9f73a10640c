//! A draft order: everything that a buyer has to know before paying, and the evidence that it rests on.

use countersign::archive::KnownThing;
use countersign::contract::{Digest, SnapshotId};
use countersign::state::Collection;
use countersign::{CallContext, ToolError};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::confirm::{ConfirmationItem, PolicyAck};
use super::part::GroundIds;
use super::total::Breakdown;
use super::{address, changed};
use crate::compliance::{Decision, Finding};
use crate::destination::Destination;
use crate::evidence::Attached;
use crate::item::{Basket, Item};
use crate::money::Money;
use crate::payment::PaymentIntent;
use crate::shipping::Sla;
use crate::shop::Returns;
use crate::tax::{Confidence, Incoterm};
use crate::words::Say;

/// The draft orders, kept for each user; no other user can find them.
const ORDERS: Collection = Collection::of_user("draft_order");

/// Leads from the id of an order to the record of the call that made it.
pub(crate) const RECORD_OF_ORDER: KnownThing = KnownThing {
    prefix: "order_",
    collection: "draft_order",
    request_id: "/request_id",
    made_from: &["cart_"],
};

/// The order that was made from a bundle of evidence: one order for each bundle, whatever the idempotency key.
const ORDER_OF: Collection = Collection::of_user("draft_order_of");

/// An order that a person can pay for. It does not change after it was made.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct DraftOrder {
    /// Id of the draft order.
    pub draft_order_id: String,
    /// Creation time, RFC 3339.
    pub created_at: Timestamp,
    /// Expiry: the order can be paid for until then.
    pub expires_at: Timestamp,
    /// Id of the cart that it was made from. The cart stays unchanged.
    pub cart_id: String,
    /// Version of that cart.
    pub cart_version: u64,
    /// Digest of the items.
    pub basket: Digest,
    /// Items with prices.
    pub items: Vec<OrderItem>,
    /// Destination.
    pub destination: Destination,
    /// Id of the stored address that it goes to, if one was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_id: Option<String>,
    /// Version of that address. If the address changes, the order cannot be shipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_version: Option<u32>,
    /// Id of the chosen shipping option.
    pub shipping_option_id: String,
    /// Carrier.
    pub carrier: String,
    /// Service of the carrier.
    pub service: String,
    /// Delivery time.
    pub sla: Sla,
    /// Limits of the route, in words for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub route_limits: Vec<String>,
    /// Price breakdown.
    pub pricing_breakdown: Breakdown,
    /// Duties and taxes, and the confidence of their estimate.
    pub tax_summary: TaxSummary,
    /// Compliance decision for the destination, with conditions.
    pub compliance_summary: ComplianceSummary,
    /// Policies that the buyer has to acknowledge before paying.
    pub policy_ack_required: Vec<PolicyAck>,
    /// Topics that the buyer has to confirm.
    pub confirmation_items: Vec<ConfirmationItem>,
    /// Evidence id of the snapshot that all answers of this order are in.
    pub evidence_snapshot_id: SnapshotId,
    /// Evidence ids of the single answers.
    #[serde(flatten)]
    pub grounds: GroundIds,
    /// Evidence id of the total that was computed from these answers.
    pub total_snapshot_id: SnapshotId,
    /// Rule sets that were used for this order.
    pub rules: Vec<RuleUsed>,
}

impl DraftOrder {
    /// The items of the order as a basket.
    pub(super) fn basket(&self) -> Result<Basket, ToolError> {
        let item = |item: &OrderItem| Item {
            sku: item.sku.clone(),
            quantity: item.quantity,
        };
        let items: Vec<Item> = self.items.iter().map(item).collect();
        Basket::of(&items, "/draft_order_id")
    }
}

/// An item of the order and its quantity.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct OrderItem {
    /// Stock keeping unit.
    pub sku: String,
    /// Id of the offer.
    pub offer_id: String,
    /// Title, in the language of the quote.
    pub title: String,
    /// Quantity.
    pub quantity: u32,
    /// Price of one.
    pub unit_price: Money,
    /// Price of the whole quantity.
    pub line_total: Money,
    /// Customs code: Harmonized System, six digits.
    pub hs_code: String,
    /// Country of origin.
    pub origin: String,
    /// Country that it ships from.
    pub ships_from: String,
    /// Return terms.
    pub returns: Returns,
}

/// Confidence of duties and taxes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct TaxSummary {
    /// Payer of duties and taxes.
    pub incoterm: Incoterm,
    /// Method of computation.
    pub method: String,
    /// Confidence of the estimate.
    pub confidence: Confidence,
    /// Reasons why the estimate is not more certain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Compliance decision of an order.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct ComplianceSummary {
    /// Decision.
    pub decision: Decision,
    /// Version of the compliance rules. They were checked again when the order was made.
    pub ruleset_version: String,
    /// Findings, item by item.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<OrderFinding>,
}

/// A finding about one item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct OrderFinding {
    /// SKU of the item.
    pub sku: String,
    /// Finding.
    #[serde(flatten)]
    pub finding: Finding,
}

/// A rule set that was used for an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct RuleUsed {
    /// Name of the rule set, such as `tax`.
    pub name: String,
    /// Version of the rule set: the digest of its file.
    pub version: String,
}

/// State of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderState {
    /// Open: the order can be locked.
    Open,
    /// Locked: its price and its items are reserved.
    Locked,
    /// A person can pay for the order now.
    IntentCreated,
    /// Expired: the order can no longer be locked or paid.
    Expired,
}

/// Reserved price and stock of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct OrderLock {
    /// Id of the lock. The stock reservation has the same id.
    pub lock_id: String,
    /// Expiry of the lock.
    pub expires_at: Timestamp,
}

/// A draft order as it is stored: the order itself, and its lock, payment intent and attachments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub(crate) order: DraftOrder,
    /// The request id of the call that made it; leads to its record.
    pub(crate) request_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lock: Option<OrderLock>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) intent: Option<PaymentIntent>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) attached: Vec<Attached>,
}

impl Kept {
    /// Reads the order of this user that the argument `draft_order_id` names. Another user's order is answered exactly
    /// like a missing one.
    pub(crate) async fn of(ctx: &CallContext, id: &str) -> Result<Self, ToolError> {
        let kept = ctx.state().get(&ORDERS, id).await?;
        kept.ok_or_else(|| {
            let draft_order_id = id.to_owned();
            ToolError::not_found(Say::NoOrder { draft_order_id })
                .field("/draft_order_id")
                .hint(Say::CreateOrder)
        })
    }

    /// The order that was made from this bundle of evidence; `None` if there is none, it has expired, or its address
    /// has changed.
    pub(super) async fn made_from(
        ctx: &CallContext,
        bundle: &SnapshotId,
    ) -> Result<Option<Self>, ToolError> {
        let id: Option<String> = ctx.state().get(&ORDER_OF, bundle.as_str()).await?;
        let Some(id) = id else {
            return Ok(None);
        };
        let kept: Option<Self> = ctx.state().get(&ORDERS, &id).await?;
        match kept.filter(|kept| !kept.is_expired(ctx.now())) {
            Some(kept) if kept.has_its_address(ctx).await? => Ok(Some(kept)),
            Some(_) | None => Ok(None),
        }
    }

    /// True if the user's address has not changed since the order was made.
    async fn has_its_address(&self, ctx: &CallContext) -> Result<bool, ToolError> {
        let Some(address_id) = &self.order.address_id else {
            return Ok(true);
        };
        let now = address::version(ctx, address_id).await?;
        Ok(now == self.order.address_version)
    }

    /// Stores a new order, by its own id and by that of its evidence.
    pub(super) async fn keep_new(&self, ctx: &CallContext) -> Result<(), ToolError> {
        let bundle = self.order.evidence_snapshot_id.as_str();
        let id = &self.order.draft_order_id;
        ctx.state().put(&ORDER_OF, bundle, id).await?;
        self.keep(ctx).await
    }

    /// Stores the order with the call.
    pub(crate) async fn keep(&self, ctx: &CallContext) -> Result<(), ToolError> {
        let id = &self.order.draft_order_id;
        ctx.state().put(&ORDERS, id, self).await
    }

    /// Refuses an expired order, with its current cost (A8), and one whose address has changed since: its quotes were
    /// for the old address.
    pub(crate) async fn check_valid(&self, ctx: &CallContext) -> Result<(), ToolError> {
        if self.is_expired(ctx.now()) {
            return Err(changed::order_expired(ctx, &self.order));
        }
        if !self.has_its_address(ctx).await? {
            return Err(address::moved());
        }
        Ok(())
    }

    /// True if the order has expired.
    pub(crate) fn is_expired(&self, now: Timestamp) -> bool {
        now >= self.order.expires_at
    }

    /// The lock; `None` if it or the order has expired.
    pub(crate) fn held(&self, now: Timestamp) -> Option<&OrderLock> {
        let lock = self.lock.as_ref().filter(|_| !self.is_expired(now));
        lock.filter(|lock| now < lock.expires_at)
    }

    /// The payment intent; `None` unless the lock that it was made under is still held.
    pub(crate) fn payable(&self, now: Timestamp) -> Option<&PaymentIntent> {
        let lock = self.held(now)?;
        let intent = self.intent.as_ref();
        intent.filter(|intent| intent.lock_id == lock.lock_id)
    }

    /// The state of the order.
    pub(crate) fn state(&self, now: Timestamp) -> OrderState {
        if self.is_expired(now) {
            OrderState::Expired
        } else if self.payable(now).is_some() {
            OrderState::IntentCreated
        } else if self.held(now).is_some() {
            OrderState::Locked
        } else {
            OrderState::Open
        }
    }
}
