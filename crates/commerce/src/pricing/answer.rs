//! The answer of a quote.

use countersign::contract::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fx::RateUsed;
use crate::money::Money;

/// Prices of a basket, in one currency, for as long as the reply's window.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct Quote {
    /// Its own name, for people.
    pub quote_id: String,
    /// The cart that it counts for, where one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cart_id: Option<String>,
    /// Digest of the priced items. Answers about other items do not match it.
    pub basket: Digest,
    /// In this currency.
    pub currency: String,
    /// By stock keeping unit.
    pub lines: Vec<QuoteLine>,
    /// All lines together.
    pub subtotal: Money,
    /// The rates that were used, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<RateUsed>,
    /// Until when it holds, RFC 3339.
    pub expires_at: String,
}

/// The price of one thing.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct QuoteLine {
    /// Stock keeping unit.
    pub sku: String,
    /// Its offer.
    pub offer_id: String,
    /// Title, in the language of the call.
    pub title: String,
    /// Quantity.
    pub quantity: u32,
    /// Price of one where it is sold, without promotions.
    pub list_price: Money,
    /// Price of one in this quote.
    pub unit_price: Money,
    /// Price of all: `unit_price` times the quantity.
    pub line_total: Money,
    /// Discount on one, by a promotion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discount: Option<Money>,
    /// The promotion that made it so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promotion: Option<PromotionApplied>,
}

/// A promotion that a price rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct PromotionApplied {
    /// Its name in the rule set `prices`.
    pub promotion_id: String,
    /// Its name for people, in the language of the call.
    pub name: String,
    /// As a decimal, such as `22.5`.
    pub percent_off: String,
    /// When it ends, RFC 3339.
    pub until: String,
}
