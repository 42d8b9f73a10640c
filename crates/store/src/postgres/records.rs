//! Records as columns: parameters of the statements that insert many of them at once.

use countersign::ledger::Entry;
use countersign_contract::ErrorCode;
use jiff::{SignedDuration, Timestamp};

use super::micros;
use crate::leaves::Code;

/// Inserts records; returns the ids of those that did not exist.
pub(super) const INSERT_RECORDS: &str = "INSERT INTO record \
        (user_id, id, kind, at_ns, request_id, tool, code, fenced, leaf, code_of_leaf) \
     SELECT user_id, id, kind, at_ns, request_id, tool, code, false, leaf, code_of_leaf \
     FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[], \
                 $8::bytea[], $9::bytea[]) AS t (user_id, id, kind, at_ns, request_id, tool, code, leaf, code_of_leaf) \
     ON CONFLICT (user_id, id) DO NOTHING RETURNING id";

/// Inserts the payloads of records that did not exist before. Their time counts from the latest of the record's
/// time, the server's and the one that was believed: a wrong clock shortens no retention.
pub(super) const INSERT_PAYLOADS: &str = "INSERT INTO payload (user_id, id, until, body) \
     SELECT user_id, id, greatest(until, greatest(now(), (SELECT at FROM time_mark WHERE one = 1)) \
        + keep_us * interval '1 microsecond'), body \
     FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::bigint[], $5::bytea[]) \
       AS t (user_id, id, until, keep_us, body)";

/// Inserts their places in the queue for the tree.
pub(super) const INSERT_OUTBOX: &str = "INSERT INTO outbox (user_id, id) \
     SELECT user_id, id FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS t (user_id, id, nth) \
     ORDER BY nth";

/// The columns of [`INSERT_RECORDS`].
#[derive(Default)]
pub(super) struct Records<'e> {
    pub(super) user_ids: Vec<&'e str>,
    pub(super) ids: Vec<&'e str>,
    pub(super) kinds: Vec<&'e str>,
    pub(super) ats: Vec<i64>,
    pub(super) request_ids: Vec<Option<&'e str>>,
    pub(super) tools: Vec<Option<&'e str>>,
    pub(super) codes: Vec<Option<&'e str>>,
    pub(super) leaves: Vec<&'e [u8]>,
    pub(super) codes_of_leaves: Vec<Option<Vec<u8>>>,
}

impl<'e> FromIterator<(&'e Entry, Code)> for Records<'e> {
    fn from_iter<I: IntoIterator<Item = (&'e Entry, Code)>>(entries: I) -> Self {
        let mut records = Self::default();
        for (entry, code) in entries {
            records.user_ids.push(&entry.user_id);
            records.ids.push(entry.id.as_str());
            records.kinds.push(entry.kind.as_str());
            records.ats.push(nanos(entry.at));
            let request_id = entry.request_id.as_ref();
            records.request_ids.push(request_id.map(AsRef::as_ref));
            records.tools.push(entry.tool.as_deref());
            records.codes.push(entry.code.map(ErrorCode::as_str));
            records.leaves.push(&entry.leaf);
            records.codes_of_leaves.push(code.map(Vec::from));
        }
        records
    }
}

/// The columns of [`INSERT_PAYLOADS`]; an entry without one has no row.
#[derive(Default)]
pub(super) struct Payloads<'e> {
    pub(super) user_ids: Vec<&'e str>,
    pub(super) ids: Vec<&'e str>,
    pub(super) untils: Vec<Option<Timestamp>>,
    pub(super) keeps: Vec<Option<i64>>,
    pub(super) bodies: Vec<&'e [u8]>,
}

impl<'e> FromIterator<&'e Entry> for Payloads<'e> {
    fn from_iter<I: IntoIterator<Item = &'e Entry>>(entries: I) -> Self {
        let mut payloads = Self::default();
        for entry in entries {
            let Some(body) = &entry.payload else { continue };
            payloads.user_ids.push(&entry.user_id);
            payloads.ids.push(entry.id.as_str());
            payloads.untils.push(payload_until(entry));
            payloads.keeps.push(entry.keep_payload.map(micros));
            payloads.bodies.push(body);
        }
        payloads
    }
}

/// Converts a time to nanoseconds since 1970, limited to the years that fit: until 2262.
pub(super) fn nanos(at: Timestamp) -> i64 {
    let nanos = at.as_nanosecond();
    i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
}

/// Converts the result of [`nanos`] back.
pub(super) fn timestamp(nanos: i64) -> Timestamp {
    Timestamp::from_nanosecond(nanos.into()).expect("64 bits of nanoseconds are within its range")
}

fn payload_until(entry: &Entry) -> Option<Timestamp> {
    let keep = SignedDuration::try_from(entry.keep_payload?).unwrap_or(SignedDuration::MAX);
    Some(entry.at.checked_add(keep).unwrap_or(Timestamp::MAX))
}
