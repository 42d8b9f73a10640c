//! The answer of an estimate of duties and taxes.

use countersign::ToolArgs;
use countersign::contract::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::destination::Destination;
use crate::fx::RateUsed;
use crate::money::Money;

/// Duties, taxes and fees of a basket at its destination.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct TaxEstimate {
    /// The cart that it counts for, where one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cart_id: Option<String>,
    /// Digest of the estimated items.
    pub basket: Digest,
    /// Destination.
    pub destination: Destination,
    /// Payer of the duties.
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
    /// Clearance fees of carriers and customs.
    pub fees: Money,
    /// Duty, tax and fees together.
    pub total: Money,
    /// The part of the total that the seller takes: all of it where the incoterm is DDP; where it is DAP, the
    /// tax that is due at the sale, such as VAT on parcels of low value.
    pub due_to_seller: Money,
    /// The rest, which the buyer pays to the carrier.
    pub due_on_delivery: Money,
    /// By line of the basket.
    pub lines: Vec<TaxLine>,
    /// The single fees.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fee_lines: Vec<Fee>,
    /// Method of computation: the [`Method`] of all lines, or `several` if they differ. Names do not change.
    pub method: String,
    /// Confidence of the estimate.
    pub confidence: Confidence,
    /// Why it is no surer, and what the buyer should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The rates that were used, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<RateUsed>,
}

/// Duty and tax of one line.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct TaxLine {
    /// Stock keeping unit.
    pub sku: String,
    /// Harmonized System, six digits.
    pub hs_code: String,
    /// Country of origin.
    pub origin: String,
    /// Country that it ships from.
    pub ships_from: String,
    /// Method of computation of this line.
    pub method: Method,
    /// Value of the goods.
    pub goods_value: Money,
    /// Their share of shipping, by value.
    pub shipping_share: Money,
    /// Goods and their share of shipping, as far as the country counts it.
    pub customs_value: Money,
    /// As a decimal, such as `0.12`; `flat` where the duty is the same whatever the goods are worth.
    pub duty_rate: String,
    /// Of this line.
    pub duty: Money,
    /// Amount that the tax was computed on.
    pub tax_base: Money,
    /// As a decimal.
    pub tax_rate: String,
    /// Of this line.
    pub tax: Money,
    /// Which rules of the rule set made it so.
    pub rules: Vec<String>,
}

/// Method of computation of duty and tax. Names do not change.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Nothing crosses a border: the tax of the country on the price.
    DomesticTaxOnPrice,
    /// Nothing crosses a border of the customs union: the tax of the destination on the price.
    IntraUnionTaxOnPrice,
    /// Worth so little that nothing is taken.
    BelowDeMinimis,
    /// Worth so little that the seller takes the tax, and no duty is due.
    LowValueTaxAtSale,
    /// Worth so little that duty is the same for everything; the seller takes the tax.
    LowValueFlatDuty,
    /// Worth so little that only the tax is due, at the border.
    LowValueTaxAtBorder,
    /// No duty, and a part of the taxes: retail imports by electronic commerce.
    RetailImportReducedTax,
    /// Duty on goods and shipping, tax on both with the duty.
    ImportVatOnCifPlusDuty,
    /// Duty on the goods alone, tax on goods, shipping and duty.
    ImportVatOnFobDutyAndFreight,
    /// Duty on the goods alone, tax on goods and duty.
    ImportTaxOnFobPlusDuty,
    /// Duty on the goods alone, and the sales tax of the region on the price.
    ImportDutyAndSalesTaxOnPrice,
    /// No duty, and the sales tax of the region on the price.
    SalesTaxOnPrice,
}

impl Method {
    /// The name in answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DomesticTaxOnPrice => "domestic_tax_on_price",
            Self::IntraUnionTaxOnPrice => "intra_union_tax_on_price",
            Self::BelowDeMinimis => "below_de_minimis",
            Self::LowValueTaxAtSale => "low_value_tax_at_sale",
            Self::LowValueFlatDuty => "low_value_flat_duty",
            Self::LowValueTaxAtBorder => "low_value_tax_at_border",
            Self::RetailImportReducedTax => "retail_import_reduced_tax",
            Self::ImportVatOnCifPlusDuty => "import_vat_on_cif_plus_duty",
            Self::ImportVatOnFobDutyAndFreight => "import_vat_on_fob_duty_and_freight",
            Self::ImportTaxOnFobPlusDuty => "import_tax_on_fob_plus_duty",
            Self::ImportDutyAndSalesTaxOnPrice => "import_duty_and_sales_tax_on_price",
            Self::SalesTaxOnPrice => "sales_tax_on_price",
        }
    }
}

/// A fee.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct Fee {
    /// Which rule of the rule set.
    pub rule: String,
    /// For people.
    pub name: String,
    /// Amount.
    pub amount: Money,
}

/// Payer of duties and taxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, Deserialize, ToolArgs)]
#[serde(rename_all = "UPPERCASE")]
pub enum Incoterm {
    /// Delivered, duty paid: they are part of the total.
    Ddp,
    /// Delivered at place: the buyer pays them to the carrier.
    Dap,
}

impl Incoterm {
    /// The name in answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ddp => "DDP",
            Self::Dap => "DAP",
        }
    }

    /// A list of incoterms for a message: `DDP, DAP`.
    pub(crate) fn listed(incoterms: &[Self]) -> String {
        let names: Vec<&str> = incoterms.iter().map(|it| it.as_str()).collect();
        names.join(", ")
    }
}

/// Confidence of an estimate.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// Something had to be assumed.
    Low,
    /// The rate of a chapter, not of the tariff line.
    Medium,
    /// All rates are those of the rule set.
    High,
}
