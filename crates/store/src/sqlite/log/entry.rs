//! Keeping a record: it gets the next place of the log, and its payload is stored beside it.

use countersign::ledger::Entry;
use countersign_contract::{Digest, ErrorCode, RequestId};
use countersign_evidence::tree::{Hash, leaf_hash};
use rusqlite::{Connection, params};

use crate::sqlite::failure::Failure;
use crate::sqlite::keyring::is_lost;
use crate::sqlite::time::{later, micros};
use crate::sqlite::tip::Waiting;
use crate::sqlite::values::signed;
use crate::sqlite::writer::Session;

/// A record with everything that can be computed before the writer's turn.
#[derive(Clone)]
pub(in crate::sqlite) struct Sealed {
    entry: Entry,
    hash: Hash,
    terms: Terms,
}

/// Search terms of a record, besides its id and time: its user, and its call if the id is of our making.
pub(in crate::sqlite) type Terms = [Option<i64>; 2];

impl From<Entry> for Sealed {
    fn from(entry: Entry) -> Self {
        let hash = leaf_hash(&entry.leaf);
        let request_id = entry.request_id.as_ref().map(RequestId::as_str);
        let terms = terms(&entry.user_id, request_id);
        Self { entry, hash, terms }
    }
}

impl Sealed {
    /// The same record with another leaf.
    pub(in crate::sqlite) fn with_leaf(&self, leaf: Vec<u8>) -> Self {
        let entry = self.entry.clone();
        Entry { leaf, ..entry }.into()
    }
}

pub(in crate::sqlite) fn terms(user_id: &str, request_id: Option<&str>) -> Terms {
    let user = (!user_id.is_empty()).then(|| user_term(user_id));
    let made = request_id.filter(|id| is_made(id));
    [user, made.map(request_term)]
}

/// True if a request id is of our making. All others are in the table `chosen`.
pub(super) fn is_made(request_id: &str) -> bool {
    request_id.starts_with("req_")
}

pub(super) fn user_term(user_id: &str) -> i64 {
    term("user", user_id)
}

pub(super) fn request_term(request_id: &str) -> i64 {
    term("request", request_id)
}

/// Hashes a term to a short number. Two strings with the same number are told apart by the record itself.
fn term(kind: &str, text: &str) -> i64 {
    let digest = Digest::of_bytes([kind, text].join("\0").as_bytes());
    let first = digest.as_bytes().first_chunk();
    i64::from_be_bytes(*first.expect("a digest has 32 bytes"))
}

/// Keeps a record at the next place. False if it is already kept. A record whose key is no longer the user's is
/// kept in the form that an erasure leaves.
pub(in crate::sqlite) fn keep(session: &mut Session<'_>, sealed: &Sealed) -> Result<bool, Failure> {
    if sealed.has_lost_key(session.connection)? {
        let entry = Entry {
            user_id: String::new(),
            payload: None,
            ..sealed.entry.clone()
        };
        return keep_as_it_is(session, &Sealed::from(entry));
    }
    keep_as_it_is(session, sealed)
}

fn keep_as_it_is(session: &mut Session<'_>, sealed: &Sealed) -> Result<bool, Failure> {
    let entry = &sealed.entry;
    let (place, at) = (signed(session.tip.next), micros(entry.at));
    let mut record = session.connection.prepare_cached(
        "INSERT INTO record (idx, at, fenced, kind, code, tool, id, user_id, request_id, leaf, code_of_leaf)
         VALUES (?1, ?2, 0, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (id) DO NOTHING",
    )?;
    let kept = record.execute(params![
        place,
        at,
        entry.kind.as_str(),
        entry.code.map(ErrorCode::as_str),
        entry.tool,
        entry.id.as_str(),
        entry.user_id,
        entry.request_id.as_ref().map(RequestId::as_str),
        entry.leaf,
        session.leaves.code(entry.id.as_str(), &sealed.hash),
    ])?;
    if kept == 0 {
        return Ok(false);
    }
    if let Some(bytes) = &entry.payload {
        // Counted from the latest of the times: a wrong clock shortens no retention.
        let from = at.max(session.now).max(session.believed);
        let until = entry.keep_payload.map(|keep| later(from, keep));
        let mut payload = session
            .connection
            .prepare_cached("INSERT INTO payload (idx, until, bytes) VALUES (?1, ?2, ?3)")?;
        payload.execute(params![place, until, bytes])?;
    }
    session.tip.push(Waiting {
        hash: sealed.hash,
        at,
        terms: sealed.terms,
    });
    Ok(true)
}

pub(in crate::sqlite) fn keep_all(
    session: &mut Session<'_>,
    records: &[Sealed],
) -> Result<(), Failure> {
    records
        .iter()
        .try_for_each(|sealed| keep(session, sealed).map(|_| ()))
}

impl Sealed {
    pub(in crate::sqlite) fn id(&self) -> &str {
        self.entry.id.as_str()
    }

    /// True if the record's key is no longer the user's.
    pub(in crate::sqlite) fn has_lost_key(&self, connection: &Connection) -> Result<bool, Failure> {
        is_lost(connection, &self.entry.user_id, self.entry.sealed_under)
    }
}
