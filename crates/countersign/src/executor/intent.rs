//! Part of step 6: an external effect is recorded in the log before it begins (A9, A17).
//!
//! If the tool can look a lost call up, the arguments are sealed with it: the look-up then needs no caller who repeats the
//! call (`doubt.rs`).
//!
//! The claim says that a key is taken; the intent is the evidence of it. If there is neither the record of the call nor
//! an answer, there is the intent: a process died during the effect, and the claim's recovery decides what is done
//! about it.

use countersign_contract::evidence::RecordedArguments;
use countersign_contract::tool::Recovery;
use countersign_contract::{ErrorBody, EvidenceRecord, RecordKind, Source};
use countersign_evidence::seal;
use serde_json::{Value, json};

use super::bind::KeyedCall;
use super::claim::Claimed;
use super::trail::Trail;
use super::{Executor, store_fault};
use crate::ledger::{Claim, Durability, Hex};
use crate::payload::{self, Plain};
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
        let keys = Some(&*claimed.keys);
        let mut record = act.record(parts.ids.snapshot_id(), keys, Some(request_id));
        let payload = self.kept_for_look_up(claimed, trail, &mut record);
        let mut entry = act.entry_with(&record, keys);
        entry.keep_payload = payload
            .as_ref()
            .and_then(|_| parts.retention.of(behaviour.retention));
        entry.payload = payload;
        let kept = parts
            .store
            .append(Draft::from(entry), Durability::Committed)
            .await;
        if let Err(error) = kept {
            let body: ErrorBody = store_fault(&error);
            claimed.barred.get_or_insert(body);
        }
    }

    /// Seals what a look-up needs of the call; `None` if the tool cannot look one up, or if the arguments have a declared
    /// secret, which no record keeps.
    fn kept_for_look_up(
        &self,
        claimed: &Claimed,
        trail: &Trail,
        record: &mut EvidenceRecord,
    ) -> Option<Vec<u8>> {
        match claimed.entry.spec().behaviour.recovery {
            Recovery::Reconcile { .. } => {}
            Recovery::Operator | Recovery::Retry | Recovery::DownstreamKey { .. } => return None,
        }
        if claimed.entry.redaction.has_secrets() {
            return None;
        }
        let arguments = trail.facts.given.as_deref()?;
        let seen = &trail.facts.circumstances;
        let plain = Plain {
            user_id: &trail.record.user_id,
            actor: Some(&trail.record.actor),
            session_id: seen.session_id.as_deref(),
            locale: seen.locale.as_deref(),
            currency: seen.currency.as_deref(),
            timezone: seen.timezone.as_deref(),
            client: seen.client.as_ref(),
            ..Plain::default()
        };
        let entropy = self.entropy();
        let salt = seal::salt_of(&entropy.salt, seal::DOMAIN_ARGUMENTS);
        let commitment = seal::commit(seal::DOMAIN_ARGUMENTS, &salt, arguments.as_bytes());
        record.arguments = Some(RecordedArguments {
            commitment: Some(commitment),
            raw: None,
            public: Value::Null,
            redacted: Value::Null,
        });
        let exact = [("arguments", arguments)];
        let sealed = payload::seal(&plain, &entropy, &claimed.keys, record, &exact);
        Some(sealed)
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
