//! Weights and sizes: one parcel for each sender, weighed and measured by its own items. Nothing here has a default
//! weight.

use std::collections::BTreeMap;

use countersign::ToolError;

use super::tariff::{Limits, Volumetric};
use crate::item::Basket;
use crate::shop::{Offer, Shop, Variant};

/// The parcel of one merchant from one country.
#[derive(Debug)]
pub(super) struct Load<'a> {
    pub(super) merchant_id: &'a str,
    pub(super) ships_from: &'a str,
    pub(super) lines: Vec<Line<'a>>,
}

/// A quantity of one item.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    pub(super) offer: &'a Offer,
    pub(super) variant: &'a Variant,
    pub(super) quantity: u32,
}

/// The limit that a parcel exceeds.
pub(super) enum Over {
    /// The weight of the parcel, in grams.
    Weight(u64),
    /// The volume of the parcel, in cubic centimetres.
    Volume(u64),
    /// A side of the item with this SKU.
    Side(String),
    /// The sum of the sides of the item with this SKU.
    SidesSum(String),
    /// The longest side plus the girth of the item with this SKU.
    Girth(String),
}

/// The parcels of a basket, in the order of merchants and countries. The pointer names its items in the arguments.
pub(super) fn loads<'a>(
    shop: &'a Shop,
    basket: &Basket,
    pointer: &str,
) -> Result<Vec<Load<'a>>, ToolError> {
    let mut loads: BTreeMap<(&str, &str), Load<'a>> = BTreeMap::new();
    for (sku, quantity) in basket.lines() {
        let (offer, variant) = shop.known(sku, pointer)?;
        let sender = (offer.merchant_id.as_str(), offer.ships_from.as_str());
        let load = loads.entry(sender).or_insert_with(|| Load {
            merchant_id: &offer.merchant_id,
            ships_from: &offer.ships_from,
            lines: Vec::new(),
        });
        load.lines.push(Line {
            offer,
            variant,
            quantity,
        });
    }
    Ok(loads.into_values().collect())
}

/// The items that their sellers do not send to this country.
pub(super) fn not_sent_to<'a>(loads: &[Load<'a>], country: &str) -> Vec<Line<'a>> {
    let lines = loads.iter().flat_map(|load| &load.lines);
    lines
        .filter(|line| !line.offer.is_sent_to(country))
        .copied()
        .collect()
}

impl Load<'_> {
    /// The weight on the scales.
    pub(super) fn actual_g(&self) -> u64 {
        let lines = self.lines.iter();
        lines
            .map(|line| u64::from(line.variant.weight_g) * u64::from(line.quantity))
            .fold(0, u64::saturating_add)
    }

    /// The volumetric weight: 5,000 cm³ a kilogram are 5,000 mm³ a gram, and a started gram counts.
    pub(super) fn volumetric_g(&self, volumetric: Option<&Volumetric>) -> u64 {
        let Some(volumetric) = volumetric else {
            return 0;
        };
        let mm3 = self.volume_mm3();
        u64::try_from(mm3.div_ceil(volumetric.divisor_cm3_per_kg.max(1).into())).unwrap_or(u64::MAX)
    }

    /// The first limit that it exceeds.
    pub(super) fn over(&self, limits: &Limits) -> Option<Over> {
        let weight = self.actual_g();
        if weight > limits.weight_max_g {
            return Some(Over::Weight(weight));
        }
        let volume = self.volume_mm3().div_ceil(1_000);
        let volume = u64::try_from(volume).unwrap_or(u64::MAX);
        if limits.volume_max_cm3.is_some_and(|max| volume > max) {
            return Some(Over::Volume(volume));
        }
        self.lines.iter().find_map(|line| line.over(limits))
    }

    fn volume_mm3(&self) -> u128 {
        let volumes = self.lines.iter().map(|line| {
            let sides = line.variant.dimensions_mm.iter();
            let one: u128 = sides.map(|side| u128::from(*side)).product();
            one.saturating_mul(line.quantity.into())
        });
        volumes.fold(0, u128::saturating_add)
    }
}

impl Line<'_> {
    fn over(&self, limits: &Limits) -> Option<Over> {
        let mut sides = self.variant.dimensions_mm.map(u64::from);
        sides.sort_unstable();
        let [short, middle, long] = sides;
        let sku = || self.variant.sku.clone();
        let is_over = |size: u64, max: Option<u64>| max.is_some_and(|max| size > max);
        if long > limits.side_max_mm {
            return Some(Over::Side(sku()));
        }
        if is_over(long + middle + short, limits.sides_sum_max_mm) {
            return Some(Over::SidesSum(sku()));
        }
        is_over(long + 2 * (middle + short), limits.length_and_girth_max_mm)
            .then(|| Over::Girth(sku()))
    }
}
