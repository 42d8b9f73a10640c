//! Part of step 6: an external effect is recorded in the log before it begins (A9, A17).
//!
//! The claim says that a key is taken; the intent is the evidence of it. If there is neither the record of the call nor
//! an answer, there is the intent: a process died during the effect, and the claim's recovery decides what is done
//! about it.

use countersign_contract::{ErrorBody, RecordKind, Source};
use serde_json::{Value, json};

use super::bind::KeyedCall;
use super::claim::Claimed;
use super::trail::Trail;
use super::{Executor, store_fault};
use crate::ledger::{Claim, Durability, Hex};
use crate::scribe::{Act, Draft};

impl Executor {
    /// Makes the intent of a claimed call durable. Without it the tool does not run, and the key is given back.
    pub(super) async fn note_intent(
        &self,
        claimed: &mut Claimed,
        claim: &Claim,
        key: &KeyedCall,
        trail: &Trail,
    ) {
        let parts = &self.parts;
        if !parts.store.keeps_log() {
            return;
        }
        let behaviour = &claimed.entry.spec().behaviour;
        let request_id = trail.recorded_id(&claimed.keys);
        let at = parts.clock.now();
        let mut about = json!({
            "event": "intent",
            "tool": claim.scope.tool.as_str(),
            "tool_digest": claimed.entry.digest().to_string(),
            "key": claim.scope.key.to_string(),
            "attempt": claim.attempt,
            "arguments": Hex(&key.fingerprint.whole).to_string(),
            "request_id": request_id,
        });
        name_sources(&mut about, &self.fixed_sources(&claimed.entry, at));
        let act = Act {
            kind: RecordKind::Intent,
            at,
            user_id: claim.scope.user_id.clone(),
            actor: Some(trail.facts.principal.actor.clone()),
            about,
            retention: behaviour.retention,
        };
        let entry = act.entry_of_call(
            parts.ids.snapshot_id(),
            Some(&claimed.keys),
            Some(request_id),
        );
        let kept = parts
            .store
            .append(Draft::from(entry), Durability::Committed)
            .await;
        if let Err(error) = kept {
            let body: ErrorBody = store_fault(&error);
            claimed.barred.get_or_insert(body);
        }
    }
}

/// Adds the tool's fixed sources to an event within a call, if there are any. They are names and digests of
/// definitions, so the permanent record may hold them.
pub(super) fn name_sources(about: &mut Value, sources: &[Source]) {
    if !sources.is_empty()
        && let Some(members) = about.as_object_mut()
    {
        members.insert("sources".to_owned(), json!(sources));
    }
}
