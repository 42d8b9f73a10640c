//! The audit trail: every signed record once, in the order of the log, wherever a collector goes on.

use countersign::archive::{Trail, TrailEntry, TrailForm};
use countersign::contract::{Digest, RecordKind};
use countersign_evidence::tree::leaf_hash;
use serde_json::{Value, json};

use crate::shop::{CANARY, ORIGIN, Shop, operator};

async fn part(shop: &Shop, after: Option<u64>, limit: usize) -> Vec<TrailEntry> {
    let part = Trail {
        after,
        limit,
        with_users: false,
    };
    shop.archive.trail(&part).await.unwrap()
}

fn line(entry: &TrailEntry, form: TrailForm) -> Value {
    let line = entry.line(form, ORIGIN);
    let line = line.strip_suffix('\n').unwrap();
    assert!(!line.contains('\n'), "{line}");
    serde_json::from_str(line).unwrap()
}

/// A collector that stops anywhere goes on with the index of its last line, and misses and repeats nothing.
#[tokio::test]
async fn every_record_comes_once_wherever_a_collector_goes_on() {
    let (shop, _) = Shop::busy().await;
    let all = part(&shop, None, 100).await;
    assert_eq!(all.len(), 5);
    assert!(all.iter().map(|entry| entry.index).eq(0..5));
    for piece in 1..=6 {
        let (mut read, mut after) = (Vec::new(), None);
        loop {
            let entries = part(&shop, after, piece).await;
            let Some(last) = entries.last() else { break };
            after = Some(last.index);
            read.extend(entries);
        }
        assert_eq!(read, all, "in pieces of {piece}");
    }
    assert_eq!(part(&shop, Some(u64::MAX), 1).await, []);
}

/// What no checkpoint covers yet is not given: it could still get another place.
#[tokio::test]
async fn only_signed_records_are_given() {
    let shop = Shop::new();
    assert_eq!(part(&shop, None, 10).await, []);
    shop.send("price.quote", &json!({}), "").await;
    assert_eq!(part(&shop, None, 10).await, []);
    shop.sign().await;
    let first = part(&shop, None, 10).await;
    assert_eq!(first.len(), 1);
    shop.send("price.quote", &json!({}), "").await;
    assert_eq!(part(&shop, Some(0), 10).await, []);
    shop.sign().await;
    // The signer that took over has left a record of that as well.
    let later = part(&shop, Some(0), 10).await;
    let kinds: Vec<_> = later.iter().map(|entry| entry.record.kind).collect();
    assert_eq!(kinds, [RecordKind::Call, RecordKind::Checkpoint]);
}

/// A line proves itself: the hash is that of the leaf which the tree has. Nothing personal is in it unless it is asked for.
#[tokio::test]
async fn a_line_has_the_record_and_no_person() {
    let (shop, day) = Shop::busy().await;
    let entries = part(&shop, None, 100).await;
    for entry in &entries {
        let plain = line(entry, TrailForm::Jsonl);
        assert_eq!(plain["record"]["id"], entry.record.id.as_str());
        let hash = Digest(leaf_hash(entry.leaf.as_bytes())).to_string();
        assert_eq!(plain["leaf_hash"], hash);
        let event = line(entry, TrailForm::Ocsf);
        assert_eq!(event["raw_data"], entry.leaf);
        for text in [plain, event].map(|line| line.to_string()) {
            assert!(!text.contains(CANARY) && !text.contains("u_1"), "{text}");
        }
    }
    let named = Trail {
        after: None,
        limit: 100,
        with_users: true,
    };
    let named = shop.archive.trail(&named).await.unwrap();
    let order = named.iter().find(|entry| entry.record.id == day.order);
    assert_eq!(order.unwrap().user_id.as_deref(), Some("u_1"));
    // After an erasure the trail has no name either.
    let by = operator();
    shop.archive.erase("u_1", &by, "asked to").await.unwrap();
    let after = Trail {
        after: None,
        limit: 100,
        with_users: true,
    };
    let after = shop.archive.trail(&after).await.unwrap();
    assert!(after.iter().all(|entry| entry.user_id.is_none()));
}

/// An event of OCSF, member by member.
#[tokio::test]
async fn an_event_of_ocsf_tells_what_the_record_tells() {
    let (shop, _) = Shop::busy().await;
    let entries = part(&shop, None, 100).await;
    let events: Vec<Value> = entries
        .iter()
        .map(|entry| line(entry, TrailForm::Ocsf))
        .collect();
    let told: Vec<String> = events
        .iter()
        .map(|event| {
            let at = |pointer: &str| event.pointer(pointer).unwrap_or(&Value::Null).to_string();
            [
                at("/type_uid"),
                at("/status_id"),
                at("/severity_id"),
                at("/message"),
            ]
            .join(" ")
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    600399 1 1 "call price.quote"
    600399 1 1 "call order.draft"
    600399 2 2 "denial unknown: NOT_FOUND"
    600399 1 1 "intent"
    600399 2 2 "call mail.send: UPSTREAM_ERROR"
    "#);
}
