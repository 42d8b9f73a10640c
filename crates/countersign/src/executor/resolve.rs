//! Step 1: which tool. By canonical name or provider alias; what the envelope says is bounded here.

use std::sync::Arc;

use countersign_contract::{ErrorBody, ErrorCode};

use super::Executor;
use super::call::CallParts;
use super::envelope;
use super::stop::Stop;
use super::trail::Trail;
use crate::catalog::Entry;
use crate::redact::Detector;

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
            trail.facts.asked_tool = Some(trail.record.tool.clone());
            trail.record.tool = scrubbed(&trail.record.tool);
            return Err(ErrorBody::new(ErrorCode::NotFound, message)
                .hint("list the tools to see which there are")
                .into());
        };
        let spec = entry.spec();
        if trail.record.tool != spec.name.as_str() {
            spec.name.as_str().clone_into(&mut trail.record.tool);
        }
        trail.record.tool_version = Some(spec.version.clone());
        trail.facts.entry = Some(entry.clone());
        envelope::check(&call.envelope)?;
        let session_id = call.envelope.session_id.clone();
        trail.record.session_id = session_id.as_deref().map(scrubbed);
        trail.facts.circumstances.session_id = session_id;
        Ok(Resolved { entry, call })
    }
}

/// A text of the caller's for the record, which is no place for what it may say about a person.
fn scrubbed(text: &str) -> String {
    Detector::new().scrub(text).into_owned()
}
