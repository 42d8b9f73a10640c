//! What an agent wants to have noted.

use countersign::catalog::CatalogBuilder;

/// Adds the tools of this area.
pub(crate) fn tools(builder: CatalogBuilder) -> CatalogBuilder {
    builder
}
