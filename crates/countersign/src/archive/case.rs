//! A case: everything that the log has about one order, call or record, in the order in which it happened.
//!
//! Links lead back from a record to what it rests on. What came later is found among the records of the same user: a record
//! that links a record of the case, that names the order in what it was asked or in what a person was shown, or that is about the same
//! question. Sealed content is looked into here for such a name only; nothing of it leaves this module.

use std::collections::{BTreeMap, BTreeSet};

use countersign_contract::evidence::Payload;
use countersign_contract::{EvidenceRecord, RecordKind, RequestId, SnapshotId};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Archive, Error, Shown, content};
use crate::ledger::{LogQuery, LogRow, StoredRecord};

/// Maximum number of records that a case may have.
const CASE_MAX: usize = 1_000;

/// Maximum number of later records of the user that are looked through.
const LATER_MAX: usize = 5_000;

/// Maximum number of records of one span of time that are listed at once.
const SPAN_MAX: usize = 5_000;

/// Maximum number of accesses and of questions that are looked through.
const ACTS_MAX: usize = 500;

/// Maximum number of things that one record may name; a list of orders is about none of them.
const NAMED_MAX: usize = 3;

/// The first span of time after the beginning; each next one is eight times as long.
const SPAN_FIRST: SignedDuration = SignedDuration::from_hours(1);

/// Everything that the log has about one order, call or record.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The id of the thing that was named, such as a draft order; empty if a record or a call was named.
    pub things: Vec<String>,
    /// The user; empty if there is none, or if the user was erased.
    pub user_id: String,
    /// Its records, oldest first.
    pub records: Vec<CaseRecord>,
    /// True if the user has more later records, or there were more accesses, than are looked through.
    pub is_cut: bool,
}

/// A record of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseRecord {
    /// The record.
    pub shown: Shown,
    /// Its part in the case.
    pub part: CasePart,
}

/// The part of a record in a case. The enum is exhaustive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CasePart {
    /// Basis of the case: quotes, checks, questions.
    Ground,
    /// The record that was named, or the record that made what was named.
    Named,
    /// Later events.
    Followed,
    /// A person opened sealed content of the case.
    Looked,
}

impl CasePart {
    /// Returns the name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ground => "ground",
            Self::Named => "named",
            Self::Followed => "followed",
            Self::Looked => "looked",
        }
    }
}

impl Archive {
    /// The case of these records. `name` is what led to them; where it is the id of a [known thing](super::KnownThing),
    /// every later call and question that names it is part of the case.
    pub async fn case(&self, name: &str, ids: &[SnapshotId]) -> Result<Case, Error> {
        self.store.flush().await?;
        let mut gathered = Gathered::default();
        if self.is_thing(name) {
            gathered.things.insert(name.to_owned());
        }
        for id in ids {
            self.name(&mut gathered, id).await?;
        }
        self.makers(&mut gathered).await?;
        self.materials(&mut gathered).await?;
        self.erasure(&mut gathered).await?;
        self.later(&mut gathered).await?;
        self.grounds(&mut gathered).await?;
        self.questions(&mut gathered).await?;
        self.accesses(&mut gathered).await?;
        let mut records = Vec::new();
        for (id, part) in &gathered.parts {
            let (shown, part) = (self.show(id).await?, *part);
            records.push(CaseRecord { shown, part });
        }
        records.sort_by(|left, right| order_of(left).cmp(&order_of(right)));
        Ok(Case {
            // Others are known from sealed content only, and nothing of that leaves this module.
            things: Some(name.to_owned())
                .filter(|name| self.is_thing(name))
                .into_iter()
                .collect(),
            user_id: gathered.user_id,
            records,
            is_cut: gathered.is_cut,
        })
    }

    /// Takes a record that was named, and all records of its call.
    async fn name(&self, gathered: &mut Gathered, id: &SnapshotId) -> Result<(), Error> {
        let stored = self.stored(id).await?;
        gathered.user_id.clone_from(&stored.row.user_id);
        let mut rows = vec![stored.row.clone()];
        if let Some(request_id) = &stored.row.request_id {
            rows.extend(self.of_call(request_id, &stored.row.user_id).await?);
        }
        for row in rows {
            if gathered.parts.contains_key(&row.id) {
                continue;
            }
            let stored = self.stored(&row.id).await?;
            let looked = self.look_into(&stored).await?;
            gathered.begun_at(row.at);
            if gathered.user_id.is_empty() {
                gathered.erased.clone_from(&looked.record.subject);
            }
            gathered.things.extend(self.things_in(&looked));
            gathered.materials.extend(self.materials_in(&looked));
            gathered.add(&row.id, CasePart::Named, &looked.record)?;
        }
        Ok(())
    }

    async fn of_call(&self, request_id: &RequestId, user_id: &str) -> Result<Vec<LogRow>, Error> {
        let query = LogQuery {
            request_id: Some(request_id.clone()),
            user_id: Some(user_id.to_owned()),
            limit: ACTS_MAX,
            ..LogQuery::default()
        };
        self.list(&query).await
    }

    /// Takes the records that made the things.
    async fn makers(&self, gathered: &mut Gathered) -> Result<(), Error> {
        for thing in gathered.things.clone() {
            let user_id = gathered.user_id.clone();
            for row in self.locate(&thing, Some(&user_id), ACTS_MAX).await? {
                self.name(gathered, &row.id).await?;
            }
        }
        Ok(())
    }

    /// Takes the earlier calls that worked on what the thing is made from, such as those that filled its cart.
    async fn materials(&self, gathered: &mut Gathered) -> Result<(), Error> {
        if gathered.materials.is_empty() || gathered.user_id.is_empty() {
            return Ok(());
        }
        let query = LogQuery {
            user_id: Some(gathered.user_id.clone()),
            until: gathered.begun,
            limit: EARLIER_MAX,
            ..LogQuery::default()
        };
        let rows = self.list(&query).await?;
        let (is_full, known) = (rows.len() == EARLIER_MAX, gathered.parts.len());
        for row in rows.into_iter().filter(|row| is_about_a_call(row.kind)) {
            if gathered.parts.contains_key(&row.id) {
                continue;
            }
            let looked = self.look_into(&self.stored(&row.id).await?).await?;
            let mut texts = looked.texts(true);
            if texts.any(|text| names_one_of(text, &gathered.materials)) {
                drop(texts);
                gathered.add(&row.id, CasePart::Ground, &looked.record)?;
            }
        }
        gathered.is_cut |= is_full && gathered.parts.len() == known;
        Ok(())
    }

    /// Takes the record of the user's erasure. It has no user any more, but the subject that all records of the user have.
    async fn erasure(&self, gathered: &mut Gathered) -> Result<(), Error> {
        if gathered.erased.is_none() {
            return Ok(());
        }
        let query = LogQuery {
            kind: Some(RecordKind::Erasure),
            since: gathered.begun,
            limit: ACTS_MAX,
            ..LogQuery::default()
        };
        let rows = self.list(&query).await?;
        gathered.is_cut |= rows.len() == ACTS_MAX;
        for row in rows {
            let record = super::record_of(&self.stored(&row.id).await?)?;
            if record.subject == gathered.erased {
                gathered.ended = Some(row.at);
                gathered.add(&row.id, CasePart::Followed, &record)?;
            }
        }
        Ok(())
    }

    /// Takes the later records of the user that belong to the case, from the oldest on. Those of an erased user have no user: they
    /// are found by their subject, up to the erasure.
    async fn later(&self, gathered: &mut Gathered) -> Result<(), Error> {
        let Some(begun) = gathered.begun.filter(|_| gathered.has_subject()) else {
            return Ok(());
        };
        let (mut since, mut span, mut looked_at) = (begun, SPAN_FIRST, 0);
        let now = gathered.ended.unwrap_or_else(|| self.clock.now());
        while since <= now {
            let until = since.checked_add(span).unwrap_or(Timestamp::MAX);
            let query = LogQuery {
                user_id: Some(gathered.user_id.clone()),
                since: Some(since),
                until: Some(until),
                limit: SPAN_MAX,
                ..LogQuery::default()
            };
            let rows = self.list(&query).await?;
            gathered.is_cut |= rows.len() == SPAN_MAX;
            for row in rows
                .into_iter()
                .rev()
                .filter(|row| is_about_a_call(row.kind))
            {
                looked_at += 1;
                if looked_at > LATER_MAX {
                    gathered.is_cut = true;
                    return Ok(());
                }
                self.follow(gathered, &row).await?;
            }
            since = until;
            span = span.saturating_mul(8);
        }
        Ok(())
    }

    /// Takes a later record if it belongs to the case.
    async fn follow(&self, gathered: &mut Gathered, row: &LogRow) -> Result<(), Error> {
        if gathered.parts.contains_key(&row.id) {
            return Ok(());
        }
        let stored = self.stored(&row.id).await?;
        let looked = self.look_into(&stored).await?;
        if !gathered.is_theirs(&looked.record) {
            return Ok(());
        }
        let follows = |id: &SnapshotId| {
            let part = gathered.parts.get(id);
            matches!(part, Some(CasePart::Named | CasePart::Followed))
        };
        let rests = looked.record.links.iter().any(|link| follows(&link.id));
        if rests {
            let things = self.things_in(&looked);
            gathered.things.extend(things);
        }
        if rests || looked.names_one_of(&gathered.things) || gathered.has_question(&looked.record) {
            gathered.add(&row.id, CasePart::Followed, &looked.record)?;
        }
        Ok(())
    }

    /// Takes everything that the records of the case rest on.
    async fn grounds(&self, gathered: &mut Gathered) -> Result<(), Error> {
        let ids: Vec<SnapshotId> = gathered.parts.keys().cloned().collect();
        for (stored, record) in self.with_linked(&ids, CASE_MAX).await? {
            gathered.begun_at(stored.row.at);
            if !gathered.parts.contains_key(&stored.row.id) {
                gathered.add(&stored.row.id, CasePart::Ground, &record)?;
            }
        }
        Ok(())
    }

    /// Takes every event of the questions of the case, and the calls that asked them: an answer links no earlier record.
    async fn questions(&self, gathered: &mut Gathered) -> Result<(), Error> {
        if gathered.approvals.is_empty() || !gathered.has_subject() {
            return Ok(());
        }
        let query = LogQuery {
            user_id: Some(gathered.user_id.clone()),
            kind: Some(RecordKind::Approval),
            until: gathered.ended,
            limit: ACTS_MAX,
            ..LogQuery::default()
        };
        let rows = self.list(&query).await?;
        gathered.is_cut |= rows.len() == ACTS_MAX;
        let mut asked = BTreeSet::new();
        for row in rows {
            let record = super::record_of(&self.stored(&row.id).await?)?;
            if !gathered.has_question(&record) || !gathered.is_theirs(&record) {
                continue;
            }
            asked.extend(text_of(&record.act, "request").and_then(|id| RequestId::new(id).ok()));
            if !gathered.parts.contains_key(&row.id) {
                gathered.add(&row.id, CasePart::Followed, &record)?;
            }
        }
        for request_id in asked {
            for row in self.of_call(&request_id, &gathered.user_id).await? {
                if !gathered.parts.contains_key(&row.id) {
                    let record = super::record_of(&self.stored(&row.id).await?)?;
                    if gathered.is_theirs(&record) {
                        gathered.add(&row.id, CasePart::Followed, &record)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes the records of accesses to the case.
    async fn accesses(&self, gathered: &mut Gathered) -> Result<(), Error> {
        let query = LogQuery {
            kind: Some(RecordKind::Access),
            since: gathered.begun,
            limit: ACTS_MAX,
            ..LogQuery::default()
        };
        let rows = self.list(&query).await?;
        gathered.is_cut |= rows.len() == ACTS_MAX;
        for row in rows {
            let record = super::record_of(&self.stored(&row.id).await?)?;
            let one = record.act.get("record").into_iter();
            let many = record.act.get("records").and_then(Value::as_array);
            let mut opened = one
                .chain(many.into_iter().flatten())
                .filter_map(Value::as_str)
                .filter_map(|id| SnapshotId::new(id).ok());
            if opened.any(|id| gathered.parts.contains_key(&id)) {
                gathered.parts.insert(row.id, CasePart::Looked);
            }
        }
        Ok(())
    }

    /// A record with its content, for this module only.
    async fn look_into(&self, stored: &StoredRecord) -> Result<Looked, Error> {
        let record = super::record_of(stored)?;
        let sealed = stored.payload.as_deref();
        let payload = match (sealed, self.keys_of(stored).await?) {
            (Some(sealed), Some(keys)) => {
                // What does not open is reported by whoever opens it; here it only names nothing.
                let opened = content::open(&record, &stored.row, sealed, &keys);
                opened.ok().map(|opened| opened.payload)
            }
            (_, _) => None,
        };
        Ok(Looked { record, payload })
    }

    /// The ids of what a known thing is made from, in what was asked.
    fn materials_in(&self, looked: &Looked) -> BTreeSet<String> {
        let prefixes = self.things.iter().flat_map(|thing| thing.made_from);
        let prefixes: Vec<&str> = prefixes.copied().collect();
        let texts = looked.texts(false);
        let ids = texts.flat_map(|text| prefixes.iter().flat_map(move |it| ids_with(text, it)));
        ids.collect()
    }

    /// The ids of known things that the content of a record names; none if it names many.
    fn things_in(&self, looked: &Looked) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for text in looked.texts(true) {
            for thing in self.things.iter() {
                found.extend(ids_with(text, thing.prefix));
            }
        }
        if found.len() > NAMED_MAX {
            found.clear();
        }
        found
    }
}

/// Maximum number of earlier records of the user that are looked through for what a thing is made from.
const EARLIER_MAX: usize = 1_000;

/// Parts of a case that were found so far.
#[derive(Default)]
struct Gathered {
    user_id: String,
    /// Subject of the user, if the user was erased.
    erased: Option<String>,
    /// Time of the erasure.
    ended: Option<Timestamp>,
    things: BTreeSet<String>,
    /// Ids of what the things are made from.
    materials: BTreeSet<String>,
    /// Ids of the questions to people.
    approvals: BTreeSet<String>,
    parts: BTreeMap<SnapshotId, CasePart>,
    begun: Option<Timestamp>,
    is_cut: bool,
}

impl Gathered {
    fn add(
        &mut self,
        id: &SnapshotId,
        part: CasePart,
        record: &EvidenceRecord,
    ) -> Result<(), Error> {
        if record.kind == RecordKind::Approval {
            self.approvals
                .extend(text_of(&record.act, "approval").map(str::to_owned));
        }
        self.parts.insert(id.clone(), part);
        let found = self.parts.len();
        if found > CASE_MAX {
            return Err(Error::TooMany {
                found,
                limit: CASE_MAX,
            });
        }
        Ok(())
    }

    fn begun_at(&mut self, at: Timestamp) {
        self.begun = Some(self.begun.map_or(at, |begun| begun.min(at)));
    }

    /// True if records of the user can be distinguished from those of others.
    fn has_subject(&self) -> bool {
        !self.user_id.is_empty() || self.erased.is_some()
    }

    /// True if a record without a user is of the erased user. A row with a user says so itself.
    fn is_theirs(&self, record: &EvidenceRecord) -> bool {
        self.erased.is_none() || record.subject == self.erased
    }

    /// True if the record is about a question of the case.
    fn has_question(&self, record: &EvidenceRecord) -> bool {
        let question = text_of(&record.act, "approval");
        question.is_some_and(|question| self.approvals.contains(question))
    }
}

/// A record, and its content if it can be read.
struct Looked {
    record: EvidenceRecord,
    payload: Option<Payload>,
}

impl Looked {
    /// True if what was asked, sent or shown names one of these.
    fn names_one_of(&self, things: &BTreeSet<String>) -> bool {
        self.texts(false).any(|text| names_one_of(text, things))
    }

    /// Texts of arguments and questions and, if asked for, of answers.
    fn texts(&self, with_answer: bool) -> impl Iterator<Item = &str> {
        let payload = self.payload.as_ref();
        let exact = payload.into_iter().flat_map(move |payload| {
            let answer = payload.data.as_ref().filter(|_| with_answer);
            [payload.arguments.as_ref(), payload.shown.as_ref(), answer]
        });
        let raw = payload.and_then(|payload| payload.raw.as_deref());
        exact
            .flatten()
            .map(countersign_contract::evidence::Exact::text)
            .chain(raw)
    }
}

fn names_one_of(text: &str, things: &BTreeSet<String>) -> bool {
    things.iter().any(|thing| text.contains(thing.as_str()))
}

/// Every id in a text that starts like this.
fn ids_with<'a>(text: &'a str, prefix: &'a str) -> impl Iterator<Item = String> + 'a {
    text.match_indices(prefix).filter_map(move |(at, _)| {
        let is_start = text.get(..at)?.ends_with(['"', '\'']);
        let rest = text.get(at + prefix.len()..)?;
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        let id = rest.get(..end.unwrap_or(rest.len()))?;
        (is_start && !id.is_empty()).then(|| format!("{prefix}{id}"))
    })
}

fn text_of<'a>(act: &'a Value, member: &str) -> Option<&'a str> {
    act.get(member).and_then(Value::as_str)
}

/// True for records that a call or an answer to its question leaves.
const fn is_about_a_call(kind: RecordKind) -> bool {
    match kind {
        RecordKind::Call
        | RecordKind::Denial
        | RecordKind::Approval
        | RecordKind::Intent
        | RecordKind::Resolution => true,
        RecordKind::Access | RecordKind::Erasure | RecordKind::Config | RecordKind::Checkpoint => {
            false
        }
    }
}

/// The order of the log; what has no place in it yet comes last, by time.
fn order_of(record: &CaseRecord) -> (u64, Timestamp, &SnapshotId) {
    let shown = &record.shown;
    let index = shown.index.unwrap_or(u64::MAX);
    (index, shown.row.at, &shown.row.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_in_texts_as_whole_values() {
        let text = r#"{"a":"order_01ab-9","b":"reorder_7","c":'order_x', "d":"order_"}"#;
        let found: Vec<String> = ids_with(text, "order_").collect();
        assert_eq!(found, ["order_01ab-9", "order_x"]);
    }
}
