//! The rule set `addresses`: for each country the parts of an address, the form of its postal codes, the regions, and
//! the order of the lines.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use countersign::{CallContext, ToolError};
use serde::{Deserialize, Serialize};

use super::text::fold;
use super::{label, postal};
use crate::rulebook::{Book, RuleData, RuleFile};
use crate::shop::Text;

/// The files of this area, oldest first.
pub(crate) const RULES: &[RuleFile] = &[RuleFile::new(
    "2026-10-01",
    include_str!("../../../rules/addresses/2026-10-01.toml"),
)];

static BOOK: Book<AddressRules> = Book::new();

/// The forms of addresses.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddressRules {
    /// The source of the rules.
    pub source: String,
    /// The day from which they apply.
    pub date: String,
    pub(super) po_box: Vec<String>,
    pub(super) po_box_parts: Vec<String>,
    region_suffixes: Vec<String>,
    /// The countries by their two letters.
    pub(super) countries: BTreeMap<String, Country>,
}

/// The form of addresses in one country.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Country {
    pub(super) name: Text,
    aliases: Vec<String>,
    pub(super) required: BTreeSet<Part>,
    /// The postal codes; `None` if the country has none.
    pub(super) postal: Option<Postal>,
    /// The lines of the label.
    pub(super) lines: Vec<String>,
    /// The label in the country's own script, if that is Chinese, Japanese or Korean.
    pub(super) local: Option<Local>,
    #[serde(default)]
    pub(super) region_as: RegionAs,
    #[serde(default)]
    pub(super) region_example: String,
    /// All regions; empty if they do not matter.
    #[serde(default)]
    pub(super) regions: Vec<Region>,
}

/// A part of an address that may be required.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Part {
    Recipient,
    Lines,
    City,
    Region,
    PostalCode,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Postal {
    pub(super) masks: Vec<String>,
    /// Prefixes that people write besides the two letters of the country.
    #[serde(default)]
    pub(super) prefixes: Vec<String>,
    pub(super) example: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Local {
    pub(super) country: String,
    pub(super) lines: Vec<String>,
}

/// The form of the region on a label.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RegionAs {
    /// The full name.
    #[default]
    Name,
    /// The abbreviation of the post.
    Code,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Region {
    /// The code of ISO 3166-2, after the hyphen.
    pub(super) code: String,
    pub(super) name: String,
    /// The name in the country's own script.
    #[serde(default)]
    pub(super) local: Option<String>,
    #[serde(default)]
    aliases: Vec<String>,
    /// The prefixes of its postal codes; empty if they are unknown.
    #[serde(default)]
    pub(super) postal: Vec<String>,
    /// True for the field post of an army, which is not a place.
    #[serde(default)]
    pub(super) is_military: bool,
}

impl AddressRules {
    /// The rules in force; in a replay those of the record.
    pub fn of(ctx: &CallContext) -> Result<Arc<Self>, ToolError> {
        BOOK.get(ctx)
    }

    /// The country with these two letters or this name.
    pub(super) fn country(&self, name: &str) -> Option<(&str, &Country)> {
        let asked = fold(name);
        let mut countries = self.countries.iter();
        let found = countries.find(|(code, country)| {
            let names = [code.as_str(), &country.name.en, &country.name.zh];
            let names = names
                .into_iter()
                .chain(country.aliases.iter().map(String::as_str));
            names.into_iter().any(|name| fold(name) == asked)
        });
        found.map(|(code, country)| (code.as_str(), country))
    }

    /// The region of a country by code or name, also as `US-CA` or `Guangdong Province`.
    pub(super) fn region<'a>(
        &self,
        code: &str,
        country: &'a Country,
        name: &str,
    ) -> Option<&'a Region> {
        let asked = fold(name);
        let prefix = fold(code);
        let suffixes = self.region_suffixes.iter();
        let bare = suffixes.filter_map(|suffix| asked.strip_suffix(suffix.as_str()));
        let bare = bare.chain(asked.strip_prefix(prefix.as_str()));
        let asked: Vec<&str> = [asked.as_str()].into_iter().chain(bare).collect();
        // The name as it was sent comes before the name without a suffix.
        asked.into_iter().find_map(|asked| {
            let mut regions = country.regions.iter();
            regions.find(|region| region.is_named(asked))
        })
    }
}

impl Region {
    fn is_named(&self, folded: &str) -> bool {
        let names = [Some(&self.code), Some(&self.name), self.local.as_ref()];
        let mut names = names.into_iter().flatten().chain(&self.aliases);
        names.any(|name| fold(name) == folded)
    }

    /// True if postal codes like this one are in the region.
    pub(super) fn has_code(&self, key: &str) -> bool {
        let mut ranges = self.postal.iter();
        ranges.any(|range| postal::begins_within(range, key))
    }
}

impl Country {
    /// The region with such postal codes; `None` if there is none, or more than one.
    pub(super) fn region_of_code(&self, key: &str) -> Option<&Region> {
        let mut regions = self.regions.iter().filter(|region| region.has_code(key));
        let region = regions.next()?;
        regions.next().is_none().then_some(region)
    }

    fn check(&self) -> Result<(), String> {
        if let Some(postal) = &self.postal {
            let key = postal::key(&postal.example);
            let written = postal
                .masks
                .iter()
                .find_map(|mask| postal::write(mask, &key));
            if written.as_ref() != Some(&postal.example) {
                return Err("the example is not written as a mask has it".to_owned());
            }
        } else if self.required.contains(&Part::PostalCode) {
            return Err("a postal code is required and there are none".to_owned());
        }
        let local = self.local.iter().flat_map(|local| &local.lines);
        for line in self.lines.iter().chain(local) {
            label::check(line)?;
        }
        let mut names = BTreeSet::new();
        for region in &self.regions {
            if !names.insert(fold(&region.code)) || !names.insert(fold(&region.name)) {
                return Err(format!("the region {} is there twice", region.code));
            }
            let ranges = region.postal.iter().map(|range| range.split_once('-'));
            if ranges
                .flatten()
                .any(|(from, to)| from.len() != to.len() || from > to)
            {
                return Err(format!(
                    "the region {} has a range that is none",
                    region.code
                ));
            }
        }
        Ok(())
    }
}

impl RuleData for AddressRules {
    const NAME: &'static str = "addresses";

    fn check(&self) -> Result<(), String> {
        let mut names: BTreeMap<String, &str> = BTreeMap::new();
        for (code, country) in &self.countries {
            country
                .check()
                .map_err(|problem| format!("{code}: {problem}"))?;
            let own = [code.as_str(), &country.name.en, &country.name.zh];
            for name in own
                .into_iter()
                .chain(country.aliases.iter().map(String::as_str))
            {
                if let Some(other) = names.insert(fold(name), code).filter(|other| other != code) {
                    return Err(format!("{name} is {code} and {other}"));
                }
            }
        }
        Ok(())
    }
}
