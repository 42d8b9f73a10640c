//! Records by the names that lead to them, and acts that refuse a name that leads nowhere.

use countersign::archive::{Error, KnownThing};
use countersign::contract::{Digest, RecordKind};
use countersign::ledger::{Log as _, LogQuery};
use countersign_evidence::tree::leaf_hash;

use crate::shop::{Shop, operator};

/// N2: a hold on a user of whom there is nothing is refused, and leaves no record.
#[tokio::test]
async fn nobody_is_held_who_does_not_exist() {
    let (shop, day) = Shop::busy().await;
    let held = shop
        .archive
        .hold("order_1sqe", None, &operator(), "dispute")
        .await;
    assert!(matches!(held, Err(Error::UnknownUser { .. })), "{held:?}");
    assert!(shop.archive.holds(10).await.unwrap().is_empty());
    let config = LogQuery {
        kind: Some(RecordKind::Config),
        limit: 10,
        ..LogQuery::default()
    };
    assert!(shop.archive.list(&config).await.unwrap().is_empty());
    let known = shop.archive.row(&day.quote).await.unwrap().user_id;
    shop.archive
        .hold(&known, None, &operator(), "dispute")
        .await
        .unwrap();
    assert_eq!(shop.archive.holds(10).await.unwrap().len(), 1);
}

/// An id that a caller chose is looked for with a thousand users, and no further: each costs opening a key. Ids of the gateway are found at once.
#[tokio::test]
async fn a_chosen_id_is_not_looked_for_without_end() {
    let (shop, day) = Shop::busy().await;
    let row = shop.archive.row(&day.quote).await.unwrap();
    let request_id = row.request_id.clone().unwrap();
    for n in 0..1_000 {
        shop.executor
            .vault()
            .key(&format!("v_{n:04}"))
            .await
            .unwrap();
    }
    let found = shop.archive.locate(request_id.as_str(), None, 10).await;
    assert_eq!(found.unwrap(), [row]);
    let refused = shop.archive.locate("chosen-1", None, 10).await;
    assert!(
        matches!(refused, Err(Error::NameTheUser { .. })),
        "{refused:?}"
    );
    let theirs = shop.archive.locate("chosen-1", Some("u_1"), 10).await;
    assert_eq!(theirs.unwrap(), []);
}

/// N2: the id of a record, the request id of its call and the hash of its leaf lead to it, for its user and for no
/// other.
#[tokio::test]
async fn several_names_lead_to_a_record() {
    let (shop, day) = Shop::busy().await;
    let archive = &shop.archive;
    let row = archive.row(&day.quote).await.unwrap();
    let stored = shop.store.record(&day.quote).await.unwrap().unwrap();
    let request_id = row.request_id.clone().unwrap();
    let user = row.user_id.as_str();
    for name in [day.quote.as_str(), request_id.as_str()] {
        for whose in [None, Some(user)] {
            assert_eq!(
                archive.locate(name, whose, 10).await.unwrap(),
                std::slice::from_ref(&row),
                "{name}"
            );
        }
        assert_eq!(
            archive.locate(name, Some("u_other"), 10).await.unwrap(),
            [],
            "{name}"
        );
    }
    let hash = Digest(leaf_hash(&stored.leaf));
    assert_eq!(archive.of_leaf(hash).await.unwrap(), Some(row));
    assert_eq!(archive.of_leaf(Digest([7; 32])).await.unwrap(), None);
    let order_ = KnownThing {
        prefix: "order_",
        collection: "orders",
        request_id: "/request_id",
        made_from: &[],
    };
    let knowing = archive.clone().knowing(&[order_]);
    for name in ["ev_0", "ev_", "order_1", "req_0", "", "a b", "\u{1F600}"] {
        assert_eq!(
            knowing.locate(name, None, 10).await.unwrap(),
            [],
            "{name:?}"
        );
    }
}
