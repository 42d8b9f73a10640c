//! Making, revoking and erasing grants: who may, and what cannot be one.

use std::sync::Arc;

use countersign::Principal;
use countersign::approve::SCOPE_ANSWER;
use countersign::archive::{Archive, SCOPE_ERASE};
use countersign::contract::grant::GrantAmount;
use countersign::contract::{
    Actor, ActorType, ErrorCode, GrantState, Input, NewGrant, Parameter, ToolName, ValueKind,
};
use countersign::grant::{Error, Wanted};
use countersign::ids::RandomIds;
use countersign::ledger::Pots as _;
use countersign_evidence::note::SigningKey;
use serde_json::json;

use super::{
    actor, agent, buy, check_asked, euros, grant, make, revoke, shown, with_language, world,
};
use crate::world::{Probe, World};

/// A14: only the user, or who may answer for the user, makes and revokes a grant. An agent never does.
#[tokio::test]
async fn only_people_give_authority() {
    let world = world(Probe::write("shop.buy"));
    let grants = world.executor.grants();
    let of_user = NewGrant {
        user_id: Some("u_1".to_owned()),
        ..grant()
    };
    for (by, is_agent) in [
        (agent("a_7").scope(SCOPE_ANSWER), true),
        (Principal::user("u_2"), false),
    ] {
        let refused = grants.make(&by, &of_user).await.unwrap_err();
        match refused {
            Error::Agent => assert!(is_agent),
            Error::NotTheirs => assert!(!is_agent),
            other => panic!("{other}"),
        }
    }
    let operator = Principal::user("op").scope(SCOPE_ANSWER);
    let made = grants.make(&operator, &of_user).await.unwrap();
    assert_eq!(
        (made.made_by.id.as_str(), made.user_id.as_str()),
        ("op", "u_1")
    );
    assert_eq!(buy(&world, "a_7", 1, &json!({})).await["ok"], true);
    // An agent sees what was given to it, and nothing else; it ends nothing.
    let listed = grants
        .list(&agent("a_7"), &Wanted::default())
        .await
        .unwrap();
    assert_eq!(listed.len(), 1);
    let other = grants
        .list(&agent("a_8"), &Wanted::default())
        .await
        .unwrap();
    assert_eq!(other.len(), 0);
    let refused = grants
        .revoke("gr_1", &agent("a_7"), None)
        .await
        .unwrap_err();
    assert!(matches!(refused, Error::Agent), "{refused}");
    let refused = grants.revoke("gr_1", &Principal::user("u_2"), None).await;
    assert!(matches!(refused, Err(Error::Unknown(_))), "{refused:?}");
    let all = grants.list(&operator, &Wanted::default()).await.unwrap();
    assert_eq!(all.len(), 1);
    grants.revoke("gr_1", &operator, None).await.unwrap();
    check_asked(&buy(&world, "a_7", 2, &json!({})).await);
}

/// What cannot be a grant is refused, with the member that is wrong.
#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one table of refusals")]
async fn a_grant_that_means_nothing_is_refused() {
    let total = Parameter::new("total", ValueKind::Integer, "");
    let probe = Probe::write("shop.buy")
        .input(Input::parameters([total]))
        .confirmed();
    let world = World::logging_with([probe], with_language);
    make(
        &world,
        &NewGrant {
            calls: Some(5),
            amount: Some(euros("10")),
            ..grant()
        },
    )
    .await;
    let derived = || NewGrant {
        parent: Some("gr_1".to_owned()),
        ..grant()
    };
    let tool = |name: &str| vec![ToolName::new(name).unwrap()];
    let user = Actor {
        kind: ActorType::User,
        id: "u_2".to_owned(),
    };
    let wrong: Vec<(&str, NewGrant)> = vec![
        (
            "/to",
            NewGrant {
                to: user,
                ..grant()
            },
        ),
        (
            "/tools",
            NewGrant {
                tools: Vec::new(),
                ..grant()
            },
        ),
        (
            "/tools",
            NewGrant {
                tools: [tool("shop.buy"), tool("shop.buy")].concat(),
                ..grant()
            },
        ),
        (
            "/tools/0",
            NewGrant {
                tools: tool("shop.nothing"),
                ..grant()
            },
        ),
        (
            "/until",
            NewGrant {
                until: "2026-11-15T12:00:00Z".to_owned(),
                ..grant()
            },
        ),
        (
            "/until",
            NewGrant {
                until: "2027-11-17T12:00:00Z".to_owned(),
                ..grant()
            },
        ),
        (
            "/until",
            NewGrant {
                until: "tomorrow".to_owned(),
                ..grant()
            },
        ),
        (
            "/calls",
            NewGrant {
                calls: Some(0),
                ..grant()
            },
        ),
        (
            "/amount",
            NewGrant {
                amount: Some(euros("0")),
                ..grant()
            },
        ),
        (
            "/amount",
            NewGrant {
                amount: Some(euros("-1")),
                ..grant()
            },
        ),
        (
            "/amount/at",
            NewGrant {
                amount: Some(GrantAmount {
                    at: None,
                    ..euros("1")
                }),
                ..grant()
            },
        ),
        (
            "/amount/at",
            NewGrant {
                amount: Some(GrantAmount {
                    at: Some("/price".to_owned()),
                    ..euros("1")
                }),
                ..grant()
            },
        ),
        (
            "/when",
            NewGrant {
                when: Some("unknown<1".to_owned()),
                ..grant()
            },
        ),
        (
            "/parent",
            NewGrant {
                parent: Some("gr_0".to_owned()),
                ..grant()
            },
        ),
        (
            "/until",
            NewGrant {
                until: "2026-11-16T12:00:01Z".to_owned(),
                ..derived()
            },
        ),
        (
            "/calls",
            NewGrant {
                calls: Some(6),
                ..derived()
            },
        ),
        (
            "/amount",
            NewGrant {
                amount: Some(euros("10.01")),
                ..derived()
            },
        ),
        (
            "/amount",
            NewGrant {
                amount: Some(GrantAmount {
                    currency: "JPY".to_owned(),
                    ..euros("1")
                }),
                ..derived()
            },
        ),
    ];
    let by = Principal::user("u_1");
    for (field, new) in wrong {
        let refused = world.executor.grants().make(&by, &new).await;
        let body = refused.unwrap_err().into_body();
        assert_eq!(body.code, ErrorCode::InvalidArgument);
        assert_eq!(body.details.field.as_deref(), Some(field), "{new:?}");
    }
    let wrong = NewGrant {
        when: Some("total<x".to_owned()),
        ..grant()
    };
    let body = world
        .executor
        .grants()
        .make(&by, &wrong)
        .await
        .unwrap_err()
        .into_body();
    let body = json!(body);
    assert_eq!(
        body["message"],
        "the condition is wrong at column 7: no number"
    );
    assert_eq!(body["details"]["offset"], 6);

    // Eight grants in a row are enough.
    let mut parent = "gr_1".to_owned();
    for depth in 2..=9 {
        let child = NewGrant {
            parent: Some(parent.clone()),
            ..grant()
        };
        let made = world.executor.grants().make(&by, &child).await;
        match made {
            Ok(made) => parent = made.id,
            Err(error) => {
                assert_eq!(depth, 9, "{error}");
                return;
            }
        }
    }
    panic!("nine grants were derived from each other");
}

/// Revoking ends what is derived, at once and after a restart; the end of the time does, too.
#[tokio::test]
async fn revoking_cascades_and_time_ends() {
    let probes = || [Probe::write("shop.buy").confirmed()];
    let world = World::logging_with(probes(), with_language);
    make(&world, &grant()).await;
    let child = NewGrant {
        to: actor("a_8"),
        parent: Some("gr_1".to_owned()),
        until: "2026-11-15T18:00:00Z".to_owned(),
        ..grant()
    };
    make(&world, &child).await;
    let grandchild = NewGrant {
        to: actor("a_9"),
        parent: Some("gr_2".to_owned()),
        until: "2026-11-15T18:00:00Z".to_owned(),
        ..grant()
    };
    make(&world, &grandchild).await;
    assert_eq!(buy(&world, "a_9", 1, &json!({})).await["ok"], true);
    // Every use is one of all that it is derived from.
    for id in ["gr_1", "gr_2", "gr_3"] {
        assert_eq!(shown(&world, id).await.used.calls, 1, "{id}");
    }
    let log = world.log().await;
    let (record, _) = log.last().unwrap();
    assert_eq!(record["act"]["grant_id"], "gr_3");
    assert_eq!(record["links"].as_array().unwrap().len(), 3, "{record:#}");

    // After a restart they are the same.
    let restarted = world.replica_with(probes(), with_language);
    assert_eq!(buy(&restarted, "a_9", 2, &json!({})).await["ok"], true);
    let revoked = revoke(&world, "gr_1").await;
    assert_eq!(revoked.state, GrantState::Revoked);
    assert_eq!(revoked.revoked.unwrap().reason.as_deref(), Some("enough"));
    for (id, who) in [("gr_1", "a_7"), ("gr_2", "a_8"), ("gr_3", "a_9")] {
        assert_eq!(shown(&world, id).await.state, GrantState::Revoked, "{id}");
        check_asked(&buy(&restarted, who, 3, &json!({})).await);
        check_asked(&buy(&world, who, 3, &json!({})).await);
    }
    // Twice is the same as once.
    let again = revoke(&world, "gr_1").await;
    assert_eq!(again.state, GrantState::Revoked);

    let later = world.replica_with(probes(), with_language);
    make(&later, &grant()).await;
    assert_eq!(buy(&later, "a_7", 4, &json!({})).await["ok"], true);
    later.advance_seconds(24 * 3_600);
    check_asked(&buy(&later, "a_7", 5, &json!({})).await);
    assert_eq!(shown(&later, "gr_4").await.state, GrantState::Ended);
}

/// A13: erasing the user removes the grants, what names the user beside them, and their pots.
#[tokio::test]
async fn grants_go_with_their_user() {
    let world = world(Probe::write("shop.buy"));
    make(&world, &grant()).await;
    assert_eq!(buy(&world, "a_7", 1, &json!({})).await["ok"], true);
    assert_eq!(world.store.pots(Some("u_1"), 10).await.unwrap().len(), 1);
    let key = SigningKey::from_seed("example.com/log", &[3; 32]).unwrap();
    let archive = Archive::new(
        world.store.clone(),
        world.executor.vault().clone(),
        world.clock.clone(),
        Arc::new(RandomIds::default()),
        key.verifying_key(),
    );
    let eraser = Principal::user("op").scope(SCOPE_ERASE);
    archive.erase("u_1", &eraser, "asked to").await.unwrap();
    assert!(world.store.pots(None, 10).await.unwrap().is_empty());
    let operator = Principal::user("op").scope(SCOPE_ANSWER);
    let left = world
        .executor
        .grants()
        .list(&operator, &Wanted::default())
        .await;
    assert!(left.unwrap().is_empty());
    let gone = world.executor.grants().show("gr_1", &operator).await;
    assert!(matches!(gone, Err(Error::Unknown(_))), "{gone:?}");
    check_asked(&buy(&world, "a_7", 2, &json!({})).await);
}
