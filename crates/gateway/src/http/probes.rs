//! `/healthz` and `/readyz`: for orchestrators and load balancers.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use countersign::contract::{ErrorBody, ErrorCode, FaultSource};
use http::StatusCode;

use super::answer::{self, Refusal};
use crate::gateway::Gateway;

/// `/healthz`: the process is alive.
pub(super) async fn alive() -> Response {
    answer::text("ok\n".to_owned())
}

/// `/readyz`: calls can be accepted. The server is not draining, the store answers, and committed records are
/// signed.
pub(super) async fn ready(State(gateway): State<Gateway>) -> Response {
    let health = gateway.health();
    if health.is_leaving() || health.is_draining() {
        return not_ready("the server is stopping");
    }
    if health.is_log_stopped() || gateway.executor().is_unsigned() {
        return not_ready("nothing can be signed, so calls are refused; the server's log says why");
    }
    let Some(stored) = gateway.stored().await else {
        return not_ready("the store does not answer");
    };
    if !stored.vitals.is_writable {
        return not_ready(
            "the store takes no writes, so calls are refused: no evidence, no answer",
        );
    }
    let mut lines = vec!["ready".to_owned()];
    let policy = gateway.identity().policy();
    if let Some(fault) = policy.fault() {
        // The place of the mistake, not its text: everyone may read this.
        let revision = policy.current().revision().clone();
        let (line, column) = (fault.line, fault.column);
        lines.push(format!(
            "note: the policy file was rejected (line {line}, column {column}), {revision} stays in force"
        ));
    }
    if gateway.executor().is_signing_failing() {
        let note =
            "note: the log could not be signed the last time; calls are refused if that goes on";
        lines.push(note.to_owned());
    }
    if stored
        .vitals
        .passage
        .is_some_and(|passage| passage.jump().is_some())
    {
        let note = "note: the clock has jumped, so nothing that is past its time is removed";
        lines.push(note.to_owned());
    }
    answer::text(lines.join("\n") + "\n")
}

fn not_ready(message: &str) -> Response {
    let body = ErrorBody::new(ErrorCode::UpstreamError, message)
        .source(FaultSource::Gateway)
        .hint("ask another server, or this one later");
    Refusal::from(body)
        .status(StatusCode::SERVICE_UNAVAILABLE)
        .into_response()
}
