//! The input of an estimate: items at list prices or a quote, and the shipping option that goes with them. Amounts come
//! from evidence, never from an agent's claim.

use countersign::contract::{Digest, ErrorCode};
use countersign::{CallContext, ToolError};
use serde_json::json;

use super::answer::Incoterm;
use super::compute::{Freight, Goods, Sender};
use super::estimate::EstimateArgs;
use crate::fx::{self, RateUsed, Rates};
use crate::ground::{self, EvidenceId, Ground};
use crate::item::{Basket, Item};
use crate::money::CurrencyCode;
use crate::pricing::{self, QUOTE_TOOL, Quote, QuoteLine};
use crate::shipping::{Parcel, SHIPPING_TOOL, ShippingOption, ShippingQuote};
use crate::shop::{Offer, Shop};
use crate::words::Say;

/// The items and their prices.
pub(super) struct Priced {
    pub(super) cart_id: Option<String>,
    pub(super) basket: Digest,
    pub(super) currency: String,
    pub(super) goods: Vec<Goods>,
    pub(super) rates: Vec<RateUsed>,
}

impl Priced {
    pub(super) async fn of(ctx: &CallContext, args: &EstimateArgs) -> Result<Self, ToolError> {
        match (&args.items, &args.quote_snapshot_id) {
            (Some(items), None) => Self::at_list_price(ctx, args, items),
            (None, Some(id)) => {
                let pointer = "/quote_snapshot_id";
                let quote: Ground<Quote> = ground::read(ctx, pointer, id, QUOTE_TOOL).await?;
                if !quote.rests(ctx) {
                    return Err(expired(pointer, QUOTE_TOOL)
                        .detail("old", json!(quote.answer.subtotal))
                        .detail("expired_at", quote.answer.expires_at));
                }
                Self::quoted(ctx, args, quote.answer)
            }
            (Some(_), Some(_)) => {
                Err(ToolError::invalid("/items", Say::ItemsAndQuote).hint(Say::QuoteHasItems))
            }
            (None, None) => {
                Err(ToolError::invalid("/items", Say::NeitherItemsNorQuote)
                    .hint(Say::GiveItemsOrQuote))
            }
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
            cart_id: args.cart_id.as_deref().cloned(),
            basket: basket.digest()?,
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
                sender: sender(offer),
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
            let currency = quote.currency;
            return Err(
                ToolError::invalid("/currency", Say::QuoteIsIn { currency }).hint(Say::QuoteAgain)
            );
        }
        let cart_id = same_cart(
            args.cart_id.as_deref(),
            quote.cart_id.as_ref(),
            Say::QuoteOfOtherCart,
        )?;
        let goods = goods(ctx, &quote.lines, "/quote_snapshot_id")?;
        Ok(Self {
            cart_id,
            basket: quote.basket,
            currency: quote.currency,
            goods,
            rates: quote.rates,
        })
    }

    /// The current prices.
    pub(super) fn now(ctx: &CallContext, priced: &pricing::Priced) -> Result<Self, ToolError> {
        Ok(Self {
            cart_id: None,
            basket: priced.basket,
            currency: priced.currency.clone(),
            goods: goods(ctx, &priced.lines, "/cart_id")?,
            rates: priced.rates.clone(),
        })
    }

    /// Adds an exchange rate, once however many items are converted with it.
    fn used(&mut self, rate: Option<RateUsed>) {
        let rate = rate.filter(|rate| !self.rates.contains(rate));
        self.rates.extend(rate);
    }
}

/// The priced items, as customs see them.
fn goods(ctx: &CallContext, lines: &[QuoteLine], pointer: &str) -> Result<Vec<Goods>, ToolError> {
    let shop = Shop::of(ctx)?;
    let mut goods = Vec::with_capacity(lines.len());
    for line in lines {
        let (offer, _) = shop.known(&line.sku, pointer)?;
        goods.push(Goods {
            sku: line.sku.clone(),
            hs_code: offer.hs_code.clone(),
            origin: offer.origin.clone(),
            sender: sender(offer),
            quantity: line.quantity,
            value: line.line_total.clone(),
        });
    }
    Ok(goods)
}

/// The selected shipping option and its price.
pub(super) struct Shipping {
    pub(super) option_id: String,
    pub(super) freight: Freight,
    pub(super) cart_id: Option<String>,
    pub(super) rate: Option<RateUsed>,
}

impl Shipping {
    /// A currently offered option, in the currency of the prices.
    pub(super) fn now(option: &ShippingOption) -> Self {
        Self {
            option_id: option.option_id.clone(),
            freight: Freight {
                price: option.price.clone(),
                carrier: carrier(&option.option_id),
                parcels: option.parcels.iter().map(weighed).collect(),
            },
            cart_id: None,
            rate: None,
        }
    }

    pub(super) async fn of(
        ctx: &CallContext,
        args: &EstimateArgs,
        priced: &Priced,
    ) -> Result<Option<Self>, ToolError> {
        let Some((id, option_id)) = named(args)? else {
            return Ok(None);
        };
        let pointer = "/shipping_snapshot_id";
        let found: Ground<ShippingQuote> = ground::read(ctx, pointer, id, SHIPPING_TOOL).await?;
        let quote = &found.answer;
        let option = quote
            .options
            .iter()
            .find(|option| option.option_id == *option_id);
        if !found.rests(ctx) {
            let refused = expired(pointer, SHIPPING_TOOL);
            let old = option.map(|option| json!(option.price));
            return Err(refused
                .detail("old", old.unwrap_or_default())
                .detail("expired_at", quote.expires_at.as_str()));
        }
        if quote.basket != priced.basket {
            return Err(ToolError::invalid(pointer, Say::ShippingOfOtherItems)
                .hint(Say::CallWithSameItems { tool: shipping() }));
        }
        if quote.destination.country() != args.destination.country() {
            let country = quote.destination.country().clone();
            let message = Say::ShippingGoesTo { country };
            return Err(ToolError::invalid("/destination/country", message)
                .hint(Say::CallForDestination { tool: shipping() }));
        }
        let Some(option) = option else {
            let known = quote.options.iter().map(|option| option.option_id.as_str());
            let known: Vec<&str> = known.collect();
            let (option_id, values) = (option_id.clone(), known.join(", "));
            let message = Say::NoShippingOption { option_id };
            return Err(
                ToolError::invalid("/shipping_option_id", message).hint(Say::OneOf { values })
            );
        };
        if !option.incoterms.contains(&args.incoterm) {
            let message = Say::CannotBeSent {
                option_id: option_id.clone(),
                incoterm: args.incoterm.as_str().to_owned(),
            };
            let values = Incoterm::listed(&option.incoterms);
            return Err(ToolError::invalid("/incoterm", message).hint(Say::OneOf { values }));
        }
        let cart_id = same_cart(
            priced.cart_id.as_ref(),
            quote.cart_id.as_ref(),
            Say::ShippingOfOtherCart,
        )?;
        let (price, rate) = Rates::of(ctx)?.convert(&option.price, &priced.currency)?;
        let freight = Freight {
            price,
            carrier: carrier(option_id),
            parcels: option.parcels.iter().map(weighed).collect(),
        };
        Ok(Some(Self {
            option_id: option_id.clone(),
            freight,
            cart_id,
            rate,
        }))
    }
}

/// The evidence and its option that the arguments name: both or neither.
fn named(args: &EstimateArgs) -> Result<Option<(&EvidenceId, &String)>, ToolError> {
    match (&args.shipping_snapshot_id, &args.shipping_option_id) {
        (None, None) => Ok(None),
        (Some(id), Some(option_id)) => Ok(Some((id, option_id))),
        (Some(_), None) => {
            let message = Say::SnapshotNeedsOption;
            Err(ToolError::invalid("/shipping_option_id", message).hint(Say::GiveOption))
        }
        (None, Some(_)) => {
            let message = Say::OptionNeedsSnapshot;
            Err(ToolError::invalid("/shipping_snapshot_id", message)
                .hint(Say::GiveEvidenceOf { tool: shipping() }))
        }
    }
}

/// The name of the tool that quotes shipping, for a message.
fn shipping() -> String {
    SHIPPING_TOOL.to_owned()
}

/// The carrier of an option, which is the prefix of the option's id.
fn carrier(option_id: &str) -> String {
    let name = option_id.split_once('.').map(|(carrier, _)| carrier);
    name.unwrap_or(option_id).to_owned()
}

/// A parcel, and the weight of its price in the sum of all.
fn weighed(parcel: &Parcel) -> (Sender, i64) {
    let sender = Sender {
        ships_from: parcel.ships_from.clone(),
        merchant_id: parcel.merchant_id.clone(),
    };
    (sender, parcel.price.amount)
}

fn sender(offer: &Offer) -> Sender {
    Sender {
        ships_from: offer.ships_from.clone(),
        merchant_id: offer.merchant_id.clone(),
    }
}

/// The refusal of an earlier answer whose TTL is over (A8).
fn expired(pointer: &str, tool: &str) -> ToolError {
    let tool = || tool.to_owned();
    ToolError::new(ErrorCode::PriceChanged, Say::AnswerTooOld { tool: tool() })
        .field(pointer)
        .hint(Say::CallAgainAndGive { tool: tool() })
}

/// The cart that both name; an error if they name different ones.
fn same_cart(
    asked: Option<&String>,
    other: Option<&String>,
    differs: Say,
) -> Result<Option<String>, ToolError> {
    match (asked, other) {
        (Some(asked), Some(other)) if asked != other => {
            Err(ToolError::invalid("/cart_id", differs).hint(Say::SameCart))
        }
        (asked, other) => Ok(asked.or(other).cloned()),
    }
}
