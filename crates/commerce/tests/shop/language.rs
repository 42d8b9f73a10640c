//! What the shop says to a caller whose locale is Chinese. Codes, fields and names stay as they are.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::world::{World, ok};

/// `tool: CODE message | hint`, then the remarks.
async fn said(world: &World, tool: &str, arguments: Value) -> String {
    let envelope = json!({ "locale": "zh-CN" });
    let reply = world.call_as("u_1", tool, arguments, envelope).await;
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let error = &reply["error"];
    let hint = &error["details"]["hint"];
    let mut lines = vec![format!(
        "{tool}: {} {} | {}",
        text(&error["code"]),
        text(&error["message"]),
        text(hint)
    )];
    for warning in reply["warnings"].as_array().into_iter().flatten() {
        lines.push(format!(
            "{} {}",
            text(&warning["code"]),
            text(&warning["message"])
        ));
    }
    lines.join("\n")
}

async fn all(world: &World, calls: Vec<(&str, Value)>) -> String {
    let mut lines = Vec::new();
    for (tool, arguments) in calls {
        lines.push(said(world, tool, arguments).await);
    }
    lines.join("\n")
}

/// A cart that is not there, is empty or is too full; things that are not sold.
#[tokio::test]
async fn carts_and_catalog() {
    let world = World::new();
    let made = world.call("cart.create", json!({})).await;
    let cart_id = ok(&made)["cart_id"].clone();
    let calls = vec![
        ("cart.get", json!({"cart_id": "cart_none"})),
        (
            "cart.add_item",
            json!({"cart_id": cart_id, "sku": "SKU-0001-99"}),
        ),
        (
            "cart.add_item",
            json!({"cart_id": cart_id, "sku": "nothing like it"}),
        ),
        (
            "cart.remove_item",
            json!({"cart_id": cart_id, "sku": "SKU-0001-01"}),
        ),
        (
            "cart.add_item",
            json!({"cart_id": cart_id, "sku": "SKU-0001-01", "quantity": 999}),
        ),
        (
            "cart.add_item",
            json!({"cart_id": cart_id, "sku": "SKU-0001-01", "quantity": 1}),
        ),
        (
            "cart.remove_item",
            json!({"cart_id": cart_id, "sku": "SKU-0003-02"}),
        ),
        (
            "catalog.search_offers",
            json!({"query": "powr bank", "category": "electronic"}),
        ),
        (
            "catalog.search_offers",
            json!({"min_price": 500, "max_price": 100}),
        ),
        ("catalog.get_offer_card", json!({"offer_id": "OFR-001"})),
        (
            "catalog.get_offer_variants",
            json!({"offer_id": "OFR-0003", "options": {"size": "XXXL"}}),
        ),
        ("catalog.get_availability", json!({})),
    ];
    assert_snapshot!(all(&world, calls).await, @"");
}

/// What an order rests on: evidence, places, carriers and taxes.
#[tokio::test]
async fn grounds_of_an_order() {
    let world = World::new();
    let items = json!([{"sku": "SKU-0002-01"}]);
    let made = world.call("cart.create", json!({})).await;
    let cart_id = ok(&made)["cart_id"].clone();
    let evidence = made["evidence"]["snapshot_id"].clone();
    let options =
        json!({"cart_id": cart_id, "shipping_snapshot_id": evidence, "shipping_option_id": "x"});
    let total = json!({"cart_id": cart_id, "quote_snapshot_id": evidence, "tax_snapshot_id": evidence,
        "compliance_snapshot_id": evidence});
    let calls = vec![
        ("checkout.select_shipping_option", options),
        ("checkout.compute_total", total),
        (
            "checkout.get_draft_order_summary",
            json!({"draft_order_id": "order_none"}),
        ),
        (
            "shipping.quote_options",
            json!({"items": items, "destination": {"country": "AQ"}}),
        ),
        (
            "tax.estimate_duties_and_taxes",
            json!({"destination": {"country": "US"}, "incoterm": "DDP"}),
        ),
        (
            "tax.estimate_duties_and_taxes",
            json!({"items": items, "incoterm": "DDP",
            "destination": {"country": "US", "region": "Atlantis"}}),
        ),
        (
            "evidence.create_snapshot",
            json!({"purpose": "review", "snapshot_ids": ["ev_none"]}),
        ),
    ];
    assert_snapshot!(all(&world, calls).await, @"");
}

/// What surrounds it: missions, addresses, texts and events.
#[tokio::test]
async fn the_rest() {
    let world = World::new();
    let calls = vec![
        ("mission.get", json!({"mission_id": "mis_none"})),
        (
            "mission.create",
            json!({"goal": "earbuds", "deadline": "2020-01-01T00:00:00Z"}),
        ),
        ("knowledge.get_chunk", json!({"chunk_id": "nothing#1"})),
        (
            "knowledge.search",
            json!({"query": "milk", "language": "tlh"}),
        ),
        (
            "obs.log_event",
            json!({"name": "seen", "attributes": {"list": [1]}}),
        ),
    ];
    assert_snapshot!(all(&world, calls).await, @"");
}
