//! A server with a past: its time of day is behind, and is moved up while calls are made.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// The time of day of a server, by the library `libfaketime`. Durations stay those of the machine.
pub(crate) struct Past {
    library: PathBuf,
    folder: TempDir,
}

impl Past {
    /// A past of this length. `None` if the library is not installed; `cargo xtask screens` installs it.
    pub(crate) fn of_seconds(seconds: u64) -> Option<Self> {
        let places = std::fs::read_dir("/usr/lib").ok()?;
        let mut places =
            places.map(|place| place.unwrap().path().join("faketime/libfaketimeMT.so.1"));
        let past = Self {
            library: places.find(|path| path.is_file())?,
            folder: tempfile::tempdir().unwrap(),
        };
        past.go(seconds);
        Some(past)
    }

    /// Sets the time of day to so many seconds ago. The server reads the file whenever it looks at its clock, so it is written whole.
    pub(crate) fn go(&self, seconds: u64) {
        let new = self.folder.path().join("new");
        std::fs::write(&new, format!("-{seconds}\n")).unwrap();
        std::fs::rename(&new, self.file()).unwrap();
    }

    /// Gives a program this time of day.
    pub(crate) fn apply(&self, program: &mut Command) {
        program
            .env("LD_PRELOAD", &self.library)
            .env("FAKETIME_TIMESTAMP_FILE", self.file())
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    }

    fn file(&self) -> PathBuf {
        Path::new(self.folder.path()).join("offset")
    }
}
