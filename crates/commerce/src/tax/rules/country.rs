//! Countries and their own taxes in the rule set.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use serde::Deserialize;

use super::{FeeRule, TaxBase};
use crate::shop::Text;
use crate::tax::answer::Confidence;

/// A country and its tax.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Country {
    /// The name, for people.
    pub name: Text,
    /// The customs territory that it belongs to.
    pub territory: String,
    /// The currency.
    pub currency: String,
    /// VAT, GST or sales tax.
    pub tax: Tax,
    /// Parts of it that have other rates than those of the rules.
    #[serde(default)]
    pub special: Vec<Special>,
    /// The clearance fees of its post.
    #[serde(default)]
    pub fees: Vec<FeeRule>,
}

/// A part of a country with customs or taxes of its own, which the rules do not have.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Special {
    /// The prefixes of its postal codes, in capital letters and without spaces.
    pub postal: Vec<String>,
    /// The name, for people.
    pub name: Text,
    /// A name in [`TaxRules::sources`](super::TaxRules::sources).
    pub source: String,
    /// The day of the figure.
    pub date: String,
}

impl Country {
    /// The special part of a postal code as people write it: `35001`, `E-35001`, `je2 3ab`; `None` if it is in none.
    pub fn special(&self, postal_code: &str) -> Option<&Special> {
        let letters = postal_code.chars().filter(char::is_ascii_alphanumeric);
        let code: String = letters.map(|letter| letter.to_ascii_uppercase()).collect();
        let digits = code.trim_start_matches(|letter: char| letter.is_ascii_alphabetic());
        let begins = |start: &String| {
            let is_number = start.starts_with(|letter: char| letter.is_ascii_digit());
            let code = if is_number { digits } else { &code };
            code.starts_with(start.as_str())
        };
        self.special
            .iter()
            .find(|part| part.postal.iter().any(begins))
    }
}

/// VAT, GST or sales tax of a country.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tax {
    /// The kind of tax, such as `vat`.
    pub kind: String,
    /// The standard rate as a decimal; if the country has regions, the part that all of them have in common.
    pub standard: Decimal,
    /// The base of the tax if no border is crossed.
    #[serde(default = "price")]
    pub domestic_base: TaxBase,
    /// Other rates: the longest code that fits counts.
    #[serde(default)]
    pub rates: Vec<TaxRate>,
    /// The regions by code; empty if the rate does not depend on the region.
    #[serde(default)]
    pub regions: BTreeMap<String, Region>,
    /// Codes of food, which regions with `exempt_food` do not tax.
    #[serde(default)]
    pub food: Vec<String>,
    /// Codes among them that many of these regions tax.
    #[serde(default)]
    pub food_except: Vec<String>,
    /// True if towns and counties may add to the rate of a region.
    #[serde(default)]
    pub has_local_rates: bool,
    /// A name in [`TaxRules::sources`](super::TaxRules::sources).
    pub source: String,
    /// The day of the figure.
    pub date: String,
}

fn price() -> TaxBase {
    TaxBase::GoodsAndFreight
}

/// Another rate than the standard one.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaxRate {
    /// The id.
    pub id: String,
    /// The chapters, headings or subheadings that it applies to.
    pub hs: Vec<String>,
    /// The rate as a decimal.
    pub rate: Decimal,
    /// A consumption tax that is part of its own base, as a decimal.
    #[serde(default)]
    pub excise: Decimal,
    /// The highest confidence of an estimate that uses it.
    #[serde(default)]
    pub confidence_max: Option<Confidence>,
    /// A note for the buyer.
    #[serde(default)]
    pub note: Option<Text>,
    /// A name in [`TaxRules::sources`](super::TaxRules::sources).
    pub source: String,
    /// The day of the figure.
    pub date: String,
}

/// A state or province.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// The name.
    pub name: String,
    /// The rate of all taxes together, as a decimal.
    pub rate: Decimal,
    /// The codes that it does not tax.
    #[serde(default)]
    pub exempt: Vec<String>,
    /// True if it does not tax food.
    #[serde(default)]
    pub exempt_food: bool,
}
