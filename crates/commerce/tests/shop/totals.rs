//! For every order and destination: the total is the sum of its parts, and the same from the cart to the payment.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::flow::Order;
use crate::world::{World, check_error, ok};

/// An order of one to four items, to any place.
fn orders() -> impl Strategy<Value = Order> {
    let things = (1_u32..=12, 1_u32..=5);
    let items = prop::collection::vec(things, 1..=4);
    let destinations = prop::sample::select(vec![
        json!({"country": "DE"}),
        json!({"country": "FR", "postal_code": "75001"}),
        json!({"country": "GB"}),
        json!({"country": "US", "region": "CA"}),
        json!({"country": "CA", "region": "ON"}),
        json!({"country": "CH"}),
        json!({"country": "NO"}),
        json!({"country": "AU"}),
        json!({"country": "JP"}),
        json!({"country": "KR"}),
        json!({"country": "SG"}),
        json!({"country": "CN"}),
    ]);
    let currencies = prop::sample::select(vec!["EUR", "USD", "JPY", "GBP"]);
    let incoterms = prop::sample::select(vec!["DDP", "DAP"]);
    (items, destinations, currencies, incoterms).prop_map(
        |(items, destination, currency, incoterm)| {
            let items = items.iter().map(|(offer, quantity)| {
            json!({"sku": format!("SKU-{offer:04}-01"), "quantity": quantity})
        });
            Order {
                items: items.collect(),
                destination,
                currency,
                incoterm,
                ..Order::new()
            }
        },
    )
}

/// Goes the whole way; false if it is refused for a reason that is no defect.
async fn goes_through(world: &World, order: &Order) -> bool {
    let shipping = order.shipping(world).await;
    // No service carries all of it together.
    if shipping["ok"] != true || !order.has_option(&shipping) {
        return false;
    }
    let prepared = order.prepare(world).await;
    let total = prepared.total(world).await;
    if total["ok"] != true {
        check_error(&total, "COMPLIANCE_BLOCKED", &json!({}));
        return false;
    }
    let bundled = prepared.bundle(world, &total).await;
    let draft = bundled.draft(world).await;
    let costs = &ok(&draft)["pricing_breakdown"];
    assert_eq!(costs, &bundled.total_data["breakdown"]);
    check_sum(costs);
    let id = &draft["data"]["draft_order_id"];
    let lock = json!({"draft_order_id": id});
    let locked = world.call("checkout.lock_price_and_stock", lock).await;
    assert_eq!(ok(&locked)["total"], costs["total"]);
    let pay = json!({
        "draft_order_id": id,
        "amount": costs["total"]["amount"],
        "currency": costs["total"]["currency"],
    });
    world
        .call("payment.create_payment_intent", pay.clone())
        .await;
    world.approve_all("u_1").await;
    let intent = world.call("payment.create_payment_intent", pay).await;
    assert_eq!(ok(&intent)["amount"], costs["total"]);
    true
}

#[track_caller]
fn check_sum(costs: &Value) {
    let amount = |part: &str| costs[part]["amount"].as_i64().unwrap();
    let parts = ["items", "shipping", "duty", "tax", "fees"].map(amount);
    assert!(parts.iter().all(|part| *part >= 0), "{costs:#}");
    assert!(amount("due_on_delivery") >= 0, "{costs:#}");
    let sum: i64 = parts.iter().sum();
    assert_eq!(
        amount("total") + amount("due_on_delivery"),
        sum,
        "{costs:#}"
    );
}

#[test]
fn a_total_is_one_number_from_cart_to_payment() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut runner = TestRunner::deterministic();
    let strategy = orders();
    let mut gone_through = 0;
    for _ in 0..40 {
        let order = strategy.new_tree(&mut runner).unwrap().current();
        let has_gone_through = runtime.block_on(async {
            let world = World::new();
            goes_through(&world, &order).await
        });
        gone_through += u32::from(has_gone_through);
    }
    assert!(
        gone_through >= 10,
        "only {gone_through} of 40 were orders at all"
    );
}
