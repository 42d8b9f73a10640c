//! Rule sets at hand: those of the program, those of a named folder, and those that were in force before. A version is written into the
//! data folder before any call uses it, because a folder of rules is edited in place and a program is replaced, and a recorded call has to
//! be computed again after that.

use std::path::PathBuf;

use countersign::contract::{Digest, canonical};
use countersign::rules::Rules;
use countersign::sample::Vat;
use countersign_commerce::knowledge::{self, Library};
use countersign_commerce::rulebook::{RuleFiles, RuleText};
use countersign_config::Given;
use countersign_config::sections::RuleFolders;
use serde_json::Value;

use crate::config;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::terminal::Terminal;

pub(crate) mod brought;
pub(crate) mod kept;

/// More rules than those of the program.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct RuleOptions {
    /// Folder of rules, NAME/YYYY-MM-DD.toml; the newest of each name replaces the built-in one
    #[arg(long = "rules", value_name = "DIR")]
    folder: Option<PathBuf>,

    /// Folder of texts, *.md, for knowledge.search [default: the texts of the shop]
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    knowledge: Option<PathBuf>,
}

/// Every version of every rule set that is at hand.
pub(crate) struct Known {
    pub(crate) rules: Rules,
    /// Versions by name; the last one of each name is in force.
    pub(crate) versions: Vec<Version>,
    /// Problems of kept versions that cannot be used, one sentence each.
    pub(crate) problems: Vec<String>,
}

/// One version of a rule set.
pub(crate) struct Version {
    pub(crate) name: String,
    pub(crate) digest: Digest,
    pub(crate) label: Option<String>,
    pub(crate) is_in_force: bool,
    pub(crate) origin: Origin,
    /// The file as it is; `None` if the digest is of the canonical form of the data.
    file: Option<String>,
}

/// Source of a version, in ascending order of precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// The version was in force once, in this data folder.
    Kept,
    /// The version is part of the program.
    Program,
    /// The version is in the named folder.
    Folder,
}

impl Origin {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Program => "program",
            Self::Folder => "folder",
        }
    }
}

impl RuleOptions {
    /// Returns the options of a configuration.
    pub(crate) fn configured(rules: &RuleFolders) -> Self {
        let RuleFolders { folder, knowledge } = rules.clone();
        Self { folder, knowledge }
    }

    /// Returns the settings that the flags give.
    pub(crate) fn given(&self) -> Result<Vec<Given>, Failure> {
        let folder = config::path_flag("rules.folder", "--rules", self.folder.as_ref())?;
        let knowledge = self.knowledge.as_ref();
        let knowledge = config::path_flag("rules.knowledge", "--knowledge", knowledge)?;
        Ok(folder.into_iter().chain(knowledge).collect())
    }

    /// Returns the options for a folder that was named in another way.
    pub(crate) fn of(folder: Option<PathBuf>) -> Self {
        Self {
            folder,
            knowledge: None,
        }
    }

    /// Texts of a folder that was named in another way.
    pub(crate) fn of_knowledge(folder: PathBuf) -> Self {
        Self {
            folder: None,
            knowledge: Some(folder),
        }
    }

    /// Reads the rules of the program, of the named folder, and of the data folder.
    pub(crate) fn known(&self, data: Option<&Folder>) -> Result<Known, Failure> {
        let program = RuleFiles::embedded()?;
        let of_program = program.files().len();
        let files = match &self.folder {
            None => program,
            Some(folder) => program.folder(folder).map_err(|error| {
                Failure::from(error)
                    .hint("the folder needs files DIR/NAME/YYYY-MM-DD.toml; `countersign rules` lists the names")
            })?,
        };
        let files = match &self.knowledge {
            None => files,
            Some(folder) => files.knowledge(Library::folder(folder).map_err(|error| {
                Failure::from(error).hint("docs/knowledge.md describes the format of a text")
            })?),
        };
        let current = Rules::builder()
            .also(&Vat::rules()?)
            .also(&files.rules()?)
            .build();
        let mut known = Known {
            versions: versions(
                &current,
                files.files(),
                of_program,
                self.knowledge.is_some(),
            ),
            rules: Rules::default(),
            problems: Vec::new(),
        };
        // Those that are kept come first: what comes later is in force.
        let mut rules = Rules::builder();
        for file in data.map_or(Ok(Vec::new()), kept::files)? {
            if known.has(&file.name, file.digest) {
                continue;
            }
            match file.read() {
                Ok((version, data)) => {
                    rules = rules.later(&version.name, version.digest, data);
                    known.versions.push(version);
                }
                Err(problem) => known.problems.push(problem),
            }
        }
        known.rules = rules.also(&current).build();
        known.versions.sort_by(|a, b| a.order().cmp(&b.order()));
        Ok(known)
    }

    /// Returns all rules, for calls that are recorded: versions in force are kept first.
    pub(crate) fn in_place(
        &self,
        data: &Folder,
        terminal: &mut Terminal,
    ) -> Result<Rules, Failure> {
        let known = self.kept_in(data)?;
        for problem in &known.problems {
            terminal.say(format_args!("warning: {problem}"))?;
        }
        Ok(known.rules)
    }

    /// Returns all rules, kept as well, without reporting problems.
    pub(crate) fn kept_in(&self, data: &Folder) -> Result<Known, Failure> {
        self.known(Some(data))?.keep(data)
    }
}

impl Version {
    /// Returns the sort key: by name; of each name the oldest first and the one in force last.
    fn order(&self) -> impl Ord {
        let label = self.label.as_deref();
        (
            &self.name,
            self.is_in_force,
            self.origin,
            label,
            self.digest.as_bytes(),
        )
    }
}

impl Known {
    /// Keeps the versions in force, durably, before calls rest on them.
    pub(crate) fn keep(mut self, data: &Folder) -> Result<Self, Failure> {
        let mut problems = Vec::new();
        for version in self.versions.iter().filter(|one| one.is_in_force) {
            if kept::keep(data, version, &self)? == kept::Kept::Anew {
                problems.push(format!(
                    "the kept rules {} were damaged and are written again",
                    version.name
                ));
            }
        }
        self.problems.extend(problems);
        Ok(self)
    }

    fn has(&self, name: &str, digest: Digest) -> bool {
        let mut versions = self.versions.iter();
        versions.any(|known| known.name == name && known.digest == digest)
    }

    /// A version as text: the file, or the data where there was none. Its digest is the version.
    pub(crate) fn text(&self, version: &Version) -> Result<String, Failure> {
        if let Some(text) = &version.file {
            return Ok(text.clone());
        }
        let set = self.rules.version(&version.name, version.digest);
        let data = set.map_or(Value::Null, |set| set.data.clone());
        Ok(canonical::to_string(&data)?)
    }
}

/// The versions that a program and its folder bring; texts in force may be those of a folder as well.
fn versions(
    rules: &Rules,
    files: &[RuleText],
    of_program: usize,
    has_own_texts: bool,
) -> Vec<Version> {
    let mut versions = Vec::new();
    for name in rules.names() {
        let current = rules.in_force(name);
        for digest in rules.digests(name) {
            let is_in_force = current == Some(digest);
            let is_it = |file: &RuleText| file.name == name && file.version() == digest;
            let at = files.iter().rposition(is_it);
            let file = at.and_then(|at| files.get(at));
            versions.push(Version {
                name: name.to_owned(),
                digest,
                label: file.map(|file| file.label.clone()),
                is_in_force,
                origin: match at {
                    Some(at) if at >= of_program => Origin::Folder,
                    None if has_own_texts && is_in_force && name == knowledge::NAME => {
                        Origin::Folder
                    }
                    Some(_) | None => Origin::Program,
                },
                file: file.map(|file| file.text.clone().into_owned()),
            });
        }
    }
    versions
}
