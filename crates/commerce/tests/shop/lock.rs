//! The lock on price and stock of a draft order: all items or none, once, and never for too long.

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
    // It expires; the next one is another lock, and not longer than the order.
    world.advance_seconds(1);
    assert_eq!(available(&world, "SKU-0001-01").await, 120);
    world.advance_seconds(100);
    let second = world.call(TOOL, arguments).await;
    assert_ne!(ok(&second)["lock_id"], first["data"]["lock_id"]);
    assert_eq!(second["data"]["expires_at"], "2026-11-16T12:30:00Z");
    assert_eq!(second["ttl_seconds"], 800);
    assert_eq!(available(&world, "SKU-0001-01").await, 118);
}

/// Others hold the last one: the loser's reply says when it may become available, and it can have it then.
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
    // No other user gets a draft order for it meanwhile either.
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

/// If one item is not available, nothing of the order is locked.
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

/// The price of a draft order stays the same, whatever happens to the list price.
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

/// A4: a dry run shows the lock and locks nothing.
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

/// A cart is bought once: a newer draft order of it takes over the lock of an older one, in the same commit.
#[tokio::test]
async fn a_newer_order_of_the_same_cart_takes_the_lock() {
    let world = World::new();
    let order = Order::of("SKU-0012-02", 1);
    let prepared = order.prepare(&world).await;
    let draft = async || {
        let total = prepared.total(&world).await;
        let draft = prepared.clone().bundle(&world, &total).await;
        let draft = draft.draft(&world).await;
        json!({"draft_order_id": ok(&draft)["draft_order_id"]})
    };
    let state = async |draft: &Value| {
        let tool = "checkout.get_draft_order_summary";
        let summary = world.call(tool, draft.clone()).await;
        ok(&summary)["state"].clone()
    };
    let first = draft().await;
    ok(&world.call(TOOL, first.clone()).await);
    world.advance_seconds(10);
    // The only one is held by the user's own order of this very cart.
    let second = draft().await;
    assert_eq!(state(&first).await, "locked");
    ok(&world.call(TOOL, second.clone()).await);
    assert_eq!(state(&first).await, "open");
    assert_eq!(state(&second).await, "locked");
    assert_eq!(available(&world, "SKU-0012-02").await, 0);
    // It is held once, and free when the second lock ends.
    world.advance_seconds(890);
    assert_eq!(available(&world, "SKU-0012-02").await, 0);
    world.advance_seconds(10);
    assert_eq!(available(&world, "SKU-0012-02").await, 1);
}

/// Another cart of the same user is another purchase: it waits, and its reply says that the user's own order holds the item.
#[tokio::test]
async fn another_cart_of_the_same_user_waits() {
    let world = World::new();
    let order = Order::of("SKU-0012-02", 1);
    let first = drafted(&world, &order).await;
    let second = drafted(&world, &order).await;
    let stranger = drafted(&world, &order.clone().by("u_2")).await;
    ok(&world.call(TOOL, first).await);
    let own = world.call(TOOL, second).await;
    check_error(
        &own,
        "CONFLICT",
        &json!({"reason": "stock", "held_by_user": 1}),
    );
    let message = own["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("orders of this user's other carts"),
        "{message}"
    );
    let others = order.by("u_2").call(&world, TOOL, stranger).await;
    check_error(
        &others,
        "CONFLICT",
        &json!({"reason": "stock", "held_by_user": 0}),
    );
    let message = others["error"]["message"].as_str().unwrap();
    assert!(message.contains("other orders hold"), "{message}");
}

/// If one expiring lock does not free enough, the reply asks the caller to wait for as many as it takes.
#[tokio::test]
async fn who_waits_is_told_when_enough_are_free() {
    let world = World::new();
    let of = |quantity, user: &str| Order::of("SKU-0002-02", quantity).by(user);
    let (one, two, late) = (of(1, "u_1"), of(2, "u_2"), of(2, "u_3"));
    let first = drafted(&world, &one).await;
    let second = drafted(&world, &two).await;
    let third = drafted(&world, &late).await;
    ok(&one.call(&world, TOOL, first).await);
    world.advance_seconds(100);
    ok(&two.call(&world, TOOL, second).await);
    world.advance_seconds(100);
    // Three there are. At 900 one comes free, at 1000 two more.
    let refused = late.call(&world, TOOL, third.clone()).await;
    let expected = json!({"reason": "stock", "available": 0, "retry_after_ms": 800_000});
    check_error(&refused, "CONFLICT", &expected);
    world.advance_seconds(700);
    let refused = late.call(&world, TOOL, third.clone()).await;
    let expected = json!({"reason": "stock", "available": 1, "retry_after_ms": 100_000});
    check_error(&refused, "CONFLICT", &expected);
    world.advance_seconds(100);
    ok(&late.call(&world, TOOL, third).await);
    assert_eq!(available(&world, "SKU-0002-02").await, 1);
}

/// The shop gives the quantity on hand, also of items that were locked before.
#[tokio::test]
async fn a_shop_that_is_filled_up_has_more() {
    let world = World::new();
    let arguments = drafted(&world, &Order::of("SKU-0012-02", 1)).await;
    ok(&world.call(TOOL, arguments).await);
    assert_eq!(available(&world, "SKU-0012-02").await, 0);
    let line = include_str!("../../shop/landmarks.toml")
        .lines()
        .find(|line| line.contains("SKU-0012-02"))
        .unwrap();
    let filled = line.replace("stock = 1 ", "stock = 5 ");
    assert_ne!(line, filled);
    let shop = include_str!("../../shop/landmarks.toml").replace(line, &filled);
    let world = world.with_rules("shop", shop);
    assert_eq!(available(&world, "SKU-0012-02").await, 4);
}
