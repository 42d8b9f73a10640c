//! A case: everything about one record, in the order in which it happened.

use countersign::archive::{CasePart, Error, Export};
use countersign::contract::SnapshotId;
use serde_json::json;

use crate::shop::{CANARY, Shop, operator, snapshot_of};

async fn parts(shop: &Shop, id: &SnapshotId) -> Vec<(SnapshotId, CasePart)> {
    let ids = std::slice::from_ref(id);
    let case = shop.archive.case(id.as_str(), ids).await.unwrap();
    let parts = case.records.into_iter();
    parts
        .map(|record| (record.shown.row.id, record.part))
        .collect()
}

/// N5: links lead from a quote to the order that rests on it and back; other calls of the user are no part of it.
#[tokio::test]
async fn a_case_has_what_it_rests_on_and_what_came_of_it() {
    let (shop, day) = Shop::busy().await;
    let other = shop.send("price.quote", &json!({"to": CANARY}), "").await;
    let other = snapshot_of(&other);
    let rests_on = json!({"quote": other.as_str()});
    shop.send("order.draft", &rests_on, "order-2").await;
    let quote = (day.quote.clone(), CasePart::Named);
    let order = (day.order.clone(), CasePart::Followed);
    assert_eq!(parts(&shop, &day.quote).await, [quote, order]);
    let quote = (day.quote.clone(), CasePart::Ground);
    let order = (day.order.clone(), CasePart::Named);
    assert_eq!(parts(&shop, &day.order).await, [quote, order]);
}

/// N5, A22: every person who opened something of a case is part of it, one by one and in an export.
#[tokio::test]
async fn a_case_says_who_looked() {
    let (shop, day) = Shop::busy().await;
    let opened = shop.archive.open(&day.quote, &operator(), "dispute").await;
    let access = opened.unwrap().access.unwrap();
    shop.sign().await;
    let by = operator();
    let export = Export::Opened {
        by: &by,
        reason: "dispute",
    };
    let ids = std::slice::from_ref(&day.order);
    shop.archive.export(ids, export, None).await.unwrap();
    let found = parts(&shop, &day.order).await;
    assert_eq!(found[2], (access, CasePart::Looked));
    let looks = found.iter().filter(|(_, part)| *part == CasePart::Looked);
    assert_eq!(looks.count(), 2);
    let none = [SnapshotId::new("ev_none").unwrap()];
    let nothing = shop.archive.case("ev_none", &none);
    assert!(matches!(nothing.await, Err(Error::NoRecord { .. })));
}

/// An erased user leaves a case without content and without a name.
#[tokio::test]
async fn a_case_of_an_erased_user_still_has_its_records() {
    let (shop, day) = Shop::busy().await;
    let user = shop.archive.row(&day.order).await.unwrap().user_id;
    shop.archive
        .erase(&user, &operator(), "asked")
        .await
        .unwrap();
    let ids = std::slice::from_ref(&day.order);
    let case = shop.archive.case(day.order.as_str(), ids).await.unwrap();
    assert_eq!(case.user_id, "");
    let parts: Vec<CasePart> = case.records.iter().map(|record| record.part).collect();
    assert_eq!(
        parts,
        [CasePart::Ground, CasePart::Named, CasePart::Followed],
        "the last is the erasure"
    );
    let of_user = case
        .records
        .iter()
        .filter(|record| record.part != CasePart::Followed);
    assert!(of_user.into_iter().all(|record| !record.shown.has_payload));
}
