//! The rule set `tax`: territories with their tariffs and regimes, countries with their taxes, agreements between them.
//! Every entry names its source and its date.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use serde::Deserialize;

use super::answer::{Confidence, Method};
use crate::shop::Text;

mod check;
mod country;

pub use country::{Country, Region, Special, Tax, TaxRate};

/// One version of the rule set `tax`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaxRules {
    /// The disclaimer that this is reference data, for readers of the file.
    pub notice: String,
    /// The day from which it is in force here.
    pub date: String,
    /// HS codes on which countries take an excise that is not part of these rules.
    #[serde(default)]
    pub excisable: Vec<String>,
    /// The carriers that are posts, by their names in the rule set `shipping`; the others are couriers.
    #[serde(default)]
    pub postal_carriers: Vec<String>,
    /// The sources of the figures, by the names that entries use.
    pub sources: BTreeMap<String, String>,
    /// Customs territories, such as `EU`.
    pub territories: BTreeMap<String, Territory>,
    /// The countries by two letters, ISO 3166-1.
    pub countries: BTreeMap<String, Country>,
    /// The agreements under which goods of an origin pay less.
    #[serde(default)]
    pub preferences: Vec<Preference>,
}

/// The source of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cited {
    /// A name in [`TaxRules::sources`].
    pub source: String,
    /// The day of the figure.
    pub date: String,
}

/// A customs territory: no duty inside, one tariff around it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Territory {
    /// The name, for people.
    pub name: Text,
    /// The value that duty is computed on.
    pub customs_value: Valuation,
    /// The duty rate of chapters that `duties` does not have.
    pub duty_default: Decimal,
    /// The source of `duty_default`.
    pub cited: Cited,
    /// The tariff: the longest code that fits counts.
    pub duties: Vec<DutyRate>,
    /// The duties on top of the tariff; all that fit are added.
    #[serde(default)]
    pub additional: Vec<AdditionalDuty>,
    /// The import regimes: the first that fits counts, and the last one always fits.
    pub regimes: Vec<Regime>,
}

/// The value that duty is computed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Valuation {
    /// Cost, insurance, freight: goods with shipping.
    Cif,
    /// Free on board: goods without shipping.
    Fob,
}

/// The duty of some HS codes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DutyRate {
    /// Chapters (two digits), headings (four) or subheadings (six).
    pub hs: Vec<String>,
    /// The rate as a decimal, such as `0.12`.
    pub rate: Decimal,
    /// True if every tariff line of a chapter has this rate.
    #[serde(default)]
    pub is_exact: bool,
    /// The highest confidence of an estimate that uses it.
    #[serde(default)]
    pub confidence_max: Option<Confidence>,
    /// A name in [`TaxRules::sources`].
    pub source: String,
    /// The day of the figure.
    pub date: String,
}

/// A duty on top of the tariff, for goods of some origins.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdditionalDuty {
    /// The id.
    pub id: String,
    /// The origins that it applies to; all if empty.
    #[serde(default)]
    pub origins: Vec<String>,
    /// The origins that it does not apply to.
    #[serde(default)]
    pub except_origins: Vec<String>,
    /// The codes that it applies to; all if empty.
    #[serde(default)]
    pub hs: Vec<String>,
    /// The codes that it does not apply to.
    #[serde(default)]
    pub except_hs: Vec<String>,
    /// The rate as a decimal.
    pub rate: Decimal,
    /// The highest confidence of an estimate that uses it.
    #[serde(default)]
    pub confidence_max: Option<Confidence>,
    /// A name in [`TaxRules::sources`].
    pub source: String,
    /// The day of the figure.
    pub date: String,
}

/// An import regime.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Regime {
    /// The id.
    pub id: String,
    /// The name of its method in answers, which stays stable.
    pub method: Method,
    /// The countries of dispatch that it applies to; all if empty.
    #[serde(default)]
    pub from: Vec<String>,
    /// The kind of carrier that it applies to; `None` for both.
    #[serde(default)]
    pub by: Option<Carriage>,
    /// The codes that it does not apply to.
    #[serde(default)]
    pub except_hs: Vec<String>,
    /// The limit up to which it applies; `None` if there is none.
    #[serde(default)]
    pub limit: Option<Limit>,
    /// The treatment of duty.
    pub duty: DutyTreatment,
    /// The duty for each six-digit code, if it is flat.
    #[serde(default)]
    pub flat_duty: Option<Amount>,
    /// The base of the tax; `None` if there is no tax.
    #[serde(default)]
    pub tax_base: Option<TaxBase>,
    /// True if the seller collects the tax, and none is collected at the border.
    #[serde(default)]
    pub is_tax_at_sale: bool,
    /// The share of the tax that is due, such as `0.7`.
    #[serde(default = "one")]
    pub tax_share: Decimal,
    /// The fees of clearance.
    #[serde(default)]
    pub fees: Vec<FeeRule>,
    /// True if the fees of the country's post are charged as well. They are charged if duty or tax is due, unless a
    /// courier carries the parcel.
    #[serde(default)]
    pub has_country_fees: bool,
    /// The highest confidence of an estimate that uses it.
    #[serde(default)]
    pub confidence_max: Option<Confidence>,
    /// A note for the buyer.
    #[serde(default)]
    pub note: Option<Text>,
    /// A name in [`TaxRules::sources`].
    pub source: String,
    /// The day of the figure.
    pub date: String,
}

fn one() -> Decimal {
    Decimal::ONE
}

/// The kind of carrier that brings a parcel over the border.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Carriage {
    /// The posts, which hand it to each other.
    Post,
    /// Any other carrier.
    Courier,
}

/// The limit up to which a regime applies.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// The measured amount.
    pub of: LimitOf,
    /// The limit, in units of the currency.
    pub amount: Decimal,
    /// The currency in which it is compared.
    pub currency: String,
    /// True if the amount itself is still within the limit.
    #[serde(default = "yes")]
    pub is_inclusive: bool,
}

fn yes() -> bool {
    true
}

/// The amount that a limit measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitOf {
    /// The goods of a consignment, without shipping.
    Goods,
    /// The customs value of a consignment.
    CustomsValue,
    /// The price of one piece.
    Piece,
    /// The tax that would have to be paid for a consignment.
    Tax,
}

/// The treatment of duty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DutyTreatment {
    /// No duty.
    None,
    /// The duty of the tariff.
    Tariff,
    /// The same duty for each six-digit code of a consignment, whatever its value.
    FlatPerCode,
}

/// The base of a tax.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaxBase {
    /// The goods alone.
    Goods,
    /// Goods and shipping.
    GoodsAndFreight,
    /// Goods and duty.
    GoodsAndDuty,
    /// Goods, shipping and duty.
    GoodsFreightAndDuty,
}

/// An amount in units of the currency.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Amount {
    /// The amount.
    pub amount: Decimal,
    /// The currency.
    pub currency: String,
}

/// A fee of clearance for each consignment: an amount, plus a rate on the value of the goods.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeeRule {
    /// The id.
    pub id: String,
    /// The name, for people.
    pub name: Text,
    /// The countries of dispatch that it applies to; all if empty.
    #[serde(default)]
    pub from: Vec<String>,
    /// The countries of dispatch that it does not apply to.
    #[serde(default)]
    pub except_from: Vec<String>,
    /// The fixed amount, in units of the currency.
    #[serde(default)]
    pub amount: Decimal,
    /// The rate on the customs value, as a decimal.
    #[serde(default)]
    pub rate: Decimal,
    /// The minimum.
    #[serde(default)]
    pub min: Option<Decimal>,
    /// The maximum.
    #[serde(default)]
    pub max: Option<Decimal>,
    /// The currency of all its amounts.
    pub currency: String,
    /// True if tax is due on it as well.
    #[serde(default)]
    pub is_taxed: bool,
    /// True if it is waived when an agreement covers all goods.
    #[serde(default)]
    pub is_waived_by_preference: bool,
    /// A name in [`TaxRules::sources`].
    pub source: String,
    /// The day of the figure.
    pub date: String,
}

/// An agreement: goods of an origin pay less, if the seller proves the origin and sends them from there.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preference {
    /// The id.
    pub id: String,
    /// The name, for people.
    pub name: Text,
    /// The territories that charge less.
    pub into: Vec<String>,
    /// The countries or territories of origin.
    pub origins: Vec<String>,
    /// The first chapter that it covers.
    pub chapter_first: u8,
    /// The last chapter that it covers.
    pub chapter_last: u8,
    /// The chapters between them that it does not cover, or not yet.
    #[serde(default)]
    pub except_chapters: Vec<u8>,
    /// The duty rate under the agreement, as a decimal.
    pub rate: Decimal,
    /// A name in [`TaxRules::sources`].
    pub source: String,
    /// The day of the figure.
    pub date: String,
}
