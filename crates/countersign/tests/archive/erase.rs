//! Erasing a user, and holds.

use countersign::archive::verify::Verification;
use countersign::archive::{Content, Error};
use countersign::contract::{Digest, canonical};
use countersign::ledger::{self, Erased, Log as _};
use countersign_evidence::seal::{self, commit};
use countersign_evidence::tree::verify_inclusion;
use countersign_testkit::ledger::build::trust;
use serde_json::json;

use crate::shop::{CANARY, Shop, nobody, operator};

/// A16, A22: after an erasure nothing opens and nothing can be guessed, and every proof still holds.
#[tokio::test]
async fn an_erased_user_is_gone_and_the_log_still_verifies() {
    let (shop, day) = Shop::busy().await;
    let before = shop.archive.proof(&day.order).await.unwrap();
    let leaf = shop.store.record(&day.quote).await.unwrap().unwrap().leaf;

    // What an erasure has to undo: with the salt, the commitment is open.
    let opened = shop
        .archive
        .open(&day.quote, &operator(), "x")
        .await
        .unwrap();
    let Content::Open(payload) = opened.content else {
        panic!("nothing was opened");
    };
    let arguments = payload.arguments.unwrap();
    let salt: Digest = format!("sha256:{}", payload.salt).parse().unwrap();
    let salt = seal::salt_of(salt.as_bytes(), seal::DOMAIN_ARGUMENTS);
    let committed = opened.record.arguments.as_ref().unwrap().commitment;
    let found = commit(seal::DOMAIN_ARGUMENTS, &salt, arguments.text().as_bytes());
    assert_eq!(Some(found), committed);

    let erasure = shop.archive.erase("u_1", &operator(), "asked by u_1").await;
    let erasure = erasure.unwrap();
    // With the reason of the opening above.
    assert_eq!((erasure.erased.keys, erasure.erased.payloads), (1, 5));
    shop.sign().await;

    for id in [&day.quote, &day.order] {
        let opened = shop.archive.open(id, &operator(), "x").await.unwrap();
        assert_eq!((opened.content, opened.access), (Content::Erased, None));
        assert_eq!(
            shop.store.record(id).await.unwrap().unwrap().row.user_id,
            ""
        );
    }
    let after = shop.store.record(&day.order).await.unwrap().unwrap();
    let hash = countersign_evidence::tree::leaf_hash(&after.leaf);
    let root = &before.checkpoint;
    verify_inclusion(&hash, before.index, root.size, &before.hashes, &root.root).unwrap();
    assert_eq!(
        shop.store.record(&day.quote).await.unwrap().unwrap().leaf,
        leaf
    );

    let report = shop
        .archive
        .verify_all(&Verification::default(), |_, _| {})
        .await;
    let report = report.unwrap();
    assert!(report.is_valid(), "{:?}", report.findings);
    assert_eq!(report.payloads_gone, 5);

    let record = shop.archive.show(&erasure.record.unwrap()).await.unwrap();
    assert_eq!(record.row.user_id, "");
    assert_eq!(record.record.subject, opened.record.subject);
    assert_eq!(record.record.act, json!({"event": "erase"}));
    check_unguessable(&shop, &[json!({"to": CANARY}), json!(CANARY), json!("u_1")]).await;
}

/// Guessed values cannot be found in the leaves.
async fn check_unguessable(shop: &Shop, guesses: &[serde_json::Value]) {
    let leaves = shop.store.leaves(0, 100).await.unwrap();
    let all: Vec<String> = leaves
        .into_iter()
        .map(|leaf| String::from_utf8(leaf.bytes).unwrap())
        .collect();
    let all = all.join("\n");
    for guess in guesses {
        let text = canonical::to_vec(guess).unwrap();
        let plain = guess.as_str().unwrap_or_default().as_bytes();
        let mut digests = vec![Digest::of_bytes(&text), Digest::of_bytes(plain)];
        for domain in [seal::DOMAIN_ARGUMENTS, seal::DOMAIN_DATA] {
            digests.push(commit(domain, &[0; 32], &text));
        }
        for digest in digests {
            assert!(!all.contains(&digest.to_string()), "{guess} in {all}");
        }
    }
    assert!(!all.contains(CANARY) && !all.contains("u_1"), "{all}");
}

#[tokio::test]
async fn a_second_erasure_finds_nothing_and_writes_nothing() {
    let (shop, _) = Shop::busy().await;
    shop.archive
        .erase("u_1", &operator(), "asked")
        .await
        .unwrap();
    let size = shop.sign().await;
    let again = shop
        .archive
        .erase("u_1", &operator(), "asked")
        .await
        .unwrap();
    assert_eq!((again.record, again.erased), (None, Erased::default()));
    assert_eq!(
        shop.sequencer(None)
            .await
            .unwrap()
            .known()
            .unwrap()
            .size
            .to_string(),
        size.lines().nth(1).unwrap()
    );
}

/// Erasing the empty user id would destroy the key for data without a user.
#[tokio::test]
async fn an_erasure_needs_a_scope_a_reason_and_a_user() {
    let (shop, _) = Shop::busy().await;
    let erase = async |user_id, by, reason| {
        let error = shop.archive.erase(user_id, by, reason).await;
        error.unwrap_err().to_string()
    };
    let (all, none) = (&operator(), &nobody());
    assert_eq!(
        erase("u_1", none, "x").await,
        r#"the credential does not grant "evidence:erase""#
    );
    assert_eq!(
        erase("u_1", all, "").await,
        "a reason is needed: at least one visible character"
    );
    assert_eq!(erase("", all, "x").await, "a user id is needed");
}

#[tokio::test]
async fn a_hold_forbids_erasing_and_pruning_until_it_is_lifted() {
    let (shop, day) = Shop::busy().await;
    let (archive, by) = (&shop.archive, operator());
    let refused = archive.hold("u_1", None, &nobody(), "court order").await;
    assert!(
        matches!(refused, Err(Error::MissingScope { .. })),
        "{refused:?}"
    );
    let id = archive
        .hold("u_1", Some(&day.quote), &by, "court order")
        .await
        .unwrap();
    let [held] = &archive.holds(10).await.unwrap()[..] else {
        panic!("one hold");
    };
    assert_eq!(held.reason, "court order");
    // The words may name anybody: the store does not see them.
    let [kept] = &shop.store.holds(10).await.unwrap()[..] else {
        panic!("one hold");
    };
    assert!(kept.reason.starts_with("sealed:"), "{kept:?}");
    assert!(!kept.reason.contains("court"), "{kept:?}");
    assert_eq!(
        archive.show(&id).await.unwrap().record.act,
        json!({"event": "hold", "record": day.quote.as_str()})
    );
    let refused = archive.erase("u_1", &by, "asked").await;
    assert!(
        matches!(&refused, Err(Error::Store(ledger::Error::UnderHold { reason })) if reason == "court order"),
        "{refused:?}"
    );
    shop.advance(800 * 24 * 60 * 60);
    trust(&*shop.store).await.unwrap();
    shop.sequencer(None)
        .await
        .unwrap()
        .maintain()
        .await
        .unwrap();
    let kept = archive.open(&day.quote, &by, "court order").await.unwrap();
    assert!(matches!(kept.content, Content::Open(_)));

    assert_eq!(
        archive
            .release_hold("u_1", None, &by, "over")
            .await
            .unwrap(),
        None
    );
    let lifted = archive
        .release_hold("u_1", Some(&day.quote), &by, "over")
        .await;
    assert!(lifted.unwrap().is_some());
    archive.erase("u_1", &by, "asked").await.unwrap();
}

/// A22: the document that leads from an approval's id to its user is erased with the user.
#[tokio::test]
async fn no_pointer_to_an_erased_user_is_left() {
    let shop = Shop::new();
    let confirm = countersign::approve::COLLECTION;
    let pointers = async || {
        let store: &dyn ledger::Store = &*shop.store;
        let found = store.scan("", confirm, "", None, 10).await;
        found.unwrap().documents.len()
    };
    let asked = shop.send("notes.clear", &json!({}), "k").await;
    assert_eq!(
        asked["error"]["code"], "NEEDS_USER_CONFIRMATION",
        "{asked:#}"
    );
    assert_eq!(pointers().await, 1);
    let erased = shop.archive.erase("u_1", &operator(), "asked").await;
    assert!(erased.unwrap().record.is_some());
    assert_eq!(pointers().await, 0);
}
