//! Quotes: prices that add up, promotions that end, arguments as models send them.

use std::sync::Arc;

use countersign::ids::SequentialIds;
use countersign::ledger::MemoryStore;
use countersign::replay::{Replayer, RulesAt, Verdict};
use countersign::vault::Vault;
use countersign::{Catalog, Principal};
use countersign_commerce::rulebook::RuleFiles;
use countersign_evidence::seal::MasterKey;
use insta::assert_json_snapshot;
use serde_json::{Value, json};

use crate::world::{World, check_error, clock, evidence, ok};

const QUOTE: &str = "pricing.get_realtime_quote";

#[tokio::test]
async fn a_quote_in_the_currency_of_the_request() {
    let world = World::new();
    let items = json!({"items": [
        {"sku": "SKU-0003-02", "quantity": 3},
        {"sku": "SKU-0001-01", "quantity": "2"},
    ]});
    let envelope = json!({"currency": "EUR", "locale": "zh-CN"});
    let mut reply = world.call_as("u_1", QUOTE, items, envelope).await;
    // Versions of rules have their own tests.
    for source in reply["evidence"]["sources"].as_array_mut().unwrap() {
        source["hash"] = json!("…");
    }
    assert_json_snapshot!(reply, @r#"
    {
      "data": {
        "basket": "sha256:bd8d67fdad7ba605b0efcdb6b38486d0954964ab64829af91370721cbb069af2",
        "currency": "EUR",
        "expires_at": "2026-11-16T12:05:00Z",
        "lines": [
          {
            "line_total": {
              "amount": 7158,
              "currency": "EUR"
            },
            "list_price": {
              "amount": 3999,
              "currency": "USD"
            },
            "offer_id": "OFR-0001",
            "quantity": 2,
            "sku": "SKU-0001-01",
            "title": "VoltPeak 20000 毫安时移动电源",
            "unit_price": {
              "amount": 3579,
              "currency": "EUR"
            }
          },
          {
            "line_total": {
              "amount": 7470,
              "currency": "EUR"
            },
            "list_price": {
              "amount": 2490,
              "currency": "EUR"
            },
            "offer_id": "OFR-0003",
            "quantity": 3,
            "sku": "SKU-0003-02",
            "title": "海港纯棉 T 恤",
            "unit_price": {
              "amount": 2490,
              "currency": "EUR"
            }
          }
        ],
        "quote_id": "quote_003g000000000008",
        "rates": [
          {
            "date": "2026-10-30",
            "from": "USD",
            "rate": "0.8950948801",
            "source": "European Central Bank, euro foreign exchange reference rates",
            "to": "EUR"
          }
        ],
        "subtotal": {
          "amount": 14628,
          "currency": "EUR"
        }
      },
      "evidence": {
        "snapshot_id": "ev_1",
        "sources": [
          {
            "hash": "…",
            "name": "pricing.get_realtime_quote",
            "ts": "2026-11-16T12:00:00Z",
            "type": "tool"
          },
          {
            "hash": "…",
            "name": "shop",
            "ts": "2026-11-16T12:00:00Z",
            "type": "rule_set"
          },
          {
            "hash": "…",
            "name": "prices",
            "ts": "2026-11-16T12:00:00Z",
            "type": "rule_set"
          },
          {
            "hash": "…",
            "name": "fx",
            "ts": "2026-11-16T12:00:00Z",
            "type": "rule_set"
          }
        ]
      },
      "ok": true,
      "request_id": "req_1",
      "ttl_seconds": 300,
      "warnings": [
        {
          "after": 2,
          "before": "\"2\"",
          "code": "TEXT_TO_INTEGER",
          "message": "字符串已按整数读取",
          "path": "/items/1/quantity",
          "severity": "retyped",
          "span": [
            57,
            60
          ]
        }
      ]
    }
    "#);
}

/// The price changes while the quote is valid, and the quote says so.
#[tokio::test]
async fn a_flash_sale_ends() {
    let world = World::new();
    let items = json!({"items": [{"sku": "SKU-0008-01"}]});
    let reply = world.call(QUOTE, items.clone()).await;
    assert_json_snapshot!(json!([reply["data"]["lines"], reply["warnings"]]), @r#"
    [
      [
        {
          "discount": {
            "amount": 2580,
            "currency": "USD"
          },
          "line_total": {
            "amount": 10320,
            "currency": "USD"
          },
          "list_price": {
            "amount": 12900,
            "currency": "USD"
          },
          "offer_id": "OFR-0008",
          "promotion": {
            "name": "Two-hour flash sale",
            "percent_off": "20",
            "promotion_id": "flash_pulse_s3",
            "until": "2026-11-16T12:02:00Z"
          },
          "quantity": 1,
          "sku": "SKU-0008-01",
          "title": "Pulse S3 smartwatch",
          "unit_price": {
            "amount": 10320,
            "currency": "USD"
          }
        }
      ],
      [
        {
          "code": "PROMOTION_ENDS",
          "message": "the promotion of SKU-0008-01 ends at 2026-11-16T12:02:00Z; its price changes then"
        }
      ]
    ]
    "#);
    world.advance_seconds(120);
    let reply = world.call(QUOTE, items).await;
    assert_eq!(ok(&reply)["lines"][0]["unit_price"]["amount"], 12_900);
}

/// An existing implementation made 32 of these: a text and a number of the same item are five of it.
#[tokio::test]
async fn quantities_are_added_as_numbers() {
    let world = World::new();
    let items = json!({"items": [
        {"sku": "SKU-0003-01", "quantity": 3},
        {"sku": "SKU-0003-01", "quantity": "2"},
    ], "currency": "EUR"});
    let reply = world.call(QUOTE, items).await;
    let lines = ok(&reply)["lines"].as_array().unwrap();
    assert_eq!((lines.len(), &lines[0]["quantity"]), (1, &json!(5)));
    assert_eq!(
        ok(&reply)["subtotal"],
        json!({"amount": 12_450, "currency": "EUR"})
    );
    assert_eq!(reply["warnings"][0]["code"], "TEXT_TO_INTEGER");
}

/// An existing implementation made −99.94999999999999 of this: every number of a quote is whole.
#[tokio::test]
async fn amounts_are_whole_numbers() {
    fn check(value: &Value) {
        match value {
            Value::Number(number) => assert!(number.is_i64(), "{number}"),
            Value::Array(values) => values.iter().for_each(check),
            Value::Object(members) => members.values().for_each(check),
            Value::Null | Value::Bool(_) | Value::String(_) => {}
        }
    }
    let world = World::new();
    for currency in ["USD", "JPY", "KRW", "HUF", "INR"] {
        let items = json!({"items": [
            {"sku": "SKU-0004-01", "quantity": 7},
            {"sku": "SKU-0008-01", "quantity": 3},
            {"sku": "SKU-0011-01", "quantity": 999},
        ], "currency": currency});
        check(ok(&world.call(QUOTE, items).await));
    }
}

/// An existing implementation made a quote of −99.95 of this.
#[tokio::test]
async fn quantities_out_of_range_are_refused_with_their_path() {
    let world = World::new();
    for quantity in [
        json!(-5),
        json!(0),
        json!(1_000),
        json!("-5"),
        json!("many"),
    ] {
        let items = json!({"items": [
            {"sku": "SKU-0001-01", "quantity": 1},
            {"sku": "SKU-0002-01", "quantity": quantity},
        ]});
        let reply = world.call(QUOTE, items).await;
        check_error(
            &reply,
            "INVALID_ARGUMENT",
            &json!({"field": "/items/1/quantity"}),
        );
    }
    let twice = json!({"items": [{"sku": "SKU-0001-01", "quantity": 999}, {"sku": "SKU-0001-01"}]});
    let reply = world.call(QUOTE, twice).await;
    check_error(
        &reply,
        "INVALID_ARGUMENT",
        &json!({"field": "/items/1/quantity"}),
    );
}

#[tokio::test]
async fn what_is_not_sold_is_not_found() {
    let world = World::new();
    let items = json!({"items": [{"sku": "SKU-0001-01"}, {"sku": "SKU-9999-01"}]});
    let reply = world.call(QUOTE, items).await;
    check_error(&reply, "NOT_FOUND", &json!({"field": "/items/1/sku"}));
    let items = json!({"items": [{"sku": "SKU-0001-01"}], "currency": "XAU"});
    let reply = world.call(QUOTE, items).await;
    check_error(&reply, "INVALID_ARGUMENT", &json!({"field": "/currency"}));
}

/// A16: a quote is a pure rule. It can be computed again after its promotion has ended, and with another price list the
/// difference shows.
#[tokio::test]
async fn a_quote_can_be_computed_again() {
    let clock = clock();
    let store = Arc::new(MemoryStore::with_clock(clock.clone()).keeping_log());
    let world = World::on(store.clone(), clock.clone(), |builder| builder);
    let items = json!({"items": [{"sku": "SKU-0008-01", "quantity": 2}], "currency": "JPY"});
    let reply = world
        .call_as("u_1", QUOTE, items, json!({"locale": "zh"}))
        .await;
    world.advance_seconds(86_400);

    let ids = Arc::new(SequentialIds::new());
    let master = Arc::new(MasterKey::from_bytes(&[7; 32]));
    let vault = Arc::new(Vault::new(store.clone(), master, clock, ids));
    let auditor = Principal::user("auditor").scope("evidence:open");
    let replayer = Replayer::new(store, vault, auditor).unwrap();
    let catalog = countersign_commerce::tools(Catalog::builder())
        .build()
        .unwrap();
    let dearer = include_str!("../../rules/prices/2026-11-01.toml").replace("\"20\"", "\"10\"");
    let files = RuleFiles::embedded().unwrap();
    let rules = files
        .with("prices", "2026-11-17", dearer)
        .unwrap()
        .rules()
        .unwrap();
    let id = evidence(&reply).parse().unwrap();

    let then = replayer.local(catalog.clone(), rules.clone(), RulesAt::Recorded);
    let again = replayer.replay(&id, &then).await.unwrap();
    assert_eq!(again.verdict, Verdict::Identical);
    let now = replayer.local(catalog, rules, RulesAt::InForce);
    let again = replayer.replay(&id, &now).await.unwrap();
    let differences = again.verdict.into_differences();
    let paths: Vec<&str> = differences.iter().map(|one| one.path.as_str()).collect();
    let expected = [
        "/lines/0/discount/amount",
        "/lines/0/line_total/amount",
        "/lines/0/promotion/percent_off",
        "/lines/0/unit_price/amount",
        "/subtotal/amount",
    ];
    assert_eq!(paths, expected);
}
