//! The rule set `shipping`: zones, services, prices by weight bracket, and refused goods.

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

/// The data that shipping prices are computed from.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tariff {
    /// The source of the tariff.
    pub source: String,
    /// The day from which it applies.
    pub date: String,
    /// The currency of all its prices.
    pub currency: String,
    domestic_zone: String,
    groups: BTreeMap<String, BTreeSet<String>>,
    /// The zones by the sender's group, then by the recipient's.
    zones: BTreeMap<String, BTreeMap<String, String>>,
    remote_areas: BTreeMap<String, Vec<String>>,
    pub(super) goods: Vec<Goods>,
    /// The names of the carriers, for people.
    pub(super) carriers: BTreeMap<String, String>,
    pub(super) services: Vec<Service>,
}

/// One service of a carrier.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Service {
    /// The id, `carrier.service`; also that of the option.
    pub(super) id: String,
    pub(super) name: Text,
    /// The groups that it collects from; everywhere if empty.
    #[serde(default)]
    from: Vec<String>,
    /// The groups that it delivers to; everywhere if empty.
    #[serde(default)]
    to: Vec<String>,
    /// The volumetric weight; `None` if only the actual weight counts.
    pub(super) volumetric: Option<Volumetric>,
    /// The upper ends of the weight brackets, rising.
    pub(super) brackets_g: Vec<u64>,
    pub(super) limits: Limits,
    /// The fuel surcharge, as a fraction of freight and remote area.
    pub(super) fuel_rate: Decimal,
    pub(super) remote: Remote,
    pub(super) guaranteed: bool,
    pub(super) tracked: bool,
    pub(super) incoterms: Vec<Incoterm>,
    pub(super) refuses: Vec<String>,
    /// The goods that are taken for an extra price.
    #[serde(default)]
    pub(super) handles: Vec<Handling>,
    #[serde(default)]
    pub(super) notes: Vec<Text>,
    pub(super) zones: BTreeMap<String, ZoneRates>,
}

/// The volumetric weight of a service.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Volumetric {
    pub(super) divisor_cm3_per_kg: u64,
    source: String,
}

/// The limits of weight and size. Sides are those of each packed item; weight and volume are those of the parcel.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Limits {
    pub(super) weight_max_g: u64,
    pub(super) side_max_mm: u64,
    #[serde(default)]
    pub(super) sides_sum_max_mm: Option<u64>,
    /// The longest side plus the girth of the other two.
    #[serde(default)]
    pub(super) length_and_girth_max_mm: Option<u64>,
    #[serde(default)]
    pub(super) volume_max_cm3: Option<u64>,
    source: String,
}

/// The treatment of remote areas.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "policy", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Remote {
    /// They cost the same.
    Included {},
    /// They are not served.
    Refused {},
    /// They cost this much for each kilogram, and at least the minimum.
    Surcharge { minimum: Decimal, per_kg: Decimal },
}

/// A kind of goods that is taken for an extra price, for each parcel.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Handling {
    pub(super) goods: String,
    pub(super) price: Decimal,
}

/// The rates of one zone.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ZoneRates {
    /// The working days, at least and at most.
    pub(super) days: (u32, u32),
    /// One price for each bracket, never falling.
    pub(super) prices: Vec<Decimal>,
    /// The price of each started kilogram beyond the last bracket.
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

    /// The served countries, sorted.
    pub fn served(&self) -> BTreeSet<&str> {
        let receiving = self.zones.values().flat_map(BTreeMap::keys);
        let countries = receiving.filter_map(|group| self.groups.get(group));
        countries.flatten().map(String::as_str).collect()
    }

    /// True if a country is served.
    pub(super) fn serves(&self, country: &str) -> bool {
        let Some(group) = self.group(country) else {
            return false;
        };
        self.zones.values().any(|row| row.contains_key(group))
    }

    /// The zone of a route from one country to another.
    pub(super) fn zone(&self, from: &str, to: &str) -> Option<&str> {
        if from == to && self.serves(to) {
            return Some(&self.domestic_zone);
        }
        let row = self.zones.get(self.group(from)?)?;
        row.get(self.group(to)?).map(String::as_str)
    }

    /// True if a postal code is in a remote area; `None` if there is no code and the country has remote areas.
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

    /// The kind of goods with this name; names are checked when the file is read.
    pub(super) fn goods(&self, id: &str) -> Option<&Goods> {
        self.goods.iter().find(|goods| goods.id == id)
    }
}

impl Service {
    /// True if it runs between these groups at all.
    pub(super) fn runs(&self, from: &str, to: &str) -> bool {
        let serves = |groups: &[String], group: &str| {
            groups.is_empty() || groups.iter().any(|served| served == group)
        };
        serves(&self.from, from) && serves(&self.to, to)
    }

    /// The carrier: the part of its id before the dot.
    pub(super) fn carrier(&self) -> &str {
        self.id
            .split_once('.')
            .map_or(self.id.as_str(), |(carrier, _)| carrier)
    }
}
