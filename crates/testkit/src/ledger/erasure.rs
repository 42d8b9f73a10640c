//! A user who is forgotten, while everything that was proved stays proved.

use std::sync::{Arc, Mutex};

use countersign::ledger::{
    ClaimAnswer, ClaimQuery, ClaimRequest, Commit, CommitAnswer, DocumentKey, Durability, Entry,
    Erased, Error, LogQuery, Store, WrappedKey,
};
use countersign_contract::RecordKind;
use countersign_evidence::seal::KeyId;
use countersign_evidence::tree::{self, inclusion_proof, leaf_hash};

use super::build::{
    claimed, commit, document, entry, index_entry, record_id, request, scope, scope_of, settle,
    succeeded, take, with_write, write,
};
use super::holds::{config, hold};
use super::log::{integrate_all, tiles_of};
use super::{Checked, Fresh, race};

/// Everything that could be opened or found by the user's name is gone, and is counted.
pub(super) async fn a_user_is_forgotten(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    live(store, "u_1").await?;
    live(store, "u_2").await?;
    let counts = store.erase("u_1", &[], erasure("ev_erased")).await?;
    assert_eq!(counts, ALL_OF_A_USER);

    assert_eq!(store.user_key("u_1").await?, None);
    let key = scope_of("u_1", "orders.create", "k");
    assert_eq!(fresh.handle(1).lookup(&key).await?, None);
    let claims = ClaimQuery {
        user_id: Some("u_1".to_owned()),
        limit: 10,
        ..ClaimQuery::default()
    };
    assert_eq!(store.claims(&claims).await?, []);
    assert_eq!(store.document(&document("cart", "c")).await?.version, 0);
    let scan = store.scan("u_1", "cart", "", None, 10).await?;
    assert_eq!((scan.documents, scan.shape), (vec![], 0));
    let entry = index_entry("by_state", 1);
    let found = store.find("u_1", "cart", &entry, 10).await?;
    assert_eq!(found.documents, []);
    assert_eq!(records_of(store, "u_1").await?, 0);
    for id in ["ev_u-1-a", "ev_u-1-b"] {
        let record = store.record(&record_id(id)).await?.expect("it stays");
        assert_eq!(record.row.user_id, "");
        assert_eq!(record.payload, None);
    }
    let kept = store.record(&record_id("ev_erased")).await?;
    let kind = kept.map(|record| record.row.kind);
    assert_eq!(kind, Some(RecordKind::Erasure));
    Ok(())
}

pub(super) async fn other_users_stay(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    live(store, "u_1").await?;
    live(store, "u_2").await?;
    // A name that only begins with the erased one's.
    live(store, "u_12").await?;
    store.erase("u_1", &[], erasure("ev_erased")).await?;
    for user_id in ["u_2", "u_12"] {
        assert!(store.user_key(user_id).await?.is_some());
        let key = scope_of(user_id, "orders.create", "k");
        assert!(store.lookup(&key).await?.is_some());
        let scan = store.scan(user_id, "cart", "", None, 10).await?;
        assert_eq!((scan.documents.len(), scan.shape), (1, 1));
        let entry = index_entry("by_state", 1);
        let found = store.find(user_id, "cart", &entry, 10).await?;
        assert_eq!(found.documents.len(), 1);
        assert_eq!(records_of(store, user_id).await?, 2);
        let record = store.record(&id_of(user_id, "a")).await?.expect("it stays");
        assert!(record.payload.is_some());
        let counts = store
            .erase(user_id, &[], erasure(&format!("ev_{}", id_text(user_id))))
            .await?;
        assert_eq!(counts, ALL_OF_A_USER, "{user_id}");
    }
    Ok(())
}

/// Leaves are permanent: root, leaves and proofs from before are the same after.
pub(super) async fn an_erasure_does_not_touch_the_tree(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    live(store, "u_1").await?;
    let head = integrate_all(store, 10).await?;
    let leaves = store.leaves(0, 10).await?;
    // One that is not in the tree yet goes in as it is.
    let waiting = entry("ev_waiting", "u_1");
    let leaf = waiting.leaf.clone();
    store.append(waiting.into(), Durability::Committed).await?;
    store.erase("u_1", &[], erasure("ev_erased")).await?;
    assert_eq!(store.head().await?, head);
    assert_eq!(store.leaves(0, 10).await?, leaves);
    let grown = integrate_all(store, 10).await?;
    assert_eq!(grown.size, head.size + 2);
    let after = store.leaves(0, 10).await?;
    assert!(after.starts_with(&leaves));
    assert!(after.iter().any(|of| of.bytes == leaf));
    let tiles = tiles_of(store, grown.size).await?;
    for leaf in &leaves {
        let proof = inclusion_proof(leaf.index, head.size, &tiles).expect("all tiles are there");
        let hash = leaf_hash(&leaf.bytes);
        tree::verify_inclusion(&hash, leaf.index, head.size, &proof, &head.root)
            .expect("a proof from before holds");
    }
    Ok(())
}

/// A hold on the user or on one of the user's records forbids it, and then nothing is gone.
pub(super) async fn a_hold_forbids_an_erasure(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    live(store, "u_1").await?;
    let holds = [hold("u_1", None), hold("u_1", Some("ev_u-1-a"))];
    for (n, hold) in holds.into_iter().enumerate() {
        store
            .hold(hold.clone(), config(&format!("ev_h{n}")))
            .await?;
        let refused = store.erase("u_1", &[], erasure("ev_erased")).await;
        assert!(
            matches!(&refused, Err(Error::UnderHold { reason }) if reason == "a dispute"),
            "{refused:?}"
        );
        assert!(store.user_key("u_1").await?.is_some());
        assert!(store.lookup(&scope("k")).await?.is_some());
        assert_eq!(store.document(&document("cart", "c")).await?.version, 1);
        assert_eq!(records_of(store, "u_1").await?, 2);
        assert_eq!(store.record(&record_id("ev_erased")).await?, None);
        assert!(
            store
                .release_hold(hold, config(&format!("ev_r{n}")))
                .await?
        );
    }
    // Somebody else's hold does not.
    store.hold(hold("u_2", None), config("ev_h9")).await?;
    let counts = store.erase("u_1", &[], erasure("ev_erased")).await?;
    assert_eq!(counts, ALL_OF_A_USER);
    Ok(())
}

/// The erasure of a user who was never there, or is gone already, leaves nothing but its record.
pub(super) async fn nobody_is_forgotten_too(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    for id in ["ev_1", "ev_2"] {
        let counts = store.erase("u_1", &[], erasure(id)).await?;
        assert_eq!(counts, Erased::default());
        assert!(store.record(&record_id(id)).await?.is_some());
    }
    Ok(())
}

/// A user who comes back starts anew, with another key.
pub(super) async fn a_user_may_come_back(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    live(store, "u_1").await?;
    store.erase("u_1", &[], erasure("ev_erased")).await?;
    let key = WrappedKey {
        id: None,
        master: "m_1".to_owned(),
        bytes: vec![2],
    };
    let added = store.add_user_key("u_1", key.clone()).await?;
    assert_eq!(added, key);
    assert_eq!(claimed(store, &request(&scope("k"))).await?.attempt, 1);
    Ok(())
}

/// A call that ran while its user was erased, or on a replica that still has the key: neither its claim nor its documents nor its
/// record come back, whether or not the user has.
pub(super) async fn nothing_of_a_user_comes_back_under_a_destroyed_key(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    store.add_user_key("u_1", named_key(1)).await?;
    let running = claimed(store, &request(&scope("running"))).await?;
    store.erase("u_1", &[], erasure("ev_erased")).await?;
    for round in ["gone", "back"] {
        let id = |name: &str| format!("ev_{name}-{round}");
        let place = document("cart", "c");
        let takes = take(&scope("k"), 0, succeeded("done"), &id("take"));
        let settles = settle(&running, succeeded("done"), &id("settle"));
        let plain = commit(&id("plain"));
        let cart = || write(&place, 0, Some("body"));
        for (unit, name) in [
            (with_write(takes, cart()), "take"),
            (with_write(plain, cart()), "plain"),
            (settles, "settle"),
        ] {
            let unit = sealed(unit, "u_1", &id(name), 1);
            assert_eq!(store.commit(unit).await?, CommitAnswer::Erased, "{name}");
            assert_eq!(store.record(&record_id(&id(name))).await?, None, "{name}");
        }
        let claim = ClaimRequest {
            sealed_under: Some(key_id(1)),
            ..request(&scope("other"))
        };
        assert_eq!(store.claim(&claim).await?, ClaimAnswer::Erased);
        assert_eq!(claims_of(store, "u_1").await?, 0, "{round}");
        assert_eq!(store.document(&place).await?.version, 0, "{round}");
        assert_eq!(records_of(store, "u_1").await?, 0, "{round}");
        store.add_user_key("u_1", named_key(2)).await?;
    }
    // Under the key that counts everything is as ever.
    let cart = write(&document("cart", "c"), 0, Some("body"));
    let unit = with_write(take(&scope("k"), 0, succeeded("done"), "ev_0"), cart);
    let unit = sealed(unit, "u_1", "ev_new", 2);
    assert_eq!(store.commit(unit).await?, CommitAnswer::Committed);
    let claim = ClaimRequest {
        sealed_under: Some(key_id(2)),
        ..request(&scope("other"))
    };
    claimed(store, &claim).await?;
    assert_eq!(records_of(store, "u_1").await?, 1);
    Ok(())
}

/// The record of a read that was sealed in the background, of a denial, of a hold: it is kept as if the erasure had come after it.
pub(super) async fn a_record_under_a_destroyed_key_is_kept_without_its_user(
    fresh: &Fresh,
) -> Checked {
    let store = &*fresh.store;
    store.add_user_key("u_1", named_key(1)).await?;
    store.erase("u_1", &[], erasure("ev_erased")).await?;
    for round in ["gone", "back"] {
        let entry_of = |name: &str| Entry {
            sealed_under: Some(key_id(1)),
            ..entry(&format!("ev_{name}-{round}"), "u_1")
        };
        let batched = entry_of("batched");
        store.append(batched.into(), Durability::Batched).await?;
        let committed = entry_of("committed");
        store
            .append(committed.into(), Durability::Committed)
            .await?;
        store.hold(hold("u_2", None), entry_of("hold")).await?;
        store
            .release_hold(hold("u_2", None), entry_of("release"))
            .await?;
        store.flush().await?;
        for name in ["batched", "committed", "hold", "release"] {
            let expected = entry_of(name);
            let record = store.record(&expected.id).await?.expect("it is kept");
            assert_eq!((&*record.row.user_id, record.payload), ("", None), "{name}");
            assert_eq!(record.leaf, expected.leaf, "{name}");
        }
        assert_eq!(records_of(store, "u_1").await?, 0);
        store.add_user_key("u_1", named_key(2)).await?;
    }
    // All of them go into the tree.
    assert_eq!(integrate_all(store, 100).await?.size, 9);
    Ok(())
}

/// An external effect has happened: its changes to shared documents are written, and its record stays.
pub(super) async fn what_is_shared_is_written_without_the_user(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    store.add_user_key("u_1", named_key(1)).await?;
    store.erase("u_1", &[], erasure("ev_erased")).await?;
    let place = DocumentKey {
        user_id: String::new(),
        ..document("stock", "s")
    };
    let unit = with_write(commit("ev_0"), write(&place, 0, Some("body")));
    let unit = || sealed(clone_of(&unit), "u_1", "ev_shared", 1);
    assert_eq!(store.commit(unit()).await?, CommitAnswer::Committed);
    assert_eq!(store.commit(unit()).await?, CommitAnswer::Committed);
    assert_eq!(store.document(&place).await?.version, 1);
    let record = store.record(&record_id("ev_shared")).await?;
    let record = record.expect("it is kept");
    assert_eq!((&*record.row.user_id, record.payload), ("", None));
    assert_eq!(integrate_all(store, 100).await?.size, 2);
    Ok(())
}

/// A commit whose answer was lost is sent again after the user was erased.
pub(super) async fn a_commit_sent_again_after_an_erasure_brings_nothing_back(
    fresh: &Fresh,
) -> Checked {
    let store = &*fresh.store;
    store.add_user_key("u_1", named_key(1)).await?;
    let place = document("cart", "c");
    let taken = || {
        let unit = take(&scope("k"), 0, succeeded("done"), "ev_0");
        let unit = with_write(unit, write(&place, 0, Some("body")));
        sealed(unit, "u_1", "ev_take", 1)
    };
    let claim = claimed(store, &request(&scope("elsewhere"))).await?;
    let settled = || {
        sealed(
            settle(&claim, succeeded("done"), "ev_0"),
            "u_1",
            "ev_settle",
            1,
        )
    };
    // Without a key it is the record alone that tells.
    let unguarded = || {
        let unit = take(&scope("old"), 0, succeeded("done"), "ev_old");
        with_write(unit, write(&document("cart", "old"), 0, Some("body")))
    };
    assert_eq!(store.commit(taken()).await?, CommitAnswer::Committed);
    assert_eq!(store.commit(settled()).await?, CommitAnswer::Committed);
    assert_eq!(store.commit(unguarded()).await?, CommitAnswer::Committed);
    store.erase("u_1", &[], erasure("ev_erased")).await?;
    for _ in 0..2 {
        assert_eq!(store.commit(taken()).await?, CommitAnswer::Committed);
        assert_eq!(store.commit(settled()).await?, CommitAnswer::Committed);
        assert_eq!(store.commit(unguarded()).await?, CommitAnswer::Committed);
        assert_eq!(claims_of(store, "u_1").await?, 0);
        assert_eq!(records_of(store, "u_1").await?, 0);
        for id in ["c", "old"] {
            let found = store.document(&document("cart", id)).await?;
            assert_eq!(found.version, 0, "{id}");
        }
        store.add_user_key("u_1", named_key(2)).await?;
    }
    assert_eq!(integrate_all(store, 100).await?.size, 4);
    Ok(())
}

/// A key that an earlier program kept has no name; every later one has.
pub(super) async fn a_key_without_a_name_is_the_only_one(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let old = WrappedKey {
        id: None,
        ..named_key(1)
    };
    store.add_user_key("u_1", old.clone()).await?;
    let unit = take(&scope("k"), 0, succeeded("done"), "ev_0");
    let unit = sealed(unit, "u_1", "ev_old", 1);
    assert_eq!(store.commit(unit).await?, CommitAnswer::Committed);
    // Wrapping it again gives it its name.
    assert!(store.rewrap("u_1", &old, named_key(1)).await?);
    assert_eq!(store.user_key("u_1").await?, Some(named_key(1)));
    for (n, expected) in [(1, CommitAnswer::Committed), (2, CommitAnswer::Erased)] {
        let unit = take(&scope(&n.to_string()), 0, succeeded("done"), "ev_0");
        let unit = sealed(unit, "u_1", &format!("ev_{n}"), n);
        assert_eq!(store.commit(unit).await?, expected);
    }
    Ok(())
}

/// A process that holds a key for a while learns from its own writes that it is out of date. A store of one process forgets it
/// when it erases.
pub(super) async fn whoever_holds_a_destroyed_key_is_told(fresh: &Fresh) -> Checked {
    let (one, other) = (fresh.handle(0), fresh.handle(1));
    if Arc::ptr_eq(&one, &other) {
        return Ok(());
    }
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = told.clone();
    other.on_lost_key(Arc::new(move |user_id| {
        heard
            .lock()
            .expect("nobody panics")
            .push(user_id.to_owned());
    }));
    one.add_user_key("u_1", named_key(1)).await?;
    one.erase("u_1", &[], erasure("ev_erased")).await?;
    let record = Entry {
        sealed_under: Some(key_id(1)),
        ..entry("ev_late", "u_1")
    };
    other.append(record.into(), Durability::Batched).await?;
    other.flush().await?;
    assert_eq!(*told.lock().expect("nobody panics"), ["u_1"]);
    Ok(())
}

/// Calls of a user on several replicas, and the erasure in the middle of them: whichever comes first, nothing is left that names the
/// user, and every record is in the tree once.
pub(super) async fn racing_calls_of_an_erased_user_leave_nothing(fresh: &Fresh) -> Checked {
    const CALLS: usize = 24;
    fresh.store.add_user_key("u_1", named_key(1)).await?;
    let stores: Vec<_> = (0..=CALLS).map(|n| fresh.handle(n)).collect();
    let done = race(CALLS + 1, |n| {
        let store = stores.get(n).expect("one for each").clone();
        async move {
            if n == CALLS / 2 {
                store.erase("u_1", &[], erasure("ev_erased")).await?;
                return Ok(1);
            }
            let id = format!("ev_race-{n}");
            match n % 3 {
                0 => {
                    let place = document("cart", &id);
                    let unit = take(&scope(&id), 0, succeeded("done"), "ev_0");
                    let unit = with_write(unit, write(&place, 0, Some("body")));
                    let answer = store.commit(sealed(unit, "u_1", &id, 1)).await?;
                    Ok(usize::from(answer == CommitAnswer::Committed))
                }
                1 => {
                    let claim = ClaimRequest {
                        sealed_under: Some(key_id(1)),
                        ..request(&scope(&id))
                    };
                    store.claim(&claim).await?;
                    Ok(0)
                }
                _ => {
                    let record = Entry {
                        sealed_under: Some(key_id(1)),
                        ..entry(&id, "u_1")
                    };
                    store.append(record.into(), Durability::Committed).await?;
                    Ok(1)
                }
            }
        }
    })
    .await?;
    let store = &*fresh.store;
    assert_eq!(claims_of(store, "u_1").await?, 0);
    assert_eq!(records_of(store, "u_1").await?, 0);
    let scan = store.scan("u_1", "cart", "", None, 100).await?;
    assert_eq!((scan.documents, scan.shape), (vec![], 0));
    let kept: usize = done.into_iter().sum();
    assert_eq!(integrate_all(store, 100).await?.size, kept as u64);
    Ok(())
}

const ALL_OF_A_USER: Erased = Erased {
    keys: 1,
    payloads: 2,
    documents: 1,
    claims: 2,
};

/// A key, a document with an entry, a settled claim, a running one and two records.
async fn live(store: &dyn Store, user_id: &str) -> Checked {
    let key = WrappedKey {
        id: None,
        master: "m_1".to_owned(),
        bytes: vec![1],
    };
    store.add_user_key(user_id, key).await?;
    let mut place = document("cart", "c");
    user_id.clone_into(&mut place.user_id);
    let mut cart = write(&place, 0, Some("body"));
    cart.entries = vec![index_entry("by_state", 1)];
    let scope = scope_of(user_id, "orders.create", "k");
    let mut unit = with_write(take(&scope, 0, succeeded("done"), "ev_0"), cart);
    unit.record = entry(id_of(user_id, "a").as_str(), user_id).into();
    assert_eq!(store.commit(unit).await?, CommitAnswer::Committed);
    let running = scope_of(user_id, "orders.create", "other");
    claimed(store, &request(&running)).await?;
    let record = entry(id_of(user_id, "b").as_str(), user_id);
    store.append(record.into(), Durability::Committed).await
}

fn key_id(n: u8) -> KeyId {
    KeyId([n; 16])
}

fn named_key(n: u8) -> WrappedKey {
    WrappedKey {
        id: Some(key_id(n)),
        master: "m_1".to_owned(),
        bytes: vec![n],
    }
}

/// Returns the commit with a record of this user that is sealed under the `n`th key.
fn sealed(unit: Commit, user_id: &str, id: &str, n: u8) -> Commit {
    let record = Entry {
        sealed_under: Some(key_id(n)),
        ..entry(id, user_id)
    };
    Commit {
        record: record.into(),
        ..unit
    }
}

/// Returns the commit without its record.
fn clone_of(unit: &Commit) -> Commit {
    Commit {
        reads: unit.reads.clone(),
        shapes: unit.shapes.clone(),
        writes: unit.writes.clone(),
        ..commit("ev_0")
    }
}

async fn claims_of(store: &dyn Store, user_id: &str) -> Result<usize, Error> {
    let query = ClaimQuery {
        user_id: Some(user_id.to_owned()),
        limit: 100,
        ..ClaimQuery::default()
    };
    Ok(store.claims(&query).await?.len())
}

fn id_text(user_id: &str) -> String {
    user_id.replace('_', "-")
}

fn id_of(user_id: &str, which: &str) -> countersign_contract::SnapshotId {
    record_id(&format!("ev_{}-{which}", id_text(user_id)))
}

fn erasure(id: &str) -> Entry {
    Entry {
        kind: RecordKind::Erasure,
        payload: None,
        ..entry(id, "")
    }
}

async fn records_of(store: &dyn Store, user_id: &str) -> Result<usize, Error> {
    let query = LogQuery {
        user_id: Some(user_id.to_owned()),
        limit: 100,
        ..LogQuery::default()
    };
    Ok(store.records(&query).await?.len())
}
