//! From a cart to a draft order: every answer that it rests on is named by its evidence.

use countersign_commerce::money::Money;
use serde_json::{Value, json};

use super::grounds::Grounds;
use crate::demo::ask::{Answer, Ask};
use crate::demo::stage::Stage;
use crate::demo::world::World;
use crate::demo::{ANNA, QUANTITY, SKU};
use crate::failure::Failure;

/// The key of the order.
const ORDER_KEY: &str = "order-1";

/// A draft order, with the call that made it.
pub(in crate::demo) struct Order {
    pub(in crate::demo) id: String,
    pub(in crate::demo) evidence: String,
    pub(in crate::demo) total: Money,
    /// The cart that it was made from.
    pub(super) cart: String,
    /// The call that made it.
    pub(super) call: Ask,
    pub(super) data: Value,
}

/// Cart, shipping option, total, bundle of evidence, draft order.
pub(in crate::demo) fn play(
    world: &World,
    stage: &mut Stage<'_>,
    grounds: &Grounds,
) -> Result<Order, Failure> {
    let cart = cart(world, stage)?;
    let total = total(world, stage, grounds, &cart)?;
    draft(world, stage, grounds, cart, &total)
}

fn cart(world: &World, stage: &mut Stage<'_>) -> Result<String, Failure> {
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

fn total(
    world: &World,
    stage: &mut Stage<'_>,
    grounds: &Grounds,
    cart: &str,
) -> Result<Answer, Failure> {
    stage.begin(
        "total",
        "One total, from answers that are fresh and fit together",
    )?;
    let arguments = json!({
        "cart_id": cart,
        "shipping_snapshot_id": grounds.shipping,
        "shipping_option_id": grounds.option,
    });
    let tool = "checkout.select_shipping_option";
    let selected = world.ask(Ask::new(ANNA, tool, arguments.to_string()).key("ship-1"));
    stage.call(&selected)?;
    let compute = |quote: &str| {
        let arguments = json!({
            "cart_id": cart,
            "quote_snapshot_id": quote,
            "tax_snapshot_id": grounds.tax,
            "compliance_snapshot_id": grounds.compliance,
        });
        world.ask(Ask::new(
            ANNA,
            "checkout.compute_total",
            arguments.to_string(),
        ))
    };
    let total = compute(&grounds.quote);
    stage.call(&total)?;
    show_breakdown(stage, &total, "/breakdown")?;
    let part = |name: &str| total.money(&format!("/breakdown/{name}"));
    let parts = ["items", "shipping", "duty", "tax", "fees"].map(part);
    let sum: i64 = parts.iter().flatten().map(|money| money.amount).sum();
    let paid: i64 = [part("total"), part("due_on_delivery")]
        .iter()
        .flatten()
        .map(|money| money.amount)
        .sum();
    stage.check(
        total.is_ok() && sum == paid && sum > 0,
        "items, shipping, duty, tax and fees make the total, to the cent",
    )?;
    let forged = compute("ev_00000000-0000-7000-8000-000000000000");
    stage.call(&forged)?;
    let field = forged.detail("field").and_then(Value::as_str);
    stage.check(
        forged.code() == Some("NOT_FOUND") && field == Some("/quote_snapshot_id"),
        "evidence that the gateway has not written is none",
    )?;
    stage.end()?;
    Ok(total)
}

fn show_breakdown(stage: &mut Stage<'_>, answer: &Answer, at: &str) -> Result<(), Failure> {
    for part in ["items", "shipping", "duty", "tax", "fees", "total"] {
        stage.value(part, &answer.price(&format!("{at}/{part}")))?;
    }
    Ok(())
}

fn draft(
    world: &World,
    stage: &mut Stage<'_>,
    grounds: &Grounds,
    cart: String,
    total: &Answer,
) -> Result<Order, Failure> {
    stage.begin("draft", "A draft order that rests on evidence")?;
    let ids = [
        Some(grounds.quote.clone()),
        Some(grounds.shipping.clone()),
        Some(grounds.tax.clone()),
        Some(grounds.compliance.clone()),
        total.evidence(),
    ];
    let arguments = json!({"snapshot_ids": ids});
    let tool = "evidence.create_snapshot";
    let snapshot = world.ask(Ask::new(ANNA, tool, arguments.to_string()));
    stage.call(&snapshot)?;
    let snapshot = stage.need(snapshot.evidence(), "a bundle of evidence")?;
    let arguments = json!({"cart_id": cart, "evidence_snapshot_id": snapshot});
    let tool = "checkout.create_draft_order";
    let call = Ask::new(ANNA, tool, arguments.to_string()).key(ORDER_KEY);
    let draft = world.ask(call.clone());
    stage.call(&draft)?;
    let id = stage.need(draft.text("/draft_order_id"), "a draft order")?;
    stage.value("draft order", &id)?;
    show_breakdown(stage, &draft, "/pricing_breakdown")?;
    stage.value("valid until", &draft.moment("/expires_at"))?;
    let items = draft.data("/confirmation_items").and_then(Value::as_array);
    for item in items.into_iter().flatten() {
        let member = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
        stage.value(&format!("to confirm: {}", member("kind")), member("text"))?;
    }
    let agreed = stage.need(total.money("/breakdown/total"), "a total")?;
    stage.check(
        draft.money("/pricing_breakdown/total").as_ref() == Some(&agreed),
        "its total is that of compute_total: one computation, linked by evidence",
    )?;
    stage.check(
        draft.text("/evidence_snapshot_id") == Some(snapshot),
        "it names everything that it rests on",
    )?;
    let evidence = stage.need(draft.evidence(), "evidence of the draft order")?;
    stage.end()?;
    Ok(Order {
        id,
        evidence,
        total: agreed,
        cart,
        call,
        data: draft.data("").cloned().unwrap_or_default(),
    })
}

/// Builds the call that asks for the summary of an order.
pub(in crate::demo) fn summary(order: &Order) -> Ask {
    let arguments = json!({"draft_order_id": order.id});
    let tool = "checkout.get_draft_order_summary";
    Ask::new(ANNA, tool, arguments.to_string())
}
