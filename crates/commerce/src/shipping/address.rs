//! Addresses: their form in each country, their faults, and their labels.
//!
//! An address is personal. Its fields are sealed in state and evidence, and no message, id or log quotes one: faults
//! name the field by its JSON pointer and show the country's own example.

use std::fmt;

use countersign::ToolArgs;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::destination::Destination;

mod check;
mod fault;
mod formats;
mod label;
mod place;
mod postal;
mod text;
mod validate_address;

pub use check::{Checked, check};
pub use fault::{Change, Fault, Faults, Problem};
pub use formats::AddressRules;
pub(crate) use formats::RULES;
pub(crate) use place::normal;
#[cfg(test)]
pub(crate) use place::place;
pub(crate) use postal::key as postal_key;
pub(super) use validate_address::ValidateAddress;
pub(crate) use validate_address::of;
pub use validate_address::{Deliverability, Kind, ValidAddress};

/// A postal address. Answers and stored addresses have it in normal form.
#[derive(Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize, ToolArgs)]
pub struct Address {
    /// Recipient.
    #[arg(
        alias = "name",
        alias = "full_name",
        max_length = 100,
        sensitive = "personal"
    )]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipient: Option<String>,
    /// Company, if the address is one of a company.
    #[arg(max_length = 100, sensitive = "personal")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub company: Option<String>,
    /// Street and house number, and other lines below the city.
    #[arg(
        alias = "street",
        alias = "address_lines",
        alias = "line1",
        max_items = 5,
        max_length = 120,
        sensitive = "personal"
    )]
    #[serde(default)]
    pub lines: Vec<String>,
    /// District or suburb, if it is written separately.
    #[arg(alias = "suburb", max_length = 100, sensitive = "personal")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub district: Option<String>,
    /// City or town.
    #[arg(
        alias = "town",
        alias = "locality",
        max_length = 100,
        sensitive = "personal"
    )]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub city: Option<String>,
    /// State, province or prefecture, as code or name.
    #[arg(
        alias = "state",
        alias = "province",
        max_length = 64,
        sensitive = "personal"
    )]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Postal code.
    #[arg(
        alias = "zip",
        alias = "zip_code",
        alias = "postcode",
        max_length = 16,
        sensitive = "personal"
    )]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub postal_code: Option<String>,
    /// Telephone number of the receiver. Many carriers require it.
    #[arg(max_length = 32, sensitive = "personal")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phone: Option<String>,
    /// Country: two letters or a name.
    #[arg(
        alias = "country_code",
        example = "DE",
        min_length = 2,
        max_length = 64
    )]
    pub country: String,
}

impl Address {
    /// The destination, as far as rates and rules need it.
    pub fn destination(&self) -> Destination {
        Destination {
            country: self.country.clone(),
            region: self.region.clone(),
            postal_code: self.postal_code.clone(),
        }
    }
}

/// Shows the country only: the rest is personal.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Address")
            .field("country", &self.country)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
