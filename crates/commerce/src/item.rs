//! Items as arguments, and a basket that can be compared.

use crate::words::Say;
use std::collections::BTreeMap;

use countersign::contract::{Digest, ErrorBody, ErrorCode, FaultSource};
use countersign::{ToolArgs, ToolError};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// An item and its quantity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToolArgs)]
pub struct Item {
    /// SKU from `catalog.get_offer_variants`.
    #[arg(example = "SKU-0001-01", min_length = 1, max_length = 64)]
    pub sku: String,
    /// Quantity.
    #[arg(default = 1, min = 1, max = 999, example = 2, harmless)]
    pub quantity: u32,
}

/// The maximum quantity of one item.
pub const QUANTITY_MAX: u32 = 999;

/// The maximum number of different items.
pub const ITEMS_MAX: usize = 50;

/// Items in the order of their SKUs, each once. Two answers must have the same basket before one rests on the other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Basket(BTreeMap<String, u32>);

impl Basket {
    /// A basket from a list of arguments at this JSON pointer; the quantities of the same SKU are added up.
    pub fn of(items: &[Item], pointer: &str) -> Result<Self, ToolError> {
        if items.is_empty() || items.len() > ITEMS_MAX {
            let most = ITEMS_MAX.to_string();
            return Err(ToolError::invalid(pointer, Say::ItemCount { most }));
        }
        let mut basket = Self::default();
        for (at, item) in items.iter().enumerate() {
            basket.add(&item.sku, item.quantity).map_err(|quantity| {
                let message = Say::TooMany {
                    quantity: quantity.to_string(),
                    sku: item.sku.clone(),
                };
                let most = QUANTITY_MAX.to_string();
                ToolError::invalid(format!("{pointer}/{at}/quantity"), message)
                    .hint(Say::AtMostOfOne { most })
            })?;
        }
        Ok(basket)
    }

    /// Adds a quantity. The error is the sum that would exceed [`QUANTITY_MAX`].
    pub fn add(&mut self, sku: &str, quantity: u32) -> Result<(), u32> {
        let held = self.0.get(sku).copied().unwrap_or_default();
        let sum = held.saturating_add(quantity);
        if sum > QUANTITY_MAX {
            return Err(sum);
        }
        self.0.insert(sku.to_owned(), sum);
        Ok(())
    }

    /// Sets the quantity of an item; 0 removes it. The caller has checked the limits.
    pub(crate) fn set(&mut self, sku: &str, quantity: u32) {
        if quantity == 0 {
            self.0.remove(sku);
        } else {
            self.0.insert(sku.to_owned(), quantity);
        }
    }

    /// The quantity of an item; 0 if it is not in the basket.
    pub fn quantity(&self, sku: &str) -> u32 {
        self.0.get(sku).copied().unwrap_or_default()
    }

    /// Each SKU with its quantity, in the order of the SKUs.
    pub fn lines(&self) -> impl Iterator<Item = (&str, u32)> {
        self.0
            .iter()
            .map(|(sku, quantity)| (sku.as_str(), *quantity))
    }

    /// True if there are no items.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of different items.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The digest by which baskets are compared.
    pub fn digest(&self) -> Result<Digest, ToolError> {
        Digest::of_canonical(&json!(self.0)).map_err(|error| {
            // Names and numbers have a canonical form, so this never happens.
            let body = ErrorBody::new(ErrorCode::UpstreamError, Say::NoCanonicalBasket);
            ToolError::from(body.source(FaultSource::Tool)).with_source(error)
        })
    }
}
