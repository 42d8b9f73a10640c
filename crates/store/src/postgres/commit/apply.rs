//! The second flight: writes the changes of the calls that may go on, and removes the rows that the others
//! inserted.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use countersign::ledger::{
    ClaimState, DocumentKey, DocumentWrite, IndexEntry, KeyChange, Outcome, Scope, SpendChange,
    SpendEnd,
};
use deadpool_postgres::Client;

use super::Job;
use super::decide::Verdict;
use super::flight::{Flight, Param};
use super::guard::{
    Collection, Found, collection, has_lost_key, key_columns, placeholders, reservation_columns,
    scope_columns,
};
use super::statements::Statements;
use crate::postgres::documents::encode;
use crate::postgres::records::Payloads;
use crate::postgres::{micros, signed};

/// Everything that the second flight writes.
#[derive(Default)]
pub(super) struct Changes<'j> {
    /// Calls whose records are kept, in the order in which they go into the log.
    kept: Vec<&'j Job>,
    /// Calls among them whose key is no longer their user's: their records are kept without a name and without
    /// a payload.
    unnamed: Vec<&'j Job>,
    fenced: Vec<&'j Job>,
    undone: Vec<&'j Job>,
    undone_claims: Vec<&'j Scope>,
    undone_documents: BTreeSet<&'j DocumentKey>,
    claims: Vec<&'j KeyChange>,
    documents: Vec<&'j DocumentWrite>,
    removed_entries: Vec<(&'j DocumentKey, IndexEntry)>,
    entries: Vec<(&'j DocumentKey, &'j IndexEntry)>,
    /// Amount by which each shape rises.
    pub(super) shapes: BTreeMap<Collection<'j>, i64>,
    spends: Vec<&'j SpendChange>,
}

impl<'j> Changes<'j> {
    pub(super) fn new(jobs: &'j [Job], verdicts: &[Verdict], found: &Found<'j>) -> Self {
        let mut changes = Self::default();
        for (job, verdict) in jobs.iter().zip(verdicts) {
            match verdict {
                Verdict::Commit => {
                    changes.keep(job, found);
                    changes.commit(job, found);
                }
                Verdict::Fenced => {
                    changes.keep(job, found);
                    changes.fenced.push(job);
                    changes.undo(job, found);
                }
                Verdict::Repeat(_)
                | Verdict::Held(_)
                | Verdict::Moved { .. }
                | Verdict::Lapsed
                | Verdict::Erased
                | Verdict::Vanished => {
                    if found.new_records.contains(job.entry.id.as_str()) {
                        changes.undone.push(job);
                    }
                    changes.undo(job, found);
                }
            }
        }
        let placeholders = placeholders(jobs).into_iter();
        let placeholders = placeholders.filter(|key| found.new_documents.contains(*key));
        changes.undone_documents.extend(placeholders);
        changes
    }

    /// True if there is nothing to commit: every inserted row is removed again.
    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    fn keep(&mut self, job: &'j Job, found: &Found<'j>) {
        self.kept.push(job);
        if has_lost_key(job, found) {
            self.unnamed.push(job);
        }
    }

    fn is_unnamed(&self, job: &Job) -> bool {
        self.unnamed.iter().any(|other| std::ptr::eq(*other, job))
    }

    /// Returns the user id that a record is filed by.
    fn name_of(&self, job: &'j Job) -> &'j str {
        if self.is_unnamed(job) {
            ""
        } else {
            &job.entry.user_id
        }
    }

    fn commit(&mut self, job: &'j Job, found: &Found<'j>) {
        self.spends.extend(&job.spend);
        if let Some(key) = &job.key {
            let is_inserted = match key {
                KeyChange::Take { scope, .. } => found.new_claims.contains(scope),
                KeyChange::Settle { .. } => false,
            };
            if !is_inserted {
                self.claims.push(key);
            }
        }
        for write in &job.writes {
            let before = found.documents.get(&write.key);
            let was_live = before.is_some_and(|before| before.is_live);
            let had = before.map_or(&[][..], |before| &before.entries);
            if write.version > 0 {
                self.documents.push(write);
            }
            if had != write.entries {
                let gone = had.iter().filter(|entry| !write.entries.contains(entry));
                let gone = gone.map(|entry| (&write.key, entry.clone()));
                self.removed_entries.extend(gone);
                let new = write.entries.iter().filter(|entry| !had.contains(entry));
                self.entries.extend(new.map(|entry| (&write.key, entry)));
            }
            let is_reshaped = was_live != write.body.is_some() || had != write.entries;
            if write.tracked && is_reshaped {
                *self.shapes.entry(collection(write)).or_default() += 1;
            }
        }
    }

    fn undo(&mut self, job: &'j Job, found: &Found<'j>) {
        if let Some(KeyChange::Take { scope, .. }) = &job.key
            && found.new_claims.contains(scope)
        {
            self.undone_claims.push(scope);
        }
        let written = job.writes.iter().map(|write| &write.key);
        let written = written.filter(|key| found.new_documents.contains(*key));
        self.undone_documents.extend(written);
    }

    pub(super) fn send<'f>(
        &self,
        flight: &mut Flight<'f>,
        client: &'f Client,
        statements: &'f Statements,
    ) where
        'j: 'f,
    {
        let mut send = |is_needed: bool, statement, params: Vec<Param<'f>>| {
            if is_needed {
                flight.send(client, statement, params);
            }
        };
        let (undone, keys) = (!self.undone.is_empty(), record_keys(&self.undone));
        send(undone, &statements.remove_records, keys);
        let claims = self.undone_claims.iter().copied();
        let undone = !self.undone_claims.is_empty();
        send(undone, &statements.remove_claims, scope_columns(claims));
        let documents = self.undone_documents.iter().copied();
        let undone = !self.undone_documents.is_empty();
        send(undone, &statements.remove_documents, key_columns(documents));
        let (fenced, keys) = (!self.fenced.is_empty(), fenced_columns(&self.fenced));
        send(fenced, &statements.fence_records, keys);
        let unnamed = !self.unnamed.is_empty();
        let keys = record_keys(&self.unnamed);
        send(unnamed, &statements.unname_records, keys);
        let changed = !self.claims.is_empty();
        send(
            changed,
            &statements.update_claims,
            claim_columns(&self.claims),
        );
        let changed = !self.documents.is_empty();
        let documents = document_columns(&self.documents);
        send(changed, &statements.update_documents, documents);
        let gone = self.removed_entries.iter();
        let gone = entry_columns(gone.map(|(key, entry)| (*key, entry.clone())));
        let is_gone = !self.removed_entries.is_empty();
        send(is_gone, &statements.remove_entries, gone);
        let new = self.entries.iter();
        let new = entry_columns(new.map(|(key, entry)| (*key, (*entry).clone())));
        send(!self.entries.is_empty(), &statements.insert_entries, new);
        let raised = !self.shapes.is_empty();
        send(
            raised,
            &statements.raise_shapes,
            shape_columns(&self.shapes),
        );
        let named = self.kept.iter().filter(|job| !self.is_unnamed(job));
        let payloads: Payloads<'j> = named.map(|job| &job.entry).collect();
        send(
            !payloads.ids.is_empty(),
            &statements.insert_payloads,
            vec![
                Box::new(payloads.user_ids),
                Box::new(payloads.ids),
                Box::new(payloads.untils),
                Box::new(payloads.keeps),
                Box::new(payloads.bodies),
            ],
        );
        // Late in the flight, because many calls may wait for the same pot.
        let spends = !self.spends.is_empty();
        send(
            spends,
            &statements.end_reservations,
            spend_columns(&self.spends),
        );
        let (user_ids, ids): (Vec<&str>, Vec<&str>) = self
            .kept
            .iter()
            .map(|job| (self.name_of(job), job.entry.id.as_str()))
            .unzip();
        let params: Vec<Param<'f>> = vec![Box::new(user_ids), Box::new(ids)];
        send(true, &statements.insert_outbox, params);
        flight.commit(client);
    }
}

/// A call's outcome as columns.
pub(super) struct Ended<'o> {
    pub(super) state: i16,
    pub(super) reply: Option<&'o [u8]>,
    pub(super) keep: Option<Duration>,
}

pub(super) fn ended(outcome: &Outcome) -> Ended<'_> {
    let (state, reply, keep) = match outcome {
        Outcome::Succeeded { reply, keep } => (ClaimState::Succeeded, Some(reply), Some(*keep)),
        Outcome::Failed { reply, keep } => (ClaimState::Failed, Some(reply), Some(*keep)),
        Outcome::Released => (ClaimState::Released, None, None),
        Outcome::Abandoned => (ClaimState::Running, None, None),
        Outcome::InDoubt => (ClaimState::InDoubt, None, None),
    };
    Ended {
        state: state as i16,
        reply: reply.map(Vec::as_slice),
        keep,
    }
}

fn record_keys<'f>(jobs: &[&'f Job]) -> Vec<Param<'f>> {
    let user_ids: Vec<&str> = jobs.iter().map(|job| &*job.entry.user_id).collect();
    let ids: Vec<&str> = jobs.iter().map(|job| job.entry.id.as_str()).collect();
    vec![Box::new(user_ids), Box::new(ids)]
}

/// Records whose commits were fenced, each with the leaf that says so.
fn fenced_columns<'f>(jobs: &[&'f Job]) -> Vec<Param<'f>> {
    let leaf = |job: &&Job| match &job.if_fenced {
        Some(fenced) => fenced.leaf(),
        None => job.entry.leaf.clone(),
    };
    let leaves: Vec<Vec<u8>> = jobs.iter().map(leaf).collect();
    let code = |(job, leaf): (&&Job, &Vec<u8>)| {
        let code = job.leaves.code_of_leaf(job.entry.id.as_str(), leaf);
        code.map(Vec::from)
    };
    let codes: Vec<Option<Vec<u8>>> = jobs.iter().zip(&leaves).map(code).collect();
    let mut columns = record_keys(jobs);
    columns.push(Box::new(leaves));
    columns.push(Box::new(codes));
    columns
}

fn claim_columns<'f>(changes: &[&'f KeyChange]) -> Vec<Param<'f>> {
    let mut scopes = Vec::new();
    let (mut states, mut attempts) = (Vec::new(), Vec::new());
    let (mut fingerprints, mut all_parts) = (Vec::new(), Vec::new());
    let (mut request_ids, mut replies, mut keeps) = (Vec::new(), Vec::new(), Vec::new());
    for change in changes {
        // A settled claim keeps its parts and the id of the call that took it.
        let (scope, attempt, taken, outcome) = match change {
            KeyChange::Take {
                scope,
                fingerprint,
                parts,
                after,
                outcome,
                request_id,
            } => {
                let taken = (
                    fingerprint.as_slice(),
                    parts.as_slice(),
                    request_id.as_str(),
                );
                (scope, i64::from(*after) + 1, Some(taken), outcome)
            }
            KeyChange::Settle { claim, outcome } => {
                (&claim.scope, i64::from(claim.attempt), None, outcome)
            }
        };
        let ended = ended(outcome);
        scopes.push(scope);
        states.push(ended.state);
        attempts.push(attempt);
        fingerprints.push(taken.map(|(fingerprint, _, _)| fingerprint));
        all_parts.push(taken.map(|(_, parts, _)| parts));
        request_ids.push(taken.map(|(_, _, request_id)| request_id));
        replies.push(ended.reply);
        keeps.push(ended.keep.map(micros));
    }
    let mut params = scope_columns(scopes.into_iter());
    params.push(Box::new(states));
    params.push(Box::new(attempts));
    params.push(Box::new(fingerprints));
    params.push(Box::new(all_parts));
    params.push(Box::new(request_ids));
    params.push(Box::new(replies));
    params.push(Box::new(keeps));
    params
}

fn spend_columns<'f>(spends: &[&'f SpendChange]) -> Vec<Param<'f>> {
    let mut are_spent = Vec::new();
    let (mut owners, mut places, mut amounts) = (Vec::new(), Vec::new(), Vec::new());
    for spend in spends {
        let actual = match &spend.end {
            SpendEnd::Released => None,
            SpendEnd::Spent(actual) | SpendEnd::SpentHere(actual) => Some(actual),
        };
        are_spent.push(actual.is_some());
        let known = actual.into_iter().flatten().enumerate();
        for (n, amount) in known.filter_map(|(n, amount)| Some((n, (*amount)?))) {
            owners.push(&spend.id);
            places.push(i32::try_from(n).unwrap_or(i32::MAX));
            amounts.push(amount);
        }
    }
    let mut params = reservation_columns(spends.iter().map(|spend| &spend.id));
    params.push(Box::new(are_spent));
    params.extend(reservation_columns(owners.into_iter()));
    params.push(Box::new(places));
    params.push(Box::new(amounts));
    params
}

fn document_columns<'f>(writes: &[&'f DocumentWrite]) -> Vec<Param<'f>> {
    let versions: Vec<i64> = writes
        .iter()
        .map(|write| signed(write.version + 1))
        .collect();
    let bodies: Vec<Option<&[u8]>> = writes.iter().map(|write| write.body.as_deref()).collect();
    let entries: Vec<Vec<u8>> = writes.iter().map(|write| encode(&write.entries)).collect();
    let mut params = key_columns(writes.iter().map(|write| &write.key));
    params.push(Box::new(versions));
    params.push(Box::new(bodies));
    params.push(Box::new(entries));
    params
}

fn entry_columns<'f>(
    entries: impl Iterator<Item = (&'f DocumentKey, IndexEntry)>,
) -> Vec<Param<'f>> {
    let (mut keys, mut names, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for (key, entry) in entries {
        keys.push(key);
        names.push(entry.index);
        values.push(entry.value.to_vec());
    }
    let mut params = key_columns(keys.into_iter());
    params.push(Box::new(names));
    params.push(Box::new(values));
    params
}

fn shape_columns<'f>(shapes: &BTreeMap<Collection<'f>, i64>) -> Vec<Param<'f>> {
    let (user_ids, collections): (Vec<&str>, Vec<&str>) = shapes.keys().copied().unzip();
    let by: Vec<i64> = shapes.values().copied().collect();
    vec![Box::new(user_ids), Box::new(collections), Box::new(by)]
}
