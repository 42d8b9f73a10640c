//! Countries, and groups of them that are defined once and may use each other.

use std::collections::{BTreeMap, BTreeSet};

/// The name for all countries.
const EVERYWHERE: &str = "*";

/// A resolved set of countries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Countries(BTreeSet<String>);

impl Countries {
    pub(super) fn contains(&self, country: &str) -> bool {
        self.0.contains(country)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The groups of a file, resolved.
pub(super) struct Groups<'a> {
    known: &'a BTreeSet<String>,
    groups: BTreeMap<&'a str, BTreeSet<String>>,
}

impl<'a> Groups<'a> {
    /// Resolves all groups. A group that contains itself is refused, and so is a name that is neither a group nor a
    /// country.
    pub(super) fn resolve(
        known: &'a BTreeSet<String>,
        written: &'a BTreeMap<String, Vec<String>>,
    ) -> Result<Self, String> {
        let mut groups = Self {
            known,
            groups: BTreeMap::new(),
        };
        for name in written.keys() {
            if known.contains(name) || name == EVERYWHERE {
                return Err(format!("the group {name} has the name of a country"));
            }
            let mut path = Vec::new();
            groups.visit(written, name, &mut path)?;
        }
        Ok(groups)
    }

    /// Resolves depth first: the groups that a group uses are resolved before it.
    fn visit(
        &mut self,
        written: &'a BTreeMap<String, Vec<String>>,
        name: &'a str,
        path: &mut Vec<&'a str>,
    ) -> Result<(), String> {
        if self.groups.contains_key(name) {
            return Ok(());
        }
        if path.contains(&name) {
            return Err(format!(
                "the group {name} leads back to itself: {} > {name}",
                path.join(" > ")
            ));
        }
        path.push(name);
        let members = written.get(name).map(Vec::as_slice).unwrap_or_default();
        for member in members {
            if written.contains_key(member) {
                self.visit(written, member, path)?;
            }
        }
        path.pop();
        let place = format!("the group {name}");
        let countries = self.set(members, &place)?;
        self.groups.insert(name, countries);
        Ok(())
    }

    /// The countries that these names stand for, without the exceptions. An empty set is refused: its rule would never
    /// apply.
    pub(super) fn countries(
        &self,
        names: &[String],
        except: &[String],
        place: &str,
    ) -> Result<Countries, String> {
        let mut set = self.set(names, place)?;
        for country in self.set(except, place)? {
            if !set.remove(&country) {
                return Err(format!("{place} leaves out {country}, which is not in it"));
            }
        }
        let countries = Countries(set);
        if countries.is_empty() {
            return Err(format!("{place} is about no country at all"));
        }
        Ok(countries)
    }

    fn set(&self, names: &[String], place: &str) -> Result<BTreeSet<String>, String> {
        let mut set = BTreeSet::new();
        for name in names {
            if name == EVERYWHERE {
                set.extend(self.known.iter().cloned());
            } else if let Some(group) = self.groups.get(name.as_str()) {
                set.extend(group.iter().cloned());
            } else if self.known.contains(name) {
                set.insert(name.clone());
            } else {
                return Err(format!("{place} names {name}: no country and no group"));
            }
        }
        Ok(set)
    }
}
