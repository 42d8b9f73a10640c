//! The tools that change a cart. Every change is part of the call's unit of work: retries, races and dry runs need no
//! code here.

use countersign::contract::Behaviour;
use countersign::contract::tool::Narrowing;
use countersign::{CallContext, DryRun, Tool, ToolArgs, ToolError};
use serde::Deserialize;

use super::{Cart, CartView};
use crate::id::Id;
use crate::item::{ITEMS_MAX, QUANTITY_MAX};
use crate::money::{CurrencyCode, Money};
use crate::shop::Shop;
use crate::words::Say;
use crate::{behaviour, fx};

/// `cart.create`: makes a new cart of the user.
pub(super) struct Create;

/// Arguments of `cart.create`.
#[derive(Deserialize, ToolArgs)]
pub(super) struct CreateArgs {
    /// Only allowed currency of the total, such as EUR.
    #[arg(example = "EUR")]
    currency: Option<CurrencyCode>,
}

impl Tool for Create {
    const NAME: &'static str = "cart.create";
    const DESCRIPTION: &'static str = "Creates an empty cart.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DRY_RUN: DryRun = DryRun::Simulate;
    type Args = CreateArgs;
    type Output = CartView;

    fn behaviour() -> Behaviour {
        behaviour::add()
    }

    async fn call(&self, ctx: &CallContext, args: CreateArgs) -> Result<CartView, ToolError> {
        let currency = args.currency.map(|currency| currency.code());
        if let Some(currency) = &currency {
            // Refused here, and not when everything is in it: nothing can be quoted in it.
            fx::Rates::of(ctx)?.convert(&Money::zero(fx::DEFAULT_CURRENCY), currency)?;
        }
        let mut cart = Cart {
            currency,
            ..Cart::default()
        };
        let cart_id = ctx.new_id("cart_");
        cart.keep(ctx, &cart_id).await?;
        CartView::of(ctx, &cart_id, &cart)
    }
}

/// `cart.add_item`: adds a quantity of an item.
pub(super) struct AddItem;

/// Arguments of `cart.add_item`.
#[derive(Deserialize, ToolArgs)]
pub(super) struct AddItemArgs {
    /// `cart_id` from `cart.create`.
    #[arg(example = "cart_0123456789abcdef")]
    cart_id: Id,
    /// SKU from `catalog.get_offer_variants`.
    #[arg(example = "SKU-0001-01", min_length = 1, max_length = 64)]
    sku: String,
    /// Quantity to add to the cart.
    #[arg(default = 1, min = 1, max = 999, harmless)]
    quantity: u32,
}

impl Tool for AddItem {
    const NAME: &'static str = "cart.add_item";
    const DESCRIPTION: &'static str =
        "Adds a quantity of an item to the cart. The shipping option has to be chosen again.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DRY_RUN: DryRun = DryRun::Simulate;
    type Args = AddItemArgs;
    type Output = CartView;

    // Where a policy lets the user confirm, the user may take fewer.
    fn behaviour() -> Behaviour {
        Behaviour {
            narrowing: vec![Narrowing::lower("/quantity")],
            ..behaviour::add()
        }
    }

    async fn call(&self, ctx: &CallContext, args: AddItemArgs) -> Result<CartView, ToolError> {
        let mut cart = Cart::of(ctx, &args.cart_id).await?;
        Shop::of(ctx)?.known(&args.sku, "/sku")?;
        let before = cart.basket.quantity(&args.sku);
        if before == 0 && cart.basket.len() >= ITEMS_MAX {
            let most = ITEMS_MAX.to_string();
            return Err(ToolError::invalid("/sku", Say::CartFull { most }).hint(Say::RemoveOne));
        }
        let after = before.saturating_add(args.quantity);
        if after > QUANTITY_MAX {
            let message = Say::TooManyInCart {
                before: before.to_string(),
                sku: args.sku.clone(),
                after: after.to_string(),
            };
            let most = QUANTITY_MAX.to_string();
            return Err(ToolError::invalid("/quantity", message).hint(Say::AtMostOfOne { most }));
        }
        cart.refill(|basket| basket.set(&args.sku, after));
        cart.keep(ctx, &args.cart_id).await?;
        CartView::of(ctx, &args.cart_id, &cart)
    }
}

/// `cart.update_quantity`: sets the quantity of an item.
pub(super) struct UpdateQuantity;

/// Arguments of `cart.update_quantity`.
#[derive(Deserialize, ToolArgs)]
pub(super) struct UpdateQuantityArgs {
    /// `cart_id` from `cart.create`.
    #[arg(example = "cart_0123456789abcdef")]
    cart_id: Id,
    /// SKU of an item in the cart.
    #[arg(example = "SKU-0001-01", min_length = 1, max_length = 64)]
    sku: String,
    /// New quantity; 0 removes the item.
    #[arg(min = 0, max = 999, harmless)]
    quantity: u32,
}

impl Tool for UpdateQuantity {
    const NAME: &'static str = "cart.update_quantity";
    const DESCRIPTION: &'static str = "Sets the quantity of an item in the cart; 0 removes it. The shipping option has to be chosen \
        again.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DRY_RUN: DryRun = DryRun::Simulate;
    type Args = UpdateQuantityArgs;
    type Output = CartView;

    fn behaviour() -> Behaviour {
        behaviour::set()
    }

    async fn call(
        &self,
        ctx: &CallContext,
        args: UpdateQuantityArgs,
    ) -> Result<CartView, ToolError> {
        let mut cart = Cart::of(ctx, &args.cart_id).await?;
        in_cart(&cart, &args.sku)?;
        cart.refill(|basket| basket.set(&args.sku, args.quantity));
        cart.keep(ctx, &args.cart_id).await?;
        CartView::of(ctx, &args.cart_id, &cart)
    }
}

/// `cart.remove_item`: removes an item.
pub(super) struct RemoveItem;

/// Arguments of `cart.remove_item`.
#[derive(Deserialize, ToolArgs)]
pub(super) struct RemoveItemArgs {
    /// `cart_id` from `cart.create`.
    #[arg(example = "cart_0123456789abcdef")]
    cart_id: Id,
    /// SKU of an item in the cart.
    #[arg(example = "SKU-0001-01", min_length = 1, max_length = 64)]
    sku: String,
}

impl Tool for RemoveItem {
    const NAME: &'static str = "cart.remove_item";
    const DESCRIPTION: &'static str = "Removes an item from the cart, whatever its quantity. The shipping option has to be chosen \
        again.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DRY_RUN: DryRun = DryRun::Simulate;
    type Args = RemoveItemArgs;
    type Output = CartView;

    fn behaviour() -> Behaviour {
        behaviour::set()
    }

    async fn call(&self, ctx: &CallContext, args: RemoveItemArgs) -> Result<CartView, ToolError> {
        let mut cart = Cart::of(ctx, &args.cart_id).await?;
        in_cart(&cart, &args.sku)?;
        cart.refill(|basket| basket.set(&args.sku, 0));
        cart.keep(ctx, &args.cart_id).await?;
        CartView::of(ctx, &args.cart_id, &cart)
    }
}

/// Checks that an item is in the cart. It need not be sold any more: it can still be removed.
fn in_cart(cart: &Cart, sku: &str) -> Result<(), ToolError> {
    if cart.basket.quantity(sku) > 0 {
        return Ok(());
    }
    let there: Vec<&str> = cart.basket.lines().map(|(sku, _)| sku).collect();
    let hint = if there.is_empty() {
        Say::CartIsEmpty
    } else {
        Say::InCart {
            skus: there.join(", "),
        }
    };
    let message = Say::NotInCart {
        sku: sku.to_owned(),
    };
    Err(ToolError::not_found(message).field("/sku").hint(hint))
}
