//! Rules are files. The SHA-256 of a file's bytes is the version of its rules, and every record names it: one
//! changed byte is another version, and `sha256sum` tells which one a file is. Files are TOML, each in a folder
//! of its rule set's name; all of them stay loadable, so that a recorded call can be computed again.
//!
//! In force is the last file by its label, and any file of a folder before those of the program, whatever their
//! labels. A label is a day and gives the order, nothing more: one that lies ahead is in force as soon as it is loaded,
//! so that the rules of next year can be tried today.

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

    /// What the type cannot say: that references lead somewhere, that no rate is negative.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

/// How many versions of one area are kept as they were read.
const VERSIONS_MAX: usize = 8;

/// The rules of one area in every version that was asked for: each is read once. What is kept is named by the
/// digest of what it was read from, so it can be shared by all executors of a process.
pub struct Book<T> {
    read: Mutex<Vec<(Digest, Arc<T>)>>,
}

impl<T: RuleData> Book<T> {
    /// A book that nobody has asked yet.
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
            // They are the same the next time.
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

/// A file of rules that comes with the program.
pub(crate) struct RuleFile {
    label: &'static str,
    text: &'static str,
}

type Check = fn(&str) -> Result<(), String>;

impl RuleFile {
    /// A file by the day from which it holds.
    pub(crate) const fn new(label: &'static str, text: &'static str) -> Self {
        Self { label, text }
    }
}

/// A rule set: how its files are read, and those that come with the program, oldest first.
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

/// The rule sets that there are. Adding one is adding a line here.
const AREAS: &[Area] = &[
    Area::new::<crate::shipping::address::AddressRules>(crate::shipping::address::RULES),
    Area::new::<crate::compliance::Policy>(crate::compliance::RULES),
    Area::new::<crate::fx::Rates>(crate::fx::RULES),
    Area::new::<crate::pricing::Prices>(crate::pricing::RULES),
    Area::new::<crate::shipping::Tariff>(crate::shipping::RULES),
    // The one that comes with the program is made from a seed.
    Area::new::<shop::Shop>(&[]),
    Area::new::<crate::tax::TaxRules>(crate::tax::RULES),
];

/// One version of one rule set, as text.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleText {
    /// The rule set.
    pub name: String,
    /// The name of the file without its ending: the day from which it holds.
    pub label: String,
    /// The file as it is.
    pub text: Cow<'static, str>,
    version: Digest,
}

impl RuleText {
    /// A text as it is: nobody has looked yet whether it can be used.
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

    /// What the file says; nothing where it is no TOML.
    pub fn data(&self) -> Value {
        toml::from_str(&self.text).unwrap_or_default()
    }

    /// Whether it says what its area needs.
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

/// Why rules cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// A file does not say what its area needs.
    #[error("the rules {name}/{label} cannot be used: {problem}")]
    Invalid {
        /// The rule set.
        name: String,
        /// Which of its files.
        label: String,
        /// What is wrong, and where.
        problem: String,
    },
    /// There is no such area.
    #[error("there is no rule set {name:?}: there are {known}")]
    Unknown {
        /// The name of the folder.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// A folder has something that cannot be meant, or nothing.
    #[error(
        "{path} {problem}: rules are NAME/LABEL.toml in the folder, NAME one of {known}, LABEL a day such as 2027-01-01"
    )]
    Misnamed {
        /// Which one.
        path: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
        /// The rule sets that there are.
        known: String,
    },
    /// A file or folder cannot be read.
    #[error("{path} cannot be read")]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What the shop knows has no canonical form; a bug.
    #[error("the texts of the shop cannot be written")]
    Shop(#[from] canonical::Error),
}

/// Rules as files, in every version that is at hand.
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
    /// Those that come with the program. There are many, and a process uses few: each is read when somebody
    /// asks for it.
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

    /// Adds a version, which is then the one in force.
    pub fn with(mut self, name: &str, label: &str, text: String) -> Result<Self, RulesError> {
        let file = RuleText::new(name, label, Cow::Owned(text));
        file.check()?;
        self.files.push(file);
        Ok(self)
    }

    /// Adds the files of a folder, `NAME/LABEL.toml`, in the order of their labels, which are days. The last of each
    /// name is then in force. A folder that brings nothing is an error.
    pub fn folder(self, folder: &Path) -> Result<Self, RulesError> {
        folder::add(self, folder)
    }

    /// Takes these texts for what the shop knows, in place of those before. They stay loadable, as every version of
    /// a rule set does.
    pub fn knowledge(mut self, library: Library) -> Self {
        self.knowledge.push(library);
        self
    }

    /// Every version, those in force last of their name.
    pub fn files(&self) -> &[RuleText] {
        &self.files
    }

    /// What an executor is given: all versions, the shop, which is made from its seed, and what it knows.
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

/// The names of the rule sets that there are, for people.
fn known() -> String {
    let names: Vec<&str> = AREAS.iter().map(|area| area.name).collect();
    names.join(", ")
}
