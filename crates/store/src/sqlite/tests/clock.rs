//! Changes of the machine's clock.

use std::sync::Mutex;

use countersign::ledger::{ClaimAnswer, Claims as _, CommitAnswer, HeldState};
use countersign_contract::tool::Recovery;
use countersign_testkit::ledger::build::{
    has_succeeded, held, ours, request, scope, settle, succeeded,
};
use jiff::Timestamp;

use super::*;

/// A clock whose wall time and monotonic time are set separately.
struct JumpingClock {
    now: Mutex<Timestamp>,
    elapsed_ms: AtomicU64,
}

impl Clock for JumpingClock {
    fn now(&self) -> Timestamp {
        *self.now.lock().expect("no test panics here")
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.elapsed_ms.load(Ordering::SeqCst))
    }
}

impl JumpingClock {
    fn jump(&self, hours: i64) {
        let mut now = self.now.lock().expect("no test panics here");
        *now += jiff::SignedDuration::from_hours(hours);
    }
}

/// A19: changing the machine's clock while the store is open ends no lease and brings no answer back; time that
/// really passes does.
#[tokio::test]
async fn a_jump_of_the_clock_changes_nothing() {
    let folder = folder();
    let clock = Arc::new(JumpingClock {
        now: Mutex::new(Timestamp::UNIX_EPOCH),
        elapsed_ms: AtomicU64::new(5),
    });
    let options = SqliteOptions {
        clock: clock.clone(),
        ..SqliteOptions::default()
    };
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(&path, options.clone()).expect("a new file");
    let mut asked = request(&scope("k"));
    asked.lease = Duration::from_mins(1);
    asked.recovery = Recovery::Retry;
    let owner = ours(store.claim(&asked).await.expect("it answers"));
    for hours in [1, -2, 1] {
        clock.jump(hours);
        let stands = held(store.claim(&asked).await.expect("it answers"));
        assert!(
            matches!(stands.state, HeldState::Running { .. }),
            "{stands:?}"
        );
    }
    clock.elapsed_ms.fetch_add(60_000, Ordering::SeqCst);
    let next = ours(store.claim(&asked).await.expect("it answers"));
    assert_eq!(next.attempt, 2);
    let late = store
        .commit(settle(&owner, succeeded("late"), "ev_1"))
        .await;
    assert_eq!(late.expect("it answers"), CommitAnswer::Fenced);
    let done = store.commit(settle(&next, succeeded("yes"), "ev_2")).await;
    assert_eq!(done.expect("it answers"), CommitAnswer::Committed);
    drop(store);
    // A clock that was set back between two runs makes nothing run again.
    clock.jump(-1);
    let store = SqliteStore::open(&path, options).expect("it was closed");
    let stands = store.claim(&asked).await.expect("it answers");
    assert!(
        matches!(&stands, ClaimAnswer::Held(held) if held.state == has_succeeded("yes")),
        "{stands:?}"
    );
}
