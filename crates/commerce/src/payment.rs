//! Payment intents: a person still has to pay.

use countersign::catalog::CatalogBuilder;

/// Adds the tools of this area.
pub(crate) fn tools(builder: CatalogBuilder) -> CatalogBuilder {
    builder
}
