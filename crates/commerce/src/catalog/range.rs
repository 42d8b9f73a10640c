//! The price range of an offer: from the cheapest variant to the dearest.

use countersign::ToolError;
use schemars::JsonSchema;
use serde::Serialize;

use crate::money::Money;
use crate::pricing::Pricer;
use crate::shop::Offer;

/// Current price range of an offer's variants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PriceRange {
    /// Lowest price.
    pub from: Money,
    /// Highest price.
    pub to: Money,
}

impl PriceRange {
    /// The range in the pricer's currency, over the variants between these amounts; `None` if there are none.
    pub(super) fn between(
        pricer: &Pricer<'_>,
        offer: &Offer,
        min: Option<i64>,
        max: Option<i64>,
    ) -> Result<Option<Self>, ToolError> {
        let variants = offer.variants.iter();
        let amounts: Result<Vec<Money>, ToolError> = variants
            .map(|variant| pricer.unit_price(offer, variant))
            .collect();
        let mut amounts = amounts?;
        amounts.sort_by_key(|price| price.amount);
        let fits = |price: &Money| {
            min.is_none_or(|min| min <= price.amount) && max.is_none_or(|max| price.amount <= max)
        };
        let range = match (amounts.first(), amounts.last()) {
            (Some(from), Some(to)) if amounts.iter().any(fits) => Some(Self {
                from: from.clone(),
                to: to.clone(),
            }),
            (_, _) => None,
        };
        Ok(range)
    }

    /// The range in the pricer's currency; `None` if an offer has no variants.
    pub(super) fn of(pricer: &Pricer<'_>, offer: &Offer) -> Result<Option<Self>, ToolError> {
        Self::between(pricer, offer, None, None)
    }
}
