//! Mapping from the failure of an MCP server to one of the closed codes (A12), and to the state of the effect.

use std::time::Duration;

use countersign::ToolError;
use countersign_contract::{ErrorBody, ErrorCode, FaultSource};

use super::trouble::Trouble;
use crate::http::fault::{Owner, excerpt, refused};
use crate::manifest::Secret;
use crate::words::Say;

/// Builds the error that the caller gets. It does not quote credentials that were sent.
pub(super) fn told(trouble: &Trouble, upstream: &str, owner: Owner, sent: &[Secret]) -> ToolError {
    let name = || upstream.to_owned();
    let body = |code: ErrorCode, say: Say| {
        let body = ErrorBody::new(code, say).source(FaultSource::Upstream);
        body.detail("upstream", upstream)
    };
    let fault = |say: Say| body(ErrorCode::UpstreamError, say);
    let never = |mut body: ErrorBody| {
        body.details.retryable = false;
        body
    };
    let error = match trouble {
        Trouble::NoConnection(why) => {
            ToolError::from(fault(Say::Unreachable { upstream: name() }).hint(Say::SameLater))
                .with_source(why.clone())
        }
        Trouble::Forbidden(why) => {
            let body = never(fault(Say::NotDeclared { upstream: name() }));
            ToolError::from(body.hint(Say::OperatorMends)).with_source(why.clone())
        }
        Trouble::Open(wait) => {
            let ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
            let body = fault(Say::BreakerOpen { upstream: name() }).retry_after_ms(ms);
            body.hint(Say::SameLater).into()
        }
        Trouble::Full => {
            let body = ErrorBody::new(ErrorCode::Timeout, Say::NoSlot { upstream: name() });
            let body = body.source(FaultSource::Gateway);
            body.hint(Say::SameLater).into()
        }
        Trouble::Credential(status) => {
            refused(upstream, *status, owner).detail("upstream", upstream)
        }
        Trouble::Status(status, wait) => answered(*status, *wait, upstream),
        Trouble::NoSession => answered(404, None, upstream),
        Trouble::Protocol { code, message } => protocol(*code, message, upstream, sent),
        Trouble::Asks => never(fault(Say::AsksUser { upstream: name() })).into(),
        Trouble::Lost(why) => {
            let body = fault(Say::Lost { upstream: name() }).hint(Say::SameWithKey);
            ToolError::from(body).with_source(why.clone())
        }
        Trouble::Late => {
            let body = body(ErrorCode::Timeout, Say::Late { upstream: name() });
            body.hint(Say::SameWithKey).into()
        }
        Trouble::TooLarge(most) => {
            let (upstream, most) = (name(), most.to_string());
            let body = never(fault(Say::TooLarge { upstream, most }));
            body.hint(Say::AskForLess).into()
        }
        Trouble::NotAnAnswer(why) => {
            let (upstream, why) = (name(), excerpt(why, sent));
            never(fault(Say::NotAnAnswer { upstream, why })).into()
        }
    };
    if trouble.was_not_carried_out() {
        error.without_effect()
    } else {
        error
    }
}

/// Builds the error for a status other than success, without an answer of the protocol.
fn answered(status: u16, wait: Option<Duration>, upstream: &str) -> ToolError {
    let say = Say::Answered {
        upstream: upstream.to_owned(),
        status: status.to_string(),
    };
    let code = match status {
        429 => ErrorCode::RateLimited,
        408 | 504 => ErrorCode::Timeout,
        _ => ErrorCode::UpstreamError,
    };
    let body = ErrorBody::new(code, say).source(FaultSource::Upstream);
    let body = body.detail("upstream", upstream).hint(Say::SameLater);
    let ms = wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
    let body = match ms.or((status == 429).then_some(1_000)) {
        Some(ms) => body.retry_after_ms(ms.max(1)),
        None => body,
    };
    ToolError::from(body).upstream_code(status.to_string())
}

/// An error of the protocol.
fn protocol(code: i32, message: &str, upstream: &str, sent: &[Secret]) -> ToolError {
    let say = Say::ProtocolError {
        upstream: upstream.to_owned(),
        code: code.to_string(),
    };
    let asks = code == ASKS || code == ASKS_BY_URL;
    let (own, say, hint) = match code {
        _ if asks => {
            let upstream = upstream.to_owned();
            (ErrorCode::UpstreamError, Say::AsksUser { upstream }, None)
        }
        INVALID_PARAMS => (ErrorCode::InvalidArgument, say, Some(Say::CorrectArguments)),
        NOT_FOUND => (ErrorCode::NotFound, say, None),
        _ => (ErrorCode::UpstreamError, say, None),
    };
    let mut body = ErrorBody::new(own, say).source(FaultSource::Upstream);
    if asks {
        body.details.retryable = false;
    }
    if let Some(hint) = hint {
        body = body.hint(hint);
    }
    let error = ToolError::from(body)
        .upstream_code(code.to_string())
        .detail("upstream", upstream)
        .detail("upstream_message", excerpt(message, sent));
    if asks { error.without_effect() } else { error }
}

const INVALID_PARAMS: i32 = -32_602;
const NOT_FOUND: i32 = -32_002;
/// The server needs a capability of the client that is not declared, such as elicitation.
const ASKS: i32 = -32_021;
/// The user has to visit an address first.
pub(super) const ASKS_BY_URL: i32 = -32_042;

/// A failure in words for an operator.
pub(super) fn words(trouble: &Trouble) -> String {
    match trouble {
        Trouble::NoConnection(why)
        | Trouble::Forbidden(why)
        | Trouble::Lost(why)
        | Trouble::NotAnAnswer(why) => why.clone(),
        Trouble::Open(wait) => {
            format!(
                "it could not be reached, and is tried again in {} ms",
                wait.as_millis()
            )
        }
        Trouble::Full => "it has too many connections".to_owned(),
        Trouble::Credential(status) => {
            format!("it refuses the credential with status {status}")
        }
        Trouble::Status(status, _) => format!("it answers with status {status}"),
        Trouble::NoSession => "it answers with status 404".to_owned(),
        Trouble::Protocol { code, message } => {
            format!(
                "it answers with the error {code}: {}",
                excerpt(message, &[])
            )
        }
        Trouble::Asks => "it wants to ask the user something".to_owned(),
        Trouble::Late => "it did not answer in time".to_owned(),
        Trouble::TooLarge(_) => "its answer is larger than response_bytes_max".to_owned(),
    }
}
