//! Owners that are lost, or were only thought to be.

use std::time::Duration;

use countersign::ledger::{
    ClaimAnswer, ClaimRequest, ClaimState, CommitAnswer, HeldState, Outcome,
};
use countersign_contract::tool::Recovery;

use super::build::{
    HOUR, TICK, almost, claimed, failed, has_succeeded, held, lost, record_id, request, scope,
    seen, settle, succeeded, with_arguments,
};
use super::claims::named;
use super::{Checked, Fresh};

/// Every recovery that allows no takeover.
const NO_TAKEOVER: [Recovery; 2] = [Recovery::Operator, Recovery::Reconcile { grace_seconds: 0 }];

pub(super) async fn retry_takes_over_when_the_lease_is_over(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let asked = lost(&scope("k"), Recovery::Retry);
    assert_eq!(claimed(store, &asked).await?.attempt, 1);
    let abandoned = seen(store, &scope("k")).await?;
    assert_eq!(abandoned.state, HeldState::Abandoned);
    assert_eq!(claimed(store, &asked).await?.attempt, 2);
    assert_eq!(claimed(&*fresh.handle(1), &asked).await?.attempt, 3);
    Ok(())
}

pub(super) async fn a_downstream_key_takes_over_within_its_window(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let window_seconds = 24 * 60 * 60;
    let asked = lost(&scope("k"), Recovery::DownstreamKey { window_seconds });
    for attempt in 1..=3 {
        assert_eq!(claimed(store, &asked).await?.attempt, attempt);
    }
    Ok(())
}

pub(super) async fn a_downstream_key_is_in_doubt_after_its_window(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let window_seconds = 0;
    let asked = lost(&scope("k"), Recovery::DownstreamKey { window_seconds });
    claimed(store, &asked).await?;
    for _ in 0..2 {
        let told = held(store.claim(&asked).await?);
        assert_eq!((told.attempt, told.state), (1, HeldState::InDoubt));
    }
    Ok(())
}

/// Needs a moving clock: it does nothing for a fixture that lends none.
pub(super) async fn four_fifths_of_the_window_count_from_the_first_claim(fresh: &Fresh) -> Checked {
    let Some(clock) = &fresh.clock else {
        return Ok(());
    };
    let store = &*fresh.store;
    let window_seconds = 100;
    let asked = lost(&scope("k"), Recovery::DownstreamKey { window_seconds });
    claimed(store, &asked).await?;
    clock.advance(Duration::from_secs(50));
    assert_eq!(claimed(store, &asked).await?.attempt, 2);
    clock.advance(Duration::from_secs(29));
    assert_eq!(claimed(store, &asked).await?.attempt, 3);
    clock.advance(Duration::from_secs(1));
    let told = held(store.claim(&asked).await?);
    assert_eq!((told.attempt, told.state), (3, HeldState::InDoubt));
    Ok(())
}

pub(super) async fn the_others_are_in_doubt_when_the_lease_is_over(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    for (n, recovery) in NO_TAKEOVER.into_iter().enumerate() {
        let key = format!("k{n}");
        let asked = lost(&scope(&key), recovery);
        claimed(store, &asked).await?;
        let looked = seen(store, &scope(&key)).await?;
        assert_eq!(looked.state, HeldState::Abandoned, "{recovery:?}");
        // Only a claim decides, and then it is decided for everybody.
        let told = held(store.claim(&asked).await?);
        assert_eq!((told.attempt, told.state), (1, HeldState::InDoubt));
        let looked = seen(store, &scope(&key)).await?;
        assert_eq!(looked.state, HeldState::InDoubt, "{recovery:?}");
    }
    Ok(())
}

/// The recovery of the lost owner counts, even if the tool has been declared anew since: only that says what the owner may have done.
pub(super) async fn the_lost_owner_says_what_it_leaves_behind(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    claimed(store, &lost(&scope("a"), Recovery::Operator)).await?;
    let told = held(store.claim(&lost(&scope("a"), Recovery::Retry)).await?);
    assert_eq!((told.attempt, told.state), (1, HeldState::InDoubt));

    claimed(store, &lost(&scope("b"), Recovery::Retry)).await?;
    let next = claimed(store, &lost(&scope("b"), Recovery::Operator)).await?;
    assert_eq!(next.attempt, 2);
    let told = held(store.claim(&lost(&scope("b"), Recovery::Retry)).await?);
    assert_eq!((told.attempt, told.state), (2, HeldState::InDoubt));
    Ok(())
}

/// A lease is over at its very end and not before, if the fixture lends its clock.
pub(super) async fn a_lease_that_is_not_over_is_nobody_elses(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let asked = ClaimRequest {
        recovery: Recovery::Retry,
        ..request(&scope("k"))
    };
    claimed(store, &asked).await?;
    let told = held(store.claim(&asked).await?);
    assert_eq!(named(&told.state), "running");
    if let Some(clock) = &fresh.clock {
        clock.advance(almost(HOUR));
        let told = held(store.claim(&asked).await?);
        assert_eq!(named(&told.state), "running");
        clock.advance(TICK);
        assert_eq!(claimed(store, &asked).await?.attempt, 2);
        // The new owner has a lease of its own.
        clock.advance(almost(HOUR));
        let told = held(store.claim(&asked).await?);
        assert_eq!(named(&told.state), "running");
    }
    Ok(())
}

pub(super) async fn an_overtaken_owner_is_fenced_and_its_record_kept(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let first = claimed(store, &lost(&scope("k"), Recovery::Retry)).await?;
    let second = claimed(store, &request(&scope("k"))).await?;
    let late = [
        succeeded("late"),
        failed("late"),
        Outcome::Released,
        Outcome::InDoubt,
    ];
    for (n, outcome) in late.into_iter().enumerate() {
        let id = format!("ev_late{n}");
        let answer = store.commit(settle(&first, outcome, &id)).await?;
        assert_eq!(answer, CommitAnswer::Fenced);
        let kept = store.record(&record_id(&id)).await?;
        assert!(kept.is_some(), "the record of a fenced owner is kept");
        let held = seen(store, &scope("k")).await?;
        assert_eq!((held.attempt, named(&held.state)), (2, "running"));
    }
    let done = settle(&second, succeeded("in time"), "ev_1");
    assert_eq!(store.commit(done).await?, CommitAnswer::Committed);
    let late = settle(&first, succeeded("later"), "ev_later");
    assert_eq!(store.commit(late).await?, CommitAnswer::Fenced);
    let held = seen(store, &scope("k")).await?;
    assert_eq!((held.attempt, held.state), (2, has_succeeded("in time")));
    Ok(())
}

pub(super) async fn a_late_owner_that_nobody_overtook_settles(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    for (n, recovery) in NO_TAKEOVER.into_iter().chain([Recovery::Retry]).enumerate() {
        let key = format!("k{n}");
        let claim = claimed(store, &lost(&scope(&key), recovery)).await?;
        let done = settle(&claim, succeeded("late"), &format!("ev_{n}"));
        assert_eq!(store.commit(done).await?, CommitAnswer::Committed);
        let held = seen(store, &scope(&key)).await?;
        assert_eq!(held.state, has_succeeded("late"));
    }
    Ok(())
}

pub(super) async fn a_paused_owner_in_doubt_settles_itself(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let asked = lost(&scope("k"), Recovery::Operator);
    let claim = claimed(store, &asked).await?;
    let told = held(store.claim(&asked).await?);
    assert_eq!(told.state, HeldState::InDoubt);
    let done = settle(&claim, succeeded("it worked"), "ev_1");
    assert_eq!(store.commit(done).await?, CommitAnswer::Committed);
    let told = held(store.claim(&asked).await?);
    assert_eq!((told.attempt, told.state), (1, has_succeeded("it worked")));
    Ok(())
}

/// An operator names the attempt that was seen in doubt; a second operator comes too late.
pub(super) async fn an_operator_settles_what_is_in_doubt(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let claim = claimed(store, &request(&scope("k"))).await?;
    let done = settle(&claim, Outcome::InDoubt, "ev_1");
    assert_eq!(store.commit(done).await?, CommitAnswer::Committed);
    let done = settle(&claim, Outcome::Released, "ev_2");
    assert_eq!(store.commit(done).await?, CommitAnswer::Committed);
    let late = settle(&claim, succeeded("other"), "ev_3");
    assert_eq!(store.commit(late).await?, CommitAnswer::Fenced);

    // Free again, so the call runs again as the next attempt, and is in doubt again.
    let again = claimed(store, &lost(&scope("k"), Recovery::Operator)).await?;
    assert_eq!(again.attempt, 2);
    held(store.claim(&request(&scope("k"))).await?);
    let stale = settle(&claim, succeeded("of the first"), "ev_4");
    assert_eq!(store.commit(stale).await?, CommitAnswer::Fenced);
    let done = settle(&again, failed("checked by hand"), "ev_5");
    assert_eq!(store.commit(done).await?, CommitAnswer::Committed);
    Ok(())
}

pub(super) async fn an_abandoned_scope_of_other_arguments_stays_as_it_is(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    for (key, recovery) in [("a", Recovery::Retry), ("b", Recovery::Operator)] {
        claimed(store, &lost(&scope(key), recovery)).await?;
        let other = with_arguments(2, lost(&scope(key), recovery));
        let told = held(store.claim(&other).await?);
        assert_eq!((told.attempt, told.state), (1, HeldState::Abandoned));
        let looked = seen(store, &scope(key)).await?;
        assert_eq!(looked.state, HeldState::Abandoned);
    }
    Ok(())
}

/// Of 64 racing takeovers exactly one replaces a lost owner.
pub(super) async fn racing_takeovers_have_one_owner(fresh: &Fresh) -> Checked {
    claimed(&*fresh.store, &lost(&scope("k"), Recovery::Retry)).await?;
    let answers = super::race(64, |n| {
        let store = fresh.handle(n);
        let asked = ClaimRequest {
            recovery: Recovery::Retry,
            ..request(&scope("k"))
        };
        async move { store.claim(&asked).await }
    })
    .await?;
    let mut owners = Vec::new();
    for answer in answers {
        match answer {
            ClaimAnswer::Ours(claim) => owners.push(claim.attempt),
            ClaimAnswer::Held(held) => {
                assert_eq!((held.attempt, named(&held.state)), (2, "running"));
            }
            ClaimAnswer::Exhausted { .. } | ClaimAnswer::Over(_) | ClaimAnswer::Erased => {
                unreachable!("there were two attempts, and no money")
            }
        }
    }
    assert_eq!(owners, [2]);
    let rows = super::rows(&*fresh.store, ClaimState::Running).await?;
    assert_eq!(rows.len(), 1);
    Ok(())
}
