//! Step 1: the tool is looked up, by canonical name or provider alias, and the envelope is checked.

use std::sync::Arc;

use countersign_args::{Arguments, Binder, Bound, Reading};
use countersign_contract::envelope::Warning;
use countersign_contract::record::BindSummary;
use countersign_contract::{ErrorBody, ErrorCode, Issue, Language, Severity};

use super::Executor;
use super::bind::{canonical_text, log_parse, note_missing_definition};
use super::call::CallParts;
use super::envelope;
use super::stop::Stop;
use super::trail::Trail;
use crate::catalog::Entry;
use crate::redact::Detector;
use crate::words::Say;

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
            return Err(unknown(&call, trail));
        };
        let spec = entry.spec();
        if trail.record.tool != spec.name.as_str() {
            spec.name.as_str().clone_into(&mut trail.record.tool);
        }
        trail.record.tool_version = Some(spec.version.clone());
        trail.facts.entry = Some(entry.clone());
        envelope::check(&call.envelope)?;
        if let Some(warning) = envelope::unlisted_app(&call.envelope) {
            trail.warn("UNKNOWN_CLIENT_APP", &warning);
        }
        let session_id = call.envelope.session_id.clone();
        trail.record.session_id = session_id.as_deref().map(scrubbed);
        trail.facts.circumstances.session_id = session_id;
        Ok(Resolved { entry, call })
    }
}

/// The refusal of an unknown tool. Its arguments are parsed as those of a tool without a declaration, for history,
/// record and telemetry (B8). The name is the caller's text, so the log does not have it.
fn unknown(call: &CallParts, trail: &mut Trail) -> Stop {
    let tool = trail.record.tool.clone();
    trail.facts.asked_tool = Some(trail.record.tool.clone());
    trail.record.tool = scrubbed(&trail.record.tool);
    tracing::warn!("the call names an unknown tool; its arguments were only parsed");
    let bound = without_declaration(&call.raw, trail.language);
    trail.record.binding = BindSummary::new(bound.status, &bound.issues);
    // The name is the caller's text, so the log does not have it.
    log_parse("unknown", &call.raw, bound.status, &bound.issues);
    trail.facts.given = bound.arguments.as_ref().map(canonical_text);
    let is_error = |issue: &Issue| issue.severity == Severity::Error;
    let (errors, warnings): (Vec<_>, Vec<_>) = bound.issues.into_iter().partition(is_error);
    let warnings = warnings.into_iter().map(Warning::Issue);
    trail.facts.warnings.extend(warnings);
    let mut error = ErrorBody::new(ErrorCode::NotFound, Say::NoTool { tool }).hint(Say::ListTools);
    error.details.issues = errors;
    error.into()
}

/// Parses the arguments of a tool without a declaration (B8). A text that is not an object has no arguments.
pub(crate) fn without_declaration(raw: &str, language: Language) -> Bound {
    let mut bound = Binder::undeclared().bind_with(raw, &Reading::default().speaking(language));
    note_missing_definition(&mut bound.issues, language);
    let parsed = bound.arguments.as_ref();
    let is_object = parsed.is_some_and(|it| Arguments::from_json(it.as_json()).is_ok());
    bound.arguments = bound.arguments.filter(|_| is_object);
    bound
}

/// A caller's text for the record, without anything personal.
fn scrubbed(text: &str) -> String {
    Detector::new().scrub(text).into_owned()
}
