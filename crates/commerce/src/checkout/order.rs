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

/// An order that is ready to be paid for by a person. Nothing of it changes any more.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct DraftOrder {
    /// Its name.
    pub draft_order_id: String,
    /// When it was made, RFC 3339.
    pub created_at: Timestamp,
    /// Until when it can be paid for.
    pub expires_at: Timestamp,
    /// The cart that it was made from, which stays as it is.
    pub cart_id: String,
    /// In which version.
    pub cart_version: u64,
    /// Digest of the items.
    pub basket: Digest,
    /// Items with prices.
    pub items: Vec<OrderItem>,
    /// Destination.
    pub destination: Destination,
    /// The address of the user that it goes to, where one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_id: Option<String>,
    /// In which version: an order goes where it was priced and allowed to go, or nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_version: Option<u32>,
    /// By which way.
    pub shipping_option_id: String,
    /// Carrier.
    pub carrier: String,
    /// Which of its services.
    pub service: String,
    /// Delivery time.
    pub sla: Sla,
    /// Limits of the route, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub route_limits: Vec<String>,
    /// Price, part by part.
    pub pricing_breakdown: Breakdown,
    /// Confidence of duties and taxes.
    pub tax_summary: TaxSummary,
    /// Compliance decision for the destination, with conditions.
    pub compliance_summary: ComplianceSummary,
    /// Policies that the buyer has to acknowledge before paying.
    pub policy_ack_required: Vec<PolicyAck>,
    /// Topics that the buyer has to confirm.
    pub confirmation_items: Vec<ConfirmationItem>,
    /// The bundle of everything that it rests on.
    pub evidence_snapshot_id: SnapshotId,
    /// The single answers.
    #[serde(flatten)]
    pub grounds: GroundIds,
    /// And their total.
    pub total_snapshot_id: SnapshotId,
    /// The rule sets that all of it came from.
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

/// So many of one thing.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct OrderItem {
    /// Stock keeping unit.
    pub sku: String,
    /// Its offer.
    pub offer_id: String,
    /// Title, in the language of the quote.
    pub title: String,
    /// Quantity.
    pub quantity: u32,
    /// Price of one.
    pub unit_price: Money,
    /// Price of all.
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
    /// Payer of the duties.
    pub incoterm: Incoterm,
    /// Method of computation.
    pub method: String,
    /// Confidence.
    pub confidence: Confidence,
    /// Why they are no surer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Compliance of an order.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct ComplianceSummary {
    /// Decision.
    pub decision: Decision,
    /// By the rules of this version, which were asked again when the order was made.
    pub ruleset_version: String,
    /// Findings, item by item.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<OrderFinding>,
}

/// Something that was found about one thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct OrderFinding {
    /// Which thing.
    pub sku: String,
    /// Finding.
    #[serde(flatten)]
    pub finding: Finding,
}

/// A rule set that an order rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct RuleUsed {
    /// Such as `tax`.
    pub name: String,
    /// The digest of its file.
    pub version: String,
}

/// State of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderState {
    /// It can be locked.
    Open,
    /// Its price and its things are held.
    Locked,
    /// A person can pay for it now.
    IntentCreated,
    /// It is over.
    Expired,
}

/// Price and stock of an order, held for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct OrderLock {
    /// Its name, in the stock as well.
    pub lock_id: String,
    /// When it ends by itself.
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
