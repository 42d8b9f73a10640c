//! Shipping: addresses, zones, weights, carriers.
//!
//! A basket is sent in one parcel for each merchant and country of dispatch. The weight and size of a parcel are those
//! of its items; a service charges for the larger of actual and volumetric weight, by zone and bracket, with surcharges
//! for remote areas, special handling and fuel. An option is one service that takes every parcel, and its price is the
//! sum. Everything that decides this is in the rule sets `shipping`, `shop` and `fx`, so that an answer can be computed
//! again.

use countersign::catalog::CatalogBuilder;

pub mod address;
mod answer;
mod goods;
mod options;
mod price;
mod quote_options;
mod refusal;
mod tariff;
mod weigh;

pub use answer::{Cause, Excluded, Parcel, ShippingOption, ShippingQuote, Sla};
pub use options::{Offered, Question};
pub use quote_options::quote;
pub(crate) use tariff::RULES;
pub use tariff::Tariff;

/// The tool whose evidence a total rests on.
pub const SHIPPING_TOOL: &str = "shipping.quote_options";

/// Adds the tools of this area.
pub(crate) fn tools(builder: CatalogBuilder) -> CatalogBuilder {
    builder
        .tool(address::ValidateAddress)
        .tool(quote_options::QuoteOptions)
}

#[cfg(test)]
mod tests;
