//! The answer of a quote.

use countersign::contract::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fx::RateUsed;
use crate::money::Money;

/// Prices of a basket in one currency. They are valid until `expires_at`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct Quote {
    /// Id of the quote, for people.
    pub quote_id: String,
    /// Id of the cart that the quote is valid for, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cart_id: Option<String>,
    /// Digest of the priced items. Answers about other items do not match it.
    pub basket: Digest,
    /// Currency of all amounts.
    pub currency: String,
    /// Price by item.
    pub lines: Vec<QuoteLine>,
    /// Sum of all lines.
    pub subtotal: Money,
    /// Exchange rates that were used, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<RateUsed>,
    /// Expiry, RFC 3339.
    pub expires_at: String,
}

/// Price of one item.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct QuoteLine {
    /// Stock keeping unit.
    pub sku: String,
    /// Id of the offer.
    pub offer_id: String,
    /// Title, in the language of the call.
    pub title: String,
    /// Quantity.
    pub quantity: u32,
    /// List price of one, in the seller's currency, without promotions.
    pub list_price: Money,
    /// Price of one in this quote.
    pub unit_price: Money,
    /// Price of the whole quantity: `unit_price` times `quantity`.
    pub line_total: Money,
    /// Discount on one, by a promotion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discount: Option<Money>,
    /// Promotion that the price includes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promotion: Option<PromotionApplied>,
}

/// A promotion that a price includes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct PromotionApplied {
    /// Id of the promotion in the rule set `prices`.
    pub promotion_id: String,
    /// Name for people, in the language of the call.
    pub name: String,
    /// Discount in percent, a decimal such as `22.5`.
    pub percent_off: String,
    /// End of the promotion, RFC 3339.
    pub until: String,
}
