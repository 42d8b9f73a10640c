//! Recorded calls, explained: the limit or the budget that refused a call, and the grant that answered for one.

use countersign::Principal;
use countersign::contract::{Actor, ActorType, NewGrant};
use countersign_gateway::policy::{Explanation, Policy};
use serde_json::{Value, json};

use crate::world::{World, arguments, order};

fn agent() -> Principal {
    let actor = Actor {
        kind: ActorType::Agent,
        id: "bot".to_owned(),
    };
    Principal::new(actor, "ann")
}

/// The decision about the newest call under a policy, with line, entry and text of what comes first.
async fn newest(world: &World, text: &str) -> Value {
    let policy = Policy::parse(text).unwrap();
    let opened = world.opened().await;
    let record = &opened
        .iter()
        .rfind(|it| it.record.reply.is_some())
        .unwrap()
        .record;
    let told = Explanation::of_record(record, "ann", Some(&policy), Some(&order()));
    let first = told.because.first();
    json!([
        told.decision.as_str(),
        first.and_then(|it| it.line),
        first.map(|it| &it.entry),
        first.map(|it| &it.says),
    ])
}

fn ordered(quantity: i64) -> Value {
    let mut order = arguments();
    order["quantity"] = json!(quantity);
    order
}

/// A3: a call that a limit or a budget refused is explained by its line, and by nothing else.
#[tokio::test]
async fn a_limit_and_a_budget_are_named() {
    let first =
        "defaults = { unlisted = \"allow\" }\n[[tools]]\nmatch = \"*\"\nscopes = [\"orders\"]\n";
    let used_up = "it is used up for now: the call is refused";
    let not_enough = "it has not enough left, or cannot be decided: the call is refused";
    let budget =
        "[[budgets]]\nname = \"all\"\nscope = \"user\"\nlimit = \"15000\"\ncurrency = \"EUR\"\n";
    let spends = "[[budgets.tools]]\nmatch = \"shop.order\"\namount = \"/total/amount\"\n";
    for (entries, entry, says) in [
        (
            "[limits.user]\ncalls = 1\nper = \"1d\"\n".to_owned(),
            "[limits.user]",
            used_up,
        ),
        (
            "[limits.tools.\"shop.o*\"]\ncalls = 1\nper = \"1d\"\n".to_owned(),
            "[limits.tools.\"shop.o*\"]",
            used_up,
        ),
        (
            "[breaker]\nidentical = 1\nper = \"1d\"\n".to_owned(),
            "[breaker]",
            used_up,
        ),
        (format!("{budget}{spends}"), "[[budgets]] all", not_enough),
        (
            format!("{budget}per = \"1d\"\n{spends}"),
            "[[budgets]] all",
            used_up,
        ),
    ] {
        let text = format!("{first}{entries}");
        let world = World::with_policy(&text);
        let quantities = if entry == "[breaker]" { [1, 1] } else { [1, 2] };
        let mut reply = Value::Null;
        for quantity in quantities {
            let who = Principal::user("ann").scope("orders");
            reply = world.call_as(who, "shop.order", &ordered(quantity)).await;
        }
        assert_eq!(reply["ok"], false, "{reply}");
        let told = newest(&world, &text).await;
        assert_eq!(told, json!(["deny", 5, entry, says]));
    }
}

/// A13: a call that a grant let through was allowed, and the grant is named first.
#[tokio::test]
async fn a_grant_is_named() {
    let text = "defaults = { unlisted = \"allow\" }\n[[rules]]\nname = \"ask\"\nmatch = \"shop.order\"\nthen = \"confirm\"\n";
    let world = World::with_policy(text);
    let grant = NewGrant {
        user_id: None,
        to: agent().actor,
        tools: vec![order().name],
        when: None,
        calls: None,
        amount: None,
        until: "2026-12-01T00:00:00Z".to_owned(),
        parent: None,
    };
    let ann = Principal::user("ann");
    let made = world.executor.grants().make(&ann, &grant);
    let id = made.await.unwrap().id;
    let reply = world.call_as(agent(), "shop.order", &arguments()).await;
    assert_eq!(reply["ok"], true, "{reply}");
    let told = newest(&world, text).await;
    let says = "it answers in the user's place: the user is not asked";
    assert_eq!(
        told,
        json!(["allow", null, format!("the grant {id}"), says])
    );
}
