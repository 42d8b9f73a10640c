//! What customs and tax offices take.

use countersign::catalog::CatalogBuilder;

mod answer;

pub use answer::{Confidence, Fee, Incoterm, TaxEstimate, TaxLine};

/// The tool whose evidence a total rests on.
pub const TAX_TOOL: &str = "tax.estimate_duties_and_taxes";

/// Adds the tools of this area.
pub(crate) fn tools(builder: CatalogBuilder) -> CatalogBuilder {
    builder
}
