//! A backend names the actor of each call. Conditions look at the named actor and at the proved one, and the stricter decision
//! counts.

use countersign::Principal;
use countersign::contract::{Actor, ActorType, RequestEnvelope};
use serde_json::{Value, json};

use crate::world::{World, arguments};

/// An agent whose credential may name other actors.
fn trusted_agent() -> Principal {
    let actor = Actor {
        kind: ActorType::Agent,
        id: "broker".to_owned(),
    };
    let mut principal = Principal::new(actor, "ann");
    principal.may_act_for_others = true;
    principal
}

/// An order that says that a person makes it.
async fn as_a_person(world: &World, quantity: i64) -> Value {
    let mut order = arguments();
    order["quantity"] = json!(quantity);
    let envelope = RequestEnvelope {
        actor: Some(Actor {
            kind: ActorType::User,
            id: "ann".to_owned(),
        }),
        session_id: Some("s_1".to_owned()),
        ..RequestEnvelope::default()
    };
    let text = order.to_string();
    world
        .send_in(trusted_agent(), "shop.order", &text, envelope)
        .await
}

const AGENTS: &str = "principal.type == 'agent' && has(args.quantity) && args.quantity > 2";

/// A3: another name in the envelope evades no rule.
#[tokio::test]
async fn a_rule_about_agents_sees_the_proved_agent() {
    for (then, code) in [
        ("deny", "FORBIDDEN"),
        ("confirm", "NEEDS_USER_CONFIRMATION"),
    ] {
        let rule = format!(
            "[[rules]]\nname = \"agents\"\nmatch = \"shop.order\"\nwhen = \"{AGENTS}\"\nthen = \"{then}\"\n"
        );
        let world = World::new(&rule);
        let reply = as_a_person(&world, 3).await;
        assert_eq!(reply["error"]["code"], code, "{reply}");
        assert_eq!(as_a_person(&world, 1).await["ok"], true);
    }
}

/// A3: the named actor counts as well: a backend that names an agent is under the rules for agents.
#[tokio::test]
async fn a_rule_about_agents_sees_the_named_agent() {
    let rule = format!(
        "[[rules]]\nname = \"agents\"\nmatch = \"shop.order\"\nwhen = \"{AGENTS}\"\nthen = \"deny\"\n"
    );
    let world = World::new(&rule);
    let mut backend = trusted_agent();
    backend.actor.kind = ActorType::System;
    let envelope = RequestEnvelope {
        actor: Some(Actor {
            kind: ActorType::Agent,
            id: "helper".to_owned(),
        }),
        ..RequestEnvelope::default()
    };
    let text = arguments().to_string();
    let reply = world.send_in(backend, "shop.order", &text, envelope).await;
    assert_eq!(reply["error"]["details"]["rule"], "agents", "{reply}");
}

/// A3: it evades no limit and no budget.
#[tokio::test]
async fn limits_and_budgets_of_agents_count_the_proved_agent() {
    let when = format!("when = \"{AGENTS}\"");
    for (entries, limit) in [
        (
            format!("[limits.user]\ncalls = 1\nper = \"366d\"\n{when}\n"),
            "user",
        ),
        (
            format!(
                "[[budgets]]\nname = \"agents\"\nscope = \"user\"\nlimit = \"20000\"\ncurrency = \"EUR\"\n\
                 [[budgets.tools]]\nmatch = \"shop.order\"\namount = \"/total/amount\"\n{when}\n"
            ),
            "budget",
        ),
    ] {
        let world = World::new(&entries);
        assert_eq!(as_a_person(&world, 3).await["ok"], true);
        let reply = as_a_person(&world, 4).await;
        assert_eq!(reply["error"]["details"]["limit"], limit, "{reply}");
    }
}
