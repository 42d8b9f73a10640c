//! The keys that a store belongs to.

use countersign::ledger::{CommitAnswer, Installation, Store};

use super::build::{bound_to, commit, document, record_id, with_write, write};
use super::holds::config;
use super::log::integrate_all;
use super::{Checked, Fresh, race};

/// U7: a store names the keys that it was opened with first, to every process.
pub(super) async fn a_store_names_its_keys(fresh: &Fresh) -> Checked {
    let found = fresh.store.installation().await?;
    assert_eq!(found, Some(first()));
    assert_eq!(fresh.handle(1).installation().await?, found);
    Ok(())
}

/// A18: a change of keys and its record are one commit, which fails if the keys are not the expected ones.
pub(super) async fn other_keys_come_with_their_record(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let to = other(1);
    assert!(store.rebind(&first(), to.clone(), config("ev_1")).await?);
    assert_eq!(fresh.handle(1).installation().await?, Some(to.clone()));
    assert!(has(store, "ev_1").await?);

    let replica = fresh.handle(1);
    let is_late = replica.rebind(&first(), other(2), config("ev_2")).await?;
    assert!(!is_late);
    assert_eq!(store.installation().await?, Some(to));
    assert!(!has(store, "ev_2").await?);
    Ok(())
}

/// Of racing changes of the keys exactly one succeeds.
pub(super) async fn racing_keys_have_one_winner(fresh: &Fresh) -> Checked {
    let bound = race(8, |n| {
        let store = fresh.handle(n);
        async move {
            let entry = config(&format!("ev_{n}"));
            store.rebind(&first(), other(n), entry).await
        }
    })
    .await?;
    let winners: Vec<usize> = (0..8).filter(|n| bound.get(*n) == Some(&true)).collect();
    assert_eq!(winners.len(), 1, "{bound:?}");
    let found = fresh.store.installation().await?;
    assert_eq!(found, winners.first().map(|n| other(*n)));
    Ok(())
}

/// N1: another log goes on with the records that are there; nothing of the one before counts as its signature.
pub(super) async fn another_log_begins_over_the_same_records(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let (asked, cart) = (document("$approvals", "a"), document("cart", "c"));
    for (record, key) in [("ev_1", &asked), ("ev_2", &cart)] {
        let written = with_write(commit(record), write(key, 0, Some("body")));
        assert_eq!(store.commit(written).await?, CommitAnswer::Committed);
    }
    let head = integrate_all(store, 10).await?;
    store
        .add_checkpoint(&head, "the note of the log before")
        .await?;
    let to = Installation {
        log_key: "another".to_owned(),
        ..first()
    };
    let (from, gone) = (first(), ["$approvals"]);
    let begun = store.begin_log(&from, to.clone(), &gone, config("ev_3"));
    assert!(begun.await?);
    assert_eq!(fresh.handle(1).installation().await?, Some(to.clone()));
    assert_eq!(store.checkpoint().await?, None);
    assert_eq!(store.document(&asked).await?.body, None);
    assert!(store.document(&cart).await?.body.is_some());
    assert_eq!(integrate_all(store, 10).await?.size, head.size + 1);

    let late = store.begin_log(&from, to, &[], config("ev_4"));
    assert!(!late.await?);
    assert!(!has(store, "ev_4").await?);
    Ok(())
}

fn first() -> Installation {
    let binding = bound_to(1);
    Installation {
        id: binding.id,
        master: binding.master,
        log_key: binding.log_key.to_string(),
        is_copy: false,
    }
}

fn other(n: usize) -> Installation {
    Installation {
        master: format!("other_{n}"),
        ..first()
    }
}

async fn has(store: &dyn Store, id: &str) -> Result<bool, countersign::ledger::Error> {
    Ok(store.record(&record_id(id)).await?.is_some())
}
