//! A folder of rules: `NAME/LABEL.toml`. The operator expects every file in it to be loaded, so a file in the wrong
//! place or with the wrong name is an error and is never skipped.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::civil::Date;

use super::{AREAS, RuleFiles, RulesError, known};

/// Adds the files of a folder, in the order of their labels.
pub(super) fn add(mut files: RuleFiles, folder: &Path) -> Result<RuleFiles, RulesError> {
    let mut has_any = false;
    for path in entries(folder)? {
        if path.is_dir() {
            files = add_area(files, &path)?;
            has_any = true;
        } else if is_toml(&path) {
            return Err(misnamed(path, "is in the folder of no rule set"));
        }
    }
    if has_any {
        Ok(files)
    } else {
        Err(misnamed(folder.to_owned(), "has no rules"))
    }
}

fn add_area(mut files: RuleFiles, area: &Path) -> Result<RuleFiles, RulesError> {
    let name = area.file_name().unwrap_or_default().to_string_lossy();
    if !AREAS.iter().any(|area| area.name == name) {
        return Err(RulesError::Unknown {
            name: name.into_owned(),
            known: known(),
        });
    }
    let mut has_any = false;
    for path in entries(area)? {
        if !is_toml(&path) {
            continue;
        }
        let Some(label) = label(&path) else {
            return Err(misnamed(path, "is not named after a day"));
        };
        let text = fs::read_to_string(&path).map_err(|source| RulesError::Read {
            path: path.clone(),
            source,
        })?;
        files = files.with(&name, &label, text)?;
        has_any = true;
    }
    if has_any {
        Ok(files)
    } else {
        Err(misnamed(area.to_owned(), "has no rules"))
    }
}

/// True for any spelling of the extension: a `.TOML` file is meant as rules, and is reported.
fn is_toml(path: &Path) -> bool {
    let ending = path.extension();
    ending.is_some_and(|ending| ending.eq_ignore_ascii_case("toml"))
}

/// The name without its extension; `None` if it is not a day. Days sort in the order of their names.
fn label(path: &Path) -> Option<String> {
    let label = path.file_name()?.to_str()?.strip_suffix(".toml")?;
    let day: Date = label.parse().ok()?;
    (day.to_string() == label).then(|| label.to_owned())
}

fn misnamed(path: PathBuf, problem: &'static str) -> RulesError {
    RulesError::Misnamed {
        path,
        problem,
        known: known(),
    }
}

/// The entries of a folder, sorted by name, without hidden ones.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, RulesError> {
    let failed = |source| RulesError::Read {
        path: folder.to_owned(),
        source,
    };
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if !entry.file_name().to_string_lossy().starts_with('.') {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}
