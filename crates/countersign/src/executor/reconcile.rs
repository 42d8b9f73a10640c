//! Reconciliation: a tool looks up the result of a call whose owner was lost.

use std::time::Duration;

use countersign_contract::{RecordKind, Retention};
use serde_json::json;

use super::claim::Claimed;
use super::guarded;
use super::intent::name_sources;
use super::stop::Stop;
use super::{Executor, store_fault};
use crate::ledger::{Claim, Commit, KeyChange, Outcome, SpendChange, SpendEnd};
use crate::scribe::{Act, Draft};
use crate::tool::{Reconciled, Reply};

/// Result of the tool's look-up.
pub(super) enum Reconciliation {
    /// The effect happened; this is its reply.
    Happened(Reply),
    /// The effect did not happen, and the key is free again.
    DidNot,
    /// The effect was not found, but a request may still be on its way.
    TooEarly { retry_after_ms: u64 },
    /// The tool could not tell.
    Unknown,
}

impl Executor {
    /// Looks up a lost call. A "not found" counts only after the grace: the first request may still be on the wire.
    /// Guarded like a run; its notes in the context count only if it has found the answer.
    pub(super) async fn reconcile(
        &self,
        claimed: &Claimed,
        claim: &Claim,
        age: Duration,
        grace: Duration,
    ) -> Result<Reconciliation, Stop> {
        let Claimed {
            entry,
            ctx,
            arguments,
            ..
        } = claimed;
        let limit = Duration::from_millis(entry.spec().behaviour.deadline_ms);
        let start = || entry.tool().reconcile(ctx, arguments.clone());
        let found = guarded(start, limit, &ctx.cancellation).await;
        if !matches!(found, Ok(Reconciled::Happened(_))) {
            ctx.state().reset();
            ctx.take_notes();
        }
        match found {
            Err(error) => {
                tracing::warn!(
                    code = error.code().as_str(),
                    "the tool could not say whether an earlier call with this key happened; the call stays in doubt"
                );
                Ok(Reconciliation::Unknown)
            }
            Ok(Reconciled::Unknown) => Ok(Reconciliation::Unknown),
            Ok(Reconciled::Happened(reply)) => Ok(Reconciliation::Happened(reply)),
            Ok(Reconciled::DidNotHappen) if age < grace => {
                let left = u64::try_from(grace.saturating_sub(age).as_millis()).unwrap_or(u64::MAX);
                Ok(Reconciliation::TooEarly {
                    retry_after_ms: left.max(1),
                })
            }
            Ok(Reconciled::DidNotHappen) => {
                self.release_lost(claimed, claim).await?;
                Ok(Reconciliation::DidNot)
            }
        }
    }

    /// Frees the key of a call that had no effect, with a record that says so. Changes nothing if another call was
    /// faster.
    async fn release_lost(&self, claimed: &Claimed, claim: &Claim) -> Result<(), Stop> {
        let parts = &self.parts;
        let at = parts.clock.now();
        let mut about = json!({
            "event": "reconciled",
            "happened": false,
            "tool": claim.scope.tool.as_str(),
            "key": claim.scope.key.to_string(),
            "attempt": claim.attempt,
        });
        name_sources(&mut about, &self.fixed_sources(&claimed.entry, at));
        let act = Act {
            kind: RecordKind::Resolution,
            at,
            user_id: claim.scope.user_id.clone(),
            actor: None,
            about,
            retention: Retention::Standard,
        };
        let reserved = parts.store.reserved(claim).await;
        let reserved = reserved.map_err(|error| store_fault(&error))?;
        let entry = act.entry(parts.ids.snapshot_id(), Some(&claimed.keys));
        let commit = Commit {
            key: Some(KeyChange::Settle {
                claim: claim.clone(),
                outcome: Outcome::Released,
            }),
            reads: Vec::new(),
            shapes: Vec::new(),
            writes: Vec::new(),
            spend: reserved.map(|id| SpendChange {
                id,
                end: SpendEnd::Released,
            }),
            record: Draft::from(entry),
        };
        let released = parts.store.commit(commit).await;
        released.map_err(|error| store_fault(&error))?;
        Ok(())
    }
}
