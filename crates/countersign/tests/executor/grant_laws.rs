//! Laws of standing grants, over generated policies, grants and calls.

use std::sync::Arc;

use countersign::Principal;
use countersign::contract::grant::GrantAmount;
use countersign::contract::tool::AmountUnit;
use countersign::contract::{NewGrant, ToolName};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::grants::{Below, Fixed, actor, agent};
use crate::world::{Probe, World, call_as};

const TOOLS: [&str; 2] = ["shop.buy", "shop.sell"];

/// A policy that asks about every call.
const ASKS: Policy = Policy {
    denies: false,
    must_confirm: true,
    four_eyes: false,
    tool_asks: false,
};

/// A policy, and whether each of the tools wants a confirmation itself.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is drawn by itself")]
struct Policy {
    denies: bool,
    must_confirm: bool,
    four_eyes: bool,
    tool_asks: bool,
}

/// A grant of the model.
#[derive(Debug, Clone)]
struct Made {
    /// Index of the agent.
    to: usize,
    tools: Vec<usize>,
    below: Option<u32>,
    calls: Option<u32>,
    amount: Option<u32>,
    hours: u32,
    is_revoked: bool,
}

#[derive(Debug, Clone, Copy)]
struct Sent {
    by: usize,
    tool: usize,
    total: u32,
    hours_later: u32,
}

fn policies() -> impl Strategy<Value = Policy> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    flags.prop_map(|(denies, must_confirm, four_eyes, tool_asks)| Policy {
        denies: denies && must_confirm,
        must_confirm,
        four_eyes: four_eyes && must_confirm,
        tool_asks,
    })
}

fn grants() -> impl Strategy<Value = Made> {
    let bounds = (
        proptest::option::of(1..120_u32),
        proptest::option::of(1..4_u32),
        proptest::option::of(1..200_u32),
    );
    let tools = prop_oneof![Just(vec![0]), Just(vec![1]), Just(vec![0, 1])];
    (
        0..2_usize,
        tools,
        bounds,
        1..30_u32,
        prop::bool::weighted(0.2),
    )
        .prop_map(
            |(to, tools, (below, calls, amount), hours, is_revoked)| Made {
                to,
                tools,
                below,
                calls,
                amount,
                hours,
                is_revoked,
            },
        )
}

fn calls() -> impl Strategy<Value = Vec<Sent>> {
    let call = (0..2_usize, 0..2_usize, 0..150_u32, 0..6_u32);
    let call = call.prop_map(|(by, tool, total, hours_later)| Sent {
        by,
        tool,
        total,
        hours_later,
    });
    prop::collection::vec(call, 1..8)
}

fn world(policy: Policy) -> World {
    let probes = TOOLS.map(|name| {
        let probe = Probe::write(name);
        if policy.tool_asks {
            probe.confirmed()
        } else {
            probe
        }
    });
    World::logging_with(probes, |builder| {
        builder
            .grant_language(Arc::new(Below))
            .authorizer(Arc::new(Fixed {
                denies: policy.denies,
                must_confirm: policy.must_confirm,
                four_eyes: policy.four_eyes,
            }))
    })
}

fn named(index: usize) -> String {
    format!("a_{index}")
}

fn new_grant(made: &Made, parent: Option<String>) -> NewGrant {
    let start: jiff::Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
    let until = start + jiff::SignedDuration::from_hours(i64::from(made.hours));
    NewGrant {
        user_id: None,
        to: actor(&named(made.to)),
        tools: made
            .tools
            .iter()
            .map(|tool| ToolName::new(TOOLS[*tool]).unwrap())
            .collect(),
        when: made.below.map(|most| format!("total<{most}")),
        calls: made.calls,
        amount: made.amount.map(|limit| GrantAmount {
            limit: limit.to_string(),
            currency: "EUR".to_owned(),
            at: Some("/total".to_owned()),
            currency_at: None,
            unit: AmountUnit::Major,
        }),
        until: until.to_string(),
        parent,
    }
}

/// Makes the grants; returns their ids. Revoked ones are revoked at once.
async fn give(world: &World, grants: &[Made]) -> Vec<String> {
    let by = Principal::user("u_1");
    let mut ids = Vec::new();
    for made in grants {
        let new = new_grant(made, None);
        let grant = world.executor.grants().make(&by, &new).await;
        let id = grant.unwrap().id;
        if made.is_revoked {
            let revoked = world.executor.grants().revoke(&id, &by, None);
            revoked.await.unwrap();
        }
        ids.push(id);
    }
    ids
}

/// Gives each grant to an agent of its own; makes each no wider than the one before, if that is wanted.
fn linked(mut chain: Vec<Made>, is_narrowed: bool) -> Vec<Made> {
    let least = |own: Option<u32>, most: Option<u32>| own.into_iter().chain(most).min();
    for to in 0..chain.len() {
        let above = to.checked_sub(1).map(|above| chain[above].clone());
        let made = &mut chain[to];
        (made.to, made.is_revoked) = (to, false);
        let Some(above) = above.filter(|_| is_narrowed) else {
            continue;
        };
        made.hours = made.hours.min(above.hours);
        made.calls = least(made.calls, above.calls);
        made.amount = least(made.amount, above.amount);
        if !made.tools.iter().all(|tool| above.tools.contains(tool)) {
            made.tools = above.tools;
        }
    }
    chain
}

/// Makes grants, each derived from the one before; returns the ids of those before the first that is refused.
async fn derive(world: &World, chain: &[Made]) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for made in chain {
        let new = new_grant(made, ids.last().cloned());
        match world
            .executor
            .grants()
            .make(&Principal::user("u_1"), &new)
            .await
        {
            Ok(grant) => ids.push(grant.id),
            Err(_) => break,
        }
    }
    ids
}

async fn send(world: &World, sent: Sent) -> Value {
    world.advance_seconds(u64::from(sent.hours_later) * 3_600);
    let arguments = json!({ "total": sent.total });
    let call = call_as(
        agent(&named(sent.by)),
        TOOLS[sent.tool],
        &arguments,
        &json!({}),
    );
    world.execute(call).await
}

fn code(reply: &Value) -> &str {
    reply["error"]["code"].as_str().unwrap_or("ran")
}

fn block_on(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// A grant never widens: what is denied without grants is denied with them, what needs two people is asked about, and
    /// what runs only with them is covered by one that is in force, by the rules of the model.
    #[test]
    fn a_grant_never_widens(
        policy in policies(),
        grants in prop::collection::vec(grants(), 0..4),
        calls in calls(),
    ) {
        block_on(async {
            let (without, with) = (world(policy), world(policy));
            give(&with, &grants).await;
            let mut hours = 0;
            for sent in calls {
                hours += sent.hours_later;
                let before = send(&without, sent).await;
                let after = send(&with, sent).await;
                let covered = grants.iter().any(|made| {
                    !made.is_revoked
                        && made.to == sent.by
                        && made.tools.contains(&sent.tool)
                        && made.below.is_none_or(|most| sent.total < most)
                        && made.amount.is_none_or(|most| sent.total <= most)
                        && hours < made.hours
                });
                match (code(&before), code(&after)) {
                    (one, other) if one == other => {}
                    ("NEEDS_USER_CONFIRMATION", "ran") => {
                        assert!(covered && !policy.four_eyes && !policy.denies);
                    }
                    (one, other) => panic!("{one} became {other}"),
                }
                if policy.denies {
                    assert_eq!(code(&after), "FORBIDDEN");
                }
            }
        });
    }

    /// The uses of a grant never exceed its bounds, whatever is called.
    #[test]
    fn a_grant_is_never_overspent(made in grants(), calls in calls()) {
        block_on(async {
            let world = world(ASKS);
            let made = Made { is_revoked: false, hours: 30, ..made };
            let ids = give(&world, std::slice::from_ref(&made)).await;
            let (mut ran, mut spent, mut hours) = (0, std::collections::BTreeMap::new(), 12);
            for sent in calls {
                hours += sent.hours_later;
                let reply = send(&world, sent).await;
                if reply["ok"] == true && reply["replayed"] != true {
                    ran += 1;
                    *spent.entry(hours / 24).or_insert(0) += sent.total;
                }
            }
            assert!(made.calls.is_none_or(|most| ran <= most));
            assert!(made.amount.is_none_or(|most| spent.values().all(|spent| *spent <= most)));
            let shown = world.executor.grants().show(&ids[0], &Principal::user("u_1")).await;
            assert_eq!(shown.unwrap().used.calls, u64::from(ran));
        });
    }

    /// A derived grant allows no more than any grant above it: what runs by it would have run by each of them alone.
    #[test]
    fn a_derived_grant_allows_no_more_than_those_above(
        chain in prop::collection::vec(grants(), 2..5),
        is_narrowed in prop::bool::weighted(0.8),
        calls in calls(),
    ) {
        block_on(async {
            let chain = linked(chain, is_narrowed);
            let derived = world(ASKS);
            // A grant that would be wider is refused, and so are those below it.
            let ids = derive(&derived, &chain).await;
            let (last, above) = chain[..ids.len()].split_last().unwrap();
            let mut alone = Vec::new();
            for made in above {
                let own = world(ASKS);
                give(&own, std::slice::from_ref(made)).await;
                alone.push((made.to, own));
            }
            for sent in calls {
                let below = send(&derived, Sent { by: last.to, ..sent }).await;
                for (by, own) in &alone {
                    if below["ok"] == true {
                        let above = send(own, Sent { by: *by, ..sent }).await;
                        assert_eq!(code(&above), "ran");
                    } else {
                        own.advance_seconds(u64::from(sent.hours_later) * 3_600);
                    }
                }
            }
        });
    }

    /// Revoking ends a grant and everything that is derived from it, at once, and nothing above it.
    #[test]
    fn a_revocation_ends_what_is_derived_and_nothing_else(
        length in 1..6_usize,
        revoked in any::<prop::sample::Index>(),
        callers in prop::collection::vec(any::<prop::sample::Index>(), 1..8),
    ) {
        block_on(async {
            let world = world(ASKS);
            let unbounded = |to| Made {
                to, tools: vec![0], below: None, calls: None, amount: None, hours: 30, is_revoked: false,
            };
            let chain: Vec<Made> = (0..length).map(unbounded).collect();
            let ids = derive(&world, &chain).await;
            assert_eq!(ids.len(), length);
            let revoked = revoked.index(length);
            let grants = world.executor.grants();
            for (round, is_revoked) in [(0, false), (1, true)] {
                if is_revoked {
                    grants.revoke(&ids[revoked], &Principal::user("u_1"), None).await.unwrap();
                }
                for (number, caller) in callers.iter().enumerate() {
                    let by = caller.index(length);
                    // No two calls are alike: an agent's repeat would be the first answer again.
                    let total = u32::try_from(round * 100 + number).unwrap();
                    let reply = send(&world, Sent { by, tool: 0, total, hours_later: 0 }).await;
                    assert_eq!(code(&reply) == "ran", !is_revoked || by < revoked, "{reply}");
                }
            }
        });
    }
}
