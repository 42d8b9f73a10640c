//! Attempts to answer that do not count: an agent's, another user's, one for another rendering, one too late. Each
//! leaves one record for an actor, an approval and a reason, however often it is made, so that no caller can fill the
//! log with them.

use countersign_contract::approval::ApprovalState;
use countersign_evidence::seal::UserKey;
use serde_json::json;

use super::answer::Error;
use super::question::Question;
use super::record;
use super::stored::StoredApprovals;
use crate::consent::{Writing, unit};
use crate::ledger::{self, DocumentKey, KeyDigest};
use crate::principal::Principal;
use crate::redact::error_text;

/// Collection that notes which attempts have a record. No tool can name it.
pub(super) const REFUSALS: &str = "$approval_refusals";

/// Maximum number of recorded attempts at one approval; further ones are refused without a record.
const REFUSALS_MAX: usize = 16;

impl StoredApprovals {
    /// Records an attempt that was refused. The refusal does not depend on it.
    pub(super) async fn note_refusal(&self, id: &str, by: &Principal, error: &Error) {
        let Some(reason) = reason_of(error) else {
            return;
        };
        if let Err(error) = self.record_refusal(id, by, reason).await {
            let error = error_text(&error);
            tracing::error!(
                error,
                "a refused answer to an approval could not be recorded"
            );
        }
    }

    async fn record_refusal(
        &self,
        id: &str,
        by: &Principal,
        reason: &str,
    ) -> Result<(), ledger::Error> {
        // There is nothing to record about an approval that does not exist.
        let Some((_, Some((question, _)))) = self.found(id).await? else {
            return Ok(());
        };
        let Some(keys) = self.vault.existing_key(&question.user_id).await? else {
            return Ok(());
        };
        let who = serde_json::to_string(&(&by.actor, &by.user_id, reason)).expect("names");
        let who = KeyDigest(keys.index(["refusal", &who].join("\0").as_bytes()));
        let key = DocumentKey {
            user_id: question.user_id.clone(),
            collection: REFUSALS.to_owned(),
            id: format!("{}.{who}", question.id),
        };
        let stored = self.store.document(&key).await?;
        if stored.body.is_some() || self.refusals_of(&question).await? >= REFUSALS_MAX {
            return Ok(());
        }
        let noted = Writing::seal(key, stored.version, &json!({}), &keys, &*self.ids);
        let at = self.clock.now();
        let record_id = self.ids.snapshot_id();
        let stamps = Writing::stamps([&noted]);
        let entry = record::refusal(&question, &by.actor, reason, at, record_id, &keys, &stamps);
        // Whoever was faster has written the same record.
        let commit = unit([noted], entry);
        self.shelf().commit(&question.user_id, commit).await?;
        Ok(())
    }

    async fn refusals_of(&self, question: &Question) -> Result<usize, ledger::Error> {
        let prefix = format!("{}.", question.id);
        let found = self
            .store
            .scan(&question.user_id, REFUSALS, &prefix, None, REFUSALS_MAX)
            .await?;
        Ok(found.documents.len())
    }

    /// Removes the notes about attempts at an approval; their records stay.
    pub(super) async fn without_refusals(
        &self,
        user_id: &str,
        id: &str,
        keys: &UserKey,
    ) -> Result<Vec<Writing>, ledger::Error> {
        let prefix = format!("{id}.");
        let found = self
            .store
            .scan(user_id, REFUSALS, &prefix, None, REFUSALS_MAX)
            .await?;
        let over = found.documents.into_iter().map(|document| {
            let key = DocumentKey {
                user_id: user_id.to_owned(),
                collection: REFUSALS.to_owned(),
                id: document.id,
            };
            Writing::delete(key, document.version, false, keys)
        });
        Ok(over.collect())
    }
}

/// Reason of a refused answer, for its record; `None` if it was not an attempt on the approval.
fn reason_of(error: &Error) -> Option<&'static str> {
    match error {
        // It exists, or there would be no record: it is somebody else's.
        Error::Unknown(_) => Some("other_user"),
        Error::Agent => Some("agent"),
        Error::NotTheirs => Some("not_theirs"),
        Error::SameApprover => Some("same_approver"),
        Error::Asker => Some("asker"),
        Error::OtherRendering => Some("other_rendering"),
        Error::NotOpen { state, .. } => Some(match state {
            ApprovalState::Pending => "pending",
            ApprovalState::Approved => "already_approved",
            ApprovalState::Denied => "already_denied",
            ApprovalState::Used => "already_used",
            ApprovalState::Expired => "expired",
        }),
        Error::NotNarrower { .. } | Error::Narrowed(_) => Some("not_narrower"),
        Error::Reason | Error::NoCatalog | Error::Store(_) => None,
    }
}
