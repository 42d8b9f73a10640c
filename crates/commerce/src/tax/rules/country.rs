//! What the rule set says about countries and their own taxes.

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
    /// What people call it.
    pub name: Text,
    /// Its customs territory.
    pub territory: String,
    /// What is paid in there.
    pub currency: String,
    /// VAT, GST or sales tax.
    pub tax: Tax,
    /// Parts of it where other rates hold than those of the rules.
    #[serde(default)]
    pub special: Vec<Special>,
    /// What its post takes for clearance.
    #[serde(default)]
    pub fees: Vec<FeeRule>,
}

/// A part of a country with customs or taxes of its own, which the rules do not have.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Special {
    /// How its postal codes begin, in capital letters and without spaces.
    pub postal: Vec<String>,
    /// What people call it.
    pub name: Text,
    /// A name in [`TaxRules::sources`](super::TaxRules::sources).
    pub source: String,
    /// The day that the figure is of.
    pub date: String,
}

impl Country {
    /// The special part that a postal code belongs to, as people write it: `35001`, `E-35001`, `je2 3ab`.
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
    /// What it is called, such as `vat`.
    pub kind: String,
    /// As a decimal; where the country has regions, what is taken in all of them.
    pub standard: Decimal,
    /// What it is computed on where nothing crosses a border.
    #[serde(default = "price")]
    pub domestic_base: TaxBase,
    /// Other rates: the longest code that fits counts.
    #[serde(default)]
    pub rates: Vec<TaxRate>,
    /// Where the rate depends on the region: by its code.
    #[serde(default)]
    pub regions: BTreeMap<String, Region>,
    /// Codes of food, which regions with `exempt_food` do not tax.
    #[serde(default)]
    pub food: Vec<String>,
    /// Codes among them that many of these regions tax.
    #[serde(default)]
    pub food_except: Vec<String>,
    /// Whether towns and counties may add to the rate of a region.
    #[serde(default)]
    pub has_local_rates: bool,
    /// A name in [`TaxRules::sources`](super::TaxRules::sources).
    pub source: String,
    /// The day that the figure is of.
    pub date: String,
}

fn price() -> TaxBase {
    TaxBase::GoodsAndFreight
}

/// Another rate than the standard one.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaxRate {
    /// Its name.
    pub id: String,
    /// Chapters, headings or subheadings.
    pub hs: Vec<String>,
    /// As a decimal.
    pub rate: Decimal,
    /// A consumption tax that is part of its own base, as a decimal.
    #[serde(default)]
    pub excise: Decimal,
    /// How sure an estimate with it may be at most.
    #[serde(default)]
    pub confidence_max: Option<Confidence>,
    /// What the buyer should know.
    #[serde(default)]
    pub note: Option<Text>,
    /// A name in [`TaxRules::sources`](super::TaxRules::sources).
    pub source: String,
    /// The day that the figure is of.
    pub date: String,
}

/// A state or province.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// What people call it.
    pub name: String,
    /// As a decimal, all taxes together.
    pub rate: Decimal,
    /// Codes that it does not tax.
    #[serde(default)]
    pub exempt: Vec<String>,
    /// Whether it does not tax food.
    #[serde(default)]
    pub exempt_food: bool,
}
