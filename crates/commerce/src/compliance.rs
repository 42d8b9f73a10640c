//! What may go where.
//!
//! The rules are data (`rules/compliance/*.toml`); this module reads them and keeps to four promises:
//!
//! - **It fails closed.** A category or a country that the rules do not know is blocked, and so is a thing of
//!   which a rule would have to know more than the shop says. A file with an operator, a fact, a group or a
//!   certificate that does not exist is refused before anything is decided by it.
//! - **Categories inherit.** A rule on `electronics/power` holds for `electronics/power/power_bank`.
//! - **The worst finding decides.** `block` blocks, `warning` makes it conditional, `info` lets it go.
//! - **A blocked thing is an answer, not an error.** The report is the evidence that a refusal rests on, with
//!   every rule and what can be done about it; an error would leave no answer to rest on. The error
//!   `COMPLIANCE_BLOCKED` comes from `checkout`, which refuses to go on with such a report.
//!
//! Read `policy` (what the rules say), then `judge` (what they say about one thing), then `check`.

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
