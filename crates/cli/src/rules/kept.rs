//! What was in force once: `rules/NAME/DIGEST.toml` in the data folder, or `.json` where the rules came from no
//! file. The name is the digest of the bytes, so a file that was changed is not the one that it says. The label that
//! it had is beside it, in `DIGEST.label`; it is for people, and nothing rests on it.

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

/// Where they are in the data folder.
const FOLDER: &str = "rules";

/// Larger ones are not ours.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Longer labels are not ours.
const LABEL_BYTES_MAX: usize = 64;

/// A file that is kept, by its name; nobody has looked into it yet.
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) digest: Digest,
    is_toml: bool,
    path: PathBuf,
}

/// What became of a version that is to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// It was there.
    Already,
    /// It is there now.
    Now,
    /// Something else was there under its name.
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

    /// Whether this program can still use it, after [`checked`](Self::checked).
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

    /// What is in it, where that is what its name says.
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

/// What is in a folder, by name; nothing where there is none.
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
