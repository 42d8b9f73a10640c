//! From a cart to a draft order: its content, its evidence, and the refusals on the way.

use serde_json::{Value, json};

use crate::flow::{Order, Prepared};
use crate::world::{World, check_error, evidence, ok, without_digests};

/// The whole way. Everything that a buyer has to know is in the draft order.
#[tokio::test]
async fn a_draft_order_carries_everything() {
    let world = World::new();
    let draft = Order::new().draft(&world).await;
    insta::assert_json_snapshot!(without_digests(ok(&draft).clone()), @r#"
    {
      "basket": "[digest]",
      "carrier": "Halcyon Lines",
      "cart_id": "cart_003g000000000008",
      "cart_version": 3,
      "compliance_snapshot_id": "ev_13",
      "compliance_summary": {
        "decision": "conditional",
        "findings": [
          {
            "message": "Lithium batteries that are shipped alone are not allowed on passenger aircraft and only charged to 30 % on cargo aircraft.",
            "mitigations": [
              "carrier: use a service that takes UN 3480 or UN 3090",
              "seller: ship at 30 % charge with the lithium battery mark"
            ],
            "rule": "battery.alone_by_air",
            "severity": "warning",
            "sku": "SKU-0001-01",
            "source": "ICAO Technical Instructions, special provisions A201 and A331; IATA DGR packing instructions 965 and 968 (2016-04-01)"
          },
          {
            "message": "Who sells batteries into the EU from outside is registered as a producer in the country of sale, and the battery carries the symbol for separate collection.",
            "mitigations": [
              "seller: register through an authorised representative and pay for collection"
            ],
            "rule": "eu.battery.epr",
            "severity": "warning",
            "sku": "SKU-0001-01",
            "source": "Regulation (EU) 2023/1542 on batteries, articles 13(4), 55 and 56 (2025-08-18)"
          },
          {
            "asked_of_buyer": [
              {
                "en": "accept that customs may stop the parcel until then",
                "zh": "知悉在此之前包裹可能被海关扣留"
              }
            ],
            "message": "A consumer product from outside the EU needs a responsible person in the EU, named on it and in the offer.",
            "mitigations": [
              "seller: name the responsible person in the EU and show name and address",
              "buyer: accept that customs may stop the parcel until then"
            ],
            "rule": "eu.gpsr.responsible_person",
            "severity": "warning",
            "sku": "SKU-0001-01",
            "source": "Regulation (EU) 2023/988 on general product safety, articles 16 and 19; Regulation (EU) 2019/1020, article 4 (2024-12-13)"
          }
        ],
        "ruleset_version": "[digest]"
      },
      "confirmation_items": [
        {
          "details": {
            "confidence": "high",
            "due_on_delivery": {
              "amount": 0,
              "currency": "EUR"
            },
            "incoterm": "DDP",
            "method": "low_value_flat_duty",
            "notes": [
              "Up to 150 euros the duty is 3 euros for each tariff code in the parcel, and the seller takes the VAT of the destination (IOSS).",
              "Duties, taxes and fees are paid with the order (DDP)."
            ]
          },
          "kind": "tax_uncertainty",
          "text": "Duties and taxes are an estimate by the published rates."
        },
        {
          "details": {
            "declared": [
              {
                "hs_code": "850760",
                "origin": "CN",
                "quantity": 2,
                "sku": "SKU-0001-01",
                "value": {
                  "amount": 7158,
                  "currency": "EUR"
                }
              }
            ]
          },
          "kind": "customs_fields",
          "text": "These goods are declared at customs with their code, origin and value."
        },
        {
          "details": {
            "decision": "conditional",
            "rules": [
              "battery.alone_by_air",
              "eu.battery.epr",
              "eu.gpsr.responsible_person"
            ]
          },
          "kind": "compliance_risk",
          "text": "Lithium batteries that are shipped alone are not allowed on passenger aircraft and only charged to 30 % on cargo aircraft. Who sells batteries into the EU from outside is registered as a producer in the country of sale, and the battery carries the symbol for separate collection. A consumer product from outside the EU needs a responsible person in the EU, named on it and in the offer."
        },
        {
          "details": {
            "items": [
              {
                "returns": {
                  "buyer_pays": true,
                  "days": 30
                },
                "sku": "SKU-0001-01"
              }
            ]
          },
          "kind": "return_cost",
          "text": "VoltPeak 20,000 mAh power bank can be sent back within 30 days at your own cost."
        },
        {
          "details": {
            "limits": [
              "Not to remote areas."
            ],
            "shipping_option_id": "halcyon.battery_line"
          },
          "kind": "route_limits",
          "text": "Not to remote areas."
        }
      ],
      "created_at": "2026-11-16T12:00:00Z",
      "destination": {
        "country": "DE",
        "postal_code": "10115",
        "region": null
      },
      "draft_order_id": "order_013g000000000028",
      "evidence_snapshot_id": "ev_17",
      "expires_at": "2026-11-16T12:30:00Z",
      "items": [
        {
          "hs_code": "850760",
          "line_total": {
            "amount": 7158,
            "currency": "EUR"
          },
          "offer_id": "OFR-0001",
          "origin": "CN",
          "quantity": 2,
          "returns": {
            "buyer_pays": true,
            "days": 30
          },
          "ships_from": "CN",
          "sku": "SKU-0001-01",
          "title": "VoltPeak 20,000 mAh power bank",
          "unit_price": {
            "amount": 3579,
            "currency": "EUR"
          }
        }
      ],
      "policy_ack_required": [
        {
          "policy": "compliance_conditions",
          "text": "For these items I agree to this: accept that customs may stop the parcel until then."
        }
      ],
      "pricing_breakdown": {
        "due_on_delivery": {
          "amount": 0,
          "currency": "EUR"
        },
        "duty": {
          "amount": 300,
          "currency": "EUR"
        },
        "fees": {
          "amount": 0,
          "currency": "EUR"
        },
        "items": {
          "amount": 7158,
          "currency": "EUR"
        },
        "shipping": {
          "amount": 1785,
          "currency": "EUR"
        },
        "tax": {
          "amount": 1756,
          "currency": "EUR"
        },
        "total": {
          "amount": 10999,
          "currency": "EUR"
        }
      },
      "quote_snapshot_id": "ev_5",
      "route_limits": [
        "Not to remote areas."
      ],
      "rules": [
        {
          "name": "addresses",
          "version": "[digest]"
        },
        {
          "name": "compliance",
          "version": "[digest]"
        },
        {
          "name": "fx",
          "version": "[digest]"
        },
        {
          "name": "prices",
          "version": "[digest]"
        },
        {
          "name": "shipping",
          "version": "[digest]"
        },
        {
          "name": "shop",
          "version": "[digest]"
        },
        {
          "name": "tax",
          "version": "[digest]"
        }
      ],
      "service": "Battery line",
      "shipping_option_id": "halcyon.battery_line",
      "shipping_snapshot_id": "ev_7",
      "sla": {
        "days_max": 12,
        "days_min": 7,
        "guaranteed": false
      },
      "tax_snapshot_id": "ev_11",
      "tax_summary": {
        "confidence": "high",
        "incoterm": "DDP",
        "method": "low_value_flat_duty",
        "notes": [
          "Up to 150 euros the duty is 3 euros for each tariff code in the parcel, and the seller takes the VAT of the destination (IOSS).",
          "Duties, taxes and fees are paid with the order (DDP)."
        ]
      },
      "total_snapshot_id": "ev_15"
    }
    "#);
}

/// A16: from the record of the draft order everything that it rests on can be reached, and each link carries the
/// hash of the leaf that it means.
#[tokio::test]
async fn the_record_of_a_draft_order_reaches_all_five() {
    let world = World::new();
    let bundled = Order::new().bundle(&world).await;
    let draft = bundled.draft(&world).await;
    let mut reached: Vec<(String, Value)> = Vec::new();
    let mut open = vec![evidence(&draft)];
    while let Some(id) = open.pop() {
        let record = world.record(&id).await;
        for link in record["links"].as_array().into_iter().flatten() {
            let found = (
                link["id"].as_str().unwrap().to_owned(),
                link["leaf"].clone(),
            );
            if !reached.contains(&found) {
                assert_eq!(found.1, json!(world.leaf_of(&found.0).await), "{id}");
                open.push(found.0.clone());
                reached.push(found);
            }
        }
    }
    let prepared = &bundled.prepared;
    let expected = [
        &prepared.quote,
        &prepared.shipping,
        &prepared.tax,
        &prepared.compliance,
        &bundled.total,
        &bundled.bundle,
    ];
    assert_eq!(reached.len(), expected.len(), "{reached:#?}");
    for id in expected {
        assert!(reached.iter().any(|(reached, _)| reached == id), "{id}");
    }
    let record = world.record(&evidence(&draft)).await;
    let rules: Vec<&String> = record["rules"].as_object().unwrap().keys().collect();
    assert_eq!(
        rules,
        [
            "addresses",
            "compliance",
            "fx",
            "prices",
            "shipping",
            "shop",
            "tax"
        ]
    );
}

/// A8: a total is valid for a minute, and never longer than the answers that it rests on.
#[tokio::test]
async fn a_total_holds_no_longer_than_its_parts() {
    let world = World::new();
    let prepared = Order::new().prepare(&world).await;
    let total = prepared.total(&world).await;
    assert_eq!(total["ttl_seconds"], 60);
    assert_eq!(ok(&total)["expires_at"], "2026-11-16T12:01:00Z");
    world.advance_seconds(270);
    let total = prepared.total(&world).await;
    assert_eq!(
        total["ttl_seconds"], 30,
        "the quote was made 270 seconds ago"
    );
    assert_eq!(ok(&total)["expires_at"], "2026-11-16T12:05:00Z");
}

/// A8: an answer whose TTL is over is refused, part by part, with its old and its current amounts.
#[tokio::test]
async fn a_total_from_expired_parts_is_refused() {
    let world = World::new();
    let prepared = Order::new().prepare(&world).await;
    let before = ok(&prepared.total(&world).await)["breakdown"].clone();
    world.advance_seconds(300);
    let refused = prepared.total(&world).await;
    let expected = json!({
        "field": "/quote_snapshot_id",
        "expired": ["quote", "shipping", "tax"],
        "moved": [],
        "old": before,
        "new": before,
    });
    check_error(&refused, "PRICE_CHANGED", &expected);
}

/// Every answer that a total rests on has to be about this cart, and the answers have to agree with each other.
#[tokio::test]
async fn a_total_takes_only_what_fits() {
    let world = World::new();
    let order = Order::new();
    let prepared = order.prepare(&world).await;
    let other = Order::of("SKU-0001-01", 3).prepare(&world).await;
    let abroad = Order {
        destination: json!({"country": "FR"}),
        ..order.clone()
    };
    let abroad = abroad.prepare(&world).await;
    let dollars = Order {
        currency: "USD",
        ..order.clone()
    };
    let dollars = dollars.prepare(&world).await;
    let check = async |name: &str, id: &str, code: &str, details: Value| {
        let mut arguments = json!({
            "cart_id": prepared.cart_id,
            "quote_snapshot_id": prepared.quote,
            "tax_snapshot_id": prepared.tax,
            "compliance_snapshot_id": prepared.compliance,
        });
        arguments[name] = json!(id);
        let reply = world.call("checkout.compute_total", arguments).await;
        check_error(&reply, code, &details);
        assert_eq!(
            reply["error"]["details"]["field"],
            format!("/{name}"),
            "{reply:#}"
        );
    };
    let (quote, tax) = ("quote_snapshot_id", "tax_snapshot_id");
    let compliance = "compliance_snapshot_id";
    // For other items, in another currency, for another place.
    check(
        quote,
        &other.quote,
        "INVALID_ARGUMENT",
        json!({"part": "quote"}),
    )
    .await;
    check(tax, &other.tax, "INVALID_ARGUMENT", json!({"part": "tax"})).await;
    check(
        compliance,
        &other.compliance,
        "INVALID_ARGUMENT",
        json!({"part": "compliance"}),
    )
    .await;
    let found = json!({"part": "quote", "wanted": "EUR", "found": "USD"});
    check(quote, &dollars.quote, "INVALID_ARGUMENT", found).await;
    let found = json!({"part": "tax", "wanted": "EUR", "found": "USD"});
    check(tax, &dollars.tax, "INVALID_ARGUMENT", found).await;
    let found = json!({"part": "tax", "wanted": "DE", "found": "FR"});
    check(tax, &abroad.tax, "INVALID_ARGUMENT", found).await;
    let found = json!({"part": "compliance", "wanted": "DE", "found": "FR"});
    check(compliance, &abroad.compliance, "INVALID_ARGUMENT", found).await;
    // Of the wrong tool, an unknown one, another user's.
    check(quote, &prepared.tax, "INVALID_ARGUMENT", json!({})).await;
    check(quote, "ev_forged", "NOT_FOUND", json!({})).await;
    let foreign = order.clone().by("u_2").prepare(&world).await;
    check(quote, &foreign.quote, "NOT_FOUND", json!({})).await;
    check(tax, &foreign.tax, "NOT_FOUND", json!({})).await;
    check(compliance, &foreign.compliance, "NOT_FOUND", json!({})).await;
    ok(&prepared.total(&world).await);
}

/// An estimate of duties is for one value and one shipping option; it does not fit others.
#[tokio::test]
async fn duties_belong_to_the_quote_and_the_way() {
    let world = World::new();
    let order = Order::of("SKU-0003-01", 1);
    let mut prepared = order.prepare(&world).await;
    let quote = order.quote(&world).await;
    let shipping = order.shipping(&world).await;
    let options = ok(&shipping)["options"].as_array().unwrap();
    let chosen = order.option(&shipping);
    let another = options
        .iter()
        .rev()
        .find(|it| it["option_id"] != chosen)
        .unwrap();
    let base = json!({
        "quote_snapshot_id": evidence(&quote),
        "destination": order.destination,
        "incoterm": "DDP",
    });
    // Without shipping, and with another option.
    let without = world
        .call("tax.estimate_duties_and_taxes", base.clone())
        .await;
    let mut of_another = base;
    of_another["shipping_snapshot_id"] = json!(evidence(&shipping));
    of_another["shipping_option_id"] = another["option_id"].clone();
    let of_another = world
        .call("tax.estimate_duties_and_taxes", of_another)
        .await;
    for (tax, found) in [
        (without, json!("none")),
        (of_another, another["option_id"].clone()),
    ] {
        ok(&tax);
        prepared.tax = evidence(&tax);
        let refused = prepared.total(&world).await;
        let expected = json!({
            "field": "/tax_snapshot_id",
            "wanted": chosen,
            "found": found,
        });
        check_error(&refused, "INVALID_ARGUMENT", &expected);
    }
}

/// An answer that names a cart is valid for that cart only.
#[tokio::test]
async fn an_answer_for_one_cart_is_none_for_another() {
    let world = World::new();
    let order = Order::new();
    let mut prepared = order.prepare(&world).await;
    let quote =
        |cart_id: String| json!({"items": order.items, "currency": "EUR", "cart_id": cart_id});
    let tool = "pricing.get_realtime_quote";
    let own = world.call(tool, quote(prepared.cart_id.clone())).await;
    let other = world.call(tool, quote(order.cart(&world).await)).await;
    prepared.quote = evidence(&own);
    ok(&prepared.total(&world).await);
    prepared.quote = evidence(&other);
    let refused = prepared.total(&world).await;
    check_error(
        &refused,
        "INVALID_ARGUMENT",
        &json!({"field": "/quote_snapshot_id"}),
    );
    // The same holds for the way.
    let shipping = json!({
        "items": order.items,
        "destination": order.destination,
        "currency": "EUR",
        "cart_id": order.cart(&world).await,
    });
    let shipping = world.call("shipping.quote_options", shipping).await;
    let refused = order.select(&world, &prepared.cart_id, &shipping).await;
    check_error(
        &refused,
        "INVALID_ARGUMENT",
        &json!({"field": "/shipping_snapshot_id"}),
    );
}

#[tokio::test]
async fn what_a_cart_needs_before_a_total() {
    let world = World::new();
    let order = Order::new();
    let mut prepared = order.prepare(&world).await;
    let chosen = prepared.cart_id.clone();
    prepared.cart_id = order.cart(&world).await;
    let refused = prepared.total(&world).await;
    check_error(&refused, "INVALID_ARGUMENT", &json!({"field": "/cart_id"}));
    let empty = world.call("cart.create", json!({})).await;
    prepared.cart_id = ok(&empty)["cart_id"].as_str().unwrap().to_owned();
    let refused = prepared.total(&world).await;
    check_error(&refused, "INVALID_ARGUMENT", &json!({"field": "/cart_id"}));
    prepared.cart_id = "cart_nobody".to_owned();
    let refused = prepared.total(&world).await;
    check_error(&refused, "NOT_FOUND", &json!({"field": "/cart_id"}));
    // A change of the items drops the way that was chosen.
    prepared.cart_id = chosen;
    ok(&prepared.total(&world).await);
    let more = json!({"cart_id": prepared.cart_id, "sku": "SKU-0001-01"});
    let more = world.call("cart.add_item", more).await;
    assert_eq!(ok(&more)["shipping"], Value::Null);
    let refused = prepared.total(&world).await;
    check_error(&refused, "INVALID_ARGUMENT", &json!({"field": "/cart_id"}));
}

#[tokio::test]
async fn a_way_is_one_of_those_that_were_offered_for_these_items() {
    let world = World::new();
    let order = Order::new();
    let cart_id = order.cart(&world).await;
    let shipping = order.shipping(&world).await;
    let select = |id: String, option: &str| json!({"cart_id": cart_id, "shipping_snapshot_id": id, "shipping_option_id": option});
    let tool = "checkout.select_shipping_option";
    let unknown = world
        .call(tool, select(evidence(&shipping), "pigeon"))
        .await;
    check_error(
        &unknown,
        "NOT_FOUND",
        &json!({"field": "/shipping_option_id"}),
    );
    let option = order.option(&shipping);
    let forged = world
        .call(tool, select("ev_forged".to_owned(), &option))
        .await;
    check_error(
        &forged,
        "NOT_FOUND",
        &json!({"field": "/shipping_snapshot_id"}),
    );
    let others = Order::of("SKU-0001-01", 1).shipping(&world).await;
    let others = world.call(tool, select(evidence(&others), &option)).await;
    check_error(
        &others,
        "INVALID_ARGUMENT",
        &json!({"field": "/shipping_snapshot_id"}),
    );
    world.advance_seconds(300);
    let stale = world.call(tool, select(evidence(&shipping), &option)).await;
    let expected = json!({"field": "/shipping_snapshot_id", "expired": ["shipping"]});
    check_error(&stale, "PRICE_CHANGED", &expected);
}

/// A14: a bundle without one of the five, with two of one, or with another total cannot be the evidence of an order.
#[tokio::test]
async fn a_bundle_names_each_of_the_five_once() {
    let world = World::new();
    let order = Order::new();
    let prepared = order.prepare(&world).await;
    let total = evidence(&prepared.total(&world).await);
    let all = [
        ("quote", prepared.quote.clone()),
        ("shipping", prepared.shipping.clone()),
        ("tax", prepared.tax.clone()),
        ("compliance", prepared.compliance.clone()),
        ("total", total),
    ];
    let draft = async |ids: Vec<String>| {
        let bundle = json!({"snapshot_ids": ids});
        let bundle = world.call("evidence.create_snapshot", bundle).await;
        ok(&bundle);
        let draft = json!({
            "cart_id": prepared.cart_id,
            "evidence_snapshot_id": evidence(&bundle),
        });
        world.call("checkout.create_draft_order", draft).await
    };
    let second = order.prepare(&world).await;
    let second_total = evidence(&second.total(&world).await);
    let seconds = [
        second.quote,
        second.shipping,
        second.tax,
        second.compliance,
        second_total,
    ];
    for (at, (part, _)) in all.iter().enumerate() {
        let expected = json!({"field": "/evidence_snapshot_id", "part": part});
        let mut ids: Vec<String> = all.iter().map(|(_, id)| id.clone()).collect();
        ids.remove(at);
        check_error(&draft(ids.clone()).await, "INVALID_ARGUMENT", &expected);
        ids.push(all[at].1.clone());
        ids.push(seconds[at].clone());
        check_error(&draft(ids.clone()).await, "INVALID_ARGUMENT", &expected);
        // One that is fresh, of the same user and items, and not the one that the total rests on.
        ids.remove(4);
        let exchanged = draft(ids).await;
        check_error(
            &exchanged,
            "INVALID_ARGUMENT",
            &json!({"field": "/evidence_snapshot_id"}),
        );
    }
    let ids = all.iter().map(|(_, id)| id.clone());
    ok(&draft(ids.collect()).await);
}

/// Forged, another user's, of another tool, of a dry run, of another cart: each is refused with its field.
#[tokio::test]
async fn no_order_rests_on_what_is_not_its_own() {
    let world = World::new();
    let bundled = Order::new().bundle(&world).await;
    let cart_id = bundled.prepared.cart_id.clone();
    let draft = async |cart_id: &str, id: &str| {
        let arguments = json!({"cart_id": cart_id, "evidence_snapshot_id": id});
        world.call("checkout.create_draft_order", arguments).await
    };
    let field = json!({"field": "/evidence_snapshot_id"});
    check_error(&draft(&cart_id, "ev_forged").await, "NOT_FOUND", &field);
    check_error(&draft(&cart_id, "0.01").await, "INVALID_ARGUMENT", &field);
    let foreign = Order::new().by("u_2").bundle(&world).await;
    check_error(&draft(&cart_id, &foreign.bundle).await, "NOT_FOUND", &field);
    check_error(
        &draft(&cart_id, &bundled.total).await,
        "INVALID_ARGUMENT",
        &field,
    );
    let other = Order::new().bundle(&world).await;
    check_error(
        &draft(&cart_id, &other.bundle).await,
        "INVALID_ARGUMENT",
        &field,
    );
    let ids = json!({"snapshot_ids": [bundled.prepared.quote, bundled.total]});
    let dry = json!({"dry_run": true});
    let dry = world
        .call_as("u_1", "evidence.create_snapshot", ids, dry)
        .await;
    check_error(
        &draft(&cart_id, &evidence(&dry)).await,
        "INVALID_ARGUMENT",
        &field,
    );
    let nobodys = draft("cart_nobody", &bundled.bundle).await;
    check_error(&nobodys, "NOT_FOUND", &json!({"field": "/cart_id"}));
    let foreign_cart = draft(&foreign.prepared.cart_id, &bundled.bundle).await;
    check_error(&foreign_cart, "NOT_FOUND", &json!({"field": "/cart_id"}));
    ok(&draft(&cart_id, &bundled.bundle).await);
}

/// A8: a total is valid for a minute. After that the order is refused, with the old and the current amounts.
#[tokio::test]
async fn an_order_from_an_expired_total_is_refused() {
    let world = World::new();
    let bundled = Order::new().bundle(&world).await;
    world.advance_seconds(60);
    let refused = bundled.draft(&world).await;
    let same = &bundled.total_data["breakdown"];
    let expected = json!({
        "field": "/evidence_snapshot_id",
        "expired": ["total"],
        "moved": [],
        "old": same,
        "new": same,
        "retryable": false,
    });
    check_error(&refused, "PRICE_CHANGED", &expected);
    // Quoted again and confirmed, it goes through.
    ok(&Order::new().draft(&world).await);
}

/// The cart has changed since its total was computed: old and new are shown.
#[tokio::test]
async fn an_order_of_a_cart_that_moved_is_refused() {
    let world = World::new();
    let order = Order::new();
    let bundled = order.bundle(&world).await;
    let cart_id = &bundled.prepared.cart_id;
    let one = json!({"cart_id": cart_id, "sku": "SKU-0001-01", "quantity": 1});
    ok(&world.call("cart.update_quantity", one).await);
    let refused = bundled.draft(&world).await;
    let old = &bundled.total_data["breakdown"];
    let expected = json!({"expired": [], "moved": ["cart"], "old": old, "new": null});
    check_error(&refused, "PRICE_CHANGED", &expected);
    // With a shipping option for the current items, the refusal has the new total.
    let now = Order::of("SKU-0001-01", 1);
    let shipping = now.shipping(&world).await;
    ok(&now.select(&world, cart_id, &shipping).await);
    let refused = bundled.draft(&world).await;
    check_error(
        &refused,
        "PRICE_CHANGED",
        &json!({"moved": ["cart"], "old": old}),
    );
    let new = &refused["error"]["details"]["new"];
    assert_eq!(new["items"]["amount"], 3579, "{refused:#}");
    // Choosing again is a change too, even of the same: the total was for another version.
    let again = order.bundle(&world).await;
    let shipping = order.shipping(&world).await;
    ok(&order
        .select(&world, &again.prepared.cart_id, &shipping)
        .await);
    let refused = again.draft(&world).await;
    check_error(&refused, "PRICE_CHANGED", &json!({"moved": ["cart"]}));
}

/// The flash sale of the watch ends at 12:02, while quote and total are still valid: no order gets its price.
#[tokio::test]
async fn an_order_after_the_end_of_a_sale_is_refused() {
    let world = World::new();
    world.advance_seconds(100);
    let bundled = Order::of("SKU-0008-01", 1).bundle(&world).await;
    world.advance_seconds(20);
    let refused = bundled.draft(&world).await;
    let expected = json!({
        "expired": [],
        "moved": ["quote", "tax"],
        "old": bundled.total_data["breakdown"],
    });
    check_error(&refused, "PRICE_CHANGED", &expected);
    let details = &refused["error"]["details"];
    assert!(
        details["new"]["total"]["amount"].as_i64() > details["old"]["total"]["amount"].as_i64()
    );
    assert_eq!(details["prices"][0]["sku"], "SKU-0008-01");
    assert_eq!(details["prices"][0]["old"], details["old"]["items"]);
    assert_eq!(details["prices"][0]["new"], details["new"]["items"]);
}

/// The operator has put another price list in force.
#[tokio::test]
async fn an_order_at_yesterdays_list_price_is_refused() {
    let world = World::new();
    let bundled = Order::new().bundle(&world).await;
    let prices = concat!(
        include_str!("../../rules/prices/2026-11-01.toml"),
        "\n[[overrides]]\nsku = \"SKU-0001-01\"\nprice = 4999\n"
    );
    let changed = world.with_rules("prices", prices.to_owned());
    let refused = bundled.draft(&changed).await;
    check_error(
        &refused,
        "PRICE_CHANGED",
        &json!({"expired": [], "moved": ["quote", "tax"]}),
    );
    ok(&bundled.draft(&world).await);
}

/// If the list price of an item falls, the order is refused as well: the user is shown the better price.
#[tokio::test]
async fn a_price_that_fell_has_moved_too() {
    let world = World::new();
    let bundled = Order::new().bundle(&world).await;
    let prices = concat!(
        include_str!("../../rules/prices/2026-11-01.toml"),
        "\n[[overrides]]\nsku = \"SKU-0001-01\"\nprice = 2999\n"
    );
    let refused = bundled
        .draft(&world.with_rules("prices", prices.to_owned()))
        .await;
    check_error(
        &refused,
        "PRICE_CHANGED",
        &json!({"moved": ["quote", "tax"]}),
    );
}

/// An item that may not be sent there gets no total and no order, and the reply names the remedies.
#[tokio::test]
async fn what_is_blocked_is_refused_with_mitigations() {
    let world = World::new();
    let order = Order {
        destination: json!({"country": "JP"}),
        ..Order::new()
    };
    let prepared = order.prepare(&world).await;
    let refused = prepared.total(&world).await;
    check_error(
        &refused,
        "COMPLIANCE_BLOCKED",
        &json!({"field": "/compliance_snapshot_id", "skus": ["SKU-0001-01"]}),
    );
    let details = &refused["error"]["details"];
    let findings = details["findings"].as_array().unwrap();
    assert!(!findings.is_empty());
    for finding in findings {
        assert_eq!(finding["sku"], "SKU-0001-01");
        assert!(finding["rule"].is_string() && finding["message"].is_string());
        for mitigation in finding["mitigations"].as_array().into_iter().flatten() {
            let all = details["mitigations"].as_array().unwrap();
            assert!(all.contains(mitigation), "{mitigation} in {details:#}");
        }
    }
    assert!(!details["mitigations"].as_array().unwrap().is_empty());
    assert!(
        details["ruleset_version"]
            .as_str()
            .unwrap()
            .starts_with("sha256:")
    );
}

/// A check is valid for an hour; a rule that came into force meanwhile blocks nevertheless.
#[tokio::test]
async fn a_rule_that_came_after_the_check_blocks() {
    let world = World::new();
    let bundled = Order::new().bundle(&world).await;
    let rules = concat!(
        include_str!("../../rules/compliance/2026-11-01.toml"),
        r#"
[[rules]]
id = "de.recall"
categories = ["electronics/power/power_bank"]
destinations = ["DE"]
severity = "block"
message = { en = "Recalled.", zh = "已召回。" }
mitigations = [{ who = "buyer", en = "choose another one", zh = "选择其他商品" }]
source = "a test"
date = "2026-11-16"
"#
    );
    let changed = world.with_rules("compliance", rules.to_owned());
    let refused = bundled.draft(&changed).await;
    check_error(
        &refused,
        "COMPLIANCE_BLOCKED",
        &json!({"field": "/evidence_snapshot_id", "skus": ["SKU-0001-01"]}),
    );
    let mitigations = &refused["error"]["details"]["mitigations"];
    assert!(
        mitigations.to_string().contains("choose another one"),
        "{refused:#}"
    );
    ok(&bundled.draft(&world).await);
}

/// The white shirts are out of stock; alternatives are named.
#[tokio::test]
async fn what_is_out_of_stock_comes_with_alternatives() {
    let world = World::new();
    let refused = Order::of("SKU-0003-03", 1).draft(&world).await;
    let expected = json!({
        "field": "/cart_id",
        "sku": "SKU-0003-03",
        "requested": 1,
        "available": 0,
    });
    check_error(&refused, "OUT_OF_STOCK", &expected);
    let alternatives = refused["error"]["details"]["alternatives"]
        .as_array()
        .unwrap();
    let first = json!({
        "sku": "SKU-0003-01",
        "offer_id": "OFR-0003",
        "title": "Harbour cotton T-shirt",
        "available": 500,
    });
    assert_eq!(alternatives[0], first);
    assert!(alternatives.len() <= 5);
    // More than there are of something that there is.
    let refused = Order::of("SKU-0002-02", 4).draft(&world).await;
    let expected = json!({"sku": "SKU-0002-02", "requested": 4, "available": 3});
    check_error(&refused, "OUT_OF_STOCK", &expected);
}

/// The cart stays as it is, and can be ordered again with new evidence.
#[tokio::test]
async fn the_cart_stays() {
    let world = World::new();
    let bundled = Order::new().bundle(&world).await;
    let cart = json!({"cart_id": bundled.prepared.cart_id});
    let before = world.call("cart.get", cart.clone()).await;
    ok(&bundled.draft(&world).await);
    let after = world.call("cart.get", cart).await;
    assert_eq!(ok(&before), ok(&after));
}

/// Charges on delivery are not part of the total, and the buyer has to acknowledge them.
#[tokio::test]
async fn duties_on_delivery_are_shown_and_acknowledged() {
    let world = World::new();
    let order = Order {
        incoterm: "DAP",
        ..Order::of("SKU-0001-01", 10)
    };
    let draft = order.draft(&world).await;
    let costs = &ok(&draft)["pricing_breakdown"];
    let amount = |part: &str| costs[part]["amount"].as_i64().unwrap();
    assert!(amount("due_on_delivery") > 0, "{costs:#}");
    let parts = ["items", "shipping", "duty", "tax", "fees"].map(amount);
    assert_eq!(
        amount("total") + amount("due_on_delivery"),
        parts.iter().sum::<i64>()
    );
    let policies = &draft["data"]["policy_ack_required"];
    assert_eq!(policies[0]["policy"], "charges_on_delivery", "{policies:#}");
    let kinds: Vec<&str> = draft["data"]["confirmation_items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["kind"].as_str().unwrap())
        .collect();
    assert!(kinds.contains(&"tax_uncertainty"), "{kinds:?}");
}

/// The same order for people, in two languages, in all of its states.
#[tokio::test]
async fn a_summary_speaks_the_language_of_the_call() {
    let world = World::new();
    let order = Order {
        items: json!([{"sku": "SKU-0011-01", "quantity": 1}]),
        ..Order::new()
    };
    let draft = order.draft(&world).await;
    let id = ok(&draft)["draft_order_id"].clone();
    let tool = "checkout.get_draft_order_summary";
    let arguments = json!({"draft_order_id": id});
    let english = world.call(tool, arguments.clone()).await;
    assert_eq!(ok(&english)["state"], "open");
    assert_eq!(english["data"]["draft_order"], draft["data"]);
    let chinese = json!({"locale": "zh-CN"});
    let chinese = world.call_as("u_1", tool, arguments.clone(), chinese).await;
    let spoken = |reply: &Value| {
        let data = ok(reply);
        let acks = data["policy_ack_required"].as_array().unwrap().iter();
        let acks: Vec<Value> = acks.map(|ack| ack["text"].clone()).collect();
        json!({"text": data["text"], "acks": acks})
    };
    insta::assert_json_snapshot!(json!([spoken(&english), spoken(&chinese)]), @r#"
    [
      {
        "acks": [
          "For these items I agree to this: keep it to a quantity for personal use.",
          "I cannot send back: Mountain green tea 100 g."
        ],
        "text": [
          "1 × Mountain green tea 100 g: EUR 17.22",
          "Meridian Economy, 5 to 8 working days: EUR 16.45",
          "Duty EUR 3.00, tax EUR 2.57, fees EUR 0.00",
          "To pay now: EUR 39.24",
          "Open until 2026-11-16T12:30:00Z; nothing is held yet."
        ]
      },
      {
        "acks": [
          "对于这些商品，我同意：限于个人自用数量。",
          "以下商品不可退货：高山绿茶 100 克。"
        ],
        "text": [
          "1 × 高山绿茶 100 克: EUR 17.22",
          "Meridian Economy，5 至 8 个工作日：EUR 16.45",
          "关税 EUR 3.00，税款 EUR 2.57，费用 EUR 0.00",
          "现在支付：EUR 39.24",
          "有效期至 2026-11-16T12:30:00Z；尚未锁定价格和库存。"
        ]
      }
    ]
    "#);
    world.advance_seconds(1_800);
    let over = world.call(tool, arguments).await;
    assert_eq!(ok(&over)["state"], "expired");
    let foreign = json!({"draft_order_id": id});
    let foreign = world.call_as("u_2", tool, foreign, json!({})).await;
    check_error(&foreign, "NOT_FOUND", &json!({"field": "/draft_order_id"}));
}

/// An order goes to an address of the user, and only to the destination of the shipping options.
#[tokio::test]
async fn an_address_is_the_users_own_and_where_it_was_asked_for() {
    let world = World::new();
    let order = Order::new();
    let cart_id = order.cart(&world).await;
    let add = async |user: &str, country: &str, city: &str, code: &str, id: Option<&Value>| {
        let mut arguments = json!({"address": {
            "recipient": "Erika Mustermann",
            "lines": ["Heidestraße 17"],
            "city": city,
            "postal_code": code,
            "country": country,
        }});
        if let Some(id) = id {
            arguments["address_id"] = id.clone();
        }
        let kept = world
            .call_as(user, "identity.add_or_update_address", arguments, json!({}))
            .await;
        ok(&kept)["address_id"].clone()
    };
    let berlin = add("u_1", "DE", "Berlin", "10115", None).await;
    let munich = add("u_1", "DE", "München", "80331", None).await;
    let vienna = add("u_1", "AT", "Wien", "1010", None).await;
    let foreign = add("u_2", "DE", "Berlin", "10115", None).await;
    let shipping = order.shipping(&world).await;
    let anywhere = Order {
        destination: json!({"country": "DE"}),
        ..order.clone()
    };
    let anywhere = anywhere.shipping(&world).await;
    let select = async |shipping: &Value, address_id: &Value| {
        let arguments = json!({
            "cart_id": cart_id,
            "shipping_snapshot_id": evidence(shipping),
            "shipping_option_id": order.option(shipping),
            "address_id": address_id,
        });
        world
            .call("checkout.select_shipping_option", arguments)
            .await
    };
    let differs = |part: &str| json!({"field": "/address_id", "differs": part});
    check_error(
        &select(&shipping, &vienna).await,
        "ADDRESS_INVALID",
        &differs("country"),
    );
    check_error(
        &select(&shipping, &munich).await,
        "ADDRESS_INVALID",
        &differs("postal_code"),
    );
    check_error(
        &select(&anywhere, &berlin).await,
        "ADDRESS_INVALID",
        &differs("postal_code"),
    );
    let not_found = json!({"field": "/address_id"});
    check_error(&select(&shipping, &foreign).await, "NOT_FOUND", &not_found);
    let chosen = select(&shipping, &berlin).await;
    assert_eq!(ok(&chosen)["shipping"]["address_id"], berlin);
    // It becomes part of the order, unless the user has moved meanwhile.
    let quote = order.quote(&world).await;
    let prepared = Prepared {
        quote: evidence(&quote),
        shipping: evidence(&shipping),
        tax: evidence(&order.tax(&world, &quote, &shipping).await),
        compliance: evidence(&order.compliance(&world).await),
        cart_id: cart_id.clone(),
        order: order.clone(),
    };
    let total = prepared.total(&world).await;
    let bundled = prepared.bundle(&world, &total).await;
    let draft = bundled.draft(&world).await;
    assert_eq!(ok(&draft)["address_id"], berlin);
    add("u_1", "DE", "Hamburg", "20095", Some(&berlin)).await;
    let moved = json!({"idempotency_key": "after"});
    let tool = "checkout.create_draft_order";
    let moved = world.call_as("u_1", tool, bundled.arguments(), moved).await;
    let expected = json!({"field": "/cart_id", "differs": "postal_code"});
    check_error(&moved, "ADDRESS_INVALID", &expected);
    // An order that was made before does not follow the user's new address: no check was made for it.
    let order = json!({"draft_order_id": ok(&draft)["draft_order_id"]});
    let locked = world.call("checkout.lock_price_and_stock", order).await;
    let expected = json!({"field": "/draft_order_id"});
    check_error(&locked, "ADDRESS_INVALID", &expected);
}

/// A18: the same cart and evidence are the same order, whatever key they are sent with.
#[tokio::test]
async fn one_bundle_of_evidence_is_one_order() {
    let world = World::new();
    let bundled = Order::new().bundle(&world).await;
    let first = bundled.draft(&world).await;
    for key in [
        json!({}),
        json!({"idempotency_key": "k1"}),
        json!({"idempotency_key": "k2"}),
    ] {
        let tool = "checkout.create_draft_order";
        let again = world.call_as("u_1", tool, bundled.arguments(), key).await;
        assert_eq!(ok(&again), ok(&first));
    }
}

/// A bundle for another purpose makes no order.
#[tokio::test]
async fn a_bundle_for_a_review_is_no_order() {
    let world = World::new();
    let bundled = Order::new().bundle(&world).await;
    let prepared = &bundled.prepared;
    let ids = json!([
        prepared.quote,
        prepared.shipping,
        prepared.tax,
        prepared.compliance,
        bundled.total
    ]);
    for purpose in ["review", "dispute"] {
        let bundle = json!({"snapshot_ids": ids, "purpose": purpose});
        let bundle = world.call("evidence.create_snapshot", bundle).await;
        let draft = json!({
            "cart_id": prepared.cart_id,
            "evidence_snapshot_id": evidence(&bundle),
        });
        let refused = world.call("checkout.create_draft_order", draft).await;
        let field = json!({"field": "/evidence_snapshot_id"});
        check_error(&refused, "INVALID_ARGUMENT", &field);
    }
    ok(&bundled.draft(&world).await);
}

/// A15: if a rule file has changed since the check, the order names both versions: that of the answer, and that of the
/// repeated check.
#[tokio::test]
async fn an_order_names_the_rules_of_both_checks() {
    let world = World::new();
    let bundled = Order::new().bundle(&world).await;
    let edited = include_str!("../../rules/compliance/2026-11-01.toml").replacen('#', "# ", 1);
    let changed = world.with_rules("compliance", edited);
    let draft = bundled.draft(&changed).await;
    let now = &ok(&draft)["compliance_summary"]["ruleset_version"];
    let before = &world.record(&bundled.prepared.compliance).await["rules"]["compliance"];
    assert_ne!(now, before);
    let rules = draft["data"]["rules"].as_array().unwrap().iter();
    let rules = rules.filter(|rule| rule["name"] == "compliance");
    let versions: Vec<&Value> = rules.map(|rule| &rule["version"]).collect();
    assert_eq!(versions.len(), 2, "{versions:?}");
    assert!(versions.contains(&now) && versions.contains(&before));
}
