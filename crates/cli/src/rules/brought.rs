//! Rules that a command line brings, in the form in which they are sent to the process that carries out the command: `--rules DIR`, and the
//! texts of `--knowledge DIR`. That process may not see the folders.

use std::borrow::Cow;

use countersign::contract::Digest;
use countersign::rules::{Rules, RulesBuilder};
use countersign_commerce::rulebook::RuleText;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Known, Origin, RuleOptions, Version};
use crate::failure::Failure;
use crate::place::Place;

/// Versions that a command line brings; empty if it names no folder.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Brought(Vec<One>);

#[derive(Debug, Serialize, Deserialize)]
struct One {
    name: String,
    label: Option<String>,
    is_in_force: bool,
    /// The file as it is, or the data in its canonical form.
    text: String,
    is_file: bool,
}

impl RuleOptions {
    /// Reads and checks the rules of the named folders.
    pub(crate) fn brought(&self) -> Result<Brought, Failure> {
        if self.folder.is_none() && self.knowledge.is_none() {
            return Ok(Brought::default());
        }
        let known = self.known(None)?;
        let versions = known.versions.iter();
        let brought = versions.filter(|version| version.origin == Origin::Folder);
        let brought = brought.map(|version| {
            Ok(One {
                name: version.name.clone(),
                label: version.label.clone(),
                is_in_force: version.is_in_force,
                text: known.text(version)?,
                is_file: version.file.is_some(),
            })
        });
        Ok(Brought(brought.collect::<Result<_, Failure>>()?))
    }
}

impl Brought {
    /// True if there are no rules.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// These beside those of the program, of the configuration and of the data folder.
    pub(crate) fn known(&self, place: &Place) -> Result<Known, Failure> {
        let configured = RuleOptions::configured(&place.config().rules);
        let mut known = configured.known(Some(&place.folder))?;
        // What comes later is in force: those that are not come before those of the program.
        let mut rules = self.add(Rules::builder(), false);
        rules = rules.also(&known.rules);
        known.rules = self.add(rules, true).build();
        for one in &self.0 {
            let digest = one.digest();
            let is_other = |version: &Version| version.name != one.name || version.digest != digest;
            known.versions.retain(is_other);
            for version in &mut known.versions {
                version.is_in_force &= version.name != one.name || !one.is_in_force;
            }
            known.versions.push(Version {
                name: one.name.clone(),
                digest,
                label: one.label.clone(),
                is_in_force: one.is_in_force,
                origin: Origin::Folder,
                file: one.is_file.then(|| one.text.clone()),
            });
        }
        known.versions.sort_by(|a, b| a.order().cmp(&b.order()));
        Ok(known)
    }

    fn add(&self, mut rules: RulesBuilder, is_in_force: bool) -> RulesBuilder {
        for one in self.0.iter().filter(|one| one.is_in_force == is_in_force) {
            let (name, text, is_file) = (one.name.clone(), one.text.clone(), one.is_file);
            rules = rules.later(&one.name, one.digest(), move || {
                if is_file {
                    RuleText::new(&name, "", Cow::Owned(text)).data()
                } else {
                    serde_json::from_str::<Value>(&text).unwrap_or_default()
                }
            });
        }
        rules
    }
}

impl One {
    fn digest(&self) -> Digest {
        Digest::of_bytes(self.text.as_bytes())
    }
}
