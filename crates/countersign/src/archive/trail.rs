//! The audit trail: the signed records in the order of the log, for systems that collect events of many programs.
//!
//! Only what a signed checkpoint covers is given, so an entry never changes and none comes between two others later: the
//! index of the last entry is all that a collector keeps to go on. Nothing is opened. A line names its user by the digest in
//! the record, unless user ids are asked for, because a copy elsewhere is out of reach of an erasure.

mod ocsf;

use countersign_contract::evidence::RecordKind;
use countersign_contract::{Digest, ErrorCode, EvidenceRecord, canonical};
use countersign_evidence::tree::leaf_hash;
use serde_json::{Value, json};

use super::{Archive, Error};

/// Maximum number of entries that are read at once.
pub const TRAIL_PAGE_MAX: usize = 256;

/// Form of a line of the trail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrailForm {
    /// The record with its index and leaf hash.
    Jsonl,
    /// An API Activity event of OCSF 1.2.0.
    Ocsf,
}

/// Question for a part of the trail.
#[derive(Debug, Clone, Copy)]
pub struct Trail {
    /// Index of the last entry that the collector has; `None` to begin with the first.
    pub after: Option<u64>,
    /// Maximum number of entries.
    pub limit: usize,
    /// True if entries name the user by the user id.
    pub with_users: bool,
}

/// A record of the trail.
#[derive(Debug, Clone, PartialEq)]
pub struct TrailEntry {
    /// Index in the log: the cursor for what comes after it.
    pub index: u64,
    /// Canonical JSON of the record.
    pub leaf: String,
    /// The record.
    pub record: EvidenceRecord,
    /// The user; `None` if it was not asked for, if the record is about no user, or if the user was erased.
    pub user_id: Option<String>,
}

impl TrailForm {
    /// All forms.
    pub const ALL: [Self; 2] = [Self::Jsonl, Self::Ocsf];

    /// Returns the name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Ocsf => "ocsf",
        }
    }
}

impl TrailEntry {
    /// Returns the entry as one line of JSON, with its newline. `origin` is the name of the log.
    pub fn line(&self, form: TrailForm, origin: &str) -> String {
        let value = match form {
            TrailForm::Jsonl => self.plain(),
            TrailForm::Ocsf => ocsf::event(self, origin),
        };
        // The canonical form escapes what some readers take for the end of a line, and has no newline itself.
        let mut line = canonical::to_string(&value).unwrap_or_else(|_| value.to_string());
        line.push('\n');
        line
    }

    fn plain(&self) -> Value {
        let record: Value = serde_json::from_str(&self.leaf).unwrap_or_default();
        let leaf_hash = Digest(leaf_hash(self.leaf.as_bytes())).to_string();
        let mut value = json!({"index": self.index, "leaf_hash": leaf_hash, "record": record});
        if let (Some(user), Some(members)) = (&self.user_id, value.as_object_mut()) {
            members.insert("user_id".to_owned(), json!(user));
        }
        value
    }

    /// Returns the error code of the call; `None` if it succeeded or the record is of no call.
    fn code(&self) -> Option<ErrorCode> {
        self.record.reply.as_ref().and_then(|reply| reply.code)
    }

    /// Returns the event of an act, in one word.
    fn event(&self) -> Option<&str> {
        self.record.act.get("event").and_then(Value::as_str)
    }

    /// True if a person was asked, and the call waits for the answer.
    fn is_question(&self) -> bool {
        self.record.kind == RecordKind::Denial && self.code().is_some_and(ErrorCode::is_question)
    }
}

impl Archive {
    /// A part of the trail, oldest first; fewer entries than `limit` if the signed log ends. At most
    /// [`TRAIL_PAGE_MAX`] entries are read at once, whatever the limit is.
    pub async fn trail(&self, part: &Trail) -> Result<Vec<TrailEntry>, Error> {
        let Some((checkpoint, _)) = self.signed().await? else {
            return Ok(Vec::new());
        };
        let from = part.after.map_or(0, |after| after.saturating_add(1));
        let left = usize::try_from(checkpoint.size.saturating_sub(from)).unwrap_or(usize::MAX);
        let limit = part.limit.min(left).min(TRAIL_PAGE_MAX);
        if limit == 0 {
            return Ok(Vec::new());
        }
        let mut entries = Vec::with_capacity(limit);
        for leaf in self.store.leaves(from, limit).await? {
            let leaf_text = String::from_utf8_lossy(&leaf.bytes).into_owned();
            let record = EvidenceRecord::from_leaf(&leaf_text)
                .map_err(|_| Error::NotARecord { index: leaf.index })?;
            entries.push(TrailEntry {
                index: leaf.index,
                leaf: leaf_text,
                record,
                user_id: None,
            });
        }
        if part.with_users {
            self.name_users(&mut entries).await?;
        }
        Ok(entries)
    }

    async fn name_users(&self, entries: &mut [TrailEntry]) -> Result<(), Error> {
        let ids: Vec<_> = entries
            .iter()
            .map(|entry| entry.record.id.clone())
            .collect();
        let found = self.store.leaves_of(&ids).await?;
        for (entry, found) in entries.iter_mut().zip(found) {
            let user = found.map(|(row, _)| row.user_id);
            entry.user_id = user.filter(|user| !user.is_empty());
        }
        Ok(())
    }
}
