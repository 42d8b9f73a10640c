//! `tax.estimate_duties_and_taxes`: from items, or from a quote and a shipping option, to an estimate.

use countersign::contract::Behaviour;
use countersign::{CallContext, Tool, ToolArgs, ToolError};
use serde::Deserialize;

use super::answer::{Incoterm, TaxEstimate};
use super::basis::{Priced, Shipping};
use super::compute::{Case, Due, compute};
use super::note::Note;
use super::place::Place;
use super::{BOOK, TAX_TOOL, import};
use crate::behaviour;
use crate::destination::Destination;
use crate::fx::Rates;
use crate::ground::EvidenceId;
use crate::id::Id;
use crate::item::Item;
use crate::money::{CurrencyCode, Money};
use crate::pricing;
use crate::shipping::ShippingOption;
use crate::shop;

/// Arguments of an estimate.
#[derive(Debug, Deserialize, ToolArgs)]
pub struct EstimateArgs {
    /// Items, at list prices. Send either this or `quote_snapshot_id`.
    #[arg(max_items = 50)]
    pub(super) items: Option<Vec<Item>>,
    /// `evidence.snapshot_id` of `pricing.get_realtime_quote`, for its prices; exactly one of this and `items`.
    #[arg(example = "ev_01a1e383-11f7-7cab-a9f3-00c0339b928b")]
    pub(super) quote_snapshot_id: Option<EvidenceId>,
    /// `evidence.snapshot_id` of `shipping.quote_options`.
    #[arg(example = "ev_01a1e383-11f7-7cab-a9f3-00c0339b928b")]
    pub(super) shipping_snapshot_id: Option<EvidenceId>,
    /// `option_id` of one of those options.
    #[arg(min_length = 1, max_length = 64, example = "halcyon.battery_line")]
    pub(super) shipping_option_id: Option<String>,
    /// Destination.
    pub(super) destination: Destination,
    /// Payer of duties and taxes: DDP with the order, DAP on delivery. With a shipping option, one of its
    /// `incoterms`.
    #[arg(default = "DDP")]
    pub(super) incoterm: Incoterm,
    /// Id of the cart that the estimate is for.
    pub(super) cart_id: Option<Id>,
    /// Currency of the estimate. With a quote, it is the currency of the quote.
    pub(super) currency: Option<CurrencyCode>,
}

/// The tool.
pub(super) struct Estimate;

impl Tool for Estimate {
    const NAME: &'static str = TAX_TOOL;
    const DESCRIPTION: &'static str = "Estimates duties, taxes and fees of items at their destination. Reference data, not tax advice.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Args = EstimateArgs;
    type Output = TaxEstimate;

    fn behaviour() -> Behaviour {
        behaviour::rule(behaviour::TAX_SECONDS)
    }

    async fn call(
        &self,
        ctx: &CallContext,
        mut args: EstimateArgs,
    ) -> Result<TaxEstimate, ToolError> {
        args.destination = args.destination.normal(ctx)?;
        let priced = Priced::of(ctx, &args).await?;
        let shipping = Shipping::of(ctx, &args, &priced).await?;
        computed(ctx, priced, shipping, &args.destination, args.incoterm)
    }
}

/// The current estimate for the current prices of a basket and its shipping option, by the rules in force. Checkout
/// calls it again before it trusts an older answer.
pub(crate) fn again(
    ctx: &CallContext,
    priced: &pricing::Priced,
    option: &ShippingOption,
    destination: &Destination,
    incoterm: Incoterm,
) -> Result<TaxEstimate, ToolError> {
    let (priced, shipping) = (Priced::now(ctx, priced)?, Shipping::now(option));
    computed(ctx, priced, Some(shipping), destination, incoterm)
}

fn computed(
    ctx: &CallContext,
    priced: Priced,
    shipping: Option<Shipping>,
    destination: &Destination,
    incoterm: Incoterm,
) -> Result<TaxEstimate, ToolError> {
    let rules = BOOK.get(ctx)?;
    let rates = Rates::of(ctx)?;
    let destination = destination.normal(ctx)?;
    let case = Case {
        rules: &rules,
        rates: &rates,
        place: Place::find(&rules, &destination.country, destination.region.as_deref())?,
        postal_code: destination.postal_code.as_deref(),
        currency: &priced.currency,
        goods: &priced.goods,
        shipping: shipping.as_ref().map(|shipping| &shipping.freight),
        is_chinese: shop::is_chinese(ctx.request().locale.as_deref()),
    };
    let mut due = compute(&case)?;
    due.note(Note::Payer(incoterm));
    let shown = Shown {
        destination,
        incoterm,
        locale: ctx.request().locale.as_deref(),
    };
    shown.estimate(priced, shipping, due)
}

/// The parts of an estimate that its computation does not need.
struct Shown<'a> {
    destination: Destination,
    incoterm: Incoterm,
    locale: Option<&'a str>,
}

impl Shown<'_> {
    fn estimate(
        self,
        priced: Priced,
        shipping: Option<Shipping>,
        due: Due,
    ) -> Result<TaxEstimate, ToolError> {
        let currency = &priced.currency;
        let sum = |amounts: Vec<&Money>| Money::sum(amounts, currency);
        let lines = &due.lines;
        let goods_value = sum(lines.iter().map(|line| &line.goods_value).collect())?;
        let shipping_cost = sum(lines.iter().map(|line| &line.shipping_share).collect())?;
        let duty = sum(lines.iter().map(|line| &line.duty).collect())?;
        let tax = sum(lines.iter().map(|line| &line.tax).collect())?;
        let fees = sum(due.fees.iter().map(|fee| &fee.amount).collect())?;
        let total = sum(vec![&duty, &tax, &fees])?;
        let due_to_seller = match self.incoterm {
            Incoterm::Ddp => total.clone(),
            Incoterm::Dap => due.at_sale.clone(),
        };
        let on_delivery = total.amount - due_to_seller.amount;
        let (option_id, cart_of_shipping, rate) = shipping
            .map(|shipping| (Some(shipping.option_id), shipping.cart_id, shipping.rate))
            .unwrap_or_default();
        let mut rates = priced.rates;
        for rate in rate.into_iter().chain(due.rates) {
            if !rates.contains(&rate) {
                rates.push(rate);
            }
        }
        let texts = due.notes.iter().map(Note::text);
        let notes = texts.map(|text| text.for_locale(self.locale).to_owned());
        Ok(TaxEstimate {
            cart_id: priced.cart_id.or(cart_of_shipping),
            basket: priced.basket,
            destination: self.destination,
            incoterm: self.incoterm,
            currency: priced.currency.clone(),
            goods_value,
            shipping_cost,
            shipping_option_id: option_id,
            duty,
            tax,
            fees,
            due_on_delivery: Money::new(on_delivery, &priced.currency),
            due_to_seller,
            total,
            method: import::method_of(lines).to_owned(),
            confidence: due.confidence,
            notes: notes.collect(),
            lines: due.lines,
            fee_lines: due.fees,
            rates,
        })
    }
}
