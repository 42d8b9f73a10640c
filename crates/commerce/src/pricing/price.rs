//! The one computation of prices: a quote makes it, and checkout repeats it to see if prices have changed.

use std::sync::Arc;

use countersign::contract::Digest;
use countersign::{CallContext, ToolError};
use jiff::Timestamp;
use rust_decimal::Decimal;

use super::answer::{PromotionApplied, QuoteLine};
use super::prices::{Prices, Promotion};
use crate::fx::{RateUsed, Rates};
use crate::item::Basket;
use crate::money::{Money, MoneyError};
use crate::shop::{Offer, Shop, Variant};

/// A basket with its prices.
#[derive(Debug, Clone, PartialEq)]
pub struct Priced {
    /// The digest of the basket.
    pub basket: Digest,
    /// The currency of all amounts.
    pub currency: String,
    /// The lines, in the order of their SKUs.
    pub lines: Vec<QuoteLine>,
    /// The sum of all lines.
    pub subtotal: Money,
    /// The exchange rates that were used, each once.
    pub rates: Vec<RateUsed>,
}

/// A change of an item's price.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct PriceMove {
    /// The SKU.
    pub sku: String,
    /// The former unit price.
    pub old: Money,
    /// The current unit price.
    pub new: Money,
}

/// Prices a basket with the rules, time and locale of the call.
///
/// A quote and the totals that rest on it come from here, so that their arithmetic cannot differ. A unit price is
/// discounted and converted exactly and rounded once; everything else is a multiple of it.
pub fn price(ctx: &CallContext, basket: &Basket, currency: &str) -> Result<Priced, ToolError> {
    PriceRules::of(ctx)?.pricer(ctx, currency).price(basket)
}

/// The rule sets that prices depend on. Reading them makes them part of the call's record.
#[derive(Debug, Clone)]
pub struct PriceRules {
    /// The offers and their list prices.
    pub shop: Arc<Shop>,
    /// The price overrides and promotions.
    pub prices: Arc<Prices>,
    /// Exchange rates.
    pub rates: Arc<Rates>,
}

impl PriceRules {
    /// The rule sets in force; in a replay those of the record.
    pub fn of(ctx: &CallContext) -> Result<Self, ToolError> {
        Ok(Self {
            shop: Shop::of(ctx)?,
            prices: Prices::of(ctx)?,
            rates: Rates::of(ctx)?,
        })
    }

    /// A pricer with the time and locale of the call.
    pub fn pricer<'a>(&'a self, ctx: &'a CallContext, currency: &'a str) -> Pricer<'a> {
        Pricer {
            shop: &self.shop,
            prices: &self.prices,
            rates: &self.rates,
            currency,
            now: ctx.now(),
            locale: ctx.request().locale.as_deref(),
        }
    }
}

/// Everything that prices depend on.
#[derive(Debug, Clone, Copy)]
pub struct Pricer<'a> {
    /// The offers and their list prices.
    pub shop: &'a Shop,
    /// The price overrides and promotions.
    pub prices: &'a Prices,
    /// Exchange rates.
    pub rates: &'a Rates,
    /// The currency of the answer.
    pub currency: &'a str,
    /// The time of the call.
    pub now: Timestamp,
    /// The locale of titles.
    pub locale: Option<&'a str>,
}

impl Pricer<'_> {
    /// Prices a basket.
    pub fn price(&self, basket: &Basket) -> Result<Priced, ToolError> {
        let mut lines = Vec::with_capacity(basket.len());
        let mut rates: Vec<RateUsed> = Vec::new();
        for (sku, quantity) in basket.lines() {
            let (offer, variant) = self.shop.known(sku, "/items")?;
            let (line, rate) = self.line(offer, variant, quantity)?;
            rates.extend(rate.filter(|rate| !rates.contains(rate)));
            lines.push(line);
        }
        let totals = lines.iter().map(|line| &line.line_total);
        Ok(Priced {
            basket: basket.digest()?,
            currency: self.currency.to_ascii_uppercase(),
            subtotal: Money::sum(totals, self.currency)?,
            lines,
            rates,
        })
    }

    fn line(
        &self,
        offer: &Offer,
        variant: &Variant,
        quantity: u32,
    ) -> Result<(QuoteLine, Option<RateUsed>), ToolError> {
        let list_price = Money::new(self.prices.list_price(variant, self.now), &offer.currency);
        let promotion = self.prices.promotion(offer, self.now);
        let (regular, rate) = self.rounded(list_price.decimal()?, &offer.currency)?;
        let unit_price = self.unit_price(offer, variant)?;
        let discount = Money::new(
            regular.amount.saturating_sub(unit_price.amount),
            self.currency,
        );
        let line = QuoteLine {
            sku: variant.sku.clone(),
            offer_id: offer.offer_id.clone(),
            title: offer.title.for_locale(self.locale).to_owned(),
            quantity,
            list_price,
            line_total: unit_price.times(quantity)?,
            unit_price,
            discount: promotion.map(|_| discount),
            promotion: promotion.map(|promotion| self.applied(promotion)),
        };
        Ok((line, rate))
    }

    /// The unit price of a variant.
    pub fn unit_price(&self, offer: &Offer, variant: &Variant) -> Result<Money, ToolError> {
        let list_price = Money::new(self.prices.list_price(variant, self.now), &offer.currency);
        let exact = list_price.decimal()?;
        let promotion = self.prices.promotion(offer, self.now);
        let reduced = promotion.map_or(Some(exact), |promotion| promotion.apply(exact));
        let (price, _) = self.rounded(reduced.ok_or(MoneyError::TooLarge)?, &offer.currency)?;
        Ok(price)
    }

    fn rounded(&self, amount: Decimal, from: &str) -> Result<(Money, Option<RateUsed>), ToolError> {
        let (amount, rate) = self.rates.exchange(amount, from, self.currency)?;
        Ok((Money::round(amount, self.currency)?, rate))
    }

    /// A promotion, for people.
    pub fn applied(&self, promotion: &Promotion) -> PromotionApplied {
        PromotionApplied {
            promotion_id: promotion.promotion_id.clone(),
            name: promotion.name.for_locale(self.locale).to_owned(),
            percent_off: promotion.percent_off.normalize().to_string(),
            until: promotion.until.to_string(),
        }
    }
}

impl Priced {
    /// The items whose unit price differs from these lines: what `PRICE_CHANGED` shows as old and new. Items that are
    /// not in both are left out; compare baskets by their digest.
    pub fn moved_since(&self, lines: &[QuoteLine]) -> Vec<PriceMove> {
        let mut moves = Vec::new();
        for line in &self.lines {
            let before = lines.iter().find(|before| before.sku == line.sku);
            let before = before.filter(|before| before.unit_price != line.unit_price);
            moves.extend(before.map(|before| PriceMove {
                sku: line.sku.clone(),
                old: before.unit_price.clone(),
                new: line.unit_price.clone(),
            }));
        }
        moves
    }
}
