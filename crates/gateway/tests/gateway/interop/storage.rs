//! An unreachable store: no call runs whose idempotency key cannot be stored.

use std::sync::atomic::AtomicBool;

use countersign::ledger::{MemoryStore, Store};
use countersign_testkit::faulty::{FaultyStore, Op, When};

use super::*;

/// Starts a gateway whose store fails before this operation, as long as the switch is on.
async fn world_failing(place: &Place, fails: Op) -> (World, Arc<AtomicBool>) {
    let is_away = Arc::new(AtomicBool::new(true));
    let switch = is_away.clone();
    let inner: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let store = FaultyStore::new(inner, move |op, when| {
        let fails = op == fails && when == When::Before && switch.load(Ordering::SeqCst);
        Box::pin(std::future::ready(fails))
    });
    let change = |builder: countersign::executor::ExecutorBuilder| builder.store(Arc::new(store));
    let world = World::made(Settings::default(), catalog(place), change).await;
    (world, is_away)
}

/// Fails closed: 503, the tool has not run, and the same call runs when the store is back.
#[tokio::test]
async fn nothing_is_run_whose_key_cannot_be_kept() {
    for profile in ["acp", "ucp"] {
        for fails in [Op::Lookup, Op::Claim] {
            let place = Place::default();
            let (world, is_away) = world_failing(&place, fails).await;
            let path = format!("/{profile}/tools/orders.place");
            let away = call(&world, &path, UUID, r#"{"sku": "a"}"#).await;
            assert_eq!(away.status, 503, "{profile} {fails:?}: {away:?}");
            assert_eq!(away.json()["code"], "service_unavailable");
            assert!(!away.body.contains("secret"), "{away:?}");
            assert_eq!(place.runs(), 0, "{profile} {fails:?}");
            // A 5xx is never stored: the same call under the same key runs now.
            is_away.store(false, Ordering::SeqCst);
            let back = call(&world, &path, UUID, r#"{"sku": "a"}"#).await;
            assert_eq!(
                (back.status, place.runs()),
                (200, 1),
                "{profile} {fails:?} {back:?}"
            );
            assert_eq!(back.header("idempotent-replayed"), None);
        }
    }
}

/// A write whose commit fails has changed nothing, and is answered with 503 as well.
#[tokio::test]
async fn a_write_that_is_not_committed_did_not_happen() {
    for profile in ["acp", "ucp"] {
        let place = Place::default();
        let (world, is_away) = world_failing(&place, Op::Commit).await;
        let path = format!("/{profile}/tools/orders.note");
        let away = call(&world, &path, UUID, r#"{"sku": "a"}"#).await;
        assert_eq!(away.status, 503, "{profile}: {away:?}");
        is_away.store(false, Ordering::SeqCst);
        let back = call(&world, &path, UUID, r#"{"sku": "a"}"#).await;
        assert_eq!(back.status, 200, "{back:?}");
        // The first run was undone: this is a new run, not a stored answer.
        assert_eq!(back.header("idempotent-replayed"), None);
        assert_eq!(back.json()["data"]["run"], 2);
    }
}
