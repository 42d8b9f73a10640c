//! The place that a command means: flags, environment and configuration say which.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use countersign_config::value::StoreAddress;
use countersign_config::{Config, Document, Given, Loaded};

use super::{Place, clock_and_ids, missing};
use crate::backend::StoreName;
use crate::config::lenient::Flawed;
use crate::config::{self, secret};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::journal::CHECKPOINT;
use crate::keys;
use crate::operations::Operation;
use crate::running::Running;
use crate::table::visible;
use crate::terminal::Terminal;

/// The flags of every command that say where it works.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PlaceFlags {
    /// Configuration file [default: countersign.toml in the working folder, if it exists]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    #[arg(
        long,
        global = true,
        value_name = "DIR",
        help = "Folder with the data and its keys [default: the data folder of the platform] [env: COUNTERSIGN_DATA]"
    )]
    pub(crate) data: Option<PathBuf>,

    #[arg(
        long,
        global = true,
        value_name = "STORE",
        help = "Store: sqlite:PATH, postgres://…, memory, or env:NAME or file:PATH with such an address [default: sqlite:DIR/countersign.db] [env: COUNTERSIGN_STORE]"
    )]
    store: Option<StoreAddress>,

    /// Name of the log, for a new data folder [default: a random name]
    #[arg(long, global = true, value_name = "NAME", hide_short_help = true)]
    log_origin: Option<String>,
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The part of the configuration that a command needs where no server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// The data folder, its keys, and how long data is kept.
    Data,
    /// All of it, unless a server does the work.
    ServerOrFile,
}

/// The configuration of a command, and by it the place.
#[derive(Debug, Clone)]
pub(crate) struct PlaceOptions {
    loaded: Arc<Loaded>,
}

impl PlaceFlags {
    /// The options that say where the data is, as a shell reads them. An address of a store may hold a password, so it is left out.
    pub(crate) fn in_words(&self) -> String {
        let paths = [("--config", &self.config), ("--data", &self.data)];
        let paths = paths.into_iter().filter_map(|(name, path)| {
            let path = path.as_ref()?.to_str()?;
            Some(format!("{name} {}", quoted(path)))
        });
        paths.collect::<Vec<_>>().join(" ")
    }

    /// Reads the configuration, where there is one, and puts environment and flags on top. Reports a file that was found by itself.
    pub(crate) fn read(&self, terminal: &mut Terminal) -> Result<PlaceOptions, Failure> {
        if self.finds_file() {
            config::announce(terminal)?;
        }
        self.read_unannounced()
    }

    /// Same as [`Self::read`] without the report: for a command that first has to know the form of its log.
    pub(crate) fn read_unannounced(&self) -> Result<PlaceOptions, Failure> {
        let path = config::path(self.config.as_deref());
        self.over(path.map(config::read).transpose()?)
    }

    /// True if the configuration is a file that no option names.
    pub(crate) fn finds_file(&self) -> bool {
        self.config.is_none() && config::path(None).is_some()
    }

    /// Reads the configuration for a command that an operator needs at any time. Mistakes in a part of the file that
    /// the command does not need are warnings.
    pub(crate) fn read_at_hand(
        &self,
        need: Need,
        terminal: &mut Terminal,
    ) -> Result<PlaceOptions, Failure> {
        let Some(path) = config::path(self.config.as_deref()) else {
            return self.over(None);
        };
        match Flawed::read(path)? {
            None => self.read(terminal),
            Some(flawed) => self.without(flawed, need, terminal),
        }
    }

    /// Reads as much of the configuration as there is to find the place, and reports nothing.
    pub(crate) fn read_quietly(&self) -> Result<PlaceOptions, Failure> {
        let Some(path) = config::path(self.config.as_deref()) else {
            return self.over(None);
        };
        match Flawed::read(path)? {
            None => self.over(Some(config::read(path)?)),
            Some(flawed) if flawed.leaves_place(self.is_data_named()) => self.over(flawed.document),
            Some(flawed) => Err(flawed.failure()),
        }
    }

    /// True if the command line or the environment names the data folder.
    fn is_data_named(&self) -> bool {
        self.data.is_some() || std::env::var_os(config::DATA_VARIABLE).is_some()
    }

    /// Takes what is left of a file with mistakes, where the command can do without the rest.
    fn without(
        &self,
        flawed: Flawed,
        need: Need,
        terminal: &mut Terminal,
    ) -> Result<PlaceOptions, Failure> {
        if !flawed.leaves_place(self.is_data_named()) {
            return Err(flawed.failure());
        }
        let options = self.over(flawed.document.clone())?;
        let is_running = options.running()?.is_some();
        let can_work = match need {
            Need::Data => flawed.leaves_data(),
            Need::ServerOrFile => false,
        };
        if !is_running && !can_work {
            return Err(flawed.failure());
        }
        for mistake in &flawed.mistakes {
            terminal.say(format_args!("warning: {}", visible(&mistake.to_string())))?;
        }
        terminal.say(if is_running {
            "note: the command continues: the running server uses its own configuration"
        } else {
            "note: the command does not need that part of the file, so it goes on"
        })?;
        Ok(options)
    }

    /// Puts environment and flags on top of this file.
    fn over(&self, document: Option<Document>) -> Result<PlaceOptions, Failure> {
        let loaded = config::load(document, self.layers()?)?;
        Ok(PlaceOptions::of(loaded))
    }

    /// Returns the settings that the environment and the flags give.
    pub(crate) fn layers(&self) -> Result<Vec<Given>, Failure> {
        let mut given = config::environment()?;
        given.extend(self.given()?);
        Ok(given)
    }

    /// The store that the command line names.
    pub(crate) fn named_store(&self) -> Option<&StoreAddress> {
        self.store.as_ref()
    }

    fn given(&self) -> Result<Vec<Given>, Failure> {
        let mut given = Vec::new();
        given.extend(config::path_flag(
            "store.data",
            "--data",
            self.data.as_ref(),
        )?);
        let store = self.store.as_ref();
        given.extend(store.map(|store| Given::flag("store.url", "--store", store.written())));
        let origin = self.log_origin.as_deref();
        given.extend(origin.map(|origin| Given::flag("log.origin", "--log-origin", origin)));
        Ok(given)
    }
}

impl PlaceOptions {
    /// Returns options for a folder with a store of its own, independent of the environment and the working folder.
    pub(crate) fn own(data: &Path) -> Result<Self, Failure> {
        let store = StoreAddress::Sqlite(data.join("countersign.db"));
        let flags = PlaceFlags {
            config: None,
            data: Some(data.to_owned()),
            store: Some(store),
            log_origin: None,
        };
        Ok(Self::of(config::load(None, flags.given()?)?))
    }

    fn of(loaded: Loaded) -> Self {
        Self {
            loaded: Arc::new(loaded),
        }
    }

    /// Returns the options with the flags of one command on top.
    pub(crate) fn with(&self, given: Vec<Given>) -> Result<Self, Failure> {
        let loaded = self.loaded.with(given).map_err(config::wrong)?;
        Ok(Self::of(loaded))
    }

    /// The whole configuration.
    pub(crate) fn loaded(&self) -> &Arc<Loaded> {
        &self.loaded
    }

    pub(crate) fn config(&self) -> &Config {
        self.loaded.config()
    }

    /// Returns the data folder, where the keys are, and the name of the store.
    pub(crate) fn names(&self) -> Result<(PathBuf, StoreName), Failure> {
        let data = match &self.config().store.data {
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

    /// The store, where one is named. An address that holds a password is a secret, which the environment keeps out
    /// of the list of processes.
    fn named_store(&self) -> Result<Option<StoreName>, Failure> {
        Ok(match &self.config().store.url {
            None => None,
            Some(StoreAddress::Memory) => Some(StoreName::Memory),
            Some(StoreAddress::Sqlite(path)) => Some(StoreName::Sqlite(path.clone())),
            Some(StoreAddress::Postgres(address)) => Some(StoreName::Postgres(address.clone())),
            Some(StoreAddress::Secret(secret)) => {
                let address = secret::read("store.url", secret)?;
                let name = address.parse().map_err(|hint: String| {
                    Failure::new(format!("store.url: {secret} is not the address of a store"))
                        .hint(hint)
                })?;
                Some(name)
            }
        })
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
                "note: new keys created in {}; for production keep them apart from the data, see docs/operating.md",
                folder.path().display()
            ))
        })
    }

    /// Opens or makes the place without reporting it.
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
        if keys::master(&folder, &self.config().keys)?.is_none() {
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
            keys::make_log(&folder, self.config().log.origin.as_deref(), &*ids)?;
        }
        self.check_owner(&store)?;
        Place::open(folder, &store, self.loaded.clone())
    }

    /// The place, where there is one.
    pub(crate) fn open(&self) -> Result<Place, Failure> {
        let (data, store) = self.names()?;
        if store == StoreName::Memory {
            return Err(Failure::new("a store in memory has no data to work on")
                .hint("leave --store out, or use a SQLite or PostgreSQL store"));
        }
        let folder = Folder::existing(data)?;
        if let StoreName::Sqlite(path) = &store
            && !path.exists()
        {
            let message = format!("the store {} does not exist", path.display());
            return Err(Failure::new(message)
                .hint("the first `countersign call` or `countersign serve` creates it"));
        }
        self.check_owner(&store)?;
        Place::open(folder, &store, self.loaded.clone())
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

    /// Performs an operation, and makes the place first if it is missing.
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
                Err(running.in_the_way("this command needs the file for itself"))
            }
            (StoreName::Sqlite(_), None) | (StoreName::Postgres(_) | StoreName::Memory, _) => {
                Ok(())
            }
        }
    }
}
