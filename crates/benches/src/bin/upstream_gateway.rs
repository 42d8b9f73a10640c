//! The gateway over one upstream without evidence, as a process of its own: `upstream_gateway LISTEN MANIFEST FOLDER`. `MANIFEST` is a file of
//! `countersign.toml` with an upstream and its tools. The store is in memory and keeps no log: no setting of `countersign serve` does that.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use countersign::archive::Archive;
use countersign::clock::{Clock, SystemClock};
use countersign::ids::{IdSource, RandomIds};
use countersign::ledger::{MemoryStore, Store};
use countersign::{Catalog, Executor};
use countersign_evidence::note::SigningKey;
use countersign_gateway::identity::Identity;
use countersign_gateway::{Gateway, Server, Settings};
use countersign_upstream::{Manifest, Upstreams};

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// The allocator of `countersign`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Failed> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [listen, manifest, folder] = words.as_slice() else {
        return Err("usage: upstream_gateway LISTEN MANIFEST FOLDER".into());
    };
    let manifest: Manifest = toml::from_str(&std::fs::read_to_string(manifest)?)?;
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
    let key = SigningKey::from_seed("bench.example/upstream", &[7; 32])?;
    let store: Arc<dyn Store> = Arc::new(MemoryStore::with_clock(clock.clone()));
    let executor = Executor::builder(catalog)
        .store(store.clone())
        .clock(clock.clone())
        .ids(ids.clone())
        .build();
    let vault = executor.vault().clone();
    let archive = Archive::new(store, vault, clock, ids.clone(), key.verifying_key());
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
