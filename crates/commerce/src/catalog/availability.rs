//! `catalog.get_availability`.

use countersign::contract::Behaviour;
use countersign::{CallContext, Tool, ToolArgs, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::behaviour;
use crate::item::{Basket, Item};
use crate::shop::Shop;
use crate::stock::Stock;
use crate::words::Say;

/// The tool.
pub(super) struct GetAvailability;

/// Availability up to this number counts as low.
const LOW_MAX: u32 = 5;

/// Arguments: items, or only their SKUs.
#[derive(Deserialize, ToolArgs)]
pub(super) struct AvailabilityArgs {
    /// Items with quantities. Send either this or `skus`.
    #[arg(max_items = 50, example = [{"sku": "SKU-0001-01", "quantity": 2}])]
    items: Option<Vec<Item>>,
    /// SKUs, one of each, such as SKU-0001-01. Send either this or `items`.
    #[arg(max_items = 50, min_length = 1, max_length = 64, alias = "sku")]
    skus: Option<Vec<String>>,
}

/// Stock of several items.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Availability {
    /// True if all items are in stock in the requested quantities.
    pub is_complete: bool,
    /// Stock by item, each SKU once.
    pub items: Vec<ItemAvailability>,
    /// Time of the stock check, RFC 3339.
    pub checked_at: String,
}

/// Stock of one item.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ItemAvailability {
    /// Stock keeping unit.
    pub sku: String,
    /// Id of the offer.
    pub offer_id: String,
    /// Title, in the language of the call.
    pub title: String,
    /// Stock status for the requested quantity.
    pub status: StockStatus,
    /// Requested quantity.
    pub requested: u32,
    /// Quantity in stock.
    pub available: u32,
    /// Quantity that other orders reserve now.
    pub held: u32,
    /// Earliest time at which a reservation ends, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_release_at: Option<String>,
}

/// Stock status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StockStatus {
    /// In stock in the requested quantity.
    InStock,
    /// In stock in the requested quantity, but only a few are left.
    Low,
    /// Some are in stock, but fewer than requested.
    Insufficient,
    /// Out of stock.
    OutOfStock,
}

impl Tool for GetAvailability {
    const NAME: &'static str = "catalog.get_availability";
    const DESCRIPTION: &'static str = "Shows how many of some items are in stock. It reserves nothing: checkout.lock_price_and_stock \
        does.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Args = AvailabilityArgs;
    type Output = Availability;

    fn behaviour() -> Behaviour {
        behaviour::asks(super::AVAILABILITY_SECONDS)
    }

    async fn call(
        &self,
        ctx: &CallContext,
        args: AvailabilityArgs,
    ) -> Result<Availability, ToolError> {
        let asked = asked(args)?;
        let shop = Shop::of(ctx)?;
        for (item, pointer) in &asked {
            shop.known(&item.sku, pointer)?;
        }
        let items: Vec<Item> = asked.into_iter().map(|(item, _)| item).collect();
        let basket = Basket::of(&items, "/items")?;
        let mut answers = Vec::with_capacity(basket.len());
        for (sku, requested) in basket.lines() {
            let (offer, variant) = shop.known(sku, "/items")?;
            let stock = Stock::of(ctx, variant).await?;
            let available = stock.available();
            let first = stock.locks.iter().map(|lock| lock.expires_at).min();
            let title = offer.title.for_locale(ctx.request().locale.as_deref());
            answers.push(ItemAvailability {
                sku: variant.sku.clone(),
                offer_id: offer.offer_id.clone(),
                title: title.to_owned(),
                status: StockStatus::of(available, requested),
                requested,
                available,
                held: stock.on_hand.saturating_sub(available),
                next_release_at: first.map(|at| at.to_string()),
            });
        }
        Ok(Availability {
            is_complete: answers.iter().all(|item| item.requested <= item.available),
            items: answers,
            checked_at: ctx.now().to_string(),
        })
    }
}

impl StockStatus {
    fn of(available: u32, requested: u32) -> Self {
        match available {
            0 => Self::OutOfStock,
            some if some < requested => Self::Insufficient,
            some if some <= LOW_MAX => Self::Low,
            _ => Self::InStock,
        }
    }
}

/// The requested items, each with the JSON pointer of its SKU.
fn asked(args: AvailabilityArgs) -> Result<Vec<(Item, String)>, ToolError> {
    match (args.items, args.skus) {
        (Some(items), None) => {
            let items = items.into_iter().enumerate();
            Ok(items
                .map(|(at, item)| (item, format!("/items/{at}/sku")))
                .collect())
        }
        (None, Some(skus)) => {
            let items = skus.into_iter().map(|sku| Item { sku, quantity: 1 });
            let items = items.enumerate();
            Ok(items
                .map(|(at, item)| (item, format!("/skus/{at}")))
                .collect())
        }
        (Some(_), Some(_)) => Err(ToolError::invalid("/skus", Say::AskedTwice).hint(Say::GiveOne)),
        (None, None) => {
            Err(ToolError::invalid("/items", Say::NothingAsked).hint(Say::GiveItemsOrSkus))
        }
    }
}
