//! Backups are restored and verified: one of the scratch store, and the newest of the real store where the operator names it. Both
//! are restored into the folder of the drill.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use countersign_config::Given;
use serde_json::Value;

use super::checks::verified;
use super::{Outcome, Scratch};
use crate::backup::{self, keys_path};
use crate::commands::store::restore;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::keys::{LOG, MASTER, MASTER_OLD};
use crate::place::PlaceOptions;

/// Makes a backup of the scratch store, restores it, and verifies it.
pub(super) fn of_scratch(scratch: &mut Scratch) -> Result<Outcome, Failure> {
    scratch.sign()?;
    let place = scratch.place()?;
    let records = verified(place)?.1;
    let file = scratch.path().join("backup.db");
    let mut quiet = |_| {};
    let made = backup::backup(
        &place.backend,
        &place.folder,
        &file,
        true,
        backup::Writer::Command,
        &mut quiet,
    );
    let made = place.runtime.block_on(made)?;
    let copied = format!("{} records", made.signed);
    if copied != records {
        return Ok(Outcome::Broken(format!("{copied} of {records}")));
    }
    let folder = scratch.path().join("restored");
    restored(&file, &folder, scratch.options(), made.signed)
}

/// Restores the newest backup of the real store, from a file or a folder of them, and verifies it. Neither the backup nor the real store
/// is touched.
pub(super) fn newest(
    scratch: &Scratch,
    options: &PlaceOptions,
    from: &Path,
) -> Result<Outcome, Failure> {
    let file = if from.is_dir() {
        let Some(newest) = newest_file(from)? else {
            let folder = from.display();
            return Ok(Outcome::Broken(format!("{folder} has no backup (*.db)")));
        };
        newest
    } else {
        from.to_owned()
    };
    let folder = scratch.path().join("restored-backup");
    bring_keys(&file, options, &folder)?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let outcome = restored(&file, &folder, options, 0)?;
    Ok(match outcome {
        Outcome::Held(what) => Outcome::Held(format!("{name}: {what}")),
        Outcome::Broken(what) => Outcome::Broken(format!("{name}: {what}")),
        Outcome::NotChecked(what) => Outcome::NotChecked(format!("{name}: {what}")),
    })
}

/// The newest file in a folder that has the name of a backup.
fn newest_file(folder: &Path) -> Result<Option<PathBuf>, Failure> {
    let unreadable = |error| Failure::unreadable(folder.display(), error);
    let mut newest: Option<(SystemTime, PathBuf)> = None;
    for found in fs::read_dir(folder).map_err(unreadable)? {
        let found = found.map_err(unreadable)?;
        let path = found.path();
        let kept = found.metadata().map_err(unreadable)?;
        if kept.is_file() && path.extension().is_some_and(|end| end == "db") {
            let own = (kept.modified().map_err(unreadable)?, path);
            if newest.as_ref().is_none_or(|newest| own > *newest) {
                newest = Some(own);
            }
        }
    }
    Ok(newest.map(|(_, path)| path))
}

/// Copies the keys of the real folder, if the backup has none beside it.
fn bring_keys(file: &Path, options: &PlaceOptions, to: &Path) -> Result<(), Failure> {
    let (data, _) = options.names()?;
    if keys_path(file).is_file() || !data.is_dir() {
        return Ok(());
    }
    let (real, scratch) = (Folder::existing(data)?, Folder::make(to.to_owned())?);
    for name in [MASTER, MASTER_OLD, LOG] {
        if let Some(secret) = real.read_secret(name)? {
            scratch.write_secret(name, &secret)?;
        }
    }
    Ok(())
}

/// Restores a backup into a folder of the drill and verifies what is there then. It has at least so many records.
fn restored(
    file: &Path,
    folder: &Path,
    options: &PlaceOptions,
    records_min: u64,
) -> Result<Outcome, Failure> {
    let store = format!("sqlite:{}", folder.join("countersign.db").display());
    let options = options.with(vec![
        Given::flag("store.data", "drill", folder.display().to_string()),
        Given::flag("store.url", "drill", store),
        Given::flag("log.copies", "drill", Vec::<Value>::new()),
    ])?;
    let records = match restore::into_empty(file, &options) {
        Ok(records) => records,
        Err(failure) => {
            let error = format!("{:#}", failure.error);
            return Ok(Outcome::Broken(format!("it cannot be restored: {error}")));
        }
    };
    if records < records_min {
        return Ok(Outcome::Broken(format!(
            "{records} of {records_min} records were restored"
        )));
    }
    let (is_valid, what) = verified(&options.open()?)?;
    Ok(if is_valid {
        Outcome::Held(format!("{what} restored"))
    } else {
        Outcome::Broken(what)
    })
}
