//! The first flight: inserts the rows that must not exist yet, locks the rows that must be as they were read.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use countersign::ledger::{
    DocumentKey, DocumentWrite, Held, IndexEntry, KeyChange, ReservationId, Scope, SpendEnd,
};
use countersign_evidence::seal::KeyId;
use deadpool_postgres::Client;
use tokio_postgres::Row;

use super::Job;
use super::flight::{Flight, Landed, Param, Place};
use super::statements::Statements;
use crate::postgres::documents::{decode, encode};
use crate::postgres::failure::Failure;
use crate::postgres::held::held;
use crate::postgres::records::Records;
use crate::postgres::{micros, signed, unsigned};

/// A collection of a user.
pub(super) type Collection<'j> = (&'j str, &'j str);

/// A user, and the key that something was sealed under.
pub(super) type Sealing<'j> = (&'j str, KeyId);

/// Rows that the calls of a transaction rely on. Every list is in the order of its keys, which is the order in
/// which every transaction takes locks, so that there is no deadlock.
pub(super) struct Plan<'j> {
    jobs: &'j [Job],
    /// The keys that the records were sealed under, with their users.
    keys: BTreeSet<Sealing<'j>>,
    /// Scopes that are taken, with the change that takes them.
    takes: BTreeMap<&'j Scope, &'j KeyChange>,
    /// Scopes that have a row, or may have one.
    claims: Vec<&'j Scope>,
    /// Documents that did not exist when they were read, each with its write, if it has one.
    absent: BTreeMap<&'j DocumentKey, Option<&'j DocumentWrite>>,
    /// Documents that existed when they were read; true if the document is written.
    present: BTreeMap<&'j DocumentKey, bool>,
    /// Collections whose shape was read or is sure to change; true for the latter.
    shapes: BTreeMap<Collection<'j>, bool>,
    /// Reservations that must still exist.
    reservations: BTreeSet<&'j ReservationId>,
}

/// Rows that the database found for a [`Plan`].
#[derive(Default)]
pub(super) struct Found<'j> {
    /// Keys that are still their users'. No user can be erased before the commit.
    pub(super) keys: HashSet<Sealing<'j>>,
    /// Records that did not exist.
    pub(super) new_records: HashSet<&'j str>,
    /// Records that existed, of users who were erased since; true if the record was fenced.
    pub(super) erased_records: HashMap<String, bool>,
    /// Scopes that were free.
    pub(super) new_claims: HashSet<&'j Scope>,
    /// State of the other scopes. It cannot change before the commit.
    pub(super) claims: HashMap<&'j Scope, Held>,
    /// Documents that did not exist. No other transaction can create them before the commit.
    pub(super) new_documents: HashSet<&'j DocumentKey>,
    /// The other documents. They cannot change before the commit.
    pub(super) documents: HashMap<&'j DocumentKey, Locked>,
    /// Current shapes. They cannot change before the commit.
    pub(super) shapes: HashMap<Collection<'j>, u64>,
    /// Reservations that exist. They cannot be given up before the commit.
    pub(super) reservations: HashSet<&'j ReservationId>,
}

/// A document that cannot change before the commit.
pub(super) struct Locked {
    pub(super) version: u64,
    /// True if the document has a body. Only filled in for a document that is written, like `entries`.
    pub(super) is_live: bool,
    pub(super) entries: Vec<IndexEntry>,
}

/// Indexes of the flight's answers.
#[derive(Default)]
pub(super) struct Places {
    keys: Option<Place>,
    records: Option<Place>,
    erased: Option<Place>,
    takes: Option<Place>,
    claims: Option<Place>,
    absent: Option<Place>,
    present: Option<Place>,
    shapes: Option<Place>,
    reservations: Option<Place>,
}

impl<'j> Plan<'j> {
    pub(super) fn new(jobs: &'j [Job]) -> Self {
        let mut plan = Self {
            jobs,
            keys: jobs.iter().filter_map(sealing).collect(),
            takes: BTreeMap::new(),
            claims: Vec::new(),
            absent: BTreeMap::new(),
            present: BTreeMap::new(),
            shapes: BTreeMap::new(),
            reservations: BTreeSet::new(),
        };
        for job in jobs {
            plan.add_key(job);
            plan.add_documents(job);
            plan.reservations.extend(needed(job));
        }
        plan.claims.sort_unstable();
        plan
    }

    fn add_key(&mut self, job: &'j Job) {
        let Some(key) = &job.key else { return };
        match key {
            KeyChange::Take { scope, after, .. } => {
                self.takes.insert(scope, key);
                if *after > 0 {
                    self.claims.push(scope);
                }
            }
            KeyChange::Settle { claim, .. } => self.claims.push(&claim.scope),
        }
    }

    fn add_documents(&mut self, job: &'j Job) {
        for read in &job.reads {
            if read.version == 0 {
                self.absent.entry(&read.key).or_insert(None);
            } else {
                self.present.entry(&read.key).or_insert(false);
            }
        }
        for write in &job.writes {
            if write.version == 0 {
                self.absent.insert(&write.key, Some(write));
            } else {
                self.present.insert(&write.key, true);
            }
        }
        for read in &job.shapes {
            let key = (read.user_id.as_str(), read.collection.as_str());
            self.shapes.entry(key).or_insert(false);
        }
        for write in job.writes.iter().filter(|write| write.tracked) {
            // An insert and a delete change the shape; for an update this is known later.
            if write.version == 0 || write.body.is_none() {
                self.shapes.insert(collection(write), true);
            }
        }
    }

    /// True if the shape is locked for a change.
    pub(super) fn raises(&self, collection: Collection<'j>) -> bool {
        self.shapes.get(&collection) == Some(&true)
    }

    pub(super) fn send<'f>(
        &self,
        flight: &mut Flight<'f>,
        client: &'f Client,
        statements: &'f Statements,
    ) -> Places
    where
        'j: 'f,
    {
        let mut places = Places::default();
        flight.begin(client);
        if !self.keys.is_empty() {
            let keys = self.keys.iter();
            let (user_ids, ids): (Vec<&'j str>, Vec<Vec<u8>>) =
                keys.map(|(user_id, id)| (*user_id, id.0.to_vec())).unzip();
            let params: Vec<Param<'f>> = vec![Box::new(user_ids), Box::new(ids)];
            places.keys = Some(flight.send(client, &statements.share_keys, params));
        }
        let records: Records<'j> = self
            .jobs
            .iter()
            .map(|job| (&job.entry, job.code()))
            .collect();
        let named = self.jobs.iter().filter(|job| !job.entry.user_id.is_empty());
        let named: Vec<&str> = named.map(|job| job.entry.id.as_str()).collect();
        places.records = Some(flight.send(client, &statements.insert_records, columns(records)));
        if !named.is_empty() {
            let params: Vec<Param<'f>> = vec![Box::new(named)];
            places.erased = Some(flight.send(client, &statements.erased_records, params));
        }
        if !self.takes.is_empty() {
            let params = take_columns(self.takes.values().copied());
            places.takes = Some(flight.send(client, &statements.insert_claims, params));
        }
        if !self.claims.is_empty() {
            let params = scope_columns(self.claims.iter().copied());
            places.claims = Some(flight.send(client, &statements.lock_claims, params));
        }
        if !self.absent.is_empty() {
            let params = absent_columns(&self.absent);
            places.absent = Some(flight.send(client, &statements.insert_documents, params));
        }
        if !self.present.is_empty() {
            let mut params = key_columns(self.present.keys().copied());
            params.push(Box::new(self.present.values().copied().collect::<Vec<_>>()));
            places.present = Some(flight.send(client, &statements.lock_documents, params));
        }
        if !self.shapes.is_empty() {
            places.shapes = Some(send_shapes(flight, client, statements, &self.shapes));
        }
        if !self.reservations.is_empty() {
            let params = reservation_columns(self.reservations.iter().copied());
            places.reservations = Some(flight.send(client, &statements.lock_reservations, params));
        }
        places
    }

    /// Reads the flight's answers.
    pub(super) fn found(&self, landed: &Landed, places: &Places) -> Result<Found<'j>, Failure> {
        let mut found = Found::default();
        let keys: Vec<Sealing<'j>> = self.keys.iter().copied().collect();
        let current = landed.rows(places.keys).iter();
        found.keys.extend(current.filter_map(|row| nth(&keys, row)));
        let ids: HashSet<&str> = self.jobs.iter().map(|job| job.entry.id.as_str()).collect();
        for row in landed.rows(places.records) {
            found.new_records.extend(ids.get(row.get::<_, &str>(0)));
        }
        for row in landed.rows(places.erased) {
            found.erased_records.insert(row.get(0), row.get(1));
        }
        let takes: HashMap<_, _> = self
            .takes
            .keys()
            .map(|scope| (parts(scope), *scope))
            .collect();
        for row in landed.rows(places.takes) {
            let key = (row.get(0), row.get(1), row.get(2));
            found.new_claims.extend(takes.get(&key).copied());
        }
        for row in landed.rows(places.claims) {
            if let Some(scope) = nth(&self.claims, row) {
                found.claims.insert(scope, held(row)?);
            }
        }
        let absent: HashMap<_, _> = self
            .absent
            .keys()
            .map(|key| ((&*key.user_id, &*key.collection, &*key.id), *key))
            .collect();
        for row in landed.rows(places.absent) {
            let key = (row.get(0), row.get(1), row.get(2));
            found.new_documents.extend(absent.get(&key).copied());
        }
        let present: Vec<&DocumentKey> = self.present.keys().copied().collect();
        for row in landed.rows(places.present) {
            if let (Some(key), Some(locked)) = (nth(&present, row), locked(row)?) {
                found.documents.insert(key, locked);
            }
        }
        let shapes: Vec<Collection<'j>> = self.shapes.keys().copied().collect();
        found.shapes = read_shapes(&shapes, landed.rows(places.shapes));
        let reservations: Vec<&ReservationId> = self.reservations.iter().copied().collect();
        let held = landed.rows(places.reservations).iter();
        found
            .reservations
            .extend(held.filter_map(|row| nth(&reservations, row)));
        Ok(found)
    }
}

/// Returns the key that a call's record was sealed under; `None` if it was not sealed.
pub(super) fn sealing(job: &Job) -> Option<Sealing<'_>> {
    let user_id = job.entry.user_id.as_str();
    let id = job.entry.sealed_under.filter(|_| !user_id.is_empty())?;
    Some((user_id, id))
}

/// True if the key that the record was sealed under is no longer the user's.
pub(super) fn has_lost_key(job: &Job, found: &Found<'_>) -> bool {
    sealing(job).is_some_and(|sealing| !found.keys.contains(&sealing))
}

/// Creates the rows of shapes that have none, and locks all of them.
pub(super) fn send_shapes<'f, 'j: 'f>(
    flight: &mut Flight<'f>,
    client: &'f Client,
    statements: &'f Statements,
    shapes: &BTreeMap<Collection<'j>, bool>,
) -> Place {
    let (user_ids, collections): (Vec<&str>, Vec<&str>) = shapes.keys().copied().unzip();
    let raised: Vec<bool> = shapes.values().copied().collect();
    let params: Vec<Param<'f>> = vec![Box::new(user_ids.clone()), Box::new(collections.clone())];
    flight.send(client, &statements.insert_shapes, params);
    let params: Vec<Param<'f>> = vec![Box::new(user_ids), Box::new(collections), Box::new(raised)];
    flight.send(client, &statements.lock_shapes, params)
}

/// Reads the answer of `send_shapes` for the same collections.
fn read_shapes<'j>(shapes: &[Collection<'j>], rows: &[Row]) -> HashMap<Collection<'j>, u64> {
    let found = rows.iter().filter_map(|row| {
        let shape: Option<i64> = row.get("shape");
        Some((nth(shapes, row)?, unsigned(shape?)))
    });
    found.collect()
}

/// Returns the collection that a document is in.
pub(super) fn collection(write: &DocumentWrite) -> Collection<'_> {
    (&write.key.user_id, &write.key.collection)
}

/// Returns the key that a row is about; `n` counts the keys from 1.
pub(super) fn nth<T: Copy>(keys: &[T], row: &Row) -> Option<T> {
    let n = usize::try_from(row.get::<_, i64>("n")).ok()?;
    keys.get(n.checked_sub(1)?).copied()
}

fn locked(row: &Row) -> Result<Option<Locked>, Failure> {
    let Some(version) = row.get::<_, Option<i64>>("version") else {
        return Ok(None);
    };
    let entries: Option<&[u8]> = row.get("entries");
    Ok(Some(Locked {
        version: unsigned(version),
        is_live: row.get::<_, Option<bool>>("is_live").unwrap_or_default(),
        entries: decode(entries.unwrap_or_default())?,
    }))
}

fn parts(scope: &Scope) -> (&str, &str, &[u8]) {
    (&scope.user_id, scope.tool.as_str(), &scope.key.0)
}

fn columns(records: Records<'_>) -> Vec<Param<'_>> {
    vec![
        Box::new(records.user_ids),
        Box::new(records.ids),
        Box::new(records.kinds),
        Box::new(records.ats),
        Box::new(records.request_ids),
        Box::new(records.tools),
        Box::new(records.codes),
        Box::new(records.leaves),
        Box::new(records.codes_of_leaves),
    ]
}

/// Builds the three columns of a scope's key.
pub(super) fn scope_columns<'f>(scopes: impl Iterator<Item = &'f Scope>) -> Vec<Param<'f>> {
    let (mut user_ids, mut tools, mut keys) = (Vec::new(), Vec::new(), Vec::new());
    for scope in scopes {
        let (user_id, tool, key) = parts(scope);
        user_ids.push(user_id);
        tools.push(tool);
        keys.push(key);
    }
    vec![Box::new(user_ids), Box::new(tools), Box::new(keys)]
}

/// Returns the reservation that the call's effect in this very commit relies on.
pub(super) fn needed(job: &Job) -> Option<&ReservationId> {
    let spend = job.spend.as_ref()?;
    match spend.end {
        SpendEnd::SpentHere(_) => Some(&spend.id),
        SpendEnd::Spent(_) | SpendEnd::Released => None,
    }
}

/// Builds the two columns of a reservation's key.
pub(super) fn reservation_columns<'f>(
    ids: impl Iterator<Item = &'f ReservationId>,
) -> Vec<Param<'f>> {
    let (user_ids, ids): (Vec<&str>, Vec<&str>) =
        ids.map(|id| (&*id.user_id, id.id.as_str())).unzip();
    vec![Box::new(user_ids), Box::new(ids)]
}

/// Builds the three columns of a document's key.
pub(super) fn key_columns<'f>(keys: impl Iterator<Item = &'f DocumentKey>) -> Vec<Param<'f>> {
    let (mut user_ids, mut collections, mut ids) = (Vec::new(), Vec::new(), Vec::new());
    for key in keys {
        user_ids.push(&*key.user_id);
        collections.push(&*key.collection);
        ids.push(&*key.id);
    }
    vec![Box::new(user_ids), Box::new(collections), Box::new(ids)]
}

fn take_columns<'f>(takes: impl Iterator<Item = &'f KeyChange>) -> Vec<Param<'f>> {
    let mut scopes = Vec::new();
    let (mut states, mut attempts) = (Vec::new(), Vec::new());
    let (mut prints, mut all_parts, mut request_ids) = (Vec::new(), Vec::new(), Vec::new());
    let (mut replies, mut keeps) = (Vec::new(), Vec::new());
    for take in takes {
        let KeyChange::Take {
            scope,
            fingerprint,
            parts,
            after,
            outcome,
            request_id,
        } = take
        else {
            continue;
        };
        let ended = super::apply::ended(outcome);
        scopes.push(scope);
        states.push(ended.state);
        attempts.push(i64::from(*after) + 1);
        prints.push(fingerprint.as_slice());
        all_parts.push(parts.as_slice());
        request_ids.push(request_id.as_str());
        replies.push(ended.reply);
        keeps.push(ended.keep.map(micros));
    }
    let mut params = scope_columns(scopes.into_iter());
    params.push(Box::new(states));
    params.push(Box::new(attempts));
    params.push(Box::new(prints));
    params.push(Box::new(all_parts));
    params.push(Box::new(request_ids));
    params.push(Box::new(replies));
    params.push(Box::new(keeps));
    params
}

/// Builds the columns of documents as they will be. A document that is only read gets a placeholder row, which
/// is removed before the commit, so that no other transaction can create the document meanwhile.
fn absent_columns<'f>(
    absent: &BTreeMap<&'f DocumentKey, Option<&'f DocumentWrite>>,
) -> Vec<Param<'f>> {
    let (mut versions, mut bodies, mut entries) = (Vec::new(), Vec::new(), Vec::new());
    for write in absent.values() {
        versions.push(write.map_or(0, |write| signed(write.version + 1)));
        bodies.push(write.and_then(|write| write.body.as_deref()));
        entries.push(write.map_or_else(Vec::new, |write| encode(&write.entries)));
    }
    let mut params = key_columns(absent.keys().copied());
    params.push(Box::new(versions));
    params.push(Box::new(bodies));
    params.push(Box::new(entries));
    params
}

/// Returns the documents that only have a placeholder row.
pub(super) fn placeholders(jobs: &[Job]) -> BTreeSet<&DocumentKey> {
    let reads = jobs.iter().flat_map(|job| {
        let is_written = |key: &DocumentKey| job.writes.iter().any(|write| write.key == *key);
        let reads = job.reads.iter().filter(|read| read.version == 0);
        reads
            .map(|read| &read.key)
            .filter(move |key| !is_written(key))
    });
    reads.collect()
}
