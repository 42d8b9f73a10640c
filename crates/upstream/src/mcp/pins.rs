//! Pins: the approved definitions of an MCP server's tools, as a set with one digest, in a file beside the configuration. Later lists of
//! the server are compared with them.

mod difference;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use countersign_contract::Digest;
use serde::{Deserialize, Serialize};

pub use difference::{Change, Difference, compare};

use super::definition::Definition;

/// Name of the file, beside the configuration.
pub const FILE: &str = "countersign.lock.json";

/// The approved definitions of every server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pins {
    /// Pins by name of the upstream.
    #[serde(default)]
    pub upstreams: BTreeMap<String, Pin>,
}

/// The approved definitions of one server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// Digest of the set: of the names and the digests of all definitions.
    pub digest: Digest,
    /// Definitions by name at the server.
    pub tools: BTreeMap<String, Definition>,
}

/// The file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PinsError {
    /// The file cannot be read or written, usually because of its permissions.
    #[error("{path:?} cannot be {what}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// `read` or `written`.
        what: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// The file is not a list of approved tools, usually because it was damaged or edited.
    #[error(
        "{path:?} is not a list of approved tools: {source}; restore it, or remove it and approve the tools again"
    )]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: serde_json::Error,
    },
    /// A definition in the file does not match its digest, because the file was edited.
    #[error(
        "{path:?}: the definitions of {upstream} are not those that were approved; restore the file, or approve \
         them again"
    )]
    Changed {
        /// The file.
        path: PathBuf,
        /// The upstream.
        upstream: String,
    },
}

impl Pin {
    /// The pin of a set of definitions.
    pub fn of(definitions: impl IntoIterator<Item = Definition>) -> Self {
        let named = definitions.into_iter().map(|own| (own.name.clone(), own));
        let tools: BTreeMap<String, Definition> = named.collect();
        Self {
            digest: digest_of(&tools),
            tools,
        }
    }
}

fn digest_of(tools: &BTreeMap<String, Definition>) -> Digest {
    let digests: BTreeMap<&str, String> = tools
        .iter()
        .map(|(name, own)| (name.as_str(), own.digest().to_string()))
        .collect();
    let written = serde_json::to_string(&digests).unwrap_or_default();
    Digest::of_bytes(written.as_bytes())
}

impl Pins {
    /// Reads the file of a folder. There is no file until something was approved, and then the result is empty.
    pub fn read(folder: &Path) -> Result<Self, PinsError> {
        let path = folder.join(FILE);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => {
                let what = "read";
                return Err(PinsError::Io { path, what, source });
            }
        };
        let pins: Self = match serde_json::from_str(&text) {
            Ok(pins) => pins,
            Err(source) => return Err(PinsError::Syntax { path, source }),
        };
        for (upstream, pin) in &pins.upstreams {
            if digest_of(&pin.tools) != pin.digest {
                let upstream = upstream.clone();
                return Err(PinsError::Changed { path, upstream });
            }
        }
        Ok(pins)
    }

    /// Approves the definitions of one server. The file is locked, read again, changed and put in its place at once, so that no approval
    /// of another thread or process is lost. It waits for those that have the lock.
    pub fn approve(folder: &Path, upstream: &str, pin: Pin) -> Result<Self, PinsError> {
        Self::change(folder, |pins| {
            pins.upstreams.insert(upstream.to_owned(), pin);
        })
    }

    /// Approves the first definitions of a server. An approval that the file has already stays in force.
    pub fn approve_first(folder: &Path, upstream: &str, pin: Pin) -> Result<Self, PinsError> {
        Self::change(folder, |pins| {
            pins.upstreams.entry(upstream.to_owned()).or_insert(pin);
        })
    }

    fn change(folder: &Path, change: impl FnOnce(&mut Self)) -> Result<Self, PinsError> {
        let failed = |source| PinsError::Io {
            path: folder.join(FILE),
            what: "written",
            source,
        };
        let next = Next::lock(folder).map_err(failed)?;
        let mut pins = Self::read(folder)?;
        change(&mut pins);
        let mut text = serde_json::to_string_pretty(&pins).map_err(|error| failed(error.into()))?;
        text.push('\n');
        next.put_in_place(&text).map_err(failed)?;
        Ok(pins)
    }
}

/// The next version of the file, locked. It is the lock and the new content in one, so that nothing stays beside the configuration: it is
/// renamed to the file, or removed.
struct Next<'a> {
    folder: &'a Path,
    path: PathBuf,
    file: File,
}

impl<'a> Next<'a> {
    /// Waits until no other writer has the lock. It ends with the process in any case.
    fn lock(folder: &'a Path) -> io::Result<Self> {
        let path = folder.join(format!(".{FILE}.next"));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        loop {
            let file = options.open(&path)?;
            file.lock()?;
            // Another writer may have renamed or removed it before the lock was free: then the name is that of another file, or of none.
            if is_named(&file, &path)? {
                return Ok(Self { folder, path, file });
            }
        }
    }

    /// Replaces the file by this text, durably.
    fn put_in_place(mut self, text: &str) -> io::Result<()> {
        // A process that was killed may have left something in it.
        self.file.set_len(0)?;
        self.file.write_all(text.as_bytes())?;
        self.file.sync_all()?;
        std::fs::rename(&self.path, self.folder.join(FILE))?;
        // A name in a folder is durable when the folder is. The current one may have no name.
        let is_here = self.folder.as_os_str().is_empty();
        let folder = if is_here { Path::new(".") } else { self.folder };
        File::open(folder)?.sync_all()
    }
}

impl Drop for Next<'_> {
    fn drop(&mut self) {
        // Only the holder of the lock removes it; after the renaming the name may be that of another writer's file.
        if is_named(&self.file, &self.path).unwrap_or(false) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// True if the path is that of this open file.
fn is_named(file: &File, path: &Path) -> io::Result<bool> {
    let own = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (own.dev(), own.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(name: &str) -> Definition {
        let given = json!({"name": name, "inputSchema": {"type": "object"}});
        serde_json::from_value(given).unwrap()
    }

    /// A pin is kept with its digest, and a file that was edited is not believed.
    #[test]
    fn what_was_approved_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Pins::read(folder.path()).unwrap(), Pins::default());
        let pin = Pin::of([definition("b"), definition("a")]);
        let pins = Pins::approve(folder.path(), "fs", pin.clone()).unwrap();
        assert_eq!(Pins::read(folder.path()).unwrap(), pins);
        let more = Pins::approve(folder.path(), "crm", Pin::of([definition("c")])).unwrap();
        assert_eq!(more.upstreams.get("fs"), Some(&pin));

        let path = folder.path().join(FILE);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("\"object\"", "\"array\"")).unwrap();
        let error = Pins::read(folder.path()).unwrap_err();
        assert!(matches!(error, PinsError::Changed { .. }), "{error}");
        std::fs::write(&path, "{").unwrap();
        let error = Pins::read(folder.path()).unwrap_err();
        assert!(matches!(error, PinsError::Syntax { .. }), "{error}");
    }

    /// Names the folder in which this program, started once more, approves servers.
    const FOLDER: &str = "COUNTERSIGN_TEST_PINS";

    /// Approvals of several threads and processes at once are all kept, and nothing else is left in the folder.
    #[test]
    fn no_approval_is_lost_to_another() {
        const THREADS: usize = 4;
        const EACH: usize = 5;
        let approve = |folder: &Path, process: &str| {
            std::thread::scope(|scope| {
                for thread in 0..THREADS {
                    scope.spawn(move || {
                        for turn in 0..EACH {
                            let name = format!("{process}-{thread}-{turn}");
                            Pins::approve(folder, &name, Pin::of([definition("a")])).unwrap();
                        }
                    });
                }
            });
        };
        if let Some(folder) = std::env::var_os(FOLDER) {
            return approve(Path::new(&folder), &std::process::id().to_string());
        }
        let folder = tempfile::tempdir().unwrap();
        let start = |_| {
            std::process::Command::new(std::env::current_exe().unwrap())
                .args([
                    "--exact",
                    "mcp::pins::tests::no_approval_is_lost_to_another",
                ])
                .env(FOLDER, folder.path())
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        };
        let others: Vec<_> = (0..3).map(start).collect();
        approve(folder.path(), "this");
        for mut other in others {
            assert!(other.wait().unwrap().success());
        }
        let pins = Pins::read(folder.path()).unwrap();
        assert_eq!(pins.upstreams.len(), 4 * THREADS * EACH);
        let left = std::fs::read_dir(folder.path()).unwrap();
        let left: Vec<_> = left.map(|file| file.unwrap().file_name()).collect();
        assert_eq!(left, [FILE]);
    }

    /// A first list does not replace what an operator has approved in the meantime, and a file that cannot be read is left as it is.
    #[test]
    fn a_first_list_replaces_no_approval() {
        let folder = tempfile::tempdir().unwrap();
        let (seen, approved) = (Pin::of([definition("a")]), Pin::of([definition("b")]));
        Pins::approve(folder.path(), "fs", approved.clone()).unwrap();
        let pins = Pins::approve_first(folder.path(), "fs", seen.clone()).unwrap();
        assert_eq!(pins.upstreams.get("fs"), Some(&approved));
        let pins = Pins::approve_first(folder.path(), "crm", seen.clone()).unwrap();
        assert_eq!(pins.upstreams.get("crm"), Some(&seen));

        std::fs::write(folder.path().join(FILE), "{").unwrap();
        let error = Pins::approve(folder.path(), "fs", seen).unwrap_err();
        assert!(matches!(error, PinsError::Syntax { .. }), "{error}");
        let left = std::fs::read_dir(folder.path()).unwrap();
        assert_eq!(left.count(), 1, "what was to be written is removed");
    }
}
