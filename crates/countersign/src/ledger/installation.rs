//! The installation that a store belongs to: one master key and one log key, bound to the data.
//!
//! Two folders with keys of their own on one database would each write what the other cannot read, and only one of them
//! could sign. So the database names its keys, and a process that comes with other keys is refused before anything is
//! written.

use std::fmt;

use countersign_evidence::checkpoint::Checkpoint;
use countersign_evidence::note::VerifyingKey;

use super::{Entry, Error};
use crate::BoxFuture;

/// Keeps the installation.
pub trait Installations: Send + Sync + 'static {
    /// The installation that the store is bound to; `None` if it was opened without a [`Binding`].
    fn installation(&self) -> BoxFuture<'_, Result<Option<Installation>, Error>>;

    /// Binds the store to other keys, with the record of it, in one commit; false if it is no longer bound to `from`.
    fn rebind<'a>(
        &'a self,
        from: &'a Installation,
        to: Installation,
        entry: Entry,
    ) -> BoxFuture<'a, Result<bool, Error>>;

    /// Begins another log over the existing records: binds the store to its key and stores its first record, in one
    /// commit. The checkpoints of the previous log are deleted, and so are all documents of the collections
    /// `forgotten`. False if the store is no longer bound to `from`.
    fn begin_log<'a>(
        &'a self,
        from: &'a Installation,
        to: Installation,
        forgotten: &'a [&'a str],
        entry: Entry,
    ) -> BoxFuture<'a, Result<bool, Error>>;
}

/// Identity of a store: the keys that it is bound to. No part of it is secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    /// A random name.
    pub id: String,
    /// The id of the master key, a digest that only the key gives.
    pub master: String,
    /// The public key of the log, whose name is the log's origin.
    pub log_key: String,
    /// True if the data is a copy of another store, and not restored yet.
    pub is_copy: bool,
}

/// The keys with which a process opens a store.
#[derive(Clone)]
pub struct Binding {
    /// The name of the installation, used if the store has none yet.
    pub id: String,
    /// The id of the master key.
    pub master: String,
    /// The id of the previous master key, while a rotation is not finished.
    pub master_before: Option<String>,
    /// The public key of the log.
    pub log_key: VerifyingKey,
    /// True if a copy may be opened too: for the commands that put it in its place.
    pub accepts_copy: bool,
}

/// The traces of keys in a store that has no installation yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traces {
    /// The newest signed checkpoint.
    pub checkpoint: Option<String>,
    /// The ids of the master keys that wrap keys of users.
    pub masters: Vec<String>,
}

/// Reasons why a store is not opened with these keys.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotOurs {
    /// The store is bound to another master key. Usually the key files of another installation are used.
    #[error("the data belongs to the master key {bound}, and the one in use is {ours}")]
    OtherMaster {
        /// The master key that the store names.
        bound: String,
        /// The master key in use.
        ours: String,
    },
    /// The store is bound to another log key. Usually the key files of another installation are used.
    #[error("the data belongs to the log {bound}, and the log key in use is {ours}")]
    OtherLog {
        /// The log key that the store names.
        bound: String,
        /// The log key in use.
        ours: String,
    },
    /// The store names no keys yet, and its log was signed by another key.
    /// Usually the data folder of another installation was given.
    #[error("the log in the store was not signed by the log key in use, {ours}")]
    NotSigned {
        /// The log key in use.
        ours: String,
    },
    /// The store names no keys yet, and the master key in use opens no user's key in it.
    /// Usually the data folder or the master key of another installation was given.
    #[error("the keys in the store were not wrapped by the master key in use, {ours}")]
    NotWrapped {
        /// The master key in use.
        ours: String,
    },
    /// The store is a copy, and later changes of the original are not known here. Usually it is a backup that was put back.
    #[error(
        "the data is a copy: a backup that was not put in its place with `countersign store restore`"
    )]
    Copy,
}

impl Binding {
    /// A binding to these keys, without a rotation in progress.
    pub fn new(id: impl Into<String>, master: impl Into<String>, log_key: VerifyingKey) -> Self {
        Self {
            id: id.into(),
            master: master.into(),
            master_before: None,
            log_key,
            accepts_copy: false,
        }
    }

    /// The first installation of a store without one. If the store has data already, these keys must be the ones that
    /// it was made with.
    pub fn first(&self, traces: &Traces) -> Result<Installation, NotOurs> {
        let ours = || self.log_key.to_string();
        if let Some(note) = &traces.checkpoint
            && Checkpoint::open(note, &self.log_key).is_err()
        {
            return Err(NotOurs::NotSigned { ours: ours() });
        }
        if !traces.masters.is_empty() && !traces.masters.iter().any(|master| self.has(master)) {
            let ours = self.master.clone();
            return Err(NotOurs::NotWrapped { ours });
        }
        Ok(Installation {
            id: self.id.clone(),
            master: self.master.clone(),
            log_key: ours(),
            is_copy: false,
        })
    }

    /// Refuses an installation that has other keys.
    pub fn check(&self, found: &Installation) -> Result<(), NotOurs> {
        if !self.has(&found.master) {
            return Err(NotOurs::OtherMaster {
                bound: found.master.clone(),
                ours: self.master.clone(),
            });
        }
        let ours = self.log_key.to_string();
        if ours != found.log_key {
            let bound = found.log_key.clone();
            return Err(NotOurs::OtherLog { bound, ours });
        }
        if found.is_copy && !self.accepts_copy {
            return Err(NotOurs::Copy);
        }
        Ok(())
    }

    fn has(&self, master: &str) -> bool {
        self.master == master || self.master_before.as_deref() == Some(master)
    }
}

impl fmt::Debug for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Binding(master {}, log {})", self.master, self.log_key)
    }
}

#[cfg(test)]
mod tests {
    use countersign_evidence::note::SigningKey;

    use super::*;

    fn log(seed: u8) -> SigningKey {
        SigningKey::from_seed("example.com/log", &[seed; 32]).unwrap()
    }

    fn binding(master: &str, before: Option<&str>) -> Binding {
        let mut binding = Binding::new("in_1", master, log(1).verifying_key());
        binding.master_before = before.map(str::to_owned);
        binding
    }

    fn signed(by: u8) -> String {
        let checkpoint = Checkpoint::new("example.com/log", 1, [3; 32]);
        checkpoint.sign(&log(by)).unwrap()
    }

    /// U7: what is there decides who may bind it.
    #[test]
    fn a_store_is_bound_by_the_keys_that_made_what_is_there() {
        let check = |checkpoint: Option<u8>, masters: &[&str], before: Option<&str>| {
            let traces = Traces {
                checkpoint: checkpoint.map(signed),
                masters: masters.iter().map(|&master| master.to_owned()).collect(),
            };
            let bound = binding("m_2", before).first(&traces);
            bound.map(|bound| bound.master)
        };
        let not_signed = NotOurs::NotSigned {
            ours: log(1).verifying_key().to_string(),
        };
        let not_wrapped = NotOurs::NotWrapped {
            ours: "m_2".to_owned(),
        };
        assert_eq!(check(None, &[], None), Ok("m_2".to_owned()));
        assert_eq!(check(Some(1), &["m_2", "m_9"], None), Ok("m_2".to_owned()));
        assert_eq!(check(Some(2), &["m_2"], None), Err(not_signed));
        assert_eq!(check(Some(1), &["m_1"], None), Err(not_wrapped));
        assert_eq!(check(None, &["m_1"], Some("m_1")), Ok("m_2".to_owned()));
    }

    #[test]
    fn a_rotation_that_is_not_finished_has_both_keys() {
        let found = |master: &str, seed| Installation {
            id: "in_1".to_owned(),
            master: master.to_owned(),
            log_key: log(seed).verifying_key().to_string(),
            is_copy: false,
        };
        let ours = binding("m_2", Some("m_1"));
        assert_eq!(ours.check(&found("m_1", 1)), Ok(()));
        assert_eq!(ours.check(&found("m_2", 1)), Ok(()));
        assert!(matches!(
            ours.check(&found("m_3", 1)),
            Err(NotOurs::OtherMaster { .. })
        ));
        assert!(matches!(
            ours.check(&found("m_2", 2)),
            Err(NotOurs::OtherLog { .. })
        ));
        let mut copy = found("m_2", 1);
        copy.is_copy = true;
        assert_eq!(ours.check(&copy), Err(NotOurs::Copy));
        let restoring = Binding {
            accepts_copy: true,
            ..ours
        };
        assert_eq!(restoring.check(&copy), Ok(()));
    }
}
