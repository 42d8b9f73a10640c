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
    /// Id of the cart that the estimate is valid for, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cart_id: Option<String>,
    /// Digest of the estimated items.
    pub basket: Digest,
    /// Destination.
    pub destination: Destination,
    /// Payer of duties and taxes.
    pub incoterm: Incoterm,
    /// Currency of all amounts.
    pub currency: String,
    /// Value of the items that was used.
    pub goods_value: Money,
    /// Shipping cost that was used.
    pub shipping_cost: Money,
    /// Id of the shipping option with this cost, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shipping_option_id: Option<String>,
    /// Customs duty.
    pub duty: Money,
    /// VAT, GST or sales tax.
    pub tax: Money,
    /// Clearance fees of carriers and customs.
    pub fees: Money,
    /// Sum of duty, tax and fees.
    pub total: Money,
    /// Part of the total that the seller collects. With DDP it is the whole total. With DAP it is the tax due at the sale, such as VAT on low-value
    /// parcels.
    pub due_to_seller: Money,
    /// Rest of the total, which the buyer pays to the carrier.
    pub due_on_delivery: Money,
    /// Duty and tax by item.
    pub lines: Vec<TaxLine>,
    /// Single fees.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fee_lines: Vec<Fee>,
    /// Method of computation: that of all lines, or `several` if they differ. Names do not change.
    pub method: String,
    /// Confidence of the estimate.
    pub confidence: Confidence,
    /// Reasons why the estimate is not more certain, and notes for the buyer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Exchange rates that were used, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<RateUsed>,
}

/// Duty and tax of one line.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct TaxLine {
    /// Stock keeping unit.
    pub sku: String,
    /// Customs code: Harmonized System, six digits.
    pub hs_code: String,
    /// Country of origin.
    pub origin: String,
    /// Country that it ships from.
    pub ships_from: String,
    /// Method of computation of this line.
    pub method: Method,
    /// Value of the items.
    pub goods_value: Money,
    /// Share of the shipping cost, by value.
    pub shipping_share: Money,
    /// Customs value: items and shipping share, by the rules of the country.
    pub customs_value: Money,
    /// Duty rate, a decimal such as `0.12`; `flat` if the duty does not depend on the value.
    pub duty_rate: String,
    /// Duty of this line.
    pub duty: Money,
    /// Amount that the tax was computed on.
    pub tax_base: Money,
    /// Tax rate, a decimal such as `0.19`.
    pub tax_rate: String,
    /// Tax of this line.
    pub tax: Money,
    /// Ids of the rules that were applied.
    pub rules: Vec<String>,
}

/// Method of computation of duty and tax. Names do not change.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Domestic sale: tax of the country on the price.
    DomesticTaxOnPrice,
    /// Sale inside a customs union: tax of the destination on the price.
    IntraUnionTaxOnPrice,
    /// Value below the exemption limit: no duty and no tax.
    BelowDeMinimis,
    /// Low value: no duty; the seller collects the tax.
    LowValueTaxAtSale,
    /// Low value: the same duty for all items; the seller collects the tax.
    LowValueFlatDuty,
    /// Low value: no duty; the tax is paid at the border.
    LowValueTaxAtBorder,
    /// Retail import by electronic commerce: no duty, reduced taxes.
    RetailImportReducedTax,
    /// Duty on items and shipping; tax on items, shipping and duty.
    ImportVatOnCifPlusDuty,
    /// Duty on the items only; tax on items, shipping and duty.
    ImportVatOnFobDutyAndFreight,
    /// Duty on the items only; tax on items and duty.
    ImportTaxOnFobPlusDuty,
    /// Duty on the items only; sales tax of the region on the price.
    ImportDutyAndSalesTaxOnPrice,
    /// No duty; sales tax of the region on the price.
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
    /// Id of the rule.
    pub rule: String,
    /// Name for people.
    pub name: String,
    /// Amount.
    pub amount: Money,
}

/// Payer of duties and taxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, Deserialize, ToolArgs)]
#[serde(rename_all = "UPPERCASE")]
pub enum Incoterm {
    /// Delivered duty paid: duties and taxes are part of the total.
    Ddp,
    /// Delivered at place: the buyer pays duties and taxes to the carrier.
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
    /// Low: a fact had to be assumed.
    Low,
    /// Medium: the rate of the chapter was used, not that of the tariff line.
    Medium,
    /// High: all rates are from the rule set.
    High,
}
