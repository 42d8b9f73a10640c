//! Carts: their owners, and the calls that change them and that do not.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::world::{World, check_error, ok};

async fn cart_of(world: &World, user: &str) -> String {
    let made = world
        .call_as(user, "cart.create", json!({}), json!({}))
        .await;
    ok(&made)["cart_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_cart_is_filled_and_emptied() {
    let world = World::new();
    let made = world.call("cart.create", json!({"currency": "eur"})).await;
    let cart_id = ok(&made)["cart_id"].clone();
    assert_eq!(made["data"]["currency"], "EUR");
    let add = json!({"cart_id": cart_id, "sku": "SKU-0001-01", "quantity": 2});
    world.call("cart.add_item", add).await;
    let add = json!({"cart_id": cart_id, "sku": "SKU-0003-02"});
    let added = world.call("cart.add_item", add).await;
    insta::assert_json_snapshot!(ok(&added), @r#"
    {
      "basket": "sha256:eb0c8fac21ec6e8e299240b00bcc37bb5e98e25e91d7dd71cbd967c828d5471e",
      "cart_id": "cart_003g000000000008",
      "currency": "EUR",
      "lines": [
        {
          "offer_id": "OFR-0001",
          "quantity": 2,
          "sku": "SKU-0001-01",
          "title": "VoltPeak 20,000 mAh power bank"
        },
        {
          "offer_id": "OFR-0003",
          "quantity": 1,
          "sku": "SKU-0003-02",
          "title": "Harbour cotton T-shirt"
        }
      ],
      "version": 3
    }
    "#);
    let update = json!({"cart_id": cart_id, "sku": "SKU-0001-01", "quantity": 5});
    let updated = world.call("cart.update_quantity", update).await;
    assert_eq!(ok(&updated)["lines"][0]["quantity"], 5);
    let remove = json!({"cart_id": cart_id, "sku": "SKU-0003-02"});
    ok(&world.call("cart.remove_item", remove).await);
    let none = json!({"cart_id": cart_id, "sku": "SKU-0001-01", "quantity": 0});
    let emptied = world.call("cart.update_quantity", none).await;
    assert_eq!(ok(&emptied)["lines"], json!([]));
    assert_eq!(emptied["data"]["version"], 6);
    assert_eq!(
        ok(&world.call("cart.get", json!({"cart_id": cart_id})).await),
        &emptied["data"]
    );
}

/// Two carts with the same items in another order have the same digest: answers are matched by it.
#[tokio::test]
async fn the_basket_is_the_same_in_any_order() {
    let world = World::new();
    let mut digests = Vec::new();
    for order in [
        ["SKU-0001-01", "SKU-0003-02"],
        ["SKU-0003-02", "SKU-0001-01"],
    ] {
        let cart_id = cart_of(&world, "u_1").await;
        let mut last = Value::Null;
        for sku in order {
            let add = json!({"cart_id": cart_id, "sku": sku});
            last = world.call("cart.add_item", add).await;
        }
        digests.push(ok(&last)["basket"].clone());
    }
    assert_eq!(digests[0], digests[1]);
}

/// Texts for people follow the locale of the call; ids and digests do not.
#[tokio::test]
async fn titles_follow_the_locale() {
    let world = World::new();
    let cart_id = cart_of(&world, "u_1").await;
    let add = json!({"cart_id": cart_id, "sku": "SKU-0005-01"});
    let english = world.call("cart.add_item", add).await;
    let get = json!({"cart_id": cart_id});
    let chinese = world
        .call_as("u_1", "cart.get", get, json!({"locale": "zh-CN"}))
        .await;
    assert_eq!(ok(&english)["lines"][0]["title"], "Seiran ceramic tea cup");
    assert_eq!(ok(&chinese)["lines"][0]["title"], "青岚陶瓷茶杯");
    assert_eq!(english["data"]["basket"], chinese["data"]["basket"]);
}

#[tokio::test]
async fn what_cannot_be_in_a_cart_is_refused_with_its_field() {
    let world = World::new();
    let cart_id = cart_of(&world, "u_1").await;
    let add = json!({"cart_id": cart_id, "sku": "SKU-0001-01", "quantity": 998});
    ok(&world.call("cart.add_item", add).await);
    let cases = [
        (
            "cart.add_item",
            json!({"sku": "SKU-0001-01", "quantity": 2}),
            "INVALID_ARGUMENT",
            "/quantity",
        ),
        (
            "cart.add_item",
            json!({"sku": "SKU-0001-01", "quantity": 0}),
            "INVALID_ARGUMENT",
            "/quantity",
        ),
        (
            "cart.add_item",
            json!({"sku": "SKU-0001-01", "quantity": -5}),
            "INVALID_ARGUMENT",
            "/quantity",
        ),
        (
            "cart.add_item",
            json!({"sku": "SKU-0001-01", "quantity": 1000}),
            "INVALID_ARGUMENT",
            "/quantity",
        ),
        (
            "cart.add_item",
            json!({"sku": "SKU-9999-99"}),
            "NOT_FOUND",
            "/sku",
        ),
        (
            "cart.update_quantity",
            json!({"sku": "SKU-0003-01", "quantity": 1}),
            "NOT_FOUND",
            "/sku",
        ),
        (
            "cart.update_quantity",
            json!({"sku": "SKU-0001-01", "quantity": 1000}),
            "INVALID_ARGUMENT",
            "/quantity",
        ),
        (
            "cart.remove_item",
            json!({"sku": "SKU-0003-01"}),
            "NOT_FOUND",
            "/sku",
        ),
    ];
    for (tool, mut arguments, code, field) in cases {
        arguments["cart_id"] = json!(cart_id);
        let reply = world.call(tool, arguments).await;
        check_error(&reply, code, &json!({"field": field}));
    }
    let unknown = world.call("cart.create", json!({"currency": "QQQ"})).await;
    check_error(&unknown, "INVALID_ARGUMENT", &json!({"field": "/currency"}));
    let after = world.call("cart.get", json!({"cart_id": cart_id})).await;
    assert_eq!(ok(&after)["version"], 2, "a refusal changes nothing");
}

#[tokio::test]
async fn a_cart_holds_fifty_different_things() {
    let world = World::new();
    let shop = world.executor.rules().current("shop").unwrap();
    let offers = shop.data["offers"].as_array().unwrap().iter();
    let skus: Vec<&Value> = offers.map(|offer| &offer["variants"][0]["sku"]).collect();
    let cart_id = cart_of(&world, "u_1").await;
    for sku in skus.iter().take(50) {
        let add = json!({"cart_id": cart_id, "sku": sku});
        ok(&world.call("cart.add_item", add).await);
    }
    let add = json!({"cart_id": cart_id, "sku": skus[50]});
    let refused = world.call("cart.add_item", add).await;
    check_error(&refused, "INVALID_ARGUMENT", &json!({"field": "/sku"}));
    let more = json!({"cart_id": cart_id, "sku": skus[0]});
    ok(&world.call("cart.add_item", more).await);
}

/// Another user's cart is answered exactly like a missing one.
#[tokio::test]
async fn nobody_reaches_the_cart_of_another() {
    let world = World::new();
    let cart_id = cart_of(&world, "u_1").await;
    let tools = [
        ("cart.get", json!({})),
        ("cart.add_item", json!({"sku": "SKU-0001-01"})),
        (
            "cart.update_quantity",
            json!({"sku": "SKU-0001-01", "quantity": 1}),
        ),
        ("cart.remove_item", json!({"sku": "SKU-0001-01"})),
    ];
    for (tool, mut arguments) in tools {
        arguments["cart_id"] = json!(cart_id);
        let foreign = world
            .call_as("u_2", tool, arguments.clone(), json!({}))
            .await;
        check_error(&foreign, "NOT_FOUND", &json!({"field": "/cart_id"}));
        arguments["cart_id"] = json!("cart_nobody");
        let unknown = world.call_as("u_2", tool, arguments, json!({})).await;
        check_error(&unknown, "NOT_FOUND", &json!({"field": "/cart_id"}));
    }
}

/// A4: a dry run shows the result, and changes nothing.
#[tokio::test]
async fn a_dry_run_changes_no_cart() {
    let world = World::new();
    let cart_id = cart_of(&world, "u_1").await;
    let dry = json!({"dry_run": true});
    let add = json!({"cart_id": cart_id, "sku": "SKU-0001-01", "quantity": 3});
    let shown = world
        .call_as("u_1", "cart.add_item", add.clone(), dry.clone())
        .await;
    assert_eq!(ok(&shown)["lines"][0]["quantity"], 3);
    let is = world.call("cart.get", json!({"cart_id": cart_id})).await;
    assert_eq!(ok(&is)["lines"], json!([]));
    ok(&world.call("cart.add_item", add).await);
    let changes = [
        (
            "cart.update_quantity",
            json!({"sku": "SKU-0001-01", "quantity": 9}),
        ),
        ("cart.remove_item", json!({"sku": "SKU-0001-01"})),
    ];
    for (tool, mut arguments) in changes {
        arguments["cart_id"] = json!(cart_id);
        ok(&world.call_as("u_1", tool, arguments, dry.clone()).await);
    }
    let is = world.call("cart.get", json!({"cart_id": cart_id})).await;
    assert_eq!(ok(&is)["lines"][0]["quantity"], 3);
    let shown = world.call_as("u_1", "cart.create", json!({}), dry).await;
    let nothing = world
        .call("cart.get", json!({"cart_id": ok(&shown)["cart_id"]}))
        .await;
    check_error(&nothing, "NOT_FOUND", &json!({"field": "/cart_id"}));
}

/// No update is lost, however many arrive at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn twenty_parallel_adds_are_twenty() {
    let world = Arc::new(World::new());
    let cart_id = cart_of(&world, "u_1").await;
    let adds: Vec<_> = (0..20)
        .map(|_| {
            let (world, add) = (
                world.clone(),
                json!({"cart_id": cart_id, "sku": "SKU-0001-01"}),
            );
            tokio::spawn(async move { world.call("cart.add_item", add).await })
        })
        .collect();
    for add in adds {
        ok(&add.await.unwrap());
    }
    let is = world.call("cart.get", json!({"cart_id": cart_id})).await;
    assert_eq!(ok(&is)["lines"][0]["quantity"], 20);
    assert_eq!(is["data"]["version"], 21);
}
