//! How things get there: addresses, zones, weights, carriers.

use countersign::catalog::CatalogBuilder;

mod answer;

pub use answer::{Excluded, ShippingOption, ShippingQuote, Sla};

/// The tool whose evidence a total rests on.
pub const SHIPPING_TOOL: &str = "shipping.quote_options";

/// Adds the tools of this area.
pub(crate) fn tools(builder: CatalogBuilder) -> CatalogBuilder {
    builder
}
