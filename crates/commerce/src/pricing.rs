//! What things cost now.

use countersign::catalog::CatalogBuilder;

mod answer;

pub use answer::{Quote, QuoteLine};

/// The tool whose evidence a total rests on.
pub const QUOTE_TOOL: &str = "pricing.get_realtime_quote";

/// Adds the tools of this area.
pub(crate) fn tools(builder: CatalogBuilder) -> CatalogBuilder {
    builder
}
