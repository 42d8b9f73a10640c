//! Expiry of claims: answers that expire, tombstones, and owners that are given up.

use std::time::Duration;

use countersign::ledger::{
    ClaimState, CommitAnswer, HeldState, Outcome, Scope, Store, Swept, TOMBSTONE,
};
use countersign_contract::tool::Recovery;

use super::build::{
    HOUR, TICK, almost, claimed, has_failed, has_succeeded, held, lost, request, scope, seen,
    settle, stands, succeeded, succeeded_long_ago, take,
};
use super::{Checked, Fresh};

/// A settled scope is never executed again, whether or not its answer is still there.
pub(super) async fn what_is_past_its_retention_is_refused_for_ever(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let failed_long_ago = Outcome::Failed {
        reply: b"gone".to_vec(),
        keep: Duration::ZERO,
    };
    for (n, outcome) in [succeeded_long_ago(), failed_long_ago]
        .into_iter()
        .enumerate()
    {
        let key = format!("k{n}");
        let done = take(&scope(&key), 0, outcome, &format!("ev_{n}"));
        assert_eq!(store.commit(done).await?, CommitAnswer::Committed);
        is_refused(store, &scope(&key), &format!("ev_more{n}")).await?;
    }
    Ok(())
}

pub(super) async fn a_sweep_keeps_refusing_what_it_drops(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let done = take(&scope("k"), 0, succeeded_long_ago(), "ev_1");
    assert_eq!(store.commit(done).await?, CommitAnswer::Committed);
    assert_eq!(super::rows(store, ClaimState::Tombstone).await?.len(), 0);
    let swept = store.sweep(10).await?;
    let one = Swept {
        tombstones: 1,
        ..Swept::default()
    };
    assert_eq!(swept, one);
    assert!(store.sweep(10).await?.is_empty());
    assert_eq!(super::rows(store, ClaimState::Tombstone).await?.len(), 1);
    is_refused(store, &scope("k"), "ev_2").await
}

/// Needs a moving clock: it does nothing for a fixture that lends none.
pub(super) async fn a_tombstone_goes_after_its_month(fresh: &Fresh) -> Checked {
    let Some(clock) = &fresh.clock else {
        return Ok(());
    };
    let store = &*fresh.store;
    let done = take(&scope("k"), 0, succeeded("kept for an hour"), "ev_1");
    assert_eq!(store.commit(done).await?, CommitAnswer::Committed);
    clock.advance(24 * HOUR);
    assert_eq!(store.sweep(10).await?.tombstones, 1);
    // The month counts from the end of the answer, not from the sweep that noticed it.
    clock.advance(almost(TOMBSTONE).saturating_sub(23 * HOUR));
    assert!(store.sweep(10).await?.is_empty());
    is_refused(store, &scope("k"), "ev_2").await?;
    clock.advance(TICK);
    let gone = Swept {
        removed: 1,
        ..Swept::default()
    };
    assert_eq!(store.sweep(10).await?, gone);
    assert_eq!(store.lookup(&scope("k")).await?, None);
    assert_eq!(claimed(store, &request(&scope("k"))).await?.attempt, 1);
    Ok(())
}

pub(super) async fn a_sweep_marks_lost_owners_in_doubt(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let over = Recovery::DownstreamKey { window_seconds: 0 };
    let usable = Recovery::DownstreamKey {
        window_seconds: 24 * 60 * 60,
    };
    let given_up = [
        Recovery::Operator,
        Recovery::Reconcile { grace_seconds: 60 },
        over,
    ];
    let kept = [Recovery::Retry, usable];
    for (n, recovery) in given_up.into_iter().chain(kept).enumerate() {
        claimed(store, &lost(&scope(&format!("k{n}")), recovery)).await?;
    }
    claimed(store, &request(&scope("alive"))).await?;
    let swept = Swept {
        in_doubt: given_up.len(),
        ..Swept::default()
    };
    assert_eq!(store.sweep(10).await?, swept);
    for n in 0..5 {
        let state = seen(store, &scope(&format!("k{n}"))).await?.state;
        let expected = if n < given_up.len() {
            HeldState::InDoubt
        } else {
            HeldState::Abandoned
        };
        assert_eq!(state, expected, "k{n}");
    }
    assert_eq!(super::rows(store, ClaimState::Running).await?.len(), 3);
    Ok(())
}

/// Claims in doubt and released claims stay however much time passes, if the fixture lends its clock.
pub(super) async fn a_sweep_leaves_doubt_and_releases_alone(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    for (key, outcome) in [("doubt", Outcome::InDoubt), ("free", Outcome::Released)] {
        let claim = claimed(store, &request(&scope(key))).await?;
        let done = settle(&claim, outcome, &format!("ev_{key}"));
        assert_eq!(store.commit(done).await?, CommitAnswer::Committed);
    }
    if let Some(clock) = &fresh.clock {
        clock.advance(100 * TOMBSTONE);
    }
    assert!(store.sweep(10).await?.is_empty());
    let doubt = seen(store, &scope("doubt")).await?;
    assert_eq!((doubt.attempt, doubt.state), (1, HeldState::InDoubt));
    // The attempt has to survive: it is what fences an owner who comes back.
    let free = seen(store, &scope("free")).await?;
    assert_eq!((free.attempt, free.state), (1, HeldState::Released));
    assert_eq!(claimed(store, &request(&scope("free"))).await?.attempt, 2);
    Ok(())
}

/// The limit is for each kind, so that one kind does not keep the others waiting.
pub(super) async fn a_sweep_does_not_do_more_than_its_limit(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    for n in 0..3 {
        let done = take(
            &scope(&format!("done{n}")),
            0,
            succeeded_long_ago(),
            &format!("ev_{n}"),
        );
        assert_eq!(store.commit(done).await?, CommitAnswer::Committed);
        claimed(
            store,
            &lost(&scope(&format!("lost{n}")), Recovery::Operator),
        )
        .await?;
    }
    let swept = |n| Swept {
        tombstones: n,
        in_doubt: n,
        ..Swept::default()
    };
    assert_eq!(store.sweep(2).await?, swept(2));
    assert_eq!(store.sweep(2).await?, swept(1));
    assert_eq!(store.sweep(2).await?, swept(0));
    if let Some(clock) = &fresh.clock {
        clock.advance(TOMBSTONE);
        assert_eq!(store.sweep(2).await?.removed, 2);
        assert_eq!(store.sweep(2).await?.removed, 1);
    }
    Ok(())
}

/// An answer is kept until the very end of its time, if the fixture lends its clock.
pub(super) async fn an_answer_is_kept_until_its_time(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let failed = Outcome::Failed {
        reply: b"no".to_vec(),
        keep: 2 * HOUR,
    };
    let both = [("a", succeeded("yes")), ("b", failed)];
    for (key, outcome) in both {
        let claim = claimed(store, &request(&scope(key))).await?;
        let done = settle(&claim, outcome, &format!("ev_{key}"));
        assert_eq!(store.commit(done).await?, CommitAnswer::Committed);
    }
    assert!(store.sweep(10).await?.is_empty());
    let state = |key| async move { Ok::<_, super::Error>(seen(store, &scope(key)).await?.state) };
    assert_eq!(state("a").await?, has_succeeded("yes"));
    assert_eq!(state("b").await?, has_failed("no"));
    if let Some(clock) = &fresh.clock {
        clock.advance(almost(HOUR));
        assert!(store.sweep(10).await?.is_empty());
        assert_eq!(state("a").await?, has_succeeded("yes"));
        clock.advance(TICK);
        assert_eq!(state("a").await?, HeldState::Expired);
        assert_eq!(state("b").await?, has_failed("no"));
        assert_eq!(store.sweep(10).await?.tombstones, 1);
    }
    Ok(())
}

/// Neither a claim nor a take gets a scope whose answer is gone.
async fn is_refused(store: &dyn Store, scope: &Scope, record: &str) -> Checked {
    let before = seen(store, scope).await?;
    assert_eq!(before.state, HeldState::Expired);
    let told = held(store.claim(&request(scope)).await?);
    assert_eq!(
        (told.attempt, told.state),
        (before.attempt, HeldState::Expired)
    );
    let unit = take(scope, before.attempt, succeeded("again"), record);
    let told = stands(store.commit(unit).await?);
    assert_eq!(
        (told.attempt, told.state),
        (before.attempt, HeldState::Expired)
    );
    Ok(())
}
