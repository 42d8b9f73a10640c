//! Current prices of items, and quotes.

use countersign::catalog::CatalogBuilder;

mod answer;
mod price;
mod prices;
mod quote;

pub use answer::{PromotionApplied, Quote, QuoteLine};
pub use price::{PriceMove, PriceRules, Priced, Pricer, price};
pub(crate) use prices::RULES;
pub use prices::{Override, Prices, Promotion};

/// The tool whose evidence a total rests on.
pub const QUOTE_TOOL: &str = "pricing.get_realtime_quote";

/// Adds the tools of this area.
pub(crate) fn tools(builder: CatalogBuilder) -> CatalogBuilder {
    builder.tool(quote::GetRealtimeQuote)
}
