//! Records on their way into the tree, and what can be proved of them there.

use std::collections::BTreeSet;
use std::time::Duration;

use countersign::ledger::{
    Durability, Entry, Error, Head, Integration, Leaf, LogRow, Sequencing, Store, StoredRecord,
};
use countersign_contract::{ErrorCode, RecordKind};
use countersign_evidence::tile::{TileId, TileMap};
use countersign_evidence::tree::{
    self, Frontier, consistency_proof, empty_root, inclusion_proof, leaf_hash,
};

use super::build::{HOUR, TICK, commit, entry, entry_at, record_id};
use super::{Checked, Fresh};

pub(super) async fn an_empty_log_has_an_empty_tree(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let empty = Head {
        size: 0,
        root: empty_root(),
    };
    assert_eq!(store.head().await?, empty);
    assert_eq!(
        done(store.integrate(&sequencing("a"), 10).await?),
        (empty, 0)
    );
    assert_eq!(store.leaves(0, 10).await?, []);
    let first = TileId { level: 0, index: 0 };
    assert_eq!(store.tiles(&[first]).await?, [None]);
    assert_eq!(store.checkpoint().await?, None);
    assert_eq!(store.record(&record_id("ev_1")).await?, None);
    assert_eq!(super::all_records(store).await?, []);
    Ok(())
}

pub(super) async fn batched_records_are_there_after_a_flush(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    for n in 0..40 {
        let draft = entry(&format!("ev_{n}"), "u_1").into();
        store.append(draft, Durability::Batched).await?;
    }
    store.flush().await?;
    for n in 0..40 {
        let stored = fresh
            .handle(1)
            .record(&record_id(&format!("ev_{n}")))
            .await?;
        assert!(stored.is_some(), "ev_{n}");
    }
    Ok(())
}

pub(super) async fn a_committed_record_is_there_at_once(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let draft = entry("ev_1", "u_1").into();
    store.append(draft, Durability::Committed).await?;
    let stored = fresh.handle(1).record(&record_id("ev_1")).await?;
    assert!(stored.is_some());
    Ok(())
}

/// A record keeps every column, before and after it has its place.
pub(super) async fn a_record_comes_back_as_it_was(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let full = Entry {
        at: entry_at(7, "ev_1", "").at + TICK,
        kind: RecordKind::Denial,
        code: Some(ErrorCode::RateLimited),
        payload: Some((0..=255).collect()),
        ..entry("ev_1", "ünal'; --")
    };
    let bare = Entry {
        kind: RecordKind::Config,
        request_id: None,
        tool: None,
        payload: None,
        ..entry("ev_2", "")
    };
    for entry in [full.clone(), bare.clone()] {
        store.append(entry.into(), Durability::Committed).await?;
    }
    let waiting = stored(&full, None);
    assert_eq!(store.record(&full.id).await?, Some(waiting));
    integrate_all(store, 10).await?;
    let leaves = store.leaves(0, 10).await?;
    for entry in [full, bare] {
        let place = leaves.iter().find(|leaf| leaf.bytes == entry.leaf);
        let index = place.expect("it is in the tree").index;
        let placed = stored(&entry, Some(index));
        assert_eq!(store.record(&entry.id).await?, Some(placed));
    }
    Ok(())
}

pub(super) async fn a_record_is_kept_once(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    for durability in [Durability::Committed, Durability::Batched] {
        store
            .append(entry("ev_1", "u_1").into(), durability)
            .await?;
    }
    store.flush().await?;
    integrate_all(store, 10).await?;
    store
        .append(entry("ev_1", "u_1").into(), Durability::Committed)
        .await?;
    store.commit(commit("ev_1")).await?;
    let head = integrate_all(store, 10).await?;
    assert_eq!(head.size, 1);
    assert_eq!(super::all_records(store).await?.len(), 1);
    Ok(())
}

pub(super) async fn integration_goes_in_portions(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    append_many(store, 0..10).await?;
    let mut size = 0;
    for added in [4, 4, 2, 0] {
        let (head, taken) = done(store.integrate(&sequencing("a"), 4).await?);
        size += added;
        assert_eq!((head.size, taken as u64), (size, added));
        assert_eq!(store.head().await?, head);
    }
    is_complete(store, 10).await
}

pub(super) async fn leaves_come_in_order_and_in_portions(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    append_many(store, 0..7).await?;
    assert_eq!(store.leaves(0, 10).await?, [], "nothing is in the tree yet");
    integrate_all(store, 3).await?;
    let all = store.leaves(0, 10).await?;
    let places: Vec<_> = all.iter().map(|leaf| leaf.index).collect();
    assert_eq!(places, [0, 1, 2, 3, 4, 5, 6]);
    let cases: [(u64, usize, &[u64]); 5] = [
        (0, 2, &[0, 1]),
        (2, 3, &[2, 3, 4]),
        (6, 3, &[6]),
        (7, 3, &[]),
        (u64::from(u32::MAX), 3, &[]),
    ];
    for (from, limit, expected) in cases {
        let some = store.leaves(from, limit).await?;
        let expected: Vec<_> = all
            .iter()
            .filter(|leaf| expected.contains(&leaf.index))
            .collect();
        assert_eq!(some.iter().collect::<Vec<_>>(), expected, "{from} {limit}");
    }
    Ok(())
}

/// A15: a call links only records that were kept before it, so they have to come first in the tree, even if the clock of another process
/// made an id that sorts behind.
pub(super) async fn leaves_come_in_the_order_in_which_they_were_kept(fresh: &Fresh) -> Checked {
    let ids = ["ev_9", "ev_10", "ev_8", "ev_2", "ev_7", "ev_1", "ev_5"];
    for (nth, id) in ids.into_iter().enumerate() {
        let user = if nth % 2 == 0 { "u_1" } else { "u_2" };
        let draft = entry(id, user).into();
        let store = fresh.handle(nth % 2);
        store.append(draft, Durability::Committed).await?;
    }
    let store = &*fresh.store;
    integrate_all(store, 3).await?;
    let leaves = store.leaves(0, 10).await?;
    let kept: Vec<_> = leaves.into_iter().map(|leaf| leaf.bytes).collect();
    assert_eq!(kept, ids.map(|id| entry(id, "u_1").leaf));
    Ok(())
}

/// Over more than one tile: every leaf is proved in the tree, and each tree in the ones after it.
pub(super) async fn tiles_prove_every_leaf_and_every_growth(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let mut heads = vec![store.head().await?];
    let mut appended = 0;
    for portion in [1, 2, 4, 130, 118, 1, 1, 20] {
        append_many(store, appended..appended + portion).await?;
        appended += portion;
        heads.push(integrate_all(store, 100).await?);
    }
    let head = *heads.last().expect("there are several");
    assert_eq!(head.size, 277);
    let tiles = tiles_of(store, head.size).await?;
    for leaf in store.leaves(0, 1_000).await? {
        let proof = inclusion_proof(leaf.index, head.size, &tiles).expect("all tiles are there");
        let hash = leaf_hash(&leaf.bytes);
        tree::verify_inclusion(&hash, leaf.index, head.size, &proof, &head.root)
            .expect("the leaf is in the tree");
    }
    for (n, old) in heads.iter().enumerate() {
        for new in heads.iter().skip(n) {
            let proof = consistency_proof(old.size, new.size, &tiles).expect("all tiles are there");
            tree::verify_consistency(old.size, &old.root, new.size, &new.root, &proof)
                .expect("the tree has only grown");
        }
    }
    is_complete(store, 277).await
}

/// Records that commit during an integration are integrated later: no record is lost or doubled.
pub(super) async fn records_that_commit_late_are_not_skipped(fresh: &Fresh) -> Checked {
    let (writers, each) = (4, 15);
    super::race(writers + 1, |n| {
        let store = fresh.handle(n);
        async move {
            if n == writers {
                for _ in 0..20 {
                    store.integrate(&sequencing("a"), 7).await?;
                }
                return Ok(());
            }
            for step in 0..each {
                let id = format!("ev_{}", n * each + step);
                let durability = match step % 3 {
                    0 => Durability::Batched,
                    1 => Durability::Committed,
                    _ => {
                        store.commit(commit(&id)).await?;
                        continue;
                    }
                };
                store.append(entry(&id, "u_1").into(), durability).await?;
            }
            store.flush().await
        }
    })
    .await?;
    integrate_all(&*fresh.store, 1_000).await?;
    is_complete(&*fresh.store, writers * each).await
}

/// Concurrent integrations take no record twice and skip no index; one may be refused because it is not its turn.
pub(super) async fn racing_sequencers_share_the_work(fresh: &Fresh) -> Checked {
    append_many(&*fresh.store, 0..60).await?;
    let added = super::race(4, |n| {
        let store = fresh.handle(n);
        async move {
            let mut added = 0;
            for _ in 0..10 {
                let ours = Sequencing {
                    holder: format!("sequencer {n}"),
                    lease: Duration::ZERO,
                };
                match store.integrate(&ours, 3).await? {
                    Integration::Done { added: taken, .. } => added += taken,
                    Integration::NotOurs => {}
                }
            }
            Ok(added)
        }
    })
    .await?;
    let head = fresh.store.head().await?;
    assert_eq!(head.size, added.iter().sum::<usize>() as u64);
    integrate_all(&*fresh.store, 1_000).await?;
    is_complete(&*fresh.store, 60).await
}

/// An integration that is refused because it is not its turn has changed nothing. A store with one owner may accept every holder.
pub(super) async fn a_sequencing_lease_is_kept(fresh: &Fresh) -> Checked {
    append_many(&*fresh.store, 0..10).await?;
    let for_an_hour = |holder: &str| Sequencing {
        holder: holder.to_owned(),
        lease: HOUR,
    };
    let (first, _) = done(fresh.store.integrate(&for_an_hour("a"), 3).await?);
    let second = match fresh.handle(1).integrate(&for_an_hour("b"), 3).await? {
        Integration::NotOurs => {
            assert_eq!(fresh.store.head().await?, first);
            let (head, added) = done(fresh.store.integrate(&for_an_hour("a"), 3).await?);
            assert_eq!(added, 3, "the holder goes on");
            head
        }
        Integration::Done { head, added } => {
            assert_eq!(added, 3);
            head
        }
    };
    assert_eq!(second.size, 6);
    Ok(())
}

pub(super) async fn a_lease_of_nothing_is_free_at_once(fresh: &Fresh) -> Checked {
    append_many(&*fresh.store, 0..9).await?;
    for (n, holder) in ["a", "b", "a"].into_iter().enumerate() {
        let answer = fresh.handle(n).integrate(&sequencing(holder), 3).await?;
        assert_eq!(done(answer).1, 3, "{holder}");
    }
    is_complete(&*fresh.store, 9).await
}

/// Two roots for one size are two histories of one log; the second is refused.
pub(super) async fn a_second_root_for_a_size_is_a_fork(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let head = |size, byte| Head {
        size,
        root: [byte; 32],
    };
    store.add_checkpoint(&head(3, 1), "three").await?;
    assert_eq!(store.checkpoint().await?.as_deref(), Some("three"));
    store
        .add_checkpoint(&head(5, 2), "five\n\n— sig ✓\n")
        .await?;
    store.add_checkpoint(&head(3, 1), "three").await?;
    for forked in [head(3, 9), head(5, 9)] {
        let refused = fresh.handle(1).add_checkpoint(&forked, "forked").await;
        let size = forked.size;
        assert!(
            matches!(refused, Err(Error::Forked { size: at }) if at == size),
            "{refused:?}"
        );
    }
    let listed = [
        (None, 10, vec!["five\n\n— sig ✓\n", "three"]),
        (None, 1, vec!["five\n\n— sig ✓\n"]),
        (Some(5), 10, vec!["three"]),
        (Some(3), 10, vec![]),
    ];
    for (below, limit, expected) in listed {
        let notes = store.checkpoints(below, limit).await?;
        assert_eq!(notes, expected, "{below:?} {limit}");
    }
    let newest = fresh.handle(1).checkpoint().await?;
    assert_eq!(newest.as_deref(), Some("five\n\n— sig ✓\n"));
    Ok(())
}

fn sequencing(holder: &str) -> Sequencing {
    Sequencing {
        holder: holder.to_owned(),
        lease: Duration::ZERO,
    }
}

#[track_caller]
fn done(integration: Integration) -> (Head, usize) {
    match integration {
        Integration::Done { head, added } => (head, added),
        Integration::NotOurs => unreachable!("nobody else holds the lease"),
    }
}

fn stored(entry: &Entry, index: Option<u64>) -> StoredRecord {
    StoredRecord {
        row: row(entry),
        index,
        leaf: entry.leaf.clone(),
        payload: entry.payload.clone(),
    }
}

pub(super) fn row(entry: &Entry) -> LogRow {
    LogRow {
        id: entry.id.clone(),
        user_id: entry.user_id.clone(),
        kind: entry.kind,
        at: entry.at,
        request_id: entry.request_id.clone(),
        tool: entry.tool.clone(),
        code: entry.code,
    }
}

async fn append_many(store: &dyn Store, numbers: std::ops::Range<usize>) -> Checked {
    for n in numbers {
        let draft = entry(&format!("ev_{n}"), "u_1").into();
        store.append(draft, Durability::Batched).await?;
    }
    store.flush().await
}

/// Integrates until nothing waits.
pub(super) async fn integrate_all(store: &dyn Store, limit: usize) -> Result<Head, Error> {
    let mut size = 0;
    loop {
        let (head, added) = done(store.integrate(&sequencing("the last"), limit).await?);
        assert!(added <= limit, "{added} of at most {limit}");
        assert!(
            added == 0 || head.size > size,
            "{added} were added to {size}"
        );
        size = head.size;
        if added == 0 {
            return Ok(head);
        }
    }
}

/// The tiles of a tree of this size.
pub(super) async fn tiles_of(store: &dyn Store, size: u64) -> Result<TileMap, Error> {
    let wanted: Vec<_> = (0..4)
        .flat_map(|level: u8| (0..=size >> 8).map(move |index| TileId { level, index }))
        .collect();
    let tiles = store.tiles(&wanted).await?;
    assert_eq!(tiles.len(), wanted.len());
    let found = wanted.into_iter().zip(tiles);
    Ok(found.filter_map(|(id, tile)| Some((id, tile?))).collect())
}

/// The records `ev_0` to `ev_(n-1)` and no others are in the tree, each once, without a gap, and the
/// root is the one over them.
async fn is_complete(store: &dyn Store, records: usize) -> Checked {
    let head = store.head().await?;
    assert_eq!(head.size, records as u64);
    let leaves = store.leaves(0, records + 10).await?;
    assert!(leaves.iter().map(|leaf| leaf.index).eq(0..head.size));
    assert_eq!(root_over(&leaves), head.root);
    let found: BTreeSet<_> = leaves.into_iter().map(|leaf| leaf.bytes).collect();
    let wanted = (0..records).map(|n| entry(&format!("ev_{n}"), "u_1").leaf);
    assert_eq!(found, wanted.collect());
    for n in 0..records {
        let record = store.record(&record_id(&format!("ev_{n}"))).await?;
        let record = record.expect("it was appended");
        let index = record.index.expect("it is in the tree");
        let [leaf] = &*store.leaves(index, 1).await? else {
            unreachable!("there is a leaf at {index}");
        };
        assert_eq!(record.leaf, leaf.bytes, "ev_{n}");
    }
    Ok(())
}

pub(super) fn root_over(leaves: &[Leaf]) -> [u8; 32] {
    let mut frontier = Frontier::new();
    for leaf in leaves {
        frontier.push(leaf_hash(&leaf.bytes));
    }
    frontier.root()
}
