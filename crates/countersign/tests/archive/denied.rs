//! Denied acts: each leaves a record, and no caller can fill the log with them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use countersign::archive::{Error, Export, SCOPE_OPEN};
use countersign::contract::{Actor, ActorType, RecordKind};
use countersign::denials::INTERVAL;
use countersign::ledger::{Log as _, LogQuery};
use countersign::{Credential, Principal};
use countersign_testkit::faulty::{FaultyStore, Op, When};
use insta::assert_snapshot;
use serde_json::Value;

use crate::shop::{Shop, nobody, operator};

/// The denied acts in the log, oldest first, with the user of each row.
async fn denied(shop: &Shop) -> String {
    let query = LogQuery {
        kind: Some(RecordKind::Denial),
        limit: 1_000,
        ..LogQuery::default()
    };
    let mut told = Vec::new();
    for row in shop.archive.list(&query).await.unwrap().iter().rev() {
        let stored = shop.store.record(&row.id).await.unwrap().unwrap();
        let record: Value = serde_json::from_slice(&stored.leaf).unwrap();
        // The shop itself has a call that was refused.
        if row.request_id.is_none() {
            told.push(format!(
                "{:?} {} {}",
                row.user_id, record["actor"]["type"], record["act"]
            ));
        }
    }
    // They were denied at one moment of the clock.
    told.sort();
    told.join("\n")
}

fn agent(id: &str) -> Principal {
    let actor = Actor {
        kind: ActorType::Agent,
        id: id.to_owned(),
    };
    let key = Credential::ApiKey {
        id: "00ff00ff00ff00ff".to_owned(),
    };
    Principal::new(actor, "u_9").proved_by(key)
}

/// U3: a denied open is recorded with caller, target and reason, and nothing is decrypted.
#[tokio::test]
async fn a_denied_act_leaves_a_record() {
    let (shop, day) = Shop::busy().await;
    let archive = &shop.archive;
    let error = archive.open(&day.quote, &nobody(), "curious").await;
    assert!(
        matches!(error, Err(Error::MissingScope { .. })),
        "{error:?}"
    );
    let error = archive.open(&day.quote, &operator(), " \n").await;
    assert!(matches!(error, Err(Error::NoReason)), "{error:?}");
    let by = agent("shopper");
    let export = Export::Opened {
        by: &by,
        reason: "mine",
    };
    assert!(
        archive
            .export(std::slice::from_ref(&day.order), export, None)
            .await
            .is_err()
    );
    assert!(archive.erase("u_1", &by, "gone").await.is_err());
    assert!(archive.hold("u_1", None, &by, "kept").await.is_err());
    archive.deny_sight("open", &by, &day.order).await;
    archive.deny_nothing("open", &by).await;
    let told = denied(&shop).await;
    let told = told
        .replace(day.quote.as_str(), "QUOTE")
        .replace(day.order.as_str(), "ORDER");
    assert_snapshot!(told, @r#"
    "" "agent" {"count":1,"credential":{"id":"00ff00ff00ff00ff","type":"api_key"},"denied":"missing_scope","event":"erase"}
    "" "agent" {"count":1,"credential":{"id":"00ff00ff00ff00ff","type":"api_key"},"denied":"missing_scope","event":"export","target":"ORDER"}
    "" "agent" {"count":1,"credential":{"id":"00ff00ff00ff00ff","type":"api_key"},"denied":"missing_scope","event":"hold"}
    "" "agent" {"count":1,"credential":{"id":"00ff00ff00ff00ff","type":"api_key"},"denied":"no_record","event":"open"}
    "" "agent" {"count":1,"credential":{"id":"00ff00ff00ff00ff","type":"api_key"},"denied":"not_theirs","event":"open","target":"ORDER"}
    "" "user" {"count":1,"denied":"missing_scope","event":"open","target":"QUOTE"}
    "" "user" {"count":1,"denied":"no_reason","event":"open","target":"QUOTE"}
    "#);
    // A person is named by subject, which goes with their key.
    assert!(!told.contains("op_7") && !told.contains("u_9"), "{told}");
}

/// U3: repeats are counted within an interval; the count is one more record, and a made-up name is in none.
#[tokio::test]
async fn repeats_are_counted() {
    let (shop, day) = Shop::busy().await;
    let archive = &shop.archive;
    for _ in 0..500 {
        archive
            .open(&day.quote, &nobody(), "curious")
            .await
            .unwrap_err();
    }
    for number in 0..500 {
        let made_up = format!("ev_made-up-{number}").parse().unwrap();
        archive
            .open(&made_up, &nobody(), "curious")
            .await
            .unwrap_err();
    }
    let told = denied(&shop).await.replace(day.quote.as_str(), "QUOTE");
    assert_snapshot!(told, @r#"
    "" "user" {"count":1,"denied":"missing_scope","event":"open","target":"QUOTE"}
    "" "user" {"count":1,"denied":"missing_scope","event":"open"}
    "#);
    archive.denials().write_counts().await;
    assert_eq!(denied(&shop).await.lines().count(), 2);
    shop.advance(INTERVAL.as_secs());
    archive.denials().write_counts().await;
    let told = denied(&shop).await.replace(day.quote.as_str(), "QUOTE");
    let later = told.lines().filter(|line| line.contains("\"count\":499"));
    assert_eq!(later.count(), 2, "{told}");
    // Nothing is left to be told.
    archive.denials().settle().await;
    assert_eq!(denied(&shop).await.lines().count(), 4);
}

/// A caller that tries many records gets a bounded number of records, and all its attempts are counted.
#[tokio::test]
async fn many_targets_of_one_actor_are_counted_together() {
    let (shop, _) = Shop::busy().await;
    let mut ids = Vec::new();
    for _ in 0..40 {
        let reply = shop
            .send("price.quote", &serde_json::json!({"to": "a"}), "")
            .await;
        ids.push(crate::shop::snapshot_of(&reply));
    }
    for id in &ids {
        shop.archive
            .open(id, &nobody(), "curious")
            .await
            .unwrap_err();
    }
    shop.archive.denials().settle().await;
    let told = denied(&shop).await;
    let count = |line: &str| -> u64 {
        let act = line.split(' ').nth(2).unwrap();
        let act: Value = serde_json::from_str(act).unwrap();
        act["count"].as_u64().unwrap()
    };
    assert_eq!(told.lines().map(count).sum::<u64>(), 40);
    assert_eq!(told.lines().count(), 18, "{told}");
}

/// A denial that cannot be written stays a denial, and is counted until it can be written.
#[tokio::test]
async fn a_denial_that_cannot_be_written_is_counted() {
    let (shop, day) = Shop::busy().await;
    let is_broken = Arc::new(AtomicBool::new(true));
    let broken = is_broken.clone();
    let store = FaultyStore::new(shop.store.clone(), move |op, when| {
        let broken = broken.clone();
        Box::pin(async move {
            (op, when) == (Op::Append, When::Before) && broken.load(Ordering::Relaxed)
        })
    });
    let archive = shop.archive_of(Arc::new(store));
    let error = archive.open(&day.quote, &nobody(), "curious").await;
    assert!(
        matches!(error, Err(Error::MissingScope { scope: SCOPE_OPEN })),
        "{error:?}"
    );
    assert_eq!(denied(&shop).await, "");
    is_broken.store(false, Ordering::Relaxed);
    archive.denials().settle().await;
    let told = denied(&shop).await;
    assert!(
        told.lines().count() == 1 && told.contains("\"count\":1"),
        "{told}"
    );
}
