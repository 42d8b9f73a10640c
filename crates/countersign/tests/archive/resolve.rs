//! Claims that are in doubt.

use countersign::archive::{Content, Error, Resolution, Resolved};
use countersign::ledger::{ClaimQuery, ClaimRow, ClaimState};
use serde_json::json;

use crate::shop::{CANARY, Shop, nobody, operator, snapshot_of};

async fn in_doubt(shop: &Shop) -> ClaimRow {
    let query = ClaimQuery {
        state: Some(ClaimState::InDoubt),
        limit: 2,
        ..ClaimQuery::default()
    };
    let [claim] = shop
        .archive
        .claims(&query)
        .await
        .unwrap()
        .try_into()
        .unwrap();
    claim
}

/// A16, A18: the operator's resolution is the answer of every repeat, and the log names the operator.
#[tokio::test]
async fn what_happened_is_replayed_to_the_caller() {
    let (shop, _) = Shop::busy().await;
    let ClaimRow { scope, attempt, .. } = in_doubt(&shop).await;
    let arguments = json!({"to": CANARY});
    let reply = shop.send("mail.send", &arguments, "mail-1").await;
    assert_eq!(reply["error"]["details"]["reason"], "in_doubt");

    let refused = shop
        .archive
        .resolve_claim(&scope, attempt, Resolution::DidNotHappen, &nobody(), "x")
        .await;
    assert!(
        matches!(refused, Err(Error::MissingScope { .. })),
        "{refused:?}"
    );
    let happened = Resolution::Happened(json!({"message": "m_1"}));
    let resolved = shop
        .archive
        .resolve_claim(
            &scope,
            attempt,
            happened.clone(),
            &operator(),
            "seen in the outbox",
        )
        .await;
    let Resolved::Settled(id) = resolved.unwrap() else {
        panic!("not settled");
    };
    let reply = shop.send("mail.send", &arguments, "mail-1").await;
    assert_eq!(reply["data"], json!({"message": "m_1"}));
    assert_eq!(
        (&reply["replayed"], snapshot_of(&reply)),
        (&json!(true), id.clone())
    );

    shop.sign().await;
    let opened = shop.archive.open(&id, &operator(), "audit").await.unwrap();
    assert_eq!(
        opened.record.act,
        json!({"event": "resolved", "happened": true})
    );
    let Content::Open(payload) = opened.content else {
        panic!("nothing was opened");
    };
    assert_eq!(payload.reason.as_deref(), Some("seen in the outbox"));
    assert_eq!(
        payload.data.unwrap().value().unwrap(),
        json!({"message": "m_1"})
    );

    let again = shop
        .archive
        .resolve_claim(&scope, attempt, happened, &operator(), "again")
        .await;
    assert_eq!(again.unwrap(), Resolved::NotInDoubt(ClaimState::Succeeded));
}

#[tokio::test]
async fn what_did_not_happen_may_be_done_again_and_an_older_attempt_is_fenced() {
    let (shop, _) = Shop::busy().await;
    let ClaimRow { scope, attempt, .. } = in_doubt(&shop).await;
    let did_not = async |attempt| {
        let by = operator();
        let resolution = Resolution::DidNotHappen;
        let resolved = shop
            .archive
            .resolve_claim(&scope, attempt, resolution, &by, "x");
        resolved.await.unwrap()
    };
    assert!(matches!(did_not(attempt + 1).await, Resolved::Fenced(_)));
    assert!(matches!(did_not(attempt).await, Resolved::Settled(_)));
    // The tool runs again, and is in doubt again.
    let reply = shop
        .send("mail.send", &json!({"to": CANARY}), "mail-1")
        .await;
    assert_eq!(reply["error"]["code"], "UPSTREAM_ERROR", "{reply:#}");
    assert_eq!(in_doubt(&shop).await.attempt, attempt + 1);
    assert!(matches!(did_not(attempt).await, Resolved::Fenced(_)));
    assert!(matches!(did_not(attempt + 1).await, Resolved::Settled(_)));
}
