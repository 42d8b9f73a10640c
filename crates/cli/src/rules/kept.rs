//! Versions of rules that were in force once: `rules/NAME/DIGEST.toml` in the data folder, or `.json` for rules that came from no file. The
//! name is the digest of the bytes, so a file that was changed no longer matches its name. The version's label is beside it, in
//! `DIGEST.label`; it is for people, and nothing rests on it.

use std::borrow::Cow;
use std::fs;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use countersign::contract::Digest;
use countersign_commerce::rulebook::RuleText;
use serde_json::Value;

use super::{Known, Origin, Version};
use crate::failure::Failure;
use crate::folder::Folder;

/// Folder of kept rules in the data folder.
const FOLDER: &str = "rules";

/// Maximum size of a file of rules; a larger one was not written by this program.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Maximum length of a label; a longer one was not written by this program.
const LABEL_BYTES_MAX: usize = 64;

/// A kept file, by its name; its content has not been read yet.
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) digest: Digest,
    is_toml: bool,
    path: PathBuf,
}

/// Outcome of keeping a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// The version was kept already.
    Already,
    /// The version is kept now.
    Now,
    /// Another content was kept under its name, and was replaced.
    Anew,
}

/// The files that are kept, in the order of their names.
pub(crate) fn files(data: &Folder) -> Result<Vec<File>, Failure> {
    let mut files = Vec::new();
    for area in entries(&data.file(FOLDER))? {
        for path in entries(&area)? {
            let (Some(name), Some(stem)) = (text(area.file_name()), text(path.file_stem())) else {
                continue;
            };
            let is_toml = match text(path.extension()) {
                Some("toml") => true,
                Some("json") => false,
                Some(_) | None => continue,
            };
            // What a crash left half written has another name.
            if let Ok(digest) = format!("sha256:{stem}").parse() {
                let name = name.to_owned();
                files.push(File {
                    name,
                    digest,
                    is_toml,
                    path,
                });
            }
        }
    }
    Ok(files)
}

impl File {
    /// The version that it is with a way to read its data, or why it cannot be used.
    pub(super) fn read(self) -> Result<(Version, impl FnOnce() -> Value + Send + 'static), String> {
        let text = self.checked()?;
        let (name, is_toml, data) = (self.name.clone(), self.is_toml, text.clone());
        let data = move || {
            if is_toml {
                RuleText::new(&name, "", Cow::Owned(data)).data()
            } else {
                serde_json::from_str(&data).unwrap_or_default()
            }
        };
        let version = Version {
            label: self.label(),
            name: self.name,
            digest: self.digest,
            is_in_force: false,
            origin: Origin::Kept,
            file: Some(text),
        };
        Ok((version, data))
    }

    /// Checks the digest as [`checked`](Self::checked) does, and that this program can still use the rules.
    pub(crate) fn usable(&self) -> Result<(), String> {
        let text = self.checked()?;
        if !self.is_toml {
            return Ok(());
        }
        let text = RuleText::new(&self.name, "kept", Cow::Owned(text));
        text.check().map_err(|error| {
            let path = self.path.display();
            format!("the kept rules {path} cannot be used by this program: {error}")
        })
    }

    fn label(&self) -> Option<String> {
        let label = bounded(&self.path.with_extension("label")).ok()?;
        let label = label.trim();
        let is_ours = !label.is_empty()
            && label.len() <= LABEL_BYTES_MAX
            && !label.chars().any(char::is_control);
        is_ours.then(|| label.to_owned())
    }

    /// Reads the file. Fails if its digest is not its name, because the file is damaged.
    fn checked(&self) -> Result<String, String> {
        let path = self.path.display();
        let text = bounded(&self.path).map_err(|error| format!("cannot read {path}: {error}"))?;
        if Digest::of_bytes(text.as_bytes()) == self.digest {
            return Ok(text);
        }
        Err(format!(
            "the kept rules {path} are damaged: their digest is not their name"
        ))
    }
}

/// Keeps a version, durably; one that is there stays as it is.
pub(super) fn keep(data: &Folder, version: &Version, known: &Known) -> Result<Kept, Failure> {
    let ending = if version.file.is_some() {
        "toml"
    } else {
        "json"
    };
    let digits = version.digest.to_string();
    let digits = digits.trim_start_matches("sha256:");
    let area = data.subfolder(FOLDER)?.subfolder(&version.name)?;
    let name = format!("{digits}.{ending}");
    let kept = match bounded(&area.file(&name)) {
        Ok(text) if Digest::of_bytes(text.as_bytes()) == version.digest => {
            return Ok(Kept::Already);
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Kept::Now,
        Ok(_) | Err(_) => Kept::Anew,
    };
    if let Some(label) = &version.label {
        area.write(&format!("{digits}.label"), label, 0o600)?;
    }
    area.write(&name, &known.text(version)?, 0o600)?;
    Ok(kept)
}

fn bounded(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let file = fs::File::open(path)?;
    file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// Lists the files in a folder by name; empty if there is no folder.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let listed = match fs::read_dir(folder) {
        Ok(listed) => listed,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(Failure::unreadable(folder.display(), error)),
    };
    let mut paths = Vec::new();
    for entry in listed {
        let entry = entry.map_err(|error| Failure::unreadable(folder.display(), error))?;
        paths.push(entry.path());
    }
    paths.sort();
    Ok(paths)
}

fn text(name: Option<&std::ffi::OsStr>) -> Option<&str> {
    name.and_then(std::ffi::OsStr::to_str)
}
