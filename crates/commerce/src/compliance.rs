//! Compliance: the items that may be sent to a destination.
//!
//! The rules are data (`rules/compliance/*.toml`); this module reads them and gives four guarantees:
//!
//! - **It fails closed.** An unknown category or country is blocked, and so is an item about which a rule needs
//!   more facts than the shop gives. A file with an unknown operator, fact, group or certificate is refused before
//!   anything is decided by it.
//! - **Categories inherit.** A rule on `electronics/power` applies to `electronics/power/power_bank`.
//! - **The worst finding decides.** `block` blocks, `warning` makes it conditional, `info` lets it go.
//! - **A blocked item is an answer, not an error.** The report is the evidence that a refusal rests on, with every
//!   rule and the remedies; an error would leave no answer to rest on. The error `COMPLIANCE_BLOCKED` comes from
//!   `checkout`, which refuses to go on with such a report.
//!
//! Read `policy` (the rules), then `judge` (their verdict on one item), then `check` (the tool).

use countersign::catalog::CatalogBuilder;

use crate::rulebook::RuleFile;

mod answer;
mod check;
mod judge;
mod policy;
#[cfg(test)]
mod tests;
mod version;

pub use answer::{ComplianceLine, ComplianceReport, Decision, Finding, Severity};
pub use check::check;
pub use policy::Policy;
pub use version::{PolicyCounts, PolicyVersion, RulesetVersion};

/// The tool whose evidence a total rests on.
pub const COMPLIANCE_TOOL: &str = "compliance.check_item";

/// The files of this area, oldest first.
pub(crate) const RULES: &[RuleFile] = &[
    RuleFile::new(
        "2025-06-01",
        include_str!("../rules/compliance/2025-06-01.toml"),
    ),
    RuleFile::new(
        "2026-11-01",
        include_str!("../rules/compliance/2026-11-01.toml"),
    ),
];

/// Adds the tools of this area.
pub(crate) fn tools(builder: CatalogBuilder) -> CatalogBuilder {
    builder
        .tool(check::CheckItem)
        .tool(version::PolicyRulesetVersion)
}
