//! Reading an answer again: decided and counted like one more call of its tool, because it costs as much to keep a record of. And the context
//! of what is read outside calls.

use countersign_contract::{Actor, ErrorBody, ErrorCode};
use serde_json::Value;

use super::{Executor, store_fault};
use crate::authorize::{Facts, Verdict};
use crate::context::CallContext;
use crate::limit::{Attempt, Known};
use crate::principal::Principal;
use crate::state::State;
use crate::words::Say;

/// A caller who reads an answer again that was given to them.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    /// Proved identity of the caller.
    pub principal: &'a Principal,
    /// Actor that the request names.
    pub actor: &'a Actor,
    /// On whose behalf.
    pub user_id: &'a str,
}

impl Executor {
    /// Makes the context of what is done for a caller outside any call, such as reading a resource of an MCP server. It sees the documents of the
    /// user, and writes none.
    ///
    /// # Errors
    ///
    /// `UPSTREAM_ERROR` if the store does not answer.
    pub async fn context_outside_calls(
        &self,
        principal: &Principal,
    ) -> Result<CallContext, ErrorBody> {
        let parts = &self.parts;
        let outside = CallContext::standalone(principal, "{}");
        let keys = parts.vault.existing_key(&principal.user_id).await;
        let keys = keys.map_err(|error| store_fault(&error))?;
        // A user without a key has no documents, and gets no key by reading.
        let Some(keys) = keys else {
            return Ok(outside);
        };
        let state = State::new(
            parts.store.clone(),
            parts.vault.clone(),
            parts.ids.clone(),
            principal.user_id.clone(),
            keys,
            false,
        );
        Ok(CallContext { state, ..outside })
    }

    /// Decides whether a caller may read an answer of this tool again, and counts it against the limits of the tool.
    ///
    /// # Errors
    ///
    /// `NOT_FOUND` if the tool is gone, `FORBIDDEN` if the caller may not call it any more, `RATE_LIMITED`.
    pub async fn admit_reading(&self, reader: &Reader<'_>, tool: &str) -> Result<(), ErrorBody> {
        let Some(entry) = self.parts.catalog.get(tool) else {
            let tool = tool.to_owned();
            return Err(ErrorBody::new(ErrorCode::NotFound, Say::NoTool { tool }));
        };
        let decision = self.decide(reader.principal, &entry).await?;
        let tool = entry.name().to_string();
        match decision.verdict {
            Verdict::Allow => {}
            Verdict::Unauthorized { hint } => {
                let message = Say::NeedsCredential { tool };
                return Err(ErrorBody::new(ErrorCode::Unauthorized, message).hint(hint));
            }
            Verdict::Forbid { hint } => {
                let message = Say::NotAllowed { tool };
                return Err(ErrorBody::new(ErrorCode::Forbidden, message).hint(hint));
            }
        }
        let keys = self.parts.vault.key(reader.user_id).await;
        let keys = keys.map_err(|error| store_fault(&error))?;
        let facts = Facts {
            principal: reader.principal,
            proved: None,
            user_id: Some(reader.user_id),
            tool: entry.spec(),
            upstream: entry.tool().upstream(),
            now: self.parts.clock.now(),
            session_id: None,
            currency: None,
            dry_run: false,
            arguments: &Value::Null,
            is_exact: true,
        };
        let attempt = Attempt {
            user_id: reader.user_id,
            keys: &keys,
            actor: reader.actor,
            proved_actor: &reader.principal.actor,
            session_id: None,
            tool: entry.name(),
            now: self.parts.clock.monotonic(),
            known: Known::Call(facts),
        };
        self.count_attempt(&attempt).await
    }
}
