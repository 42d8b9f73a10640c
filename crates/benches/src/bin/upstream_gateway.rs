//! The gateway over one upstream, as a process of its own: `upstream_gateway LISTEN UPSTREAM EVIDENCE FOLDER`.
//!
//! `UPSTREAM` is the address of an HTTP service, or the URL of an MCP server, whose tool is called `memory_search`. `EVIDENCE` is `off` (a store that keeps no log), `batched` (records of reads are committed together, behind the reply) or `required`
//! (the reply waits for its record). The tool is `svc.echo` or `svc.memory_search`, a read.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

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
use serde_json::{Value, json};

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// The allocator of `countersign`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main(worker_threads = 2)]
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
    let manifest = manifest(upstream, rule)?;
    let catalog = Catalog::builder().build()?;
    let upstreams = Upstreams::prepare(&manifest, Path::new(folder))?;
    for tool in upstreams.tools()? {
        catalog.add(tool)?;
    }
    upstreams.discover(&catalog, Duration::from_secs(30)).await;
    if catalog.list().is_empty() {
        return Err("the upstream lists no tools".into());
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
        Settings {
            // As `countersign serve` has on two processors.
            threads: 2,
            ..Settings::default()
        },
    );
    let server = Server::bind(gateway, listen.parse()?).await?;
    server.run(std::future::pending()).await;
    Ok(())
}

fn manifest(upstream: &str, evidence: &str) -> Result<Manifest, serde_json::Error> {
    let (entry, tool) = if upstream.starts_with("http://") {
        (
            json!({"kind": "mcp", "url": upstream, "trust": "first_use", "shared": true}),
            json!({"name": "svc.memory_search"}),
        )
    } else {
        (
            json!({"base_url": format!("http://{upstream}")}),
            json!({
                "name": "svc.echo", "upstream": "svc", "description": "Answers.",
                "request": {"method": "POST", "path": "/v1/tools/echo"},
                "parameters": [{"name": "note"}],
            }),
        )
    };
    let common = json!({"name": "svc", "allow_private": ["loopback"]});
    let rules = json!({"effect": "read", "evidence": evidence});
    let joined = |one: Value, other: Value| {
        let members = [one, other].into_iter();
        let members = members.flat_map(|own| own.as_object().cloned().unwrap_or_default());
        Value::Object(members.collect())
    };
    serde_json::from_value(json!({
        "upstream": [joined(common, entry)], "tool": [joined(rules, tool)],
    }))
}
