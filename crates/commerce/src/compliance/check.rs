//! `compliance.check_item`: a pure rule over the offers and the compliance rules.

use countersign::contract::Behaviour;
use countersign::{CallContext, Tool, ToolArgs, ToolError};
use serde::Deserialize;

use super::answer::{ComplianceLine, ComplianceReport, Decision};
use super::judge;
use super::policy::Policy;
use crate::behaviour;
use crate::destination::Destination;
use crate::id::Id;
use crate::item::{Basket, Item};
use crate::rulebook::RuleData;
use crate::shop::{Offer, Shop, is_chinese};

pub(super) struct CheckItem;

#[derive(Deserialize, ToolArgs)]
pub(super) struct CheckArgs {
    /// Items to ship; duplicates are added up.
    #[arg(min_items = 1, max_items = 50)]
    items: Vec<Item>,
    /// Destination.
    destination: Destination,
    /// Id of the cart that the answer is for; it is then valid for that cart only.
    #[arg(example = "cart_0123456789abcdef")]
    cart_id: Option<Id>,
}

impl Tool for CheckItem {
    const NAME: &'static str = super::COMPLIANCE_TOOL;
    const DESCRIPTION: &'static str = "Checks whether items may be shipped to a destination: `decision` is allowed, conditional or \
        blocked, with findings and mitigations to tell the user. Checkout refuses blocked items. \
        Reference data, not legal advice.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Args = CheckArgs;
    type Output = ComplianceReport;

    fn behaviour() -> Behaviour {
        behaviour::rule(behaviour::COMPLIANCE_SECONDS)
    }

    async fn call(
        &self,
        ctx: &CallContext,
        args: CheckArgs,
    ) -> Result<ComplianceReport, ToolError> {
        let basket = Basket::of(&args.items, "/items")?;
        let pointer = |sku: &str| {
            let at = args.items.iter().position(|item| item.sku == sku);
            format!("/items/{}/sku", at.unwrap_or_default())
        };
        let cart_id = args.cart_id.map(String::from);
        decide(ctx, &basket, &args.destination, cart_id, pointer)
    }
}

/// Checks a basket for a destination by the rules in force. Checkout calls it again before it trusts an older answer.
pub fn check(
    ctx: &CallContext,
    basket: &Basket,
    destination: &Destination,
) -> Result<ComplianceReport, ToolError> {
    decide(ctx, basket, destination, None, |_| "/cart_id".to_owned())
}

fn decide(
    ctx: &CallContext,
    basket: &Basket,
    destination: &Destination,
    cart_id: Option<String>,
    pointer: impl Fn(&str) -> String,
) -> Result<ComplianceReport, ToolError> {
    let policy = Policy::of(ctx)?;
    let version = ctx.rules(Policy::NAME)?.version;
    let shop = Shop::of(ctx)?;
    let destination = destination.normal(ctx)?;
    let is_chinese = is_chinese(ctx.request().locale.as_deref());
    let crosses = |offer: &Offer| offer.ships_from != destination.country;
    let mut offers = Vec::with_capacity(basket.len());
    for (sku, quantity) in basket.lines() {
        let (offer, _) = shop.known(sku, &pointer(sku))?;
        offers.push((sku, offer, quantity));
    }
    let mut lines = Vec::with_capacity(basket.len());
    for (sku, offer, _) in &offers {
        // A limit applies to the whole basket: two colours of an offer are a quantity of two.
        let sum = |is_counted: &dyn Fn(&Offer) -> bool| -> u32 {
            let counted = offers.iter().filter(|(_, other, _)| is_counted(other));
            counted.map(|(_, _, quantity)| *quantity).sum()
        };
        let thing = judge::Thing {
            offer,
            quantity: sum(&|other| other.offer_id == offer.offer_id),
            category_quantity: sum(&|other| {
                kind(&other.category) == kind(&offer.category) && crosses(other) == crosses(offer)
            }),
        };
        let findings = judge::findings(&policy, &thing, &destination, is_chinese);
        lines.push(ComplianceLine {
            sku: (*sku).to_owned(),
            category: offer.category.clone(),
            decision: Decision::of(&findings),
            findings,
        });
    }
    let worst = lines.iter().map(|line| line.decision).max();
    Ok(ComplianceReport {
        cart_id,
        basket: basket.digest()?,
        destination,
        // There is at least one line; without one nothing would have been checked.
        decision: worst.unwrap_or(Decision::Blocked),
        lines,
        ruleset_version: version.to_string(),
    })
}

/// The kind by which quantities are counted, the first two words of a category: `health/supplements` of
/// `health/supplements/vitamin`.
fn kind(category: &str) -> (&str, Option<&str>) {
    let mut words = category.split('/');
    (words.next().unwrap_or_default(), words.next())
}
