//! Duties and taxes: an estimate by versioned rules, with method, confidence and breakdown.
//!
//! Read `rules` first (the rule set), then `compute` and `import` (how amounts follow from it), and `estimate` (the
//! tool). The figures are reference data, not tax advice.

use countersign::catalog::CatalogBuilder;

use crate::rulebook::{Book, RuleFile};

mod answer;
pub mod rules;

mod allot;
mod basis;
mod compute;
mod estimate;
mod fee;
mod import;
mod note;
mod place;
mod tariff;

#[cfg(test)]
mod golden;
#[cfg(test)]
mod laws;

pub use answer::{Confidence, Fee, Incoterm, Method, TaxEstimate, TaxLine};
pub use estimate::EstimateArgs;
pub(crate) use estimate::again;
pub use rules::TaxRules;

/// The tool whose evidence a total rests on.
pub const TAX_TOOL: &str = "tax.estimate_duties_and_taxes";

/// The files of this area, oldest first.
pub(crate) const RULES: &[RuleFile] = &[
    RuleFile::new("2025-01-01", include_str!("../rules/tax/2025-01-01.toml")),
    RuleFile::new("2026-11-01", include_str!("../rules/tax/2026-11-01.toml")),
];

static BOOK: Book<TaxRules> = Book::new();

/// Adds the tools of this area.
pub(crate) fn tools(builder: CatalogBuilder) -> CatalogBuilder {
    builder.tool(estimate::Estimate)
}
