//! Erasing a user, and holds, which forbid it.

use countersign_contract::{RecordKind, SnapshotId};
use serde_json::json;

use super::act::Deed;
use super::words::{ListedHold, OF};
use super::{Archive, CasePart, Error, SCOPE_ERASE, SCOPE_HOLD};
use crate::ledger::{ClaimQuery, DocumentKey, Erased, Hold, LogQuery, LogRow};
use crate::principal::Principal;
use crate::{approve, grant};

/// Result of an erasure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erasure {
    /// The record of it; `None` if there was nothing left to erase.
    pub record: Option<SnapshotId>,
    /// Counts of what was removed.
    pub erased: Erased,
    /// Number of shared documents that name the user and were removed with it, such as API keys.
    pub belongings: usize,
}

/// Records that a hold covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage {
    /// The user whose records are held.
    pub user_id: String,
    /// The records that are held; if it is empty, all records of the user.
    pub records: Vec<SnapshotId>,
    /// The id of the order whose case is held, if one was named.
    pub of: Option<String>,
}

impl Coverage {
    /// Covers everything of a user.
    pub fn of_user(user_id: impl Into<String>) -> Self {
        Self {
            user_id: user_id.into(),
            records: Vec::new(),
            of: None,
        }
    }

    fn parts(&self) -> Vec<Option<&SnapshotId>> {
        if self.records.is_empty() {
            return vec![None];
        }
        self.records.iter().map(Some).collect()
    }
}

/// Maximum repetitions of an erasure, while other processes still write for the user.
const TRIES: usize = 5;

impl Archive {
    /// Erases a user: the key is destroyed, and with it everything sealed, every salt and every name under it. The
    /// records stay, and so do their proofs. Refused under a hold; a second erasure does nothing and says so.
    /// Credentials with which a caller can act as the user are removed in the same commit.
    pub async fn erase(
        &self,
        user_id: &str,
        by: &Principal,
        reason: &str,
    ) -> Result<Erasure, Error> {
        self.needs(by, SCOPE_ERASE, "erase", None).await?;
        let reason = self.reasoned(reason, by, "erase", None).await?;
        // The empty name is that of the key for what belongs to nobody.
        if user_id.is_empty() {
            return Err(Error::NoUser);
        }
        let mut all = self.erase_once(user_id, by, &reason).await?;
        // A key that was made for the user between the look and the commit is found by looking again.
        for _ in 0..TRIES {
            if all.record.is_none() || self.belongings_of(user_id).await?.is_empty() {
                break;
            }
            let more = self.erase_once(user_id, by, &reason).await?;
            all.belongings += more.belongings;
            all.erased.add(more.erased);
        }
        Ok(all)
    }

    async fn erase_once(
        &self,
        user_id: &str,
        by: &Principal,
        reason: &str,
    ) -> Result<Erasure, Error> {
        // A record that still waits for its batch would come back after the erasure.
        self.store.flush().await?;
        let keys = self.vault.existing_key(user_id).await?;
        let belongings = self.belongings_of(user_id).await?;
        if keys.is_none() && belongings.is_empty() && !self.has_rows(user_id).await? {
            return Ok(Erasure {
                record: None,
                erased: Erased::default(),
                belongings: 0,
            });
        }
        let mut about = json!({"event": "erase"});
        let mut also = Vec::new();
        for (name, documents) in belongings {
            let ids: Vec<&str> = documents.iter().map(|key| key.id.as_str()).collect();
            if let Some(members) = about.as_object_mut() {
                members.insert(name.to_owned(), json!(ids));
            }
            also.extend(documents);
        }
        let belongings = also.len();
        let mut entry = self
            .entry(&Deed {
                kind: RecordKind::Erasure,
                user_id,
                keys: keys.as_deref(),
                by,
                about,
                reason,
            })
            .await?;
        let id = entry.id.clone();
        // The row of the erasure itself must not say who it was.
        entry.user_id.clear();
        // What leads from an approval's id to its user is shared, and names the user.
        if let Some(keys) = &keys {
            also.extend(approve::pointers(&*self.store, user_id, keys).await?);
        }
        also.extend(grant::pointers(&*self.store, user_id).await?);
        let erased = match self.store.erase(user_id, &also, entry).await {
            Ok(erased) => erased,
            Err(error) => return Err(self.told(error, user_id).await),
        };
        self.vault.forget(user_id);
        for kind in &self.belongings {
            kind.are_gone().await?;
        }
        Ok(Erasure {
            record: Some(id),
            erased,
            belongings,
        })
    }

    /// Shared documents that name the user, by kind; kinds without any are left out.
    async fn belongings_of(
        &self,
        user_id: &str,
    ) -> Result<Vec<(&'static str, Vec<DocumentKey>)>, Error> {
        let mut found = Vec::new();
        for kind in &self.belongings {
            let documents = kind.of_user(user_id).await?;
            if !documents.is_empty() {
                found.push((kind.name(), documents));
            }
        }
        Ok(found)
    }

    /// Keeps the payloads of a user, or of one of the user's records, until the hold is lifted.
    pub async fn hold(
        &self,
        user_id: &str,
        record: Option<&SnapshotId>,
        by: &Principal,
        reason: &str,
    ) -> Result<SnapshotId, Error> {
        self.place(user_id, record, None, by, reason).await
    }

    async fn place(
        &self,
        user_id: &str,
        record: Option<&SnapshotId>,
        of: Option<&str>,
        by: &Principal,
        reason: &str,
    ) -> Result<SnapshotId, Error> {
        let (mut hold, deed) = self.holding("hold", user_id, record, by, reason).await?;
        if let Some(of) = of {
            hold.reason.push(OF);
            hold.reason.push_str(of);
        }
        let keys = self.vault.existing_key(user_id).await?;
        hold.reason = self.seal_words(&hold, keys.as_deref()).await?;
        // A hold on nobody would keep nothing, and whoever placed it would believe that it does.
        if record.is_none() && !self.knows_user(user_id).await? {
            let user_id = user_id.to_owned();
            return Err(Error::UnknownUser { user_id });
        }
        let id = deed.id.clone();
        self.store.hold(hold, deed).await?;
        Ok(id)
    }

    /// Lifts a hold; `None` if there was none.
    pub async fn release_hold(
        &self,
        user_id: &str,
        record: Option<&SnapshotId>,
        by: &Principal,
        reason: &str,
    ) -> Result<Option<SnapshotId>, Error> {
        let (hold, deed) = self
            .holding("release_hold", user_id, record, by, reason)
            .await?;
        let id = deed.id.clone();
        Ok(self.store.release_hold(hold, deed).await?.then_some(id))
    }

    /// Lists the holds, at most `limit`.
    pub async fn holds(&self, limit: usize) -> Result<Vec<ListedHold>, Error> {
        let mut listed = Vec::new();
        for hold in self.store.holds(limit).await? {
            listed.push(self.open_hold(hold).await?);
        }
        Ok(listed)
    }

    /// The records that a hold of a name covers, where the name leads to these records of one user: an order stands for its whole
    /// case, and everything else for itself.
    pub async fn coverage(&self, name: &str, rows: &[LogRow]) -> Result<Coverage, Error> {
        let user_id = rows.first().map(|row| row.user_id.clone());
        let user_id = user_id.filter(|id| !id.is_empty()).ok_or(Error::NoUser)?;
        let mut records: Vec<SnapshotId> = rows.iter().map(|row| row.id.clone()).collect();
        if !self.is_thing(name) {
            return Ok(Coverage {
                user_id,
                records,
                of: None,
            });
        }
        let case = self.case(name, &records).await?;
        let own = case.records.into_iter().filter(|own| match own.part {
            CasePart::Ground | CasePart::Named | CasePart::Followed => true,
            // Who looked is another matter, and another user's.
            CasePart::Looked => false,
        });
        let own = own.filter(|own| own.shown.row.user_id == user_id);
        records = own.map(|own| own.shown.row.id).collect();
        Ok(Coverage {
            user_id,
            records,
            of: Some(name.to_owned()),
        })
    }

    /// Places a hold on everything that it covers. Returns the records of it, one for each.
    pub async fn hold_all(
        &self,
        covered: &Coverage,
        by: &Principal,
        reason: &str,
    ) -> Result<Vec<SnapshotId>, Error> {
        let mut ids = Vec::new();
        for record in covered.parts() {
            let of = covered.of.as_deref();
            ids.push(self.place(&covered.user_id, record, of, by, reason).await?);
        }
        Ok(ids)
    }

    /// Lifts the holds of everything that it covers. Returns the records of it, one for each hold that there was.
    pub async fn release_all(
        &self,
        covered: &Coverage,
        by: &Principal,
        reason: &str,
    ) -> Result<Vec<SnapshotId>, Error> {
        let mut ids = Vec::new();
        for record in covered.parts() {
            let user_id = &covered.user_id;
            ids.extend(self.release_hold(user_id, record, by, reason).await?);
        }
        Ok(ids)
    }

    async fn holding(
        &self,
        event: &'static str,
        user_id: &str,
        record: Option<&SnapshotId>,
        by: &Principal,
        reason: &str,
    ) -> Result<(Hold, crate::ledger::Entry), Error> {
        self.needs(by, SCOPE_HOLD, event, record).await?;
        let reason = self.reasoned(reason, by, event, record).await?;
        if user_id.is_empty() {
            return Err(Error::NoUser);
        }
        if let Some(id) = record {
            let stored = self.stored(id).await?;
            if stored.row.user_id != user_id {
                return Err(Error::NoRecord { id: id.clone() });
            }
        }
        let keys = self.vault.existing_key(user_id).await?;
        let mut about = json!({"event": event});
        if let (Some(id), Some(members)) = (record, about.as_object_mut()) {
            members.insert("record".to_owned(), id.as_str().into());
        }
        let entry = self
            .entry(&Deed {
                kind: RecordKind::Config,
                user_id,
                keys: keys.as_deref(),
                by,
                about,
                reason: &reason,
            })
            .await?;
        let hold = Hold {
            user_id: user_id.to_owned(),
            record: record.cloned(),
            reason,
        };
        Ok((hold, entry))
    }

    /// True if the store has anything of a user: a key, a record or a claim.
    pub async fn knows_user(&self, user_id: &str) -> Result<bool, Error> {
        // A record that still waits for its batch counts.
        self.store.flush().await?;
        let keys = self.vault.existing_key(user_id).await?;
        Ok(!user_id.is_empty() && (keys.is_some() || self.has_rows(user_id).await?))
    }

    /// True if a row still names the user: another process may have written with a key that it had not forgotten yet.
    async fn has_rows(&self, user_id: &str) -> Result<bool, Error> {
        let records = LogQuery {
            user_id: Some(user_id.to_owned()),
            limit: 1,
            ..LogQuery::default()
        };
        let claims = ClaimQuery {
            user_id: Some(user_id.to_owned()),
            limit: 1,
            ..ClaimQuery::default()
        };
        Ok(!self.store.records(&records).await?.is_empty()
            || !self.store.claims(&claims).await?.is_empty())
    }
}
