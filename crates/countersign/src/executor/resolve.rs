//! Step 1: which tool. By canonical name or provider alias; what the envelope says is bounded here.

use std::sync::Arc;

use countersign_contract::{ErrorBody, ErrorCode, RequestEnvelope};

use super::Executor;
use super::call::CallParts;
use super::stop::Stop;
use super::trail::Trail;
use crate::catalog::Entry;

/// A call whose tool exists.
pub(super) struct Resolved {
    pub(super) entry: Arc<Entry>,
    pub(super) call: Box<CallParts>,
}

impl Executor {
    pub(super) fn resolve(
        &self,
        call: Box<CallParts>,
        trail: &mut Trail,
    ) -> Result<Resolved, Stop> {
        let Some(entry) = self.parts.catalog.get(&call.tool) else {
            let message = format!("there is no tool {:?}", trail.record.tool);
            return Err(ErrorBody::new(ErrorCode::NotFound, message)
                .hint("list the tools to see which there are")
                .into());
        };
        let spec = entry.spec();
        if trail.record.tool != spec.name.as_str() {
            spec.name.as_str().clone_into(&mut trail.record.tool);
        }
        trail.record.tool_version = Some(spec.version.clone());
        check_lengths(&call.envelope)?;
        trail
            .record
            .session_id
            .clone_from(&call.envelope.session_id);
        Ok(Resolved { entry, call })
    }
}

/// The longest member of an envelope, in bytes.
const MEMBER_BYTES_MAX: usize = 256;

fn check_lengths(envelope: &RequestEnvelope) -> Result<(), Stop> {
    let members = [
        ("/actor/id", envelope.actor.as_ref().map(|actor| &actor.id)),
        ("/user_id", envelope.user_id.as_ref()),
        ("/session_id", envelope.session_id.as_ref()),
        ("/locale", envelope.locale.as_ref()),
        ("/currency", envelope.currency.as_ref()),
        ("/timezone", envelope.timezone.as_ref()),
        ("/idempotency_key", envelope.idempotency_key.as_ref()),
    ];
    for (pointer, text) in members {
        // Empty counts as given, and no id, name or key is empty.
        let length = text.map_or(1, String::len);
        if !(1..=MEMBER_BYTES_MAX).contains(&length) {
            let name = pointer.trim_start_matches('/');
            let message = format!("{name} has {length} bytes, 1 to {MEMBER_BYTES_MAX} are taken");
            return Err(ErrorBody::new(ErrorCode::InvalidArgument, message)
                .field(pointer)
                .hint("leave it out or send null where there is none")
                .into());
        }
    }
    Ok(())
}
