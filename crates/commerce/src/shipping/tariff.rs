//! The rule set `shipping`: zones, services, prices by bracket of weight, and what is not taken.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use countersign::{CallContext, ToolError};
use rust_decimal::Decimal;
use serde::Deserialize;

use super::goods::Goods;
use crate::rulebook::{Book, RuleFile};
use crate::shop::Text;
use crate::tax::Incoterm;

mod check;

/// The files of this area, oldest first.
pub(crate) const RULES: &[RuleFile] = &[
    RuleFile::new(
        "2025-07-01",
        include_str!("../../rules/shipping/2025-07-01.toml"),
    ),
    RuleFile::new(
        "2026-11-01",
        include_str!("../../rules/shipping/2026-11-01.toml"),
    ),
];

static BOOK: Book<Tariff> = Book::new();

/// Everything that a price of shipping is computed from.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tariff {
    /// Where it comes from.
    pub source: String,
    /// The day from which it holds.
    pub date: String,
    /// Of all prices in it.
    pub currency: String,
    domestic_zone: String,
    groups: BTreeMap<String, BTreeSet<String>>,
    /// By the group of the sender, then of the receiver.
    zones: BTreeMap<String, BTreeMap<String, String>>,
    remote_areas: BTreeMap<String, Vec<String>>,
    pub(super) goods: Vec<Goods>,
    /// Names for people.
    pub(super) carriers: BTreeMap<String, String>,
    pub(super) services: Vec<Service>,
}

/// One service of a carrier.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Service {
    /// `carrier.service`: the name of the option.
    pub(super) id: String,
    pub(super) name: Text,
    /// Groups that it collects from; everywhere where none is named.
    #[serde(default)]
    from: Vec<String>,
    /// Groups that it delivers to.
    #[serde(default)]
    to: Vec<String>,
    /// Absent where only the scales count.
    pub(super) volumetric: Option<Volumetric>,
    /// The upper ends of the brackets, rising.
    pub(super) brackets_g: Vec<u64>,
    pub(super) limits: Limits,
    /// As a decimal of freight and remote area.
    pub(super) fuel_rate: Decimal,
    pub(super) remote: Remote,
    pub(super) guaranteed: bool,
    pub(super) tracked: bool,
    pub(super) incoterms: Vec<Incoterm>,
    pub(super) refuses: Vec<String>,
    /// Taken, for a price of its own.
    #[serde(default)]
    pub(super) handles: Vec<Handling>,
    #[serde(default)]
    pub(super) notes: Vec<Text>,
    pub(super) zones: BTreeMap<String, ZoneRates>,
}

/// How volume counts as weight.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Volumetric {
    pub(super) divisor_cm3_per_kg: u64,
    source: String,
}

/// What is too heavy or too large. Sides are those of each packed thing; weight and volume are those of the parcel.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Limits {
    pub(super) weight_max_g: u64,
    pub(super) side_max_mm: u64,
    #[serde(default)]
    pub(super) sides_sum_max_mm: Option<u64>,
    /// The longest side and the way around the other two.
    #[serde(default)]
    pub(super) length_and_girth_max_mm: Option<u64>,
    #[serde(default)]
    pub(super) volume_max_cm3: Option<u64>,
    source: String,
}

/// What becomes of remote areas.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "policy", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Remote {
    /// They cost the same.
    Included {},
    /// They are not served.
    Refused {},
    /// So much for each kilogram, and not less than the minimum.
    Surcharge { minimum: Decimal, per_kg: Decimal },
}

/// A kind of goods that is taken for a price of its own, for each parcel.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Handling {
    pub(super) goods: String,
    pub(super) price: Decimal,
}

/// Prices of one zone.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ZoneRates {
    /// Working days, at least and at most.
    pub(super) days: (u32, u32),
    /// One for each bracket, never falling.
    pub(super) prices: Vec<Decimal>,
    /// For each kilogram that is begun beyond the last bracket.
    #[serde(default)]
    pub(super) per_kg: Option<Decimal>,
}

impl Tariff {
    /// The tariff in force; in a replay that of the record.
    pub fn of(ctx: &CallContext) -> Result<Arc<Self>, ToolError> {
        BOOK.get(ctx)
    }

    /// The group of a country.
    pub(super) fn group(&self, country: &str) -> Option<&str> {
        let mut groups = self.groups.iter();
        let found = groups.find(|(_, countries)| countries.contains(country));
        found.map(|(name, _)| name.as_str())
    }

    /// The countries that something can be sent to, in order.
    pub fn served(&self) -> BTreeSet<&str> {
        let receiving = self.zones.values().flat_map(BTreeMap::keys);
        let countries = receiving.filter_map(|group| self.groups.get(group));
        countries.flatten().map(String::as_str).collect()
    }

    /// Whether something can be sent to a country.
    pub(super) fn serves(&self, country: &str) -> bool {
        let Some(group) = self.group(country) else {
            return false;
        };
        self.zones.values().any(|row| row.contains_key(group))
    }

    /// The zone of a way from one country to another.
    pub(super) fn zone(&self, from: &str, to: &str) -> Option<&str> {
        if from == to && self.serves(to) {
            return Some(&self.domestic_zone);
        }
        let row = self.zones.get(self.group(from)?)?;
        row.get(self.group(to)?).map(String::as_str)
    }

    /// Whether a postal code is in a remote area; unknown where there is none and the country has some.
    pub(super) fn is_remote(&self, country: &str, postal_code: Option<&str>) -> Option<bool> {
        let Some(prefixes) = self.remote_areas.get(country) else {
            return Some(false);
        };
        let code = super::address::postal_key(postal_code?);
        if code.is_empty() {
            return None;
        }
        let mut prefixes = prefixes.iter();
        Some(prefixes.any(|prefix| code.starts_with(prefix.as_str())))
    }

    /// A kind of goods by its name; names are checked when the file is read.
    pub(super) fn goods(&self, id: &str) -> Option<&Goods> {
        self.goods.iter().find(|goods| goods.id == id)
    }
}

impl Service {
    /// Whether it runs between these groups at all.
    pub(super) fn runs(&self, from: &str, to: &str) -> bool {
        let serves = |groups: &[String], group: &str| {
            groups.is_empty() || groups.iter().any(|served| served == group)
        };
        serves(&self.from, from) && serves(&self.to, to)
    }

    /// The part of its name before the dot.
    pub(super) fn carrier(&self) -> &str {
        self.id
            .split_once('.')
            .map_or(self.id.as_str(), |(carrier, _)| carrier)
    }
}
