//! Batching: selects waiting calls for one transaction, none of which touches what another one touches.

use std::collections::{HashMap, HashSet};

use countersign::ledger::{DocumentKey, KeyChange, Scope};

use super::Job;

/// Takes the calls that can be committed together, at most `max`, and leaves the others in their order.
pub(super) fn take(waiting: &mut Vec<Job>, max: usize) -> Vec<Job> {
    let fits = fitting(waiting, max);
    let mut fits = fits.into_iter();
    let taken = waiting.extract_if(.., |_| fits.next().unwrap_or(false));
    taken.collect()
}

/// Returns for each call whether it fits: it touches nothing that an earlier fitting call touches.
fn fitting(jobs: &[Job], max: usize) -> Vec<bool> {
    let mut touched = Touched::default();
    let mut taken = 0;
    let fits = jobs.iter().map(|job| {
        let fits = taken < max && touched.has_room_for(job);
        if fits {
            touched.add(job);
            taken += 1;
        }
        fits
    });
    fits.collect()
}

/// Rows that the calls of a transaction touch.
#[derive(Default)]
struct Touched<'j> {
    records: HashSet<&'j str>,
    scopes: HashSet<&'j Scope>,
    /// True if the document is written, not only read.
    documents: HashMap<&'j DocumentKey, bool>,
    /// True if the shape may be raised.
    shapes: HashMap<(&'j str, &'j str), bool>,
}

impl<'j> Touched<'j> {
    fn has_room_for(&self, job: &'j Job) -> bool {
        let is_written = |key: &DocumentKey| self.documents.get(key) == Some(&true);
        let shape_is = |key: (&'j str, &'j str), raised| self.shapes.get(&key) == Some(&raised);
        !self.records.contains(job.entry.id.as_str())
            && scope(job).is_none_or(|scope| !self.scopes.contains(scope))
            && job.reads.iter().all(|read| !is_written(&read.key))
            && job
                .writes
                .iter()
                .all(|write| !self.documents.contains_key(&write.key))
            && job
                .shapes
                .iter()
                .all(|read| !shape_is((&read.user_id, &read.collection), true))
            && job.writes.iter().all(|write| {
                let key = (write.key.user_id.as_str(), write.key.collection.as_str());
                !(write.tracked && shape_is(key, false))
            })
    }

    fn add(&mut self, job: &'j Job) {
        self.records.insert(job.entry.id.as_str());
        self.scopes.extend(scope(job));
        for read in &job.reads {
            self.documents.entry(&read.key).or_insert(false);
        }
        for read in &job.shapes {
            self.shapes
                .entry((&read.user_id, &read.collection))
                .or_insert(false);
        }
        for write in &job.writes {
            self.documents.insert(&write.key, true);
            if write.tracked {
                let key = (write.key.user_id.as_str(), write.key.collection.as_str());
                self.shapes.insert(key, true);
            }
        }
    }
}

/// Returns the scope that a call changes.
pub(super) fn scope(job: &Job) -> Option<&Scope> {
    match job.key.as_ref()? {
        KeyChange::Take { scope, .. } => Some(scope),
        KeyChange::Settle { claim, .. } => Some(&claim.scope),
    }
}
