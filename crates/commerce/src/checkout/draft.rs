//! `checkout.create_draft_order`: an order from five answers about the same user, cart and items, all of them fresh.
//!
//! The agent gives two ids only: the cart, and the evidence. Everything else is read from the evidence, computed again,
//! and refused if it does not agree.

use countersign::contract::tool::Payment;
use countersign::contract::{Behaviour, Retention, SnapshotId};
use countersign::{CallContext, DryRun, Tool, ToolArgs, ToolError};
use serde::Deserialize;
use serde_json::json;

use super::changed::Changed;
use super::compute::Total;
use super::grounds::{Grounds, Pointers, Subject};
use super::order::{
    ComplianceSummary, DraftOrder, Kept, OrderFinding, OrderItem, RuleUsed, TaxSummary,
};
use super::part::{GroundIds, Part};
use super::total::Breakdown;
use super::{address, confirm, gate};
use crate::behaviour::{self, DRAFT_ORDER_SECONDS};
use crate::cart::Cart;
use crate::compliance::{self, ComplianceReport};
use crate::evidence::{EvidenceSnapshot, Purpose, SNAPSHOT_TOOL};
use crate::ground::{self, EvidenceId, Ground};
use crate::id::Id;
use crate::item::Basket;
use crate::shop::Shop;
use crate::words::Say;

/// The tool.
pub(super) struct CreateDraftOrder;

/// Arguments.
#[derive(Deserialize, ToolArgs)]
pub(super) struct CreateDraftOrderArgs {
    /// `cart_id` of the cart to order.
    #[arg(example = "cart_0123456789abcdef")]
    cart_id: Id,
    /// `evidence.snapshot_id` of `evidence.create_snapshot`.
    #[arg(example = "ev_01a1e383-11f7-7cab-a9f3-00c0339b928b")]
    evidence_snapshot_id: EvidenceId,
}

/// The argument that names all evidence.
const POINTER: &str = "/evidence_snapshot_id";
const AT: Pointers = Pointers::all(POINTER);

/// A20: idempotency keys are kept a day beyond the TTL of the order.
const KEY_SECONDS: u64 = 24 * 60 * 60;

impl Tool for CreateDraftOrder {
    const NAME: &'static str = super::DRAFT_ORDER_TOOL;
    const DESCRIPTION: &'static str = "Creates a draft order of a cart from valid evidence about it. It charges nothing: a person pays \
        later. PRICE_CHANGED has the old and the new total.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DRY_RUN: DryRun = DryRun::Simulate;
    type Args = CreateDraftOrderArgs;
    type Output = DraftOrder;

    fn behaviour() -> Behaviour {
        let mut behaviour = Behaviour {
            ttl_seconds: Some(DRAFT_ORDER_SECONDS),
            payment: Payment::Intent,
            retention: Retention::Long,
            ..behaviour::write_once()
        };
        behaviour.idempotency.retention_seconds = KEY_SECONDS;
        behaviour
    }

    async fn call(
        &self,
        ctx: &CallContext,
        args: CreateDraftOrderArgs,
    ) -> Result<DraftOrder, ToolError> {
        let now = ctx.now();
        let cart = Cart::of(ctx, &args.cart_id).await?;
        let basis = Basis::read(ctx, &args).await?;
        basis.check(&args.cart_id)?;
        if let Some(kept) = Kept::made_from(ctx, &basis.bundle).await? {
            let left = kept.order.expires_at.duration_since(now).as_secs();
            ctx.fresh_for(u32::try_from(left).unwrap_or_default());
            return Ok(kept.order);
        }
        let breakdown = basis.breakdown()?;
        let mut changed = Changed::of(ctx, &cart, &breakdown, &basis.grounds);
        changed.expired(basis.expired(ctx));
        if cart.version != basis.total.answer.cart_version {
            changed.moved(Part::Cart);
            return Err(changed.error(POINTER));
        }
        let report = basis.comply_now(ctx, &cart.basket)?;
        changed.compare();
        if !changed.is_nothing() {
            return Err(changed.error(POINTER));
        }
        let chosen = cart.shipping.as_ref();
        let chosen = chosen.and_then(|chosen| chosen.address_id.as_deref());
        let address_version = match chosen {
            // The user may have changed the address since it was selected.
            Some(address_id) => {
                let destination = &basis.total.answer.destination;
                Some(address::check(ctx, address_id, destination, "/cart_id").await?)
            }
            None => None,
        };
        let shop = Shop::of(ctx)?;
        gate::in_stock(ctx, &shop, (&args.cart_id, &cart.basket), "/cart_id").await?;
        let mut order = basis.order(ctx, &cart, &shop, breakdown, &report)?;
        order.address_version = address_version;
        let kept = Kept {
            order,
            request_id: ctx.request_id().to_string(),
            lock: None,
            intent: None,
            attached: Vec::new(),
        };
        kept.keep_new(ctx).await?;
        Ok(kept.order)
    }
}

/// The evidence that an order rests on.
struct Basis {
    bundle: SnapshotId,
    total: Ground<Total>,
    grounds: Grounds,
}

impl Basis {
    async fn read(ctx: &CallContext, args: &CreateDraftOrderArgs) -> Result<Self, ToolError> {
        let id = &args.evidence_snapshot_id;
        let bundle: Ground<EvidenceSnapshot> =
            ground::read(ctx, POINTER, id, SNAPSHOT_TOOL).await?;
        check_purpose(bundle.answer.purpose)?;
        let named = &bundle.answer;
        let ids = GroundIds {
            quote_snapshot_id: only(named, Part::Quote)?,
            shipping_snapshot_id: only(named, Part::Shipping)?,
            tax_snapshot_id: only(named, Part::Tax)?,
            compliance_snapshot_id: only(named, Part::Compliance)?,
        };
        let total = only(named, Part::Total)?;
        let grounds = Grounds::read(ctx, &ids, &AT).await?;
        let total: Ground<Total> =
            ground::read(ctx, POINTER, &EvidenceId::from(&total), Part::Total.tool()).await?;
        if total.answer.grounds != ids {
            return Err(ToolError::invalid(POINTER, Say::OtherGrounds).hint(Say::BundleGrounds));
        }
        Ok(Self {
            bundle: bundle.id,
            total,
            grounds,
        })
    }

    /// Checks that all answers are about this cart, as the total says.
    fn check(&self, cart_id: &str) -> Result<(), ToolError> {
        let total = &self.total.answer;
        if total.cart_id != cart_id {
            let message = Say::TotalOfOtherCart;
            return Err(ToolError::invalid(POINTER, message).hint(Say::TotalForCart));
        }
        let subject = Subject {
            cart_id,
            basket: total.basket,
            currency: Some(&total.currency),
            destination: &total.destination,
            option_id: &total.shipping_option_id,
        };
        self.grounds.check(&subject, &AT)
    }

    /// The breakdown, computed again from the answers that it rests on; an error if it differs from the total.
    fn breakdown(&self) -> Result<Breakdown, ToolError> {
        let total = &self.total.answer;
        let option = self.grounds.option(&total.shipping_option_id, &AT)?;
        let again = self.grounds.breakdown(option)?;
        if again == total.breakdown {
            return Ok(again);
        }
        Err(ToolError::invalid(POINTER, Say::TotalDoesNotFollow).hint(Say::ComputeTotalAgain))
    }

    /// Rests the order on all answers; returns the parts whose TTL is over.
    fn expired(&self, ctx: &CallContext) -> Vec<Part> {
        let mut parts = self.grounds.expired(ctx);
        if !self.total.rests(ctx) {
            parts.push(Part::Total);
        }
        parts
    }

    /// Checks compliance again: a check is valid for an hour, but rules may change at any time. The order has to be
    /// allowed by both.
    fn comply_now(
        &self,
        ctx: &CallContext,
        basket: &Basket,
    ) -> Result<ComplianceReport, ToolError> {
        gate::may_go(&self.grounds.compliance.answer, POINTER)?;
        let destination = &self.total.answer.destination;
        let report = compliance::check(ctx, basket, destination)?;
        gate::may_go(&report, POINTER)?;
        Ok(report)
    }

    fn order(
        &self,
        ctx: &CallContext,
        cart: &Cart,
        shop: &Shop,
        breakdown: Breakdown,
        report: &ComplianceReport,
    ) -> Result<DraftOrder, ToolError> {
        let (total, now) = (&self.total.answer, ctx.now());
        let option = self.grounds.option(&total.shipping_option_id, &AT)?;
        let tax = &self.grounds.tax.answer;
        let mut order = DraftOrder {
            draft_order_id: ctx.new_id("order_"),
            created_at: now,
            expires_at: behaviour::later(ctx, DRAFT_ORDER_SECONDS),
            cart_id: total.cart_id.clone(),
            cart_version: total.cart_version,
            basket: total.basket,
            items: self.items(shop)?,
            destination: total.destination.clone(),
            address_id: cart
                .shipping
                .as_ref()
                .and_then(|chosen| chosen.address_id.clone()),
            address_version: None,
            shipping_option_id: option.option_id.clone(),
            carrier: option.carrier.clone(),
            service: option.service.clone(),
            sla: option.sla.clone(),
            route_limits: option.restrictions.clone(),
            pricing_breakdown: breakdown,
            tax_summary: TaxSummary {
                incoterm: tax.incoterm,
                method: tax.method.clone(),
                confidence: tax.confidence,
                notes: tax.notes.clone(),
            },
            compliance_summary: summary(report),
            policy_ack_required: Vec::new(),
            confirmation_items: Vec::new(),
            evidence_snapshot_id: self.bundle.clone(),
            grounds: total.grounds.clone(),
            total_snapshot_id: self.total.id.clone(),
            rules: self.rules(ctx)?,
        };
        let locale = ctx.request().locale.as_deref();
        order.policy_ack_required = confirm::policies(&order, locale);
        order.confirmation_items = confirm::items(&order, locale);
        Ok(order)
    }

    fn items(&self, shop: &Shop) -> Result<Vec<OrderItem>, ToolError> {
        let mut items = Vec::new();
        for line in &self.grounds.quote.answer.lines {
            let (offer, _) = shop.known(&line.sku, POINTER)?;
            items.push(OrderItem {
                sku: line.sku.clone(),
                offer_id: line.offer_id.clone(),
                title: line.title.clone(),
                quantity: line.quantity,
                unit_price: line.unit_price.clone(),
                line_total: line.line_total.clone(),
                hs_code: offer.hs_code.clone(),
                origin: offer.origin.clone(),
                ships_from: offer.ships_from.clone(),
                returns: offer.returns.clone(),
            });
        }
        Ok(items)
    }

    /// The rule sets of the answers, and those of the computations that were repeated.
    fn rules(&self, ctx: &CallContext) -> Result<Vec<RuleUsed>, ToolError> {
        let mut rules = self.grounds.rules();
        let mut names: Vec<String> = rules.iter().map(|(name, _)| name.clone()).collect();
        names.dedup();
        for name in names {
            let version = ctx.rules(&name)?.version.to_string();
            rules.push((name, version));
        }
        rules.sort();
        rules.dedup();
        let rules = rules.into_iter();
        let used = rules.map(|(name, version)| RuleUsed { name, version });
        Ok(used.collect())
    }
}

fn summary(report: &ComplianceReport) -> ComplianceSummary {
    let findings = report.lines.iter().flat_map(|line| {
        line.findings.iter().map(|finding| OrderFinding {
            sku: line.sku.clone(),
            finding: finding.clone(),
        })
    });
    ComplianceSummary {
        decision: report.decision,
        ruleset_version: report.ruleset_version.clone(),
        findings: findings.collect(),
    }
}

/// Refuses a snapshot that was made for another purpose than an order.
fn check_purpose(purpose: Purpose) -> Result<(), ToolError> {
    match purpose {
        Purpose::DraftOrder => Ok(()),
        Purpose::Dispute | Purpose::Review => {
            Err(ToolError::invalid(POINTER, Say::OtherPurpose).hint(Say::SnapshotForOrder))
        }
    }
}

/// The one answer of this part in the snapshot; an error if there is none, or more than one.
fn only(snapshot: &EvidenceSnapshot, part: Part) -> Result<SnapshotId, ToolError> {
    let of_part = snapshot
        .entries
        .iter()
        .filter(|entry| entry.tool == part.tool());
    let ids: Vec<&SnapshotId> = of_part.map(|entry| &entry.snapshot_id).collect();
    match ids.as_slice() {
        [id] => Ok((*id).clone()),
        others => {
            let (count, tool) = (others.len().to_string(), part.tool().to_owned());
            Err(
                ToolError::invalid(POINTER, Say::SnapshotNames { count, tool })
                    .hint(Say::SnapshotOfFive)
                    .detail("part", json!(part)),
            )
        }
    }
}
