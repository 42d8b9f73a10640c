//! The checks that refuse an order whatever it costs: compliance, and stock.

use countersign::contract::ErrorCode;
use countersign::{CallContext, ToolError};
use serde::Serialize;
use serde_json::json;

use super::own::OwnLocks;
use crate::compliance::{ComplianceReport, Decision, Finding};
use crate::item::Basket;
use crate::shop::{Offer, Shop, Variant};
use crate::stock::{Stock, Wanted};
use crate::words::Say;

/// The maximum number of alternatives that are offered.
const ALTERNATIVES_MAX: usize = 5;

/// The maximum number of variants that are considered as alternatives.
const LOOKED_AT_MAX: usize = 25;

/// Checks that the report does not block the order. The refusal has the findings and their remedies.
pub(super) fn may_go(report: &ComplianceReport, pointer: &str) -> Result<(), ToolError> {
    match report.decision {
        Decision::Allowed | Decision::Conditional => return Ok(()),
        Decision::Blocked => {}
    }
    let blocked = report.lines.iter();
    let blocked = blocked.filter(|line| line.decision == Decision::Blocked);
    let skus: Vec<&str> = blocked.clone().map(|line| line.sku.as_str()).collect();
    let country = report.destination.country();
    let message = Say::MayNotBeSent {
        skus: skus.join(", "),
        country: country.clone(),
    };
    let findings: Vec<Found<'_>> = blocked
        .flat_map(|line| {
            let sku = line.sku.as_str();
            line.findings
                .iter()
                .map(move |finding| Found { sku, finding })
        })
        .collect();
    let mut mitigations: Vec<&str> = Vec::new();
    for mitigation in findings.iter().flat_map(|found| &found.finding.mitigations) {
        if !mitigations.contains(&mitigation.as_str()) {
            mitigations.push(mitigation);
        }
    }
    Err(ToolError::new(ErrorCode::ComplianceBlocked, message)
        .field(pointer)
        .hint(Say::TellTheUser)
        .detail("skus", json!(skus))
        .detail("findings", json!(findings))
        .detail("mitigations", json!(mitigations))
        .detail("ruleset_version", report.ruleset_version.as_str()))
}

/// A finding and the item that it is about.
#[derive(Debug, Serialize)]
struct Found<'a> {
    sku: &'a str,
    #[serde(flatten)]
    finding: &'a Finding,
}

/// Checks that the whole cart is in stock now. Nothing is locked by this, and quantities that an older draft order of
/// the same cart holds count as available: they are released when this order is locked.
pub(super) async fn in_stock(
    ctx: &CallContext,
    shop: &Shop,
    (cart_id, basket): (&str, &Basket),
    pointer: &str,
) -> Result<(), ToolError> {
    let own = OwnLocks::of(ctx).await?;
    for (sku, quantity) in basket.lines() {
        let (offer, variant) = shop.known(sku, pointer)?;
        let mut stock = Stock::of(ctx, variant).await?;
        stock.release(&own.of_cart(cart_id));
        let wanted = Wanted {
            sku,
            quantity,
            pointer,
        };
        if let Err(error) = stock.check(wanted, ctx.now(), &own.ids()) {
            return Err(with_alternatives(ctx, shop, (offer, variant), quantity, error).await?);
        }
    }
    Ok(())
}

/// A similar variant that is in stock.
#[derive(Debug, Serialize)]
struct Alternative<'a> {
    sku: &'a str,
    offer_id: &'a str,
    title: &'a str,
    available: u32,
}

/// Adds alternatives to a refusal: other variants of the same offer, then offers of its category.
pub(super) async fn with_alternatives(
    ctx: &CallContext,
    shop: &Shop,
    (offer, short): (&Offer, &Variant),
    quantity: u32,
    error: ToolError,
) -> Result<ToolError, ToolError> {
    let locale = ctx.request().locale.as_deref();
    let mut alternatives = Vec::new();
    for (offer, variant) in alike(shop, offer, short) {
        let available = Stock::of(ctx, variant).await?.available();
        if available >= quantity {
            alternatives.push(Alternative {
                sku: &variant.sku,
                offer_id: &offer.offer_id,
                title: offer.title.for_locale(locale),
                available,
            });
        }
        if alternatives.len() >= ALTERNATIVES_MAX {
            break;
        }
    }
    Ok(error.detail("alternatives", json!(alternatives)))
}

/// The similar variants, the most similar first.
fn alike<'a>(shop: &'a Shop, of: &'a Offer, short: &Variant) -> Vec<(&'a Offer, &'a Variant)> {
    let others = shop.offers.iter();
    let others =
        others.filter(|other| other.category == of.category && other.offer_id != of.offer_id);
    let mut alike = Vec::new();
    for offer in std::iter::once(of).chain(others) {
        let variants = offer.variants.iter().filter(|it| it.sku != short.sku);
        alike.extend(variants.map(|variant| (offer, variant)));
    }
    alike.truncate(LOOKED_AT_MAX);
    alike
}
