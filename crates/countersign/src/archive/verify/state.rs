//! State that the log can be compared with: the claims of calls that are settled, the holds, API keys, documents and pots. A row that was
//! deleted, or put back as it was before, is named by the record that says otherwise.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use countersign_contract::evidence::RecordedKey;
use countersign_contract::{EvidenceRecord, RecordKind, ToolName};
use countersign_evidence::seal::UserKey;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::batch::{self, ReadRecord};
use super::documents::Documents;
use super::pots::Pots;
use super::{Fault, Finding};
use crate::archive::Archive;
use crate::executor::StoredReply;
use crate::ledger::{Error, HeldState, KeyDigest, LogQuery, Name, Names, Scope, StoredRecord};

/// Age beyond which earlier versions removed the tombstone of a key: a day for the answer, and a month.
const FREED: SignedDuration = SignedDuration::from_hours(31 * 24);

/// Maximum number of holds that are compared.
const HOLDS_MAX: usize = 100_000;

/// Maximum number of acts that are committed and not in the tree yet.
const WAITING_MAX: usize = 1_000;

/// State according to the records.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Claims that are not as their records say, each with the time of the record.
    claims: Vec<(Timestamp, Name, Finding)>,
    /// Claims that are released, each with its attempt and the record that says otherwise.
    released: Vec<(Attempt, Scope, Finding)>,
    /// Attempts that a record says were released.
    said_released: BTreeSet<Attempt>,
    /// Acts that the store contradicts.
    undone: Vec<Finding>,
    /// Keys that operators have had forgotten.
    forgotten: BTreeSet<Name>,
    /// Records whose payloads were disposed of.
    disposed: BTreeSet<Name>,
    /// Time of the first record of a removal: versions that write those free no keys.
    first_disposal: Option<Timestamp>,
    /// Holds that were placed and lifted, in the order of the log.
    holds: Vec<HoldAct>,
    documents: Documents,
    pots: Pots,
    /// Ids of the acts that were noted.
    known: BTreeSet<Arc<str>>,
}

/// One attempt of a call.
type Attempt = (Name, u32);

/// The subject, and the one record that is held.
type HeldThing = (String, Option<String>);

#[derive(Debug)]
struct HoldAct {
    index: u64,
    id: Arc<str>,
    what: HeldThing,
    is_placed: bool,
}

impl State {
    /// Notes what a record says, and compares the claim of its call.
    pub(super) async fn look(
        &mut self,
        archive: &Archive,
        read: &ReadRecord,
        stored: &StoredRecord,
    ) -> Result<(), Error> {
        let record = &read.record;
        self.documents.note(read, &stored.row.user_id);
        self.pots.note(read, &stored.row.user_id);
        let at = record.at.parse().unwrap_or(Timestamp::MIN);
        if record.kind == RecordKind::Config {
            self.note_act(read, at);
            self.compare_act(archive, read).await?;
        }
        let Some(claimed) = claimed(record, &stored.row.user_id) else {
            return Ok(());
        };
        let Claimed {
            scope,
            attempt,
            stands,
        } = claimed;
        let name = Names::of_key(scope.tool.as_str(), &scope.key);
        if stands == Stands::Released {
            // The call of a key that was never taken durably leaves no claim.
            self.said_released.insert((name, attempt));
            return Ok(());
        }
        let fault = match archive.store.lookup(&scope).await {
            Ok(Some(held)) if stands != Stands::Settled && held.attempt >= attempt => {
                if stands == Stands::Open
                    && held.attempt == attempt
                    && matches!(held.state, HeldState::Released)
                {
                    let finding = finding(read, Fault::ClaimDiffers);
                    self.released.push(((name, attempt), scope, finding));
                }
                return Ok(());
            }
            Ok(Some(held)) if held.attempt == attempt && is_settled(&held.state) => {
                if self.is_readable(archive, &scope, &held.state).await? {
                    return Ok(());
                }
                Fault::ClaimDiffers
            }
            Ok(None) => Fault::ClaimMissing,
            // One row that somebody has changed must not hide all those behind it.
            Ok(Some(_)) | Err(Error::Damaged { .. }) => Fault::ClaimDiffers,
            Err(error) => return Err(error),
        };
        self.claims.push((at, name, finding(read, fault)));
        Ok(())
    }

    /// False if the stored answer of a key does not open: a repeat would get an error, or the answer of another key.
    async fn is_readable(
        &self,
        archive: &Archive,
        scope: &Scope,
        state: &HeldState,
    ) -> Result<bool, Error> {
        let sealed = match state {
            HeldState::Succeeded(sealed) | HeldState::Failed(sealed) => sealed,
            HeldState::Running { .. }
            | HeldState::Abandoned
            | HeldState::Released
            | HeldState::InDoubt
            | HeldState::Expired => return Ok(true),
        };
        let opens = |keys: &UserKey| StoredReply::open(keys, scope, sealed).is_some();
        let cached = archive.vault.known_key(&scope.user_id).await;
        if matches!(&cached, Ok(Some(keys)) if opens(keys)) {
            return Ok(true);
        }
        // Another process may have erased the user since, who came back under another key.
        match archive.vault.existing_key(&scope.user_id).await {
            Ok(Some(keys)) if opens(&keys) => Ok(true),
            Ok(Some(_)) => {
                let now = archive.store.lookup(scope).await?;
                Ok(now.is_none_or(|held| held.state != *state))
            }
            // A key that is gone or cannot be opened is a fault of its own.
            Ok(None) | Err(Error::Damaged { .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Compares what an act has done with what is there.
    async fn compare_act(&mut self, archive: &Archive, read: &ReadRecord) -> Result<(), Error> {
        for kind in &archive.belongings {
            match kind.contradicts(&read.record.act).await {
                Ok(false) => {}
                Ok(true) | Err(Error::Damaged { .. }) => {
                    let what = kind.name();
                    self.undone.push(finding(read, Fault::Undone { what }));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn note_act(&mut self, read: &ReadRecord, at: Timestamp) {
        let act = &read.record.act;
        self.known.insert(read.record.id.as_str().into());
        let is_placed = match act.get("event").and_then(Value::as_str) {
            Some("disposed") => {
                let first = self.first_disposal.map_or(at, |first| first.min(at));
                self.first_disposal = Some(first);
                self.disposed.extend(names(act, "records"));
                return;
            }
            Some("keys_forgotten") => {
                self.forgotten.extend(names(act, "names"));
                return;
            }
            Some("hold") => true,
            Some("release_hold") => false,
            Some(_) | None => return,
        };
        let Some(subject) = read.record.subject.clone() else {
            return;
        };
        let record = act.get("record").and_then(Value::as_str);
        self.holds.push(HoldAct {
            index: read.index,
            id: read.record.id.as_str().into(),
            what: (subject, record.map(str::to_owned)),
            is_placed,
        });
    }

    pub(super) fn add(&mut self, more: Self) {
        self.claims.extend(more.claims);
        self.undone.extend(more.undone);
        self.released.extend(more.released);
        self.said_released.extend(more.said_released);
        self.forgotten.extend(more.forgotten);
        self.disposed.extend(more.disposed);
        self.first_disposal = match (self.first_disposal, more.first_disposal) {
            (Some(ours), Some(theirs)) => Some(ours.min(theirs)),
            (ours, theirs) => ours.or(theirs),
        };
        self.holds.extend(more.holds);
        self.documents.add(more.documents);
        self.pots.add(more.pots);
        self.known.extend(more.known);
    }

    /// Notes the newest acts that are committed and not in the tree yet: the store already is as they say.
    async fn note_waiting(&mut self, archive: &Archive) -> Result<(), Error> {
        let newest = LogQuery {
            kind: Some(RecordKind::Config),
            limit: WAITING_MAX,
            ..LogQuery::default()
        };
        for row in archive.store.records(&newest).await?.iter().rev() {
            if self.known.contains(row.id.as_str()) {
                continue;
            }
            let Some(stored) = archive.store.record(&row.id).await? else {
                continue;
            };
            // A leaf that cannot be read is named when it is in the tree.
            if let Ok(record) = batch::read(&stored.leaf) {
                let read = ReadRecord {
                    index: u64::MAX,
                    leaf: stored.leaf,
                    record,
                };
                self.note_act(&read, row.at);
            }
        }
        Ok(())
    }

    /// Returns the last act on each hold.
    fn last_of_holds(&self) -> BTreeMap<&HeldThing, &HoldAct> {
        self.holds.iter().map(|act| (&act.what, act)).collect()
    }

    /// Reads what is committed and not in the tree yet, if something may be explained by it.
    pub(super) async fn read_waiting(
        &mut self,
        archive: &Archive,
        is_needed: bool,
    ) -> Result<(), Error> {
        if is_needed || !self.claims.is_empty() || !self.holds.is_empty() {
            self.note_waiting(archive).await?;
        }
        Ok(())
    }

    /// The records whose payloads were disposed of.
    pub(super) fn disposed(&self) -> &BTreeSet<Name> {
        &self.disposed
    }

    /// The claims that were released although no record says so: their calls would run again.
    async fn released_without_record(&self, archive: &Archive) -> Result<Vec<Finding>, Error> {
        let mut faults = Vec::new();
        for ((name, attempt), scope, finding) in &self.released {
            let is_said = self.said_released.contains(&(*name, *attempt));
            if is_said || self.forgotten.contains(name) {
                continue;
            }
            let newest = LogQuery {
                user_id: Some(scope.user_id.clone()),
                limit: WAITING_MAX,
                ..LogQuery::default()
            };
            // The record that says so may not be in the tree yet.
            let rows = archive.store.records(&newest).await?;
            let ids: Vec<_> = rows.into_iter().map(|row| row.id).collect();
            let leaves = archive.store.leaves_of(&ids).await?;
            let is_said = leaves.into_iter().flatten().any(|(row, leaf)| {
                let record = batch::read(&leaf).ok();
                let claimed = record.and_then(|record| claimed(&record, &row.user_id));
                claimed.is_some_and(|claimed| {
                    claimed.stands == Stands::Released
                        && claimed.scope == *scope
                        && claimed.attempt == *attempt
                })
            });
            if !is_said {
                faults.push(finding.clone());
            }
        }
        Ok(faults)
    }

    /// The faults, when the whole log was read.
    pub(super) async fn faults(self, archive: &Archive) -> Result<Vec<Finding>, Error> {
        let mut faults = self.wrong_holds(archive).await?;
        let since = self.first_disposal.unwrap_or_else(|| archive.clock.now());
        let since = since.checked_sub(FREED).unwrap_or(Timestamp::MIN);
        faults.extend(self.released_without_record(archive).await?);
        let claims = self.claims.into_iter();
        let claims = claims.filter(|(at, name, _)| *at >= since && !self.forgotten.contains(name));
        faults.extend(claims.map(|(_, _, finding)| finding));
        faults.extend(self.undone);
        faults.extend(self.documents.faults(archive).await?);
        faults.extend(self.pots.faults(archive).await?);
        Ok(faults)
    }

    /// Holds that are missing although they were not lifted, and holds that are there although they were.
    async fn wrong_holds(&self, archive: &Archive) -> Result<Vec<Finding>, Error> {
        let last = self.last_of_holds();
        if last.is_empty() {
            return Ok(Vec::new());
        }
        let mut there = BTreeSet::new();
        for hold in archive.store.holds(HOLDS_MAX).await? {
            let keys = match archive.vault.existing_key(&hold.user_id).await {
                Ok(Some(keys)) => keys,
                // A hold of a user whom the store does not know holds nothing.
                Ok(None) => continue,
                // A key that cannot be opened says nothing: then no hold is missed.
                Err(Error::Damaged { .. }) => return Ok(Vec::new()),
                Err(error) => return Err(error),
            };
            let record = hold.record.map(|id| id.to_string());
            there.insert((keys.subject(&hold.user_id), record));
        }
        // A hold whose record is not in the tree yet is compared when it is.
        let wrong = last
            .into_iter()
            .filter(|(what, act)| there.contains(*what) != act.is_placed && act.index != u64::MAX);
        let findings = wrong.map(|(_, act)| Finding {
            index: Some(act.index),
            id: Some(act.id.clone()),
            fault: if act.is_placed {
                Fault::HoldMissing
            } else {
                Fault::HoldPutBack
            },
        });
        Ok(findings.collect())
    }
}

/// A claim as a record tells of it.
struct Claimed {
    scope: Scope,
    attempt: u32,
    stands: Stands,
}

/// State of a claim, as a record tells it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stands {
    /// The call never runs again.
    Settled,
    /// The effect may have happened, or may happen any moment: the claim stays until that is known.
    Open,
    /// The call may run again.
    Released,
}

/// The claim that a record tells of; `None` if it tells of none, or its user was erased.
fn claimed(record: &EvidenceRecord, user_id: &str) -> Option<Claimed> {
    if user_id.is_empty() || record.dry_run {
        return None;
    }
    let act = &record.act;
    let (tool, key, attempt, stands) = if record.kind == RecordKind::Intent {
        let text = |name| act.get(name).and_then(Value::as_str);
        let attempt = act.get("attempt").and_then(Value::as_u64)?;
        let attempt = u32::try_from(attempt).ok()?;
        (text("tool")?, text("key")?, attempt, Stands::Open)
    } else {
        let RecordedKey {
            key,
            attempt,
            state,
        } = record.idempotency.as_ref()?;
        let stands = match state.as_str() {
            "succeeded" | "failed" => Stands::Settled,
            "in_doubt" => Stands::Open,
            "released" => Stands::Released,
            _ => return None,
        };
        let tool = record.tool.as_ref()?.name.as_str();
        (tool, key.as_str(), *attempt, stands)
    };
    let scope = Scope {
        user_id: user_id.to_owned(),
        tool: ToolName::new(tool).ok()?,
        key: KeyDigest(digest(key)?),
    };
    Some(Claimed {
        scope,
        attempt,
        stands,
    })
}

fn names(act: &Value, member: &str) -> impl Iterator<Item = Name> {
    let text = act.get(member).and_then(Value::as_str);
    Names::parse(text.unwrap_or_default())
}

/// True if the call of a claim never runs again.
fn is_settled(state: &HeldState) -> bool {
    match state {
        HeldState::Succeeded(_) | HeldState::Failed(_) | HeldState::Expired => true,
        HeldState::Running { .. }
        | HeldState::Abandoned
        | HeldState::Released
        | HeldState::InDoubt => false,
    }
}

fn digest(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 2 * bytes.len() {
        return None;
    }
    for (n, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * n..2 * n + 2)?, 16).ok()?;
    }
    Some(bytes)
}

fn finding(read: &ReadRecord, fault: Fault) -> Finding {
    Finding {
        index: Some(read.index),
        id: Some(read.record.id.as_str().into()),
        fault,
    }
}
