//! Time that is not trusted: jumps of the clock, and the records of what time removes.
//!
//! A clock that can be moved is needed to make a jump; the other half of each case runs on every store.

use std::sync::Arc;
use std::time::Duration;

use countersign::ledger::{
    CommitAnswer, Disposal, Disposed, Durability, Entry, HeldState, Jump, LogQuery, Names, Passage,
    Removed, Store, TIME_STEP_MAX, Told,
};
use countersign_contract::RecordKind;

use super::build::{
    HOUR, TICK, disposed, entry, record_id, scope, seen, succeeded, succeeded_long_ago, take, told,
    trust,
};
use super::{Checked, Error, Fresh};

pub(super) async fn a_clock_that_agrees_is_believed(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let first = store.observe_time(told()).await?;
    assert_eq!((first.jump(), first.mark), (None, first.clock));
    let seen = store.vitals().await?.passage;
    assert_eq!(seen.map(|passage| passage.mark), Some(first.clock));
    let second = fresh.handle(1).observe_time(told()).await?;
    assert_eq!((second.jump(), second.mark), (None, first.clock));
    assert_eq!(acts(store).await?, 0, "agreement is no news");
    if let Some(clock) = &fresh.clock {
        clock.advance(TIME_STEP_MAX);
        let believed = store.observe_time(told()).await?;
        assert_eq!((believed.jump(), believed.mark), (None, first.clock));
        assert_eq!(store.observe_time(told()).await?.mark, believed.clock);
    }
    Ok(())
}

/// A17, A22: whatever the clock says, payloads and answers stay until it is believed.
pub(super) async fn a_jump_removes_nothing(fresh: &Fresh) -> Checked {
    let Some(clock) = &fresh.clock else {
        return Ok(());
    };
    let store = &*fresh.store;
    trust(store).await?;
    keep_payload(store, HOUR).await?;
    let done = take(&scope("k"), 0, succeeded("kept for an hour"), "ev_k");
    assert_eq!(store.commit(done).await?, CommitAnswer::Committed);
    clock.advance(TIME_STEP_MAX + TICK);
    for _ in 0..3 {
        store.observe_time(told()).await?;
        let stopped = store.dispose(10, told()).await?;
        let Disposal::Stopped(passage) = stopped else {
            unreachable!("{stopped:?}");
        };
        assert_eq!(passage.jump(), Some(Jump::Ahead));
    }
    assert!(has_payload(store).await?);
    // Refused, which another clock undoes; not free.
    assert_eq!(seen(store, &scope("k")).await?.state, HeldState::Expired);
    let vitals = store.vitals().await?.passage;
    assert_eq!(vitals.and_then(|passage| passage.jump()), Some(Jump::Ahead));
    trust(store).await?;
    let both = Disposed {
        payloads: 1,
        replies: 1,
        pots: 0,
    };
    assert_eq!(disposed(store, 10).await?, both);
    Ok(())
}

pub(super) async fn a_jump_is_recorded_once_and_so_is_its_end(fresh: &Fresh) -> Checked {
    let Some(clock) = &fresh.clock else {
        return Ok(());
    };
    let store = &*fresh.store;
    store.observe_time(told()).await?;
    clock.advance(2 * TIME_STEP_MAX);
    for _ in 0..3 {
        store.observe_time(told()).await?;
    }
    assert_eq!(acts(store).await?, 1);
    trust(store).await?;
    assert_eq!(acts(store).await?, 2);
    for _ in 0..3 {
        assert_eq!(store.observe_time(told()).await?.jump(), None);
    }
    assert_eq!(acts(store).await?, 2);
    Ok(())
}

/// The answer tells what was found before, and the mark is the clock from then on.
pub(super) async fn an_operator_may_trust_the_clock(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let before = store.observe_time(told()).await?;
    if let Some(clock) = &fresh.clock {
        clock.advance(1_000 * TIME_STEP_MAX);
    }
    let found: Passage = store.trust_time(told()).await?;
    assert_eq!(found.mark, before.clock);
    let believed = store.vitals().await?.passage.map(|passage| passage.mark);
    assert_eq!(believed, Some(found.clock));
    assert_eq!(acts(store).await?, 1);
    Ok(())
}

/// The record is made from the counts, and nothing is removed without one.
pub(super) async fn every_removal_has_its_record(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    trust(store).await?;
    assert!(disposed(store, 10).await?.is_empty());
    assert_eq!(acts(store).await?, 1);
    keep_payload(store, Duration::ZERO).await?;
    let done = take(&scope("k"), 0, succeeded_long_ago(), "ev_k");
    assert_eq!(store.commit(done).await?, CommitAnswer::Committed);
    let counting: Told<Removed> = Arc::new(|removed: &Removed| {
        let mut named = Names::default();
        named.add_record("ev_kept");
        assert_eq!(removed.payloads, named);
        let counts = removed.counts;
        let counts = format!("ev_{}-{}", counts.payloads, counts.replies);
        Entry {
            kind: RecordKind::Config,
            payload: None,
            ..entry(&counts, "")
        }
    });
    store.dispose(10, counting).await?;
    assert!(store.record(&record_id("ev_1-1")).await?.is_some());
    assert!(!has_payload(store).await?);
    Ok(())
}

async fn keep_payload(store: &dyn Store, keep: Duration) -> Checked {
    let kept = Entry {
        keep_payload: Some(keep),
        ..entry("ev_kept", "u_1")
    };
    store.append(kept.into(), Durability::Committed).await
}

async fn has_payload(store: &dyn Store) -> Result<bool, Error> {
    let record = store.record(&record_id("ev_kept")).await?;
    Ok(record.is_some_and(|record| record.payload.is_some()))
}

/// The number of records of acts.
async fn acts(store: &dyn Store) -> Result<usize, Error> {
    let query = LogQuery {
        kind: Some(RecordKind::Config),
        limit: 100,
        ..LogQuery::default()
    };
    Ok(store.records(&query).await?.len())
}
