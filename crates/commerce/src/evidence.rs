//! Snapshots of evidence, and what is attached to a draft order.

use countersign::catalog::CatalogBuilder;

/// Adds the tools of this area.
pub(crate) fn tools(builder: CatalogBuilder) -> CatalogBuilder {
    builder
}
