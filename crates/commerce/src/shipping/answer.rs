//! The answer of a shipping quote.

use countersign::contract::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::destination::Destination;
use crate::fx::RateUsed;
use crate::money::Money;
use crate::tax::Incoterm;

/// Ways to ship a basket to a destination.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct ShippingQuote {
    /// Id of the cart that the answer is valid for, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cart_id: Option<String>,
    /// Digest of the weighed items.
    pub basket: Digest,
    /// Destination.
    pub destination: Destination,
    /// Currency of all amounts.
    pub currency: String,
    /// Options, the cheapest first.
    pub options: Vec<ShippingOption>,
    /// Options that are not available, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<Excluded>,
    /// Exchange rates that were used, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<RateUsed>,
    /// Expiry, RFC 3339.
    pub expires_at: String,
}

/// One way to ship all items.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct ShippingOption {
    /// Id of the option; it stays the same in later answers.
    pub option_id: String,
    /// Carrier.
    pub carrier: String,
    /// Service of the carrier.
    pub service: String,
    /// Price.
    pub price: Money,
    /// Delivery time.
    pub sla: Sla,
    /// Chargeable weight in grams: the larger of actual and volumetric weight of each parcel.
    pub chargeable_weight_g: u32,
    /// Actual weight in grams.
    pub actual_weight_g: u32,
    /// Volumetric weight in grams; 0 if the carrier uses only the actual weight.
    pub volumetric_weight_g: u32,
    /// True if it has tracking.
    pub tracked: bool,
    /// Ways to pay duties: `DDP`, `DAP`.
    pub incoterms: Vec<Incoterm>,
    /// Parcels, one for each place that items ship from, with the steps of the price.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parcels: Vec<Parcel>,
    /// Limits of the route, in words for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restrictions: Vec<String>,
}

/// A parcel and the steps of its price, in the currency of the tariff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct Parcel {
    /// Id of the seller.
    pub merchant_id: String,
    /// Country that it ships from.
    pub ships_from: String,
    /// Zone of the carrier's tariff.
    pub zone: String,
    /// Actual weight in grams.
    pub actual_weight_g: u32,
    /// Volumetric weight in grams.
    pub volumetric_weight_g: u32,
    /// Chargeable weight in grams: the larger of both.
    pub chargeable_weight_g: u32,
    /// Freight: the price of the weight bracket.
    pub freight: Money,
    /// Surcharge for a remote area.
    pub remote: Money,
    /// Surcharge for items that need special handling.
    pub handling: Money,
    /// Fuel surcharge: a share of freight and remote area surcharge.
    pub fuel: Money,
    /// Sum of all parts.
    pub price: Money,
}

/// Delivery time, in working days.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct Sla {
    /// Minimum number of days.
    pub days_min: u32,
    /// Maximum number of days.
    pub days_max: u32,
    /// True if the carrier guarantees it.
    pub guaranteed: bool,
}

/// A service that is not available.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct Excluded {
    /// Id of the option.
    pub option_id: String,
    /// Reason in words for people.
    pub reason: String,
    /// Reason as a code.
    pub cause: Cause,
    /// Id of the goods rule, if a rule is the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// SKUs of the items that cause it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skus: Vec<String>,
}

/// Reason why a service is not available.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The service does not run between these places.
    Route,
    /// The service does not deliver to this postal code.
    RemoteArea,
    /// A parcel is too heavy or too large.
    Limit,
    /// The service does not accept such items.
    Goods,
}
