//! A scope that is taken and settled, without a lost owner.

use std::collections::BTreeSet;
use std::time::Duration;

use countersign::ledger::{
    Claim, ClaimAnswer, ClaimQuery, ClaimRequest, ClaimState, CommitAnswer, HeldState, Outcome,
    Scope, Store,
};
use countersign_contract::tool::Recovery;
use jiff::SignedDuration;

use super::build::{
    claimed, failed, fingerprint, has_failed, has_succeeded, held, ours, parts, request,
    request_id, scope, scope_of, seen, settle, succeeded, with_arguments,
};
use super::{Checked, Fresh};

pub(super) async fn nothing_is_known_of_a_new_scope(fresh: &Fresh) -> Checked {
    assert_eq!(fresh.store.lookup(&scope("k")).await?, None);
    let everything = ClaimQuery {
        limit: 10,
        ..ClaimQuery::default()
    };
    assert_eq!(fresh.store.claims(&everything).await?, []);
    Ok(())
}

pub(super) async fn a_claim_is_running_and_held_for_everybody_else(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let asked = request(&scope("k"));
    let claim = claimed(store, &asked).await?;
    let ours = Claim {
        scope: scope("k"),
        attempt: 1,
    };
    assert_eq!(claim, ours);

    let told = held(fresh.handle(1).claim(&asked).await?);
    let looked = seen(store, &scope("k")).await?;
    for held in [told, looked] {
        let HeldState::Running { retry_after_ms } = held.state else {
            unreachable!("it runs: {held:?}");
        };
        assert!((1..=60_000).contains(&retry_after_ms), "{retry_after_ms}");
        assert_eq!(held.attempt, 1);
        assert_eq!(held.fingerprint, fingerprint(1));
        assert_eq!(*held.parts, *parts(1));
        assert!(held.age < Duration::from_mins(1), "{:?}", held.age);
    }
    if let Some(clock) = &fresh.clock {
        clock.advance(Duration::from_secs(90));
        let held = seen(store, &scope("k")).await?;
        assert_eq!(held.age, Duration::from_secs(90));
    }
    Ok(())
}

/// A17: a key stands for the arguments of the last claim, unless that was released.
pub(super) async fn a_claim_for_other_arguments_is_told_and_changes_nothing(
    fresh: &Fresh,
) -> Checked {
    let store = &*fresh.store;
    let others = |key: &str| with_arguments(2, request(&scope(key)));
    let outcomes = [
        ("running", None),
        ("succeeded", Some(succeeded("answer"))),
        ("failed", Some(failed("answer"))),
        ("in_doubt", Some(Outcome::InDoubt)),
        ("abandoned", Some(Outcome::Abandoned)),
    ];
    for (key, outcome) in outcomes {
        let claim = claimed(store, &request(&scope(key))).await?;
        if let Some(outcome) = outcome {
            let done = settle(&claim, outcome, &format!("ev_{}", key.replace('_', "-")));
            assert_eq!(store.commit(done).await?, CommitAnswer::Committed, "{key}");
        }
        let before = seen(store, &scope(key)).await?;
        let told = held(store.claim(&others(key)).await?);
        assert_eq!(told.fingerprint, fingerprint(1), "{key}");
        assert_eq!(*told.parts, *parts(1), "{key}");
        assert_eq!(told.attempt, 1, "{key}");
        let after = seen(store, &scope(key)).await?;
        assert_eq!(named(&told.state), named(&before.state), "{key}");
        assert_eq!(named(&after.state), named(&before.state), "{key}");
        assert_eq!(after.attempt, 1, "{key}");
    }
    Ok(())
}

/// A17: the scope is user, tool and key.
pub(super) async fn the_same_key_of_another_user_or_tool_is_another_key(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let scopes = [
        scope_of("u_1", "orders.create", "k"),
        scope_of("u_2", "orders.create", "k"),
        scope_of("u_1", "orders.cancel", "k"),
        scope_of("u_1", "orders.create", "other"),
    ];
    for (n, scope) in scopes.iter().enumerate() {
        let asked = with_arguments(n as u8, request(scope));
        let claim = claimed(store, &asked).await?;
        assert_eq!(claim.attempt, 1);
        let done = settle(&claim, succeeded(&format!("{n}")), &format!("ev_{n}"));
        assert_eq!(store.commit(done).await?, CommitAnswer::Committed);
    }
    for (n, scope) in scopes.iter().enumerate() {
        let held = seen(store, scope).await?;
        assert_eq!(held.state, has_succeeded(&format!("{n}")));
        assert_eq!(held.fingerprint, fingerprint(n as u8));
    }
    Ok(())
}

/// A18: a repeat gets the stored answer, byte for byte.
pub(super) async fn success_is_kept_with_its_answer(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let claim = claimed(store, &request(&scope("k"))).await?;
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let outcome = Outcome::Succeeded {
        reply: bytes.clone(),
        keep: super::build::HOUR,
    };
    let done = store.commit(settle(&claim, outcome, "ev_1")).await?;
    assert_eq!(done, CommitAnswer::Committed);

    let told = held(store.claim(&request(&scope("k"))).await?);
    assert_eq!(told.state, HeldState::Succeeded(bytes.into()));
    assert_eq!(told.attempt, 1);
    assert_eq!(
        seen(&*fresh.handle(1), &scope("k")).await?.state,
        told.state
    );
    Ok(())
}

pub(super) async fn a_final_failure_is_kept_with_its_answer(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let claim = claimed(store, &request(&scope("k"))).await?;
    let done = store.commit(settle(&claim, failed("no"), "ev_1")).await?;
    assert_eq!(done, CommitAnswer::Committed);
    let told = held(store.claim(&request(&scope("k"))).await?);
    assert_eq!(told.state, has_failed("no"));
    Ok(())
}

pub(super) async fn a_release_lets_the_same_call_take_it_again(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let claim = claimed(store, &request(&scope("k"))).await?;
    let done = settle(&claim, Outcome::Released, "ev_1");
    assert_eq!(store.commit(done).await?, CommitAnswer::Committed);
    assert_eq!(seen(store, &scope("k")).await?.state, HeldState::Released);
    let again = claimed(store, &request(&scope("k"))).await?;
    assert_eq!(again.attempt, 2);
    let done = settle(&again, succeeded("second"), "ev_2");
    assert_eq!(store.commit(done).await?, CommitAnswer::Committed);
    let held = seen(store, &scope("k")).await?;
    assert_eq!((held.attempt, held.state), (2, has_succeeded("second")));
    Ok(())
}

/// A17: a claim that was released had no effect, so the key takes the arguments of a corrected call and stands for those.
pub(super) async fn a_release_lets_other_arguments_take_it(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let asked = |arguments| with_arguments(arguments, request(&scope("k")));
    for (attempt, arguments) in [(1, 1), (2, 2), (3, 3)] {
        let claim = claimed(store, &asked(arguments)).await?;
        assert_eq!(claim.attempt, attempt);
        let held = seen(store, &scope("k")).await?;
        assert_eq!(held.fingerprint, fingerprint(arguments));
        assert_eq!(*held.parts, *parts(arguments));
        let outcome = match attempt {
            3 => succeeded("third"),
            _ => Outcome::Released,
        };
        let done = settle(&claim, outcome, &format!("ev_{attempt}"));
        assert_eq!(store.commit(done).await?, CommitAnswer::Committed);
    }
    for arguments in [1, 2, 3] {
        let told = held(fresh.handle(1).claim(&asked(arguments)).await?);
        assert_eq!((told.attempt, told.state), (3, has_succeeded("third")));
        assert_eq!(told.fingerprint, fingerprint(3));
    }
    // Attempts count whatever their arguments are.
    let claim = claimed(store, &request(&scope("other"))).await?;
    let done = settle(&claim, Outcome::Released, "ev_4");
    assert_eq!(store.commit(done).await?, CommitAnswer::Committed);
    let last = ClaimRequest {
        attempts_max: 1,
        ..with_arguments(2, request(&scope("other")))
    };
    let answer = store.claim(&last).await?;
    assert_eq!(answer, ClaimAnswer::Exhausted { attempts: 1 });
    assert_eq!(
        seen(store, &scope("other")).await?.fingerprint,
        fingerprint(1)
    );
    Ok(())
}

/// An owner that gave up without knowing the effect counts as a lost one: its recovery decides, at once.
pub(super) async fn an_abandoned_claim_is_taken_over_by_the_same_call_alone(
    fresh: &Fresh,
) -> Checked {
    let store = &*fresh.store;
    let window_seconds = 3_600;
    for (n, recovery) in [
        Recovery::Operator,
        Recovery::Retry,
        Recovery::Reconcile { grace_seconds: 1 },
        Recovery::DownstreamKey { window_seconds },
        Recovery::DownstreamKey { window_seconds: 0 },
    ]
    .into_iter()
    .enumerate()
    {
        let scope = scope(&format!("k{n}"));
        let asked = ClaimRequest {
            recovery,
            ..request(&scope)
        };
        let claim = claimed(store, &asked).await?;
        let done = settle(&claim, Outcome::Abandoned, &format!("ev_{n}"));
        assert_eq!(store.commit(done).await?, CommitAnswer::Committed);
        assert_eq!(seen(store, &scope).await?.state, HeldState::Abandoned);
        let told = held(store.claim(&with_arguments(2, asked.clone())).await?);
        assert_eq!((told.attempt, told.state), (1, HeldState::Abandoned));
        let may_take = match recovery {
            Recovery::Retry => true,
            Recovery::DownstreamKey { window_seconds } => window_seconds > 0,
            Recovery::Operator | Recovery::Reconcile { .. } => false,
        };
        if may_take {
            assert_eq!(claimed(store, &asked).await?.attempt, 2);
        } else {
            let told = held(store.claim(&asked).await?);
            assert_eq!((told.attempt, told.state), (1, HeldState::InDoubt));
        }
    }
    Ok(())
}

pub(super) async fn doubt_is_kept_until_it_is_resolved(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let claim = claimed(store, &request(&scope("k"))).await?;
    let done = settle(&claim, Outcome::InDoubt, "ev_1");
    assert_eq!(store.commit(done).await?, CommitAnswer::Committed);
    for _ in 0..2 {
        let told = held(store.claim(&request(&scope("k"))).await?);
        assert_eq!((told.attempt, told.state), (1, HeldState::InDoubt));
    }
    if let Some(clock) = &fresh.clock {
        clock.advance(1_000_000 * super::build::HOUR);
        let told = held(store.claim(&request(&scope("k"))).await?);
        assert_eq!((told.attempt, told.state), (1, HeldState::InDoubt));
    }
    Ok(())
}

pub(super) async fn attempts_rise_with_every_claim(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    for attempt in 1..=5 {
        let claim = claimed(store, &request(&scope("k"))).await?;
        assert_eq!(claim.attempt, attempt);
        let done = settle(&claim, Outcome::Released, &format!("ev_{attempt}"));
        assert_eq!(store.commit(done).await?, CommitAnswer::Committed);
        assert_eq!(seen(store, &scope("k")).await?.attempt, attempt);
    }
    Ok(())
}

pub(super) async fn attempts_are_used_up(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let asked = ClaimRequest {
        attempts_max: 2,
        ..request(&scope("k"))
    };
    for attempt in 1..=2 {
        let claim = claimed(store, &asked).await?;
        let done = settle(&claim, Outcome::Released, &format!("ev_{attempt}"));
        assert_eq!(store.commit(done).await?, CommitAnswer::Committed);
    }
    for _ in 0..2 {
        let answer = store.claim(&asked).await?;
        assert_eq!(answer, ClaimAnswer::Exhausted { attempts: 2 });
    }
    let held = seen(store, &scope("k")).await?;
    assert_eq!((held.attempt, held.state), (2, HeldState::Released));
    // The limit is the asker's, so that an operator may raise it.
    let more = ClaimRequest {
        attempts_max: 3,
        ..asked
    };
    assert_eq!(claimed(store, &more).await?.attempt, 3);
    Ok(())
}

pub(super) async fn a_settled_claim_cannot_be_settled_again(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let outcomes = [succeeded("first"), failed("first"), Outcome::Released];
    for (n, outcome) in outcomes.into_iter().enumerate() {
        let key = format!("k{n}");
        let claim = claimed(store, &request(&scope(&key))).await?;
        let done = settle(&claim, outcome, &format!("ev_{n}"));
        assert_eq!(store.commit(done).await?, CommitAnswer::Committed);
        let before = seen(store, &scope(&key)).await?;
        let late = settle(&claim, succeeded("second"), &format!("ev_{n}-late"));
        assert_eq!(store.commit(late).await?, CommitAnswer::Fenced);
        assert_eq!(seen(store, &scope(&key)).await?.state, before.state);
    }
    Ok(())
}

pub(super) async fn a_claim_that_was_never_made_cannot_be_settled(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let invented = Claim {
        scope: scope("k"),
        attempt: 1,
    };
    let done = settle(&invented, succeeded("made up"), "ev_1");
    assert_eq!(store.commit(done).await?, CommitAnswer::Fenced);
    assert_eq!(store.lookup(&scope("k")).await?, None);

    let claim = claimed(store, &request(&scope("k"))).await?;
    let later = Claim {
        attempt: claim.attempt + 1,
        ..claim
    };
    let done = settle(&later, succeeded("made up"), "ev_2");
    assert_eq!(store.commit(done).await?, CommitAnswer::Fenced);
    let state = seen(store, &scope("k")).await?.state;
    assert_eq!(named(&state), "running");
    Ok(())
}

/// The rows come in the order in which they were claimed last; a fixture with a clock moves it on.
pub(super) async fn operators_see_claims_oldest_first_and_filtered(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let scopes = [
        scope_of("u_2", "orders.create", "z"),
        scope_of("u_1", "orders.create", "y"),
        scope_of("u_1", "orders.create", "x"),
    ];
    let mut claims = Vec::new();
    for (n, scope) in scopes.iter().enumerate() {
        let asked = ClaimRequest {
            request_id: request_id(&format!("req_{n}")),
            ..request(scope)
        };
        claims.push(claimed(store, &asked).await?);
        if let Some(clock) = &fresh.clock {
            clock.advance(Duration::from_secs(1));
        }
    }
    for claim in claims.iter().skip(1).take(1) {
        let done = settle(claim, Outcome::InDoubt, "ev_1");
        assert_eq!(store.commit(done).await?, CommitAnswer::Committed);
    }
    let [z, y, x] = scopes;
    let cases = [
        (None, None, 10, vec![&z, &y, &x]),
        (None, None, 2, vec![&z, &y]),
        (Some(ClaimState::Running), None, 10, vec![&z, &x]),
        (Some(ClaimState::InDoubt), None, 10, vec![&y]),
        (Some(ClaimState::Tombstone), None, 10, vec![]),
        (None, Some("u_1"), 10, vec![&y, &x]),
        (Some(ClaimState::Running), Some("u_1"), 10, vec![&x]),
        (None, Some("u_3"), 10, vec![]),
    ];
    for (state, user_id, limit, expected) in cases {
        let query = ClaimQuery {
            state,
            user_id: user_id.map(str::to_owned),
            limit,
            ..ClaimQuery::default()
        };
        let rows = store.claims(&query).await?;
        let found: Vec<_> = rows.iter().map(|row| &row.scope).collect();
        assert_eq!(found, expected, "{query:?}");
    }
    let everything = ClaimQuery {
        limit: 10,
        ..ClaimQuery::default()
    };
    claims_are_filtered_and_paged(store, [&z, &y, &x]).await?;
    for (n, row) in store.claims(&everything).await?.iter().enumerate() {
        let is_running = row.state == ClaimState::Running;
        assert_eq!(row.attempt, 1);
        assert_eq!(row.request_id, request_id(&format!("req_{n}")));
        assert_eq!(*row.parts, *parts(1));
        assert_eq!(row.lease_until.is_some(), is_running, "{row:?}");
        assert!(row.lease_until.is_none_or(|until| until > row.claimed_at));
    }
    Ok(())
}

/// Tool, key and age narrow a list; pages of one hold every claim once.
async fn claims_are_filtered_and_paged(store: &dyn Store, scopes: [&Scope; 3]) -> Checked {
    let [z, y, _] = scopes;
    let all = ClaimQuery {
        limit: 10,
        ..ClaimQuery::default()
    };
    let rows = store.claims(&all).await?;
    let oldest = rows.first().map(|row| row.claimed_at);
    let cases = [
        (
            ClaimQuery {
                tool: Some(z.tool.clone()),
                ..all.clone()
            },
            rows.len(),
        ),
        (
            ClaimQuery {
                tool: Some(scope_of("u", "orders.cancel", "k").tool),
                ..all.clone()
            },
            0,
        ),
        (
            ClaimQuery {
                key: Some(y.key),
                ..all.clone()
            },
            1,
        ),
        (
            ClaimQuery {
                key: Some(y.key),
                user_id: Some(z.user_id.clone()),
                ..all.clone()
            },
            0,
        ),
        (
            ClaimQuery {
                until: oldest.map(|at| at - SignedDuration::from_secs(1)),
                ..all.clone()
            },
            0,
        ),
        (
            ClaimQuery {
                until: rows.last().map(|row| row.claimed_at),
                ..all.clone()
            },
            rows.len(),
        ),
    ];
    for (query, expected) in cases {
        let found = store.claims(&query).await?;
        assert_eq!(found.len(), expected, "{query:?}");
    }
    let mut paged = Vec::new();
    let mut query = ClaimQuery { limit: 1, ..all };
    while let Some(row) = store.claims(&query).await?.pop() {
        query.after = Some((row.claimed_at, row.scope.clone()));
        paged.push(row.scope);
    }
    assert_eq!(paged.iter().collect::<Vec<_>>(), scopes);
    Ok(())
}

/// Keys of several users are looked up at once, whatever the tool; a key finds nothing of another user.
pub(super) async fn claims_are_found_by_the_keys_of_users(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let scopes = [
        scope_of("u_2", "orders.create", "x"),
        scope_of("u_1", "orders.create", "x"),
        scope_of("u_1", "orders.cancel", "x"),
        scope_of("u_1", "zones.move", "y"),
    ];
    for scope in &scopes {
        claimed(store, &request(scope)).await?;
        if let Some(clock) = &fresh.clock {
            clock.advance(Duration::from_secs(1));
        }
    }
    let [other, create, cancel, moved] = &scopes;
    let cases: [(&[&Scope], usize, &[&Scope]); 6] = [
        (&[], 10, &[]),
        (&[create], 10, &[create, cancel]),
        (&[create], 1, &[create]),
        (&[moved, other], 10, &[other, moved]),
        (&[moved, create, other], 10, &[other, create, cancel, moved]),
        (
            &[&scope_of("u_2", "any", "y"), &scope_of("u_3", "any", "x")],
            10,
            &[],
        ),
    ];
    for (asked, limit, expected) in cases {
        let keys = asked.iter().map(|scope| (scope.user_id.clone(), scope.key));
        let rows = store.claims_of(&keys.collect::<Vec<_>>(), limit).await?;
        let found: Vec<_> = rows.iter().map(|row| &row.scope).collect();
        assert_eq!(found, expected, "{asked:?}");
    }
    Ok(())
}

/// A later attempt is a claim of its own: by another call, at another time.
pub(super) async fn operators_see_the_newest_attempt(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let [first, second] = ["a", "b"].map(scope);
    for (n, scope) in [&first, &second, &first].into_iter().enumerate() {
        let asked = ClaimRequest {
            request_id: request_id(&format!("req_{n}")),
            ..request(scope)
        };
        let claim = claimed(store, &asked).await?;
        let done = settle(&claim, Outcome::Released, &format!("ev_{n}"));
        assert_eq!(store.commit(done).await?, CommitAnswer::Committed);
        if let Some(clock) = &fresh.clock {
            clock.advance(Duration::from_secs(1));
        }
    }
    let rows = super::rows(store, ClaimState::Released).await?;
    let shown: Vec<_> = rows
        .iter()
        .map(|row| (&row.scope, row.attempt, row.request_id.as_str()))
        .collect();
    assert_eq!(shown, [(&second, 1, "req_1"), (&first, 2, "req_2")]);
    if fresh.clock.is_some() {
        let age = seen(store, &first).await?.age;
        assert_eq!(age, Duration::from_secs(1));
    }
    Ok(())
}

/// Whatever races, one of 64 owns the scope.
pub(super) async fn racing_claims_have_one_owner(fresh: &Fresh) -> Checked {
    let answers = super::race(64, |n| {
        let store = fresh.handle(n);
        async move { store.claim(&request(&scope("k"))).await }
    })
    .await?;
    let (mine, others): (Vec<_>, Vec<_>) = answers
        .into_iter()
        .partition(|answer| matches!(answer, ClaimAnswer::Ours(_)));
    assert_eq!(mine.len(), 1);
    for answer in mine {
        assert_eq!(ours(answer).attempt, 1);
    }
    let told: BTreeSet<_> = others
        .into_iter()
        .map(|answer| {
            let held = held(answer);
            (named(&held.state), held.attempt, held.fingerprint)
        })
        .collect();
    assert_eq!(told, BTreeSet::from([("running", 1, fingerprint(1))]));
    Ok(())
}

/// The state without what time changes of it.
pub(super) fn named(state: &HeldState) -> &'static str {
    match state {
        HeldState::Running { .. } => "running",
        HeldState::Abandoned => "abandoned",
        HeldState::Released => "released",
        HeldState::Succeeded(_) => "succeeded",
        HeldState::Failed(_) => "failed",
        HeldState::InDoubt => "in_doubt",
        HeldState::Expired => "expired",
    }
}
