//! What may go where.

use countersign::catalog::CatalogBuilder;

mod answer;

pub use answer::{ComplianceLine, ComplianceReport, Decision, Finding, Severity};

/// The tool whose evidence a total rests on.
pub const COMPLIANCE_TOOL: &str = "compliance.check_item";

/// Adds the tools of this area.
pub(crate) fn tools(builder: CatalogBuilder) -> CatalogBuilder {
    builder
}
