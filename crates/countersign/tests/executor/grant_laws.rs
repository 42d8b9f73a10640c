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
        let policy = Policy { denies: false, must_confirm: true, four_eyes: false, tool_asks: false };
        block_on(async {
            let world = world(policy);
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

    /// A derived grant allows no more than its parent: what runs by it would have run by the parent alone.
    #[test]
    fn a_child_allows_no_more_than_its_parent(
        parent in grants(),
        child in grants(),
        calls in calls(),
    ) {
        let policy = Policy { denies: false, must_confirm: true, four_eyes: false, tool_asks: false };
        block_on(async {
            let parent = Made { to: 0, ..parent };
            let (derived, alone) = (world(policy), world(policy));
            let ids = give(&derived, std::slice::from_ref(&Made { is_revoked: false, ..parent.clone() })).await;
            give(&alone, std::slice::from_ref(&parent)).await;
            let by = Principal::user("u_1");
            let new = new_grant(&Made { to: 1, ..child }, Some(ids[0].clone()));
            if derived.executor.grants().make(&by, &new).await.is_err() {
                return;
            }
            if parent.is_revoked {
                derived.executor.grants().revoke(&ids[0], &by, None).await.unwrap();
            }
            for sent in calls {
                let child = send(&derived, Sent { by: 1, ..sent }).await;
                if child["ok"] == true {
                    let parent = send(&alone, Sent { by: 0, ..sent }).await;
                    assert_eq!(code(&parent), "ran");
                } else {
                    alone.advance_seconds(u64::from(sent.hours_later) * 3_600);
                }
            }
        });
    }
}
