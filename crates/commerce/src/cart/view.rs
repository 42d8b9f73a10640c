//! A cart as it is shown.

use countersign::contract::{Digest, SnapshotId};
use countersign::{CallContext, Tool, ToolArgs, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Cart;
use crate::behaviour;
use crate::id::Id;
use crate::shop::Shop;

/// A cart, with titles for people.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct CartView {
    /// Id of the cart.
    pub cart_id: String,
    /// Version number; each change raises it.
    pub version: u64,
    /// Digest of the items. An answer with the same digest is about the same items.
    pub basket: Digest,
    /// Only allowed currency of the total, if one was chosen with `cart.create`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// Items, by stock keeping unit.
    pub lines: Vec<CartLine>,
    /// Chosen shipping, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shipping: Option<ChosenShipping>,
}

/// An item of the cart and its quantity. Call `pricing.get_realtime_quote` for its price.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct CartLine {
    /// Stock keeping unit.
    pub sku: String,
    /// Id of the offer, while it is sold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer_id: Option<String>,
    /// Title, in the language of the call.
    pub title: String,
    /// Quantity.
    pub quantity: u32,
}

/// Chosen shipping.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct ChosenShipping {
    /// Evidence id of the shipping quote that offered this option.
    pub shipping_snapshot_id: SnapshotId,
    /// Id of the chosen shipping option.
    pub shipping_option_id: String,
    /// Country of the destination.
    pub country: String,
    /// Id of the stored address that the order goes to, if one was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_id: Option<String>,
}

impl CartView {
    /// The cart in the locale of the call.
    pub(crate) fn of(ctx: &CallContext, cart_id: &str, cart: &Cart) -> Result<Self, ToolError> {
        let shop = Shop::of(ctx)?;
        let locale = ctx.request().locale.as_deref();
        let line = |(sku, quantity): (&str, u32)| {
            let offer = shop.variant(sku).map(|(offer, _)| offer);
            let title = offer.map_or(sku, |offer| offer.title.for_locale(locale));
            CartLine {
                sku: sku.to_owned(),
                offer_id: offer.map(|offer| offer.offer_id.clone()),
                title: title.to_owned(),
                quantity,
            }
        };
        let shipping = cart.shipping.as_ref().map(|chosen| ChosenShipping {
            shipping_snapshot_id: chosen.snapshot_id.clone(),
            shipping_option_id: chosen.option_id.clone(),
            country: chosen.destination.country(),
            address_id: chosen.address_id.clone(),
        });
        Ok(Self {
            cart_id: cart_id.to_owned(),
            version: cart.version,
            basket: cart.basket.digest()?,
            currency: cart.currency.clone(),
            lines: cart.basket.lines().map(line).collect(),
            shipping,
        })
    }
}

/// `cart.get`: the content of a cart.
pub(super) struct Get;

/// Arguments of `cart.get`.
#[derive(Deserialize, ToolArgs)]
pub(super) struct GetArgs {
    /// `cart_id` from `cart.create`.
    #[arg(example = "cart_0123456789abcdef")]
    cart_id: Id,
}

impl Tool for Get {
    const NAME: &'static str = "cart.get";
    const DESCRIPTION: &'static str =
        "Shows the items of a cart and its shipping option, without prices.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Args = GetArgs;
    type Output = CartView;

    fn behaviour() -> countersign::contract::Behaviour {
        behaviour::read()
    }

    async fn call(&self, ctx: &CallContext, args: GetArgs) -> Result<CartView, ToolError> {
        let cart = Cart::of(ctx, &args.cart_id).await?;
        CartView::of(ctx, &args.cart_id, &cart)
    }
}
