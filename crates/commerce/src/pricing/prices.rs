//! The rule set `prices`: temporary changes of the list prices.

use std::sync::Arc;

use countersign::{CallContext, ToolError};
use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::Deserialize;

use crate::money::AMOUNT_MAX;
use crate::rulebook::{Book, RuleData, RuleFile};
use crate::shop::{Offer, Text, Variant, is_within};

/// The files of this area, oldest first.
pub(crate) const RULES: &[RuleFile] = &[RuleFile::new(
    "2026-11-01",
    include_str!("../../rules/prices/2026-11-01.toml"),
)];

static BOOK: Book<Prices> = Book::new();

/// The maximum discount, in percent.
const PERCENT_OFF_MAX: Decimal = Decimal::from_parts(90, 0, 0, false, 0);

/// Temporary prices: overrides and promotions.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// The source of the prices.
    pub source: String,
    /// The day from which they apply.
    pub date: String,
    /// Other list prices of single items; if two apply at once, the last one counts.
    #[serde(default)]
    pub overrides: Vec<Override>,
    /// The promotions.
    #[serde(default)]
    pub promotions: Vec<Promotion>,
}

/// Another list price of one item.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Override {
    /// The SKU.
    pub sku: String,
    /// The price in the smallest unit of its offer's currency.
    pub price: i64,
    /// The start; `None` if it applies from the beginning.
    #[serde(default)]
    pub from: Option<Timestamp>,
    /// The end, exclusive; `None` if it does not end.
    #[serde(default)]
    pub until: Option<Timestamp>,
}

/// A temporary percentage off.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Promotion {
    /// The id.
    pub promotion_id: String,
    /// The name, for people.
    pub name: Text,
    /// The category that it applies to, with everything below it.
    #[serde(default)]
    pub category: Option<String>,
    /// The offer that it applies to.
    #[serde(default)]
    pub offer_id: Option<String>,
    /// The percentage off the list price.
    pub percent_off: Decimal,
    /// The start.
    pub from: Timestamp,
    /// The end, exclusive.
    pub until: Timestamp,
}

impl RuleData for Prices {
    const NAME: &'static str = "prices";

    fn check(&self) -> Result<(), String> {
        for changed in &self.overrides {
            if !(1..=AMOUNT_MAX).contains(&changed.price) {
                return Err(format!("the price of {} has to be above zero", changed.sku));
            }
        }
        for promotion in &self.promotions {
            let id = &promotion.promotion_id;
            if promotion.percent_off <= Decimal::ZERO || promotion.percent_off > PERCENT_OFF_MAX {
                return Err(format!(
                    "{id} has to take off more than 0 and at most {PERCENT_OFF_MAX} percent"
                ));
            }
            if promotion.until <= promotion.from {
                return Err(format!("{id} has to end after it starts"));
            }
            if promotion.category.is_some() == promotion.offer_id.is_some() {
                return Err(format!("{id} needs a category or an offer, and not both"));
            }
        }
        Ok(())
    }
}

impl Prices {
    /// The prices in force; in a replay those of the record.
    pub fn of(ctx: &CallContext) -> Result<Arc<Self>, ToolError> {
        BOOK.get(ctx)
    }

    /// The list price of a variant at a time, in the smallest unit of its offer's currency.
    pub fn list_price(&self, variant: &Variant, now: Timestamp) -> i64 {
        let mut overrides = self.overrides.iter().rev();
        let changed = overrides.find(|changed| changed.sku == variant.sku && changed.holds(now));
        changed.map_or(variant.price, |changed| changed.price)
    }

    /// The promotion that takes most off an offer at a time; of two equal ones the first.
    pub fn promotion(&self, offer: &Offer, now: Timestamp) -> Option<&Promotion> {
        let promotions = self.promotions.iter();
        let held = promotions.filter(|promotion| promotion.is_for(offer) && promotion.holds(now));
        held.reduce(|best, other| {
            if other.percent_off > best.percent_off {
                other
            } else {
                best
            }
        })
    }
}

impl Override {
    fn holds(&self, now: Timestamp) -> bool {
        self.from.is_none_or(|from| from <= now) && self.until.is_none_or(|until| now < until)
    }
}

impl Promotion {
    /// The reduced price; `None` on overflow.
    pub fn apply(&self, price: Decimal) -> Option<Decimal> {
        let left = Decimal::ONE_HUNDRED.checked_sub(self.percent_off)?;
        price.checked_mul(left)?.checked_div(Decimal::ONE_HUNDRED)
    }

    fn is_for(&self, offer: &Offer) -> bool {
        let category = self.category.as_deref();
        category.is_some_and(|category| is_within(&offer.category, category))
            || self.offer_id.as_deref() == Some(offer.offer_id.as_str())
    }

    fn holds(&self, now: Timestamp) -> bool {
        self.from <= now && now < self.until
    }
}
