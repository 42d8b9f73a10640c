//! Rules are files. The SHA-256 of a file's bytes is the version of its rules, and every record names it: one changed
//! byte is another version, and `sha256sum` shows the version of a file. Files are TOML, each in a folder named after
//! its rule set; all of them stay loadable, so that a recorded call can be computed again.
//!
//! The file with the latest label is in force. A file of an operator's folder takes precedence over those of the
//! program, whatever their labels. A label is a day and only gives the order: a file with a day in the future is in
//! force as soon as it is loaded, so that the rules of next year can be tried today.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use countersign::contract::{Digest, ErrorBody, ErrorCode, FaultSource, canonical};
use countersign::rules::Rules;
use countersign::{CallContext, ToolError};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::knowledge::{self, Library};
use crate::shop;
use crate::words::Say;

mod folder;
mod read;

/// The rules of one area, as a tool reads them.
pub trait RuleData: DeserializeOwned + Send + Sync + 'static {
    /// The name of the rule set.
    const NAME: &'static str;

    /// Checks what the types cannot express, such as references that resolve and rates that are not negative.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

/// The maximum number of parsed versions in the cache of one area.
const VERSIONS_MAX: usize = 8;

/// A cache of the parsed rules of one area: each version is parsed once. An entry is identified by the digest of its
/// source, so it can be shared by all executors of a process.
pub struct Book<T> {
    read: Mutex<Vec<(Digest, Arc<T>)>>,
}

impl<T: RuleData> Book<T> {
    /// An empty cache.
    #[expect(
        clippy::new_without_default,
        reason = "a static needs a const function"
    )]
    pub const fn new() -> Self {
        Self {
            read: Mutex::new(Vec::new()),
        }
    }

    /// The rules that a call has to use. They become part of its record (A15).
    pub fn get(&self, ctx: &CallContext) -> Result<Arc<T>, ToolError> {
        let set = ctx.rules(T::NAME)?;
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, rules)) = read.iter().find(|(version, _)| *version == set.version) {
            return Ok(rules.clone());
        }
        let rules = T::deserialize(&set.data).map_err(|error| {
            let name = T::NAME.to_owned();
            let mut body = ErrorBody::new(ErrorCode::UpstreamError, Say::RulesUnread { name })
                .source(FaultSource::Tool)
                .hint(Say::OperatorMendsRules);
            // The rules stay the same, so a retry cannot help.
            body.details.retryable = false;
            ToolError::from(body).with_source(error)
        })?;
        let rules = Arc::new(rules);
        if read.len() >= VERSIONS_MAX {
            read.remove(0);
        }
        read.push((set.version, rules.clone()));
        Ok(rules)
    }
}

/// A rule file that is part of the program.
pub(crate) struct RuleFile {
    label: &'static str,
    text: &'static str,
}

type Check = fn(&str) -> Result<(), String>;

impl RuleFile {
    /// A file, labelled with the day from which it applies.
    pub(crate) const fn new(label: &'static str, text: &'static str) -> Self {
        Self { label, text }
    }
}

/// A rule set: its validation, and the files that are part of the program, oldest first.
struct Area {
    name: &'static str,
    check: Check,
    files: &'static [RuleFile],
}

impl Area {
    const fn new<T: RuleData>(files: &'static [RuleFile]) -> Self {
        Self {
            name: T::NAME,
            check: read::check::<T>,
            files,
        }
    }
}

/// All rule sets. A new one is a new line here.
const AREAS: &[Area] = &[
    Area::new::<crate::shipping::address::AddressRules>(crate::shipping::address::RULES),
    Area::new::<crate::compliance::Policy>(crate::compliance::RULES),
    Area::new::<crate::fx::Rates>(crate::fx::RULES),
    Area::new::<crate::pricing::Prices>(crate::pricing::RULES),
    Area::new::<crate::shipping::Tariff>(crate::shipping::RULES),
    // The shop of the program is made from a seed.
    Area::new::<shop::Shop>(&[]),
    Area::new::<crate::tax::TaxRules>(crate::tax::RULES),
];

/// One version of one rule set, as text.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleText {
    /// The rule set.
    pub name: String,
    /// The name of the file without its extension: the day from which it applies.
    pub label: String,
    /// The text of the file, unchanged.
    pub text: Cow<'static, str>,
    version: Digest,
}

impl RuleText {
    /// A text that has not been checked yet.
    pub fn new(name: &str, label: &str, text: Cow<'static, str>) -> Self {
        Self {
            name: name.to_owned(),
            label: label.to_owned(),
            version: Digest::of_bytes(text.as_bytes()),
            text,
        }
    }

    /// The version: the digest of the file's bytes.
    pub fn version(&self) -> Digest {
        self.version
    }

    /// The parsed content; null if it is not valid TOML.
    pub fn data(&self) -> Value {
        toml::from_str(&self.text).unwrap_or_default()
    }

    /// Checks that the rule set is known and that the text is valid for it.
    pub fn check(&self) -> Result<(), RulesError> {
        let area = AREAS.iter().find(|area| area.name == self.name);
        let area = area.ok_or_else(|| RulesError::Unknown {
            name: self.name.clone(),
            known: known(),
        })?;
        (area.check)(&self.text).map_err(|problem| RulesError::Invalid {
            name: self.name.clone(),
            label: self.label.clone(),
            problem,
        })
    }
}

/// The reason why rules cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// A file is not valid for its rule set: a TOML syntax error, an unknown or missing field, or a failed check of the
    /// rule set. Usually a typo in a file that was edited by hand.
    #[error("the rules {name}/{label} cannot be used: {problem}")]
    Invalid {
        /// The rule set.
        name: String,
        /// The label of the file.
        label: String,
        /// The problem, with the line if it is known.
        problem: String,
    },
    /// No rule set has this name. Usually the name of a folder is misspelt.
    #[error("there is no rule set {name:?}: there are {known}")]
    Unknown {
        /// The name of the folder.
        name: String,
        /// The known rule sets.
        known: String,
    },
    /// A file or folder is not where or how it has to be: a TOML file outside the folder of a rule set, a file that is
    /// not named after a day, or a folder without rules. Usually the path of another folder was given.
    #[error(
        "{path} {problem}: rules are NAME/LABEL.toml in the folder, NAME one of {known}, LABEL a day such as 2027-01-01"
    )]
    Misnamed {
        /// The path of that file or folder.
        path: PathBuf,
        /// The problem.
        problem: &'static str,
        /// The known rule sets.
        known: String,
    },
    /// A file or folder cannot be read. Usually it does not exist, or the process has no permission.
    #[error("{path} cannot be read")]
    Read {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The knowledge base has no canonical form; a bug.
    #[error("the texts of the shop cannot be written")]
    Shop(#[from] canonical::Error),
}

/// Rule files in all their versions.
///
/// # Example
///
/// ```
/// use countersign_commerce::rulebook::RuleFiles;
///
/// let rules = RuleFiles::embedded()?.rules()?;
/// let fx = rules.current("fx").ok_or("the program brings its own")?;
/// assert_eq!(fx.data["base"], "EUR");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RuleFiles {
    files: Vec<RuleText>,
    knowledge: Vec<Library>,
}

impl RuleFiles {
    /// The files of the program. There are many, and a process uses few: each is parsed when it is first needed.
    pub fn embedded() -> Result<Self, RulesError> {
        let mut all = Self::default();
        for area in AREAS {
            for file in area.files {
                let text = Cow::Borrowed(file.text);
                all.files.push(RuleText::new(area.name, file.label, text));
            }
        }
        Ok(all)
    }

    /// Adds a version and puts it in force.
    pub fn with(mut self, name: &str, label: &str, text: String) -> Result<Self, RulesError> {
        let file = RuleText::new(name, label, Cow::Owned(text));
        file.check()?;
        self.files.push(file);
        Ok(self)
    }

    /// Adds the files of a folder, `NAME/LABEL.toml`, in the order of their labels, which are days. The last file of
    /// each name is then in force. A folder without rules is an error.
    pub fn folder(self, folder: &Path) -> Result<Self, RulesError> {
        folder::add(self, folder)
    }

    /// Replaces the knowledge base that is in force by these texts. Earlier ones stay loadable, as every version of a
    /// rule set does.
    pub fn knowledge(mut self, library: Library) -> Self {
        self.knowledge.push(library);
        self
    }

    /// Every version, in the order of loading: the last one of a name is in force.
    pub fn files(&self) -> &[RuleText] {
        &self.files
    }

    /// The rules for an executor: all versions, the shop, which is made from its seed, and the knowledge base.
    pub fn rules(&self) -> Result<Rules, RulesError> {
        let mut rules = shop::add_to(Rules::builder());
        rules = rules.version(knowledge::NAME, knowledge::embedded_data())?;
        for library in &self.knowledge {
            rules = rules.version(knowledge::NAME, library.data())?;
        }
        for file in &self.files {
            let (name, version, file) = (file.name.clone(), file.version, file.clone());
            rules = rules.later(name, version, move || file.data());
        }
        Ok(rules.build())
    }
}

/// The names of the rule sets, for people.
fn known() -> String {
    let names: Vec<&str> = AREAS.iter().map(|area| area.name).collect();
    names.join(", ")
}
