//! Place of work of a command: the data folder, the store and the keys that belong to it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use countersign::approve::{SCOPE_ANSWER, StoredApprovals};
use countersign::archive::{self, Archive, SCOPE_ERASE, SCOPE_HOLD, SCOPE_OPEN, SCOPE_RESOLVE};
use countersign::clock::{Clock, SystemClock};
use countersign::contract::digest::Digester;
use countersign::contract::{Actor, ActorType, Digest};
use countersign::executor::ExecutorBuilder;
use countersign::grant::StoredGrants;
use countersign::ids::{IdSource, RandomIds};
use countersign::ledger::{self, Binding, Store};
use countersign::newest::NewestCheckpoint;
use countersign::rules::Rules;
use countersign::scribe::Build;
use countersign::sequencer::Prompt;
use countersign::vault::Vault;
use countersign::{Catalog, Executor, Principal};
use countersign_config::{Config, Loaded};
use countersign_evidence::note::VerifyingKey;
use countersign_evidence::seal::MasterKey;
use countersign_gateway::identity::{ApiKeys, SCOPE_KEYS};
use countersign_gateway::policy::GrantConditions;
use tokio::runtime::{Handle, Runtime};

use crate::backend::{Backend, StoreName, bound_log};
use crate::config::parts;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::keys::{self, MasterSource};
use crate::served::Served;

mod options;

pub(crate) use options::{Need, PlaceFlags, PlaceOptions};

/// A store with everything that belongs to it: opened by this command, or by the server that carries out an operation.
pub(crate) struct Place {
    pub(crate) folder: Folder,
    /// The file of the store, where it is one.
    pub(crate) file: Option<PathBuf>,
    pub(crate) backend: Backend,
    pub(crate) master: Master,
    pub(crate) master_source: MasterSource,
    pub(crate) log_key: VerifyingKey,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) newest: NewestCheckpoint,
    /// Asks the signer of this place's log to sign now.
    pub(crate) prompt: Prompt,
    pub(crate) runtime: Handle,
    /// The operator who works here.
    pub(crate) by: Principal,
    /// The server in which an operation is carried out; `None` in a command.
    pub(crate) served: Option<Served>,
    /// The name of the store.
    pub(crate) store_name: StoreName,
    vault: Arc<Vault>,
    /// The configuration that it was opened with.
    loaded: Arc<Loaded>,
    /// The runtime that runs everything; `None` unless this command has opened the place itself.
    pub(super) owned: Option<Runtime>,
}

/// File with the identity of the database server, which a restart must not forget.
const SERVER: &str = "postgres.server";

fn remove_if_there(file: &Path) -> io::Result<()> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The master key that is in use. Clones share it: a rotation changes it for all of them.
#[derive(Clone)]
pub(crate) struct Master(Arc<RwLock<Arc<MasterKey>>>);

impl Master {
    fn new(key: Arc<MasterKey>) -> Self {
        Self(Arc::new(RwLock::new(key)))
    }

    pub(crate) fn get(&self) -> Arc<MasterKey> {
        let key = self.0.read();
        key.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set(&self, key: Arc<MasterKey>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = key;
    }
}

impl Place {
    fn open(folder: Folder, store: &StoreName, loaded: Arc<Loaded>) -> Result<Self, Failure> {
        Self::open_with(folder, store, loaded, false)
    }

    /// Opens a place whose store may be a copy, for a restore.
    pub(crate) fn open_copy(
        folder: Folder,
        store: &StoreName,
        options: &PlaceOptions,
    ) -> Result<Self, Failure> {
        Self::open_with(folder, store, options.loaded().clone(), true)
    }

    fn open_with(
        folder: Folder,
        store: &StoreName,
        loaded: Arc<Loaded>,
        accepts_copy: bool,
    ) -> Result<Self, Failure> {
        let (clock, ids) = clock_and_ids();
        let named = &loaded.config().keys;
        let master = keys::master(&folder, named)?;
        let (master, master_source) = master.ok_or_else(|| missing(&folder, keys::MASTER))?;
        let log_key = keys::log(&folder)?.ok_or_else(|| missing(&folder, keys::LOG))?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        let of_master = (&*master, master_source);
        let mut binding = keys::binding(&folder, named, of_master, &log_key, &*ids)?;
        binding.accepts_copy = accepts_copy;
        let identity_file = folder.file(SERVER);
        if accepts_copy {
            // A restore says that another server is meant.
            remove_if_there(&identity_file)?;
        }
        let options = &loaded.config().store;
        let backend =
            match runtime.block_on(Backend::open(store, binding, options, Some(identity_file))) {
                // A restore that was interrupted has bound the store to the key that waits.
                Err(failure) => {
                    let Some(bound) = bound_log(&failure) else {
                        return Err(failure);
                    };
                    if !keys::adopt_next_log(&folder, bound)? {
                        return Err(failure);
                    }
                    return Self::open_with(folder, store, loaded, accepts_copy);
                }
                Ok(backend) => backend,
            };
        let former = keys::master_before(&folder, named, master_source)?;
        let former = former.map_or_else(
            || keys::master_in(&folder, keys::MASTER_OLD),
            |key| Ok(Some(key)),
        )?;
        let vault = Vault::new(backend.store(), master.clone(), clock.clone(), ids.clone());
        // A rotation that was broken off has left keys that the old one wraps.
        let vault = match former.filter(|former| former.id() != master.id()) {
            Some(former) => vault.also_reading(former),
            None => vault,
        };
        runtime
            .block_on(vault.authenticate_records())
            .map_err(store_failed)?;
        let file = match store {
            StoreName::Sqlite(path) => Some(path.canonicalize()?),
            StoreName::Memory | StoreName::Postgres(_) => None,
        };
        Ok(Self {
            folder,
            file,
            backend,
            master: Master::new(master),
            master_source,
            log_key: log_key.verifying_key(),
            clock,
            ids,
            newest: NewestCheckpoint::new(),
            prompt: Prompt::default(),
            runtime: runtime.handle().clone(),
            by: operator(&operator_name()),
            served: None,
            store_name: store.clone(),
            vault: Arc::new(vault),
            loaded,
            owned: Some(runtime),
        })
    }

    /// Returns the same place, without its ownership of the runtime.
    pub(crate) fn shared(&self) -> Self {
        Self {
            folder: self.folder.clone(),
            file: self.file.clone(),
            backend: self.backend.clone(),
            master: self.master.clone(),
            master_source: self.master_source,
            log_key: self.log_key.clone(),
            clock: self.clock.clone(),
            ids: self.ids.clone(),
            newest: self.newest.clone(),
            prompt: self.prompt.clone(),
            runtime: self.runtime.clone(),
            by: self.by.clone(),
            served: None,
            store_name: self.store_name.clone(),
            vault: self.vault.clone(),
            loaded: self.loaded.clone(),
            owned: None,
        }
    }

    /// Returns the same place for an operation that a server carries out for an operator.
    pub(crate) fn serving(&self, operator_name: &str, served: Served) -> Self {
        Self {
            by: operator(operator_name),
            served: Some(served),
            ..self.shared()
        }
    }

    /// Waits for something that may take long and changes nothing. It gives up when the command that asked for it is gone.
    pub(crate) fn wait<T>(&self, awaited: impl Future<Output = T>) -> Result<T, Failure> {
        let Some(served) = &self.served else {
            return Ok(self.runtime.block_on(awaited));
        };
        self.runtime.block_on(async {
            tokio::select! {
                done = awaited => Ok(done),
                () = served.lines.given_up() => Err(Failure::new("the operation was cancelled")
                    .hint("the server is stopping, or the command was ended")),
            }
        })
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        self.backend.store()
    }

    /// The keys of this place for another store: the copy is of the same installation.
    pub(crate) async fn binding(&self) -> Result<Binding, Failure> {
        let store = self.store();
        let found = store.installation().await.map_err(store_failed)?;
        let id = found.map_or_else(String::new, |found| found.id);
        Ok(Binding::new(
            id,
            self.master.get().id(),
            self.log_key.clone(),
        ))
    }

    /// The configuration that it was opened with.
    pub(crate) fn loaded(&self) -> &Arc<Loaded> {
        &self.loaded
    }

    pub(crate) fn config(&self) -> &Config {
        self.loaded.config()
    }

    /// Runs calls on this store.
    pub(crate) fn executor(&self, catalog: Catalog, rules: Rules) -> Executor {
        self.executor_builder(catalog, rules).build()
    }

    /// Returns the builder of that executor, to add further parts.
    pub(crate) fn executor_builder(&self, catalog: Catalog, rules: Rules) -> ExecutorBuilder {
        Executor::builder(catalog)
            .store(self.store())
            .vault(self.vault.clone())
            .clock(self.clock.clone())
            .ids(self.ids.clone())
            .rules(rules)
            .retention(parts::retention_plan(&self.config().retention))
            .approval_limits(parts::approval_limits(&self.config().approvals))
            .grant_language(Arc::new(GrantConditions))
            .signing_grace(self.config().log.signing_grace.duration())
            .build_digest(build_digest())
            .newest_checkpoint(self.newest.clone())
    }

    /// The keys of the users; everything here uses the same ones.
    pub(crate) fn vault(&self) -> Arc<Vault> {
        self.vault.clone()
    }

    /// Returns the approvals, which users are asked for.
    pub(crate) fn approvals(&self) -> Arc<StoredApprovals> {
        // Calls of the server wait at its own.
        if let Some(served) = &self.served {
            return served.gateway.executor().approvals().clone();
        }
        let approvals = StoredApprovals::new(
            self.store(),
            self.vault(),
            self.clock.clone(),
            self.ids.clone(),
        )
        .limits(parts::approval_limits(&self.config().approvals))
        .retention(parts::retention_plan(&self.config().retention));
        // Without the tools nobody can narrow a call; everything else works.
        Arc::new(match crate::catalog::declared(&self.loaded) {
            Ok(catalog) => approvals.catalog(catalog),
            Err(_) => approvals,
        })
    }

    /// Returns the standing grants of users.
    pub(crate) fn grants(&self) -> Arc<StoredGrants> {
        if let Some(served) = &self.served {
            return served.gateway.executor().grants().clone();
        }
        let (clock, ids) = (self.clock.clone(), self.ids.clone());
        let grants = StoredGrants::new(self.store(), self.vault(), clock, ids)
            .language(Arc::new(GrantConditions))
            .retention(parts::retention_plan(&self.config().retention));
        // Without the tools no grant can be made; everything else works.
        Arc::new(match crate::catalog::declared(&self.loaded) {
            Ok(catalog) => grants.catalog(catalog),
            Err(_) => grants,
        })
    }

    /// The keys of callers.
    pub(crate) fn api_keys(&self) -> ApiKeys {
        let served = self.served.as_ref();
        if let Some(keys) = served.and_then(|served| served.gateway.identity().keys()) {
            return keys.clone();
        }
        let (clock, ids) = (self.clock.clone(), self.ids.clone());
        ApiKeys::new(self.store(), self.vault(), clock, ids)
    }

    /// Returns the archive, which has the operator's actions on the log.
    pub(crate) fn archive(&self) -> Archive {
        self.archive_by(self.log_key.clone())
    }

    /// Returns the archive with the key that signs receipts, if the folder has it.
    pub(crate) fn signing_archive(&self) -> Result<Archive, Failure> {
        let archive = self.archive();
        Ok(match keys::log(&self.folder)? {
            Some(key) => archive.signing(Arc::new(key)),
            None => archive,
        })
    }

    /// Returns the archive of a log with another key.
    pub(crate) fn archive_by(&self, log_key: VerifyingKey) -> Archive {
        Archive::new(
            self.store(),
            self.vault(),
            self.clock.clone(),
            self.ids.clone(),
            log_key,
        )
        .retention(parts::retention_plan(&self.config().retention))
        .knowing(&countersign_commerce::KNOWN_THINGS)
        .with_belongings(Arc::new(self.api_keys()))
    }
}

/// A key that has to be there.
pub(crate) fn missing(folder: &Folder, name: &str) -> Failure {
    Failure::new(format!("{} is missing", folder.file(name).display()))
        .hint("copy it from a backup: without it nothing can be read or signed")
}

/// Returns the name of the operator who runs this command, as its environment says: a label, not a proof.
pub(crate) fn operator_name() -> String {
    let name = ["COUNTERSIGN_OPERATOR", "USER", "LOGNAME"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|name| !name.is_empty()));
    name.unwrap_or_else(|| "local".to_owned())
}

/// Builds the principal of the operator with this name, as the log names programs and operators.
pub(crate) fn operator(name: &str) -> Principal {
    let scopes = [
        SCOPE_OPEN,
        SCOPE_ERASE,
        SCOPE_HOLD,
        SCOPE_RESOLVE,
        SCOPE_ANSWER,
        SCOPE_KEYS,
    ];
    let actor = Actor {
        kind: ActorType::System,
        id: format!("operator/{name}"),
    };
    scopes
        .into_iter()
        .fold(Principal::new(actor, ""), Principal::scope)
}

/// SHA-256 of the running executable. It is computed aside as soon as the first executor is made, so that no start and
/// no call waits for it unless a record needs it before.
fn build_digest() -> Build {
    static BUILD: LazyLock<Build> = LazyLock::new(|| {
        let build = Build::lazily(executable_digest);
        let aside = build.clone();
        // Where no thread can be had, the first record computes it.
        let _ = std::thread::Builder::new()
            .name("build digest".to_owned())
            .spawn(move || aside.digest());
        build
    });
    BUILD.clone()
}

fn executable_digest() -> Option<Digest> {
    // The file of the running program, also where another one has taken its name since.
    let running = Path::new("/proc/self/exe");
    let path = if running.exists() {
        running.to_owned()
    } else {
        std::env::current_exe().ok()?
    };
    let mut digester = Digester::default();
    let read = File::open(path).and_then(|mut file| io::copy(&mut file, &mut digester));
    if let Err(error) = &read {
        tracing::warn!(%error, "the running executable could not be read, so records do not name the build");
    }
    read.is_ok().then(|| digester.finish())
}

pub(crate) fn clock_and_ids() -> (Arc<dyn Clock>, Arc<dyn IdSource>) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let ids = Arc::new(RandomIds::new(clock.clone()));
    (clock, ids)
}

/// Turns an error of the store into a failure with a hint.
pub(crate) fn store_failed(error: ledger::Error) -> Failure {
    let hint = match &error {
        ledger::Error::Unavailable(_) => None,
        ledger::Error::DiskLow { .. } => {
            Some("make room on the disk; reading and verifying still work")
        }
        ledger::Error::Full { .. } => Some("use a SQLite or PostgreSQL store"),
        ledger::Error::Damaged { .. } | ledger::Error::Forked { .. } => {
            Some("`countersign verify --all` lists the faults")
        }
        ledger::Error::UnderHold { .. } => Some("`countersign evidence release` releases a hold"),
    };
    let is_held = matches!(error, ledger::Error::UnderHold { .. });
    let failure = Failure::from(error);
    let failure = if is_held { failure.refused() } else { failure };
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Turns an error of the archive into a failure with a hint.
pub(crate) fn archive_failed(error: archive::Error) -> Failure {
    use archive::Error;
    match error {
        Error::Store(error) => store_failed(error),
        Error::NoRecord { .. } => Failure::from(error)
            .hint("`countersign evidence list` lists the newest records")
            .refused(),
        Error::Tampered { .. }
        | Error::NotARecord { .. }
        | Error::Checkpoint(_)
        | Error::Held(_)
        | Error::NotGrown(_) => Failure::from(error)
            .hint("`countersign verify --all` lists all faults")
            .not_verified(),
        Error::UnknownUser { .. } => Failure::from(error)
            .hint("`countersign evidence list` lists the newest records with their users")
            .refused(),
        Error::NoReason => Failure::from(error).hint("give a reason with --reason"),
        Error::NoCheckpoint | Error::NotSignedYet { .. } => Failure::from(error)
            .hint("start the server, or make a `countersign call`: both sign the log"),
        Error::NoSigner => Failure::from(error).hint(
            "run the command where the log is signed, or export a tlog-proof, which needs no key",
        ),
        Error::NameTheUser { .. } => Failure::from(error).hint("name the user with --user"),
        Error::MissingScope { .. }
        | Error::Receipt(_)
        | Error::NoUser
        | Error::TooMany { .. }
        | Error::NotCanonical(_) => Failure::from(error),
    }
}
