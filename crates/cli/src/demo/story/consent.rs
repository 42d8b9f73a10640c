//! Price and stock are held, and then it is the user's turn: an agent comes no further than to the question.

use countersign::Principal;
use countersign::approve;
use serde_json::{Value, json};

use super::order::Order;
use crate::demo::ask::Ask;
use crate::demo::stage::Stage;
use crate::demo::world::World;
use crate::demo::{ANNA, BEN, QUANTITY, SKU};
use crate::failure::Failure;

/// Holds price and stock of the order.
pub(in crate::demo) fn lock(
    world: &World,
    stage: &mut Stage<'_>,
    order: &Order,
) -> Result<(), Failure> {
    stage.begin("lock", "Price and stock are held for a while")?;
    let available = || {
        let arguments = json!({"skus": [SKU]}).to_string();
        let answer = world.ask(Ask::new(BEN, "catalog.get_availability", arguments));
        let available = answer.data("/items/0/available").and_then(Value::as_u64);
        (answer, available)
    };
    let (_, before) = available();
    let arguments = json!({"draft_order_id": order.id}).to_string();
    let tool = "checkout.lock_price_and_stock";
    let locked = world.ask(Ask::new(ANNA, tool, arguments).key("lock-1"));
    stage.call(&locked)?;
    stage.value("held until", &locked.moment("/expires_at"))?;
    let (asked, after) = available();
    stage.call(&asked)?;
    let count = |count: Option<u64>| count.map_or("-".to_owned(), |count| count.to_string());
    stage.value(
        "can be had",
        &format!("{} → {}", count(before), count(after)),
    )?;
    let held = after.map(|after| after + u64::from(QUANTITY));
    stage.check(
        locked.is_ok() && held.is_some() && held == before,
        "no other buyer can take these; the lock ends by itself",
    )?;
    stage.end()
}

/// Asks the user, who says yes, and then gets as far as to a payment that the user has to make.
pub(in crate::demo) fn pay(
    world: &World,
    stage: &mut Stage<'_>,
    order: &Order,
) -> Result<(), Failure> {
    stage.begin("consent", "The user is asked, and not the model")?;
    let arguments = json!({
        "draft_order_id": order.id,
        "amount": order.total.amount,
        "currency": order.total.currency,
    });
    let arguments = arguments.to_string();
    let intend = Ask::new(ANNA, "payment.create_payment_intent", arguments).key("pay-1");
    let asked = world.ask(intend.clone());
    stage.call(&asked)?;
    let id = asked.detail("approval_id").and_then(Value::as_str);
    stage.check(
        asked.code() == Some("NEEDS_USER_CONFIRMATION") && id.is_some(),
        "without the user's yes there is no payment, not even an intent",
    )?;
    let id = stage.need(id.map(str::to_owned), "a question to the user")?;
    let approvals = world.place.approvals();
    let by_agent = intend.principal();
    let by_agent = approvals.approve(&id, &by_agent, Some("go on"));
    let by_agent = world.place.runtime.block_on(by_agent);
    stage.check(
        matches!(by_agent, Err(approve::Error::Agent)),
        "the agent cannot say yes for the user",
    )?;
    let user = Principal::user(ANNA);
    let by_user = approvals.approve(&id, &user, None);
    let by_user = world.place.runtime.block_on(by_user)?;
    stage.say(&format!("{ANNA} says yes: {}", by_user.state.as_str()))?;
    let paid = world.ask(intend);
    stage.call(&paid)?;
    stage.value("amount", &paid.price("/amount"))?;
    stage.check(
        paid.data("/requires_user_action") == Some(&json!(true)),
        "the payment waits for the user: no tool can take money",
    )?;
    stage.check(
        paid.money("/amount").as_ref() == Some(&order.total),
        "for the total of the draft order",
    )?;
    stage.end()
}
