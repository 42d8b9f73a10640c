//! A5, A17: writes that an agent sends without a key, to two gateways over one store, over every surface.

use std::sync::Arc;

use countersign::contract::{Actor, ActorType};
use countersign::ledger::Store;
use countersign::sample::{AddNote, ListNotes};
use countersign::{Catalog, Principal};
use countersign_evidence::seal::MasterKey;
use countersign_gateway::Settings;
use countersign_store::postgres::{PostgresOptions, PostgresStore};
use countersign_store::sqlite::{SqliteOptions, SqliteStore};
use countersign_testkit::postgres::shared_postgres;
use serde_json::{Value, json};

use crate::http_client::post;
use crate::mcp::Modern;
use crate::world::World;

/// Starts a gateway over a store, for one agent of one user.
async fn gateway(store: Arc<dyn Store>) -> World {
    let builder = Catalog::builder().tool(AddNote).tool(ListNotes);
    let catalog = builder.build().unwrap();
    let master = Arc::new(MasterKey::from_bytes(&[7; 32]));
    let world = World::made(Settings::default(), catalog, |builder| {
        builder.store(store).kms(master)
    });
    let agent = Actor {
        kind: ActorType::Agent,
        id: "shopper".into(),
    };
    world.await.beside(Principal::new(agent, "u_1")).await
}

/// The surfaces over which an agent writes.
const SURFACES: [&str; 3] = ["http", "mcp", "provider"];

async fn add(world: &World, surface: &str, arguments: &Value) {
    match surface {
        "http" => {
            let body = json!({ "arguments": arguments }).to_string();
            let reply = post(world, "/v1/tools/notes.add", &body).await;
            assert_eq!(reply.status, 200, "{reply:?}");
        }
        "mcp" => {
            let result = Modern::new(world)
                .call("notes.add", arguments.clone())
                .await;
            assert_ne!(result["isError"], true, "{result}");
        }
        "provider" => {
            let message = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "c_1",
                "name": "notes_add", "input": arguments}]});
            let body = json!({ "message": message }).to_string();
            let reply = post(world, "/v1/providers/anthropic/calls", &body).await;
            assert!(!reply.body.contains("\"is_error\":true"), "{reply:?}");
        }
        other => panic!("{other}"),
    }
}

async fn notes(world: &World) -> usize {
    let reply = post(world, "/v1/tools/notes.list", "{}").await;
    reply.json()["data"].as_array().unwrap().len()
}

/// Twelve concurrent copies of a write, over two gateways, are one write; an intended repeat is one more.
async fn check(stores: [Arc<dyn Store>; 2]) {
    let [first, second] = stores;
    let worlds = [
        Arc::new(gateway(first).await),
        Arc::new(gateway(second).await),
    ];
    for (number, surface) in SURFACES.into_iter().enumerate() {
        for (again, expected) in [(None, 2 * number + 1), (Some(2), 2 * number + 2)] {
            let mut arguments = json!({"text": format!("by {surface}")});
            if let Some(again) = again {
                arguments["again"] = again.into();
            }
            let mut calls = tokio::task::JoinSet::new();
            for n in 0..12 {
                let (world, arguments) = (worlds[n % 2].clone(), arguments.clone());
                calls.spawn(async move { add(&world, surface, &arguments).await });
            }
            calls.join_all().await;
            assert_eq!(notes(&worlds[0]).await, expected, "{surface} {again:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_without_a_key_is_made_once_over_replicas_on_postgresql() {
    let url = shared_postgres().fresh_database();
    let open = async || {
        let options = PostgresOptions::new(&url).connections_max(6);
        let store: Arc<dyn Store> = Arc::new(PostgresStore::open(options).await.unwrap());
        store
    };
    check([open().await, open().await]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_without_a_key_is_made_once_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let store =
        SqliteStore::open(folder.path().join("store.db"), SqliteOptions::default()).unwrap();
    let store: Arc<dyn Store> = Arc::new(store);
    check([store.clone(), store]).await;
}
