//! The data folder: where the store and its keys are, and how files in it are written.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::failure::Failure;

/// Mode of a file that only its owner may read.
const SECRET_MODE: u32 = 0o600;

/// A folder that is there.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The platform's data folder.
    pub(crate) fn usual() -> Result<PathBuf, Failure> {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let base = set("XDG_DATA_HOME").map(PathBuf::from);
        let base = base.filter(|path| path.is_absolute()).or_else(|| {
            let home = set("HOME").map(PathBuf::from)?;
            Some(home.join(".local/share"))
        });
        let base = base.ok_or_else(|| {
            Failure::new("no home folder for the data").hint("name a data folder with --data")
        })?;
        Ok(base.join("countersign"))
    }

    /// Makes the folder if it is missing, with access for the owner only.
    pub(crate) fn make(path: PathBuf) -> Result<Self, Failure> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(|error| about(&path, "create the folder", error))?;
        Ok(Self { path })
    }

    /// The folder, where there is one.
    pub(crate) fn existing(path: PathBuf) -> Result<Self, Failure> {
        if path.is_dir() {
            return Ok(Self { path });
        }
        Err(
            Failure::new(format!("the data folder {} does not exist", path.display()))
                .hint("the first `countersign call` or `countersign serve` creates it; --data names another one"),
        )
    }

    /// A folder in it, made where it is missing.
    pub(crate) fn subfolder(&self, name: &str) -> Result<Self, Failure> {
        let path = self.file(name);
        if !path.is_dir() {
            let folder = Self::make(path.clone())?;
            self.sync().map_err(|error| about(&path, "create", error))?;
            return Ok(folder);
        }
        Ok(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Reads a file; `None` if it does not exist.
    pub(crate) fn read(&self, name: &str) -> Result<Option<String>, Failure> {
        let path = self.file(name);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Failure::unreadable(path.display(), error)),
        }
    }

    /// Reads a secret file; fails if other accounts could read it.
    pub(crate) fn read_secret(&self, name: &str) -> Result<Option<Zeroizing<String>>, Failure> {
        if let Some(mode) = self.mode(name)?
            && mode & 0o077 != 0
        {
            let path = self.file(name);
            let message = format!(
                "other accounts can read {} (mode {mode:04o})",
                path.display()
            );
            return Err(Failure::new(message).hint(format!("run `chmod 600 {}`", path.display())));
        }
        Ok(self.read(name)?.map(Zeroizing::new))
    }

    /// Returns the permissions of a file; `None` if it does not exist.
    pub(crate) fn mode(&self, name: &str) -> Result<Option<u32>, Failure> {
        let path = self.file(name);
        match fs::metadata(&path) {
            Ok(metadata) => Ok(Some(metadata.mode() & 0o7777)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Failure::unreadable(path.display(), error)),
        }
    }

    /// Writes a file whole or not at all, also where the machine stops in between.
    pub(crate) fn write(&self, name: &str, text: &str, mode: u32) -> Result<(), Failure> {
        let path = self.file(name);
        let temporary = self.file(&format!(".{name}.{}", std::process::id()));
        let written = write_new(&temporary, text, mode)
            .and_then(|()| fs::rename(&temporary, &path))
            .and_then(|()| self.sync());
        written.map_err(|error| {
            // What is left of it is of no use; that it cannot be removed either changes nothing.
            let _ = fs::remove_file(&temporary);
            about(&path, "write", error)
        })
    }

    /// Writes a file whole or not at all, as far as processes see it; the disk has it a little later.
    pub(crate) fn write_soon(&self, name: &str, text: &str, mode: u32) -> Result<(), Failure> {
        let path = self.file(name);
        let temporary = self.file(&format!(".{name}.{}", std::process::id()));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(mode);
        let written = options
            .open(&temporary)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .and_then(|()| fs::rename(&temporary, &path));
        written.map_err(|error| {
            let _ = fs::remove_file(&temporary);
            about(&path, "write", error)
        })
    }

    pub(crate) fn write_secret(&self, name: &str, text: &str) -> Result<(), Failure> {
        self.write(name, text, SECRET_MODE)
    }

    /// Removes a file; one that is not there is fine.
    pub(crate) fn remove(&self, name: &str) -> Result<(), Failure> {
        let path = self.file(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(about(&path, "remove", error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Gives a file another name, in the place of one that has it.
    pub(crate) fn rename(&self, from: &str, to: &str) -> Result<(), Failure> {
        let renamed = fs::rename(self.file(from), self.file(to)).and_then(|()| self.sync());
        renamed.map_err(|error| about(&self.file(from), "rename", error))
    }

    /// A name in a folder is durable when the folder is.
    fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}

fn write_new(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(mode);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn about(path: &Path, what: &str, error: io::Error) -> Failure {
    let context = format!("cannot {what} {}", path.display());
    anyhow::Error::new(error).context(context).into()
}
