//! Calls under conditional rules: refused, asked about, recorded and listed.

use countersign::Principal;
use countersign::contract::{Actor, ActorType, RequestEnvelope};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{World, arguments};

fn rule(name: &str, when: &str, then: &str) -> String {
    format!(
        "[[rules]]\nname = \"{name}\"\nmatch = \"shop.order\"\nwhen = \"{when}\"\nthen = \"{then}\"\n"
    )
}

fn agent(id: &str) -> Principal {
    let actor = Actor {
        kind: ActorType::Agent,
        id: id.to_owned(),
    };
    Principal::new(actor, "ann")
}

async fn listed(world: &World, who: &Principal) -> Vec<String> {
    let entries = world.executor.list(who).await.unwrap();
    entries
        .iter()
        .map(|entry| entry.name().to_string())
        .collect()
}

/// A3, A13: a rule over the arguments denies, asks, or asks two, and the record names it.
#[tokio::test]
async fn a_rule_decides_by_the_arguments() {
    let large = "money(args.total) > money('10000', 'EUR')";
    let world = World::new(&rule("large", large, "deny"));
    let reply = world.call("shop.order", &arguments()).await;
    assert_eq!(reply["error"]["code"], "FORBIDDEN", "{reply}");
    assert_eq!(reply["error"]["details"]["rule"], "large");
    let rules = json!({"rules": [{"rule": "large", "then": "deny"}]});
    assert_eq!(world.newest_act().await, rules);
    let mut small = arguments();
    small["total"]["amount"] = json!("10000.00");
    let reply = world.call("shop.order", &small).await;
    assert_eq!(reply["ok"], true, "{reply}");
    assert_eq!(world.newest_act().await, Value::Null);

    let world = World::new(&rule("large", large, "confirm"));
    let reply = world.call("shop.order", &arguments()).await;
    assert_eq!(reply["error"]["code"], "NEEDS_USER_CONFIRMATION", "{reply}");
    assert_eq!(reply["error"]["details"]["approvers"], Value::Null);
    assert_eq!(world.call("shop.order", &small).await["ok"], true);

    let world = World::new(&rule("large", large, "four_eyes"));
    let reply = world.call("shop.order", &arguments()).await;
    assert_eq!(
        reply["error"]["details"]["approvers"]["needed"], 2,
        "{reply}"
    );
}

/// A3: a rule that cannot be decided denies, and says so.
#[tokio::test]
async fn a_rule_that_cannot_be_decided_denies() {
    let world = World::new(&rule(
        "large",
        "money(args.total) > money('10000', 'EUR')",
        "confirm",
    ));
    let mut dollars = arguments();
    dollars["total"] = json!({"amount": "1.00", "currency": "USD"});
    let reply = world.call("shop.order", &dollars).await;
    assert_eq!(reply["error"]["code"], "FORBIDDEN", "{reply}");
    assert_eq!(
        reply["error"]["details"]["hint"],
        "the rule large of the policy cannot be decided for this call, so the call is refused"
    );
    let rules = json!({"rules": [{"rule": "large", "then": "failed"}]});
    assert_eq!(world.newest_act().await, rules);
    // A number that a double cannot hold is not compared.
    let world = World::new(&rule(
        "cheap",
        "args.items.exists(i, i.price > 100)",
        "deny",
    ));
    let text = arguments()
        .to_string()
        .replace("10.5", "100.00000000000000001");
    let reply = world.call_text("shop.order", &text).await;
    assert_eq!(reply["error"]["code"], "FORBIDDEN", "{reply}");
}

/// A3: a tool that may be refused for its arguments is listed; one that is refused to a caller anyway is not.
#[tokio::test]
async fn the_list_of_tools_stays_honest() {
    let rules = [
        rule("large", "args.quantity > 2", "deny"),
        rule("no-bots", "principal.actor == 'bot'", "deny"),
        rule(
            "by-session",
            "has(session.id) && session.id == 's_1' && principal.actor == 'eve'",
            "deny",
        ),
        rule("weekend", "now.getDayOfWeek() == 0", "deny"),
    ];
    let world = World::new(&rules.concat());
    assert_eq!(
        listed(&world, &agent("alice")).await,
        ["shop.find", "shop.order"]
    );
    assert_eq!(
        listed(&world, &agent("eve")).await,
        ["shop.find", "shop.order"]
    );
    assert_eq!(listed(&world, &agent("bot")).await, ["shop.find"]);
    let reply = world
        .call_as(agent("bot"), "shop.order", &json!("not even read"))
        .await;
    assert_eq!(reply["error"]["details"]["rule"], "no-bots", "{reply}");
    let reply = world
        .call_as(agent("eve"), "shop.order", &json!("not even read"))
        .await;
    assert_eq!(reply["error"]["details"]["rule"], "by-session", "{reply}");
    assert_eq!(
        world
            .call_as(agent("bot"), "shop.find", &json!({"query": "x"}))
            .await["ok"],
        true
    );
}

/// A4: a dry run is decided like the call itself.
#[tokio::test]
async fn defaults_are_decided_too() {
    let world = World::new(&rule("slow", "args.rush == false", "deny"));
    let reply = world.call("shop.order", &arguments()).await;
    assert_eq!(reply["error"]["details"]["rule"], "slow", "{reply}");
}

/// A reply without what differs from call to call.
fn answer(mut reply: Value) -> Value {
    for member in ["request_id", "evidence", "timing"] {
        reply.as_object_mut().unwrap().remove(member);
    }
    reply
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Law: a rule that is only observed changes no answer, and the record says what would have happened.
    #[test]
    fn observed_rules_change_no_answer(
        quantity in 0_i64..6,
        currency in prop::sample::select(vec!["EUR", "USD"]),
        then in prop::sample::select(vec!["deny", "confirm", "four_eyes"]),
        when in prop::sample::select(vec![
            "args.quantity > 2",
            "money(args.total) > money('10', 'EUR')",
            "principal.type == 'user'",
            "tool.effect == 'read'",
        ]),
    ) {
        let mut arguments = arguments();
        arguments["quantity"] = json!(quantity);
        arguments["total"]["currency"] = json!(currency);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let observed = format!("{}mode = \"observe\"\n", rule("tried", when, then));
            let world = World::new(&observed);
            let free = World::new("").call("shop.order", &arguments).await;
            let reply = world.call("shop.order", &arguments).await;
            assert_eq!(answer(reply), answer(free));
            let enforced = World::new(&rule("tried", when, then)).call("shop.order", &arguments).await;
            let act = world.newest_act().await;
            // What is recorded is what the rule would have done.
            assert_eq!(act.is_null(), enforced["ok"] == true, "{act} {enforced}");
            if let Some(rules) = act["rules"].as_array() {
                assert_eq!(rules[0]["mode"], "observe");
            }
        });
    }
}

/// Entries that a generated policy is made of; together they say something about everything that an entry can.
const PARTS: [&str; 10] = [
    "[defaults]\nunlisted_agents = \"deny\"\nunkeyed_writes = \"refuse\"\n",
    "[defaults]\nunlisted = \"deny\"\nwrites_need_user = false\nunkeyed_writes = \"allow\"\n",
    "[defaults]\nunkeyed_writes = \"derive\"\nunkeyed_window = \"1s\"\n",
    "[[tools]]\nmatch = \"shop.order\"\nconfirm = \"always\"\nvalid_for = \"1s\"\n",
    "[[tools]]\nmatch = \"shop.*\"\nscopes = [\"orders\"]\nconfirm = \"always\"\nfour_eyes = true\n",
    "[[agents]]\nid = \"bot\"\neffects = [\"read\"]\n",
    "[[rules]]\nname = \"many\"\nmatch = \"shop.order\"\nwhen = \"args.quantity > 2\"\nthen = \"deny\"\n",
    "[[rules]]\nname = \"dry\"\nmatch = \"*\"\nwhen = \"call.dry_run\"\nthen = \"confirm\"\nvalid_for = \"1s\"\n",
    "[[rules]]\nname = \"none\"\nmatch = \"shop.*\"\nwhen = \"!('orders' in principal.scopes)\"\nthen = \"deny\"\n",
    "[[rules]]\nname = \"all\"\nmatch = \"*\"\nthen = \"four_eyes\"\n",
];

/// A call of the law about whole policies.
fn sent() -> impl Strategy<Value = (bool, i64, Option<&'static str>, bool)> {
    let keys = prop::sample::select(vec![None, None, Some("k1"), Some("k2")]);
    (any::<bool>(), 1_i64..4, keys, prop::bool::weighted(0.3))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Law: a policy that is only observed as a whole gives every call the answer that it would get without a policy: with keys and
    /// without, the first time and again, as a dry run and in earnest.
    #[test]
    fn a_generated_policy_that_is_observed_changes_no_answer(
        default in 0_usize..3,
        parts in prop::sample::subsequence(PARTS[3..].to_vec(), 0..=7),
        calls in prop::collection::vec(sent(), 1..8),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let text = format!("mode = \"observe\"\n{}{}", PARTS[default], parts.concat());
            let observed = World::with_policy(&text);
            let free = World::new("");
            for (is_agent, quantity, key, dry_run) in &calls {
                let mut order = arguments();
                order["quantity"] = json!(quantity);
                let who = || if *is_agent { agent("bot") } else { Principal::user("ann") };
                let envelope = || RequestEnvelope {
                    session_id: Some("s_1".to_owned()),
                    idempotency_key: key.map(str::to_owned),
                    dry_run: *dry_run,
                    ..RequestEnvelope::default()
                };
                let order = order.to_string();
                let reply = observed.send_in(who(), "shop.order", &order, envelope()).await;
                let expected = free.send_in(who(), "shop.order", &order, envelope()).await;
                assert_eq!(alike(reply), alike(expected), "{text}");
            }
        });
    }
}

/// An answer without the ids of the calls and records that it names.
fn alike(reply: Value) -> Value {
    let mut reply = answer(reply);
    for warning in reply["warnings"].as_array_mut().into_iter().flatten() {
        *warning = warning["code"].clone();
    }
    reply
}

/// A policy with entries of every kind, whole.
const WHOLE: &str = r#"
    [[tools]]
    match = "shop.order"
    scopes = ["orders"]
    confirm = "always"
    [[agents]]
    id = "bot"
    allow = ["shop.find"]
    [[rules]]
    name = "many"
    match = "shop.order"
    when = "args.quantity > 2"
    then = "deny"
"#;

/// Law: a policy that is only observed as a whole changes no answer and no list, and records what would have happened.
#[tokio::test]
async fn an_observed_policy_changes_no_answer() {
    let observed = World::with_policy(&format!("mode = \"observe\"\n{WHOLE}"));
    let free = World::new("");
    let enforced = World::with_policy(WHOLE);
    for (who, recorded) in [
        (
            agent("bot"),
            json!(["[[agents]] bot", "[[tools]] shop.order", "many"]),
        ),
        (
            agent("alice"),
            json!(["[[tools]] shop.order", "[[tools]] shop.order", "many"]),
        ),
        (
            agent("carol").scope("orders"),
            json!(["[[tools]] shop.order", "many"]),
        ),
    ] {
        assert_eq!(listed(&observed, &who).await, listed(&free, &who).await);
        let reply = observed
            .call_as(who.clone(), "shop.order", &arguments())
            .await;
        assert_eq!(reply["ok"], true, "{reply}");
        let act = observed.newest_act().await;
        let rules = act["rules"].as_array().unwrap();
        assert!(rules.iter().all(|rule| rule["mode"] == "observe"), "{act}");
        let names: Vec<&Value> = rules.iter().map(|rule| &rule["rule"]).collect();
        assert_eq!(json!(names), recorded);
        assert_eq!(
            enforced.call_as(who, "shop.order", &arguments()).await["ok"],
            false
        );
    }
}
