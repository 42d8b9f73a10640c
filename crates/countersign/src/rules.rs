//! Rule sets: versioned data that answers depend on. The version is the digest of the data, so a
//! changed byte is another version; old versions stay, so that a recorded call can be computed again.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use countersign_contract::{Digest, canonical};
use serde_json::Value;

/// One version of a rule set.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleSet {
    /// Such as `tax`.
    pub name: String,
    /// Of the bytes of its file where it came from one, else of the canonical JSON of its data.
    pub version: Digest,
    /// The rules.
    pub data: Value,
}

/// The rule sets that tools may ask for, in every version that is known.
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
    current: Arc<BTreeMap<String, Arc<RuleSet>>>,
    known: Arc<HashMap<(String, Digest), Arc<RuleSet>>>,
}

impl Rules {
    /// Gathers rule sets.
    pub fn builder() -> RulesBuilder {
        RulesBuilder::default()
    }

    /// The names of all rule sets, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.current.keys().map(String::as_str)
    }

    /// The version in force.
    pub fn current(&self, name: &str) -> Option<Arc<RuleSet>> {
        self.current.get(name).cloned()
    }

    /// One version.
    pub fn version(&self, name: &str, version: Digest) -> Option<Arc<RuleSet>> {
        self.known.get(&(name.to_owned(), version)).cloned()
    }

    /// Every version that is known, in no order.
    pub fn versions(&self, name: &str) -> Vec<Arc<RuleSet>> {
        let of_name = self.known.values().filter(|set| set.name == name);
        of_name.cloned().collect()
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let versions = self.current.values().map(|set| (&set.name, set.version));
        f.debug_map().entries(versions).finish()
    }
}

/// Gathers rule sets.
#[derive(Default)]
pub struct RulesBuilder {
    current: BTreeMap<String, Arc<RuleSet>>,
    known: HashMap<(String, Digest), Arc<RuleSet>>,
}

impl RulesBuilder {
    /// Adds a version; the last one of a name is in force.
    pub fn version(
        mut self,
        name: impl Into<String>,
        data: Value,
    ) -> Result<Self, canonical::Error> {
        let version = Digest::of_canonical(&data)?;
        self.add(name.into(), version, data);
        Ok(self)
    }

    /// Adds a version that was read from a file: the digest of the file's bytes is its name, so that one changed
    /// byte makes another version and `sha256sum` tells which one a file is.
    pub fn file(mut self, name: impl Into<String>, bytes: &[u8], data: Value) -> Self {
        let version = Digest::of_bytes(bytes);
        self.add(name.into(), version, data);
        self
    }

    /// Adds every version of others; what is in force there is in force here.
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
        let clone = |(key, set): (&(String, Digest), &Arc<RuleSet>)| (key.clone(), set.clone());
        self.known.extend(others.known.iter().map(clone));
        let clone = |(name, set): (&String, &Arc<RuleSet>)| (name.clone(), set.clone());
        self.current.extend(others.current.iter().map(clone));
        self
    }

    fn add(&mut self, name: String, version: Digest, data: Value) {
        let set = Arc::new(RuleSet {
            name,
            version,
            data,
        });
        let key = (set.name.clone(), set.version);
        self.known.insert(key, set.clone());
        self.current.insert(set.name.clone(), set);
    }

    /// The rule sets.
    pub fn build(self) -> Rules {
        Rules {
            current: Arc::new(self.current),
            known: Arc::new(self.known),
        }
    }
}
