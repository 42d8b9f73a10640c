//! What becomes of each call, from what the guard has found. No I/O.

use countersign::ledger::{Held, HeldState, KeyChange};

use super::Job;
use super::guard::{Found, needed};

/// What becomes of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// All of it is done.
    Commit,
    /// The record was there before: the first commit counts. Whether that one was fenced, if known yet.
    Repeat(Option<bool>),
    /// Somebody else has the scope; how it stands, if known yet.
    Held(Option<Held>),
    /// What was read has moved.
    Moved { collection: String, id: String },
    /// The money that it rests on was given up.
    Lapsed,
    /// Only the record is kept.
    Fenced,
    /// A row went while we looked for it. Worth another look.
    Vanished,
}

/// The rules of a commit, in the order in which they count: a repeat is a repeat whatever else has changed,
/// and a key that is not ours says so before any document does.
pub(super) fn decide(job: &Job, found: &Found<'_>) -> Verdict {
    let id = job.entry.id.as_str();
    if let Some(fenced) = found.erased_records.get(id) {
        return Verdict::Repeat(Some(*fenced));
    }
    if !found.new_records.contains(id) {
        return Verdict::Repeat(None);
    }
    if let Some(stop) = job.key.as_ref().and_then(|key| stopped(key, found)) {
        return stop;
    }
    if needed(job).is_some_and(|id| !found.reservations.contains(id)) {
        return Verdict::Lapsed;
    }
    moved(job, found).unwrap_or(Verdict::Commit)
}

/// Why the key does not let the call go on, where it does not.
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

/// Whether an owner may still say what happened.
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
