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
use crate::ledger::{Error, HeldState, KeyDigest, LogQuery, Scope, StoredRecord};

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
    claims: Vec<(Timestamp, Finding)>,
    /// Acts that the store contradicts.
    undone: Vec<Finding>,
    /// Number of keys that operators have had forgotten.
    forgotten: u64,
    /// Time of the first record of a removal: versions that write those free no keys.
    first_disposal: Option<Timestamp>,
    /// Holds that were placed and lifted, in the order of the log.
    holds: Vec<HoldAct>,
    documents: Documents,
    pots: Pots,
    /// Ids of the acts that were noted.
    known: BTreeSet<Arc<str>>,
}

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
        let Some((scope, attempt)) = settled(record, &stored.row.user_id) else {
            return Ok(());
        };
        let fault = match archive.store.lookup(&scope).await {
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
        self.claims.push((at, finding(read, fault)));
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
                return;
            }
            Some("keys_forgotten") => {
                let keys = act.get("keys").and_then(Value::as_u64);
                self.forgotten += keys.unwrap_or_default();
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
        self.forgotten += more.forgotten;
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

    /// Returns the holds that were placed and not lifted.
    fn placed(&self) -> BTreeMap<&HeldThing, (u64, &Arc<str>)> {
        let mut placed = BTreeMap::new();
        for act in &self.holds {
            if act.is_placed {
                placed.insert(&act.what, (act.index, &act.id));
            } else {
                placed.remove(&act.what);
            }
        }
        placed
    }

    /// The faults, when the whole log was read.
    pub(super) async fn faults(mut self, archive: &Archive) -> Result<Vec<Finding>, Error> {
        if !self.claims.is_empty() || !self.placed().is_empty() {
            self.note_waiting(archive).await?;
        }
        let mut faults = self.missing_holds(archive).await?;
        let since = self.first_disposal.unwrap_or_else(|| archive.clock.now());
        let since = since.checked_sub(FREED).unwrap_or(Timestamp::MIN);
        let claims = self.claims.into_iter().filter(|(at, _)| *at >= since);
        let claims: Vec<_> = claims.map(|(_, finding)| finding).collect();
        if claims.len() as u64 > self.forgotten {
            faults.extend(claims);
        }
        faults.extend(self.undone);
        faults.extend(self.documents.faults(archive).await?);
        faults.extend(self.pots.faults(archive).await?);
        Ok(faults)
    }

    async fn missing_holds(&self, archive: &Archive) -> Result<Vec<Finding>, Error> {
        let placed = self.placed();
        if placed.is_empty() {
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
        let missing = placed
            .into_iter()
            .filter(|(what, (index, _))| !there.contains(*what) && *index != u64::MAX);
        let findings = missing.map(|(_, (index, id))| Finding {
            index: Some(index),
            id: Some(id.clone()),
            fault: Fault::HoldMissing,
        });
        Ok(findings.collect())
    }
}

/// The scope that a record's call has settled, and its attempt; `None` if it has settled none, or its user was erased.
fn settled(record: &EvidenceRecord, user_id: &str) -> Option<(Scope, u32)> {
    let RecordedKey {
        key,
        attempt,
        state,
    } = record.idempotency.as_ref()?;
    let is_settled = matches!(state.as_str(), "succeeded" | "failed");
    if !is_settled || user_id.is_empty() || record.dry_run {
        return None;
    }
    let scope = Scope {
        user_id: user_id.to_owned(),
        tool: ToolName::new(&record.tool.as_ref()?.name).ok()?,
        key: KeyDigest(digest(key)?),
    };
    Some((scope, *attempt))
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
