//! Duties and taxes as a caller sees them: whole replies, refusals, and the replay of a recorded estimate under other
//! rules. The arithmetic is shown beside the code, in worked examples.

use std::sync::Arc;

use countersign::Catalog;
use countersign::Principal;
use countersign::clock::SystemClock;
use countersign::ids::RandomIds;
use countersign::ledger::MemoryStore;
use countersign::replay::{Replayer, RulesAt, Verdict};
use countersign::rules::Rules;
use countersign::vault::Vault;
use countersign_commerce::rulebook::RuleFiles;
use countersign_evidence::seal::MasterKey;
use insta::assert_json_snapshot;
use serde_json::{Value, json};

use crate::world::{World, check_error, clock, evidence, ok};

const TOOL: &str = "tax.estimate_duties_and_taxes";
const OLD_RULES: &str = include_str!("../../rules/tax/2025-01-01.toml");

/// A quote and shipping options for the same items, by their evidence.
struct Grounds {
    quote: String,
    shipping: String,
}

/// The quote and the options that an estimate can rest on.
async fn grounds(world: &World, items: &Value, destination: &Value, currency: &str) -> Grounds {
    let arguments = json!({"items": items, "currency": currency});
    let quote = world.call("pricing.get_realtime_quote", arguments).await;
    ok(&quote);
    let arguments = json!({"items": items, "destination": destination, "currency": currency});
    let shipping = world.call("shipping.quote_options", arguments).await;
    ok(&shipping);
    Grounds {
        quote: evidence(&quote),
        shipping: evidence(&shipping),
    }
}

/// The names of the sources of a reply, which are then removed from it: their digests are those of whole files.
fn take_sources(reply: &mut Value) -> Vec<String> {
    let sources = reply["evidence"]["sources"].take();
    let sources = sources.as_array().unwrap().iter();
    sources
        .map(|source| source["name"].as_str().unwrap().to_owned())
        .collect()
}

/// A8, A14, A15: an estimate from a quote and a shipping option has a TTL, and evidence that names its rules.
#[tokio::test]
async fn germany_by_quote_and_shipping() {
    let world = World::new();
    let items =
        json!([{"sku": "SKU-0002-01", "quantity": 3}, {"sku": "SKU-0009-01", "quantity": 1}]);
    let destination = json!({"country": "de", "postal_code": "10115"});
    let grounds = grounds(&world, &items, &destination, "EUR").await;
    let arguments = json!({
        "quote_snapshot_id": grounds.quote,
        "shipping_snapshot_id": grounds.shipping,
        "shipping_option_id": "meridian.economy",
        "destination": destination,
        "cart_id": "cart_1",
    });
    let mut reply = world.call(TOOL, arguments).await;
    let sources = take_sources(&mut reply);
    assert_eq!(sources, [TOOL, "addresses", "shop", "fx", "tax"]);
    assert_json_snapshot!(reply, @r#"
    {
      "data": {
        "basket": "sha256:2f1e942e9f08a290b5e4ec315d7a0eabaee7028c559c7866ce5469d2778beaa6",
        "cart_id": "cart_1",
        "confidence": "medium",
        "currency": "EUR",
        "destination": {
          "country": "DE",
          "postal_code": "10115",
          "region": null
        },
        "due_on_delivery": {
          "amount": 0,
          "currency": "EUR"
        },
        "due_to_seller": {
          "amount": 4491,
          "currency": "EUR"
        },
        "duty": {
          "amount": 0,
          "currency": "EUR"
        },
        "fees": {
          "amount": 0,
          "currency": "EUR"
        },
        "goods_value": {
          "amount": 21060,
          "currency": "EUR"
        },
        "incoterm": "DDP",
        "lines": [
          {
            "customs_value": {
              "amount": 17755,
              "currency": "EUR"
            },
            "duty": {
              "amount": 0,
              "currency": "EUR"
            },
            "duty_rate": "0",
            "goods_value": {
              "amount": 16110,
              "currency": "EUR"
            },
            "hs_code": "851830",
            "method": "import_vat_on_cif_plus_duty",
            "origin": "CN",
            "rules": [
              "EU/regime/standard",
              "EU/duty/851830",
              "DE/vat/standard"
            ],
            "shipping_share": {
              "amount": 1645,
              "currency": "EUR"
            },
            "ships_from": "CN",
            "sku": "SKU-0002-01",
            "tax": {
              "amount": 3373,
              "currency": "EUR"
            },
            "tax_base": {
              "amount": 17755,
              "currency": "EUR"
            },
            "tax_rate": "0.19"
          },
          {
            "customs_value": {
              "amount": 0,
              "currency": "EUR"
            },
            "duty": {
              "amount": 0,
              "currency": "EUR"
            },
            "duty_rate": "0",
            "goods_value": {
              "amount": 4950,
              "currency": "EUR"
            },
            "hs_code": "950300",
            "method": "domestic_tax_on_price",
            "origin": "DE",
            "rules": [
              "DE/vat/standard"
            ],
            "shipping_share": {
              "amount": 932,
              "currency": "EUR"
            },
            "ships_from": "DE",
            "sku": "SKU-0009-01",
            "tax": {
              "amount": 1118,
              "currency": "EUR"
            },
            "tax_base": {
              "amount": 5882,
              "currency": "EUR"
            },
            "tax_rate": "0.19"
          }
        ],
        "method": "several",
        "notes": [
          "The carrier may take a fee of its own for clearance, which is not included.",
          "Duties, taxes and fees are paid with the order (DDP)."
        ],
        "rates": [
          {
            "date": "2026-10-30",
            "from": "USD",
            "rate": "0.8950948801",
            "source": "European Central Bank, euro foreign exchange reference rates",
            "to": "EUR"
          }
        ],
        "shipping_cost": {
          "amount": 2577,
          "currency": "EUR"
        },
        "shipping_option_id": "meridian.economy",
        "tax": {
          "amount": 4491,
          "currency": "EUR"
        },
        "total": {
          "amount": 4491,
          "currency": "EUR"
        }
      },
      "evidence": {
        "snapshot_id": "ev_5",
        "sources": null
      },
      "ok": true,
      "request_id": "req_3",
      "ttl_seconds": 300,
      "warnings": []
    }
    "#);
}

/// Texts for people are in their language; codes, methods and rules never change. The state may be given by its name.
#[tokio::test]
async fn california_in_chinese() {
    let world = World::new();
    let arguments = json!({
        "items": [{"sku": "SKU-0001-01", "quantity": 2}],
        "destination": {"country": "US", "region": "California"},
        "incoterm": "DAP",
    });
    let envelope = json!({"locale": "zh-CN", "currency": "USD"});
    let mut reply = world.call_as("u_1", TOOL, arguments, envelope).await;
    assert_eq!(
        take_sources(&mut reply),
        [TOOL, "addresses", "shop", "fx", "tax"]
    );
    assert_json_snapshot!(reply, @r#"
    {
      "data": {
        "basket": "sha256:43dbb0803cac08b982f879e61edf1a351dc41bb60a0dbeda73c11cc9943aa06c",
        "confidence": "low",
        "currency": "USD",
        "destination": {
          "country": "US",
          "postal_code": null,
          "region": "CA"
        },
        "due_on_delivery": {
          "amount": 2540,
          "currency": "USD"
        },
        "due_to_seller": {
          "amount": 580,
          "currency": "USD"
        },
        "duty": {
          "amount": 2271,
          "currency": "USD"
        },
        "fee_lines": [
          {
            "amount": {
              "amount": 269,
              "currency": "USD"
            },
            "name": "货物处理费（非正式报关）",
            "rule": "US/fee/mpf-informal"
          }
        ],
        "fees": {
          "amount": 269,
          "currency": "USD"
        },
        "goods_value": {
          "amount": 7998,
          "currency": "USD"
        },
        "incoterm": "DAP",
        "lines": [
          {
            "customs_value": {
              "amount": 7998,
              "currency": "USD"
            },
            "duty": {
              "amount": 2271,
              "currency": "USD"
            },
            "duty_rate": "0.284",
            "goods_value": {
              "amount": 7998,
              "currency": "USD"
            },
            "hs_code": "850760",
            "method": "import_duty_and_sales_tax_on_price",
            "origin": "CN",
            "rules": [
              "US/regime/informal",
              "US/duty/850760",
              "US/additional/section-301-batteries",
              "US/region/CA"
            ],
            "shipping_share": {
              "amount": 0,
              "currency": "USD"
            },
            "ships_from": "CN",
            "sku": "SKU-0001-01",
            "tax": {
              "amount": 580,
              "currency": "USD"
            },
            "tax_base": {
              "amount": 7998,
              "currency": "USD"
            },
            "tax_rate": "0.0725"
          }
        ],
        "method": "import_duty_and_sales_tax_on_price",
        "notes": [
          "尚未选择配送方式，估算未计入运费；选定配送方式后结果更准确。",
          "未计入县、市等地方税率。",
          "免税额度已取消。未计入依 232 条款对钢、铝、铜和家具加征的关税，也未计入 2026 年 7 月 24 日普遍附加税到期之后公布的措施。",
          "销售时未收取的税费由买家在收货时向承运人支付（DAP）。"
        ],
        "shipping_cost": {
          "amount": 0,
          "currency": "USD"
        },
        "tax": {
          "amount": 580,
          "currency": "USD"
        },
        "total": {
          "amount": 3120,
          "currency": "USD"
        }
      },
      "evidence": {
        "snapshot_id": "ev_1",
        "sources": null
      },
      "ok": true,
      "request_id": "req_1",
      "ttl_seconds": 300,
      "warnings": [
        {
          "code": "REGION_NAME_TO_CODE",
          "message": "/destination/region 已改写为所在国家或地区的格式"
        }
      ]
    }
    "#);
}

/// A currency without a smaller unit.
#[tokio::test]
async fn japan_in_yen() {
    let world = World::new();
    let arguments = json!({
        "items": [{"sku": "SKU-0004-01"}, {"sku": "SKU-0005-01", "quantity": 2}],
        "destination": {"country": "JP"},
        "currency": "JPY",
    });
    let mut reply = world.call(TOOL, arguments).await;
    assert_eq!(
        take_sources(&mut reply),
        [TOOL, "addresses", "shop", "fx", "tax"]
    );
    assert_json_snapshot!(reply, @r#"
    {
      "data": {
        "basket": "sha256:ea83dae3fbe67e55a4152938b05a50b497f8be2c392e79d293e91396eab5f9f0",
        "confidence": "low",
        "currency": "JPY",
        "destination": {
          "country": "JP",
          "postal_code": null,
          "region": null
        },
        "due_on_delivery": {
          "amount": 0,
          "currency": "JPY"
        },
        "due_to_seller": {
          "amount": 9274,
          "currency": "JPY"
        },
        "duty": {
          "amount": 4649,
          "currency": "JPY"
        },
        "fee_lines": [
          {
            "amount": {
              "amount": 200,
              "currency": "JPY"
            },
            "name": "Japan Post, clearance",
            "rule": "JP/fee/post"
          }
        ],
        "fees": {
          "amount": 200,
          "currency": "JPY"
        },
        "goods_value": {
          "amount": 39604,
          "currency": "JPY"
        },
        "incoterm": "DDP",
        "lines": [
          {
            "customs_value": {
              "amount": 33204,
              "currency": "JPY"
            },
            "duty": {
              "amount": 4649,
              "currency": "JPY"
            },
            "duty_rate": "0.14",
            "goods_value": {
              "amount": 33204,
              "currency": "JPY"
            },
            "hs_code": "420221",
            "method": "import_vat_on_cif_plus_duty",
            "origin": "IT",
            "rules": [
              "JP/regime/standard",
              "JP/duty/420221",
              "JP/consumption-tax/standard"
            ],
            "shipping_share": {
              "amount": 0,
              "currency": "JPY"
            },
            "ships_from": "IT",
            "sku": "SKU-0004-01",
            "tax": {
              "amount": 3785,
              "currency": "JPY"
            },
            "tax_base": {
              "amount": 37853,
              "currency": "JPY"
            },
            "tax_rate": "0.1"
          },
          {
            "customs_value": {
              "amount": 0,
              "currency": "JPY"
            },
            "duty": {
              "amount": 0,
              "currency": "JPY"
            },
            "duty_rate": "0",
            "goods_value": {
              "amount": 6400,
              "currency": "JPY"
            },
            "hs_code": "691200",
            "method": "domestic_tax_on_price",
            "origin": "JP",
            "rules": [
              "JP/consumption-tax/standard"
            ],
            "shipping_share": {
              "amount": 0,
              "currency": "JPY"
            },
            "ships_from": "JP",
            "sku": "SKU-0005-01",
            "tax": {
              "amount": 640,
              "currency": "JPY"
            },
            "tax_base": {
              "amount": 6400,
              "currency": "JPY"
            },
            "tax_rate": "0.1"
          }
        ],
        "method": "several",
        "notes": [
          "Shipping is not known yet, so it is not part of the values: name a shipping option for a surer estimate.",
          "The fee for clearance is that of the national post; other carriers take their own.",
          "For personal use customs may count 60 % of the retail price; then less is due than is said here.",
          "Duties, taxes and fees are paid with the order (DDP)."
        ],
        "rates": [
          {
            "date": "2026-10-30",
            "from": "EUR",
            "rate": "175.68",
            "source": "European Central Bank, euro foreign exchange reference rates",
            "to": "JPY"
          }
        ],
        "shipping_cost": {
          "amount": 0,
          "currency": "JPY"
        },
        "tax": {
          "amount": 4425,
          "currency": "JPY"
        },
        "total": {
          "amount": 9274,
          "currency": "JPY"
        }
      },
      "evidence": {
        "snapshot_id": "ev_1",
        "sources": null
      },
      "ok": true,
      "request_id": "req_1",
      "ttl_seconds": 300,
      "warnings": []
    }
    "#);
}

/// The incoterm does not change the amounts that are due, only to whom they are paid.
#[tokio::test]
async fn ddp_and_dap_are_the_same_amounts() {
    async fn check(sku: &str, country: &str) {
        let world = World::new();
        let arguments = |incoterm: &str| {
            json!({
                "items": [{"sku": sku, "quantity": 3}],
                "destination": {"country": country},
                "currency": "EUR",
                "incoterm": incoterm,
            })
        };
        let paid = world.call(TOOL, arguments("DDP")).await;
        let unpaid = world.call(TOOL, arguments("dap")).await;
        let (paid, unpaid) = (ok(&paid), ok(&unpaid));
        for member in [
            "duty",
            "tax",
            "fees",
            "total",
            "lines",
            "fee_lines",
            "method",
        ] {
            assert_eq!(paid[member], unpaid[member], "{member} to {country}");
        }
        assert_eq!(paid["due_to_seller"], paid["total"]);
        assert_eq!(paid["due_on_delivery"]["amount"], 0);
        let part = |member: &str| unpaid[member]["amount"].as_i64().unwrap();
        assert_eq!(
            part("due_to_seller") + part("due_on_delivery"),
            part("total")
        );
    }
    check("SKU-0002-01", "DE").await;
    check("SKU-0003-01", "DE").await;
    check("SKU-0004-01", "US").await;
    check("SKU-0012-01", "NO").await;
    check("SKU-0007-01", "CH").await;
}

/// A refused estimate names the argument, and a valid value.
#[tokio::test]
async fn wrong_arguments() {
    #[track_caller]
    fn check(reply: &Value, code: &str, field: &str, hint: &str) {
        check_error(reply, code, &json!({"field": field}));
        let told = reply["error"]["details"]["hint"].as_str().unwrap();
        assert!(told.contains(hint), "{told}");
    }
    let world = World::new();
    let items = json!([{"sku": "SKU-0001-01"}]);
    let estimate = async |arguments: Value| world.call(TOOL, arguments).await;

    let reply = estimate(json!({"items": items, "destination": {"country": "BR"}})).await;
    check(
        &reply,
        "INVALID_ARGUMENT",
        "/destination/country",
        "AT, AU, BE",
    );
    let destination = json!({"country": "US", "region": "Bavaria"});
    let reply = estimate(json!({"items": items, "destination": destination})).await;
    check(&reply, "ADDRESS_INVALID", "/destination/region", "CA");
    let reply = estimate(json!({"destination": {"country": "DE"}})).await;
    check(
        &reply,
        "INVALID_ARGUMENT",
        "/items",
        "pricing.get_realtime_quote",
    );
    let reply = estimate(json!({"items": [], "destination": {"country": "DE"}})).await;
    check_error(&reply, "INVALID_ARGUMENT", &json!({"field": "/items"}));
    let reply = estimate(json!({
        "items": items, "quote_snapshot_id": "ev_1", "destination": {"country": "DE"},
    }))
    .await;
    check(&reply, "INVALID_ARGUMENT", "/items", "send one of them");
    let reply = estimate(json!({
        "items": [{"sku": "SKU-0001-01"}, {"sku": "SKU-9999-99"}], "destination": {"country": "DE"},
    }))
    .await;
    check(&reply, "NOT_FOUND", "/items/1/sku", "catalog.search_offers");
    let reply = estimate(json!({
        "items": items, "destination": {"country": "DE"}, "shipping_option_id": "meridian.economy",
    }))
    .await;
    check(
        &reply,
        "INVALID_ARGUMENT",
        "/shipping_snapshot_id",
        "shipping.quote_options",
    );
    let reply = estimate(json!({
        "items": items, "destination": {"country": "DE"}, "currency": "XTS",
    }))
    .await;
    check(&reply, "INVALID_ARGUMENT", "/currency", "EUR");
}

/// The answers that an estimate rests on have to fit: the same items, destination, cart and currency, of the same user.
#[tokio::test]
async fn grounds_that_do_not_fit() {
    let world = World::new();
    let items = json!([{"sku": "SKU-0002-01"}]);
    let destination = json!({"country": "DE"});
    let grounds = grounds(&world, &items, &destination, "EUR").await;
    let of_cart = json!({"items": items, "cart_id": "cart_1"});
    let of_cart = world.call("pricing.get_realtime_quote", of_cart).await;
    let check = async |changes: Value, code: &str, field: &str| {
        let mut arguments = json!({
            "quote_snapshot_id": grounds.quote,
            "shipping_snapshot_id": grounds.shipping,
            "shipping_option_id": "meridian.economy",
            "destination": destination,
        });
        for (name, value) in changes.as_object().unwrap() {
            arguments[name] = value.clone();
        }
        let reply = world.call(TOOL, arguments).await;
        check_error(&reply, code, &json!({"field": field}));
    };
    let pointer = "/shipping_snapshot_id";
    let more = json!([{"sku": "SKU-0002-01", "quantity": 2}]);
    let invalid = "INVALID_ARGUMENT";
    check(
        json!({"quote_snapshot_id": null, "items": more}),
        invalid,
        pointer,
    )
    .await;
    let elsewhere = json!({"country": "FR"});
    check(
        json!({"destination": elsewhere}),
        invalid,
        "/destination/country",
    )
    .await;
    check(
        json!({"shipping_option_id": "owl.post"}),
        invalid,
        "/shipping_option_id",
    )
    .await;
    check(
        json!({"shipping_option_id": null}),
        invalid,
        "/shipping_option_id",
    )
    .await;
    check(json!({"currency": "USD"}), invalid, "/currency").await;
    check(
        json!({"shipping_option_id": "unipost.packet"}),
        invalid,
        "/incoterm",
    )
    .await;
    let other_cart = json!({"quote_snapshot_id": evidence(&of_cart), "cart_id": "cart_2"});
    check(other_cart, invalid, "/cart_id").await;
    // The evidence of another tool, and an id that is none.
    check(
        json!({"quote_snapshot_id": grounds.shipping}),
        invalid,
        "/quote_snapshot_id",
    )
    .await;
    check(
        json!({"quote_snapshot_id": "ev_forged"}),
        "NOT_FOUND",
        "/quote_snapshot_id",
    )
    .await;
    // Another user's evidence is answered exactly like a missing one.
    let arguments = json!({"quote_snapshot_id": grounds.quote, "destination": destination});
    let reply = world.call_as("u_2", TOOL, arguments, json!({})).await;
    check_error(&reply, "NOT_FOUND", &json!({"field": "/quote_snapshot_id"}));
}

/// A8: an answer whose TTL is over is refused; the old amount comes with the refusal.
#[tokio::test]
async fn what_is_too_old_is_refused() {
    let world = World::new();
    let items = json!([{"sku": "SKU-0009-01"}]);
    let destination = json!({"country": "DE"});
    let old = grounds(&world, &items, &destination, "EUR").await;
    world.advance_seconds(299);
    let arguments = json!({"quote_snapshot_id": old.quote, "destination": destination});
    ok(&world.call(TOOL, arguments.clone()).await);
    world.advance_seconds(1);
    let reply = world.call(TOOL, arguments).await;
    let details = json!({
        "field": "/quote_snapshot_id",
        "old": {"amount": 4950, "currency": "EUR"},
        "expired_at": "2026-11-16T12:05:00Z",
        "hint": "call pricing.get_realtime_quote again and send the evidence.snapshot_id of its reply",
    });
    check_error(&reply, "PRICE_CHANGED", &details);
    let new = grounds(&world, &items, &destination, "EUR").await;
    let arguments = json!({
        "quote_snapshot_id": new.quote,
        "shipping_snapshot_id": old.shipping,
        "shipping_option_id": "meridian.economy",
        "destination": destination,
    });
    let reply = world.call(TOOL, arguments).await;
    check_error(
        &reply,
        "PRICE_CHANGED",
        &json!({"field": "/shipping_snapshot_id"}),
    );
}

/// A15, A16: a recorded estimate is computed again to the byte with the rules of its record. Under the earlier rules it
/// would have been another, and the replay shows the differences.
#[tokio::test]
async fn a_recorded_estimate_is_replayed() {
    let (clock, master) = (clock(), Arc::new(MasterKey::from_bytes(&[7; 32])));
    let store = Arc::new(MemoryStore::with_clock(clock.clone()).keeping_log());
    let world = World::on(store.clone(), clock, |builder| builder);
    let items = json!([{"sku": "SKU-0001-01", "quantity": 2}]);
    let destination = json!({"country": "DE"});
    let grounds = grounds(&world, &items, &destination, "EUR").await;
    let arguments = json!({
        "quote_snapshot_id": grounds.quote,
        "destination": destination,
    });
    let reply = world.call(TOOL, arguments).await;
    ok(&reply);
    let id = evidence(&reply).parse().unwrap();

    let now = Arc::new(SystemClock::new());
    let ids = Arc::new(RandomIds::new(now.clone()));
    let vault = Arc::new(Vault::new(store.clone(), master, now, ids));
    let auditor = Principal::user("auditor").scope("evidence:open");
    let replayer = Replayer::new(store, vault, auditor).unwrap();
    let computed = async |rules: Rules, at: RulesAt| {
        let catalog = countersign_commerce::tools(Catalog::builder())
            .build()
            .unwrap();
        let target = replayer.local(catalog, rules, at);
        replayer.replay(&id, &target).await.unwrap().verdict
    };
    let embedded = RuleFiles::embedded().unwrap();
    let before = embedded
        .clone()
        .with("tax", "before", OLD_RULES.to_owned())
        .unwrap();

    let verdict = computed(embedded.rules().unwrap(), RulesAt::InForce).await;
    assert_eq!(verdict, Verdict::Identical);
    // Other rules are in force, and those of the record are still loaded.
    let verdict = computed(before.rules().unwrap(), RulesAt::Recorded).await;
    assert_eq!(verdict, Verdict::Identical);
    let Verdict::Drift(differences) = computed(before.rules().unwrap(), RulesAt::InForce).await
    else {
        panic!("the flat duty is new");
    };
    let differences: Vec<Value> = differences
        .iter()
        .map(|difference| json!([difference.path, difference.recorded, difference.computed]))
        .collect();
    assert_json_snapshot!(differences, @r#"
    [
      [
        "/due_to_seller/amount",
        1717,
        1360
      ],
      [
        "/duty/amount",
        300,
        0
      ],
      [
        "/lines/0/duty/amount",
        300,
        0
      ],
      [
        "/lines/0/duty_rate",
        "flat",
        "0"
      ],
      [
        "/lines/0/method",
        "low_value_flat_duty",
        "low_value_tax_at_sale"
      ],
      [
        "/lines/0/rules/1",
        "EU/duty/flat/low-value",
        "DE/vat/standard"
      ],
      [
        "/lines/0/rules/2",
        "DE/vat/standard",
        null
      ],
      [
        "/lines/0/tax/amount",
        1417,
        1360
      ],
      [
        "/lines/0/tax_base/amount",
        7458,
        7158
      ],
      [
        "/method",
        "low_value_flat_duty",
        "low_value_tax_at_sale"
      ],
      [
        "/notes/1",
        "Up to 150 euros the duty is 3 euros for each tariff code in the parcel, and the seller takes the VAT of the destination (IOSS).",
        "Up to 150 euros no duty is due, and the seller takes the VAT of the destination (IOSS)."
      ],
      [
        "/tax/amount",
        1417,
        1360
      ],
      [
        "/total/amount",
        1717,
        1360
      ]
    ]
    "#);
}

/// Rules that contradict themselves are refused when they are loaded, and the error says where.
#[test]
fn rules_are_checked_when_they_are_loaded() {
    #[track_caller]
    fn check(from: &str, to: &str, expected: &str) {
        let text = OLD_RULES.replacen(from, to, 1);
        assert_ne!(text, OLD_RULES, "{from} is in the file");
        let files = RuleFiles::embedded().unwrap();
        let error = files.with("tax", "x", text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    check(
        "rate = \"0.032\"",
        "rate = \"-0.032\"",
        "territory EU: -0.032 is no rate",
    );
    check(
        "hs = [\"090210\"]",
        "hs = [\"9021\", \"tea\"]",
        "\"tea\" is no chapter",
    );
    check(
        "source = \"ec_taric\"",
        "source = \"hearsay\"",
        "there is no source \"hearsay\"",
    );
    check(
        "date = \"2021-07-01\"",
        "date = \"last summer\"",
        "\"last summer\" is no date",
    );
    check(
        "territory = \"NO\"",
        "territory = \"NX\"",
        "country NO: there is no territory \"NX\"",
    );
    check(
        "into = [\"EU\"]",
        "into = [\"UE\"]",
        "preference eu-jp: there is no territory \"UE\"",
    );
    check(
        "duty = \"none\"",
        "duty = \"flat_per_code\"",
        "regime low-value: flat_duty",
    );
    check("amount = \"135\"", "amount = \"-135\"", "-135 is negative");
    check("kind = \"vat\"", "type = \"vat\"", "unknown field `type`");
    check(
        "method = \"low_value_tax_at_sale\"",
        "method = \"magic\"",
        "unknown variant `magic`",
    );
    // Goods that fit no regime would have no answer.
    check(
        "id = \"standard\"\n",
        "id = \"standard\"\nfrom = [\"US\"]\n",
        "the last regime has to fit everything",
    );
}
