//! Rules for the arguments of all tools: amounts are never guessed, ids are never empty.

use serde_json::{Value, json};

use crate::world::{World, check_error};

/// `"100.00"` became 100 cents. An amount is a whole number of the smallest unit, and any other form is refused with
/// this explanation.
#[tokio::test]
async fn amounts_are_never_made_from_anything_else() {
    let world = World::new();
    let check = async |tool: &str, arguments: Value, field: &str| {
        let reply = world.call(tool, arguments).await;
        check_error(&reply, "INVALID_ARGUMENT", &json!({"field": field}));
        let hint = reply["error"]["details"]["hint"].as_str().unwrap();
        let unit = "In the smallest unit: 4999 is EUR 49.99.";
        assert!(hint.ends_with(unit), "{tool}: {hint}");
    };
    for amount in [
        json!("100.00"),
        json!("100"),
        json!(100.5),
        json!(100.0),
        json!(-1),
        json!(true),
    ] {
        let budget = json!({"goal": "tea", "budget": {"amount": amount, "currency": "EUR"}});
        check("mission.create", budget, "/budget/amount").await;
        let pay = json!({"draft_order_id": "order_1", "amount": amount, "currency": "EUR"});
        check("payment.create_payment_intent", pay, "/amount").await;
        for price in ["min_price", "max_price"] {
            let search = json!({ price: amount });
            check("catalog.search_offers", search, &format!("/{price}")).await;
        }
    }
}

/// Every tool that takes an id of something of the user's, with everything else that it needs.
fn named() -> Vec<(&'static str, &'static str, Value)> {
    let item = json!([{"sku": "SKU-0001-01"}]);
    let to = json!({"country": "DE"});
    let goods = json!({"items": item, "destination": to});
    let address = json!({
        "country": "DE",
        "lines": ["Invalidenstr. 1"],
        "city": "Berlin",
        "postal_code": "10115",
        "name": "A. Muster",
    });
    let total = json!({
        "quote_snapshot_id": "ev_1",
        "tax_snapshot_id": "ev_1",
        "compliance_snapshot_id": "ev_1",
    });
    let way = json!({"shipping_snapshot_id": "ev_1", "shipping_option_id": "a"});
    let pay = json!({"amount": 1, "currency": "EUR"});
    let change = json!({"mission_id": "mis_1", "expected_version": 1});
    let one = json!({"sku": "SKU-0001-01"});
    let some = json!({"sku": "SKU-0001-01", "quantity": 1});
    vec![
        ("cart.get", "cart_id", json!({})),
        ("cart.add_item", "cart_id", one.clone()),
        ("cart.remove_item", "cart_id", one),
        ("cart.update_quantity", "cart_id", some),
        (
            "pricing.get_realtime_quote",
            "cart_id",
            json!({"items": item}),
        ),
        ("shipping.quote_options", "cart_id", goods.clone()),
        ("compliance.check_item", "cart_id", goods.clone()),
        ("tax.estimate_duties_and_taxes", "cart_id", goods),
        ("checkout.select_shipping_option", "cart_id", way.clone()),
        ("checkout.select_shipping_option", "address_id", {
            let mut way = way;
            way["cart_id"] = json!("cart_1");
            way
        }),
        ("checkout.compute_total", "cart_id", total),
        (
            "checkout.create_draft_order",
            "cart_id",
            json!({"evidence_snapshot_id": "ev_1"}),
        ),
        ("checkout.lock_price_and_stock", "draft_order_id", json!({})),
        (
            "checkout.get_draft_order_summary",
            "draft_order_id",
            json!({}),
        ),
        ("payment.create_payment_intent", "draft_order_id", pay),
        (
            "evidence.attach_to_draft_order",
            "draft_order_id",
            json!({"snapshot_id": "ev_1"}),
        ),
        (
            "identity.add_or_update_address",
            "address_id",
            json!({"address": address}),
        ),
        ("mission.get", "mission_id", json!({})),
        (
            "mission.update",
            "mission_id",
            json!({"expected_version": 1, "note": "n"}),
        ),
        ("mission.update", "cart_id", change.clone()),
        ("mission.update", "draft_order_id", change),
    ]
}

/// Such ids failed in the store, as if the store were broken. An unknown id is still not found.
#[tokio::test]
async fn names_are_not_empty_and_have_no_control_characters() {
    let world = World::new();
    for (tool, name, others) in named() {
        for wrong in ["", "a\0b", "\n", &"a".repeat(65)] {
            let mut arguments = others.clone();
            arguments[name] = json!(wrong);
            let reply = world.call(tool, arguments).await;
            let field = json!({"field": format!("/{name}")});
            check_error(&reply, "INVALID_ARGUMENT", &field);
        }
    }
    for (tool, name) in [
        ("cart.get", "cart_id"),
        ("checkout.lock_price_and_stock", "draft_order_id"),
        ("mission.get", "mission_id"),
    ] {
        let reply = world.call(tool, json!({ name: "the blue one" })).await;
        let field = json!({"field": format!("/{name}")});
        check_error(&reply, "NOT_FOUND", &field);
    }
}

/// The list above has every tool that takes such an id.
#[test]
fn every_tool_with_a_name_is_asked() {
    let named = named();
    let tools = countersign_commerce::tools(countersign::Catalog::builder());
    let catalog = tools.build().unwrap();
    let ids = ["cart_id", "draft_order_id", "address_id", "mission_id"];
    for entry in catalog.list() {
        let name = entry.name().to_string();
        let schema = entry.spec().input.json_schema();
        for id in ids {
            let is_taken = schema["properties"].get(id).is_some();
            let mut asked = named.iter();
            let is_asked = asked.any(|(tool, argument, _)| *tool == name && *argument == id);
            assert_eq!(is_taken, is_asked, "{id} of {name}");
        }
    }
}
