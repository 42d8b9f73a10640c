//! Draft orders as ACP and UCP checkouts: validated against their schemas, and added up.

use countersign_commerce::destination::Destination;
use countersign_commerce::interop::{
    Reader, SUMMARY_ARGUMENT, SUMMARY_TOOL, Session, SessionLine, SessionShipping, SessionState,
    acp, ucp,
};
use countersign_commerce::money::Money;
use insta::assert_snapshot;
use jsonschema::Validator;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::flow::Order;
use crate::world::{World, ok};

const ACP: &str = include_str!("../interop/schemas/acp-2026-04-17.checkout-session.schema.json");
const UCP: &str = include_str!("../interop/schemas/ucp-2026-04-08.checkout.schema.json");

/// A page on which the buyer goes on.
const PAGE: Reader<'static> = Reader {
    locale: None,
    continue_url: Some("https://shop.example.com/orders/order_1"),
};

fn validator(schema: &str) -> Validator {
    let schema: Value = serde_json::from_str(schema).unwrap();
    let options = jsonschema::options().should_validate_formats(true);
    options.build(&schema).unwrap()
}

/// The part of duty, tax and fees that is paid with the order.
#[derive(Debug, Clone, Copy)]
enum Paid {
    All,
    Nothing,
    Some(i64),
}

fn session(state: SessionState, currency: &str, paid: Paid) -> Session {
    let money = |amount| Money::new(amount, currency);
    let line = |sku: &str, quantity: u32, price: i64| SessionLine {
        sku: sku.to_owned(),
        offer_id: format!("offer_{sku}"),
        title: format!("Thing {sku}"),
        quantity,
        unit_price: money(price),
        line_total: money(price * i64::from(quantity)),
    };
    // 2 × 1,999 + 1 × 501 = 4,499 for the things; 950 for their way; 120 + 1,058 + 600 = 1,778 besides.
    let due = match paid {
        Paid::All => 0,
        Paid::Nothing => 1_778,
        Paid::Some(paid) => 1_778 - paid,
    };
    let is_held = matches!(state, SessionState::Locked | SessionState::Payable);
    Session {
        id: "order_1".to_owned(),
        state,
        lines: vec![line("SKU-1", 2, 1_999), line("SKU-2", 1, 501)],
        shipping: SessionShipping {
            option_id: "post_standard".to_owned(),
            carrier: "Post".to_owned(),
            service: "Standard".to_owned(),
            days_min: 5,
            days_max: 8,
            price: money(950),
        },
        destination: Destination {
            country: "de".to_owned(),
            region: None,
            postal_code: Some("10115".to_owned()),
        },
        duty: money(120),
        tax: money(1_058),
        fees: money(600),
        total: money(4_499 + 950 + 1_778 - due),
        due_on_delivery: money(due),
        acknowledge: vec!["I cannot send back: Thing SKU-1.".to_owned()],
        confirm: vec![(
            "customs_fields".to_owned(),
            "These goods are declared.".to_owned(),
        )],
        created_at: "2026-11-16T12:00:00Z".parse().unwrap(),
        expires_at: "2026-11-16T12:30:00Z".parse().unwrap(),
        held_until: is_held.then(|| "2026-11-16T12:15:00Z".parse().unwrap()),
        quote_snapshot_id: "ev_1".to_owned(),
        evidence_snapshot_id: "ev_2".to_owned(),
    }
}

/// Checks that both pages are valid, and returns their status and amounts.
#[track_caller]
fn check(session: &Session, reader: &Reader<'_>) -> String {
    let (acp, ucp) = (
        acp::session(session, reader).unwrap(),
        ucp::checkout(session, reader).unwrap(),
    );
    assert_valid(ACP, &acp);
    assert_valid(UCP, &ucp);
    assert_eq!(sum(&acp), total(&acp), "{acp:#}");
    assert_eq!(sum(&ucp), total(&ucp), "{ucp:#}");
    assert_eq!(total(&acp), session.total.amount);
    assert_eq!(total(&ucp), session.total.amount);
    let told = |page: &Value| {
        let totals = page["totals"].as_array().unwrap().iter();
        let totals = totals.map(|it| format!("{} {}", it["type"].as_str().unwrap(), it["amount"]));
        let messages = page["messages"].as_array().unwrap().iter();
        let messages = messages.map(|it| it["code"].as_str().unwrap_or("info").to_owned());
        let (totals, messages): (Vec<_>, Vec<_>) = (totals.collect(), messages.collect());
        format!(
            "{} {}: {}; {}",
            page["status"].as_str().unwrap(),
            page["currency"].as_str().unwrap(),
            totals.join(", "),
            messages.join(", ")
        )
    };
    format!("{}\n{}", told(&acp), told(&ucp))
}

#[track_caller]
fn assert_valid(schema: &str, page: &Value) {
    let validator = validator(schema);
    let errors: Vec<String> = validator
        .iter_errors(page)
        .map(|error| format!("{} at {}", error, error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}\n{page:#}");
}

fn total(page: &Value) -> i64 {
    let totals = page["totals"].as_array().unwrap();
    let found: Vec<&Value> = totals.iter().filter(|it| it["type"] == "total").collect();
    assert_eq!(found.len(), 1, "{page:#}");
    found[0]["amount"].as_i64().unwrap()
}

/// The sum of the parts; the amount before discounts repeats the subtotal.
fn sum(page: &Value) -> i64 {
    let totals = page["totals"].as_array().unwrap().iter();
    let is_part = |it: &&Value| it["type"] != "total" && it["type"] != "items_base_amount";
    totals
        .filter(is_part)
        .map(|it| it["amount"].as_i64().unwrap())
        .sum()
}

/// The schemas can fail: a page with a wrong status, amount or member is refused.
#[test]
fn the_schemas_say_no() {
    let session = session(SessionState::Open, "EUR", Paid::All);
    let pages = [
        (ACP, acp::session(&session, &PAGE).unwrap()),
        (UCP, ucp::checkout(&session, &PAGE).unwrap()),
    ];
    for (schema, page) in pages {
        assert!(validator(schema).is_valid(&page));
        let wrong = |pointer: &str, value: Value| {
            let mut page = page.clone();
            *page.pointer_mut(pointer).unwrap() = value;
            assert!(!validator(schema).is_valid(&page), "{pointer}");
        };
        wrong("/status", json!("open"));
        wrong("/totals/0/amount", json!(1.5));
        wrong("/line_items/0/quantity", json!(0));
        wrong("/messages/0/type", json!("question"));
        wrong("/expires_at", json!("tomorrow"));
        wrong("/continue_url", json!("not an address"));
        let mut page = page.clone();
        page.as_object_mut().unwrap().remove("links");
        assert!(!validator(schema).is_valid(&page), "links");
    }
}

/// Each state with each way of paying duties: 4,499 + 950 = 5,449 for items and shipping; with 120 + 1,058 = 1,178 of
/// duty and tax and 600 of fees it is 7,227.
#[test]
fn every_state_is_a_valid_page() {
    let of = |state, paid| check(&session(state, "EUR", paid), &PAGE);
    assert_snapshot!(of(SessionState::Open, Paid::All), @r#"
    requires_escalation eur: items_base_amount 4499, subtotal 4499, fulfillment 950, tax 1178, fee 600, total 7227; approval_required, approval_required, info
    requires_escalation EUR: subtotal 4499, fulfillment 950, tax 1178, fee 600, total 7227; approval_required, approval_required, customs_fields
    "#);
    assert_snapshot!(of(SessionState::Locked, Paid::All), @r#"
    requires_escalation eur: items_base_amount 4499, subtotal 4499, fulfillment 950, tax 1178, fee 600, total 7227; approval_required, approval_required, info
    requires_escalation EUR: subtotal 4499, fulfillment 950, tax 1178, fee 600, total 7227; approval_required, approval_required, customs_fields
    "#);
    assert_snapshot!(of(SessionState::Payable, Paid::All), @r#"
    ready_for_payment eur: items_base_amount 4499, subtotal 4499, fulfillment 950, tax 1178, fee 600, total 7227; info
    ready_for_complete EUR: subtotal 4499, fulfillment 950, tax 1178, fee 600, total 7227; customs_fields
    "#);
    assert_snapshot!(of(SessionState::Expired, Paid::All), @r#"
    expired eur: items_base_amount 4499, subtotal 4499, fulfillment 950, tax 1178, fee 600, total 7227; expired, info
    canceled EUR: subtotal 4499, fulfillment 950, tax 1178, fee 600, total 7227; expired, customs_fields
    "#);
    // Delivered at place: 5,449 now, 1,778 to the carrier.
    assert_snapshot!(of(SessionState::Open, Paid::Nothing), @r#"
    requires_escalation eur: items_base_amount 4499, subtotal 4499, fulfillment 950, total 5449; approval_required, approval_required, info, info
    requires_escalation EUR: subtotal 4499, fulfillment 950, total 5449; approval_required, approval_required, customs_fields, charges_on_delivery
    "#);
    assert_snapshot!(of(SessionState::Payable, Paid::Nothing), @r#"
    ready_for_payment eur: items_base_amount 4499, subtotal 4499, fulfillment 950, total 5449; info, info
    ready_for_complete EUR: subtotal 4499, fulfillment 950, total 5449; customs_fields, charges_on_delivery
    "#);
    // The tax of 1,058 is taken by the seller, the rest at the door: 5,449 + 1,058 = 6,507.
    assert_snapshot!(of(SessionState::Locked, Paid::Some(1_058)), @r#"
    requires_escalation eur: items_base_amount 4499, subtotal 4499, fulfillment 950, tax 1058, total 6507; approval_required, approval_required, info, info
    requires_escalation EUR: subtotal 4499, fulfillment 950, tax 1058, total 6507; approval_required, approval_required, customs_fields, charges_on_delivery
    "#);
}

/// A currency without decimals, and one with three: amounts are whole numbers of the smallest unit nevertheless.
#[test]
fn every_currency_is_a_valid_page() {
    for currency in ["JPY", "KWD", "usd"] {
        check(&session(SessionState::Payable, currency, Paid::All), &PAGE);
    }
    let yen = session(SessionState::Open, "JPY", Paid::Nothing);
    let page = acp::session(&yen, &PAGE).unwrap();
    assert_eq!(page["currency"], "jpy");
    let content = page["messages"][0]["content"].as_str().unwrap();
    assert!(content.contains("JPY 5449"), "{content}");
    assert_eq!(ucp::checkout(&yen, &PAGE).unwrap()["currency"], "JPY");
}

/// Without a page to go on, UCP may not say that the buyer has to go there.
#[test]
fn nobody_is_sent_nowhere() {
    let open = session(SessionState::Open, "EUR", Paid::All);
    let told = check(&open, &Reader::default());
    let statuses: Vec<&str> = told.lines().filter_map(|it| it.split(' ').next()).collect();
    assert_eq!(statuses, ["requires_escalation", "incomplete"]);
}

/// The whole pages, in Chinese.
#[test]
fn whole_pages() {
    let reader = Reader {
        locale: Some("zh-CN"),
        ..PAGE
    };
    let session = session(SessionState::Locked, "EUR", Paid::All);
    let page = |page: Value| serde_json::to_string_pretty(&page).unwrap();
    assert_snapshot!(page(acp::session(&session, &reader).unwrap()), @r#"
    {
      "capabilities": {
        "payment": {
          "handlers": []
        }
      },
      "continue_url": "https://shop.example.com/orders/order_1",
      "created_at": "2026-11-16T12:00:00Z",
      "currency": "eur",
      "expires_at": "2026-11-16T12:30:00Z",
      "fulfillment_options": [
        {
          "carrier": "Post",
          "description": "5 至 8 个工作日",
          "id": "post_standard",
          "title": "Post Standard",
          "totals": [
            {
              "amount": 950,
              "display_text": "运费",
              "type": "total"
            }
          ],
          "type": "shipping"
        }
      ],
      "id": "order_1",
      "line_items": [
        {
          "id": "SKU-1",
          "item": {
            "id": "SKU-1",
            "name": "Thing SKU-1",
            "unit_amount": 1999
          },
          "name": "Thing SKU-1",
          "product_id": "offer_SKU-1",
          "quantity": 2,
          "sku": "SKU-1",
          "totals": [
            {
              "amount": 3998,
              "display_text": "商品",
              "type": "items_base_amount"
            },
            {
              "amount": 3998,
              "display_text": "商品",
              "type": "subtotal"
            },
            {
              "amount": 3998,
              "display_text": "商品",
              "type": "total"
            }
          ],
          "unit_amount": 1999
        },
        {
          "id": "SKU-2",
          "item": {
            "id": "SKU-2",
            "name": "Thing SKU-2",
            "unit_amount": 501
          },
          "name": "Thing SKU-2",
          "product_id": "offer_SKU-2",
          "quantity": 1,
          "sku": "SKU-2",
          "totals": [
            {
              "amount": 501,
              "display_text": "商品",
              "type": "items_base_amount"
            },
            {
              "amount": 501,
              "display_text": "商品",
              "type": "subtotal"
            },
            {
              "amount": 501,
              "display_text": "商品",
              "type": "total"
            }
          ],
          "unit_amount": 501
        }
      ],
      "links": [],
      "messages": [
        {
          "code": "approval_required",
          "content": "买家须确认订单及其总额 EUR 72.27。",
          "content_type": "plain",
          "resolution": "requires_buyer_review",
          "severity": "high",
          "type": "error"
        },
        {
          "code": "approval_required",
          "content": "I cannot send back: Thing SKU-1.",
          "content_type": "plain",
          "resolution": "requires_buyer_review",
          "severity": "high",
          "type": "error"
        },
        {
          "content": "These goods are declared.",
          "content_type": "plain",
          "resolution": "requires_buyer_review",
          "severity": "info",
          "type": "info"
        }
      ],
      "metadata": {
        "due_on_delivery": 0,
        "evidence_snapshot_id": "ev_2"
      },
      "protocol": {
        "version": "2026-04-17"
      },
      "quote_expires_at": "2026-11-16T12:15:00Z",
      "quote_id": "ev_1",
      "selected_fulfillment_options": [
        {
          "item_ids": [
            "SKU-1",
            "SKU-2"
          ],
          "option_id": "post_standard",
          "type": "shipping"
        }
      ],
      "status": "requires_escalation",
      "totals": [
        {
          "amount": 4499,
          "display_text": "商品",
          "type": "items_base_amount"
        },
        {
          "amount": 4499,
          "display_text": "商品",
          "type": "subtotal"
        },
        {
          "amount": 950,
          "display_text": "运费",
          "type": "fulfillment"
        },
        {
          "amount": 1178,
          "description": "关税 EUR 1.20, 增值税、消费税或销售税 EUR 10.58",
          "display_text": "关税和税款",
          "type": "tax"
        },
        {
          "amount": 600,
          "display_text": "清关费用",
          "type": "fee"
        },
        {
          "amount": 7227,
          "display_text": "总额",
          "type": "total"
        }
      ]
    }
    "#);
    assert_snapshot!(page(ucp::checkout(&session, &reader).unwrap()), @r#"
    {
      "continue_url": "https://shop.example.com/orders/order_1",
      "currency": "EUR",
      "expires_at": "2026-11-16T12:30:00Z",
      "fulfillment": {
        "methods": [
          {
            "destinations": [
              {
                "address_country": "DE",
                "id": "destination",
                "postal_code": "10115"
              }
            ],
            "groups": [
              {
                "id": "all",
                "line_item_ids": [
                  "SKU-1",
                  "SKU-2"
                ],
                "options": [
                  {
                    "carrier": "Post",
                    "description": "5 至 8 个工作日",
                    "id": "post_standard",
                    "title": "Post Standard",
                    "totals": [
                      {
                        "amount": 950,
                        "type": "total"
                      }
                    ]
                  }
                ],
                "selected_option_id": "post_standard"
              }
            ],
            "id": "shipping",
            "line_item_ids": [
              "SKU-1",
              "SKU-2"
            ],
            "selected_destination_id": "destination",
            "type": "shipping"
          }
        ]
      },
      "id": "order_1",
      "line_items": [
        {
          "id": "SKU-1",
          "item": {
            "id": "SKU-1",
            "price": 1999,
            "title": "Thing SKU-1"
          },
          "quantity": 2,
          "totals": [
            {
              "amount": 3998,
              "type": "subtotal"
            },
            {
              "amount": 3998,
              "type": "total"
            }
          ]
        },
        {
          "id": "SKU-2",
          "item": {
            "id": "SKU-2",
            "price": 501,
            "title": "Thing SKU-2"
          },
          "quantity": 1,
          "totals": [
            {
              "amount": 501,
              "type": "subtotal"
            },
            {
              "amount": 501,
              "type": "total"
            }
          ]
        }
      ],
      "links": [],
      "messages": [
        {
          "code": "approval_required",
          "content": "买家须确认订单及其总额 EUR 72.27。",
          "content_type": "plain",
          "severity": "requires_buyer_review",
          "type": "error"
        },
        {
          "code": "approval_required",
          "content": "I cannot send back: Thing SKU-1.",
          "content_type": "plain",
          "severity": "requires_buyer_review",
          "type": "error"
        },
        {
          "code": "customs_fields",
          "content": "These goods are declared.",
          "content_type": "plain",
          "type": "info"
        }
      ],
      "status": "requires_escalation",
      "totals": [
        {
          "amount": 4499,
          "display_text": "商品",
          "type": "subtotal"
        },
        {
          "amount": 950,
          "display_text": "运费",
          "type": "fulfillment"
        },
        {
          "amount": 1178,
          "display_text": "关税和税款",
          "lines": [
            {
              "amount": 120,
              "display_text": "关税"
            },
            {
              "amount": 1058,
              "display_text": "增值税、消费税或销售税"
            }
          ],
          "type": "tax"
        },
        {
          "amount": 600,
          "display_text": "清关费用",
          "type": "fee"
        },
        {
          "amount": 7227,
          "display_text": "总额",
          "type": "total"
        }
      ],
      "ucp": {
        "capabilities": {
          "dev.ucp.shopping.checkout": [
            {
              "version": "2026-04-08"
            }
          ],
          "dev.ucp.shopping.fulfillment": [
            {
              "extends": "dev.ucp.shopping.checkout",
              "version": "2026-04-08"
            }
          ]
        },
        "payment_handlers": {},
        "status": "success",
        "version": "2026-04-08"
      }
    }
    "#);
}

/// The answer of the real tool, as both pages.
async fn pages_of(world: &World, order: &Order, id: &str) -> String {
    let summary = order
        .call(world, SUMMARY_TOOL, json!({ SUMMARY_ARGUMENT: id }))
        .await;
    let session = Session::read(ok(&summary)).unwrap();
    check(&session, &PAGE)
}

/// A real order, from the cart to the payment: open, locked, confirmed by the user, expired.
#[tokio::test]
async fn a_real_order_is_a_valid_page_in_every_state() {
    let world = World::new();
    let order = Order::new();
    let draft = order.draft(&world).await;
    let id = ok(&draft)["draft_order_id"].as_str().unwrap();
    let state = async || {
        let told = pages_of(&world, &order, id).await;
        let words = told.lines().filter_map(|line| line.split(' ').next());
        words.collect::<Vec<_>>().join(" ")
    };
    assert_snapshot!(pages_of(&world, &order, id).await, @r#"
    requires_escalation eur: items_base_amount 7158, subtotal 7158, fulfillment 1785, tax 2056, total 10999; approval_required, approval_required, info, info, info, info, info
    requires_escalation EUR: subtotal 7158, fulfillment 1785, tax 2056, total 10999; approval_required, approval_required, tax_uncertainty, customs_fields, compliance_risk, return_cost, route_limits
    "#);
    let lock = json!({"draft_order_id": id});
    ok(&order
        .call(&world, "checkout.lock_price_and_stock", lock)
        .await);
    assert_eq!(state().await, "requires_escalation requires_escalation");
    let total = &draft["data"]["pricing_breakdown"]["total"];
    let pay = json!({
        "draft_order_id": id,
        "amount": total["amount"],
        "currency": total["currency"],
    });
    let tool = "payment.create_payment_intent";
    order.call(&world, tool, pay.clone()).await;
    world.approve_all("u_1").await;
    ok(&order.call(&world, tool, pay).await);
    assert_eq!(state().await, "ready_for_payment ready_for_complete");
    world.advance_seconds(31 * 60);
    assert_eq!(state().await, "expired canceled");
}

/// Duties at the door, and a currency without decimals.
#[tokio::test]
async fn other_real_orders_are_valid_pages() {
    let world = World::new();
    let at_the_door = Order {
        destination: json!({"country": "CH", "postal_code": "8001"}),
        incoterm: "DAP",
        currency: "CHF",
        ..Order::new()
    };
    let yen = Order {
        destination: json!({"country": "JP", "postal_code": "100-0001"}),
        currency: "JPY",
        ..Order::of("SKU-0003-01", 3)
    };
    // From Portugal to Germany: no customs office asks about it.
    let within_the_union = Order {
        destination: json!({"country": "DE", "postal_code": "10115"}),
        ..Order::of("SKU-0003-01", 3)
    };
    let check = async |order: Order| {
        let draft = order.draft(&world).await;
        let id = ok(&draft)["draft_order_id"].as_str().unwrap();
        pages_of(&world, &order, id).await
    };
    let page = Box::pin(check(within_the_union)).await;
    assert!(!page.contains("customs_fields"), "{page}");
    assert_snapshot!(Box::pin(check(at_the_door)).await, @r#"
    requires_escalation chf: items_base_amount 6582, subtotal 6582, fulfillment 1641, total 8223; approval_required, approval_required, info, info, info, info, info, info
    requires_escalation CHF: subtotal 6582, fulfillment 1641, total 8223; approval_required, approval_required, tax_uncertainty, customs_fields, compliance_risk, return_cost, route_limits, charges_on_delivery
    "#);
    assert_snapshot!(Box::pin(check(yen)).await, @r#"
    requires_escalation jpy: items_base_amount 13122, subtotal 13122, fulfillment 3661, tax 1678, total 18461; approval_required, info, info, info
    requires_escalation JPY: subtotal 13122, fulfillment 3661, tax 1678, total 18461; approval_required, tax_uncertainty, customs_fields, route_limits
    "#);
}

/// JSON that is not a summary makes no page.
#[test]
fn only_a_summary_is_a_page() {
    let error = Session::read(&json!({"draft_order_id": "order_1"})).unwrap_err();
    assert_eq!(error.to_string(), "this is not a summary of a draft order");
}

/// An order that does not add up is not shown at all.
#[test]
fn what_does_not_add_up_is_not_shown() {
    let right = session(SessionState::Open, "EUR", Paid::All);
    let refused = |change: fn(&mut Session)| {
        let mut wrong = right.clone();
        change(&mut wrong);
        let said = acp::session(&wrong, &PAGE).unwrap_err();
        assert_eq!(ucp::checkout(&wrong, &PAGE).unwrap_err(), said);
        said.to_string()
    };
    assert_snapshot!(refused(|it| it.total.amount += 1), @r#"the parts of the order do not add up to its total"#);
    assert_snapshot!(refused(|it| it.lines[0].line_total.amount -= 1), @r#"the parts of the order do not add up to its lines"#);
    assert_snapshot!(refused(|it| it.shipping.price.currency = "USD".to_owned()), @r#"amounts of EUR and USD cannot be added"#);
    assert_snapshot!(refused(|it| it.due_on_delivery.amount = 1_779), @r#"the parts of the order do not add up to its total"#);
    assert_snapshot!(refused(|it| it.tax.amount = i64::MAX), @r#"the amount is too large"#);
}

proptest! {
    /// No page loses or adds a smallest unit, whatever an order costs and to whomever it is paid.
    #[test]
    fn no_unit_is_lost(
        prices in proptest::collection::vec((1_u32..=50, 0_i64..=10_000_000), 1..8),
        shipping in 0_i64..=1_000_000,
        (duty, tax, fees) in (0_i64..=10_000_000, 0_i64..=10_000_000, 0_i64..=100_000),
        paid in 0_i64..=20_100_000,
        currency in prop::sample::select(vec!["EUR", "JPY", "KWD", "USD"]),
    ) {
        let money = |amount| Money::new(amount, currency);
        let mut order = session(SessionState::Open, currency, Paid::All);
        let template = order.lines[0].clone();
        order.lines = prices.iter().enumerate().map(|(at, (quantity, price))| SessionLine {
            sku: format!("SKU-{at}"),
            quantity: *quantity,
            unit_price: money(*price),
            line_total: money(price * i64::from(*quantity)),
            ..template.clone()
        }).collect();
        let items: i64 = order.lines.iter().map(|line| line.line_total.amount).sum();
        let paid = paid.min(duty + tax + fees);
        order.shipping.price = money(shipping);
        (order.duty, order.tax, order.fees) = (money(duty), money(tax), money(fees));
        order.due_on_delivery = money(duty + tax + fees - paid);
        order.total = money(items + shipping + paid);
        check(&order, &PAGE);
        let page = ucp::checkout(&order, &PAGE).unwrap();
        for total in page["totals"].as_array().unwrap() {
            let lines = total["lines"].as_array().map(Vec::as_slice).unwrap_or_default();
            let sum: i64 = lines.iter().map(|line| line["amount"].as_i64().unwrap()).sum();
            // The tax is shown in parts if all of it is paid with the order; nothing else has parts.
            let is_parted = total["type"] == "tax" && order.due_on_delivery.amount == 0;
            prop_assert_eq!(!lines.is_empty(), is_parted, "{:#}", total);
            prop_assert!(!is_parted || total["amount"] == sum, "{total:#}");
        }
    }
}
