//! Payloads whose time is over, and holds that keep them.

use std::time::Duration;

use countersign::ledger::{Durability, Entry, Error, Hold, Store};
use countersign_contract::RecordKind;

use super::build::{HOUR, TICK, almost, disposed_now, entry, record_id};
use super::log::integrate_all;
use super::{Checked, Fresh};

/// The tree is not touched: the record stays, its payload goes.
pub(super) async fn a_payload_goes_when_its_time_is_over(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    keep(store, "ev_over", Some(Duration::ZERO)).await?;
    keep(store, "ev_ever", None).await?;
    keep(store, "ev_long", Some(10_000 * 24 * HOUR)).await?;
    keep(store, "ev_late", Some(Duration::ZERO)).await?;
    let head = integrate_all(store, 3).await?;
    assert_eq!(pruned(store, 10).await?, 2);
    assert_eq!(pruned(store, 10).await?, 0);
    // What was removed has its record, which waits for the tree like any other.
    assert_eq!(store.head().await?, head);
    for (id, is_kept) in [
        ("ev_over", false),
        ("ev_ever", true),
        ("ev_long", true),
        ("ev_late", false),
    ] {
        assert_eq!(has_payload(store, id).await?, is_kept, "{id}");
    }
    let pruned = store.record(&record_id("ev_over")).await?;
    assert_eq!(
        pruned.map(|record| record.leaf),
        Some(entry("ev_over", "u_1").leaf)
    );
    Ok(())
}

pub(super) async fn pruning_goes_in_portions(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    for n in 0..5 {
        keep(store, &format!("ev_{n}"), Some(Duration::ZERO)).await?;
    }
    for portion in [2, 2, 1, 0] {
        assert_eq!(pruned(store, 2).await?, portion);
    }
    Ok(())
}

/// Needs a moving clock: it does nothing for a fixture that lends none.
pub(super) async fn a_payload_is_kept_until_its_time(fresh: &Fresh) -> Checked {
    use countersign::clock::Clock;

    let Some(clock) = &fresh.clock else {
        return Ok(());
    };
    let store = &*fresh.store;
    let entry = Entry {
        at: clock.now(),
        keep_payload: Some(HOUR),
        ..entry("ev_1", "u_1")
    };
    store.append(entry.into(), Durability::Committed).await?;
    clock.advance(almost(HOUR));
    assert_eq!(pruned(store, 10).await?, 0);
    assert!(has_payload(store, "ev_1").await?);
    clock.advance(TICK);
    assert_eq!(pruned(store, 10).await?, 1);
    assert!(!has_payload(store, "ev_1").await?);
    Ok(())
}

/// A hold on a user keeps everything of the user, also what comes later; one on a record only that.
pub(super) async fn a_hold_keeps_payloads(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    for (id, user_id) in [
        ("ev_a", "u_1"),
        ("ev_b", "u_2"),
        ("ev_c", "u_2"),
        ("ev_d", "u_3"),
    ] {
        keep_of(store, id, user_id, Some(Duration::ZERO)).await?;
    }
    let (user, record) = (hold("u_1", None), hold("u_2", Some("ev_b")));
    store.hold(user.clone(), config("ev_h1")).await?;
    store.hold(record.clone(), config("ev_h2")).await?;
    keep_of(store, "ev_e", "u_1", Some(Duration::ZERO)).await?;
    assert_eq!(pruned(store, 10).await?, 2);
    for (id, is_kept) in [
        ("ev_a", true),
        ("ev_b", true),
        ("ev_c", false),
        ("ev_d", false),
        ("ev_e", true),
    ] {
        assert_eq!(has_payload(store, id).await?, is_kept, "{id}");
    }
    assert!(store.release_hold(user, config("ev_h3")).await?);
    assert_eq!(pruned(store, 10).await?, 2);
    assert!(store.release_hold(record, config("ev_h4")).await?);
    assert_eq!(pruned(store, 10).await?, 1);
    Ok(())
}

/// Payloads under a hold do not count against the limit of a pruning.
pub(super) async fn a_hold_does_not_use_up_the_limit(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    for n in 0..4 {
        let user_id = if n < 3 { "u_1" } else { "u_2" };
        keep_of(store, &format!("ev_{n}"), user_id, Some(Duration::ZERO)).await?;
    }
    store.hold(hold("u_1", None), config("ev_h1")).await?;
    assert_eq!(pruned(store, 1).await?, 1);
    assert!(!has_payload(store, "ev_3").await?);
    Ok(())
}

pub(super) async fn holds_are_listed_and_lifted_once(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    assert_eq!(store.holds(10).await?, []);
    let holds = [
        hold("u_1", None),
        hold("u_1", Some("ev_a")),
        hold("u_2", None),
    ];
    for (n, hold) in holds.iter().enumerate() {
        store
            .hold(hold.clone(), config(&format!("ev_h{n}")))
            .await?;
    }
    // Placing it again does not make a second one that would have to be lifted too.
    store.hold(hold("u_1", None), config("ev_again")).await?;
    let listed = store.holds(10).await?;
    assert_eq!(listed.len(), 3);
    assert!(holds.iter().all(|hold| listed.contains(hold)), "{listed:?}");
    assert_eq!(store.holds(2).await?.len(), 2);

    // Whose hold it is counts, not the words in which it was explained.
    let other_words = Hold {
        reason: "closed".to_owned(),
        ..hold("u_1", None)
    };
    assert!(store.release_hold(other_words, config("ev_r1")).await?);
    assert!(
        !store
            .release_hold(hold("u_1", None), config("ev_r2"))
            .await?
    );
    assert_eq!(store.holds(10).await?.len(), 2);
    for (id, is_kept) in [
        ("ev_h0", true),
        ("ev_again", true),
        ("ev_r1", true),
        ("ev_r2", false),
    ] {
        let record = store.record(&record_id(id)).await?;
        assert_eq!(record.is_some(), is_kept, "{id}");
    }
    Ok(())
}

pub(super) fn hold(user_id: &str, record: Option<&str>) -> Hold {
    Hold {
        user_id: user_id.to_owned(),
        record: record.map(record_id),
        reason: "a dispute".to_owned(),
    }
}

/// The record of an operator's act.
pub(super) fn config(id: &str) -> Entry {
    Entry {
        kind: RecordKind::Config,
        payload: None,
        ..entry(id, "")
    }
}

async fn pruned(store: &dyn Store, limit: usize) -> Result<usize, Error> {
    Ok(disposed_now(store, limit).await?.payloads)
}

async fn keep(store: &dyn Store, id: &str, keep: Option<Duration>) -> Checked {
    keep_of(store, id, "u_1", keep).await
}

async fn keep_of(store: &dyn Store, id: &str, user_id: &str, keep: Option<Duration>) -> Checked {
    let entry = Entry {
        keep_payload: keep,
        ..entry(id, user_id)
    };
    store.append(entry.into(), Durability::Committed).await
}

async fn has_payload(store: &dyn Store, id: &str) -> Result<bool, Error> {
    let record = store.record(&record_id(id)).await?;
    let record = record.expect("the record stays");
    Ok(record.payload.is_some())
}
