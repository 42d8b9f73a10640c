//! From an upstream's failure to one of the closed codes (A12), with what became of the effect.

use std::time::Duration;

use countersign::ToolError;
use countersign::redact::Detector;
use countersign_contract::{ConflictReason, ErrorBody, ErrorCode, FaultSource, Wording};
use reqwest::header::HeaderMap;
use serde_json::{Map, Value};

use crate::manifest::{ErrorRule, ResponseEntry, Statuses, ToolEntry};
use crate::words::Say;

/// How a request ended without an answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// No connection: nothing was sent.
    Unreachable(reqwest::Error),
    /// The name leads to an address that nobody declared: nothing was sent.
    Forbidden(reqwest::Error),
    /// The breaker is open for so long: nothing was sent.
    Open(Duration),
    /// Too many requests were on their way until the deadline: nothing was sent.
    Waited,
    /// The request cannot be written: nothing was sent.
    Unwritable,
    /// A redirect leads elsewhere. Only reads are redirected.
    Redirected,
    /// The connection was lost before the answer was complete.
    Lost(reqwest::Error),
    /// There was no answer in time.
    Late,
}

impl Failure {
    /// True if the upstream has not got the request.
    pub(crate) const fn was_not_sent(&self) -> bool {
        match self {
            Self::Unreachable(_)
            | Self::Forbidden(_)
            | Self::Open(_)
            | Self::Waited
            | Self::Unwritable => true,
            Self::Redirected | Self::Lost(_) | Self::Late => false,
        }
    }

    /// True if it is the connection that failed.
    pub(crate) const fn is_transport(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Lost(_) | Self::Late => true,
            Self::Forbidden(_)
            | Self::Open(_)
            | Self::Waited
            | Self::Unwritable
            | Self::Redirected => false,
        }
    }
}

/// What the caller is told.
pub(crate) fn told(failure: &Failure, upstream: &str) -> ToolError {
    let name = upstream.to_owned();
    let fault = |say: Say| {
        let body = ErrorBody::new(ErrorCode::UpstreamError, say).source(FaultSource::Upstream);
        body.detail("upstream", upstream)
    };
    let never = |mut body: ErrorBody| {
        body.details.retryable = false;
        body
    };
    let error = match failure {
        Failure::Unreachable(_) => {
            ToolError::from(fault(Say::Unreachable { upstream: name })).hint(Say::SameLater)
        }
        Failure::Forbidden(_) => ToolError::from(never(fault(Say::NotDeclared { upstream: name })))
            .hint(Say::OperatorMends),
        Failure::Open(wait) => {
            let ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
            ToolError::from(fault(Say::BreakerOpen { upstream: name }).retry_after_ms(ms))
                .hint(Say::SameLater)
        }
        Failure::Waited => {
            let body = ErrorBody::new(ErrorCode::Timeout, Say::NoSlot { upstream: name });
            ToolError::from(body.source(FaultSource::Gateway)).hint(Say::SameLater)
        }
        Failure::Unwritable => ToolError::from(never(fault(Say::Unwritable { upstream: name })))
            .hint(Say::OperatorMends),
        Failure::Redirected => ToolError::from(never(fault(Say::Redirected { upstream: name })))
            .hint(Say::OperatorMends),
        Failure::Lost(_) => {
            ToolError::from(fault(Say::Lost { upstream: name })).hint(Say::SameWithKey)
        }
        Failure::Late => {
            let body = ErrorBody::new(ErrorCode::Timeout, Say::Late { upstream: name });
            let body = body.source(FaultSource::Upstream);
            ToolError::from(body.detail("upstream", upstream)).hint(Say::SameWithKey)
        }
    };
    let error = match failure {
        Failure::Unreachable(source) | Failure::Forbidden(source) | Failure::Lost(source) => {
            error.with_source(source.to_string())
        }
        Failure::Open(_)
        | Failure::Waited
        | Failure::Unwritable
        | Failure::Redirected
        | Failure::Late => error,
    };
    if failure.was_not_sent() {
        error.without_effect()
    } else {
        error
    }
}

/// The rules of one tool about answers that are errors; prepared once.
#[derive(Debug)]
pub(crate) struct Faults {
    rules: Vec<(Option<Statuses>, ErrorRule)>,
    code: Option<String>,
    message: Option<String>,
    /// True if the tool was written for Countersign, so that its errors have closed codes.
    is_ours: bool,
}

/// Most characters of a text of the upstream that is handed on.
const EXCERPT_CHARS_MAX: usize = 500;

impl Faults {
    pub(crate) fn of(entry: &ToolEntry) -> Self {
        let ResponseEntry {
            error_code,
            error_message,
            ..
        } = entry.response.clone().unwrap_or_default();
        let rules = entry.errors.iter().flatten();
        let rules = rules.map(|rule| {
            let statuses = rule.status.as_deref().and_then(Statuses::parse);
            (statuses, rule.clone())
        });
        Self {
            rules: rules.collect(),
            code: error_code,
            message: error_message,
            is_ours: entry.request.is_none(),
        }
    }

    /// The error that an answer is; `None` if it is none.
    pub(crate) fn error(
        &self,
        upstream: &str,
        status: u16,
        headers: &HeaderMap,
        text: &str,
    ) -> Option<ToolError> {
        let is_failure = !(200..300).contains(&status);
        // Only a rule about the body, or an error, needs a value.
        let looks = |(_, rule): &(_, ErrorRule)| rule.pointer.is_some();
        let needs_value = is_failure || self.is_ours || self.rules.iter().any(looks);
        let body: Option<Value> = needs_value
            .then(|| serde_json::from_str(text).ok())
            .flatten();
        let body = body.unwrap_or_default();
        let rule = self.rules.iter().find(|(statuses, rule)| {
            statuses.is_none_or(|own| own.contains(status)) && fits(rule, &body)
        });
        let error = match rule {
            Some((_, rule)) => by_rule(rule, upstream, status),
            None if self.is_ours && has_our_error(&body) => our_error(&body, upstream),
            None if !is_failure => return None,
            None => by_status(upstream, status, headers),
        };
        Some(self.detailed(error, upstream, status, &body, text))
    }

    /// Adds what the upstream said, bounded and without personal data.
    fn detailed(
        &self,
        error: ToolError,
        upstream: &str,
        status: u16,
        body: &Value,
        text: &str,
    ) -> ToolError {
        let code = first(body, self.code.as_deref(), &CODES);
        let message = first(body, self.message.as_deref(), &MESSAGES);
        let mut error = error
            .detail("upstream", upstream)
            .detail("upstream_status", status);
        if let Some(message) = message {
            error = error.detail("upstream_message", excerpt(&message));
        } else if !text.trim().is_empty() {
            error = error.detail("upstream_body", excerpt(text));
        }
        match code {
            Some(code) => error.upstream_code(excerpt(&code)),
            None => error.upstream_code(status.to_string()),
        }
    }
}

/// Places of an error code in answers of services, most common first.
const CODES: [&str; 8] = [
    "/error/code",
    "/code",
    "/error/type",
    "/errors/0/code",
    "/error_code",
    "/errorCode",
    "/type",
    "/error",
];

/// Places of a message.
const MESSAGES: [&str; 8] = [
    "/error/message",
    "/message",
    "/error_description",
    "/detail",
    "/errors/0/message",
    "/title",
    "/error",
    "/msg",
];

fn first(body: &Value, declared: Option<&str>, usual: &[&str]) -> Option<String> {
    let text = |pointer: &str| match body.pointer(pointer)? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    match declared {
        Some(pointer) => text(pointer),
        None => usual.iter().find_map(|pointer| text(pointer)),
    }
}

/// A bounded piece of an upstream's text, without what looks personal.
pub(crate) fn excerpt(text: &str) -> String {
    let cut: String = text
        .chars()
        .take(EXCERPT_CHARS_MAX)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let mut scrubbed = Detector::new().scrub(&cut).into_owned();
    if text.chars().nth(EXCERPT_CHARS_MAX).is_some() {
        scrubbed.push('…');
    }
    scrubbed
}

fn fits(rule: &ErrorRule, body: &Value) -> bool {
    let Some(pointer) = &rule.pointer else {
        return true;
    };
    match (body.pointer(pointer), &rule.equals) {
        (None | Some(Value::Null | Value::Bool(false)), None) | (None, Some(_)) => false,
        (Some(_), None) => true,
        (Some(found), Some(expected)) => found == expected,
    }
}

fn by_rule(rule: &ErrorRule, upstream: &str, status: u16) -> ToolError {
    let message: Wording = match &rule.message {
        Some(message) => message.as_str().into(),
        None => answered(upstream, status).into(),
    };
    let mut body = ErrorBody::new(rule.code, message).source(FaultSource::Upstream);
    if let Some(reason) = rule.reason {
        body = body.reason(reason);
    }
    if let Some(hint) = &rule.hint {
        body = body.hint(hint.as_str());
    }
    let error = ToolError::from(body);
    if rule.without_effect == Some(true) {
        error.without_effect()
    } else {
        error
    }
}

fn answered(upstream: &str, status: u16) -> Say {
    Say::Answered {
        upstream: upstream.to_owned(),
        status: status.to_string(),
    }
}

fn has_our_error(body: &Value) -> bool {
    our_code(body).is_some()
}

fn our_code(body: &Value) -> Option<ErrorCode> {
    let code = body.pointer("/error/code")?.as_str()?;
    code.parse().ok()
}

/// The error of a tool that was written for us.
fn our_error(body: &Value, upstream: &str) -> ToolError {
    let own = body.get("error").and_then(Value::as_object);
    let empty = Map::new();
    let own = own.unwrap_or(&empty);
    let text = |name: &str| own.get(name).and_then(Value::as_str);
    let code = our_code(body).unwrap_or(ErrorCode::UpstreamError);
    let message: Wording = match text("message") {
        Some(message) if !message.is_empty() => bounded(message).into(),
        _ => answered(upstream, code.http_status()).into(),
    };
    let mut made = ErrorBody::new(code, message).source(FaultSource::Upstream);
    if let Some(hint) = text("hint") {
        made = made.hint(bounded(hint));
    }
    if let Some(field) = text("field") {
        made = made.field(bounded(field));
    }
    if let Some(ms) = own.get("retry_after_ms").and_then(Value::as_u64) {
        made = made.retry_after_ms(ms);
    }
    if code == ErrorCode::Conflict {
        let reason = own.get("reason").cloned().unwrap_or_default();
        if let Ok(reason) = serde_json::from_value::<ConflictReason>(reason) {
            made = made.reason(reason);
        }
    }
    let details = own.get("details").and_then(Value::as_object);
    for (name, value) in details.into_iter().flatten().take(DETAILS_MAX) {
        made = made.detail(bounded(name), value.clone());
    }
    let error = ToolError::from(made);
    if own.get("retry_safe") == Some(&Value::Bool(true)) {
        error.without_effect()
    } else {
        error
    }
}

/// Most members of `details` that a tool may add.
const DETAILS_MAX: usize = 32;

/// A text of a tool's author, bounded.
fn bounded(text: &str) -> String {
    let seen = text.chars().filter(|c| !c.is_control());
    seen.take(EXCERPT_CHARS_MAX).collect()
}

/// What a status means. A code that leaves the effect open is given only where HTTP leaves it open.
fn by_status(upstream: &str, status: u16, headers: &HeaderMap) -> ToolError {
    let say = || answered(upstream, status);
    let of = |code: ErrorCode| ErrorBody::new(code, say()).source(FaultSource::Upstream);
    match status {
        401 | 403 | 407 => {
            let name = upstream.to_owned();
            let mut body = ErrorBody::new(
                ErrorCode::UpstreamError,
                Say::CredentialRefused {
                    upstream: name,
                    status: status.to_string(),
                },
            )
            .source(FaultSource::Upstream)
            .hint(Say::OperatorMends);
            body.details.retryable = false;
            ToolError::from(body).without_effect()
        }
        404 | 410 => of(ErrorCode::NotFound).into(),
        409 | 412 | 423 => of(ErrorCode::Conflict).into(),
        429 => {
            let wait = retry_after(headers).unwrap_or(Duration::from_secs(1));
            let ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            let body = of(ErrorCode::RateLimited).retry_after_ms(ms.max(1));
            ToolError::from(body.hint(Say::SameLater))
        }
        451 => of(ErrorCode::ComplianceBlocked).into(),
        408 | 504 => of(ErrorCode::Timeout).into(),
        400..=499 => ToolError::from(of(ErrorCode::InvalidArgument)).hint(Say::CorrectArguments),
        // The same request elsewhere: this one was not carried out.
        307 | 308 => told(&Failure::Redirected, upstream).without_effect(),
        300..=399 => told(&Failure::Redirected, upstream),
        503 => {
            let body = of(ErrorCode::UpstreamError);
            match retry_after(headers) {
                Some(wait) => {
                    let ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                    body.retry_after_ms(ms.max(1)).into()
                }
                None => body.into(),
            }
        }
        _ => of(ErrorCode::UpstreamError).into(),
    }
}

/// `Retry-After` in seconds; a date is not looked at.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("retry-after")?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}
