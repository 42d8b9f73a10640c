//! The configuration file of a server, for monitoring: its digest, the time since when it is in force, and
//! refused versions. The program that runs the server reads the file.

use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use countersign::contract::Digest;
use jiff::Timestamp;
use serde::Serialize;

/// The configuration file of a running server.
#[derive(Debug)]
pub struct ConfigFile {
    path: String,
    state: ArcSwap<State>,
    refusals: AtomicU64,
}

#[derive(Debug, Clone)]
struct State {
    digest: Digest,
    since: Timestamp,
    fault: Option<ConfigRefusal>,
    last: Option<ConfigRefusal>,
    in_force: InForce,
}

/// Parts of a configuration in force that status reports show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InForce {
    /// Names of the upstreams.
    pub upstreams: Vec<String>,
    /// Keys whose new values take effect at the next start.
    pub at_next_start: Vec<String>,
}

/// A configuration file that was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConfigRefusal {
    /// Time of the check.
    pub at: Timestamp,
    /// File with the mistake: the configuration, or one that it names.
    pub file: String,
    /// Line, from 1; 0 if the mistake is about the whole file.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// Configuration key, if there is one.
    pub key: String,
    /// Description of the mistake.
    pub message: String,
    /// Number of mistakes in the file.
    pub mistakes: usize,
}

/// Status of the configuration file, for operators.
#[derive(Debug, Clone, Serialize)]
pub struct ConfigStatus {
    /// Path of the file, as it was given.
    pub file: String,
    /// SHA-256 of the text in force.
    pub digest: Digest,
    /// Time since when it is in force in this process.
    pub since: Timestamp,
    /// False if the file on disk is another one, which was not accepted.
    pub is_file_in_force: bool,
    /// Keys whose new values take effect at the next start.
    pub at_next_start: Vec<String>,
    /// The last file that was not accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<ConfigRefusal>,
    /// Number of files that were not accepted since the process began.
    pub refusals: u64,
}

impl ConfigFile {
    /// Creates the status of the file that a server starts with.
    pub fn new(
        path: impl Into<String>,
        digest: Digest,
        since: Timestamp,
        in_force: InForce,
    ) -> Self {
        Self {
            path: path.into(),
            state: ArcSwap::from_pointee(State {
                digest,
                since,
                fault: None,
                last: None,
                in_force,
            }),
            refusals: AtomicU64::new(0),
        }
    }

    /// Records that another text is in force.
    pub fn accepted(&self, digest: Digest, since: Timestamp, in_force: InForce) {
        let last = self.state.load().last.clone();
        self.state.store(
            State {
                digest,
                since,
                fault: None,
                last,
                in_force,
            }
            .into(),
        );
    }

    /// Records that the file on disk is the one in force again.
    pub fn mended(&self) {
        let state = State::clone(&self.state.load());
        self.state.store(
            State {
                fault: None,
                ..state
            }
            .into(),
        );
    }

    /// Records that the file on disk is not accepted. False if the same refusal was recorded before.
    pub fn refused(&self, refusal: ConfigRefusal) -> bool {
        let state = State::clone(&self.state.load());
        let is_known = state.fault.as_ref().is_some_and(|known| {
            let at = refusal.at;
            ConfigRefusal {
                at,
                ..known.clone()
            } == refusal
        });
        if is_known {
            return false;
        }
        self.refusals.fetch_add(1, Ordering::Relaxed);
        let fault = Some(refusal);
        self.state.store(
            State {
                last: fault.clone(),
                fault,
                ..state
            }
            .into(),
        );
        true
    }

    /// True if the file on disk is not the one in force.
    pub fn is_refused(&self) -> bool {
        self.state.load().fault.is_some()
    }

    /// Returns the digest of the text in force.
    pub fn digest(&self) -> Digest {
        self.state.load().digest
    }

    /// Returns the names of the upstreams in force.
    pub fn upstreams(&self) -> Vec<String> {
        self.state.load().in_force.upstreams.clone()
    }

    /// Returns the whole status.
    pub fn status(&self) -> ConfigStatus {
        let state = self.state.load();
        ConfigStatus {
            file: self.path.clone(),
            digest: state.digest,
            since: state.since,
            is_file_in_force: state.fault.is_none(),
            at_next_start: state.in_force.at_next_start.clone(),
            refused: state.last.clone(),
            refusals: self.refusals.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_counted_once_and_ends_with_the_next_file() {
        let digest = Digest::of_bytes(b"");
        let file = ConfigFile::new("c.toml", digest, Timestamp::UNIX_EPOCH, InForce::default());
        let refusal = |at| ConfigRefusal {
            at,
            file: "c.toml".to_owned(),
            line: 3,
            column: 1,
            key: "server.lisen".to_owned(),
            message: "there is no such key".to_owned(),
            mistakes: 1,
        };
        assert!(file.refused(refusal(Timestamp::UNIX_EPOCH)));
        assert!(!file.refused(refusal(Timestamp::MAX)));
        assert!(file.is_refused());
        file.accepted(digest, Timestamp::MAX, InForce::default());
        let status = file.status();
        assert!(status.is_file_in_force);
        assert_eq!((status.refusals, status.since), (1, Timestamp::MAX));
        assert_eq!(status.refused.map(|refused| refused.line), Some(3));
    }
}
