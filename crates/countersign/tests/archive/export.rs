//! Bundles: the receiver can check everything in them.

use std::sync::Arc;

use countersign::archive::{CoseForm, Error, Export};
use countersign::contract::{EvidenceRecord, RecordKind};
use countersign::ledger::LogQuery;
use countersign_evidence::bundle::{Bundle, Consistency, Content};
use countersign_evidence::note::SigningKey;
use countersign_evidence::proof::TlogProof;
use countersign_evidence::receipt;
use serde_json::json;

use crate::shop::{CANARY, ORIGIN, Shop, nobody, operator, signing_key};
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

/// The text of a proof is all that a stranger needs: it carries the record.
#[tokio::test]
async fn a_proof_has_a_text() {
    let (shop, day) = Shop::busy().await;
    let proof = shop.archive.proof(&day.quote).await.unwrap();
    let text = proof.into_tlog_proof().to_string();
    let (head, note) = text.split_once("\n\n").unwrap();
    let head: Vec<_> = head.lines().collect();
    assert_eq!((head[0], head[2]), ("c2sp.org/tlog-proof@v1", "index 0"));
    assert_eq!((head.len(), note), (6, shop.note().await.as_str()));
    let read: TlogProof = text.parse().unwrap();
    let (leaf, checkpoint) = read.verify_carried(&signing_key().verifying_key()).unwrap();
    let record = EvidenceRecord::from_leaf(str::from_utf8(leaf).unwrap()).unwrap();
    assert_eq!((record.id, checkpoint.size), (day.quote, 5));
}

/// A receipt states what the newest checkpoint states, and only the key of the log signs it.
#[tokio::test]
async fn a_statement_is_signed_with_the_key_of_the_log_only() {
    let (shop, day) = Shop::busy().await;
    let archive = shop.archive.clone().signing(Arc::new(signing_key()));
    let made = archive.cose(&day.order, CoseForm::Statement).await.unwrap();
    let key = signing_key().verifying_key();
    let verified = receipt::verify_statement(&made, &key).unwrap();
    assert_eq!(verified.record.id, day.order);
    let (checkpoint, _) = archive.signed().await.unwrap().unwrap();
    assert_eq!(
        (verified.size, verified.root),
        (checkpoint.size, checkpoint.root)
    );
    let made = archive.cose(&day.order, CoseForm::Receipt).await.unwrap();
    let leaf = archive.proof(&day.order).await.unwrap().leaf;
    assert_eq!(receipt::verify_receipt(&made, &leaf, &key), Ok(verified));

    let other = SigningKey::from_seed(ORIGIN, &[8; 32]).unwrap();
    for archive in [
        shop.archive.clone(),
        shop.archive.clone().signing(Arc::new(other)),
    ] {
        let refused = archive.cose(&day.order, CoseForm::Statement).await;
        assert!(matches!(refused, Err(Error::NoSigner)), "{refused:?}");
    }
}
