//! The answer of a shipping quote.

use countersign::contract::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::destination::Destination;
use crate::fx::RateUsed;
use crate::money::Money;
use crate::tax::Incoterm;

/// The ways that a basket can go to a destination.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct ShippingQuote {
    /// The cart that it counts for, where one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cart_id: Option<String>,
    /// Digest of the weighed items.
    pub basket: Digest,
    /// Destination.
    pub destination: Destination,
    /// In this currency.
    pub currency: String,
    /// The cheapest first.
    pub options: Vec<ShippingOption>,
    /// Options that are not available, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<Excluded>,
    /// The rates that were used, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<RateUsed>,
    /// Until when it holds, RFC 3339.
    pub expires_at: String,
}

/// One way to send everything.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct ShippingOption {
    /// Its name, the same whenever the same service is offered.
    pub option_id: String,
    /// Carrier.
    pub carrier: String,
    /// Which of its services.
    pub service: String,
    /// Price.
    pub price: Money,
    /// Delivery time.
    pub sla: Sla,
    /// Chargeable weight in grams: the larger of actual and volumetric weight of each parcel.
    pub chargeable_weight_g: u32,
    /// On the scales.
    pub actual_weight_g: u32,
    /// Volumetric weight in grams; 0 if the carrier uses only the actual weight.
    pub volumetric_weight_g: u32,
    /// True if it has tracking.
    pub tracked: bool,
    /// Ways to pay duties: `DDP`, `DAP`.
    pub incoterms: Vec<Incoterm>,
    /// One for each place that things are sent from, with the steps of its price.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parcels: Vec<Parcel>,
    /// Limits of the route, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restrictions: Vec<String>,
}

/// A parcel and how its price came about, in the currency of the tariff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct Parcel {
    /// Id of the sender.
    pub merchant_id: String,
    /// From which country.
    pub ships_from: String,
    /// The zone of the way.
    pub zone: String,
    /// On the scales.
    pub actual_weight_g: u32,
    /// Volumetric weight in grams.
    pub volumetric_weight_g: u32,
    /// The larger of both.
    pub chargeable_weight_g: u32,
    /// The price of the bracket.
    pub freight: Money,
    /// For a remote area.
    pub remote: Money,
    /// For goods that need special handling.
    pub handling: Money,
    /// A share of freight and remote area.
    pub fuel: Money,
    /// All of them together.
    pub price: Money,
}

/// Delivery time, in working days.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct Sla {
    /// At least.
    pub days_min: u32,
    /// At most.
    pub days_max: u32,
    /// True if the carrier guarantees it.
    pub guaranteed: bool,
}

/// A service that cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct Excluded {
    /// Id of the option.
    pub option_id: String,
    /// Why, for people.
    pub reason: String,
    /// Why, for programs.
    pub cause: Cause,
    /// Which rule about goods, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Because of these things.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skus: Vec<String>,
}

/// Why a service cannot be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// It does not run between these places.
    Route,
    /// It does not go to this postal code.
    RemoteArea,
    /// Something is too heavy or too large.
    Limit,
    /// It does not take such goods.
    Goods,
}
