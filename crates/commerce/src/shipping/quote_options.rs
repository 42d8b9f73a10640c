//! The tool that quotes the services of all carriers.

use countersign::contract::Behaviour;
use countersign::{CallContext, Tool, ToolArgs, ToolError};
use serde::Deserialize;

use super::answer::ShippingQuote;
use super::options::Question;
use super::tariff::Tariff;
use crate::behaviour::{self, SHIPPING_SECONDS};
use crate::destination::Destination;
use crate::fx::{self, Rates};
use crate::id::Id;
use crate::item::{Basket, Item};
use crate::money::CurrencyCode;
use crate::shop::Shop;

/// Quotes the services of all carriers for a basket and a destination.
pub(super) struct QuoteOptions;

#[derive(Deserialize, ToolArgs)]
pub(super) struct QuoteOptionsArgs {
    /// Items to ship.
    #[arg(min_items = 1, max_items = 50)]
    items: Vec<Item>,
    /// Destination. With a postal code, remote areas are recognized.
    destination: Destination,
    /// Currency, such as EUR; by default that of the request.
    #[arg(example = "EUR")]
    currency: Option<CurrencyCode>,
    /// Id of the cart that the answer is for. It is then valid for that cart only.
    cart_id: Option<Id>,
}

impl Tool for QuoteOptions {
    const NAME: &'static str = super::SHIPPING_TOOL;
    const DESCRIPTION: &'static str = "Lists ways to ship items to a destination: price, working days, how duties are paid, and which \
        services are not available and why.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Args = QuoteOptionsArgs;
    type Output = ShippingQuote;

    fn behaviour() -> Behaviour {
        behaviour::rule(SHIPPING_SECONDS)
    }

    async fn call(
        &self,
        ctx: &CallContext,
        args: QuoteOptionsArgs,
    ) -> Result<ShippingQuote, ToolError> {
        let basket = Basket::of(&args.items, "/items")?;
        let currency = fx::asked(ctx, args.currency.map(|currency| currency.code()));
        let cart_id = args.cart_id.map(String::from);
        quote(ctx, &basket, &args.destination, &currency, cart_id)
    }
}

/// The current options, by the rules in force. Checkout calls it again before it trusts an older answer.
pub fn quote(
    ctx: &CallContext,
    basket: &Basket,
    destination: &Destination,
    currency: &str,
    cart_id: Option<String>,
) -> Result<ShippingQuote, ToolError> {
    let (shop, tariff, rates) = (Shop::of(ctx)?, Tariff::of(ctx)?, Rates::of(ctx)?);
    let destination = destination.normal(ctx)?;
    let question = Question {
        shop: &shop,
        tariff: &tariff,
        rates: &rates,
        basket,
        destination: &destination,
        currency,
        locale: ctx.request().locale.as_deref(),
    };
    let offered = question.answer()?;
    Ok(ShippingQuote {
        cart_id,
        basket: basket.digest()?,
        destination,
        currency: currency.to_owned(),
        options: offered.options,
        excluded: offered.excluded,
        rates: offered.rates,
        expires_at: behaviour::later(ctx, SHIPPING_SECONDS).to_string(),
    })
}
