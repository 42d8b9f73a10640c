//! Denied acts: opening sealed payloads, managing keys. Each leaves a record, and no caller can fill the log with them.
//!
//! The first denial of an actor, target and reason is a record at once. The same within [`INTERVAL`] is counted, and the
//! count is one more record when the interval is over. An actor who tries many targets gets one count for the rest of
//! them.
//!
//! A record belongs to no user and names a person by subject: readers of all records see it, and an erased user is not
//! named by it.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use countersign_contract::{Actor, RecordKind, Retention};
use serde_json::{Map, Value, json};

use crate::clock::Clock;
use crate::ids::IdSource;
use crate::ledger::{self, Durability, Store};
use crate::principal::{Credential, Principal};
use crate::scribe::{Act, Draft};
use crate::vault::Vault;

/// Interval in which repeats are counted instead of recorded.
pub const INTERVAL: Duration = Duration::from_mins(10);

/// Maximum number of targets of one actor with a record of their own within an interval.
const TARGETS_MAX: usize = 16;

/// Maximum number of counts; further actors are counted without a name.
const COUNTS_MAX: usize = 10_000;

/// Records denied acts. One for each edge of a process; clones share the counts.
#[derive(Clone)]
pub struct Denials {
    parts: Arc<Parts>,
}

struct Parts {
    store: Arc<dyn Store>,
    vault: Arc<Vault>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    counts: Mutex<HashMap<Denial, Count>>,
}

/// A denied act.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Denial {
    /// The denied caller; `None` for all that are counted together.
    by: Option<Denied>,
    /// The act, such as `open`.
    event: &'static str,
    /// The target: an existing id that the gateway made.
    target: Option<String>,
    /// The reason, from a closed list.
    reason: &'static str,
}

/// A denied caller.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Denied {
    actor: Actor,
    user_id: String,
    /// Id of the API key, if it was one.
    key: Option<String>,
}

#[derive(Debug, Clone, Copy)]
struct Count {
    /// Time of the record, in monotonic time.
    since: Duration,
    /// Number of repeats since then.
    repeats: u64,
}

impl Denial {
    /// An act that this principal may not do.
    pub fn new(event: &'static str, by: &Principal, reason: &'static str) -> Self {
        let key = match &by.credential {
            Some(Credential::ApiKey { id }) => Some(id.clone()),
            Some(Credential::Token { .. }) | None => None,
        };
        let by = Denied {
            actor: by.actor.clone(),
            user_id: by.user_id.clone(),
            key,
        };
        Self {
            by: Some(by),
            event,
            target: None,
            reason,
        }
    }

    /// Names the target. It has to exist and to have an id that the gateway made: a name that a caller makes up does
    /// not belong in a record.
    pub fn about(mut self, target: impl Into<String>) -> Self {
        self.target = Some(target.into());
        self
    }
}

impl Denials {
    /// A recorder for this store.
    pub fn new(
        store: Arc<dyn Store>,
        vault: Arc<Vault>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
    ) -> Self {
        let parts = Parts {
            store,
            vault,
            clock,
            ids,
            counts: Mutex::default(),
        };
        Self {
            parts: Arc::new(parts),
        }
    }

    /// Records a denial. Its record is durable when this answers, unless it is counted with an earlier one. If it
    /// cannot be stored now, it is counted, too, and the log says so: the act stays denied.
    pub async fn note(&self, denial: Denial) {
        for (denial, count) in self.parts.count(denial) {
            self.parts.keep(&denial, count).await;
        }
    }

    /// Writes the counts whose interval is over.
    pub async fn write_counts(&self) {
        let due = self.parts.due(INTERVAL);
        for (denial, count) in due {
            self.parts.keep(&denial, count).await;
        }
    }

    /// Writes every count: before the process ends.
    pub async fn settle(&self) {
        let due = self.parts.due(Duration::ZERO);
        for (denial, count) in due {
            self.parts.keep(&denial, count).await;
        }
    }
}

impl Parts {
    /// The records to write now: this denial if it is the first of its kind, and the count of those before it.
    fn count(&self, denial: Denial) -> Vec<(Denial, u64)> {
        let now = self.clock.monotonic();
        let mut counts = self.counts();
        let denial = folded(denial, &counts, now);
        let fresh = Count {
            since: now,
            repeats: 0,
        };
        match counts.get_mut(&denial) {
            Some(count) if now.saturating_sub(count.since) < INTERVAL => {
                count.repeats += 1;
                Vec::new()
            }
            Some(count) => {
                let before = std::mem::replace(count, fresh);
                vec![(denial, before.repeats + 1)]
            }
            None => {
                counts.insert(denial.clone(), fresh);
                vec![(denial, 1)]
            }
        }
    }

    /// Takes the counts that are at least this old. Counts without a repeat are dropped.
    fn due(&self, age: Duration) -> Vec<(Denial, u64)> {
        let now = self.clock.monotonic();
        let mut due = Vec::new();
        self.counts().retain(|denial, count| {
            let is_due = now.saturating_sub(count.since) >= age;
            if is_due && count.repeats > 0 {
                due.push((denial.clone(), count.repeats));
            }
            !is_due
        });
        due
    }

    async fn keep(&self, denial: &Denial, count: u64) {
        if let Err(error) = self.append(denial, count).await {
            let error = crate::redact::error_text(&error);
            let (event, reason) = (denial.event, denial.reason);
            tracing::warn!(
                error,
                event,
                reason,
                count,
                "a denied request could not be recorded in the evidence log"
            );
            let since = self.clock.monotonic();
            let mut counts = self.counts();
            let counted = counts.entry(denial.clone());
            counted.or_insert(Count { since, repeats: 0 }).repeats += count;
        }
    }

    async fn append(&self, denial: &Denial, count: u64) -> Result<(), ledger::Error> {
        let user_id = denial.by.as_ref().map_or("", |by| by.user_id.as_str());
        let keys = match user_id {
            "" => None,
            user_id => Some(self.vault.key(user_id).await?),
        };
        let act = Act {
            kind: RecordKind::Denial,
            at: self.clock.now(),
            user_id: user_id.to_owned(),
            actor: denial.by.as_ref().map(|by| by.actor.clone()),
            about: denial.told(count),
            retention: Retention::Standard,
        };
        let mut entry = act.entry(self.ids.snapshot_id(), keys.as_deref());
        // Whoever was denied must not learn from their own records what there is.
        entry.user_id.clear();
        self.store
            .append(Draft::from(entry), Durability::Committed)
            .await
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<Denial, Count>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Denial {
    /// The members of the record besides the caller.
    fn told(&self, count: u64) -> Value {
        let mut about = Map::new();
        about.insert("event".to_owned(), self.event.into());
        about.insert("denied".to_owned(), self.reason.into());
        about.insert("count".to_owned(), count.into());
        if let Some(target) = &self.target {
            about.insert("target".to_owned(), target.as_str().into());
        }
        if let Some(key) = self.by.as_ref().and_then(|by| by.key.as_ref()) {
            about.insert(
                "credential".to_owned(),
                json!({"type": "api_key", "id": key}),
            );
        }
        Value::Object(about)
    }
}

/// The denial as it is counted: by itself, or together with others if one actor has too many targets, or if there are
/// too many actors.
fn folded(mut denial: Denial, counts: &HashMap<Denial, Count>, now: Duration) -> Denial {
    if counts.contains_key(&denial) {
        return denial;
    }
    let is_alike = |(other, count): &(&Denial, &Count)| {
        other.by == denial.by
            && (other.event, other.reason) == (denial.event, denial.reason)
            && other.target.is_some()
            && now.saturating_sub(count.since) < INTERVAL
    };
    if denial.target.is_some() && counts.iter().filter(is_alike).count() >= TARGETS_MAX {
        denial.target = None;
    }
    if counts.len() >= COUNTS_MAX && !counts.contains_key(&denial) {
        denial.by = None;
        denial.target = None;
    }
    denial
}

impl fmt::Debug for Denials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Denials({} counted)", self.parts.counts().len())
    }
}
