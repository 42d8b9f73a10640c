//! Shipping as a caller sees it. The arithmetic of prices is shown beside the code, in worked examples.

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

const TOOL: &str = "shipping.quote_options";

/// A8, A14: the answer has a TTL and evidence that names its rules. The weight is that of the item itself: 95 g, and
/// never a default (known failure "shipping weight").
#[tokio::test]
async fn earbuds_to_germany() {
    let world = World::new();
    let arguments = json!({
        "items": [{"sku": "SKU-0002-01"}],
        "destination": {"country": "de", "postal_code": "10115"},
        "currency": "usd",
        "cart_id": "cart_1",
    });
    let mut reply = world.call(TOOL, arguments).await;
    let sources = reply["evidence"]["sources"].as_array().unwrap();
    let sources: Vec<&Value> = sources.iter().map(|source| &source["name"]).collect();
    assert_eq!(sources, [TOOL, "shop", "shipping", "fx", "addresses"]);
    reply["evidence"]["sources"] = Value::Null;
    let options = reply["data"]["options"].as_array_mut().unwrap();
    options.truncate(2);
    assert_json_snapshot!(reply, @r#"
    {
      "data": {
        "basket": "sha256:45c9857a1feb9873f2a36c8b9ff8dba4635d57c3d5c27e6f3b1a42e0f5b29c76",
        "cart_id": "cart_1",
        "currency": "USD",
        "destination": {
          "country": "DE",
          "postal_code": "10115",
          "region": null
        },
        "expires_at": "2026-11-16T12:05:00Z",
        "options": [
          {
            "actual_weight_g": 95,
            "carrier": "United Post",
            "chargeable_weight_g": 95,
            "incoterms": [
              "DAP"
            ],
            "option_id": "unipost.packet",
            "parcels": [
              {
                "actual_weight_g": 95,
                "chargeable_weight_g": 95,
                "freight": {
                  "amount": 710,
                  "currency": "USD"
                },
                "fuel": {
                  "amount": 0,
                  "currency": "USD"
                },
                "handling": {
                  "amount": 0,
                  "currency": "USD"
                },
                "merchant_id": "m_shenzhen_volt",
                "price": {
                  "amount": 710,
                  "currency": "USD"
                },
                "remote": {
                  "amount": 0,
                  "currency": "USD"
                },
                "ships_from": "CN",
                "volumetric_weight_g": 0,
                "zone": "Z3"
              }
            ],
            "price": {
              "amount": 710,
              "currency": "USD"
            },
            "restrictions": [
              "Duties and taxes are paid on delivery."
            ],
            "service": "Tracked packet",
            "sla": {
              "days_max": 15,
              "days_min": 8,
              "guaranteed": false
            },
            "tracked": true,
            "volumetric_weight_g": 0
          },
          {
            "actual_weight_g": 95,
            "carrier": "Halcyon Lines",
            "chargeable_weight_g": 95,
            "incoterms": [
              "DDP",
              "DAP"
            ],
            "option_id": "halcyon.battery_line",
            "parcels": [
              {
                "actual_weight_g": 95,
                "chargeable_weight_g": 95,
                "freight": {
                  "amount": 820,
                  "currency": "USD"
                },
                "fuel": {
                  "amount": 98,
                  "currency": "USD"
                },
                "handling": {
                  "amount": 0,
                  "currency": "USD"
                },
                "merchant_id": "m_shenzhen_volt",
                "price": {
                  "amount": 918,
                  "currency": "USD"
                },
                "remote": {
                  "amount": 0,
                  "currency": "USD"
                },
                "ships_from": "CN",
                "volumetric_weight_g": 60,
                "zone": "Z3"
              }
            ],
            "price": {
              "amount": 918,
              "currency": "USD"
            },
            "restrictions": [
              "Not to remote areas."
            ],
            "service": "Battery line",
            "sla": {
              "days_max": 12,
              "days_min": 7,
              "guaranteed": false
            },
            "tracked": true,
            "volumetric_weight_g": 60
          }
        ]
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

/// If no option is left, the error names the obstacle: the country, or the goods with their remedies.
#[tokio::test]
async fn where_nobody_goes() {
    let world = World::new();
    let ask = |sku: &str, country: &str| {
        let arguments = json!({
            "items": [{"sku": sku}],
            "destination": {"country": country},
        });
        world.call(TOOL, arguments)
    };
    let reply = ask("SKU-0002-01", "AQ").await;
    let field = json!({"field": "/destination/country"});
    check_error(&reply, "INVALID_ARGUMENT", &field);
    let reply = ask("SKU-0006-01", "US").await;
    assert_json_snapshot!(reply["error"], @r#"
    {
      "code": "COMPLIANCE_BLOCKED",
      "details": {
        "excluded": [
          {
            "cause": "goods",
            "option_id": "meridian.express",
            "reason": "it does not take flammable liquids such as perfume (class 3)",
            "rule": "flammable_liquid",
            "skus": [
              "SKU-0006-01"
            ]
          },
          {
            "cause": "goods",
            "option_id": "meridian.economy",
            "reason": "it does not take flammable liquids such as perfume (class 3)",
            "rule": "flammable_liquid",
            "skus": [
              "SKU-0006-01"
            ]
          },
          {
            "cause": "goods",
            "option_id": "unipost.packet",
            "reason": "it does not take flammable liquids such as perfume (class 3)",
            "rule": "flammable_liquid",
            "skus": [
              "SKU-0006-01"
            ]
          },
          {
            "cause": "goods",
            "option_id": "unipost.parcel",
            "reason": "it does not take flammable liquids such as perfume (class 3)",
            "rule": "flammable_liquid",
            "skus": [
              "SKU-0006-01"
            ]
          }
        ],
        "field": "/items",
        "hint": "remove the named items, or see details.mitigations",
        "mitigations": [
          "within Europe, a road service takes it",
          "buy it within the country or the continent"
        ],
        "retryable": false
      },
      "message": "no carrier accepts these goods for this destination"
    }
    "#);
    ok(&ask("SKU-0006-01", "DE").await);
}

const VALIDATE: &str = "shipping.validate_address";

/// A whole reply: normal form, label, deliverability, and changes.
#[tokio::test]
async fn an_address_in_highland_scotland() {
    let world = World::new();
    let address = json!({
        "recipient": " Flora  Example ",
        "lines": ["PO Box 7"],
        "city": "Inverness",
        "postal_code": "iv11aa",
        "country": "uk",
    });
    let mut reply = world.call(VALIDATE, json!({"address": address})).await;
    let sources = reply["evidence"]["sources"].take();
    assert_eq!(sources[1]["name"], "addresses");
    assert_json_snapshot!(reply, @r#"
    {
      "data": {
        "address": {
          "city": "Inverness",
          "country": "GB",
          "lines": [
            "PO Box 7"
          ],
          "postal_code": "IV1 1AA",
          "recipient": "Flora Example"
        },
        "changes": [
          {
            "change": "COUNTRY_TO_CODE",
            "field": "/address/country"
          },
          {
            "change": "TEXT_TIDIED",
            "field": "/address/recipient"
          },
          {
            "change": "POSTAL_CODE_REWRITTEN",
            "field": "/address/postal_code"
          }
        ],
        "deliverability": {
          "checked": "format",
          "is_remote_area": true,
          "is_served": true,
          "kind": "post_office_box",
          "notes": [
            "Only the post delivers to a box."
          ]
        },
        "destination": {
          "country": "GB",
          "postal_code": "IV1 1AA",
          "region": null
        },
        "formatted": [
          "Flora Example",
          "PO Box 7",
          "Inverness",
          "IV1 1AA",
          "UNITED KINGDOM"
        ]
      },
      "evidence": {
        "snapshot_id": "ev_1",
        "sources": null
      },
      "ok": true,
      "request_id": "req_1",
      "warnings": [
        {
          "code": "COUNTRY_TO_CODE",
          "message": "/address/country was rewritten in the form that is usual in its country"
        },
        {
          "code": "TEXT_TIDIED",
          "message": "/address/recipient was rewritten in the form that is usual in its country"
        },
        {
          "code": "POSTAL_CODE_REWRITTEN",
          "message": "/address/postal_code was rewritten in the form that is usual in its country"
        }
      ]
    }
    "#);
}

/// All faults at once, the first one in `field`, and no word of the address in any of them.
#[tokio::test]
async fn an_address_with_several_faults() {
    let world = World::new();
    let address = json!({
        "lines": ["Somewhere Street 12"],
        "city": "Springfield",
        "region": "Simpsonia",
        "postal_code": "ABC123",
        "phone": "call me maybe",
        "country": "US",
    });
    let reply = world
        .call(VALIDATE, json!({"address": address.clone()}))
        .await;
    assert_json_snapshot!(reply["error"], @r#"
    {
      "code": "ADDRESS_INVALID",
      "details": {
        "faults": [
          {
            "field": "/address/postal_code",
            "hint": "for example 94105",
            "message": "the postal code is not one of this country",
            "problem": "malformed"
          },
          {
            "field": "/address/phone",
            "hint": "for example +49 30 1234567",
            "message": "this is no telephone number",
            "problem": "malformed"
          },
          {
            "field": "/address/region",
            "hint": "for example CA",
            "message": "there is no such region in this country",
            "problem": "unknown"
          },
          {
            "field": "/address/recipient",
            "hint": "for example Anna Muster",
            "message": "an address in this country needs this field",
            "problem": "missing"
          }
        ],
        "field": "/address/postal_code",
        "hint": "for example 94105",
        "retryable": false
      },
      "message": "the postal code is not one of this country"
    }
    "#);
    let said = reply.to_string();
    for quoted in ["Somewhere", "Springfield", "Simpsonia", "ABC123", "maybe"] {
        assert!(!said.contains(quoted), "{quoted} in {said}");
    }
    let envelope = json!({"locale": "zh-CN"});
    let reply = world
        .call_as("u_1", VALIDATE, json!({"address": address}), envelope)
        .await;
    assert_eq!(
        reply["error"]["message"],
        "邮政编码不符合该国家或地区的格式"
    );
}

/// A16: an old answer can be computed again, and the result under other rules is shown beside it.
#[tokio::test]
async fn options_can_be_computed_again() {
    let clock = clock();
    let store = Arc::new(MemoryStore::with_clock(clock.clone()).keeping_log());
    let world = World::on(store.clone(), clock.clone(), |builder| builder);
    let arguments = json!({
        "items": [{"sku": "SKU-0003-01", "quantity": 2}],
        "destination": {"country": "GB", "postal_code": "IV2 3BW"},
        "currency": "USD",
    });
    let envelope = json!({"locale": "zh-CN"});
    let reply = world.call_as("u_1", TOOL, arguments, envelope).await;
    let express = &ok(&reply)["options"][4];
    assert_eq!(express["option_id"], "meridian.express");
    assert_eq!(express["service"], "国际快递", "names follow the locale");
    world.advance_seconds(86_400);

    let ids = Arc::new(SequentialIds::new());
    let master = Arc::new(MasterKey::from_bytes(&[7; 32]));
    let vault = Arc::new(Vault::new(store.clone(), master, clock, ids));
    let auditor = Principal::user("auditor").scope("evidence:open");
    let replayer = Replayer::new(store, vault, auditor).unwrap();
    let catalog = countersign_commerce::tools(Catalog::builder());
    let catalog = catalog.build().unwrap();
    let newest = include_str!("../../rules/shipping/2026-11-01.toml");
    let dearer = newest.replace("fuel_rate = \"0.2750\"", "fuel_rate = \"0.3000\"");
    let files = RuleFiles::embedded().unwrap();
    let files = files.with("shipping", "2026-12-01", dearer).unwrap();
    let rules = files.rules().unwrap();
    let id = evidence(&reply).parse().unwrap();

    let then = replayer.local(catalog.clone(), rules.clone(), RulesAt::Recorded);
    let again = replayer.replay(&id, &then).await.unwrap();
    assert_eq!(again.verdict, Verdict::Identical);
    let now = replayer.local(catalog, rules, RulesAt::InForce);
    let again = replayer.replay(&id, &now).await.unwrap();
    let differences = again.verdict.into_differences();
    let paths: Vec<&str> = differences.iter().map(|one| one.path.as_str()).collect();
    // Express is the dearest of five: its fuel and what follows from it, and nothing else.
    let expected = [
        "/options/4/parcels/0/fuel/amount",
        "/options/4/parcels/0/price/amount",
        "/options/4/price/amount",
    ];
    assert_eq!(paths, expected);
}
