//! The measured failures of another implementation of the same standard: each one as a test, with the very same call.

use std::sync::Arc;

use countersign::contract::Digest;
use countersign_commerce::rulebook::RuleFiles;
use countersign_evidence::tree::leaf_hash;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::flow::Order;
use crate::world::{World, check_error, evidence, ok};

fn key(key: &str) -> Value {
    json!({"idempotency_key": key})
}

const DRAFT: &str = "checkout.create_draft_order";

/// It made two carts, and added twice.
#[tokio::test]
async fn idempotency_one_cart_and_the_same_reply() {
    let world = World::new();
    let create = async || {
        world
            .call_as("u_1", "cart.create", json!({}), key("k1"))
            .await
    };
    let first = create().await;
    assert_eq!(ok(&create().await), ok(&first));
    let cart_id = &first["data"]["cart_id"];
    let add = json!({"cart_id": cart_id, "sku": "SKU-0001-01", "quantity": 1});
    for _ in 0..2 {
        let added = world
            .call_as("u_1", "cart.add_item", add.clone(), key("k2"))
            .await;
        assert_eq!(ok(&added)["lines"][0]["quantity"], 1);
    }
    let cart = world.call("cart.get", json!({"cart_id": cart_id})).await;
    assert_eq!(ok(&cart)["lines"][0]["quantity"], 1);
    let other = json!({"cart_id": cart_id, "sku": "SKU-0001-01", "quantity": 2});
    let reused = world
        .call_as("u_1", "cart.add_item", other, key("k2"))
        .await;
    check_error(&reused, "CONFLICT", &json!({"reason": "key_reused"}));
}

/// A18, A20: the same key is the same order. Without a key, the same cart and evidence are.
#[tokio::test]
async fn idempotency_the_same_draft_order() {
    let world = World::new();
    let bundled = Order::new().bundle(&world).await;
    let draft = async |envelope: Value| {
        world
            .call_as("u_1", DRAFT, bundled.arguments(), envelope)
            .await
    };
    let keyed = draft(key("k1")).await;
    assert_eq!(ok(&draft(key("k1")).await), ok(&keyed));
    let derived = draft(json!({"idempotency_key": null})).await;
    assert_eq!(ok(&draft(json!({})).await), ok(&derived));
    // A20: until the order has expired, and a day more, although nothing that it rests on is fresh any more.
    world.advance_seconds(1_800 + 24 * 60 * 60 - 1);
    assert_eq!(ok(&draft(key("k1")).await), ok(&keyed));
    world.advance_seconds(1);
    let late = draft(key("k1")).await;
    assert_eq!(late["ok"], false, "{late:#}");
}

/// Another user with the same key received the first user's draft order.
#[tokio::test]
async fn user_isolation_keys_are_per_user() {
    let world = World::new();
    let bundled = Order::new().bundle(&world).await;
    let first = world
        .call_as("u_1", DRAFT, bundled.arguments(), key("k1"))
        .await;
    ok(&first);
    let stranger = world
        .call_as("u_3", DRAFT, bundled.arguments(), key("k1"))
        .await;
    check_error(&stranger, "NOT_FOUND", &json!({"field": "/cart_id"}));
    assert!(!stranger.to_string().contains("order_"), "{stranger:#}");
    // With a cart of their own and the same key they get an order of their own.
    let own = Order::new().by("u_2").bundle(&world).await;
    let second = world
        .call_as("u_2", DRAFT, own.arguments(), key("k1"))
        .await;
    assert_ne!(
        ok(&second)["draft_order_id"],
        first["data"]["draft_order_id"]
    );
}

/// A19: ten parallel orders with one key were five times 500, once 404 and four orders.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrency_on_one_key_is_one_order() {
    for _ in 0..10 {
        let world = Arc::new(World::new());
        let bundled = Arc::new(Order::new().bundle(&world).await);
        let mut calls = JoinSet::new();
        for _ in 0..10 {
            let (world, bundled) = (world.clone(), bundled.clone());
            calls.spawn(async move {
                world
                    .call_as("u_1", DRAFT, bundled.arguments(), key("k1"))
                    .await
            });
        }
        let mut orders = Vec::new();
        for reply in calls.join_all().await {
            if reply["ok"] == true {
                orders.push(reply["data"]["draft_order_id"].clone());
            } else {
                check_error(&reply, "CONFLICT", &json!({"reason": "in_flight"}));
            }
        }
        assert!(!orders.is_empty());
        orders.dedup();
        assert_eq!(orders.len(), 1, "{orders:?}");
    }
}

/// A4: a dry run changed the cart and created an order.
#[tokio::test]
async fn dry_run_changes_nothing() {
    let world = World::new();
    let bundled = Order::new().bundle(&world).await;
    let dry = json!({"dry_run": true, "idempotency_key": "k1"});
    let shown = world.call_as("u_1", DRAFT, bundled.arguments(), dry).await;
    let id = ok(&shown)["draft_order_id"].clone();
    assert_eq!(
        shown["data"]["pricing_breakdown"],
        bundled.total_data["breakdown"]
    );
    let summary = json!({"draft_order_id": id});
    let nothing = world
        .call("checkout.get_draft_order_summary", summary)
        .await;
    check_error(&nothing, "NOT_FOUND", &json!({"field": "/draft_order_id"}));
    let cart = json!({"cart_id": bundled.prepared.cart_id});
    assert_eq!(ok(&world.call("cart.get", cart).await)["version"], 3);
    // The key is still free.
    let made = world
        .call_as("u_1", DRAFT, bundled.arguments(), key("k1"))
        .await;
    ok(&made);
}

/// `"quantity": "2"` added to 3 became "32".
#[tokio::test]
async fn types_a_text_is_a_number_with_a_warning() {
    let world = World::new();
    let made = world.call("cart.create", json!({})).await;
    let cart_id = &ok(&made)["cart_id"];
    let add = json!({"cart_id": cart_id, "sku": "SKU-0001-01", "quantity": 3});
    ok(&world.call("cart.add_item", add).await);
    let add = json!({"cart_id": cart_id, "sku": "SKU-0001-01", "quantity": "2"});
    let added = world.call("cart.add_item", add).await;
    assert_eq!(ok(&added)["lines"][0]["quantity"], 5);
    assert_eq!(added["warnings"][0]["code"], "TEXT_TO_INTEGER");
}

/// A quantity of -5 made a quote of -99.95.
#[tokio::test]
async fn range_a_negative_quantity_is_refused_with_its_path() {
    let world = World::new();
    let items = json!({"items": [{"sku": "SKU-0001-01", "quantity": -5}]});
    for tool in ["pricing.get_realtime_quote", "catalog.get_availability"] {
        let refused = world.call(tool, items.clone()).await;
        check_error(
            &refused,
            "INVALID_ARGUMENT",
            &json!({"field": "/items/0/quantity"}),
        );
    }
    let cart_id = Order::new().cart(&world).await;
    let add = json!({"cart_id": cart_id, "sku": "SKU-0001-01", "quantity": -5});
    let refused = world.call("cart.add_item", add).await;
    check_error(&refused, "INVALID_ARGUMENT", &json!({"field": "/quantity"}));
}

/// Amounts were floats.
#[tokio::test]
async fn money_has_no_floats_on_the_wire() {
    fn floats(value: &Value, path: &str, found: &mut Vec<String>) {
        match value {
            Value::Number(number) if number.is_f64() => found.push(format!("{path}: {number}")),
            Value::Array(values) => {
                for (at, value) in values.iter().enumerate() {
                    floats(value, &format!("{path}/{at}"), found);
                }
            }
            Value::Object(members) => {
                for (name, value) in members {
                    floats(value, &format!("{path}/{name}"), found);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let world = World::new();
    let order = Order::new();
    let quote = order.quote(&world).await;
    let shipping = order.shipping(&world).await;
    let tax = order.tax(&world, &quote, &shipping).await;
    let replies = [quote, shipping, tax, order.draft(&world).await];
    let mut found = Vec::new();
    for reply in &replies {
        ok(reply);
        floats(reply, "", &mut found);
    }
    assert_eq!(found, [""; 0]);
}

/// The total for DE was 735.63, the draft order of the same cart 690.85.
#[tokio::test]
async fn consistency_one_total_from_cart_to_payment() {
    let world = World::new();
    let bundled = Order::new().bundle(&world).await;
    let draft = bundled.draft(&world).await;
    let total = &bundled.total_data["breakdown"];
    assert_eq!(&ok(&draft)["pricing_breakdown"], total);
    let id = &draft["data"]["draft_order_id"];
    let lock = json!({"draft_order_id": id});
    let locked = world.call("checkout.lock_price_and_stock", lock).await;
    assert_eq!(ok(&locked)["total"], total["total"]);
    let pay = json!({
        "draft_order_id": id,
        "amount": total["total"]["amount"],
        "currency": total["total"]["currency"],
    });
    world
        .call("payment.create_payment_intent", pay.clone())
        .await;
    world.approve_all("u_1").await;
    let intent = world.call("payment.create_payment_intent", pay).await;
    assert_eq!(ok(&intent)["amount"], total["total"]);
}

/// Twenty parallel adds of one left a quantity of five.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lost_updates_twenty_adds_are_twenty() {
    let world = Arc::new(World::new());
    let made = world.call("cart.create", json!({})).await;
    let add = json!({"cart_id": ok(&made)["cart_id"], "sku": "SKU-0003-01"});
    let mut adding = JoinSet::new();
    for _ in 0..20 {
        let (world, add) = (world.clone(), add.clone());
        adding.spawn(async move { world.call("cart.add_item", add).await });
    }
    for reply in adding.join_all().await {
        ok(&reply);
    }
    let cart = world
        .call("cart.get", json!({"cart_id": add["cart_id"]}))
        .await;
    assert_eq!(ok(&cart)["lines"][0]["quantity"], 20);
}

/// A forged snapshot with a price of 0.01 was accepted; here only ids are taken, and only of recorded answers.
#[tokio::test]
async fn evidence_a_forged_snapshot_buys_nothing() {
    let world = World::new();
    let bundled = Order::new().bundle(&world).await;
    let cart_id = &bundled.prepared.cart_id;
    let forged = json!({
        "cart_id": cart_id,
        "evidence_snapshot_id": "ev_forged",
        "snapshot": {"price": "0.01", "hash": "sha256:00"},
    });
    let refused = world.call(DRAFT, forged).await;
    check_error(&refused, "INVALID_ARGUMENT", &json!({"field": "/snapshot"}));
    let unknown = json!({"cart_id": cart_id, "evidence_snapshot_id": "ev_forged"});
    let refused = world.call(DRAFT, unknown).await;
    check_error(
        &refused,
        "NOT_FOUND",
        &json!({"field": "/evidence_snapshot_id"}),
    );
}

/// Evidence was updated in place, and its hash could not be recomputed. Here an answer never changes, whatever happens
/// to the cart afterwards.
#[tokio::test]
async fn evidence_is_never_changed() {
    let world = World::new();
    let bundled = Order::new().bundle(&world).await;
    let before = world.record(&bundled.total).await;
    let draft = bundled.draft(&world).await;
    let record = world.record(&evidence(&draft)).await;
    let more = json!({"cart_id": bundled.prepared.cart_id, "sku": "SKU-0003-01"});
    ok(&world.call("cart.add_item", more).await);
    assert_eq!(world.record(&bundled.total).await, before);
    assert_eq!(world.record(&evidence(&draft)).await, record);
    // The hash that a link names is that of the very bytes in the log, and the answer's is that of the answer.
    let links = record["links"].as_array().unwrap();
    assert!(!links.is_empty());
    for link in links {
        let id = link["id"].as_str().unwrap().parse().unwrap();
        let stored = world.store.record(&id).await.unwrap().unwrap();
        let leaf = Digest(leaf_hash(&stored.leaf)).to_string();
        assert_eq!(link["leaf"], leaf, "{id}");
    }
    let hash = Digest::of_canonical(ok(&draft)).unwrap().to_string();
    let sources = draft["evidence"]["sources"].as_array().unwrap();
    assert!(sources.iter().any(|source| source["hash"] == hash));
}

/// The version of the rules was the id of the newest one: an edit did not change it.
#[tokio::test]
async fn rule_version_an_edit_is_another_version() {
    let world = World::new();
    let before = Order::new().compliance(&world).await;
    let edited = include_str!("../../rules/compliance/2026-11-01.toml").replacen('#', "# ", 1);
    let changed = world.with_rules("compliance", edited);
    let after = Order::new().compliance(&changed).await;
    assert_ne!(
        ok(&before)["ruleset_version"],
        ok(&after)["ruleset_version"]
    );
    let files = RuleFiles::embedded().unwrap();
    let in_force = files.files().iter().rfind(|file| file.name == "compliance");
    let version = in_force.unwrap().version().to_string();
    assert_eq!(before["data"]["ruleset_version"], version);
}

/// A power bank without its certificate was allowed, because the category hierarchy was ignored.
#[tokio::test]
async fn compliance_fails_closed() {
    let world = World::new();
    // The very call: a power bank whose seller has no CE, to Germany.
    let shop = include_str!("../../shop/landmarks.toml");
    let certificates = r#"certificates = ["CE", "FCC", "UN38.3", "RoHS"]"#;
    let without = shop.replacen(
        certificates,
        r#"certificates = ["FCC", "UN38.3", "RoHS"]"#,
        1,
    );
    assert_ne!(shop, without);
    let uncertified = world.with_rules("shop", without);
    let check = Order::new().compliance(&uncertified).await;
    assert_eq!(ok(&check)["decision"], "blocked", "{check:#}");
    let order = Order {
        destination: json!({"country": "JP"}),
        ..Order::new()
    };
    let check = order.compliance(&world).await;
    assert_eq!(ok(&check)["decision"], "blocked");
    let refused = order.prepare(&world).await.total(&world).await;
    check_error(&refused, "COMPLIANCE_BLOCKED", &json!({}));
    // An unknown place is not a free one.
    let nowhere = Order {
        destination: json!({"country": "XX"}),
        ..Order::new()
    };
    let check = nowhere.compliance(&world).await;
    assert_ne!(check["data"]["decision"], "allowed", "{check:#}");
}

/// Tax was a constant.
#[tokio::test]
async fn tax_follows_the_rules_of_the_destination() {
    let world = World::new();
    let estimate = async |country: &str| {
        let order = Order {
            destination: json!({"country": country}),
            ..Order::new()
        };
        let quote = order.quote(&world).await;
        let shipping = order.shipping(&world).await;
        let tax = order.tax(&world, &quote, &shipping).await;
        let data = ok(&tax).clone();
        for part in ["method", "confidence"] {
            assert!(data[part].is_string(), "{part} of {data:#}");
        }
        let rules = world.record(&evidence(&tax)).await["rules"]["tax"].clone();
        assert!(rules.is_string());
        data["tax"]["amount"].as_i64().unwrap()
    };
    let (germany, luxembourg) = (estimate("DE").await, estimate("LU").await);
    assert!(
        germany > luxembourg,
        "19 % and 17 %: {germany}, {luxembourg}"
    );
}

/// `EXPIRED` was a code of its own; a confirmation was HTTP 400.
#[tokio::test]
async fn error_codes_are_the_closed_list() {
    let world = World::new();
    let bundled = Order::new().bundle(&world).await;
    world.advance_seconds(300);
    check_error(&bundled.draft(&world).await, "PRICE_CHANGED", &json!({}));
    let draft = ok(&Order::new().draft(&world).await).clone();
    let id = &draft["draft_order_id"];
    let total = &draft["pricing_breakdown"]["total"];
    let lock = json!({ "draft_order_id": id });
    ok(&world.call("checkout.lock_price_and_stock", lock).await);
    let pay = json!({
        "draft_order_id": id,
        "amount": total["amount"],
        "currency": total["currency"],
    });
    let asked = world.call("payment.create_payment_intent", pay).await;
    check_error(&asked, "NEEDS_USER_CONFIRMATION", &json!({}));
}

/// Its own client sent a null and was refused.
#[tokio::test]
async fn its_own_client_null_is_absent() {
    let world = World::new();
    let null = json!({"idempotency_key": null});
    ok(&world
        .call_as("u_1", "cart.create", json!({"currency": null}), null)
        .await);
}

/// After all calls the audit had no rows.
#[tokio::test]
async fn audit_every_call_is_recorded() {
    let world = World::new();
    let draft = Order::new().draft(&world).await;
    let record = world.record(&evidence(&draft)).await;
    assert_eq!(record["tool"]["name"], DRAFT);
    assert_eq!(record["actor"]["type"], "user");
    let refused = world.call(DRAFT, json!({"cart_id": "x"})).await;
    check_error(&refused, "INVALID_ARGUMENT", &json!({}));
    let record = world.record(&evidence(&refused)).await;
    assert_eq!(record["reply"]["code"], "INVALID_ARGUMENT");
}

/// Everything weighed 500 g.
#[tokio::test]
async fn shipping_weight_is_that_of_the_item() {
    let world = World::new();
    let weight = async |sku: &str, quantity: u32| {
        let shipping = Order::of(sku, quantity).shipping(&world).await;
        let option = &ok(&shipping)["options"][0];
        option["actual_weight_g"].as_u64().unwrap()
    };
    assert_eq!(weight("SKU-0002-01", 1).await, 95);
    assert_eq!(weight("SKU-0002-01", 3).await, 285);
    assert_eq!(weight("SKU-0009-01", 1).await, 1_450);
}
