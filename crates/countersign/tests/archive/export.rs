//! Bundles: the receiver can check everything in them.

use std::sync::Arc;

use countersign::archive::{Error, Export};
use countersign::contract::RecordKind;
use countersign::ledger::LogQuery;
use countersign_evidence::bundle::{Bundle, Consistency, Content};
use serde_json::json;

use crate::shop::{CANARY, Shop, nobody, operator, signing_key};
use crate::tampered::Tampered;

/// A15, A16: an order goes out with the quote it rests on, and a stranger verifies both.
#[tokio::test]
async fn a_bundle_holds_what_a_record_rests_on_and_verifies() {
    let (shop, day) = Shop::busy().await;
    let held = shop.note().await;
    shop.send("price.quote", &json!({}), "").await;
    shop.sign().await;
    let (by, reason) = (&operator(), "dispute");
    for (export, content, shows) in [
        (Export::Records, Content::Absent, false),
        (Export::Sealed, Content::Sealed, false),
        (Export::Opened { by, reason }, Content::Opened, true),
    ] {
        let bundle = shop
            .archive
            .export(std::slice::from_ref(&day.order), export, Some(&held))
            .await;
        let file = bundle.unwrap().to_json();
        assert_eq!(file.contains(CANARY), shows, "{file}");
        let report = Bundle::parse(&file)
            .unwrap()
            .verify(Some(&signing_key().verifying_key()), Some(&held));
        assert!(report.is_valid(), "{:?}", report.findings);
        assert_eq!(report.consistency, Consistency::Grown);
        let found: Vec<_> = report
            .records
            .iter()
            .map(|record| (record.id.clone().unwrap(), record.content))
            .collect();
        let expected = [&day.quote, &day.order].map(|id| (id.to_string(), content));
        assert_eq!(found, expected);
    }
    let query = LogQuery {
        kind: Some(RecordKind::Access),
        limit: 2,
        ..LogQuery::default()
    };
    let [access] = shop.archive.list(&query).await.unwrap().try_into().unwrap();
    let access = shop.archive.show(&access.id).await.unwrap().record;
    let mut ids = access.act["records"].as_array().unwrap().clone();
    ids.sort_by_key(ToString::to_string);
    assert_eq!(ids, [json!(day.quote.as_str()), json!(day.order.as_str())]);
}

/// An export tells how far it is: the records that the named one rests on are counted, too.
#[tokio::test]
async fn an_export_tells_how_far_it_is() {
    let (shop, day) = Shop::busy().await;
    shop.sign().await;
    let mut told = Vec::new();
    let ids = [day.order.clone()];
    let add = |done, all| told.push((done, all));
    let export = shop.archive.export_told(&ids, Export::Records, None, add);
    export.await.unwrap();
    assert_eq!(told, [(0, 2), (1, 2), (2, 2)]);
}

#[tokio::test]
async fn a_bundle_is_opened_only_for_those_who_may() {
    let (shop, day) = Shop::busy().await;
    let (by, reason) = (&nobody(), "dispute");
    let refused = shop
        .archive
        .export(&[day.order], Export::Opened { by, reason }, None)
        .await;
    assert!(
        matches!(refused, Err(Error::MissingScope { .. })),
        "{refused:?}"
    );
}

/// A16: nothing leaves that was tampered with, and nothing that no signature covers.
#[tokio::test]
async fn what_cannot_be_proved_does_not_leave() {
    let (shop, day) = Shop::busy().await;
    let payload = Tampered::new(shop.store.clone())
        .record(|stored| stored.payload.as_mut().unwrap()[30] ^= 1);
    let archive = shop.archive_of(Arc::new(payload));
    let refused = archive
        .export(std::slice::from_ref(&day.quote), Export::Sealed, None)
        .await;
    assert!(
        matches!(refused, Err(Error::Tampered { .. })),
        "{refused:?}"
    );

    let reply = shop.send("price.quote", &json!({}), "").await;
    let new = crate::shop::snapshot_of(&reply);
    let refused = shop.archive.export(&[new], Export::Records, None).await;
    assert!(
        matches!(refused, Err(Error::NotSignedYet { .. })),
        "{refused:?}"
    );

    let growth = shop.archive.growth("no note").await;
    assert!(matches!(growth, Err(Error::Held(_))), "{growth:?}");
}

/// The text of a proof is all that a stranger needs besides the leaf.
#[tokio::test]
async fn a_proof_has_a_text() {
    let (shop, day) = Shop::busy().await;
    let proof = shop.archive.proof(&day.quote).await.unwrap();
    let text = proof.to_string();
    let (head, note) = text.split_once("\n\n").unwrap();
    assert_eq!(
        head.lines().take(2).collect::<Vec<_>>(),
        ["c2sp.org/tlog-proof@v1", "index 0"]
    );
    assert_eq!(
        (head.lines().count(), note),
        (5, shop.note().await.as_str())
    );
}
