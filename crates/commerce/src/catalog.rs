//! The catalog: search, offer cards, variants, availability.
//!
//! Prices here are current prices without a commitment; `pricing.get_realtime_quote` gives one that is held.

use countersign::catalog::CatalogBuilder;
use countersign::contract::Behaviour;
use countersign::contract::tool::Replay;

use crate::behaviour;

mod availability;
mod card;
mod range;
mod search;
mod variants;

pub use availability::{Availability, ItemAvailability, StockStatus};
pub use card::OfferCard;
pub use range::PriceRange;
pub use search::{OfferFound, OffersFound};
pub use variants::{OfferVariants, VariantShown};

/// TTL of search results, offer cards and variants.
const SHOWN_SECONDS: u32 = 300;

/// TTL of an availability.
const AVAILABILITY_SECONDS: u32 = 60;

/// Adds the tools of this area.
pub(crate) fn tools(builder: CatalogBuilder) -> CatalogBuilder {
    builder
        .tool(search::SearchOffers)
        .tool(card::GetOfferCard)
        .tool(variants::GetOfferVariants)
        .tool(availability::GetAvailability)
}

/// A read of rule sets only, so that it can be computed again.
fn shown() -> Behaviour {
    Behaviour {
        replay: Replay::Pure {
            volatile: Vec::new(),
        },
        ttl_seconds: Some(SHOWN_SECONDS),
        ..behaviour::read()
    }
}
