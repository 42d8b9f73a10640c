//! What an estimate of duties and taxes says.

use countersign::ToolArgs;
use countersign::contract::Digest;
use serde::{Deserialize, Serialize};

use crate::destination::Destination;
use crate::fx::RateUsed;
use crate::money::Money;

/// Duties, taxes and fees of a basket at its destination.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaxEstimate {
    /// The cart that it counts for, where one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cart_id: Option<String>,
    /// What was estimated.
    pub basket: Digest,
    /// Where it goes.
    pub destination: Destination,
    /// Who pays the duties.
    pub incoterm: Incoterm,
    /// In this currency.
    pub currency: String,
    /// The value of the goods that it was computed from.
    pub goods_value: Money,
    /// The cost of shipping that it was computed from.
    pub shipping_cost: Money,
    /// The option that this cost is of, where shipping was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shipping_option_id: Option<String>,
    /// Customs duty.
    pub duty: Money,
    /// VAT, GST or sales tax.
    pub tax: Money,
    /// What carriers and offices charge for clearance.
    pub fees: Money,
    /// Duty, tax and fees together.
    pub total: Money,
    /// By line of the basket.
    pub lines: Vec<TaxLine>,
    /// The single fees.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fee_lines: Vec<Fee>,
    /// How it was computed, in words that stay: such as `import_vat_on_cif_plus_duty`.
    pub method: String,
    /// How sure it is.
    pub confidence: Confidence,
    /// Why it is no surer, and what the buyer should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The rates that were used, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<RateUsed>,
}

/// Duty and tax of one line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaxLine {
    /// What.
    pub sku: String,
    /// Harmonized System, six digits.
    pub hs_code: String,
    /// Where it was made.
    pub origin: String,
    /// Goods and their share of shipping, as far as the country counts it.
    pub customs_value: Money,
    /// As a decimal, such as `0.12`.
    pub duty_rate: String,
    /// Of this line.
    pub duty: Money,
    /// As a decimal.
    pub tax_rate: String,
    /// Of this line.
    pub tax: Money,
    /// Which rules of the rule set made it so.
    pub rules: Vec<String>,
}

/// A fee.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fee {
    /// Which rule of the rule set.
    pub rule: String,
    /// For people.
    pub name: String,
    /// How much.
    pub amount: Money,
}

/// Who pays duties and taxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToolArgs)]
#[serde(rename_all = "UPPERCASE")]
pub enum Incoterm {
    /// Delivered, duty paid: they are part of the total.
    Ddp,
    /// Delivered at place: the buyer pays them to the carrier.
    Dap,
}

/// How sure an estimate is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// Something had to be assumed.
    Low,
    /// The rate of a chapter, not of the tariff line.
    Medium,
    /// All rates are those of the rule set.
    High,
}
