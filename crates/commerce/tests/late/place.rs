//! The place of the calls: a store, an executor on it, the signer of its log, and the archive.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use countersign::archive::Archive;
use countersign::clock::ManualClock;
use countersign::ids::SequentialIds;
use countersign::ledger::{MemoryStore, Store};
use countersign::retention::RetentionPlan;
use countersign::rules::Rules;
use countersign::sequencer::{LastStop, Sequencer};
use countersign::{Catalog, Executor};
use countersign_commerce::rulebook::RuleFiles;
use countersign_evidence::note::SigningKey;
use countersign_evidence::seal::MasterKey;
use countersign_store::postgres::{PostgresOptions, PostgresStore};
use countersign_store::sqlite::{SqliteOptions, SqliteStore};

/// The kind of store.
pub(crate) enum Kind {
    /// A store in memory, which survives a restart of the program.
    Memory(Arc<ManualClock>, Arc<MemoryStore>),
    /// A SQLite file in a folder of its own.
    File(tempfile::TempDir),
    /// The address of a PostgreSQL database.
    Postgres(String),
}

impl Kind {
    pub(crate) fn memory() -> Self {
        let clock = clock();
        let store = MemoryStore::with_clock(clock.clone()).keeping_log();
        Self::Memory(clock, Arc::new(store))
    }

    pub(crate) fn file() -> Self {
        Self::File(tempfile::tempdir().unwrap())
    }
}

/// The rules of the program; the same with another discount; the same with tax rules that differ in a comment only.
static RULES: LazyLock<[Rules; 3]> = LazyLock::new(|| {
    let embedded = || RuleFiles::embedded().unwrap();
    let prices = include_str!("../../rules/prices/2026-11-01.toml");
    let prices = &prices.replace("\"2026-11-16T1", "\"2060-11-16T1");
    let dearer = prices.replace("percent_off = \"20\"", "percent_off = \"10\"");
    assert_ne!(*prices, dearer);
    let tax = include_str!("../../rules/tax/2026-11-01.toml");
    let reworded = format!("{tax}\n# Read again.\n");
    let newest = "9999-12-31";
    let priced = |text: &str| embedded().with("prices", newest, text.to_owned()).unwrap();
    let again = priced(prices).with("tax", newest, reworded).unwrap();
    [priced(prices), priced(&dearer), again].map(|files| files.rules().unwrap())
});

/// Retention short enough for a clock that jumps by days.
const RETENTION: RetentionPlan = RetentionPlan {
    short: Some(Duration::from_hours(2)),
    standard: Some(Duration::from_hours(24)),
    long: Some(Duration::from_hours(72)),
};

/// A place that can be closed and opened again.
pub(crate) struct Place {
    kind: Kind,
    pub(crate) clock: Arc<ManualClock>,
    /// Ids go on counting after a restart, because random ones would not repeat either.
    ids: Arc<SequentialIds>,
    /// The newest signed checkpoint, kept outside of the store.
    held: Arc<Mutex<Option<String>>>,
    open: Option<Open>,
}

/// The parts that exist while the program runs.
pub(crate) struct Open {
    pub(crate) executor: Executor,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) archive: Archive,
    pub(crate) sequencer: Sequencer,
}

impl Place {
    pub(crate) async fn open(kind: Kind) -> Self {
        let clock = match &kind {
            Kind::Memory(clock, _) => clock.clone(),
            Kind::File(_) | Kind::Postgres(_) => clock(),
        };
        let mut place = Self {
            kind,
            clock,
            ids: Arc::default(),
            held: Arc::default(),
            open: None,
        };
        place.start(0, false).await;
        place
    }

    pub(crate) fn now(&self) -> &Open {
        self.open.as_ref().unwrap()
    }

    /// The newest checkpoint that was kept.
    pub(crate) fn held(&self) -> Option<String> {
        self.held.lock().unwrap().clone()
    }

    /// Adds all pending records to the tree and signs it.
    pub(crate) async fn sign(&mut self) {
        let open = self.open.as_mut().unwrap();
        open.store.flush().await.unwrap();
        open.sequencer.tick().await.unwrap();
    }

    /// Stops the program and starts it on the same store, with other rules.
    pub(crate) async fn restart(&mut self, rules: usize, is_unclean: bool) {
        let open = self.open.take().unwrap();
        open.store.flush().await.unwrap();
        drop(open);
        self.start(rules, is_unclean).await;
    }

    async fn start(&mut self, rules: usize, is_unclean: bool) {
        let store = self.store().await;
        let catalog = countersign_commerce::tools(Catalog::builder()).build();
        let executor = Executor::builder(catalog.unwrap())
            .store(store.clone())
            .kms(Arc::new(MasterKey::from_bytes(&[7; 32])))
            .clock(self.clock.clone())
            .ids(self.ids.clone())
            .rules(RULES[rules % RULES.len()].clone())
            .retention(RETENTION)
            .build();
        let key = SigningKey::from_seed("example.com/late", &[7; 32]).unwrap();
        let public = key.verifying_key();
        let vault = executor.vault().clone();
        let (clock, ids) = (self.clock.clone(), self.ids.clone());
        let archive = Archive::new(store.clone(), vault, clock, ids, public);
        let held = self.held();
        let keep = self.held.clone();
        let sequencer = Sequencer::builder(store.clone(), key)
            .clock(self.clock.clone())
            .ids(self.ids.clone())
            // The lease of the last run is still valid.
            .holder("late")
            .on_checkpoint(move |note| {
                *keep.lock().unwrap() = Some(note.to_owned());
                Ok(())
            });
        let last = LastStop {
            held: held.as_deref(),
            is_unclean,
        };
        let sequencer = sequencer.start(last).await.unwrap();
        self.open = Some(Open {
            executor,
            store,
            archive,
            sequencer,
        });
    }

    async fn store(&self) -> Arc<dyn Store> {
        match &self.kind {
            Kind::Memory(_, store) => store.clone(),
            Kind::File(folder) => {
                let path: PathBuf = folder.path().join("late.db");
                let options = SqliteOptions {
                    clock: self.clock.clone(),
                    ..SqliteOptions::default()
                };
                Arc::new(SqliteStore::open(path, options).unwrap())
            }
            Kind::Postgres(url) => {
                let options = PostgresOptions::new(url.clone());
                Arc::new(PostgresStore::open(options).await.unwrap())
            }
        }
    }
}

/// Two minutes before a sale ends, and later than the clock of the database, whose time counts where it is later.
fn clock() -> Arc<ManualClock> {
    let start = "2060-11-16T12:00:00Z".parse().unwrap();
    Arc::new(ManualClock::starting_at(start))
}
