//! Price and stock of a draft order, held for a while: all of it or nothing, once, and never for too long.

use serde_json::{Value, json};

use crate::flow::Order;
use crate::world::{World, check_error, ok};

const TOOL: &str = "checkout.lock_price_and_stock";

/// A draft order of these items.
async fn drafted(world: &World, order: &Order) -> Value {
    let draft = order.draft(world).await;
    json!({"draft_order_id": ok(&draft)["draft_order_id"]})
}

async fn available(world: &World, sku: &str) -> Value {
    let arguments = json!({"skus": [sku]});
    let reply = world.call("catalog.get_availability", arguments).await;
    ok(&reply)["items"][0]["available"].clone()
}

#[tokio::test]
async fn a_lock_is_one_lock_as_long_as_it_holds() {
    let world = World::new();
    let arguments = drafted(&world, &Order::new()).await;
    let first = world.call(TOOL, arguments.clone()).await;
    assert_eq!(first["ttl_seconds"], 900);
    assert_eq!(ok(&first)["expires_at"], "2026-11-16T12:15:00Z");
    assert_eq!(
        first["data"]["items"],
        json!([{"sku": "SKU-0001-01", "quantity": 2}])
    );
    assert_eq!(available(&world, "SKU-0001-01").await, 118);
    world.advance_seconds(899);
    let again = world.call(TOOL, arguments.clone()).await;
    assert_eq!(ok(&again), ok(&first), "not longer, not twice");
    assert_eq!(again["ttl_seconds"], 1);
    assert_eq!(available(&world, "SKU-0001-01").await, 118);
    // It ends by itself; then it is another one, and not longer than the order.
    world.advance_seconds(1);
    assert_eq!(available(&world, "SKU-0001-01").await, 120);
    world.advance_seconds(100);
    let second = world.call(TOOL, arguments).await;
    assert_ne!(ok(&second)["lock_id"], first["data"]["lock_id"]);
    assert_eq!(second["data"]["expires_at"], "2026-11-16T12:30:00Z");
    assert_eq!(second["ttl_seconds"], 800);
    assert_eq!(available(&world, "SKU-0001-01").await, 118);
}

/// Others hold the last one: the loser is told when it may come free, and can have it then.
#[tokio::test]
async fn who_comes_second_waits() {
    let world = World::new();
    let one = Order::of("SKU-0012-02", 1);
    let (two, late) = (one.clone().by("u_2"), one.clone().by("u_3"));
    let first = drafted(&world, &one).await;
    let second = drafted(&world, &two).await;
    ok(&one.call(&world, TOOL, first.clone()).await);
    world.advance_seconds(300);
    let refused = two.call(&world, TOOL, second.clone()).await;
    let expected = json!({
        "reason": "stock",
        "field": "/draft_order_id",
        "sku": "SKU-0012-02",
        "available": 0,
        "requested": 1,
        "retryable": true,
        "retry_after_ms": 600_000,
    });
    check_error(&refused, "CONFLICT", &expected);
    let alternatives = &refused["error"]["details"]["alternatives"];
    assert_eq!(alternatives[0]["sku"], "SKU-0012-01", "{refused:#}");
    // Nobody gets a draft order for it meanwhile either.
    let draft = late.draft(&world).await;
    check_error(
        &draft,
        "CONFLICT",
        &json!({"reason": "stock", "field": "/cart_id"}),
    );
    world.advance_seconds(600);
    ok(&two.call(&world, TOOL, second).await);
    let too_late = one.call(&world, TOOL, first).await;
    check_error(&too_late, "CONFLICT", &json!({"reason": "stock"}));
}

/// One thing that cannot be had, and nothing of the order is held.
#[tokio::test]
async fn all_of_an_order_is_held_or_nothing() {
    let world = World::new();
    let both = Order {
        items: json!([{"sku": "SKU-0012-01", "quantity": 3}, {"sku": "SKU-0012-02", "quantity": 1}]),
        ..Order::new()
    };
    let other = Order::of("SKU-0012-02", 1).by("u_2");
    let of_both = drafted(&world, &both).await;
    let of_other = drafted(&world, &other).await;
    ok(&other.call(&world, TOOL, of_other).await);
    let refused = both.call(&world, TOOL, of_both.clone()).await;
    check_error(
        &refused,
        "CONFLICT",
        &json!({"reason": "stock", "sku": "SKU-0012-02"}),
    );
    assert_eq!(available(&world, "SKU-0012-01").await, 30);
    world.advance_seconds(900);
    ok(&both.call(&world, TOOL, of_both).await);
    assert_eq!(available(&world, "SKU-0012-01").await, 27);
}

/// The price of a draft order stands, whatever becomes of the list.
#[tokio::test]
async fn the_price_of_a_draft_order_stands() {
    let world = World::new();
    let order = Order::of("SKU-0008-01", 1);
    let draft = order.draft(&world).await;
    let total = ok(&draft)["pricing_breakdown"]["total"].clone();
    let arguments = json!({"draft_order_id": draft["data"]["draft_order_id"]});
    // The flash sale ends at 12:02.
    world.advance_seconds(200);
    let locked = world.call(TOOL, arguments.clone()).await;
    assert_eq!(ok(&locked)["total"], total);
    let pay = json!({
        "draft_order_id": arguments["draft_order_id"],
        "amount": total["amount"],
        "currency": total["currency"],
    });
    world
        .call("payment.create_payment_intent", pay.clone())
        .await;
    world.approve_all("u_1").await;
    let intent = world.call("payment.create_payment_intent", pay).await;
    assert_eq!(ok(&intent)["amount"], total);
}

/// A4: a dry run shows the lock and holds nothing.
#[tokio::test]
async fn a_dry_run_holds_nothing() {
    let world = World::new();
    let arguments = drafted(&world, &Order::new()).await;
    let dry = json!({"dry_run": true});
    let shown = world.call_as("u_1", TOOL, arguments.clone(), dry).await;
    assert_eq!(ok(&shown)["expires_at"], "2026-11-16T12:15:00Z");
    assert_eq!(available(&world, "SKU-0001-01").await, 120);
    let summary = world
        .call("checkout.get_draft_order_summary", arguments)
        .await;
    assert_eq!(ok(&summary)["state"], "open");
}

#[tokio::test]
async fn nobody_locks_the_order_of_another() {
    let world = World::new();
    let arguments = drafted(&world, &Order::new()).await;
    let foreign = world.call_as("u_2", TOOL, arguments, json!({})).await;
    check_error(&foreign, "NOT_FOUND", &json!({"field": "/draft_order_id"}));
    let unknown = json!({"draft_order_id": "order_nobody"});
    let unknown = world.call(TOOL, unknown).await;
    check_error(&unknown, "NOT_FOUND", &json!({"field": "/draft_order_id"}));
}
