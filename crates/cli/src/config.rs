//! The configuration of a command: `countersign.toml`, the environment and the flags, joined.
//!
//! Every command reads the same file, so that the server and the commands beside it use the same store, the same keys and the same tools.
//! [`parts`] turns settings into options of the code; nothing else does.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use countersign::contract::Digest;
use countersign_config::{
    Document, FILE_BYTES_MAX, FILE_NAME, Given, Loaded, Mistake, Mistakes, document,
};

use crate::failure::Failure;
use crate::terminal::Terminal;

pub(crate) mod lenient;
pub(crate) mod parts;
pub(crate) mod secret;

/// Environment variables that every command reads.
pub(crate) const DATA_VARIABLE: &str = "COUNTERSIGN_DATA";
pub(crate) const STORE_VARIABLE: &str = "COUNTERSIGN_STORE";
pub(crate) const MASTER_VARIABLE: &str = "COUNTERSIGN_MASTER_KEY";
pub(crate) const MASTER_OLD_VARIABLE: &str = "COUNTERSIGN_MASTER_KEY_OLD";

/// Reports that the file in the working folder is used, which no option names.
pub(crate) fn announce(terminal: &mut Terminal) -> std::io::Result<()> {
    terminal.say(format_args!("note: the configuration is {FILE_NAME}"))
}

/// The path of the named file, or else of the one in the working folder; `None` if there is neither.
pub(crate) fn path(named: Option<&Path>) -> Option<&Path> {
    named.or_else(|| Some(Path::new(FILE_NAME)).filter(|path| path.exists()))
}

/// Reads a file, or says everything that is wrong with it.
pub(crate) fn read(path: &Path) -> Result<Document, Failure> {
    let texts = Texts::read(path).map_err(|error| {
        Failure::unreadable(path.display(), error)
            .hint("create one with `countersign init`, or name another with --config")
    })?;
    texts.document(path).map_err(wrong)
}

/// The texts of a configuration: of the file itself, and of those that it includes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Texts {
    own: String,
    /// Included files, each with its text or the reason for which it cannot be read.
    included: BTreeMap<PathBuf, Result<String, String>>,
}

impl Texts {
    /// Reads all of them.
    pub(crate) fn read(path: &Path) -> std::io::Result<Self> {
        let own = text(path)?;
        let paths = document::includes(path, &own).into_iter();
        let included = paths.map(|path| {
            let text = text(&path).map_err(|error| error.to_string());
            (path, text)
        });
        Ok(Self {
            included: included.collect(),
            own,
        })
    }

    /// The same files, with another text of the file itself.
    fn with_own(&self, own: String) -> Self {
        Self {
            own,
            included: self.included.clone(),
        }
    }

    /// Returns the text of the file itself.
    pub(crate) fn own(&self) -> &str {
        &self.own
    }

    /// The document that they make.
    pub(crate) fn document(&self, path: &Path) -> Result<Document, Mistakes> {
        Document::parse_with(path, &self.own, &mut |path| self.text_of(path))
    }

    /// All mistakes, and the document that is left without them, if there is one.
    pub(crate) fn examine(&self, path: &Path) -> (Option<Document>, Vec<Mistake>) {
        Document::examine(path, &self.own, &mut |path| self.text_of(path))
    }

    /// The text of an included file.
    fn text_of(&self, path: &Path) -> std::io::Result<String> {
        let text = self.included.get(path).cloned();
        let text = text.unwrap_or_else(|| Err("the file did not exist".to_owned()));
        text.map_err(std::io::Error::other)
    }

    /// SHA-256 of the file; of all of them, one after the other, where it includes others.
    pub(crate) fn digest(&self) -> Digest {
        let mut all = self.own.clone();
        for text in self.included.values().flatten() {
            all.push_str(text);
        }
        Digest::of_bytes(all.as_bytes())
    }
}

/// Reads a file. One byte more than allowed is read, so that a file that is too long can be distinguished from one that just fits.
fn text(path: &Path) -> std::io::Result<String> {
    // A pipe would block until somebody writes.
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    let bound = FILE_BYTES_MAX as u64 + 1;
    File::open(path)?.take(bound).read_to_string(&mut text)?;
    Ok(text)
}

/// Mistakes as a failure: a line each.
pub(crate) fn wrong(mistakes: Mistakes) -> Failure {
    let hint =
        "docs/configuration.md lists every key; `countersign lint` checks the whole configuration";
    let Mistakes(mut mistakes) = mistakes;
    if mistakes.len() == 1
        && let Some(only) = mistakes.pop()
    {
        return Failure::new(only.to_string()).hint(hint);
    }
    let file = mistakes.first().map(|mistake| mistake.file.clone());
    let message = format!(
        "{} has {} mistakes",
        file.unwrap_or_default(),
        mistakes.len()
    );
    let lines = mistakes.iter().map(ToString::to_string).collect();
    Failure::new(message).lines(lines).hint(hint)
}

/// Returns the settings of the store and its keys that the environment gives.
pub(crate) fn environment() -> Result<Vec<Given>, Failure> {
    let mut given = Vec::new();
    for (key, name) in [("store.data", DATA_VARIABLE), ("store.url", STORE_VARIABLE)] {
        given.extend(variable(key, name)?);
    }
    // The variable has the key itself, so the setting is where it is.
    for (key, name) in [
        ("keys.master", MASTER_VARIABLE),
        ("keys.master_old", MASTER_OLD_VARIABLE),
    ] {
        if std::env::var_os(name).is_some() {
            given.push(Given::variable(key, name, &format!("env:{name}")));
        }
    }
    Ok(given)
}

/// A variable that is set to something.
pub(crate) fn variable(key: &'static str, name: &str) -> Result<Option<Given>, Failure> {
    let Some(value) = std::env::var_os(name).filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let text = value
        .into_string()
        .map_err(|_| Failure::new(format!("{name} is not UTF-8")))?;
    Ok(Some(Given::variable(key, name, &text)))
}

/// A flag whose value is a path.
pub(crate) fn path_flag(
    key: &'static str,
    name: &str,
    path: Option<&PathBuf>,
) -> Result<Option<Given>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let text = path
        .to_str()
        .ok_or_else(|| Failure::new(format!("the path of {name} is not UTF-8")))?;
    Ok(Some(Given::flag(key, name, text)))
}

/// Joins the layers.
pub(crate) fn load(document: Option<Document>, given: Vec<Given>) -> Result<Loaded, Failure> {
    Loaded::new(document, given).map_err(wrong)
}
