//! A backup file, put in the place of the store.

use std::fs;
use std::path::{Path, PathBuf};

use countersign::clock::{Clock as _, SystemClock};
use countersign_store::sqlite::{BackupError, OpenError, SqliteStore};
use zeroize::Zeroizing;

use super::super::backup::show;
use super::judge::verified;
use super::log::{finish, go_on, installation};
use super::{Outcome, newer};
use crate::backend::StoreName;
use crate::backup::{KeyFile, keys_path};
use crate::failure::Failure;
use crate::folder::Folder;
use crate::keys::{self, LOG, LOG_PUBLIC, MASTER, REPLACED};
use crate::place::{Place, PlaceOptions, missing};
use crate::progress::Bar;

/// Restores a SQLite store from a file, which is not touched.
pub(super) fn restore(
    data: PathBuf,
    path: &Path,
    file: &Path,
    options: &PlaceOptions,
    accept_loss: bool,
) -> Result<Outcome, Failure> {
    if !file.is_file() {
        return Err(
            Failure::new(format!("the backup {} does not exist", file.display()))
                .hint("give the path of a file that `countersign store backup` made"),
        );
    }
    if same_file(file, path) {
        return Err(Failure::new("the backup and the store are the same file")
            .hint("leave FILE out to check the store as it is"));
    }
    let folder = Folder::make(data)?;
    bring_keys(&folder, file, options)?;
    let part = Part::copied(file, path)?;
    let store = StoreName::Sqlite(path.to_owned());
    let backup = open_part(&folder, &part.0, options)?;
    verified(&backup, None).map_err(|failure| not_whole(&format!("{:#}", failure.error)))?;
    if let Some(present) = present(&folder, path, options)? {
        // It stays open, and locked, until the documents are in it.
        if !installation(&present)?.is_copy && newer::check(&present, &backup).is_ok() {
            let how = newer::put_back(&present, &backup, &part.0)?;
            return finish(present, &store, options, how);
        }
    }
    let lock = SqliteStore::lock(path)?;
    let how = go_on(&backup, true, accept_loss)?;
    drop(backup);
    part.check_closed()?;
    set_aside(path)?;
    part.name(path)?;
    drop(lock);
    let place = reopened(&folder, &store, options)?;
    finish(place, &store, options, how)
}

/// The store, bound to its log or to the one that waits for it.
fn reopened(folder: &Folder, store: &StoreName, options: &PlaceOptions) -> Result<Place, Failure> {
    Place::open_copy(folder.clone(), store, options)
}

/// Opens the store that is there now; `None` if there is none, or if it is damaged. A store of other keys is an error.
fn present(folder: &Folder, path: &Path, options: &PlaceOptions) -> Result<Option<Place>, Failure> {
    if !path.exists() {
        return Ok(None);
    }
    let store = StoreName::Sqlite(path.to_owned());
    match Place::open_copy(folder.clone(), &store, options) {
        Ok(place) => Ok(Some(place)),
        Err(failure) => match failure.error.downcast_ref::<OpenError>() {
            Some(OpenError::Damaged { .. }) => Ok(None),
            Some(
                OpenError::InUse { .. }
                | OpenError::Io { .. }
                | OpenError::NoWriteAheadLog { .. }
                | OpenError::Schema(_)
                | OpenError::Installation(_)
                | OpenError::Database(_),
            )
            | None => Err(failure),
        },
    }
}

fn open_part(folder: &Folder, part: &Path, options: &PlaceOptions) -> Result<Place, Failure> {
    let store = StoreName::Sqlite(part.to_owned());
    let opened = Place::open_copy(folder.clone(), &store, options);
    opened.map_err(|failure| match failure.error.downcast_ref::<OpenError>() {
        Some(OpenError::Damaged { what }) => not_whole(what),
        Some(OpenError::Installation(refused)) => {
            Failure::new(format!("the backup was made with other keys: {refused}"))
                .hint("copy the master.key and log.key of the backup into the data folder; save a master key from before a rotation as master.key.old")
        }
        Some(
            OpenError::InUse { .. }
            | OpenError::Io { .. }
            | OpenError::NoWriteAheadLog { .. }
            | OpenError::Schema(_)
            | OpenError::Database(_),
        )
        | None => failure,
    })
}

/// The keys of a new folder, from the file beside the backup.
fn bring_keys(folder: &Folder, file: &Path, options: &PlaceOptions) -> Result<(), Failure> {
    let has_master = keys::master(folder, &options.config().keys)?.is_some();
    let has_log = keys::log(folder)?.is_some();
    if has_master && has_log {
        return Ok(());
    }
    let path = keys_path(file);
    if !path.is_file() {
        let name = if has_master { LOG } else { MASTER };
        return Err(missing(folder, name));
    }
    let text = fs::read_to_string(&path);
    let text = Zeroizing::new(text.map_err(|error| Failure::unreadable(path.display(), error))?);
    let kept: KeyFile = serde_json::from_str(&text)
        .map_err(|_| Failure::new(format!("{} has no keys", path.display())))?;
    if !has_master {
        let master = kept.master.map(Zeroizing::new);
        let master = master.ok_or_else(|| missing(folder, MASTER))?;
        folder.write_secret(MASTER, &master)?;
    }
    if !has_log {
        folder.write_secret(LOG, &Zeroizing::new(kept.log))?;
        if let Some(log) = keys::log(folder)? {
            folder.write(LOG_PUBLIC, &format!("{}\n", log.verifying_key()), 0o644)?;
        }
    }
    Ok(())
}

/// A copy of the backup beside the store; it is gone with this value, unless it gets the store's name.
struct Part(PathBuf);

impl Part {
    fn copied(file: &Path, path: &Path) -> Result<Self, Failure> {
        let part = Self(with_suffix(path, ".restoring"));
        part.remove();
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let bar = Bar::here(0, "copied");
        let mut told = |progress| show(&bar, progress);
        let copied = runtime.block_on(SqliteStore::copy_file(file, &part.0, &mut told));
        bar.finish_and_clear();
        copied.map_err(|error| match error {
            BackupError::Damaged { what } => not_whole(&what),
            BackupError::Exists { .. }
            | BackupError::Io { .. }
            | BackupError::NoInstallation
            | BackupError::LogKey(_)
            | BackupError::Checkpoint(_)
            | BackupError::Rows(_)
            | BackupError::Store(_) => Failure::from(error),
        })?;
        Ok(part)
    }

    /// Refuses a file whose newest commits are not in it yet.
    fn check_closed(&self) -> Result<(), Failure> {
        match fs::metadata(with_suffix(&self.0, "-wal")) {
            Ok(rest) if rest.len() > 0 => {
                let failure = Failure::new("the copy of the backup could not be completed");
                Err(failure.hint("nothing was changed; try again"))
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    fn name(self, path: &Path) -> Result<(), Failure> {
        let folder = path.parent().filter(|path| !path.as_os_str().is_empty());
        fs::rename(&self.0, path)?;
        fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
        Ok(())
    }

    fn remove(&self) {
        for suffix in ["", "-wal", "-shm", "-journal", ".lock"] {
            fs::remove_file(with_suffix(&self.0, suffix)).ok();
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Moves the store that is there out of the way: its log first, because the one of a file must never meet another file.
fn set_aside(path: &Path) -> Result<(), Failure> {
    if !path.exists() {
        return Ok(());
    }
    let beside = path.parent().filter(|path| !path.as_os_str().is_empty());
    let beside = Folder::existing(beside.unwrap_or(Path::new(".")).to_owned())?;
    let replaced = beside.subfolder(REPLACED)?;
    let at = SystemClock::new().now().as_millisecond();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    for suffix in ["-wal", "-shm", ""] {
        let from = with_suffix(path, suffix);
        if from.exists() {
            let to = replaced.file(&format!("{name}.{at}{suffix}"));
            fs::rename(&from, &to)?;
        }
    }
    Ok(())
}

fn not_whole(what: &str) -> Failure {
    Failure::new(format!("the backup is damaged or incomplete: {what}"))
        .hint("nothing was changed; copy the backup again, or use another one")
        .not_verified()
}

fn same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        (Ok(_) | Err(_), Ok(_) | Err(_)) => false,
    }
}

pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
