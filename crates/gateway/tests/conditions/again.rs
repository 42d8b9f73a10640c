//! Recorded calls decided again: under the policy that decided them, nothing changes.

use countersign::Principal;
use countersign::contract::{Actor, ActorType, RequestEnvelope};
use countersign_gateway::policy::{Omitted, PastCall, Policy, Ruling};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{World, arguments};

/// Entries of policies, each on its own or beside the others.
const ENTRIES: [&str; 14] = [
    "[[tools]]\nmatch = \"shop.order\"\nconfirm = \"always\"\n",
    "[[tools]]\nmatch = \"shop.*\"\nconfirm = \"always\"\nfour_eyes = true\n",
    "[[agents]]\nid = \"bot\"\ndeny = [\"shop.order\"]\n",
    "[[rules]]\nname = \"many\"\nmatch = \"shop.order\"\nwhen = \"args.quantity > 2\"\nthen = \"deny\"\n",
    "[[rules]]\nname = \"large\"\nmatch = \"shop.order\"\nwhen = \"money(args.total) > money('100', 'EUR')\"\nthen = \"confirm\"\n",
    "[[rules]]\nname = \"two\"\nmatch = \"shop.order\"\nwhen = \"args.quantity == 1\"\nthen = \"four_eyes\"\n",
    "[[rules]]\nname = \"bots\"\nmatch = \"shop.*\"\nwhen = \"principal.type == 'agent' && call.dry_run\"\nthen = \"deny\"\n",
    "[[rules]]\nname = \"tried\"\nmatch = \"*\"\nthen = \"deny\"\nmode = \"observe\"\n",
    "[[tools]]\nmatch = \"shop.*\"\nscopes = [\"orders\", \"admin\"]\n",
    "[[rules]]\nname = \"admins\"\nmatch = \"shop.order\"\nwhen = \"!('admin' in principal.scopes)\"\nthen = \"deny\"\n",
    "[[rules]]\nname = \"dear\"\nmatch = \"shop.order\"\nwhen = \"args.quantity > 1 && !('admin' in principal.scopes)\"\nthen = \"confirm\"\n",
    "[[rules]]\nname = \"night\"\nmatch = \"shop.*\"\nwhen = \"has(session.id) && session.id == 's_2' || now.getMinutes() > 1\"\nthen = \"four_eyes\"\n",
    "[[rules]]\nname = \"brokers\"\nmatch = \"*\"\nwhen = \"principal.type == 'system'\"\nthen = \"confirm\"\n",
    "[limits.tools.\"shop.find\"]\ncalls = 1\nper = \"366d\"\n",
];

/// A call of the law.
#[derive(Debug, Clone)]
struct Sent {
    tool: &'static str,
    text: String,
    agent: Option<&'static str>,
    key: Option<&'static str>,
    session: Option<&'static str>,
    scope: Option<&'static str>,
    dry_run: bool,
    /// True if the user agrees, and the same call is sent again.
    agrees: bool,
}

fn sent() -> impl Strategy<Value = Sent> {
    let order = (
        0_i64..5,
        prop::sample::select(vec!["1", "500"]),
        any::<bool>(),
    );
    let order = order.prop_map(|(quantity, amount, is_euro)| {
        let mut order = arguments();
        order["quantity"] = json!(quantity);
        let currency = if is_euro { "EUR" } else { "USD" };
        order["total"] = json!({"amount": amount, "currency": currency});
        ("shop.order", order.to_string())
    });
    let find = Just(("shop.find", json!({"query": "x"}).to_string()));
    let broken = prop::sample::select(vec!["shop.order", "shop.find"]);
    let broken = broken.prop_map(|tool| (tool, "not JSON".to_owned()));
    let what = prop_oneof![5 => order, 2 => find, 1 => broken];
    let agents = prop::sample::select(vec![None, Some("bot"), Some("alice"), Some("broker")]);
    let sessions = prop::sample::select(vec![None, Some("s_1"), Some("s_2")]);
    let scopes = prop::sample::select(vec![None, Some("orders"), Some("admin")]);
    let keys = prop::sample::select(vec![None, None, Some("k1"), Some("k2")]);
    let about = (agents, keys, sessions, scopes);
    let sent = (what, about, any::<bool>(), prop::bool::weighted(0.2));
    sent.prop_map(
        |((tool, text), (agent, key, session, scope), agrees, dry_run)| Sent {
            tool,
            text,
            agent,
            key,
            session,
            scope,
            dry_run,
            agrees,
        },
    )
}

fn who(sent: &Sent) -> Principal {
    let who = match sent.agent {
        None => Principal::user("ann"),
        // A program that names the actor of each call.
        Some("broker") => {
            let actor = Actor {
                kind: ActorType::System,
                id: "broker".to_owned(),
            };
            let mut broker = Principal::new(actor, "ann");
            broker.may_act_for_others = true;
            broker
        }
        Some(id) => {
            let actor = Actor {
                kind: ActorType::Agent,
                id: id.to_owned(),
            };
            Principal::new(actor, "ann")
        }
    };
    sent.scope.into_iter().fold(who, Principal::scope)
}

async fn make(world: &World, sent: &Sent) {
    let envelope = || RequestEnvelope {
        actor: (sent.agent == Some("broker")).then(|| Actor {
            kind: ActorType::Agent,
            id: "bot".to_owned(),
        }),
        session_id: sent.session.map(str::to_owned),
        idempotency_key: sent.key.map(str::to_owned),
        dry_run: sent.dry_run,
        ..RequestEnvelope::default()
    };
    let reply = world
        .send_in(who(sent), sent.tool, &sent.text, envelope())
        .await;
    let approval = &reply["error"]["details"]["approval_id"];
    if let (true, Some(id)) = (sent.agrees, approval.as_str()) {
        let approvals = world.executor.approvals();
        for user in ["ann", "op"] {
            let by = Principal::user(user).scope("approvals:answer");
            // The second yes is one too many where one is enough.
            approvals.approve(id, &by, None).await.ok();
        }
        world
            .send_in(who(sent), sent.tool, &sent.text, envelope())
            .await;
    }
}

/// The recorded decision of each call and the one under a draft, oldest first; and how many calls were left out.
async fn decided_again(
    world: &World,
    policy: &Policy,
    draft: &Policy,
) -> (Vec<(Ruling, Ruling)>, usize) {
    let (mut decided, mut left_out) = (Vec::new(), 0);
    for call in world.opened().await {
        let Some(tool) = &call.record.tool else {
            continue;
        };
        let entry = world.executor.catalog().get(&tool.name).unwrap();
        match PastCall::of(&call, &entry, policy) {
            Ok(past) => {
                let again = past.recorded(policy);
                match again.and_then(|recorded| Ok((recorded, past.under(draft)?))) {
                    Ok(again) => decided.push(again),
                    Err(why) => {
                        assert_eq!(why, Omitted::ByScopes);
                        left_out += 1;
                    }
                }
            }
            Err(Omitted::NoCall) => {}
            Err(Omitted::NotKept) => unreachable!("{:?}", call.record),
            Err(Omitted::RefusedForTheCaller | Omitted::ByScopes) => left_out += 1,
        }
    }
    (decided, left_out)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Law: under the policy that decided them, no call would be decided otherwise than its record says.
    #[test]
    fn under_the_same_policy_nothing_changes(
        entries in prop::sample::subsequence(ENTRIES.to_vec(), 0..=ENTRIES.len()),
        is_observed in prop::bool::weighted(0.15),
        calls in prop::collection::vec(sent(), 1..8),
    ) {
        let mode = if is_observed { "observe" } else { "enforce" };
        let text = format!(
            "mode = \"{mode}\"\ndefaults = {{ unlisted = \"allow\" }}\n{}",
            entries.concat()
        );
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let world = World::with_policy(&text);
            for call in &calls {
                make(&world, call).await;
            }
            let policy = Policy::parse(&text).unwrap();
            let (decided, left_out) = decided_again(&world, &policy, &policy).await;
            assert!(decided.len() + left_out > 0);
            for (recorded, again) in decided {
                assert_eq!(recorded, again, "{text}");
            }
        });
    }
}

/// A record shows what was decided, whatever the policy in force says now.
#[tokio::test]
async fn what_was_recorded_is_compared_with_the_draft() {
    let strict = "defaults = { unlisted = \"allow\" }\n[[rules]]\nname = \"many\"\nmatch = \"shop.order\"\n\
                  when = \"args.quantity > 2\"\nthen = \"THEN\"\n";
    let denying = strict.replace("THEN", "deny");
    let world = World::with_policy(&denying);
    let mut few = arguments();
    few["quantity"] = json!(1);
    for order in [arguments(), few] {
        world.call("shop.order", &order).await;
    }
    let policy = Policy::parse(&denying).unwrap();
    let free = Policy::allow_all();
    let asking = Policy::parse(&strict.replace("THEN", "confirm")).unwrap();
    let shown = |(decided, _): (Vec<(Ruling, Ruling)>, usize)| {
        let shown = decided.into_iter();
        let shown = shown.map(|(recorded, draft)| json!([recorded.as_str(), draft.as_str()]));
        shown.collect::<Value>()
    };
    let again = shown(decided_again(&world, &policy, &free).await);
    assert_eq!(again, json!([["deny", "allow"], ["allow", "allow"]]));
    let again = shown(decided_again(&world, &policy, &asking).await);
    assert_eq!(again, json!([["deny", "confirm"], ["allow", "allow"]]));
    // The policy of that time is lost: the record still says that the call was refused.
    let again = shown(decided_again(&world, &free, &free).await);
    assert_eq!(again, json!([["deny", "allow"], ["allow", "allow"]]));
}

/// A call that a condition decides by the scopes of its caller is left out, and not decided as if the caller had every scope. One
/// that the condition decides without them is decided.
#[tokio::test]
async fn calls_that_scopes_decide_are_left_out() {
    let text = "defaults = { unlisted = \"allow\" }\n[[tools]]\nmatch = \"*\"\nscopes = [\"admin\", \"orders\"]\n\
                [[rules]]\nname = \"admins\"\nmatch = \"shop.order\"\n\
                when = \"args.quantity > 2 && !('admin' in principal.scopes)\"\nthen = \"deny\"\n";
    let world = World::with_policy(text);
    for quantity in [1, 3] {
        let mut order = arguments();
        order["quantity"] = json!(quantity);
        let ann = Principal::user("ann").scope("orders");
        let reply = world.call_as(ann, "shop.order", &order).await;
        assert_eq!(reply["ok"], quantity == 1, "{reply}");
    }
    let policy = Policy::parse(text).unwrap();
    let (decided, left_out) = decided_again(&world, &policy, &policy).await;
    assert_eq!(
        (decided, left_out),
        (vec![(Ruling::Allow, Ruling::Allow)], 1)
    );
}
