//! Repetitions of an order that was made: the same call again, the same key from another user, and a dry run.

use serde_json::json;

use super::order::Order;
use crate::demo::ask::Ask;
use crate::demo::stage::Stage;
use crate::demo::world::World;
use crate::demo::{ANNA, BEN, QUANTITY, SKU};
use crate::failure::Failure;

/// The same call again, and the same key from another user.
pub(in crate::demo) fn again(
    world: &World,
    stage: &mut Stage<'_>,
    order: &Order,
) -> Result<(), Failure> {
    stage.begin(
        "once",
        "The same call again, and the same key from another user",
    )?;
    let again = world.ask(order.call.clone());
    stage.call(&again)?;
    stage.check(
        again.is_replayed()
            && again.text("/draft_order_id").as_ref() == Some(&order.id)
            && again.data("") == Some(&order.data),
        format!("the same order, nothing made twice: {}", order.id),
    )?;
    let changed = json!({"cart_id": order.cart, "evidence_snapshot_id": order.evidence});
    let mut reused = order.call.clone();
    reused.arguments = changed.to_string();
    let reused = world.ask(reused);
    stage.call(&reused)?;
    stage.check(
        reused.code() == Some("CONFLICT") && reused.detail("reason") == Some(&json!("key_reused")),
        "the key of another call is refused",
    )?;
    let mut foreign = order.call.clone();
    BEN.clone_into(&mut foreign.user);
    let foreign = world.ask(foreign);
    stage.call(&foreign)?;
    stage.check(
        foreign.code() == Some("NOT_FOUND") && !foreign.reply.to_string().contains(&order.id),
        "another user's keys are their own: they get nothing, least of all this order",
    )?;
    stage.end()
}

/// A dry run changes nothing.
pub(in crate::demo) fn dry_run(
    world: &World,
    stage: &mut Stage<'_>,
    order: &Order,
) -> Result<(), Failure> {
    stage.begin("dry_run", "A dry run changes nothing")?;
    let get = || {
        let arguments = json!({"cart_id": order.cart}).to_string();
        world.ask(Ask::new(ANNA, "cart.get", arguments))
    };
    let before = get();
    let arguments = json!({"cart_id": order.cart, "sku": SKU, "quantity": 4}).to_string();
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
