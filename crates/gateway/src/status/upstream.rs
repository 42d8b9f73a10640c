//! Upstreams, as they were when they were last asked, or last listed their tools.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use countersign::offer::Probe;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::gateway::Gateway;

/// An upstream server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UpstreamStatus {
    /// Name in the configuration.
    pub name: String,
    /// Its health, as far as it is known.
    pub health: UpstreamHealth,
    /// Time of the newest answer, or of the newest question without one; `None` if it was not asked yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<Timestamp>,
    /// Result of the last check, and the state of its pin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Probe>,
    /// The newest failure that was seen since the process began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<UpstreamError>,
}

/// A question without an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UpstreamError {
    /// Time of the question.
    pub at: Timestamp,
    /// Reason for which there was no answer.
    pub message: String,
}

/// Health of an upstream. The enum is exhaustive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UpstreamHealth {
    /// It was not asked yet.
    Unknown,
    /// It answered.
    Up,
    /// It answered, and lists tools that are not as they were approved.
    Changed,
    /// It did not answer.
    Away,
}

/// The newest probe of each upstream.
#[derive(Debug, Default)]
pub(crate) struct Probes(Mutex<BTreeMap<String, Kept>>);

#[derive(Debug, Clone)]
struct Kept {
    at: Timestamp,
    probe: Probe,
    error: Option<UpstreamError>,
}

impl Probes {
    fn of(&self, name: &str) -> Option<Kept> {
        self.kept().get(name).cloned()
    }

    /// Keeps a probe, unless a newer one is kept. An error is kept until there is a newer one.
    fn keep(&self, name: &str, probe: Probe, at: Timestamp) {
        let mut kept = self.kept();
        let before = kept.get(name);
        if before.is_some_and(|before| before.at > at) {
            return;
        }
        let error = if probe.is_up {
            before.and_then(|before| before.error.clone())
        } else {
            Some(UpstreamError {
                at,
                message: probe.said.clone(),
            })
        };
        kept.insert(name.to_owned(), Kept { at, probe, error });
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<String, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gateway {
    /// Asks an upstream whether it is there, and keeps what it says; `None` if there is none of this name.
    pub(crate) async fn probe_upstream(&self, name: &str) -> Option<Probe> {
        let probe = self.offers()?.probe(name).await?;
        let now = self.executor().now();
        self.probes().keep(name, probe.clone(), now);
        Some(probe)
    }

    /// The upstreams of the configuration, each as it was last seen. Nothing is asked for this.
    pub(crate) fn upstreams_status(&self) -> Vec<UpstreamStatus> {
        let names = self.config_file().map(|file| file.upstreams());
        let names = names.unwrap_or_default().into_iter();
        names.map(|name| self.upstream_status(name)).collect()
    }

    fn upstream_status(&self, name: String) -> UpstreamStatus {
        let known = self.offers().and_then(|offers| offers.known(&name));
        if let Some(known) = known {
            let now = self.executor().now();
            let ago = SignedDuration::try_from(known.ago).unwrap_or_default();
            let at = now.checked_sub(ago).unwrap_or(now);
            self.probes().keep(&name, known.probe, at);
        }
        match self.probes().of(&name) {
            None => UpstreamStatus {
                name,
                health: UpstreamHealth::Unknown,
                asked_at: None,
                last: None,
                last_error: None,
            },
            Some(kept) => UpstreamStatus {
                name,
                health: UpstreamHealth::of(&kept.probe),
                asked_at: Some(kept.at),
                last: Some(kept.probe),
                last_error: kept.error,
            },
        }
    }
}

impl UpstreamHealth {
    fn of(probe: &Probe) -> Self {
        // Where nothing was approved yet, nothing has changed since.
        let is_changed = probe.pin.is_some() && !probe.differences.is_empty();
        match (probe.is_up, is_changed) {
            (false, _) => Self::Away,
            (true, true) => Self::Changed,
            (true, false) => Self::Up,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The newest probe counts, and an error stays known after the upstream is back.
    #[test]
    fn an_error_is_kept_until_the_next_one() {
        let probes = Probes::default();
        let at = |second| Timestamp::from_second(second).unwrap();
        let probe = |is_up, said: &str| Probe {
            is_up,
            said: said.to_owned(),
            ..Probe::default()
        };
        probes.keep("a", probe(false, "refused"), at(1));
        probes.keep("a", probe(true, "it lists 2 tools"), at(5));
        probes.keep("a", probe(false, "late"), at(3));
        let kept = probes.of("a").unwrap();
        assert_eq!((kept.at, kept.probe.is_up), (at(5), true));
        let error = kept.error.unwrap();
        assert_eq!((error.at, error.message.as_str()), (at(1), "refused"));
        assert!(probes.of("b").is_none());
    }
}
