//! Rule sets: versioned data that answers depend on. The version is the digest of the data, so a
//! changed byte is another version; old versions stay, so that a recorded call can be computed again.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, LazyLock};

use countersign_contract::{Digest, canonical};
use serde_json::Value;

/// One version of a rule set.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleSet {
    /// The name, such as `tax`.
    pub name: String,
    /// Digest of the bytes of its file if it came from one, else of the canonical JSON of its data.
    pub version: Digest,
    /// The rules.
    pub data: Value,
}

/// The rule sets that tools may use, in every known version.
///
/// # Example
///
/// ```
/// use countersign::rules::Rules;
/// use serde_json::json;
///
/// let rules = Rules::builder()
///     .version("vat", json!({"DE": 1900}))?
///     .version("vat", json!({"DE": 2000}))?
///     .build();
/// let current = rules.current("vat").ok_or("the last one counts")?;
/// assert_eq!(current.data["DE"], 2000);
/// assert_eq!(rules.versions("vat").len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct Rules {
    current: Arc<BTreeMap<String, Arc<Known>>>,
    known: Arc<HashMap<(String, Digest), Arc<Known>>>,
}

/// A known version. A program may bring many of which a process uses few, so its data is read when it is first used.
struct Known {
    name: String,
    version: Digest,
    set: LazyLock<Arc<RuleSet>, Box<dyn FnOnce() -> Arc<RuleSet> + Send>>,
}

impl Rules {
    /// A builder for rule sets.
    pub fn builder() -> RulesBuilder {
        RulesBuilder::default()
    }

    /// The names of all rule sets, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.current.keys().map(String::as_str)
    }

    /// The version in force.
    pub fn current(&self, name: &str) -> Option<Arc<RuleSet>> {
        self.current.get(name).map(|known| known.set.clone())
    }

    /// Digest of the version in force, without reading it.
    pub fn in_force(&self, name: &str) -> Option<Digest> {
        self.current.get(name).map(|known| known.version)
    }

    /// One version.
    pub fn version(&self, name: &str, version: Digest) -> Option<Arc<RuleSet>> {
        let known = self.known.get(&(name.to_owned(), version));
        known.map(|known| known.set.clone())
    }

    /// Digests of the known versions, without reading them, in no order.
    pub fn digests(&self, name: &str) -> Vec<Digest> {
        self.of_name(name).map(|known| known.version).collect()
    }

    /// Every known version, in no order.
    pub fn versions(&self, name: &str) -> Vec<Arc<RuleSet>> {
        self.of_name(name).map(|known| known.set.clone()).collect()
    }

    fn of_name(&self, name: &str) -> impl Iterator<Item = &Known> {
        let known = self.known.values().map(|known| &**known);
        known.filter(move |known| known.name == name)
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let versions = self.current.values().map(|set| (&set.name, set.version));
        f.debug_map().entries(versions).finish()
    }
}

/// Builder for [`Rules`].
#[derive(Default)]
pub struct RulesBuilder {
    current: BTreeMap<String, Arc<Known>>,
    known: HashMap<(String, Digest), Arc<Known>>,
}

impl RulesBuilder {
    /// Adds a version; the last one of a name is in force.
    pub fn version(
        mut self,
        name: impl Into<String>,
        data: Value,
    ) -> Result<Self, canonical::Error> {
        let version = Digest::of_canonical(&data)?;
        self.add(name.into(), version, move || data);
        Ok(self)
    }

    /// Adds a version that was read from a file: it is named by the digest of the file's bytes, so that one changed
    /// byte makes another version, and `sha256sum` shows the version of a file.
    pub fn file(mut self, name: impl Into<String>, bytes: &[u8], data: Value) -> Self {
        let version = Digest::of_bytes(bytes);
        self.add(name.into(), version, move || data);
        self
    }

    /// Adds a version whose data is read when it is first used: `version` is the digest of what it is read from.
    pub fn later(
        mut self,
        name: impl Into<String>,
        version: Digest,
        data: impl FnOnce() -> Value + Send + 'static,
    ) -> Self {
        self.add(name.into(), version, data);
        self
    }

    /// Adds every version of other rule sets; the versions in force there are in force here.
    ///
    /// ```
    /// use countersign::rules::Rules;
    /// use serde_json::json;
    ///
    /// let vat = Rules::builder().version("vat", json!({"DE": 1900}))?.build();
    /// let fx = Rules::builder().version("fx", json!({"EUR": 1}))?.build();
    /// let both = Rules::builder().also(&vat).also(&fx).build();
    /// assert_eq!(both.names().collect::<Vec<_>>(), ["fx", "vat"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn also(mut self, others: &Rules) -> Self {
        let clone = |(key, known): (&(String, Digest), &Arc<Known>)| (key.clone(), known.clone());
        self.known.extend(others.known.iter().map(clone));
        let clone = |(name, known): (&String, &Arc<Known>)| (name.clone(), known.clone());
        self.current.extend(others.current.iter().map(clone));
        self
    }

    fn add(
        &mut self,
        name: String,
        version: Digest,
        data: impl FnOnce() -> Value + Send + 'static,
    ) {
        let named = name.clone();
        let read = move || {
            Arc::new(RuleSet {
                name: named,
                version,
                data: data(),
            })
        };
        let known = Arc::new(Known {
            name: name.clone(),
            version,
            set: LazyLock::new(Box::new(read)),
        });
        self.known.insert((name.clone(), version), known.clone());
        self.current.insert(name, known);
    }

    /// Builds the rule sets.
    pub fn build(self) -> Rules {
        Rules {
            current: Arc::new(self.current),
            known: Arc::new(self.known),
        }
    }
}
