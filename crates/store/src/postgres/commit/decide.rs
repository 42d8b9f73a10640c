//! Verdicts: decides the result of each call from the rows that the guard found. No I/O.

use countersign::ledger::{Held, HeldState, KeyChange};

use super::Job;
use super::guard::{Found, has_lost_key, needed};

/// Result of a call's commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The whole commit is applied.
    Commit,
    /// The record existed before, so the first commit counts. Contains whether that one was fenced, if known
    /// yet.
    Repeat(Option<bool>),
    /// Another owner has the scope. Contains its state, if known yet.
    Held(Option<Held>),
    /// A document or a shape changed after it was read.
    Moved { collection: String, id: String },
    /// The reservation that the call relies on was given up.
    Lapsed,
    /// The user was erased.
    Erased,
    /// The owner was overtaken: only the record is kept.
    Fenced,
    /// A row was deleted between two statements. The call is worth a retry.
    Vanished,
}

/// Decides a commit by the rules in their order: a repeat is a repeat whatever else has changed, nothing of an
/// erased user comes back, and a lost key is reported before any document is.
pub(super) fn decide(job: &Job, found: &Found<'_>) -> Verdict {
    let id = job.entry.id.as_str();
    if let Some(fenced) = found.erased_records.get(id) {
        return Verdict::Repeat(Some(*fenced));
    }
    if !found.new_records.contains(id) {
        return Verdict::Repeat(None);
    }
    if job.is_of_user && has_lost_key(job, found) {
        return Verdict::Erased;
    }
    if let Some(stop) = job.key.as_ref().and_then(|key| stopped(key, found)) {
        return stop;
    }
    if needed(job).is_some_and(|id| !found.reservations.contains(id)) {
        return Verdict::Lapsed;
    }
    moved(job, found).unwrap_or(Verdict::Commit)
}

/// Returns the verdict if the key does not let the call go on; otherwise `None`.
fn stopped(key: &KeyChange, found: &Found<'_>) -> Option<Verdict> {
    match key {
        KeyChange::Take { scope, .. } if found.new_claims.contains(scope) => None,
        KeyChange::Take { scope, after, .. } => match found.claims.get(scope) {
            Some(held) if held.state == HeldState::Released && held.attempt == *after => None,
            Some(held) => Some(Verdict::Held(Some(held.clone()))),
            None if *after > 0 => Some(Verdict::Vanished),
            None => Some(Verdict::Held(None)),
        },
        KeyChange::Settle { claim, .. } => {
            let held = found.claims.get(&claim.scope);
            let is_ours = held.is_some_and(|held| held.attempt == claim.attempt && is_open(held));
            (!is_ours).then_some(Verdict::Fenced)
        }
    }
}

/// True if the owner may still report the outcome.
fn is_open(held: &Held) -> bool {
    match held.state {
        HeldState::Running { .. } | HeldState::Abandoned | HeldState::InDoubt => true,
        HeldState::Released
        | HeldState::Succeeded(_)
        | HeldState::Failed(_)
        | HeldState::Expired => false,
    }
}

fn moved(job: &Job, found: &Found<'_>) -> Option<Verdict> {
    let reads = job.reads.iter().map(|read| (&read.key, read.version));
    let writes = job.writes.iter().map(|write| (&write.key, write.version));
    for (key, version) in reads.chain(writes) {
        let is_as_read = if version == 0 {
            found.new_documents.contains(key)
        } else {
            let document = found.documents.get(key);
            document.is_some_and(|document| document.version == version)
        };
        if !is_as_read {
            return Some(Verdict::Moved {
                collection: key.collection.clone(),
                id: key.id.clone(),
            });
        }
    }
    let shape = job.shapes.iter().find(|read| {
        let key = (read.user_id.as_str(), read.collection.as_str());
        found.shapes.get(&key) != Some(&read.shape)
    })?;
    Some(Verdict::Moved {
        collection: shape.collection.clone(),
        id: String::new(),
    })
}
