//! A cart, and what may happen to one: the same call again, a dry run.

use serde_json::json;

use crate::demo::ask::Ask;
use crate::demo::stage::Stage;
use crate::demo::world::World;
use crate::demo::{ANNA, QUANTITY, SKU};
use crate::failure::Failure;

/// A cart with what is bought.
pub(in crate::demo) fn cart(world: &World, stage: &mut Stage<'_>) -> Result<String, Failure> {
    stage.begin("cart", "A cart, made once for its key")?;
    let create = Ask::new(ANNA, "cart.create", "{}").key("cart-1");
    let first = world.ask(create.clone());
    stage.call(&first)?;
    let again = world.ask(create);
    stage.call(&again)?;
    let cart = stage.need(first.text("/cart_id"), "a cart")?;
    stage.check(
        again.is_replayed() && again.text("/cart_id").as_ref() == Some(&cart),
        format!("the same key, the same cart: {cart}"),
    )?;
    let arguments = json!({"cart_id": cart, "sku": SKU, "quantity": QUANTITY});
    let added = world.ask(Ask::new(ANNA, "cart.add_item", arguments.to_string()).key("add-1"));
    stage.call(&added)?;
    stage.check(
        added.data("/lines/0/quantity") == Some(&json!(QUANTITY)),
        format!("{QUANTITY} are in it"),
    )?;
    stage.end()?;
    Ok(cart)
}

/// A dry run changes nothing.
pub(in crate::demo) fn dry_run(
    world: &World,
    stage: &mut Stage<'_>,
    cart: &str,
) -> Result<(), Failure> {
    stage.begin("dry_run", "A dry run changes nothing")?;
    let get = || world.ask(get(cart));
    let before = get();
    let arguments = json!({"cart_id": cart, "sku": SKU, "quantity": 4}).to_string();
    let simulated = world.ask(
        Ask::new(ANNA, "cart.add_item", arguments)
            .key("dry")
            .dry_run(),
    );
    stage.call(&simulated)?;
    stage.check(
        simulated.data("/lines/0/quantity") == Some(&json!(QUANTITY + 4)),
        format!("it shows what would be: {} in the cart", QUANTITY + 4),
    )?;
    let after = get();
    stage.call(&after)?;
    stage.check(
        before.is_ok() && after.reply.get("data") == before.reply.get("data"),
        format!("and the cart is what it was: {QUANTITY}"),
    )?;
    stage.end()
}

/// What is in a cart.
pub(in crate::demo) fn get(cart: &str) -> Ask {
    let arguments = json!({"cart_id": cart});
    Ask::new(ANNA, "cart.get", arguments.to_string())
}
