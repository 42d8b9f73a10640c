//! The gateway over one HTTP service, as a process of its own: `upstream_gateway LISTEN UPSTREAM EVIDENCE FOLDER`.
//!
//! `EVIDENCE` is `off` (a store that keeps no log), `batched` (records of reads are committed together, behind the reply) or `required`
//! (the reply waits for its record). The tool is `svc.echo`, a read.

use std::path::Path;
use std::sync::Arc;

use countersign::archive::Archive;
use countersign::clock::{Clock, SystemClock};
use countersign::ids::{IdSource, RandomIds};
use countersign::ledger::{MemoryStore, Store};
use countersign::sequencer::{LastStop, Sequencer};
use countersign::{Catalog, Executor};
use countersign_evidence::note::SigningKey;
use countersign_gateway::identity::Identity;
use countersign_gateway::{Gateway, Server, Settings};
use countersign_store::sqlite::{SqliteOptions, SqliteStore};
use countersign_upstream::{Manifest, Upstreams};
use serde_json::json;

type Failed = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Failed> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [listen, upstream, evidence, folder] = words.as_slice() else {
        return Err("usage: upstream_gateway LISTEN UPSTREAM EVIDENCE FOLDER".into());
    };
    let rule = if evidence == "required" {
        "required"
    } else {
        "recorded"
    };
    let manifest: Manifest = serde_json::from_value(json!({
        "upstream": [{
            "name": "svc", "base_url": format!("http://{upstream}"), "allow_private": ["loopback"],
        }],
        "tool": [{
            "name": "svc.echo", "upstream": "svc", "description": "Answers.", "effect": "read", "evidence": rule,
            "request": {"method": "POST", "path": "/v1/tools/echo"},
            "parameters": [{"name": "note"}],
        }],
    }))?;
    let catalog = Catalog::builder().build()?;
    for tool in Upstreams::prepare(&manifest, Path::new("."))?.tools()? {
        catalog.add(tool)?;
    }
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let ids: Arc<dyn IdSource> = Arc::new(RandomIds::new(clock.clone()));
    let key = || SigningKey::from_seed("bench.example/upstream", &[7; 32]);
    let store: Arc<dyn Store> = if evidence == "off" {
        Arc::new(MemoryStore::with_clock(clock.clone()))
    } else {
        let file = Path::new(folder).join("bench.db");
        Arc::new(SqliteStore::open(file, SqliteOptions::default())?)
    };
    if evidence != "off" {
        let sequencer = Sequencer::builder(store.clone(), key()?);
        let sequencer = sequencer.start(LastStop::default()).await?;
        tokio::spawn(sequencer.run(std::future::pending()));
    }
    let executor = Executor::builder(catalog)
        .store(store.clone())
        .clock(clock.clone())
        .ids(ids.clone())
        .build();
    let vault = executor.vault().clone();
    let archive = Archive::new(store, vault, clock, ids.clone(), key()?.verifying_key());
    let gateway = Gateway::new(
        executor,
        archive,
        ids,
        Identity::loopback(),
        Settings::default(),
    );
    let server = Server::bind(gateway, listen.parse()?).await?;
    server.run(std::future::pending()).await;
    Ok(())
}
