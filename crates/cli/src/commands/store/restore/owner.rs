//! The owner of restored files: the account that owns the folder, also where root restores.

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, lchown};
use std::path::{Path, PathBuf};

use super::file::with_suffix;
use crate::backend::StoreName;
use crate::keys::REPLACED;

/// Account that the files of a place belong to, noted before a restore writes any.
pub(super) struct Owner {
    /// The data folder and, where the store is elsewhere, its files; each with its account.
    roots: Vec<(PathBuf, u32, u32)>,
}

/// Result of giving the files to their owner.
pub(super) enum Given {
    /// Every file had the right owner already.
    Nothing,
    /// This number of files was given to the user id.
    Files { count: u64, uid: u32 },
    /// The system refused; the command does it.
    Refused { command: String },
}

impl Owner {
    /// Notes the owner of the data folder; of a folder that is not there yet, the owner of the one around it.
    pub(super) fn of(data: &Path, store: &StoreName) -> io::Result<Self> {
        let data = std::path::absolute(data)?;
        let mut paths = vec![data.clone()];
        if let StoreName::Sqlite(file) = store {
            let file = std::path::absolute(file)?;
            if !file.starts_with(&data) {
                paths.extend(["", "-wal", "-shm", ".lock"].map(|end| with_suffix(&file, end)));
                paths.push(file.with_file_name(REPLACED));
            }
        }
        let roots = paths.into_iter().filter_map(|path| {
            let folder = if path == data {
                path.as_path()
            } else {
                path.parent()?
            };
            let nearest = folder.ancestors().find_map(|it| fs::metadata(it).ok())?;
            Some((path, nearest.uid(), nearest.gid()))
        });
        Ok(Self {
            roots: roots.collect(),
        })
    }

    /// Gives every file to the owner. Links are not followed, and a file with a second name elsewhere is left alone.
    pub(super) fn give(&self) -> Given {
        let (mut count, mut owner) = (0, 0);
        for (path, uid, gid) in &self.roots {
            owner = *uid;
            match give(path, *uid, *gid, &mut count) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    let command = format!("chown -R {uid}:{gid} {}", path.display());
                    return Given::Refused { command };
                }
                Ok(()) | Err(_) => {}
            }
        }
        if count == 0 {
            return Given::Nothing;
        }
        Given::Files { count, uid: owner }
    }
}

fn give(path: &Path, uid: u32, gid: u32, count: &mut u64) -> io::Result<()> {
    let metadata = fs::symlink_metadata(path)?;
    if metadata.uid() != uid && is_only_here(&metadata) {
        lchown(path, Some(uid), Some(gid))?;
        *count += 1;
    }
    if metadata.is_dir() {
        for entry in fs::read_dir(path)? {
            give(&entry?.path(), uid, gid, count)?;
        }
    }
    Ok(())
}

fn is_only_here(metadata: &Metadata) -> bool {
    metadata.is_dir() || metadata.nlink() == 1
}
