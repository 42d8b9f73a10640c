//! What the shop knows: full text in Chinese and English, with citations.

use countersign::catalog::CatalogBuilder;

/// Adds the tools of this area.
pub(crate) fn tools(builder: CatalogBuilder) -> CatalogBuilder {
    builder
}
