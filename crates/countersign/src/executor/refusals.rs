//! Refusals that no limit bounds: the first of an interval has a record of its own, the others are counted and have one
//! together. Otherwise a caller that is refused as fast as the server can answer would fill the disk.
//!
//! Counted are refusals before a call was admitted, and those of the breaker: refusals after the limits come no more
//! often than the limits allow. Counts are in memory, so a crash loses those of the running interval; the record of the
//! first is as durable as that of any refusal.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Place;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use countersign_contract::evidence::{
    CountedRefusals, EvidenceRecord, RecordedCredential, RecordedReply, RecordedTool, Retention,
};
use countersign_contract::{Actor, ErrorBody, ErrorCode, RecordKind, SnapshotId};
use countersign_evidence::seal::UserKey;
use jiff::Timestamp;

use super::Executor;
use super::envelope::is_name;
use super::trail::Trail;
use crate::ledger::{self, Durability, Entry};
use crate::principal::Credential;
use crate::redact::error_text;
use crate::scribe::{Draft, canonical_leaf, recorded_actor};

/// Interval in which refusals of one kind are counted together.
const INTERVAL: Duration = Duration::from_mins(1);

/// Poll interval for counts whose interval is over.
const LOOK: Duration = Duration::from_secs(5);

/// Maximum number of kinds that are counted at once. One more ends the oldest.
const KINDS_MAX: usize = 4_096;

/// The counts of this process.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    counts: Mutex<HashMap<Kind, Count>>,
}

/// Key of a count: one caller, one tool, one reason. Every part comes from the credential, the catalog or a closed
/// list, so that no caller can make up kinds; only a backend that acts for others names users.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Kind {
    actor: Actor,
    principal: Actor,
    credential: Option<CredentialName>,
    /// The user; empty if the call names no valid user.
    user_id: String,
    /// Name and version of the tool; `None` if no tool has that name.
    tool: Option<(String, String)>,
    code: ErrorCode,
    reason: Option<String>,
    dry_run: bool,
}

/// A credential without the parts that differ from token to token.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum CredentialName {
    ApiKey(String),
    Issuer(String),
}

/// The refusals of one kind in one interval.
#[derive(Debug)]
struct Count {
    /// Start of the interval, in the clock's monotonic time.
    since: Duration,
    /// The record of the first refusal; `None` if it could not be stored.
    first: Option<SnapshotId>,
    /// Number of refusals without a record of their own, with the times of the first and the last of them.
    counted: Option<(u64, Timestamp, Timestamp)>,
}

/// Counts whose interval is over.
pub(super) struct Over {
    kind: Kind,
    count: Count,
}

/// Decision about a refusal.
pub(super) enum Refused {
    /// It gets a record of its own; before it, these counts are written.
    Recorded(Option<Box<Kind>>, Vec<Over>),
    /// It was counted.
    Counted,
}

impl Refusals {
    fn lock(&self) -> MutexGuard<'_, HashMap<Kind, Count>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, kind: Kind, id: &SnapshotId, now: Duration, at: Timestamp) -> Refused {
        let mut counts = self.lock();
        if let Some(count) = counts.get_mut(&kind)
            && now < count.since.saturating_add(INTERVAL)
        {
            count.add(at);
            return Refused::Counted;
        }
        let mut over = Vec::new();
        if let Some(count) = counts.remove(&kind) {
            over.push(Over {
                kind: kind.clone(),
                count,
            });
        } else if counts.len() >= KINDS_MAX {
            let oldest = counts.iter().min_by_key(|(_, count)| count.since);
            let oldest = oldest.map(|(kind, _)| kind.clone());
            let oldest = oldest.and_then(|kind| counts.remove_entry(&kind));
            over.extend(oldest.map(|(kind, count)| Over { kind, count }));
        }
        let count = Count {
            since: now,
            first: Some(id.clone()),
            counted: None,
        };
        counts.insert(kind.clone(), count);
        over.retain(|over| over.count.counted.is_some());
        Refused::Recorded(Some(Box::new(kind)), over)
    }

    /// The record of the first could not be kept, so it is counted like the others.
    pub(super) fn first_is_lost(&self, kind: &Kind, at: Timestamp) {
        if let Some(count) = self.lock().get_mut(kind) {
            count.first = None;
            count.add(at);
        }
    }

    /// Takes out the counts whose interval is over; all counts if `now` is `None`.
    fn take(&self, now: Option<Duration>) -> Vec<Over> {
        let is_over =
            |count: &Count| now.is_none_or(|now| now >= count.since.saturating_add(INTERVAL));
        let over = self
            .lock()
            .extract_if(|_, count| is_over(count))
            .collect::<Vec<_>>();
        over.into_iter()
            .filter(|(_, count)| count.counted.is_some())
            .map(|(kind, count)| Over { kind, count })
            .collect()
    }

    /// Puts back counts that could not be written, to be written later; false if there is no room for them.
    fn give_back(&self, over: Over) -> bool {
        let mut counts = self.lock();
        let is_full = counts.len() >= KINDS_MAX;
        match counts.entry(over.kind) {
            Place::Occupied(mut newer) => {
                newer.get_mut().merge(&over.count);
                true
            }
            Place::Vacant(place) if !is_full => {
                place.insert(over.count);
                true
            }
            Place::Vacant(_) => false,
        }
    }
}

impl Count {
    fn add(&mut self, at: Timestamp) {
        let (count, first, last) = self.counted.get_or_insert((0, at, at));
        *count = count.saturating_add(1);
        *first = at.min(*first);
        *last = at.max(*last);
    }

    /// Takes the counts of an interval before into this one, whose first record is not the first any more.
    fn merge(&mut self, older: &Self) {
        let Some((count, first, last)) = older.counted else {
            return;
        };
        let (all, from, to) = self.counted.get_or_insert((0, first, last));
        *all = all.saturating_add(count);
        *from = first.min(*from);
        *to = last.max(*to);
        self.first.clone_from(&older.first);
    }
}

impl Executor {
    /// Counts a refusal, if it is of a kind that is counted.
    pub(super) fn count_refusal(
        &self,
        error: &ErrorBody,
        trail: &Trail,
        id: &SnapshotId,
    ) -> Refused {
        if !self.parts.store.keeps_log() || !is_counted(error, trail) {
            return Refused::Recorded(None, Vec::new());
        }
        let kind = Kind::of(error, trail);
        let now = self.parts.clock.monotonic();
        self.parts.refusals.count(kind, id, now, trail.facts.at)
    }

    /// Writes the counts of intervals that are over, every few seconds, and never ends: a server spawns this.
    pub async fn keep_counting_refusals(&self) {
        loop {
            tokio::time::sleep(LOOK).await;
            let over = self.parts.refusals.take(Some(self.parts.clock.monotonic()));
            self.write_refusals(over).await;
        }
    }

    /// Writes all counts of refused calls: before a process ends, and before an operator reads the log.
    pub async fn write_counted_refusals(&self) {
        let over = self.parts.refusals.take(None);
        self.write_refusals(over).await;
    }

    /// Writes counts as records; counts that cannot be written now are written later.
    pub(super) async fn write_refusals(&self, over: Vec<Over>) {
        for over in over {
            let Err(error) = self.write_refusal(&over).await else {
                continue;
            };
            let error = error_text(&error);
            let is_kept = self.parts.refusals.give_back(over);
            tracing::warn!(
                error,
                is_kept,
                "counted refusals could not be written to the evidence log"
            );
        }
    }

    async fn write_refusal(&self, over: &Over) -> Result<(), ledger::Error> {
        let parts = &self.parts;
        // An erased user has no key, and must not get a new one.
        let keys = match over.kind.user_id.as_str() {
            "" => None,
            user_id => parts.vault.existing_key(user_id).await?,
        };
        let Some(entry) = over.entry(parts.ids.snapshot_id(), keys.as_deref()) else {
            return Ok(());
        };
        let draft = Draft::from(entry);
        parts.store.append(draft, Durability::Batched).await
    }
}

/// True if a refusal is counted: a rate limit refused it, or it came before any limit had counted it. A call whose tool
/// has run has its record, and so has an attempt to overspend a budget.
fn is_counted(error: &ErrorBody, trail: &Trail) -> bool {
    if trail.has_run() {
        return false;
    }
    match error.code {
        // The breaker looks at arguments, so it comes after the others.
        ErrorCode::RateLimited => !trail.is_admitted || limit_of(error) == Some("identical_calls"),
        ErrorCode::InvalidArgument
        | ErrorCode::Unauthorized
        | ErrorCode::Forbidden
        | ErrorCode::NotFound => !trail.is_admitted,
        // Faults of ours, and answers that only come after the limits.
        ErrorCode::Conflict
        | ErrorCode::Timeout
        | ErrorCode::UpstreamError
        | ErrorCode::NeedsUserConfirmation
        | ErrorCode::ComplianceBlocked
        | ErrorCode::PriceChanged
        | ErrorCode::OutOfStock
        | ErrorCode::AddressInvalid => false,
    }
}

/// Name of the limit that was reached.
fn limit_of(error: &ErrorBody) -> Option<&str> {
    error.details.extra.get("limit")?.as_str()
}

impl Kind {
    fn of(error: &ErrorBody, trail: &Trail) -> Self {
        let record = &trail.record;
        let principal = &trail.facts.principal;
        let limit = limit_of(error);
        let user_id = Some(&record.user_id).filter(|id| is_name(id));
        Self {
            actor: record.actor.clone(),
            principal: principal.actor.clone(),
            credential: principal.credential.as_ref().map(|it| match it {
                Credential::ApiKey { id } => CredentialName::ApiKey(id.clone()),
                Credential::Token { issuer, .. } => CredentialName::Issuer(issuer.clone()),
            }),
            user_id: user_id.cloned().unwrap_or_default(),
            tool: trail.facts.entry.as_ref().map(|entry| {
                let spec = entry.spec();
                (spec.name.to_string(), spec.version.clone())
            }),
            code: error.code,
            reason: limit.or(error.details.field.as_deref()).map(str::to_owned),
            dry_run: record.dry_run,
        }
    }
}

impl Over {
    /// The record of the counts; it names no user without a key that hides the name.
    fn entry(&self, id: SnapshotId, keys: Option<&UserKey>) -> Option<Entry> {
        let Self { kind, count } = self;
        let (counted, first_at, last_at) = count.counted?;
        let mut about = CountedRefusals::new(counted, first_at.to_string(), last_at.to_string());
        about.reason.clone_from(&kind.reason);
        about.first.clone_from(&count.first);
        let named = |actor: &Actor| {
            let is_proved = *actor == kind.principal;
            keys.map(|keys| recorded_actor(actor, &kind.user_id, keys, is_proved))
        };
        let (tool, version) = kind.tool.clone().unzip();
        let record = EvidenceRecord {
            subject: keys.map(|keys| keys.subject(&kind.user_id)),
            actor: named(&kind.actor),
            principal: (kind.principal != kind.actor)
                .then(|| named(&kind.principal))
                .flatten(),
            credential: kind.credential.as_ref().map(|it| match it {
                CredentialName::ApiKey(id) => RecordedCredential::ApiKey { id: id.clone() },
                CredentialName::Issuer(issuer) => RecordedCredential::Token {
                    issuer: issuer.clone(),
                    id: None,
                },
            }),
            tool: Some(RecordedTool {
                name: tool.clone().unwrap_or_else(|| "unknown".to_owned()),
                // As in every record: a tool that there is has one, and the row then names it.
                version,
                definition: None,
                build: None,
            }),
            dry_run: kind.dry_run,
            reply: Some(RecordedReply {
                code: Some(kind.code),
                commitment: None,
                ttl_seconds: None,
                valid_until: None,
            }),
            retention: Retention::Short,
            act: serde_json::to_value(&about).expect("names and a number"),
            ..EvidenceRecord::new(RecordKind::Denial, id.clone(), last_at.to_string())
        };
        Some(Entry {
            id,
            user_id: keys.map_or_else(String::new, |_| kind.user_id.clone()),
            sealed_under: keys.map(UserKey::id),
            kind: RecordKind::Denial,
            at: last_at,
            request_id: None,
            tool,
            code: Some(kind.code),
            leaf: canonical_leaf(&record),
            payload: None,
            keep_payload: None,
        })
    }
}
