//! Vital signs of a store, as it reports them.

use std::time::Duration;

use countersign::ledger::{CommitAnswer, Durability, Outcome, Sequencing};

use super::build::{HOUR, claimed, entry, request, scope, settle};
use super::{Checked, Fresh};

pub(super) async fn a_new_store_is_empty_and_takes_writes(fresh: &Fresh) -> Checked {
    let vitals = fresh.store.vitals().await?;
    assert!(vitals.is_writable);
    assert_eq!((vitals.records_waiting, vitals.in_doubt), (0, 0));
    assert_eq!(vitals.newest_record, None);
    if let (Some(free), Some(needed)) = (vitals.free_bytes, vitals.needed_bytes) {
        assert!(free >= needed, "{free} of {needed}");
    }
    Ok(())
}

pub(super) async fn what_waits_for_the_tree_is_counted(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let newest = entry("ev_2", "u_1");
    for draft in [entry("ev_0", "u_1"), entry("ev_1", "u_1"), newest.clone()] {
        store.append(draft.into(), Durability::Committed).await?;
    }
    let vitals = fresh.handle(1).vitals().await?;
    assert_eq!(vitals.records_waiting, 3);
    assert_eq!(
        vitals.newest_record.map(jiff::Timestamp::as_microsecond),
        Some(newest.at.as_microsecond())
    );
    let sequencing = Sequencing {
        holder: "a".to_owned(),
        lease: HOUR,
    };
    store.integrate(&sequencing, 2).await?;
    assert_eq!(store.vitals().await?.records_waiting, 1);
    store.integrate(&sequencing, 2).await?;
    assert_eq!(store.vitals().await?.records_waiting, 0);
    Ok(())
}

/// N10: calls in doubt are counted until they are resolved.
pub(super) async fn calls_in_doubt_are_counted(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let claim = claimed(store, &request(&scope("k"))).await?;
    assert_eq!(store.vitals().await?.in_doubt, 0);
    let doubted = settle(&claim, Outcome::InDoubt, "ev_1");
    assert_eq!(store.commit(doubted).await?, CommitAnswer::Committed);
    assert_eq!(fresh.handle(1).vitals().await?.in_doubt, 1);
    let resolved = settle(&claim, Outcome::Released, "ev_2");
    assert_eq!(store.commit(resolved).await?, CommitAnswer::Committed);
    assert_eq!(store.vitals().await?.in_doubt, 0);
    Ok(())
}

/// Looking at a count changes nothing, and says when it is over.
pub(super) async fn a_pace_is_looked_at_without_counting(fresh: &Fresh) -> Checked {
    use countersign::ledger::{Pace, PaceAnswer, PaceKey, PaceRule};

    let store = &*fresh.store;
    let key = PaceKey::of(&[b"u_1"]);
    let rule = PaceRule::Even {
        cost: HOUR,
        burst: 2 * HOUR,
    };
    let pace = [Pace { key, rule }];
    let is_near = |found: Duration, expected: Duration| {
        found <= expected && found + Duration::from_mins(5) > expected
    };
    assert_eq!(store.until_whole(&key).await?, Duration::ZERO);
    for hours in 1..=2 {
        assert_eq!(store.keep_pace(&pace).await?, PaceAnswer::Admitted);
        for _ in 0..3 {
            let until = fresh.handle(1).until_whole(&key).await?;
            assert!(is_near(until, hours * HOUR), "{until:?}");
        }
    }
    let answer = store.keep_pace(&pace).await?;
    assert!(matches!(answer, PaceAnswer::Limited { .. }), "{answer:?}");
    Ok(())
}
