//! Resolving a call that is in doubt: an operator states its outcome.

use std::time::Duration;

use countersign_contract::evidence::{RecordedKey, RecordedReply, RecordedTool};
use countersign_contract::{
    Digest, Evidence, EvidenceRecord, RecordKind, ReplyEnvelope, SnapshotId, Source, canonical,
};
use countersign_evidence::seal::{self, UserKey};
use serde_json::{Value, json};

use super::act::Deed;
use super::{Archive, Error, SCOPE_RESOLVE};
use crate::executor::StoredReply;
use crate::ledger::{
    Claim, ClaimState, Commit, CommitAnswer, HeldState, KeyChange, Outcome, Scope, SpendChange,
    SpendEnd,
};
use crate::principal::Principal;
use crate::scribe::Draft;

/// The outcome that an operator states.
#[derive(Debug, Clone, PartialEq)]
pub enum Resolution {
    /// The effect happened. Every repeat of the call gets this as its answer.
    Happened(Value),
    /// The effect did not happen; the same call may be made again.
    DidNotHappen,
}

/// Result of a resolution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolved {
    /// The claim is settled, and this is its record.
    Settled(SnapshotId),
    /// The owner, or another operator, was faster: their result counts. This record states what was tried.
    Fenced(SnapshotId),
    /// The claim is not in doubt; nothing was done.
    NotInDoubt(ClaimState),
    /// No claim has this key, so nothing was done.
    NoClaim,
}

/// Retention of the operator's answer for replays; the same as the default for answers of tools.
const KEPT_FOR: Duration = Duration::from_hours(24);

impl Archive {
    /// Settles a claim that is in doubt, with its record, in one commit. `attempt` is the one that the operator looked
    /// at: if there was another since, nothing is settled.
    #[expect(
        clippy::too_many_lines,
        reason = "one commit, put together in the order of its parts"
    )]
    pub async fn resolve_claim(
        &self,
        scope: &Scope,
        attempt: u32,
        resolution: Resolution,
        by: &Principal,
        reason: &str,
    ) -> Result<Resolved, Error> {
        self.needs(by, SCOPE_RESOLVE, "resolve", None).await?;
        let reason = self.reasoned(reason, by, "resolve", None).await?;
        let Some(held) = self.store.lookup(scope).await? else {
            return Ok(Resolved::NoClaim);
        };
        if let Some(state) = not_in_doubt(&held.state) {
            return Ok(Resolved::NotInDoubt(state));
        }
        let keys = self.vault.key(&scope.user_id).await?;
        let claim = Claim {
            scope: scope.clone(),
            attempt,
        };
        // What was set aside for the call is spent where the effect is there, and free again otherwise.
        let reserved = self.store.reserved(&claim).await?;
        let happened = matches!(resolution, Resolution::Happened(_));
        let deed = Deed {
            kind: RecordKind::Resolution,
            user_id: &scope.user_id,
            keys: Some(&keys),
            by,
            about: json!({"event": "resolved", "happened": happened}),
            reason: &reason,
        };
        let id = self.ids.snapshot_id();
        let mut record = self.blank(&deed, id.clone());
        record.tool = Some(RecordedTool {
            name: scope.tool.to_string(),
            version: None,
            definition: None,
            build: None,
        });
        record.idempotency = Some(RecordedKey {
            key: scope.key.to_string(),
            attempt,
            state: if happened { "succeeded" } else { "released" }.to_owned(),
        });
        let entropy = self.entropy();
        let owner = (scope.user_id.as_str(), &*keys);
        let (outcome, payload) = match resolution {
            Resolution::DidNotHappen => {
                let sealed = Self::seal(&entropy, owner, &reason, &mut record, &[]);
                (Outcome::Released, sealed)
            }
            Resolution::Happened(data) => {
                let text = canonical::to_string(&data)?;
                let outcome = self.happened(&record, scope, data, &text, &keys);
                let salt = seal::salt_of(&entropy.salt, seal::DOMAIN_DATA);
                let commitment = seal::commit(seal::DOMAIN_DATA, &salt, text.as_bytes());
                record.reply = Some(RecordedReply {
                    code: None,
                    commitment: Some(commitment),
                    ttl_seconds: None,
                    valid_until: None,
                });
                let exact = [("data", text.as_str())];
                let sealed = Self::seal(&entropy, owner, &reason, &mut record, &exact);
                (outcome, sealed)
            }
        };
        let mut entry = self.entry_of(&record, &scope.user_id);
        entry.tool = None;
        entry.payload = Some(payload);
        entry.sealed_under = Some(keys.id());
        let commit = Commit {
            key: Some(KeyChange::Settle { claim, outcome }),
            reads: Vec::new(),
            shapes: Vec::new(),
            writes: Vec::new(),
            spend: reserved.map(|id| SpendChange {
                id,
                end: if happened {
                    SpendEnd::Spent(Vec::new())
                } else {
                    SpendEnd::Released
                },
            }),
            record: Draft::from(entry),
        };
        match self.store.commit(commit).await? {
            CommitAnswer::Committed => Ok(Resolved::Settled(id)),
            CommitAnswer::Fenced => Ok(Resolved::Fenced(id)),
            // None can be: nothing was read, and a claim is not taken but settled.
            CommitAnswer::Held(_) | CommitAnswer::Moved { .. } | CommitAnswer::Lapsed => {
                Ok(Resolved::NoClaim)
            }
            // The claim went with its user.
            CommitAnswer::Erased => {
                self.vault.forget(&scope.user_id);
                Ok(Resolved::NoClaim)
            }
        }
    }

    /// The answer that repeats get.
    fn happened(
        &self,
        record: &EvidenceRecord,
        scope: &Scope,
        data: Value,
        text: &str,
        keys: &UserKey,
    ) -> Outcome {
        let at = self.clock.now();
        let mut reply = ReplyEnvelope::success(self.ids.request_id(), data);
        reply.evidence = Some(Evidence {
            snapshot_id: record.id.clone(),
            sources: vec![Source {
                kind: "operator".to_owned(),
                name: scope.tool.to_string(),
                hash: Digest::of_bytes(text.as_bytes()).to_string(),
                ts: at.to_string(),
            }],
            checkpoint: None,
        });
        let stored = StoredReply { at, reply };
        Outcome::Succeeded {
            reply: stored.seal(keys, scope, &*self.ids),
            keep: KEPT_FOR,
        }
    }
}

/// The state of a claim that is not in doubt; `None` if it is.
fn not_in_doubt(state: &HeldState) -> Option<ClaimState> {
    match state {
        HeldState::InDoubt => None,
        // A claim whose owner is silent is swept into doubt first: the owner may still answer.
        HeldState::Running { .. } | HeldState::Abandoned => Some(ClaimState::Running),
        HeldState::Released => Some(ClaimState::Released),
        HeldState::Succeeded(_) => Some(ClaimState::Succeeded),
        HeldState::Failed(_) => Some(ClaimState::Failed),
        HeldState::Expired => Some(ClaimState::Tombstone),
    }
}
