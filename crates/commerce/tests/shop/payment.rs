//! A13: an agent can prepare a payment, after the user has confirmed it, and nothing more.

use serde_json::{Value, json};

use crate::flow::Order;
use crate::world::{World, check_error, ok};

const TOOL: &str = "payment.create_payment_intent";

/// A draft order, and the arguments of its payment.
async fn drafted(world: &World) -> (String, Value) {
    let draft = Order::new().draft(world).await;
    let id = ok(&draft)["draft_order_id"].as_str().unwrap().to_owned();
    let total = &draft["data"]["pricing_breakdown"]["total"];
    let pay = json!({
        "draft_order_id": id,
        "amount": total["amount"],
        "currency": total["currency"],
    });
    (id, pay)
}

async fn lock(world: &World, draft_order_id: &str) -> Value {
    let arguments = json!({"draft_order_id": draft_order_id});
    world.call("checkout.lock_price_and_stock", arguments).await
}

/// A13: without the user's confirmation nothing is prepared; with it the user still has to pay.
#[tokio::test]
async fn a_payment_needs_the_user_twice() {
    let world = World::new();
    let (id, pay) = drafted(&world).await;
    ok(&lock(&world, &id).await);
    let asked = world.call(TOOL, pay.clone()).await;
    check_error(&asked, "NEEDS_USER_CONFIRMATION", &json!({}));
    let question = world.questions("u_1").await.remove(0);
    // The question shows the total of the order, and not a hundred times that.
    assert_eq!(
        json!(question.ceiling),
        json!({"amount": "10999", "currency": "EUR", "unit": "minor", "text": "EUR 109.99"})
    );
    // U2: the items, the price, the destination, and the irreversible effects.
    let words = question.question.expect("the tool says what it is");
    assert_eq!(words.title, "Prepare the payment of EUR 109.99");
    let lines = words.lines.iter();
    let lines: Vec<_> = lines
        .map(|line| format!("{}: {}", line.label, line.value))
        .collect();
    let lines = lines.join("\n");
    for part in [
        "× ",
        "Total: EUR 109.99",
        "Shipping: ",
        "Ships to: ",
        "Can be paid until: 2026-11-16T12:15:00Z",
    ] {
        assert!(lines.contains(part), "{part} in {lines}");
    }
    assert!(
        words
            .irreversible
            .iter()
            .any(|what| what.contains("Nothing is charged by this"))
    );
    assert_eq!(
        question.would_answer.unwrap()["amount"],
        json!({"amount": 10999, "currency": "EUR"})
    );
    let summary = json!({"draft_order_id": id});
    let summary = world
        .call("checkout.get_draft_order_summary", summary)
        .await;
    assert_eq!(ok(&summary)["state"], "locked", "nothing is prepared yet");
    world.approve_all("u_1").await;
    let prepared = world.call(TOOL, pay.clone()).await;
    insta::assert_json_snapshot!(ok(&prepared), @r#"
    {
      "amount": {
        "amount": 10999,
        "currency": "EUR"
      },
      "draft_order_id": "order_013g000000000028",
      "expires_at": "2026-11-16T12:15:00Z",
      "lock_id": "lock_01bg00000000002r",
      "payment_intent_id": "pi_026g00000000004e",
      "requires_user_action": true,
      "status": "requires_user_action"
    }
    "#);
    let summary = json!({"draft_order_id": id});
    let summary = world
        .call("checkout.get_draft_order_summary", summary)
        .await;
    assert_eq!(ok(&summary)["state"], "intent_created");
    assert_eq!(summary["data"]["payment_intent"], prepared["data"]);
    // Once more is asked about once more, and is the same intent.
    let again = world.call(TOOL, pay.clone()).await;
    check_error(&again, "NEEDS_USER_CONFIRMATION", &json!({}));
    world.approve_all("u_1").await;
    assert_eq!(ok(&world.call(TOOL, pay).await), &prepared["data"]);
}

/// A13: there is no tool that takes the money, by any name.
#[tokio::test]
async fn no_tool_takes_money() {
    let world = World::new();
    for tool in [
        "payment.capture",
        "payment.confirm",
        "payment.charge",
        "payment.execute",
    ] {
        let reply = world.call(tool, json!({})).await;
        check_error(&reply, "NOT_FOUND", &json!({}));
    }
    let names = world.executor.catalog().list();
    let payments = names
        .iter()
        .filter(|entry| entry.name().as_str().starts_with("payment."));
    let payments: Vec<_> = payments.map(|entry| entry.name().to_string()).collect();
    assert_eq!(payments, [TOOL]);
}

/// A13: the confirmed amount has to be the total of the order; the user is not asked about any other.
#[tokio::test]
async fn another_amount_is_refused_with_the_right_one() {
    let world = World::new();
    let (id, pay) = drafted(&world).await;
    ok(&lock(&world, &id).await);
    let total = json!({"amount": pay["amount"], "currency": "EUR"});
    let check = async |name: &str, value: Value| {
        let mut wrong = pay.clone();
        wrong[name] = value;
        let refused = world.call(TOOL, wrong.clone()).await;
        let old = json!({"amount": wrong["amount"], "currency": wrong["currency"]});
        let expected = json!({"field": format!("/{name}"), "old": old, "new": total});
        check_error(&refused, "PRICE_CHANGED", &expected);
    };
    let amount = pay["amount"].as_i64().unwrap();
    check("amount", json!(amount - 1)).await;
    check("amount", json!(amount + 1)).await;
    check("amount", json!(1)).await;
    check("currency", json!("USD")).await;
    let mut unknown = pay.clone();
    unknown["draft_order_id"] = json!("order_1");
    let unknown = world.call(TOOL, unknown).await;
    check_error(&unknown, "NOT_FOUND", &json!({"field": "/draft_order_id"}));
    assert_eq!(world.questions("u_1").await.len(), 0, "nobody is asked");
    let negative = json!({"draft_order_id": id, "amount": -5, "currency": "EUR"});
    let negative = world.call(TOOL, negative).await;
    check_error(&negative, "INVALID_ARGUMENT", &json!({"field": "/amount"}));
}

/// Only a locked order can be paid for, and only until the lock expires.
#[tokio::test]
async fn a_payment_needs_a_lock_that_holds() {
    let world = World::new();
    let (id, pay) = drafted(&world).await;
    let open = world.call(TOOL, pay.clone()).await;
    let expected = json!({"field": "/draft_order_id", "reason": "stock"});
    check_error(&open, "CONFLICT", &expected);
    let held = lock(&world, &id).await;
    let asked = world.call(TOOL, pay.clone()).await;
    check_error(&asked, "NEEDS_USER_CONFIRMATION", &json!({}));
    world.approve_all("u_1").await;
    let first = world.call(TOOL, pay.clone()).await;
    assert_eq!(ok(&first)["lock_id"], held["data"]["lock_id"]);
    // The lock ends, and the intent with it; the next one is another.
    world.advance_seconds(900);
    let ended = world.call(TOOL, pay.clone()).await;
    check_error(&ended, "CONFLICT", &json!({"reason": "stock"}));
    ok(&lock(&world, &id).await);
    let asked = world.call(TOOL, pay.clone()).await;
    check_error(&asked, "NEEDS_USER_CONFIRMATION", &json!({}));
    world.approve_all("u_1").await;
    let second = world.call(TOOL, pay.clone()).await;
    assert_ne!(
        ok(&second)["payment_intent_id"],
        first["data"]["payment_intent_id"]
    );
    // The order ends, and everything with it.
    world.advance_seconds(900);
    let over = world.call(TOOL, pay).await;
    let expected = json!({"field": "/draft_order_id", "expired": ["draft_order"]});
    check_error(&over, "PRICE_CHANGED", &expected);
    let over = lock(&world, &id).await;
    check_error(&over, "PRICE_CHANGED", &json!({"expired": ["draft_order"]}));
    assert!(
        over["error"]["details"]["new"]["total"]["amount"].is_i64(),
        "{over:#}"
    );
}

/// The intent's record rests on the same four answers as the order's.
#[tokio::test]
async fn the_record_of_an_intent_names_what_it_was_computed_from() {
    let world = World::new();
    let (id, pay) = drafted(&world).await;
    ok(&lock(&world, &id).await);
    world.call(TOOL, pay.clone()).await;
    world.approve_all("u_1").await;
    let intent = world.call(TOOL, pay).await;
    ok(&intent);
    let record = world.record(&crate::world::evidence(&intent)).await;
    let links = record["links"].as_array().unwrap();
    let summary = json!({"draft_order_id": id});
    let summary = world
        .call("checkout.get_draft_order_summary", summary)
        .await;
    let order = &ok(&summary)["draft_order"];
    for part in ["quote", "shipping", "tax", "compliance"] {
        let id = &order[format!("{part}_snapshot_id")];
        assert!(
            links.iter().any(|link| link["id"] == *id),
            "{part} in {links:#?}"
        );
    }
    // And the user's answer.
    assert_eq!(links.len(), 5, "{links:#?}");
}

/// A4: a dry run shows the result, asks no user, and prepares nothing.
#[tokio::test]
async fn a_dry_run_prepares_nothing() {
    let world = World::new();
    let (id, pay) = drafted(&world).await;
    ok(&lock(&world, &id).await);
    let shown = world
        .call_as("u_1", TOOL, pay, json!({"dry_run": true}))
        .await;
    assert_eq!(ok(&shown)["requires_user_action"], true);
    let summary = json!({"draft_order_id": id});
    let summary = world
        .call("checkout.get_draft_order_summary", summary)
        .await;
    assert_eq!(ok(&summary)["state"], "locked");
}
