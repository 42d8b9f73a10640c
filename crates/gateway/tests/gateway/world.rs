//! A listening gateway, with its store and tools.

use std::net::SocketAddr;
use std::sync::Arc;

use countersign::archive::Archive;
use countersign::clock::{Clock, SystemClock};
use countersign::executor::ExecutorBuilder;
use countersign::ids::{IdSource, RandomIds};
use countersign::ledger::{MemoryStore, Store};
use countersign::sample::{AddNote, Diagnostics, ListNotes, MemorySearch, Vat};
use countersign::sequencer::{LastStop, Sequencer};
use countersign::{Catalog, Executor, Principal};
use countersign_evidence::note::SigningKey;
use countersign_evidence::seal::MasterKey;
use countersign_gateway::caller::Proof;
use countersign_gateway::identity::Identity;
use countersign_gateway::metrics::Metrics;
use countersign_gateway::{Caller, Gateway, Server, Settings};

/// Returns the key that signs the log of every world.
pub(crate) fn log_key() -> SigningKey {
    SigningKey::from_seed("example.com/log", &[7; 32]).unwrap()
}

/// A running gateway; it ends with the test's runtime.
pub(crate) struct World {
    pub(crate) address: SocketAddr,
    pub(crate) gateway: Gateway,
    store: Arc<dyn Store>,
}

impl World {
    /// Starts a gateway with the samples on a store in memory, without credentials.
    pub(crate) async fn start() -> Self {
        Self::with(Settings::default()).await
    }

    /// Same as `start` with other settings.
    pub(crate) async fn with(settings: Settings) -> Self {
        let (gateway, store) = Self::gateway(samples(), settings);
        Self::listen(gateway, store).await
    }

    /// Same as `start` with other tools and other parts of the executor.
    pub(crate) async fn made(
        settings: Settings,
        catalog: Catalog,
        change: impl FnOnce(ExecutorBuilder) -> ExecutorBuilder,
    ) -> Self {
        let (gateway, store) = Self::gateway_of(catalog, settings, change);
        Self::listen(gateway, store).await
    }

    /// Same as `start` with other tools, and with pages built from their answers.
    pub(crate) async fn viewing(
        settings: Settings,
        catalog: Catalog,
        change: impl FnOnce(Gateway) -> Gateway,
    ) -> Self {
        let (gateway, store) = Self::gateway(catalog, settings);
        Self::listen(change(gateway), store).await
    }

    /// Creates a gateway that does not listen yet, and its store.
    pub(crate) fn gateway(catalog: Catalog, settings: Settings) -> (Gateway, Arc<dyn Store>) {
        Self::gateway_of(catalog, settings, |builder| builder)
    }

    fn gateway_of(
        catalog: Catalog,
        settings: Settings,
        change: impl FnOnce(ExecutorBuilder) -> ExecutorBuilder,
    ) -> (Gateway, Arc<dyn Store>) {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let store: Arc<dyn Store> = Arc::new(MemoryStore::with_clock(clock.clone()).keeping_log());
        Self::gateway_on(store, clock, catalog, settings, change)
    }

    /// Starts a gateway with these tools on a given store, with the machine's clock.
    pub(crate) async fn on(store: Arc<dyn Store>, catalog: Catalog, settings: Settings) -> Self {
        let clock = Arc::new(SystemClock::new());
        // Whoever opens the store again reads what was written before.
        let key = Arc::new(MasterKey::from_bytes(&[7; 32]));
        let keyed = |builder: ExecutorBuilder| builder.kms(key);
        let (gateway, store) = Self::gateway_on(store, clock, catalog, settings, keyed);
        Self::listen(gateway, store).await
    }

    fn gateway_on(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        catalog: Catalog,
        settings: Settings,
        change: impl FnOnce(ExecutorBuilder) -> ExecutorBuilder,
    ) -> (Gateway, Arc<dyn Store>) {
        let ids: Arc<dyn IdSource> = Arc::new(RandomIds::new(clock.clone()));
        let metrics = Arc::new(Metrics::new());
        let builder = Executor::builder(catalog)
            .store(store.clone())
            .clock(clock.clone())
            .ids(ids.clone())
            .rules(Vat::rules().unwrap())
            .observer(metrics.clone());
        let executor = change(builder).build();
        let key = log_key();
        let vault = executor.vault().clone();
        let archive = Archive::new(
            store.clone(),
            vault,
            clock,
            ids.clone(),
            key.verifying_key(),
        );
        let gateway = Gateway::new(executor, archive, ids, Identity::loopback(), settings)
            .with_metrics(metrics);
        (gateway, store)
    }

    /// Starts a gateway on the same tools and records, for this caller.
    pub(crate) async fn beside(&self, principal: Principal) -> Self {
        self.beside_with(principal, |gateway| gateway).await
    }

    /// Same as `beside` with a change to the gateway.
    pub(crate) async fn beside_with(
        &self,
        principal: Principal,
        change: impl FnOnce(Gateway) -> Gateway,
    ) -> Self {
        let caller = Caller {
            principal: Arc::new(principal),
            proof: Proof::ApiKey,
        };
        let gateway = Gateway::new(
            self.gateway.executor().clone(),
            self.gateway.archive().clone(),
            self.gateway.ids().clone(),
            Identity::fixed(caller),
            self.gateway.settings().clone(),
        );
        Self::listen(change(gateway), self.store.clone()).await
    }

    /// Signs a checkpoint over everything that was committed.
    pub(crate) async fn sign(&self) {
        let key = log_key();
        let builder = Sequencer::builder(self.store.clone(), key).briefly();
        let mut sequencer = builder.start(LastStop::default()).await.unwrap();
        self.store.flush().await.unwrap();
        sequencer.tick().await.unwrap();
    }

    async fn listen(gateway: Gateway, store: Arc<dyn Store>) -> Self {
        let any_port = "127.0.0.1:0".parse().unwrap();
        let server = Server::bind(gateway.clone(), any_port).await.unwrap();
        let address = server.address().unwrap();
        tokio::spawn(server.run(std::future::pending()));
        Self {
            address,
            gateway,
            store,
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

fn samples() -> Catalog {
    let builder = Catalog::builder()
        .tool(MemorySearch::new(["buy milk"]))
        .tool(Diagnostics)
        .tool(AddNote)
        .tool(ListNotes)
        .tool(Vat);
    builder.build().unwrap()
}

#[tokio::test]
async fn a_gateway_listens() {
    let world = World::start().await;
    let answer = reqwest::get(world.url("/healthz")).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(world.gateway.settings().calls_max, 512);
}
