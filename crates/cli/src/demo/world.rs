//! Installation of the demo: a data folder of its own with the real store, the real keys and the real log. It can be left and entered
//! again, as by a process that was killed and started anew.

use std::path::{Path, PathBuf};

use countersign::Executor;
use countersign::archive::Archive;
use countersign::contract::SnapshotId;
use countersign::rules::Rules;

use super::ask::{Answer, Ask};
use crate::catalog;
use crate::failure::Failure;
use crate::journal::Journal;
use crate::place::{Place, PlaceOptions};
use crate::rules::RuleOptions;

/// A data folder that is open.
pub(super) struct World {
    pub(super) place: Place,
    pub(super) rules: Rules,
    executor: Executor,
    journal: Journal,
}

impl World {
    /// Enters the folder, made where it is missing.
    pub(super) fn enter(data: &Path, rules: &RuleOptions) -> Result<Self, Failure> {
        let place = PlaceOptions::own(data)?.open_or_make_quietly()?;
        let rules = rules.kept_in(&place.folder)?.rules;
        let journal = Journal::start(&place)?;
        let executor = place.executor(catalog::program()?, rules.clone());
        Ok(Self {
            place,
            rules,
            executor,
            journal,
        })
    }

    /// Leaves the folder to others, with everything signed.
    pub(super) fn leave(mut self) -> Result<(), Failure> {
        self.sign()
    }

    pub(super) fn executor(&self) -> &Executor {
        &self.executor
    }

    /// Makes a call.
    pub(super) fn ask(&self, ask: Ask) -> Answer {
        let reply = self
            .place
            .runtime
            .block_on(self.executor.execute(ask.call()));
        ask.answered(&reply)
    }

    /// Everything that was committed is in the signed log after this.
    pub(super) fn sign(&mut self) -> Result<(), Failure> {
        self.journal.sign(&self.place)
    }

    /// Returns the archive, which has the operator's actions. A user who is erased is forgotten by the executor as well.
    pub(super) fn archive(&self) -> Archive {
        self.place.archive()
    }

    /// A file of the demo, beside the data.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.place.folder.file(name)
    }
}

/// The name of a record, as the log knows it.
pub(super) fn record_id(id: &str) -> Result<SnapshotId, Failure> {
    Ok(SnapshotId::new(id)?)
}
