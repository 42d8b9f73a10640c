//! The catalog: search in two languages, cards, variants, and availability.

use std::sync::Arc;

use countersign::contract::Behaviour;
use countersign::ledger::MemoryStore;
use countersign::{CallContext, Catalog, Executor, Tool, ToolArgs, ToolError};
use countersign_commerce::behaviour;
use countersign_commerce::rulebook::RuleFiles;
use countersign_commerce::shop::Shop;
use countersign_commerce::stock::{Lock, Stock};
use insta::assert_json_snapshot;
use jiff::SignedDuration;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::world::{World, check_error, clock, ok};

const SEARCH: &str = "catalog.search_offers";

/// The ids that a search finds, in their order.
async fn ids(world: &World, arguments: Value) -> Vec<String> {
    let reply = world.call(SEARCH, arguments).await;
    let offers = ok(&reply)["offers"].as_array().unwrap();
    let ids = offers.iter().map(|offer| offer["offer_id"].as_str());
    ids.map(|id| id.unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_search_answers_with_prices_of_the_moment() {
    let world = World::new();
    let arguments = json!({"query": "Pulse S3 smart watches", "limit": "1", "currency": "usd"});
    let reply = world.call(SEARCH, arguments).await;
    assert_json_snapshot!(ok(&reply), @r#"
    {
      "next_offset": 1,
      "offers": [
        {
          "brand": "Pulse",
          "category": "electronics/wearables/smartwatch",
          "offer_id": "OFR-0008",
          "price": {
            "from": {
              "amount": 10320,
              "currency": "USD"
            },
            "to": {
              "amount": 10320,
              "currency": "USD"
            }
          },
          "promotion": {
            "name": "Two-hour flash sale",
            "percent_off": "20",
            "promotion_id": "flash_pulse_s3",
            "until": "2026-11-16T12:02:00Z"
          },
          "ships_from": "CN",
          "title": "Pulse S3 smartwatch",
          "variants": 1
        }
      ],
      "offset": 0,
      "total": 4
    }
    "#);
}

/// Both languages, either spelling, a plural, a typo: the same offer comes first.
#[tokio::test]
async fn the_best_comes_first() {
    let world = World::new();
    for (query, first) in [
        ("power bank 20000 mAh VoltPeak", "OFR-0001"),
        ("VoltPeak powerbank", "OFR-0001"),
        ("VoltPeak 移动电源", "OFR-0001"),
        ("I want to buy the Harbour T-shirts", "OFR-0003"),
        ("海港 T 恤", "OFR-0003"),
        ("海渡主厨刀", "OFR-0007"),
        ("Alba parfume", "OFR-0006"),
        ("木制火车", "OFR-0009"),
        ("SKU-0012-02", "OFR-0012"),
    ] {
        let found = ids(&world, json!({"query": query})).await;
        assert_eq!(
            found.first().map(String::as_str),
            Some(first),
            "{query}: {found:?}"
        );
    }
}

#[tokio::test]
async fn a_slip_is_corrected_and_said() {
    let world = World::new();
    let check = async |query: &str, asked: &str, taken: &str| {
        let reply = world.call(SEARCH, json!({"query": query})).await;
        assert_ne!(ok(&reply)["total"], 0, "{query}");
        let message = format!("{asked:?} is not in the shop; the search used {taken:?}");
        let warning = json!({"code": "WORD_CORRECTED", "message": message});
        assert_eq!(reply["warnings"], json!([warning]), "{query}");
    };
    check("smartwach", "smartwach", "smartwatch").await;
    // Both words are shown as they are written, not as the index keeps them.
    check("USB Cabels", "cabels", "cable").await;
    check("Alba Perfmes", "perfmes", "perfume").await;
    let reply = world.call(SEARCH, json!({"query": "zzzzzz"})).await;
    assert_eq!(ok(&reply)["total"], 0);
}

#[tokio::test]
async fn categories_are_found_however_they_are_written() {
    let world = World::new();
    for category in [
        "electronics/audio",
        "Electronics > Audio",
        "/electronics/audio/",
        "audio",
    ] {
        let reply = world
            .call(SEARCH, json!({"category": category, "limit": 50}))
            .await;
        assert_eq!(ok(&reply)["category"], "electronics/audio", "{category}");
        let offers = ok(&reply)["offers"].as_array().unwrap();
        assert!(!offers.is_empty(), "{category}");
        for offer in offers {
            let within = offer["category"].as_str().unwrap();
            assert!(within.starts_with("electronics/audio/"), "{within}");
        }
    }
    let reply = world
        .call(SEARCH, json!({"category": "electronic/audio"}))
        .await;
    let details = json!({"field": "/category", "suggestion": "electronics/audio"});
    check_error(&reply, "NOT_FOUND", &details);
    let reply = world.call(SEARCH, json!({"category": "submarines"})).await;
    check_error(&reply, "NOT_FOUND", &json!({"field": "/category"}));
}

/// Pages are cut from one order: nothing is repeated, nothing is missing.
#[tokio::test]
async fn pages_add_up_to_the_whole() {
    let world = World::new();
    let mut seen = Vec::new();
    let mut offset = json!(0);
    loop {
        assert!(seen.len() < 1_000, "the last page has a next one");
        let arguments = json!({"category": "electronics", "limit": 7, "offset": offset});
        let reply = world.call(SEARCH, arguments).await;
        let offers = ok(&reply)["offers"].as_array().unwrap();
        seen.extend(offers.iter().map(|offer| offer["offer_id"].clone()));
        offset = ok(&reply)["next_offset"].clone();
        if offset.is_null() {
            assert_eq!(ok(&reply)["total"], seen.len());
            break;
        }
    }
    let mut sorted: Vec<String> = seen.iter().map(Value::to_string).collect();
    sorted.sort();
    sorted.dedup();
    assert_eq!(sorted.len(), seen.len());
}

/// The range is in the currency of the answer, whatever the offer's own is.
#[tokio::test]
async fn prices_are_compared_in_the_currency_that_was_asked_for() {
    let world = World::new();
    let arguments = json!({"min_price": 2_000, "max_price": 6_000, "currency": "JPY", "limit": 50});
    let reply = world.call(SEARCH, arguments).await;
    let offers = ok(&reply)["offers"].as_array().unwrap();
    assert!(offers.iter().any(|offer| offer["offer_id"] == "OFR-0005"));
    for offer in offers {
        let (from, to) = (&offer["price"]["from"], &offer["price"]["to"]);
        assert_eq!(from["currency"], "JPY");
        assert!(from["amount"].as_i64() <= Some(6_000) && to["amount"].as_i64() >= Some(2_000));
    }
    let reply = world
        .call(SEARCH, json!({"min_price": 2, "max_price": 1}))
        .await;
    check_error(&reply, "INVALID_ARGUMENT", &json!({"field": "/max_price"}));
    let reply = world.call(SEARCH, json!({"max_price": -1})).await;
    check_error(&reply, "INVALID_ARGUMENT", &json!({"field": "/max_price"}));
}

#[tokio::test]
async fn a_card_in_chinese() {
    let world = World::new();
    let card = "catalog.get_offer_card";
    let arguments = json!({"offer_id": "OFR-0001"});
    let reply = world
        .call_as("u_1", card, arguments, json!({"locale": "zh-Hans-CN"}))
        .await;
    assert_json_snapshot!(ok(&reply), @r#"
    {
      "battery": {
        "chemistry": "lithium_ion",
        "lithium_mg": 0,
        "packing": "alone",
        "watt_hours": 74
      },
      "brand": "VoltPeak",
      "category": "electronics/power/power_bank",
      "category_names": [
        "电子产品",
        "电源",
        "移动电源"
      ],
      "certificates": [
        "CE",
        "FCC",
        "UN38.3",
        "RoHS"
      ],
      "description": "USB-C 接口 65 瓦移动电源，符合航空携带常规限制。",
      "hs_code": "850760",
      "merchant_id": "m_shenzhen_volt",
      "offer_id": "OFR-0001",
      "options": {
        "colour": [
          "black",
          "white"
        ]
      },
      "origin": "CN",
      "price": {
        "from": {
          "amount": 3999,
          "currency": "USD"
        },
        "to": {
          "amount": 3999,
          "currency": "USD"
        }
      },
      "returns": {
        "buyer_pays": true,
        "days": 30
      },
      "ships_from": "CN",
      "skus": [
        "SKU-0001-01",
        "SKU-0001-02"
      ],
      "title": "VoltPeak 20000 毫安时移动电源"
    }
    "#);
}

#[tokio::test]
async fn an_offer_that_is_not_there_is_guessed() {
    let world = World::new();
    for (name, suggestion) in [
        ("OFR-001", "OFR-0001"),
        ("ofr-0007", "OFR-0007"),
        ("SKU-0003-02", "OFR-0003"),
        ("Alba eau de parfum", "OFR-0006"),
    ] {
        for tool in ["catalog.get_offer_card", "catalog.get_offer_variants"] {
            let reply = world.call(tool, json!({"offer_id": name})).await;
            let details = json!({"field": "/offer_id", "suggestion": suggestion});
            check_error(&reply, "NOT_FOUND", &details);
        }
    }
}

#[tokio::test]
async fn variants_by_their_options() {
    let world = World::new();
    let variants = "catalog.get_offer_variants";
    let arguments = json!({"offer_id": "OFR-0003", "options": {"Size": "l"}, "currency": "EUR"});
    let reply = world.call(variants, arguments).await;
    assert_json_snapshot!(ok(&reply), @r#"
    {
      "offer_id": "OFR-0003",
      "options": {
        "colour": [
          "navy",
          "white"
        ],
        "size": [
          "M",
          "L",
          "XL"
        ]
      },
      "title": "Harbour cotton T-shirt",
      "variants": [
        {
          "dimensions_mm": [
            300,
            250,
            20
          ],
          "label": "navy, L",
          "list_price": {
            "amount": 2490,
            "currency": "EUR"
          },
          "options": {
            "colour": "navy",
            "size": "L"
          },
          "sku": "SKU-0003-02",
          "unit_price": {
            "amount": 2490,
            "currency": "EUR"
          },
          "weight_g": 230
        }
      ]
    }
    "#);
    let arguments = json!({"offer_id": "OFR-0003", "options": {"颜色": "藏青", "size": "m"}});
    let zh = json!({"locale": "zh"});
    let reply = world.call_as("u_1", variants, arguments, zh).await;
    assert_eq!(ok(&reply)["variants"][0]["sku"], "SKU-0003-01");
    assert_eq!(ok(&reply)["variants"][0]["label"], "藏青，M");
    let arguments = json!({"offer_id": "OFR-0003", "options": {"size": "M", "colour": "white"}});
    let reply = world.call(variants, arguments).await;
    assert_eq!(ok(&reply)["variants"], json!([]));
    for (options, field) in [
        (json!({"flavour": "mint"}), "/options/flavour"),
        (json!({"colour": "pink"}), "/options/colour"),
    ] {
        let arguments = json!({"offer_id": "OFR-0003", "options": options});
        let reply = world.call(variants, arguments).await;
        check_error(&reply, "INVALID_ARGUMENT", &json!({"field": field}));
    }
}

/// A8: an availability is valid for a minute. Out of stock is an answer, not an error.
#[tokio::test]
async fn availability_is_data() {
    let world = World::new();
    let availability = "catalog.get_availability";
    let arguments = json!({"items": [
        {"sku": "SKU-0001-01", "quantity": 2},
        {"sku": "SKU-0002-02", "quantity": "3"},
        {"sku": "SKU-0012-02", "quantity": 2},
        {"sku": "SKU-0003-03"},
    ]});
    let reply = world.call(availability, arguments).await;
    assert_eq!(reply["ttl_seconds"], 60);
    assert_json_snapshot!(ok(&reply), @r#"
    {
      "checked_at": "2026-11-16T12:00:00Z",
      "is_complete": false,
      "items": [
        {
          "available": 120,
          "held": 0,
          "offer_id": "OFR-0001",
          "requested": 2,
          "sku": "SKU-0001-01",
          "status": "in_stock",
          "title": "VoltPeak 20,000 mAh power bank"
        },
        {
          "available": 3,
          "held": 0,
          "offer_id": "OFR-0002",
          "requested": 3,
          "sku": "SKU-0002-02",
          "status": "low",
          "title": "AirTone wireless earbuds"
        },
        {
          "available": 0,
          "held": 0,
          "offer_id": "OFR-0003",
          "requested": 1,
          "sku": "SKU-0003-03",
          "status": "out_of_stock",
          "title": "Harbour cotton T-shirt"
        },
        {
          "available": 1,
          "held": 0,
          "offer_id": "OFR-0012",
          "requested": 2,
          "sku": "SKU-0012-02",
          "status": "insufficient",
          "title": "Down jacket Fjell"
        }
      ]
    }
    "#);
    let reply = world
        .call(availability, json!({"skus": ["SKU-0001-01"]}))
        .await;
    assert_eq!(ok(&reply)["is_complete"], true);
    let reply = world
        .call(availability, json!({"skus": ["SKU-0001-01", "SKU-0001-1"]}))
        .await;
    let details = json!({"field": "/skus/1", "suggestion": "SKU-0001-01"});
    check_error(&reply, "NOT_FOUND", &details);
    let twice = json!({"items": [
        {"sku": "SKU-0012-02", "quantity": 1},
        {"sku": "SKU-0012-02", "quantity": 1},
    ]});
    let reply = world.call(availability, twice).await;
    assert_eq!(ok(&reply)["is_complete"], false, "there is one");
    let reply = world.call(availability, json!({})).await;
    check_error(&reply, "INVALID_ARGUMENT", &json!({"field": "/items"}));
}

/// Locks some of an item, as checkout does.
struct Hold;

#[derive(Deserialize, ToolArgs)]
struct HoldArgs {
    /// How many.
    quantity: u32,
}

impl Tool for Hold {
    const NAME: &'static str = "test.hold";
    const DESCRIPTION: &'static str = "Holds some of SKU-0012-01 for a minute.";
    type Args = HoldArgs;
    type Output = ();

    fn behaviour() -> Behaviour {
        behaviour::write()
    }

    async fn call(&self, ctx: &CallContext, args: HoldArgs) -> Result<(), ToolError> {
        let shop = Shop::of(ctx)?;
        let (_, variant) = shop.known("SKU-0012-01", "")?;
        let mut stock = Stock::of(ctx, variant).await?;
        stock.locks.push(Lock {
            lock_id: ctx.new_id("lock_"),
            quantity: args.quantity,
            expires_at: ctx.now() + SignedDuration::from_secs(60),
        });
        stock.keep(ctx, &variant.sku).await
    }
}

/// Items that others hold are not available until their lock expires.
#[tokio::test]
async fn held_items_are_not_available() {
    let clock = clock();
    let catalog = countersign_commerce::tools(Catalog::builder()).tool(Hold);
    let store = Arc::new(MemoryStore::with_clock(clock.clone()));
    let executor = Executor::builder(catalog.build().unwrap())
        .store(store.clone())
        .clock(clock.clone())
        .rules(RuleFiles::embedded().unwrap().rules().unwrap())
        .build();
    let world = World {
        executor,
        store,
        clock,
    };
    let held = world
        .call_as("u_2", "test.hold", json!({"quantity": 28}), json!({}))
        .await;
    assert_eq!(held["ok"], true, "{held:#}");
    let wanted = json!({"items": [{"sku": "SKU-0012-01", "quantity": 2}]});
    let reply = world.call("catalog.get_availability", wanted.clone()).await;
    assert_json_snapshot!(ok(&reply)["items"][0], @r#"
    {
      "available": 2,
      "held": 28,
      "next_release_at": "2026-11-16T12:01:00Z",
      "offer_id": "OFR-0012",
      "requested": 2,
      "sku": "SKU-0012-01",
      "status": "low",
      "title": "Down jacket Fjell"
    }
    "#);
    world.advance_seconds(60);
    let reply = world.call("catalog.get_availability", wanted).await;
    assert_eq!(ok(&reply)["items"][0]["available"], 30);
}

/// The whole shop is searched, not only the offers that were written by hand.
#[tokio::test]
async fn things_are_found_by_what_people_call_them() {
    let world = World::new();
    for (query, category) in [
        ("trainers", "apparel/footwear/sneaker"),
        ("手机", "electronics/phones/smartphone"),
        ("充电宝", "electronics/power/power_bank"),
        ("noise cancelling earbuds", "electronics/audio/earbuds"),
        ("teapots", "home/kitchen/porcelain"),
        ("茶壶", "home/kitchen/porcelain"),
        ("kids jigsaw puzzles", "toys/games/puzzle"),
        ("露营 帐篷", "sports/camping/tent"),
        ("extra virgin olive oil 500 ml", "food/oil/olive_oil"),
        ("smart watch with GPS", "electronics/wearables/smartwatch"),
    ] {
        let reply = world.call(SEARCH, json!({"query": query})).await;
        assert_eq!(
            ok(&reply)["offers"][0]["category"],
            category,
            "{query}: {reply:#}"
        );
    }
}

#[tokio::test]
async fn only_what_the_seller_sends_there() {
    let world = World::new();
    let ham = |to: &str| json!({"category": "food/meat", "ships_to": to});
    assert_eq!(ids(&world, ham("de")).await.len(), 3);
    assert_eq!(ids(&world, ham("US")).await.len(), 0);
}

/// Nothing that search finds is a dead end.
#[tokio::test]
async fn every_item_has_a_card_and_a_variant() {
    let world = World::new();
    let mut skus = 0;
    for offset in (0..450).step_by(50) {
        for id in ids(&world, json!({"limit": 50, "offset": offset})).await {
            let card = world
                .call("catalog.get_offer_card", json!({"offer_id": id}))
                .await;
            let variants = world
                .call("catalog.get_offer_variants", json!({"offer_id": id}))
                .await;
            let listed = ok(&variants)["variants"].as_array().unwrap();
            let names: Vec<Value> = listed
                .iter()
                .map(|variant| variant["sku"].clone())
                .collect();
            assert_eq!(ok(&card)["skus"], json!(names));
            assert_eq!(ok(&card)["category_names"].as_array().unwrap().len(), 3);
            skus += names.len();
        }
    }
    assert_eq!(skus, 1_220);
}
