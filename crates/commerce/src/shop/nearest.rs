//! Suggestions for names that do not exist.

use super::{Offer, Shop};

/// The maximum edit distance of a suggestion.
const SLIPS_MAX: usize = 2;

impl Shop {
    /// The offer that an unknown id probably means: by a similar id, by one of its items, or by a search for it.
    pub fn nearest_offer(&self, name: &str) -> Option<&Offer> {
        let upper = name.trim().to_ascii_uppercase();
        let of_item = self.variant(&upper).map(|(offer, _)| offer);
        let named = || {
            let ids = self.offers.iter().map(|offer| offer.offer_id.as_str());
            nearest(&upper, ids).and_then(|id| self.offer(id))
        };
        let called = || {
            self.search(name)
                .offers
                .first()
                .and_then(|(at, _)| self.offers.get(*at))
        };
        of_item.or_else(named).or_else(called)
    }

    /// The SKU that an unknown one probably means: by a similar SKU, or by its offer.
    pub fn nearest_sku(&self, name: &str) -> Option<&str> {
        let upper = name.trim().to_ascii_uppercase();
        let variants = self.offers.iter().flat_map(|offer| &offer.variants);
        let named = nearest(&upper, variants.map(|variant| variant.sku.as_str()));
        named.or_else(|| {
            let of_offer = self.offer(&upper).and_then(|offer| offer.variants.first());
            of_offer.map(|variant| variant.sku.as_str())
        })
    }

    /// The category of a path in any spelling, or of its last parts if only one category has them. The error is a
    /// suggestion.
    pub fn category(&self, name: &str) -> Result<&str, Option<&str>> {
        let parts = name.split(['/', '>']).map(|part| {
            let part = part.trim().to_lowercase();
            part.replace([' ', '-'], "_")
        });
        let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
        let path = parts.join("/");
        if let Some(known) = self.categories.get(&path) {
            return Ok(known);
        }
        let end = format!("/{path}");
        let mut ending = self.categories.iter().filter(|known| known.ends_with(&end));
        match (ending.next(), ending.next()) {
            (Some(only), None) if !path.is_empty() => Ok(only),
            (Some(first), _) if !path.is_empty() => Err(Some(first)),
            (_, _) => Err(nearest(&path, self.categories.iter().map(String::as_str))),
        }
    }
}

/// The name with the smallest edit distance; of two equal ones the first.
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let slips = known.map(|known| (strsim::osa_distance(name, known), known));
    let (slips, known) = slips.min_by_key(|(slips, _)| *slips)?;
    (slips <= SLIPS_MAX).then_some(known)
}
