//! Calls in doubt, found by the keys that people have at hand.

use countersign::contract::{RecordKind, RequestId};
use countersign::ledger::{ClaimQuery, ClaimState, LogQuery};

use crate::shop::Shop;

/// A16: a call in doubt is found by the caller's key, by the key that the service got, and by the digest of lists.
#[tokio::test]
async fn a_call_in_doubt_is_found_by_each_of_its_keys() {
    let (shop, _) = Shop::busy().await;
    let archive = &shop.archive;
    let query = ClaimQuery {
        state: Some(ClaimState::InDoubt),
        limit: 2,
        ..ClaimQuery::default()
    };
    let rows = archive.claims(&query).await.unwrap();
    let [claim] = <[_; 1]>::try_from(archive.keyed(rows).await.unwrap()).unwrap();
    let service_key = claim.service_key.clone().unwrap();
    let sent = shop.sent_key.lock().unwrap().clone();
    assert_eq!(Some(&service_key), sent.as_ref());
    let digest = claim.row.scope.key.to_string();
    let user = claim.row.scope.user_id.as_str();
    for key in ["mail-1", &service_key, &digest, &digest[..8]] {
        for whose in [None, Some(user)] {
            let found = archive.unsettled_calls(key, whose).await.unwrap();
            let found: Vec<_> = found.iter().map(|claim| &claim.row).collect();
            assert_eq!(found, [&claim.row], "{key} {whose:?}");
        }
        let others = archive.unsettled_calls(key, Some("u_other")).await.unwrap();
        assert!(others.is_empty(), "{key}");
    }
    for key in ["mail-2", "order-1", &digest[..7], &service_key[..31], ""] {
        let found = archive.unsettled_calls(key, None).await.unwrap();
        assert!(found.is_empty(), "{key}");
    }
}

/// A9: the intent of a call is found by the call's request id; beside a record of the call it is listed only on request.
#[tokio::test]
async fn an_intent_is_found_by_the_request_id_of_its_call() {
    let (shop, _) = Shop::busy().await;
    let intents = LogQuery {
        kind: Some(RecordKind::Intent),
        limit: 2,
        ..LogQuery::default()
    };
    let [intent] = <[_; 1]>::try_from(shop.archive.list(&intents).await.unwrap()).unwrap();
    let request_id: RequestId = intent.request_id.clone().unwrap();
    let all = shop.archive.with_intents(&request_id, None, 10).await;
    let all = all.unwrap();
    assert_eq!(all.len(), 2, "{all:?}");
    assert!(all.contains(&intent));
    let calls = shop
        .archive
        .of_request(&request_id, None, 10)
        .await
        .unwrap();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].kind, RecordKind::Call);
    assert_eq!(
        shop.archive.of_request(&request_id, None, 1).await.unwrap(),
        calls
    );
    // The row of an intent agrees with its leaf, and proves itself.
    shop.archive.show(&intent.id).await.unwrap();
}
