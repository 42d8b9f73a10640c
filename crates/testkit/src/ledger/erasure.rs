//! A user who is forgotten, while everything that was proved stays proved.

use countersign::ledger::{
    ClaimQuery, CommitAnswer, Durability, Entry, Erased, Error, LogQuery, Store, WrappedKey,
};
use countersign_contract::RecordKind;
use countersign_evidence::tree::{self, inclusion_proof, leaf_hash};

use super::build::{
    claimed, document, entry, index_entry, record_id, request, scope, scope_of, succeeded, take,
    with_write, write,
};
use super::holds::{config, hold};
use super::log::{integrate_all, tiles_of};
use super::{Checked, Fresh};

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

/// Somebody who was never there, or is gone already, leaves nothing but the record of the erasure.
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
        master: "m_1".to_owned(),
        bytes: vec![2],
    };
    let added = store.add_user_key("u_1", key.clone()).await?;
    assert_eq!(added, key);
    assert_eq!(claimed(store, &request(&scope("k"))).await?.attempt, 1);
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
