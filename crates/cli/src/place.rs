//! Where a command works: the data folder, the store and the keys that belong to it.

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
use countersign::ids::{IdSource, RandomIds};
use countersign::ledger::{self, Binding, Store};
use countersign::newest::NewestCheckpoint;
use countersign::rules::Rules;
use countersign::scribe::Build;
use countersign::sequencer::Prompt;
use countersign::vault::Vault;
use countersign::{Catalog, Executor, Principal};
use countersign_evidence::note::VerifyingKey;
use countersign_evidence::seal::MasterKey;
use countersign_gateway::identity::{ApiKeys, SCOPE_KEYS};
use tokio::runtime::{Handle, Runtime};

use crate::backend::{Backend, StoreName, bound_log};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::journal::CHECKPOINT;
use crate::keys::{self, MasterSource};
use crate::operations::Operation;
use crate::running::Running;
use crate::served::Served;
use crate::terminal::Terminal;

/// Where data is, for every command.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PlaceOptions {
    /// The folder of the data and its keys [default: the platform's data folder]
    #[arg(long, global = true, value_name = "DIR")]
    data: Option<PathBuf>,

    /// The store: sqlite:PATH, postgres://… or memory [default: sqlite:DIR/countersign.db]
    #[arg(long, global = true, value_name = "STORE")]
    store: Option<StoreName>,

    /// The name of the log, for a folder that has none yet [default: a random one]
    #[arg(long, global = true, value_name = "NAME", hide_short_help = true)]
    origin: Option<String>,
}

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
    /// Asks whoever signs the log of this place to do it now.
    pub(crate) prompt: Prompt,
    pub(crate) runtime: Handle,
    /// Who works here.
    pub(crate) by: Principal,
    /// There where a server carries out an operation.
    pub(crate) served: Option<Served>,
    /// The name of the store.
    pub(crate) store_name: StoreName,
    vault: Arc<Vault>,
    /// What runs everything; there where this command has opened the place.
    pub(super) owned: Option<Runtime>,
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

impl PlaceOptions {
    /// A folder with a store of its own, whatever the environment says.
    pub(crate) fn own(data: PathBuf) -> Self {
        Self {
            store: Some(StoreName::Sqlite(data.join("countersign.db"))),
            data: Some(data),
            origin: None,
        }
    }

    /// The folder, where the command line names one.
    pub(crate) fn named_data(&self) -> Option<&Path> {
        self.data.as_deref()
    }

    /// Which store is meant, and where the keys are.
    pub(crate) fn names(&self) -> Result<(PathBuf, StoreName), Failure> {
        let data = match &self.data {
            Some(data) => data.clone(),
            None => Folder::usual()?,
        };
        let usual = || StoreName::Sqlite(data.join("countersign.db"));
        let store = self.named_store()?.unwrap_or_else(usual);
        Ok((data, store))
    }

    pub(crate) fn is_memory(&self) -> Result<bool, Failure> {
        Ok(self.named_store()? == Some(StoreName::Memory))
    }

    /// The store, where one is named. Its address may hold a password, which the environment keeps out
    /// of the list of processes.
    fn named_store(&self) -> Result<Option<StoreName>, Failure> {
        let variable = std::env::var("COUNTERSIGN_STORE").ok();
        let variable = variable.filter(|name| !name.is_empty());
        match (&self.store, variable) {
            (Some(store), _) => Ok(Some(store.clone())),
            (None, Some(name)) => match name.parse() {
                Ok(store) => Ok(Some(store)),
                Err(hint) => Err(Failure::new("COUNTERSIGN_STORE names no store").hint(hint)),
            },
            (None, None) => Ok(None),
        }
    }

    /// The server that works in the folder, where one does. One on another store than the named one does
    /// not count; who names none means the server's.
    pub(crate) fn running(&self) -> Result<Option<Running>, Failure> {
        let (data, _) = self.names()?;
        let Ok(folder) = Folder::existing(data) else {
            return Ok(None);
        };
        let running = Running::find(&folder)?;
        Ok(match self.named_store()? {
            Some(store) => running.filter(|running| running.is_on(&store)),
            None => running,
        })
    }

    /// The place, made where it is missing.
    pub(crate) fn open_or_make(&self, terminal: &mut Terminal) -> Result<Place, Failure> {
        self.make(|folder| {
            terminal.say(format_args!(
                "note: new keys are in {}; keys beside the data protect its backups only, see docs/operating.md",
                folder.path().display()
            ))
        })
    }

    /// The same where nobody is told.
    pub(crate) fn open_or_make_quietly(&self) -> Result<Place, Failure> {
        self.make(|_| Ok(()))
    }

    fn make(&self, on_keys: impl FnOnce(&Folder) -> io::Result<()>) -> Result<Place, Failure> {
        let (data, store) = self.names()?;
        let folder = Folder::make(data)?;
        let (_, ids) = clock_and_ids();
        // Keys are made for a new store only: under new ones, nothing that is there could be read or
        // continued, and the missing ones would not be missed any more.
        let is_used = match &store {
            StoreName::Sqlite(path) => path.exists(),
            StoreName::Memory | StoreName::Postgres(_) => false,
        } || folder.mode(CHECKPOINT)?.is_some();
        if keys::master(&folder)?.is_none() {
            if is_used {
                return Err(missing(&folder, keys::MASTER));
            }
            keys::make_master(&folder, keys::MASTER, &*ids)?;
            on_keys(&folder)?;
        }
        if keys::log(&folder)?.is_none() {
            if is_used {
                return Err(missing(&folder, keys::LOG));
            }
            keys::make_log(&folder, self.origin.as_deref(), &*ids)?;
        }
        self.check_owner(&store)?;
        Place::open(folder, &store)
    }

    /// The place, where there is one.
    pub(crate) fn open(&self) -> Result<Place, Failure> {
        let (data, store) = self.names()?;
        if store == StoreName::Memory {
            return Err(Failure::new("a store in memory has nothing to look at")
                .hint("leave --store out, or name a store that stays"));
        }
        let folder = Folder::existing(data)?;
        if let StoreName::Sqlite(path) = &store
            && !path.exists()
        {
            let message = format!("there is no store {}", path.display());
            return Err(Failure::new(message).hint("the first `countersign call` makes one"));
        }
        self.check_owner(&store)?;
        Place::open(folder, &store)
    }

    /// Carries out an operation: by the server that works on this store, or here where none does.
    pub(crate) fn perform<O: Operation>(
        &self,
        operation: &O,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        if let Some(running) = self.running()? {
            return running.perform(operation, terminal);
        }
        let opened = self.open();
        self.perform_on(opened, operation, terminal)
    }

    /// The same where a place that is missing is made.
    pub(crate) fn make_and_perform<O: Operation>(
        &self,
        operation: &O,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        if let Some(running) = self.running()? {
            return running.perform(operation, terminal);
        }
        let opened = self.open_or_make(terminal);
        self.perform_on(opened, operation, terminal)
    }

    /// Carries it out here, unless a server has come and taken the file meanwhile.
    fn perform_on<O: Operation>(
        &self,
        opened: Result<Place, Failure>,
        operation: &O,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        match opened {
            Ok(place) => operation.perform(&place, terminal),
            Err(failure) if failure.is_in_use() => match self.running()? {
                Some(running) => running.perform(operation, terminal),
                None => Err(failure),
            },
            Err(failure) => Err(failure),
        }
    }

    /// A file has one owner; one that serves does not go away by waiting.
    fn check_owner(&self, store: &StoreName) -> Result<(), Failure> {
        match (store, self.running()?) {
            (StoreName::Sqlite(_), Some(running)) => {
                Err(running.in_the_way("this needs its file for itself"))
            }
            (StoreName::Sqlite(_), None) | (StoreName::Postgres(_) | StoreName::Memory, _) => {
                Ok(())
            }
        }
    }
}

impl Place {
    fn open(folder: Folder, store: &StoreName) -> Result<Self, Failure> {
        Self::open_with(folder, store, false)
    }

    /// The same of a store that may be a copy: for a restore.
    pub(crate) fn open_copy(folder: Folder, store: &StoreName) -> Result<Self, Failure> {
        Self::open_with(folder, store, true)
    }

    fn open_with(folder: Folder, store: &StoreName, accepts_copy: bool) -> Result<Self, Failure> {
        let (clock, ids) = clock_and_ids();
        let master = keys::master(&folder)?;
        let (master, master_source) = master.ok_or_else(|| missing(&folder, keys::MASTER))?;
        let log_key = keys::log(&folder)?.ok_or_else(|| missing(&folder, keys::LOG))?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        let mut binding = keys::binding(&folder, &master, master_source, &log_key, &*ids)?;
        binding.accepts_copy = accepts_copy;
        let backend = match runtime.block_on(Backend::open(store, binding)) {
            // A restore that was interrupted has bound the store to the key that waits.
            Err(failure) => {
                let Some(bound) = bound_log(&failure) else {
                    return Err(failure);
                };
                if !keys::adopt_next_log(&folder, bound)? {
                    return Err(failure);
                }
                return Self::open_with(folder, store, accepts_copy);
            }
            Ok(backend) => backend,
        };
        let former = keys::master_in(&folder, keys::MASTER_OLD)?;
        let vault = Vault::new(backend.store(), master.clone(), clock.clone(), ids.clone());
        // A rotation that was broken off has left keys that the old one wraps.
        let vault = match former.filter(|former| former.id() != master.id()) {
            Some(former) => vault.also_reading(former),
            None => vault,
        };
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
            owned: Some(runtime),
        })
    }

    /// The same place for whoever does not own it.
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
            owned: None,
        }
    }

    /// The same place for an operation that a server carries out for somebody.
    pub(crate) fn serving(&self, operator_name: &str, served: Served) -> Self {
        Self {
            by: operator(operator_name),
            served: Some(served),
            ..self.shared()
        }
    }

    /// Waits for something that may take long and changes nothing. It is given up when nobody waits for it any more.
    pub(crate) fn wait<T>(&self, awaited: impl Future<Output = T>) -> Result<T, Failure> {
        let Some(served) = &self.served else {
            return Ok(self.runtime.block_on(awaited));
        };
        self.runtime.block_on(async {
            tokio::select! {
                done = awaited => Ok(done),
                () = served.lines.given_up() => Err(Failure::new("it was broken off")
                    .hint("the server was told to stop, or nobody waited for it any more")),
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

    /// Runs calls on this store.
    pub(crate) fn executor(&self, catalog: Catalog, rules: Rules) -> Executor {
        self.executor_builder(catalog, rules).build()
    }

    /// The same with room for more parts.
    pub(crate) fn executor_builder(&self, catalog: Catalog, rules: Rules) -> ExecutorBuilder {
        Executor::builder(catalog)
            .store(self.store())
            .vault(self.vault.clone())
            .clock(self.clock.clone())
            .ids(self.ids.clone())
            .rules(rules)
            .build_digest(build_digest())
            .newest_checkpoint(self.newest.clone())
    }

    /// The keys of the users; everything here uses the same ones.
    pub(crate) fn vault(&self) -> Arc<Vault> {
        self.vault.clone()
    }

    /// What users are asked to confirm.
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
        );
        // Without the tools nobody can narrow a call; everything else works.
        Arc::new(match crate::catalog::all() {
            Ok(catalog) => approvals.catalog(catalog),
            Err(_) => approvals,
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

    /// What operators do with the log.
    pub(crate) fn archive(&self) -> Archive {
        self.archive_by(self.log_key.clone())
    }

    /// The same by another key of the log.
    pub(crate) fn archive_by(&self, log_key: VerifyingKey) -> Archive {
        Archive::new(
            self.store(),
            self.vault(),
            self.clock.clone(),
            self.ids.clone(),
            log_key,
        )
        .knowing(&countersign_commerce::KNOWN_THINGS)
        .with_belongings(Arc::new(self.api_keys()))
    }
}

/// A key that has to be there.
pub(crate) fn missing(folder: &Folder, name: &str) -> Failure {
    Failure::new(format!("{} is missing", folder.file(name).display()))
        .hint("restore it from a backup: nothing can be read or signed without it")
}

/// The name of whoever works at this command: the account's.
pub(crate) fn operator_name() -> String {
    let name = ["COUNTERSIGN_OPERATOR", "USER", "LOGNAME"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|name| !name.is_empty()));
    name.unwrap_or_else(|| "local".to_owned())
}

/// Who works under this name, as the log names programs and operators.
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
        tracing::warn!(%error, "the running executable cannot be read: records do not name it");
    }
    read.is_ok().then(|| digester.finish())
}

fn clock_and_ids() -> (Arc<dyn Clock>, Arc<dyn IdSource>) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let ids = Arc::new(RandomIds::new(clock.clone()));
    (clock, ids)
}

/// What a store said, with what to do about it.
pub(crate) fn store_failed(error: ledger::Error) -> Failure {
    let hint = match &error {
        ledger::Error::Unavailable(_) => None,
        ledger::Error::DiskLow { .. } => {
            Some("make room on the disk; reading and verifying go on meanwhile")
        }
        ledger::Error::Full { .. } => Some("use a store that stays: sqlite or postgres"),
        ledger::Error::Damaged { .. } | ledger::Error::Forked { .. } => {
            Some("`countersign verify --all` names what is wrong")
        }
        ledger::Error::UnderHold { .. } => {
            Some("`countersign evidence release` lifts a hold, where that is allowed")
        }
    };
    let is_held = matches!(error, ledger::Error::UnderHold { .. });
    let failure = Failure::from(error);
    let failure = if is_held { failure.refused() } else { failure };
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// What the archive said, with what to do about it.
pub(crate) fn archive_failed(error: archive::Error) -> Failure {
    use archive::Error;
    match error {
        Error::Store(error) => store_failed(error),
        Error::NoRecord { .. } => Failure::from(error)
            .hint("`countersign evidence list` lists the newest ones")
            .refused(),
        Error::Tampered { .. } | Error::Checkpoint(_) | Error::Held(_) | Error::NotGrown(_) => {
            Failure::from(error)
                .hint("`countersign verify --all` names everything that is wrong")
                .not_verified()
        }
        Error::UnknownUser { .. } => Failure::from(error)
            .hint("`countersign evidence list` lists the newest records with their users")
            .refused(),
        Error::NoReason => Failure::from(error).hint("say why with --reason"),
        Error::NoCheckpoint | Error::NotSignedYet { .. } => {
            Failure::from(error).hint("any `countersign call` signs what waits")
        }
        Error::MissingScope { .. }
        | Error::NoUser
        | Error::TooMany { .. }
        | Error::NotCanonical(_) => Failure::from(error),
    }
}
