//! A gateway with the fixtures of the MCP conformance suite, for the suite to be run against. It writes
//! the address of its endpoint on one line and serves until it is killed.
//!
//! ```text
//! cargo run -p countersign-gateway --example conformance
//! ```

use std::io::Write as _;
use std::sync::Arc;

use axum::serve::ListenerExt as _;
use countersign::archive::Archive;
use countersign::clock::{Clock, SystemClock};
use countersign::ids::{IdSource, RandomIds};
use countersign::ledger::{MemoryStore, Store};
use countersign::sample::{AddNote, Diagnostics, ListNotes, MemorySearch, Vat};
use countersign::{Catalog, Executor};
use countersign_evidence::note::SigningKey;
use countersign_gateway::identity::Identity;
use countersign_gateway::{Gateway, Settings, mcp, routes};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let gateway = gateway()?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    writeln!(std::io::stdout(), "http://{address}{}", mcp::PATH)?;
    // Small frames wait for nothing.
    let listener = listener.tap_io(|stream| {
        let _unsupported = stream.set_nodelay(true);
    });
    axum::serve(listener, routes::router(&gateway)).await?;
    Ok(())
}

fn gateway() -> Result<Gateway, Box<dyn std::error::Error>> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let ids: Arc<dyn IdSource> = Arc::new(RandomIds::new(clock.clone()));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::with_clock(clock.clone()).keeping_log());
    let catalog = Catalog::builder()
        .tool(MemorySearch::new(["buy milk", "call mum"]))
        .tool(Diagnostics)
        .tool(AddNote)
        .tool(ListNotes)
        .tool(Vat)
        .build()?;
    let executor = Executor::builder(catalog)
        .store(store.clone())
        .clock(clock.clone())
        .ids(ids.clone())
        .rules(Vat::rules()?)
        .build();
    let key = SigningKey::from_seed("example.com/log", &[7; 32])?;
    let vault = executor.vault().clone();
    let archive = Archive::new(store, vault, clock, ids.clone(), key.verifying_key());
    let settings = Settings {
        conformance: true,
        ..Settings::default()
    };
    let identity = Identity::loopback();
    Ok(Gateway::new(executor, archive, ids, identity, settings))
}
