//! A backup of a place: the operation, for the command alone and for a server that is asked for it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use countersign_gateway::operator::socket::account;
use countersign_store::sqlite::{BackupError, BackupProgress, BackupReport};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::backend::Backend;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::keys::{LOG, MASTER};

/// A finished backup, as the command tells it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Made {
    /// Path of the backup.
    pub(crate) file: PathBuf,
    /// Size of the backup in bytes.
    pub(crate) bytes: u64,
    /// Number of records in the backup.
    pub(crate) records: u64,
    /// Number of records under its newest signed checkpoint.
    pub(crate) signed: u64,
    /// The installation that it belongs to.
    pub(crate) installation: String,
    /// The file with the keys, where one was asked for.
    pub(crate) keys: Option<PathBuf>,
}

/// The keys that a store cannot be read or continued without, as a file beside its backup.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyFile {
    /// The installation that they belong to.
    pub(crate) installation: String,
    /// Content of `master.key`; `None` if the environment provides the key.
    pub(crate) master: Option<String>,
    /// Content of `log.key`.
    pub(crate) log: String,
}

/// Process that writes a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writer {
    /// The command itself.
    Command,
    /// The server that the command has asked, under the server's account.
    Server,
}

/// Writes one moment of a store to a new file and verifies it, while calls go on. `to` is absolute where a server does it.
pub(crate) async fn backup(
    backend: &Backend,
    folder: &Folder,
    to: &Path,
    with_keys: bool,
    writer: Writer,
    progress: &mut (dyn FnMut(BackupProgress) + Send),
) -> Result<Made, Failure> {
    let store = match backend {
        Backend::Sqlite(store) => store,
        Backend::Postgres(_) => return Err(of_postgres()),
        Backend::Memory(_) => {
            return Err(Failure::new("a store in memory cannot be backed up")
                .hint("use a SQLite store: --store sqlite:PATH"));
        }
    };
    let keys = keys_path(to);
    if with_keys && keys.exists() {
        return Err(exists(&keys));
    }
    let made = store.backup(to, progress).await;
    let report = made.map_err(|error| failed(error, to, writer, account().ok()))?;
    if with_keys {
        write_keys(folder, &keys, &report)?;
    }
    Ok(Made {
        file: to.to_owned(),
        bytes: report.bytes,
        records: report.records,
        signed: report.signed,
        installation: report.installation.id,
        keys: with_keys.then_some(keys),
    })
}

/// Returns the path of the file with a backup's keys.
pub(crate) fn keys_path(backup: &Path) -> PathBuf {
    let mut name = backup.as_os_str().to_owned();
    name.push(".keys");
    name.into()
}

fn write_keys(folder: &Folder, path: &Path, report: &BackupReport) -> Result<(), Failure> {
    let read = |name| folder.read_secret(name);
    let log = read(LOG)?.ok_or_else(|| Failure::new("log.key is missing"))?;
    let keys = KeyFile {
        installation: report.installation.id.clone(),
        master: read(MASTER)?.map(|text| (*text).clone()),
        log: (*log).clone(),
    };
    let text = Zeroizing::new(serde_json::to_string_pretty(&keys)?);
    let parent = path.parent().filter(|path| !path.as_os_str().is_empty());
    let beside = Folder::existing(parent.unwrap_or(Path::new(".")).to_owned())?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    beside.write_secret(&name, &text)
}

fn of_postgres() -> Failure {
    Failure::new("this command backs up SQLite stores only").hint(
        "back up PostgreSQL with `pg_dump --format=custom` while the server runs; after `pg_restore`, run `countersign store restore`; see docs/operating.md",
    )
}

fn exists(path: &Path) -> Failure {
    Failure::new(format!("{} already exists", path.display()))
        .hint("choose another name; a backup never overwrites a file")
}

/// Builds the failure of a backup. A folder that the account may not write to gets a hint that names the account.
fn failed(error: BackupError, to: &Path, writer: Writer, uid: Option<u32>) -> Failure {
    match error {
        BackupError::Io { ref source, .. } if source.kind() == ErrorKind::PermissionDenied => {
            let folder = to.parent().unwrap_or(Path::new("/")).display();
            let uid = uid.map_or_else(String::new, |uid| format!(" (user id {uid})"));
            let hint = match writer {
                Writer::Server => format!(
                    "the running server writes the file, under its own account{uid}: name a folder that this account may write to, such as one in the data folder, \
                     and copy the file to {folder} afterwards"
                ),
                Writer::Command => {
                    format!("this account{uid} may not write to {folder}: name another folder")
                }
            };
            let error = anyhow::Error::new(error);
            Failure::from(error.context(format!("{} was not written", to.display()))).hint(hint)
        }
        BackupError::Exists { path } => exists(&path),
        BackupError::Damaged { .. }
        | BackupError::Rows(_)
        | BackupError::LogKey(_)
        | BackupError::Checkpoint(_) => {
            let error = anyhow::Error::new(error);
            let error = error.context(format!("{} was not written", to.display()));
            Failure::from(error)
                .hint("run `countersign verify --all` and `countersign doctor` to find the cause")
                .not_verified()
        }
        BackupError::Io { .. } | BackupError::NoInstallation | BackupError::Store(_) => {
            let error = anyhow::Error::new(error);
            Failure::from(error.context(format!("{} was not written", to.display())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server writes under its own account, which the hint names; root's own folder is not that account's.
    #[test]
    fn a_folder_that_the_server_may_not_write_to_is_explained() {
        let hint = |writer, kind: ErrorKind| {
            let error = BackupError::Io {
                path: "/root/backup.db.part".into(),
                source: kind.into(),
            };
            failed(error, Path::new("/root/backup.db"), writer, Some(990)).hint
        };
        let told = hint(Writer::Server, ErrorKind::PermissionDenied).unwrap();
        assert!(
            told.starts_with(
                "the running server writes the file, under its own account (user id 990)"
            ) && told.contains("copy the file to /root afterwards"),
            "{told}"
        );
        let told = hint(Writer::Command, ErrorKind::PermissionDenied).unwrap();
        assert!(told.contains("may not write to /root"), "{told}");
        assert_eq!(hint(Writer::Server, ErrorKind::StorageFull), None);
    }
}
