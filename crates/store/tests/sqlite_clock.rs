//! Clocks that lie: nothing is destroyed because a clock says so.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use countersign::clock::{Clock as _, ManualClock};
use countersign::ledger::{
    ClaimAnswer, ClaimRequest, Claims as _, Durability, Entry, HeldState, Log as _, Store,
};
use countersign::sequencer::{LastStop, Sequencer};
use countersign_contract::tool::Recovery;
use countersign_evidence::note::SigningKey;
use countersign_store::sqlite::{SqliteOptions, SqliteStore};
use countersign_testkit::ledger::build::{
    claimed, entry, record_id, request, scope, succeeded, take,
};
use jiff::{SignedDuration, Timestamp};

const DAY: i64 = 24 * 3_600;

fn opened(path: &Path, clock: &Arc<ManualClock>) -> Arc<SqliteStore> {
    let options = SqliteOptions {
        clock: clock.clone(),
        ..SqliteOptions::default()
    };
    Arc::new(SqliteStore::open(path, options).expect("the file can be opened"))
}

async fn sequencer(store: Arc<SqliteStore>, clock: &Arc<ManualClock>) -> Sequencer {
    let key = SigningKey::from_seed("example.com/log", &[7; 32]).expect("a name");
    let store: Arc<dyn Store> = store;
    let started = Sequencer::builder(store, key).clock(clock.clone());
    let started = started.start(LastStop::default()).await;
    started.expect("the log goes on")
}

/// A17, A22: one start with a clock that is wrong, in either direction, removes no payload and frees no key.
#[tokio::test]
async fn a_start_with_a_wrong_clock_destroys_nothing() {
    for days in [3 * 365, 40, -400] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store.db");
        let right: Timestamp = "2026-11-15T12:00:00Z".parse().expect("a time");
        let clock = Arc::new(ManualClock::starting_at(right));
        let store = opened(&path, &clock);
        let kept = Entry {
            at: clock.now(),
            keep_payload: Some(Duration::from_hours(30 * 24)),
            ..entry("ev_1", "u_1")
        };
        store
            .append(kept.into(), Durability::Committed)
            .await
            .expect("it is kept");
        store
            .commit(take(&scope("k"), 0, succeeded("kept for an hour"), "ev_2"))
            .await
            .expect("it is settled");
        sequencer(store.clone(), &clock)
            .await
            .maintain()
            .await
            .expect("it is maintained");
        drop(store);

        let wrong = right + SignedDuration::from_secs(days * DAY);
        let clock = Arc::new(ManualClock::starting_at(wrong));
        let store = opened(&path, &clock);
        let lies = sequencer(store.clone(), &clock).await;
        for _ in 0..4 {
            lies.maintain().await.expect("it is maintained");
        }
        let record = store.record(&record_id("ev_1")).await.expect("it answers");
        assert!(
            record.expect("the record").payload.is_some(),
            "{days} days: the payload is gone"
        );
        drop((lies, store));

        let clock = Arc::new(ManualClock::starting_at(
            right + SignedDuration::from_secs(60),
        ));
        let store = opened(&path, &clock);
        sequencer(store.clone(), &clock)
            .await
            .maintain()
            .await
            .expect("it is maintained");
        let held = store.lookup(&scope("k")).await.expect("it answers");
        let state = held.expect("the key is not free").state;
        assert!(
            matches!(state, HeldState::Succeeded(_)),
            "{days} days: {state:?}"
        );
    }
}

/// A17: no key becomes free by time alone, however much passes, step by plausible step.
#[tokio::test]
async fn no_key_becomes_free_by_time_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let start: Timestamp = "2026-11-15T12:00:00Z".parse().expect("a time");
    let clock = Arc::new(ManualClock::starting_at(start));
    let store = opened(&folder.path().join("store.db"), &clock);
    store
        .commit(take(&scope("k"), 0, succeeded("kept for an hour"), "ev_2"))
        .await
        .expect("it is settled");
    let sequencer = sequencer(store.clone(), &clock).await;
    for _ in 0..60 {
        clock.advance(Duration::from_hours(24));
        sequencer.maintain().await.expect("it is maintained");
    }
    let held = store.lookup(&scope("k")).await.expect("it answers");
    assert_eq!(held.expect("the key is not free").state, HeldState::Expired);
}

/// A19, A22: a start with a clock of the past neither shortens a retention nor begins anew the time in which a service
/// knows a key.
#[tokio::test]
async fn a_clock_of_the_past_counts_from_the_time_that_was_believed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let start: Timestamp = "2026-11-15T12:00:00Z".parse().expect("a time");
    let at = async |time: Timestamp| {
        let clock = Arc::new(ManualClock::starting_at(time));
        let store = opened(&path, &clock);
        let maintained = sequencer(store.clone(), &clock).await.maintain().await;
        maintained.expect("it is maintained");
        store
    };
    let window = ClaimRequest {
        recovery: Recovery::DownstreamKey {
            window_seconds: 3_600,
        },
        lease: Duration::from_secs(1),
        ..request(&scope("k"))
    };
    claimed(&*at(start).await, &window)
        .await
        .expect("it is free");
    let later = start + SignedDuration::from_secs(2 * 3_600);
    drop(at(later).await);
    let store = at(start + SignedDuration::from_secs(60)).await;
    let answer = store.claim(&window).await.expect("the store answers");
    let ClaimAnswer::Held(held) = answer else {
        unreachable!("the service has forgotten the key: {answer:?}");
    };
    assert_eq!(held.state, HeldState::InDoubt);
    drop(store);

    let store = at(start - SignedDuration::from_secs(400 * DAY)).await;
    let kept = Entry {
        at: start - SignedDuration::from_secs(400 * DAY),
        keep_payload: Some(Duration::from_hours(30 * 24)),
        ..entry("ev_1", "u_1")
    };
    let kept = store.append(kept.into(), Durability::Committed).await;
    kept.expect("it is kept");
    drop(store);
    let store = at(later).await;
    let record = store.record(&record_id("ev_1")).await.expect("it is read");
    let has_payload = record.is_some_and(|record| record.payload.is_some());
    assert!(has_payload, "thirty days are not over");
}
