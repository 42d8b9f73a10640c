//! Opening: a scope, a reason, and a record of it first.

use std::sync::Arc;

use countersign::archive::{Content, Error, Standing};
use countersign::contract::RecordKind;
use countersign::ledger::LogQuery;
use countersign::vault::Vault;
use countersign_evidence::seal::MasterKey;
use countersign_testkit::faulty::{FaultyStore, Op, When};
use countersign_testkit::ledger::build::trust;
use serde_json::json;

use crate::shop::{CANARY, Shop, nobody, operator};
use crate::tampered::Tampered;

fn accesses() -> LogQuery {
    LogQuery {
        kind: Some(RecordKind::Access),
        limit: 10,
        ..LogQuery::default()
    }
}

/// A16, A22: the sent and answered content comes back, it agrees with the log's commitments, and the log names the
/// reader.
#[tokio::test]
async fn an_opened_record_is_what_was_said_and_leaves_a_trace() {
    let (shop, day) = Shop::busy().await;
    let opened = shop
        .archive
        .open(&day.quote, &operator(), "dispute of u_1")
        .await
        .unwrap();
    let Content::Open(payload) = &opened.content else {
        panic!("{opened:?}");
    };
    assert_eq!(
        payload.arguments.as_ref().unwrap().value().unwrap(),
        json!({"to": CANARY})
    );
    assert_eq!(
        payload.data.as_ref().unwrap().value().unwrap()["total_cents"],
        250
    );
    assert!(matches!(opened.standing, Standing::Signed { .. }));
    let access = shop.archive.show(&opened.access.unwrap()).await.unwrap();
    assert_eq!(
        serde_json::to_value(&access.record).unwrap()["act"],
        json!({"event": "open", "record": day.quote.as_str()})
    );
    let reason = shop
        .archive
        .open(&access.row.id, &operator(), "who looked")
        .await;
    let Content::Open(reason) = reason.unwrap().content else {
        panic!("the reason is sealed beside the record of the access");
    };
    assert_eq!(reason.reason.as_deref(), Some("dispute of u_1"));
    assert_eq!(access.record.actor.unwrap().id, "op_7");
    assert_eq!(access.record.subject, opened.record.subject);
}

#[tokio::test]
async fn without_scope_or_reason_nothing_is_opened() {
    let (shop, day) = Shop::busy().await;
    let error = shop.archive.open(&day.quote, &nobody(), "curious").await;
    assert!(
        matches!(error, Err(Error::MissingScope { .. })),
        "{error:?}"
    );
    let error = shop.archive.open(&day.quote, &operator(), " \n").await;
    assert!(matches!(error, Err(Error::NoReason)), "{error:?}");
    assert_eq!(shop.archive.list(&accesses()).await.unwrap(), []);
}

/// No record, no plaintext: also not if the store has failed for this one record only.
#[tokio::test]
async fn nothing_is_opened_that_was_not_written_down_first() {
    let (shop, day) = Shop::busy().await;
    let store = FaultyStore::new(shop.store.clone(), |op, when| {
        Box::pin(async move { (op, when) == (Op::Append, When::Before) })
    });
    let archive = shop.archive_of(Arc::new(store));
    let opened = archive.open(&day.quote, &operator(), "dispute").await;
    assert!(matches!(opened, Err(Error::Store(_))), "{opened:?}");
    let exported = archive
        .export(
            &[day.quote],
            countersign::archive::Export::Opened {
                by: &operator(),
                reason: "dispute",
            },
            None,
        )
        .await;
    assert!(matches!(exported, Err(Error::Store(_))), "{exported:?}");
}

/// A16: a payload or a leaf in which a byte was changed is not opened.
#[tokio::test]
async fn what_was_tampered_with_is_not_opened() {
    let (shop, day) = Shop::busy().await;
    let check = async |tampered: Tampered, what: &str| {
        let archive = shop.archive_of(Arc::new(tampered));
        let error = archive.open(&day.quote, &operator(), "dispute").await;
        let error = error.unwrap_err().to_string();
        assert!(error.contains(what), "{error}, not {what}");
    };
    let store = || Tampered::new(shop.store.clone());
    let payload =
        |at: usize| store().record(move |stored| stored.payload.as_mut().unwrap()[at] ^= 1);
    for at in [0, 1, 20, 100] {
        check(payload(at), "its payload has the digest").await;
    }
    let leaf = store().leaf(|leaf| {
        let at = leaf.bytes.windows(5).position(|five| five == b"price");
        if let Some(at) = at {
            leaf.bytes[at] = b'q';
        }
    });
    check(leaf, "its row has another tool").await;
    let both = store()
        .leaf(|leaf| {
            let text = String::from_utf8(leaf.bytes.clone()).unwrap();
            leaf.bytes = text.replace("price.quote", "qrice.quote").into_bytes();
        })
        .record(|stored| stored.row.tool = Some("qrice.quote".to_owned()));
    check(both, "is not the one that the signed tree has").await;
}

/// Content that is gone is not an error, and not the same as content that never was.
#[tokio::test]
async fn what_is_gone_is_answered_as_such() {
    let (shop, day) = Shop::busy().await;
    shop.advance(91 * 24 * 60 * 60);
    trust(&*shop.store).await.unwrap();
    shop.sequencer(None)
        .await
        .unwrap()
        .maintain()
        .await
        .unwrap();
    let opened = shop
        .archive
        .open(&day.quote, &operator(), "x")
        .await
        .unwrap();
    assert_eq!((opened.content, opened.access), (Content::Pruned, None));
    // The start of the sequencer has left a record that never had content.
    let starts = LogQuery {
        kind: Some(RecordKind::Checkpoint),
        limit: 1,
        ..LogQuery::default()
    };
    let [start] = shop
        .archive
        .list(&starts)
        .await
        .unwrap()
        .try_into()
        .unwrap();
    let opened = shop
        .archive
        .open(&start.id, &operator(), "x")
        .await
        .unwrap();
    assert_eq!((opened.content, opened.access), (Content::Nothing, None));
}

/// A master key can be replaced: data that was sealed before stays readable, and the old key is of no use.
#[tokio::test]
async fn a_new_master_key_keeps_everything_readable() {
    let (shop, day) = Shop::busy().await;
    let (old, new) = ([9; 32], [10; 32]);
    let vault = |master: [u8; 32]| {
        Vault::new(
            shop.store.clone(),
            Arc::new(MasterKey::from_bytes(&master)),
            shop.clock.clone(),
            shop.ids.clone(),
        )
    };
    let rotated = Arc::new(vault(new));
    let wrapped = rotated
        .rewrap_all(&MasterKey::from_bytes(&old), |_| {})
        .await;
    assert_eq!(wrapped.unwrap(), 1);
    let archive = |vault| {
        countersign::archive::Archive::new(
            shop.store.clone(),
            vault,
            shop.clock.clone(),
            shop.ids.clone(),
            crate::shop::signing_key().verifying_key(),
        )
    };
    for id in [&day.quote, &day.order] {
        let opened = archive(rotated.clone()).open(id, &operator(), "x").await;
        assert!(matches!(opened.unwrap().content, Content::Open(_)));
        let opened = archive(Arc::new(vault(old)))
            .open(id, &operator(), "x")
            .await;
        assert!(matches!(opened, Err(Error::Store(_))), "{opened:?}");
    }
}

/// A master key is replaced while it is used: keys of the one before are read until all of them are wrapped anew, and
/// nothing new is wrapped by it.
#[tokio::test]
async fn a_master_key_is_replaced_in_use() {
    let (shop, _) = Shop::busy().await;
    let master = |byte: u8| Arc::new(MasterKey::from_bytes(&[byte; 32]));
    let vault = |byte: u8| {
        let (clock, ids) = (shop.clock.clone(), shop.ids.clone());
        Vault::new(shop.store.clone(), master(byte), clock, ids)
    };
    let used = vault(9);
    let owner = "u_1";
    let before = used.existing_key(owner).await.unwrap().unwrap();
    used.change_master(master(10)).await;
    let still = used.existing_key(owner).await.unwrap().unwrap();
    assert_eq!(still.secret_bytes(), before.secret_bytes());
    used.key("u_new").await.unwrap();
    assert!(vault(10).existing_key("u_new").await.is_ok());
    assert!(vault(9).existing_key("u_new").await.is_err());
    // One that has begun anew in between reads both as well.
    let anew = vault(10).also_reading(master(9));
    assert!(anew.existing_key(owner).await.unwrap().is_some());

    let wrapped = used.rewrap_all(&*master(9), |_| {}).await;
    assert_eq!(wrapped.unwrap(), 1);
    used.forget_former().await;
    for known in [owner, "u_new"] {
        assert!(used.existing_key(known).await.unwrap().is_some());
        assert!(vault(10).existing_key(known).await.unwrap().is_some());
    }
}
