//! Fixtures for identity and policy: a store with a log, a clock that can be set, and keys.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use countersign::archive::Archive;
use countersign::clock::{Clock, ManualClock};
use countersign::contract::RecordKind;
use countersign::ids::{IdSource, RandomIds};
use countersign::ledger::{LogQuery, MemoryStore, Store};
use countersign::sample::{AddNote, ListNotes};
use countersign::vault::Vault;
use countersign::{Catalog, Executor};
use countersign_evidence::note::SigningKey;
use countersign_evidence::seal::MasterKey;
use countersign_gateway::identity::{ApiKeys, Identity};
use countersign_gateway::policy::GrantConditions;
use countersign_gateway::recorder::Recorder;
use countersign_gateway::{Gateway, Settings};
use countersign_store::postgres::{PostgresOptions, PostgresStore};
use countersign_store::sqlite::{SqliteOptions, SqliteStore};
use countersign_testkit::patience::within;
use serde_json::Value;

pub(crate) struct Parts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) vault: Arc<Vault>,
}

/// A listening gateway; it ends with the test's runtime.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) gateway: Gateway,
}

impl Server {
    /// Sends a request, with a credential if there is one; returns status, challenge and body.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        credential: Option<&str>,
        body: Option<Value>,
    ) -> (u16, Option<String>, Value) {
        let url = format!("http://{}{path}", self.address);
        let method = method.parse().unwrap();
        let mut request = reqwest::Client::new().request(method, url);
        if let Some(credential) = credential {
            // A token, or a header as it is.
            let header = if credential.starts_with("Operator ") {
                credential.to_owned()
            } else {
                format!("Bearer {credential}")
            };
            request = request.header("authorization", header);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = within(request.send()).await.unwrap();
        let challenge = answer.headers().get("www-authenticate");
        let challenge = challenge.map(|value| value.to_str().unwrap().to_owned());
        let status = answer.status().as_u16();
        let body = answer.bytes().await.unwrap();
        let body = if body.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&body).unwrap()
        };
        (status, challenge, body)
    }
}

impl Parts {
    pub(crate) fn new() -> Self {
        let start = "2026-11-16T12:00:00Z".parse().unwrap();
        let clock = Arc::new(ManualClock::starting_at(start));
        let ids: Arc<dyn IdSource> = Arc::new(RandomIds::new(clock.clone()));
        let store: Arc<dyn Store> = Arc::new(MemoryStore::with_clock(clock.clone()).keeping_log());
        Self::on(store, clock, ids)
    }

    /// Same as `new` on a PostgreSQL database.
    pub(crate) async fn on_postgres(url: &str) -> Self {
        let store = PostgresStore::open(PostgresOptions::new(url)).await;
        Self::on_durable(Arc::new(store.unwrap()))
    }

    /// Same as `new` on an SQLite file in this folder.
    pub(crate) fn on_sqlite(folder: &Path) -> Self {
        let store = SqliteStore::open(folder.join("countersign.db"), SqliteOptions::default());
        Self::on_durable(Arc::new(store.unwrap()))
    }

    fn on_durable(store: Arc<dyn Store>) -> Self {
        let start = "2026-11-16T12:00:00Z".parse().unwrap();
        let clock = Arc::new(ManualClock::starting_at(start));
        let ids: Arc<dyn IdSource> = Arc::new(RandomIds::new(clock.clone()));
        Self::on(store, clock, ids)
    }

    /// Same as `new` on another store.
    pub(crate) fn on(
        store: Arc<dyn Store>,
        clock: Arc<ManualClock>,
        ids: Arc<dyn IdSource>,
    ) -> Self {
        let master = Arc::new(MasterKey::from_bytes(&[7; 32]));
        let vault = Vault::new(store.clone(), master, clock.clone(), ids.clone());
        Self {
            store,
            clock,
            ids,
            vault: Arc::new(vault),
        }
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone()
    }

    pub(crate) fn recorder(&self) -> Recorder {
        Recorder::new(self.store.clone(), self.clock(), self.ids.clone())
    }

    pub(crate) fn api_keys(&self) -> ApiKeys {
        let (store, vault) = (self.store.clone(), self.vault.clone());
        ApiKeys::new(store, vault, self.clock(), self.ids.clone())
    }

    /// Returns the archive for operators; erasing a user also erases their keys.
    pub(crate) fn archive(&self, keys: &ApiKeys) -> Archive {
        let key = SigningKey::from_seed("example.com/log", &[7; 32]).unwrap();
        let (store, vault) = (self.store.clone(), self.vault.clone());
        let archive = Archive::new(
            store,
            vault,
            self.clock(),
            self.ids.clone(),
            key.verifying_key(),
        );
        archive.with_belongings(Arc::new(keys.clone()))
    }

    /// Starts a server with the samples and the identity's policy.
    pub(crate) async fn serve(&self, identity: Identity) -> Server {
        self.serve_with(identity, Settings::default()).await
    }

    pub(crate) async fn serve_with(&self, identity: Identity, settings: Settings) -> Server {
        let catalog = Catalog::builder().tool(AddNote).tool(ListNotes).build();
        self.serve_tools(identity, settings, catalog.unwrap()).await
    }

    /// Same as `serve_with` with other tools.
    pub(crate) async fn serve_tools(
        &self,
        identity: Identity,
        settings: Settings,
        catalog: Catalog,
    ) -> Server {
        let builder = Executor::builder(catalog)
            .store(self.store.clone())
            .kms(Arc::new(MasterKey::from_bytes(&[7; 32])))
            .clock(self.clock())
            .ids(self.ids.clone())
            .authorizer(identity.policy().clone())
            .grant_language(Arc::new(GrantConditions));
        let executor = identity.policy().controls().install(builder).build();
        let key = SigningKey::from_seed("example.com/log", &[7; 32]).unwrap();
        // The executor's vault must forget an erased user.
        let (store, vault) = (self.store.clone(), executor.vault().clone());
        let (clock, ids) = (self.clock(), self.ids.clone());
        let archive = Archive::new(store, vault, clock, ids.clone(), key.verifying_key());
        let gateway = Gateway::new(executor, archive, ids, identity, settings);
        let any_port = "127.0.0.1:0".parse().unwrap();
        let listening = countersign_gateway::Server::bind(gateway.clone(), any_port).await;
        let listening = listening.unwrap();
        let address = listening.address().unwrap();
        tokio::spawn(listening.run(std::future::pending()));
        Server { address, gateway }
    }

    /// Returns the leaves of operators' changes, oldest first.
    pub(crate) async fn config_records(&self) -> Vec<Value> {
        let query = LogQuery {
            kind: Some(RecordKind::Config),
            limit: 100,
            ..LogQuery::default()
        };
        let mut records = Vec::new();
        for row in self.store.records(&query).await.unwrap().iter().rev() {
            let stored = self.store.record(&row.id).await.unwrap().unwrap();
            records.push(serde_json::from_slice(&stored.leaf).unwrap());
        }
        records
    }
}
