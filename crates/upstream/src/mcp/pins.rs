//! Pins: the approved definitions of an MCP server's tools, as a set with one digest, in a file beside the configuration. Later lists of
//! the server are compared with them.

mod difference;

use std::collections::BTreeMap;
use std::io::{self, Write as _};
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

    /// Approves the definitions of one server: the file is read again, changed and put in its place at once, so that no other
    /// approval is lost.
    pub fn approve(folder: &Path, upstream: &str, pin: Pin) -> Result<Self, PinsError> {
        let mut pins = Self::read(folder)?;
        pins.upstreams.insert(upstream.to_owned(), pin);
        let path = folder.join(FILE);
        let written = pins.write(folder);
        let failed = |source| PinsError::Io {
            path,
            what: "written",
            source,
        };
        written.map_err(failed)?;
        Ok(pins)
    }

    fn write(&self, folder: &Path) -> io::Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        let own = folder.join(format!(".{FILE}.{}", std::process::id()));
        let mut file = std::fs::File::create(&own)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(own, folder.join(FILE))
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
}
