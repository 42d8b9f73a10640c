//! What the rule set `tax` says: territories with their tariffs and regimes, countries with their taxes,
//! agreements between them. Every entry names its source and its date.

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
    /// That this is reference data, for whoever opens the file.
    pub notice: String,
    /// The day from which it is in force here.
    pub date: String,
    /// Codes on which countries take an excise that is not part of these rules.
    #[serde(default)]
    pub excisable: Vec<String>,
    /// Carriers that are posts, by their names in the rule set `shipping`; the others are couriers.
    #[serde(default)]
    pub postal_carriers: Vec<String>,
    /// Where the figures come from, by the names that entries use.
    pub sources: BTreeMap<String, String>,
    /// Customs territories, such as `EU`.
    pub territories: BTreeMap<String, Territory>,
    /// By two letters, ISO 3166-1.
    pub countries: BTreeMap<String, Country>,
    /// Agreements by which goods of an origin pay less.
    #[serde(default)]
    pub preferences: Vec<Preference>,
}

/// Where an entry comes from.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cited {
    /// A name in [`TaxRules::sources`].
    pub source: String,
    /// The day that the figure is of.
    pub date: String,
}

/// One customs territory: no duty inside, one tariff around it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Territory {
    /// What people call it.
    pub name: Text,
    /// What duty is computed on.
    pub customs_value: Valuation,
    /// For chapters that `duties` does not know.
    pub duty_default: Decimal,
    /// Of `duty_default`.
    pub cited: Cited,
    /// The tariff: the longest code that fits counts.
    pub duties: Vec<DutyRate>,
    /// What is taken on top of the tariff, all that fit.
    #[serde(default)]
    pub additional: Vec<AdditionalDuty>,
    /// How imports are treated: the first that fits counts, and the last one always fits.
    pub regimes: Vec<Regime>,
}

/// What duty is computed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Valuation {
    /// Cost, insurance, freight: with shipping.
    Cif,
    /// Free on board: without.
    Fob,
}

/// Duty of some tariff codes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DutyRate {
    /// Chapters (two digits), headings (four) or subheadings (six).
    pub hs: Vec<String>,
    /// As a decimal, such as `0.12`.
    pub rate: Decimal,
    /// Whether every tariff line of a chapter has it.
    #[serde(default)]
    pub is_exact: bool,
    /// How sure an estimate with it may be at most.
    #[serde(default)]
    pub confidence_max: Option<Confidence>,
    /// A name in [`TaxRules::sources`].
    pub source: String,
    /// The day that the figure is of.
    pub date: String,
}

/// Duty on top of the tariff, for goods of some origins.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdditionalDuty {
    /// Its name.
    pub id: String,
    /// Of these countries; of all where there are none.
    #[serde(default)]
    pub origins: Vec<String>,
    /// Not of these.
    #[serde(default)]
    pub except_origins: Vec<String>,
    /// For these codes; for all where there are none.
    #[serde(default)]
    pub hs: Vec<String>,
    /// Not for these.
    #[serde(default)]
    pub except_hs: Vec<String>,
    /// As a decimal.
    pub rate: Decimal,
    /// How sure an estimate with it may be at most.
    #[serde(default)]
    pub confidence_max: Option<Confidence>,
    /// A name in [`TaxRules::sources`].
    pub source: String,
    /// The day that the figure is of.
    pub date: String,
}

/// How an import is treated.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Regime {
    /// Its name.
    pub id: String,
    /// How it is computed, in words that stay.
    pub method: Method,
    /// Only for what is sent from these countries; from all where there are none.
    #[serde(default)]
    pub from: Vec<String>,
    /// Only for what is carried like this; however it is carried where nothing is said.
    #[serde(default)]
    pub by: Option<Carriage>,
    /// Not for these codes.
    #[serde(default)]
    pub except_hs: Vec<String>,
    /// Only up to here.
    #[serde(default)]
    pub limit: Option<Limit>,
    /// What duty is taken.
    pub duty: DutyTreatment,
    /// The duty for each six-digit code, where it is flat.
    #[serde(default)]
    pub flat_duty: Option<Amount>,
    /// What the tax is computed on; no tax where there is none.
    #[serde(default)]
    pub tax_base: Option<TaxBase>,
    /// Whether the seller takes the tax, and nobody at the border.
    #[serde(default)]
    pub is_tax_at_sale: bool,
    /// The part of the tax that is taken, such as `0.7`.
    #[serde(default = "one")]
    pub tax_share: Decimal,
    /// What clearance costs.
    #[serde(default)]
    pub fees: Vec<FeeRule>,
    /// Whether the fees of the country are taken as well, where its post brings the parcel.
    #[serde(default)]
    pub has_country_fees: bool,
    /// How sure an estimate with it may be at most.
    #[serde(default)]
    pub confidence_max: Option<Confidence>,
    /// What the buyer should know.
    #[serde(default)]
    pub note: Option<Text>,
    /// A name in [`TaxRules::sources`].
    pub source: String,
    /// The day that the figure is of.
    pub date: String,
}

fn one() -> Decimal {
    Decimal::ONE
}

/// Who carries a parcel over the border.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Carriage {
    /// The posts, which hand it to each other.
    Post,
    /// Anybody else.
    Courier,
}

/// Up to where a regime goes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Of what.
    pub of: LimitOf,
    /// Up to so much, in the currency itself.
    pub amount: Decimal,
    /// In which it is compared.
    pub currency: String,
    /// Whether the amount itself is still within.
    #[serde(default = "yes")]
    pub is_inclusive: bool,
}

fn yes() -> bool {
    true
}

/// What a limit is a limit of.
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

/// What duty is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DutyTreatment {
    /// None.
    None,
    /// That of the tariff.
    Tariff,
    /// The same for each six-digit code of a consignment, whatever it is worth.
    FlatPerCode,
}

/// What a tax is computed on.
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

/// An amount in the currency itself.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Amount {
    /// How much.
    pub amount: Decimal,
    /// Of what.
    pub currency: String,
}

/// What clearance costs: so much, and a part of the goods' value, for each consignment.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeeRule {
    /// Its name.
    pub id: String,
    /// For people.
    pub name: Text,
    /// Only for what is sent from these countries; from all where there are none.
    #[serde(default)]
    pub from: Vec<String>,
    /// Not for what is sent from these.
    #[serde(default)]
    pub except_from: Vec<String>,
    /// In the currency itself.
    #[serde(default)]
    pub amount: Decimal,
    /// A part of the customs value, as a decimal.
    #[serde(default)]
    pub rate: Decimal,
    /// Not less.
    #[serde(default)]
    pub min: Option<Decimal>,
    /// Not more.
    #[serde(default)]
    pub max: Option<Decimal>,
    /// Of all its amounts.
    pub currency: String,
    /// Whether tax is due on it as well.
    #[serde(default)]
    pub is_taxed: bool,
    /// Whether it is not taken where an agreement covers everything.
    #[serde(default)]
    pub is_waived_by_preference: bool,
    /// A name in [`TaxRules::sources`].
    pub source: String,
    /// The day that the figure is of.
    pub date: String,
}

/// Goods of an origin pay less, if the seller proves the origin and sends them from there.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preference {
    /// Its name.
    pub id: String,
    /// What people call it.
    pub name: Text,
    /// The territory that takes less.
    pub into: Vec<String>,
    /// Countries or territories of origin.
    pub origins: Vec<String>,
    /// The first chapter that it counts for.
    pub chapter_first: u8,
    /// The last one.
    pub chapter_last: u8,
    /// Chapters between them that it does not free, or not yet.
    #[serde(default)]
    pub except_chapters: Vec<u8>,
    /// The duty instead, as a decimal.
    pub rate: Decimal,
    /// A name in [`TaxRules::sources`].
    pub source: String,
    /// The day that the figure is of.
    pub date: String,
}
