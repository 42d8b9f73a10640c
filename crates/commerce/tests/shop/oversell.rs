//! Two users never buy the same item: in races for the last ones, in memory, in SQLite, and in two processes on one
//! PostgreSQL, the locked quantity never exceeds the stock.

use std::sync::Arc;

use countersign::ids::RandomIds;
use countersign::ledger::{MemoryStore, Store};
use countersign_store::postgres::{PostgresOptions, PostgresStore};
use countersign_store::sqlite::{SqliteOptions, SqliteStore};
use countersign_testkit::postgres::shared_postgres;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::flow::Order;
use crate::world::{World, check_error, clock, ok};

const LOCK: &str = "checkout.lock_price_and_stock";

/// One shop, served by one executor for each store, each as if it were a process of its own.
fn shop(stores: Vec<Arc<dyn Store>>) -> Vec<Arc<World>> {
    let clock = clock();
    let world = |store| {
        let ids = Arc::new(RandomIds::new(clock.clone()));
        World::on(store, clock.clone(), |builder| builder.ids(ids))
    };
    stores.into_iter().map(world).map(Arc::new).collect()
}

fn in_memory() -> Vec<Arc<World>> {
    let store = Arc::new(MemoryStore::with_clock(clock()).keeping_log());
    shop(vec![store.clone(), store])
}

fn in_sqlite(folder: &tempfile::TempDir) -> Vec<Arc<World>> {
    let file = folder.path().join("shop.db");
    let store = Arc::new(SqliteStore::open(file, SqliteOptions::default()).unwrap());
    shop(vec![store.clone(), store])
}

async fn on_postgres() -> Vec<Arc<World>> {
    let url = shared_postgres().fresh_database();
    let mut stores: Vec<Arc<dyn Store>> = Vec::new();
    for _ in 0..2 {
        let options = PostgresOptions::new(&url).connections_max(6);
        stores.push(Arc::new(PostgresStore::open(options).await.unwrap()));
    }
    shop(stores)
}

/// A race: the number of users, the item and quantity that each wants, and the number of winners.
#[derive(Clone, Copy)]
struct Race {
    users: usize,
    sku: &'static str,
    quantity: u32,
    winners: usize,
}

/// Every user has a draft order; all of them lock at once, each with two calls.
async fn run(worlds: &[Arc<World>], race: Race) {
    let mut drafting = JoinSet::new();
    for user in 0..race.users {
        let world = worlds[user % worlds.len()].clone();
        drafting.spawn(async move {
            let order = Order::of(race.sku, race.quantity).by(&format!("u_{user}"));
            let draft = order.draft(&world).await;
            let id = ok(&draft)["draft_order_id"].clone();
            (order, json!({"draft_order_id": id}))
        });
    }
    let orders = drafting.join_all().await;
    let mut locking = JoinSet::new();
    for (at, (order, arguments)) in orders.iter().enumerate() {
        for twice in 0..2 {
            let world = worlds[(at + twice) % worlds.len()].clone();
            let (order, arguments) = (order.clone(), arguments.clone());
            locking.spawn(async move {
                let reply = order.call(&world, LOCK, arguments).await;
                (order.user.clone(), reply)
            });
        }
    }
    let replies = locking.join_all().await;
    check_winners(race, &replies);
    // The locks are real: no other user can have any more, and each quantity is locked once.
    let left = available(&worlds[0], race.sku).await;
    let on_hand = on_hand(&worlds[0], race.sku);
    let held = u32::try_from(race.winners).unwrap() * race.quantity;
    assert_eq!(left, on_hand - held);
    // All locks expire.
    worlds[0].advance_seconds(900);
    assert_eq!(available(&worlds[0], race.sku).await, on_hand);
}

#[track_caller]
fn check_winners(race: Race, replies: &[(String, Value)]) {
    let mut locks: Vec<(&String, &Value)> = Vec::new();
    for (user, reply) in replies {
        if reply["ok"] == true {
            locks.push((user, &reply["data"]["lock_id"]));
        } else {
            // Others hold them, or there are fewer than were wanted.
            let expected = json!({"reason": "stock", "sku": race.sku});
            check_error(reply, "CONFLICT", &expected);
        }
    }
    locks.sort_by_key(|(user, lock)| (*user, lock.to_string()));
    locks.dedup();
    assert_eq!(locks.len(), race.winners, "{locks:#?}");
    let mut users: Vec<_> = locks.iter().map(|(user, _)| user).collect();
    users.dedup();
    assert_eq!(
        users.len(),
        race.winners,
        "both calls of an order are one lock"
    );
}

async fn available(world: &World, sku: &str) -> u32 {
    let arguments = json!({"items": [{"sku": sku, "quantity": 1}]});
    let reply = world.call("catalog.get_availability", arguments).await;
    let line = &ok(&reply)["items"][0];
    u32::try_from(line["available"].as_u64().unwrap()).unwrap()
}

fn on_hand(world: &World, sku: &str) -> u32 {
    let shop = world.executor.rules().current("shop").unwrap();
    let offers = shop.data["offers"].as_array().unwrap().iter();
    let mut variants = offers.flat_map(|offer| offer["variants"].as_array().unwrap());
    let variant = variants.find(|variant| variant["sku"] == sku).unwrap();
    u32::try_from(variant["stock"].as_u64().unwrap()).unwrap()
}

/// One jacket, three pairs of earbuds, thirty jackets by sevens.
const RACES: [Race; 3] = [
    Race {
        users: 2,
        sku: "SKU-0012-02",
        quantity: 1,
        winners: 1,
    },
    Race {
        users: 50,
        sku: "SKU-0002-02",
        quantity: 1,
        winners: 3,
    },
    Race {
        users: 9,
        sku: "SKU-0012-01",
        quantity: 7,
        winners: 4,
    },
];

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nobody_oversells_in_memory() {
    for _ in 0..10 {
        run(&in_memory(), RACES[0]).await;
    }
    for race in RACES {
        run(&in_memory(), race).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nobody_oversells_in_sqlite() {
    for race in RACES {
        let folder = tempfile::tempdir().unwrap();
        run(&in_sqlite(&folder), race).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nobody_oversells_in_two_processes_on_postgres() {
    for race in RACES {
        run(&on_postgres().await, race).await;
    }
}

/// A18, A19: ten parallel orders with one key, through both processes: one order, and each reply is that order or says
/// that it is being made.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_key_is_one_order_in_every_store() {
    let folder = tempfile::tempdir().unwrap();
    for worlds in [in_memory(), in_sqlite(&folder), on_postgres().await] {
        let bundled = Arc::new(Order::new().bundle(&worlds[0]).await);
        let mut drafting = JoinSet::new();
        for at in 0..10 {
            let (world, bundled) = (worlds[at % worlds.len()].clone(), bundled.clone());
            drafting.spawn(async move {
                let key = json!({"idempotency_key": "k1"});
                let tool = "checkout.create_draft_order";
                world.call_as("u_1", tool, bundled.arguments(), key).await
            });
        }
        let mut orders = Vec::new();
        for reply in drafting.join_all().await {
            if reply["ok"] == true {
                orders.push(reply["data"]["draft_order_id"].clone());
            } else {
                check_error(&reply, "CONFLICT", &json!({"reason": "in_flight"}));
            }
        }
        orders.dedup();
        assert_eq!(orders.len(), 1, "{orders:?}");
    }
}

/// No update of one cart is lost, through both processes.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn twenty_adds_are_twenty_in_every_store() {
    let folder = tempfile::tempdir().unwrap();
    for worlds in [in_memory(), in_sqlite(&folder), on_postgres().await] {
        let made = worlds[0].call("cart.create", json!({})).await;
        let add = json!({"cart_id": ok(&made)["cart_id"], "sku": "SKU-0003-01"});
        let mut adding = JoinSet::new();
        for at in 0..20 {
            let (world, add) = (worlds[at % worlds.len()].clone(), add.clone());
            adding.spawn(async move { world.call("cart.add_item", add).await });
        }
        for reply in adding.join_all().await {
            ok(&reply);
        }
        let get = json!({"cart_id": add["cart_id"]});
        let cart = worlds[1].call("cart.get", get).await;
        assert_eq!(ok(&cart)["lines"][0]["quantity"], 20);
        assert_eq!(cart["data"]["version"], 21);
    }
}

/// Locks expire one after the other while all users keep trying: the locked quantity never exceeds the stock, and
/// nothing that has become available stays unused.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nobody_oversells_while_locks_end() {
    let worlds = in_memory();
    let (sku, there) = ("SKU-0002-02", 3);
    let mut orders = Vec::new();
    for user in 0..5 {
        let order = Order::of(sku, 1).by(&format!("u_{user}"));
        let draft = order.draft(&worlds[0]).await;
        let arguments = json!({"draft_order_id": ok(&draft)["draft_order_id"]});
        orders.push((order, arguments));
    }
    let mut seen = std::collections::BTreeSet::new();
    for round in 0..17_usize {
        let mut locking = JoinSet::new();
        // One more comes each round, so that their locks end at different times.
        for (at, (order, arguments)) in orders.iter().take(round + 1).enumerate() {
            let world = worlds[at % worlds.len()].clone();
            let (order, arguments) = (order.clone(), arguments.clone());
            locking.spawn(async move { order.call(&world, LOCK, arguments).await });
        }
        let mut held = 0;
        for reply in locking.join_all().await {
            if reply["ok"] == true {
                held += 1;
                seen.insert(reply["data"]["lock_id"].to_string());
            } else {
                check_error(&reply, "CONFLICT", &json!({"reason": "stock"}));
            }
        }
        assert_eq!(
            held,
            there.min(u32::try_from(round).unwrap() + 1),
            "{round}"
        );
        assert_eq!(available(&worlds[0], sku).await, there - held);
        worlds[0].advance_seconds(100);
    }
    assert!(seen.len() > 3, "some have ended and others came: {seen:?}");
}
