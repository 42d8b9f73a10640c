//! `tax.estimate_duties_and_taxes`: from items, or from a quote and a shipping option, to an estimate.

use countersign::contract::{Behaviour, Digest, ErrorCode};
use countersign::{CallContext, Tool, ToolArgs, ToolError};
use serde::Deserialize;
use serde_json::json;

use super::answer::{Incoterm, TaxEstimate};
use super::compute::{Case, Due, Goods, compute};
use super::note::Note;
use super::place::Place;
use super::{BOOK, TAX_TOOL, import};
use crate::behaviour;
use crate::destination::Destination;
use crate::fx::{self, RateUsed, Rates};
use crate::ground::{self, EvidenceId, Ground};
use crate::item::{Basket, Item};
use crate::money::{CurrencyCode, Money};
use crate::pricing::{QUOTE_TOOL, Quote};
use crate::shipping::{SHIPPING_TOOL, ShippingQuote};
use crate::shop::{self, Shop};

/// What is estimated.
#[derive(Debug, Deserialize, ToolArgs)]
pub struct EstimateArgs {
    /// What is bought, at list prices; either this or `quote_snapshot_id`.
    #[arg(max_items = 50)]
    items: Option<Vec<Item>>,
    /// Evidence of a quote, whose prices are used: `evidence.snapshot_id` of `pricing.get_realtime_quote`.
    quote_snapshot_id: Option<EvidenceId>,
    /// Evidence of shipping options: `evidence.snapshot_id` of `shipping.quote_options`.
    shipping_snapshot_id: Option<EvidenceId>,
    /// Which of those options; its price is part of what duty and tax are computed on.
    #[arg(max_length = 64)]
    shipping_option_id: Option<String>,
    /// Where it goes.
    destination: Destination,
    /// Who pays duties and taxes: DDP with the order, DAP on delivery.
    #[arg(default = "DDP")]
    incoterm: Incoterm,
    /// The cart that the estimate is for.
    #[arg(max_length = 64)]
    cart_id: Option<String>,
    /// In which currency; that of the quote where one is given.
    currency: Option<CurrencyCode>,
}

/// The tool.
pub(super) struct Estimate;

impl Tool for Estimate {
    const NAME: &'static str = TAX_TOOL;
    const DESCRIPTION: &'static str = "Duties, taxes and fees of items at their destination: an estimate by versioned \
        rules, with method, confidence and breakdown. Reference data, not tax advice.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Args = EstimateArgs;
    type Output = TaxEstimate;

    fn behaviour() -> Behaviour {
        behaviour::rule(behaviour::TAX_SECONDS)
    }

    async fn call(&self, ctx: &CallContext, args: EstimateArgs) -> Result<TaxEstimate, ToolError> {
        let priced = Priced::of(ctx, &args).await?;
        let shipping = Shipping::of(ctx, &args, &priced).await?;
        let rules = BOOK.get(ctx)?;
        let rates = Rates::of(ctx)?;
        let destination = args.destination.normalized();
        let case = Case {
            rules: &rules,
            rates: &rates,
            place: Place::find(&rules, &destination.country, destination.region.as_deref())?,
            currency: &priced.currency,
            goods: &priced.goods,
            shipping: shipping.as_ref().map(|shipping| &shipping.price),
            is_chinese: shop::is_chinese(ctx.request().locale.as_deref()),
        };
        let mut due = compute(&case)?;
        due.note(Note::Payer(args.incoterm));
        let shown = Shown {
            destination,
            incoterm: args.incoterm,
            locale: ctx.request().locale.as_deref(),
        };
        shown.estimate(priced, shipping, due)
    }
}

/// What is bought, and for how much.
struct Priced {
    cart_id: Option<String>,
    basket: Digest,
    currency: String,
    goods: Vec<Goods>,
    rates: Vec<RateUsed>,
}

impl Priced {
    async fn of(ctx: &CallContext, args: &EstimateArgs) -> Result<Self, ToolError> {
        match (&args.items, &args.quote_snapshot_id) {
            (Some(items), None) => Self::at_list_price(ctx, args, items),
            (None, Some(id)) => {
                let pointer = "/quote_snapshot_id";
                let quote: Ground<Quote> = ground::read(ctx, pointer, id, QUOTE_TOOL).await?;
                if !quote.is_fresh(ctx.now()) {
                    return Err(expired(pointer, QUOTE_TOOL)
                        .detail("old", json!(quote.answer.subtotal))
                        .detail("expired_at", quote.answer.expires_at));
                }
                Self::quoted(ctx, args, quote.answer)
            }
            (Some(_), Some(_)) => Err(ToolError::invalid(
                "/items",
                "items and quote_snapshot_id are both given",
            )
            .hint("give one of them; a quote has its own items")),
            (None, None) => Err(ToolError::invalid(
                "/items",
                "neither items nor quote_snapshot_id are given",
            )
            .hint("give items, or evidence.snapshot_id of pricing.get_realtime_quote")),
        }
    }

    /// The shop's own prices, converted.
    fn at_list_price(
        ctx: &CallContext,
        args: &EstimateArgs,
        items: &[Item],
    ) -> Result<Self, ToolError> {
        let basket = Basket::of(items, "/items")?;
        let asked = args.currency.as_ref().map(CurrencyCode::code);
        let currency = fx::asked(ctx, asked);
        let (shop, rates) = (Shop::of(ctx)?, Rates::of(ctx)?);
        let mut priced = Self {
            cart_id: args.cart_id.clone(),
            basket: digest(&basket)?,
            currency,
            goods: Vec::new(),
            rates: Vec::new(),
        };
        for (sku, quantity) in basket.lines() {
            let at = items.iter().position(|item| item.sku == sku);
            let pointer = format!("/items/{}/sku", at.unwrap_or_default());
            let (offer, variant) = shop.known(sku, &pointer)?;
            let (price, rate) = rates.convert(&offer.price_of(variant), &priced.currency)?;
            priced.used(rate);
            priced.goods.push(Goods {
                sku: sku.to_owned(),
                hs_code: offer.hs_code.clone(),
                origin: offer.origin.clone(),
                ships_from: offer.ships_from.clone(),
                quantity,
                value: price.times(quantity)?,
            });
        }
        Ok(priced)
    }

    /// The prices of a quote.
    fn quoted(ctx: &CallContext, args: &EstimateArgs, quote: Quote) -> Result<Self, ToolError> {
        let asked = args.currency.as_ref().map(CurrencyCode::code);
        if asked.is_some_and(|asked| asked != quote.currency) {
            let message = format!("the quote is in {}", quote.currency);
            return Err(ToolError::invalid("/currency", message)
                .hint("leave it out, or quote again in the other currency"));
        }
        let cart_id = same_cart(args.cart_id.as_ref(), quote.cart_id.as_ref(), "the quote")?;
        let shop = Shop::of(ctx)?;
        let mut goods = Vec::with_capacity(quote.lines.len());
        for line in quote.lines {
            let (offer, _) = shop.known(&line.sku, "/quote_snapshot_id")?;
            goods.push(Goods {
                sku: line.sku,
                hs_code: offer.hs_code.clone(),
                origin: offer.origin.clone(),
                ships_from: offer.ships_from.clone(),
                quantity: line.quantity,
                value: line.line_total,
            });
        }
        Ok(Self {
            cart_id,
            basket: quote.basket,
            currency: quote.currency,
            goods,
            rates: quote.rates,
        })
    }

    fn used(&mut self, rate: Option<RateUsed>) {
        self.rates.extend(rate);
    }
}

/// How it gets there, and for how much.
struct Shipping {
    option_id: String,
    price: Money,
    cart_id: Option<String>,
    rate: Option<RateUsed>,
}

impl Shipping {
    async fn of(
        ctx: &CallContext,
        args: &EstimateArgs,
        priced: &Priced,
    ) -> Result<Option<Self>, ToolError> {
        let pointer = "/shipping_snapshot_id";
        let (id, option_id) = match (&args.shipping_snapshot_id, &args.shipping_option_id) {
            (None, None) => return Ok(None),
            (Some(id), Some(option_id)) => (id, option_id),
            (Some(_), None) => {
                let message = "shipping_snapshot_id needs shipping_option_id";
                return Err(ToolError::invalid("/shipping_option_id", message)
                    .hint("give option_id of one of its options"));
            }
            (None, Some(_)) => {
                let message = "shipping_option_id needs shipping_snapshot_id";
                return Err(ToolError::invalid(pointer, message)
                    .hint(format!("give evidence.snapshot_id of {SHIPPING_TOOL}")));
            }
        };
        let found: Ground<ShippingQuote> = ground::read(ctx, pointer, id, SHIPPING_TOOL).await?;
        let quote = &found.answer;
        let option = quote
            .options
            .iter()
            .find(|option| option.option_id == *option_id);
        if !found.is_fresh(ctx.now()) {
            let refused = expired(pointer, SHIPPING_TOOL);
            let old = option.map(|option| json!(option.price));
            return Err(refused
                .detail("old", old.unwrap_or_default())
                .detail("expired_at", quote.expires_at.as_str()));
        }
        if quote.basket != priced.basket {
            let message = "this shipping is for other items";
            return Err(ToolError::invalid(pointer, message)
                .hint(format!("call {SHIPPING_TOOL} with the same items")));
        }
        if quote.destination.country() != args.destination.country() {
            let message = format!("this shipping goes to {}", quote.destination.country());
            return Err(ToolError::invalid("/destination/country", message)
                .hint(format!("call {SHIPPING_TOOL} for the same destination")));
        }
        let Some(option) = option else {
            let known = quote.options.iter().map(|option| option.option_id.as_str());
            let known: Vec<&str> = known.collect();
            let message = format!("there is no shipping option {option_id:?}");
            return Err(ToolError::invalid("/shipping_option_id", message)
                .hint(format!("one of {}", known.join(", "))));
        };
        let incoterm = args.incoterm.as_str();
        if !option.incoterms.iter().any(|known| known == incoterm) {
            let message = format!("{option_id} cannot be sent {incoterm}");
            return Err(ToolError::invalid("/incoterm", message)
                .hint(format!("one of {}", option.incoterms.join(", "))));
        }
        let cart_id = same_cart(
            priced.cart_id.as_ref(),
            quote.cart_id.as_ref(),
            "this shipping",
        )?;
        let (price, rate) = Rates::of(ctx)?.convert(&option.price, &priced.currency)?;
        Ok(Some(Self {
            option_id: option_id.clone(),
            price,
            cart_id,
            rate,
        }))
    }
}

/// How an estimate is put before people.
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

/// An earlier answer is too old to build on (A8).
fn expired(pointer: &str, tool: &str) -> ToolError {
    let message = format!("the answer of {tool} is too old, so prices may have changed");
    ToolError::new(ErrorCode::PriceChanged, message)
        .field(pointer)
        .hint(format!(
            "call {tool} again and give evidence.snapshot_id of its reply"
        ))
}

/// The cart that both are for, where they name one.
fn same_cart(
    asked: Option<&String>,
    other: Option<&String>,
    whose: &str,
) -> Result<Option<String>, ToolError> {
    match (asked, other) {
        (Some(asked), Some(other)) if asked != other => {
            let message = format!("{whose} is for another cart");
            Err(ToolError::invalid("/cart_id", message).hint("name the same cart in both"))
        }
        (asked, other) => Ok(asked.or(other).cloned()),
    }
}

fn digest(basket: &Basket) -> Result<Digest, ToolError> {
    basket.digest().map_err(|error| {
        let message = "the items have no canonical form";
        ToolError::invalid("/items", message).with_source(error)
    })
}
