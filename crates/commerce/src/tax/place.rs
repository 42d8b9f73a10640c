//! The destination, as the rule set knows it.

use countersign::ToolError;
use countersign::contract::{Language, Message, Wording};

use super::rules::{Country, Region, TaxRules, Territory};
use crate::shop::Text;
use crate::words::Say;

/// A destination that the rules know.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    /// The country code of two letters.
    pub(super) code: &'a str,
    pub(super) country: &'a Country,
    pub(super) territory: &'a Territory,
    /// The region's code and taxes; `None` if the country has no regions or none is named.
    pub(super) region: Option<(&'a str, &'a Region)>,
}

impl<'a> Place<'a> {
    /// Finds the place of these names. An unknown one is refused, because no rule says that nothing is due there.
    pub(super) fn find(
        rules: &'a TaxRules,
        country: &str,
        region: Option<&str>,
    ) -> Result<Self, ToolError> {
        let Some((code, found)) = rules.countries.get_key_value(country) else {
            let known: Vec<&str> = rules.countries.keys().map(String::as_str).collect();
            let (country, values) = (country.to_owned(), known.join(", "));
            let message = Say::NoTaxesFor { country };
            return Err(
                ToolError::invalid("/destination/country", message).hint(Say::OneOf { values })
            );
        };
        let Some(territory) = rules.territories.get(&found.territory) else {
            // `check` makes sure of it.
            let country = country.to_owned();
            let message = Say::NoTerritory { country };
            return Err(ToolError::invalid("/destination/country", message));
        };
        let region = match region {
            Some(region) if !found.tax.regions.is_empty() && !region.is_empty() => {
                Some(find_region(code, found, region)?)
            }
            Some(_) | None => None,
        };
        Ok(Self {
            code,
            country: found,
            territory,
            region,
        })
    }
}

/// Finds a region by its code (`CA`), its code with the country (`US-CA`), or its name (`California`).
fn find_region<'a>(
    code: &str,
    country: &'a Country,
    named: &str,
) -> Result<(&'a str, &'a Region), ToolError> {
    let short = named
        .strip_prefix(code)
        .and_then(|rest| rest.strip_prefix('-'));
    let short = short.unwrap_or(named);
    let mut regions = country.tax.regions.iter();
    let found = regions.find(|(code, region)| {
        code.eq_ignore_ascii_case(short) || region.name.eq_ignore_ascii_case(named)
    });
    found
        .map(|(code, region)| (code.as_str(), region))
        .ok_or_else(|| {
            let known = country.tax.regions.keys();
            let known: Vec<&str> = known.map(String::as_str).collect();
            // Without the text that was sent: a region is personal.
            let values = known.join(", ");
            ToolError::invalid("/destination/region", no_region(country))
                .hint(Say::OneOf { values })
        })
}

/// The message with the country's name in the reader's language.
fn no_region(country: &Country) -> Wording {
    let said = |name: &str, language| {
        let country = name.to_owned();
        Say::NoRegion { country }.text(language)
    };
    let Text { en, zh } = &country.name;
    Wording::new(said(en, Language::English), said(zh, Language::Chinese))
}
