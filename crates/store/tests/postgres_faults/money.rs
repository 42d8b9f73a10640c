//! Reservations when the connection breaks: each is made once and spent once.

use countersign::ledger::{
    ClaimRequest, Claims as _, CommitAnswer, Lapse, Pots as _, ReserveAnswer, SpendChange, SpendEnd,
};
use countersign_store::postgres::PostgresStore;
use countersign_testkit::ledger::build::{
    commit, ours, request, reserve, scope, settle, succeeded,
};
use countersign_testkit::postgres::shared_postgres;

use crate::proxy::{Proxy, Side};
use crate::{MESSAGES, open};

/// Returns the calls that the user's own pot has reserved and spent.
async fn pot(store: &PostgresStore) -> (i64, i64) {
    let pots = store.pots(Some("u_1"), 10).await.unwrap();
    let pot = pots.first().expect("a pot");
    (pot.reserved / 1_250, pot.spent / 1_250)
}

/// A reservation from pots with a limit of 1,000 calls.
fn wanted(id: &str, lapse: Lapse) -> countersign::ledger::Reserve {
    let mut wanted = reserve(id, "u_1", lapse);
    for draw in &mut wanted.draws {
        draw.limit = 1_250 * 1_000;
    }
    wanted
}

#[tokio::test(flavor = "multi_thread")]
async fn money_is_set_aside_and_spent_once_wherever_the_connection_is_cut() {
    let url = shared_postgres().fresh_database();
    let proxy = Proxy::start(&url).await;
    let store = open(&proxy.url(&url)).await;
    let (mut calls, mut cuts) = (0, 0);
    for side in [Side::Store, Side::Server] {
        for messages in 0..MESSAGES {
            let id = format!("ev_r{calls}");
            let wanted = wanted(&id, Lapse::Release);
            proxy.cut_after(messages, side);
            let answer = store.reserve(&wanted).await.unwrap();
            assert_eq!(answer, ReserveAnswer::Reserved);
            cuts += u32::from(proxy.has_cut());
            assert_eq!(pot(&store).await, (1, calls), "{messages} of {side:?}");
            let mut unit = commit(&format!("ev_{calls}"));
            unit.spend = Some(SpendChange {
                id: wanted.id,
                end: SpendEnd::SpentHere(Vec::new()),
            });
            proxy.cut_after(messages, side);
            let answer = store.commit(unit).await.unwrap();
            assert_eq!(answer, CommitAnswer::Committed, "{messages} of {side:?}");
            cuts += u32::from(proxy.has_cut());
            calls += 1;
            assert_eq!(pot(&store).await, (0, calls), "{messages} of {side:?}");
        }
    }
    assert!(cuts >= 60, "{cuts} cuts");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_and_its_money_are_one_wherever_the_connection_is_cut() {
    let url = shared_postgres().fresh_database();
    let proxy = Proxy::start(&url).await;
    let store = open(&proxy.url(&url)).await;
    let (mut calls, mut cuts) = (0, 0);
    for side in [Side::Store, Side::Server] {
        for messages in 0..MESSAGES {
            let spend = wanted(&format!("ev_r{calls}"), Lapse::ByClaim);
            let id = spend.id.clone();
            let asked = ClaimRequest {
                spend: Some(spend),
                ..request(&scope(&format!("k{calls}")))
            };
            proxy.cut_after(messages, side);
            let claim = ours(store.claim(&asked).await.unwrap());
            cuts += u32::from(proxy.has_cut());
            assert_eq!(claim.attempt, 1, "{messages} of {side:?}");
            assert_eq!(pot(&store).await, (1, calls), "{messages} of {side:?}");
            assert_eq!(store.reserved(&claim).await.unwrap().as_ref(), Some(&id));
            let mut unit = settle(&claim, succeeded("yes"), &format!("ev_{calls}"));
            unit.spend = Some(SpendChange {
                id,
                end: SpendEnd::Spent(Vec::new()),
            });
            assert_eq!(store.commit(unit).await.unwrap(), CommitAnswer::Committed);
            calls += 1;
            assert_eq!(pot(&store).await, (0, calls), "{messages} of {side:?}");
        }
    }
    assert!(cuts >= 20, "{cuts} cuts");
}
