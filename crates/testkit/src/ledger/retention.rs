//! Expiry of claims: answers that expire, tombstones, and owners that are given up.

use std::time::Duration;

use countersign::ledger::{
    ClaimState, CommitAnswer, Disposed, Forgotten, HeldState, Outcome, Scope, Store, Swept,
};
use countersign_contract::tool::Recovery;
use jiff::Timestamp;

use super::build::{
    HOUR, TICK, almost, claimed, disposed, disposed_now, has_failed, has_succeeded, held, lost,
    request, scope, seen, settle, stands, succeeded, succeeded_long_ago, take, told, trust,
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
    let one = Disposed {
        replies: 1,
        ..Disposed::default()
    };
    assert_eq!(disposed_now(store, 10).await?, one);
    assert!(disposed(store, 10).await?.is_empty());
    assert_eq!(super::rows(store, ClaimState::Tombstone).await?.len(), 1);
    is_refused(store, &scope("k"), "ev_2").await
}

/// A17: a key is refused for ever, if the fixture lends its clock: only an operator frees it.
pub(super) async fn a_tombstone_stays_until_it_is_forgotten(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    for key in ["k", "other"] {
        let done = take(&scope(key), 0, succeeded_long_ago(), &format!("ev_{key}"));
        assert_eq!(store.commit(done).await?, CommitAnswer::Committed);
    }
    let later = claimed(store, &request(&scope("alive"))).await?;
    let done = settle(&later, succeeded("kept for an hour"), "ev_alive");
    assert_eq!(store.commit(done).await?, CommitAnswer::Committed);
    assert_eq!(disposed_now(store, 10).await?.replies, 2);
    if let Some(clock) = &fresh.clock {
        for _ in 0..40 {
            clock.advance(1_000 * HOUR);
            disposed_now(store, 10).await?;
            assert!(store.sweep(10).await?.is_empty());
        }
    }
    is_refused(store, &scope("k"), "ev_2").await?;
    let which = Forgotten {
        claimed_before: Timestamp::MAX,
        user_id: Some("u_1".to_owned()),
        tool: Some(scope("k").tool),
        key: Some(scope("k").key),
        limit: 10,
    };
    for nobody in [
        Forgotten {
            claimed_before: Timestamp::UNIX_EPOCH,
            ..which.clone()
        },
        Forgotten {
            user_id: Some("u_9".to_owned()),
            ..which.clone()
        },
        Forgotten {
            limit: 0,
            ..which.clone()
        },
    ] {
        assert_eq!(store.forget_keys(&nobody, told()).await?, 0, "{nobody:?}");
    }
    assert_eq!(store.forget_keys(&which, told()).await?, 1);
    assert_eq!(store.forget_keys(&which, told()).await?, 0);
    assert_eq!(store.lookup(&scope("k")).await?, None);
    assert_eq!(claimed(store, &request(&scope("k"))).await?.attempt, 1);
    is_refused(store, &scope("other"), "ev_3").await
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
        clock.advance(100_000 * HOUR);
    }
    assert!(store.sweep(10).await?.is_empty());
    assert!(disposed_now(store, 10).await?.is_empty());
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
    trust(store).await?;
    for n in [2, 1, 0] {
        assert_eq!(store.sweep(2).await?.in_doubt, n);
        assert_eq!(disposed(store, 2).await?.replies, n);
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
    assert!(disposed_now(store, 10).await?.is_empty());
    let state = |key| async move { Ok::<_, super::Error>(seen(store, &scope(key)).await?.state) };
    assert_eq!(state("a").await?, has_succeeded("yes"));
    assert_eq!(state("b").await?, has_failed("no"));
    if let Some(clock) = &fresh.clock {
        clock.advance(almost(HOUR));
        assert!(disposed(store, 10).await?.is_empty());
        assert_eq!(state("a").await?, has_succeeded("yes"));
        clock.advance(TICK);
        assert_eq!(state("a").await?, HeldState::Expired);
        assert_eq!(state("b").await?, has_failed("no"));
        assert_eq!(disposed(store, 10).await?.replies, 1);
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
