//! Mapping from an upstream's failure to one of the closed codes (A12), and to the state of the effect.

use std::time::Duration;

use countersign::ToolError;
use countersign::redact::Detector;
use countersign_contract::{ConflictReason, ErrorBody, ErrorCode, FaultSource, Wording};
use jiff::fmt::rfc2822;
use reqwest::header::HeaderMap;
use serde_json::{Map, Value};

use super::charset::{self, Decoded};
use super::send::Answer;
use crate::manifest::{ErrorRule, ResponseEntry, Secret, Statuses, ToolEntry, Upstream};
use crate::scrub;
use crate::words::Say;

/// Failure of a request without an answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The service cannot be reached, usually because it is down or its name does not resolve: nothing was sent.
    Unreachable(reqwest::Error),
    /// The name resolves to a private address that `allow_private` does not list: nothing was sent.
    Forbidden(reqwest::Error),
    /// The circuit breaker is open for this long, because earlier requests have failed: nothing was sent.
    Open(Duration),
    /// No slot was free until the deadline, because too many requests were in flight: nothing was sent.
    Waited,
    /// The request cannot be built, for example because of a character that a header cannot hold: nothing was sent.
    Unwritable,
    /// A redirect leads elsewhere. Only reads are redirected.
    Redirected,
    /// The connection was lost before the answer was complete.
    Lost(reqwest::Error),
    /// The upstream did not answer within the deadline.
    Late,
    /// The answer has a status that leaves open whether the request was carried out.
    Unclear(u16),
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
            Self::Redirected | Self::Lost(_) | Self::Late | Self::Unclear(_) => false,
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
            | Self::Redirected
            | Self::Unclear(_) => false,
        }
    }
}

/// Builds the error that the caller gets for a request without an answer.
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
        Failure::Unclear(status) => by_status(upstream, *status, &HeaderMap::new())
            .detail("upstream", upstream)
            .detail("upstream_status", *status)
            .hint(Say::SameWithKey),
    };
    let error = match failure {
        Failure::Unreachable(source) | Failure::Forbidden(source) | Failure::Lost(source) => {
            error.with_source(source.to_string())
        }
        Failure::Open(_)
        | Failure::Waited
        | Failure::Unwritable
        | Failure::Redirected
        | Failure::Late
        | Failure::Unclear(_) => error,
    };
    if failure.was_not_sent() {
        error.without_effect()
    } else {
        error
    }
}

/// Builds the error for a missing token: the issuer does not answer, or not with a usable token.
pub(crate) fn no_token(upstream: &str) -> ToolError {
    let name = upstream.to_owned();
    let body = ErrorBody::new(ErrorCode::UpstreamError, Say::NoToken { upstream: name });
    let body = body.source(FaultSource::Upstream).hint(Say::SameLater);
    ToolError::from(body).without_effect()
}

/// Owner of the credential that is sent to an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The gateway; an operator replaces it.
    Gateway,
    /// The user, who has stored it.
    User,
}

impl Owner {
    /// The owner of the credential of an upstream's calls.
    pub(crate) fn of(upstream: &Upstream) -> Self {
        if upstream.takes_user_tokens() {
            Self::User
        } else {
            Self::Gateway
        }
    }
}

/// Builds the error for a credential that an upstream refuses, usually because it has expired: nothing was done.
pub(crate) fn refused(upstream: &str, status: u16, owner: Owner) -> ToolError {
    let (upstream, status) = (upstream.to_owned(), status.to_string());
    let (code, say, hint) = match owner {
        Owner::Gateway => {
            let say = Say::CredentialRefused { upstream, status };
            (ErrorCode::UpstreamError, say, Say::OperatorMends)
        }
        Owner::User => {
            let say = Say::UserTokenRefused { upstream, status };
            (ErrorCode::Unauthorized, say, Say::StoreToken)
        }
    };
    let mut body = ErrorBody::new(code, say).source(FaultSource::Upstream);
    body.details.retryable = false;
    ToolError::from(body.hint(hint)).without_effect()
}

/// The rules of one tool about answers that are errors; prepared once.
#[derive(Debug)]
pub(crate) struct Faults {
    rules: Vec<(Option<Statuses>, ErrorRule)>,
    code: Option<String>,
    message: Option<String>,
    /// True if the tool was written for Countersign, so that its errors have closed codes.
    is_ours: bool,
    owner: Owner,
}

/// Most characters of a text of the upstream that is handed on.
const EXCERPT_CHARS_MAX: usize = 500;

/// Most characters that are searched for personal data. What is replaced may be longer than what replaces it.
const LOOKED_AT_CHARS_MAX: usize = 16 * 1024;

impl Faults {
    /// The rules of an entry, for calls with a credential of this owner.
    pub(crate) fn of(entry: &ToolEntry, owner: Owner) -> Self {
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
            owner,
        }
    }

    /// Returns the error that an answer stands for; `None` if the answer is a success.
    pub(crate) fn error(
        &self,
        upstream: &str,
        status: u16,
        headers: &HeaderMap,
        text: &str,
        sent: &[Secret],
    ) -> Option<ToolError> {
        let is_failure = !(200..300).contains(&status);
        // Only a rule about the body, or an error, needs a value.
        let looks = |(_, rule): &(_, ErrorRule)| rule.pointer.is_some();
        // A tool of ours says that it failed with a member of this name; most answers have none, and are not read twice.
        let may_be_ours = || text.contains("\"error\"") || text.contains("\\u");
        let needs_value =
            is_failure || self.rules.iter().any(looks) || (self.is_ours && may_be_ours());
        let body: Option<Value> = needs_value
            .then(|| serde_json::from_str(text).ok())
            .flatten();
        let body = body.unwrap_or_default();
        let rule = self.rules.iter().find(|(statuses, rule)| {
            statuses.is_none_or(|own| own.contains(status)) && fits(rule, &body)
        });
        let error = match rule {
            Some((_, rule)) => by_rule(rule, upstream, status),
            None if self.is_ours && has_our_error(&body) => our_error(&body, upstream, sent),
            None if !is_failure => return None,
            None if matches!(status, 401 | 403 | 407) => refused(upstream, status, self.owner),
            None => by_status(upstream, status, headers),
        };
        let error = error
            .detail("upstream", upstream)
            .detail("upstream_status", status);
        Some(self.detailed(error, status, &body, text, sent))
    }

    /// True if an answer leaves open whether the request was carried out.
    pub(crate) fn leaves_doubt(&self, upstream: &str, answer: &Answer) -> bool {
        let Decoded { text, .. } = charset::decoded(answer.body.bytes(), &answer.headers);
        let error = self.error(upstream, answer.status, &answer.headers, &text, &[]);
        error.is_some_and(|error| error.leaves_doubt())
    }

    /// Adds the upstream's own code and message, bounded, without personal data and without the credential that was sent.
    fn detailed(
        &self,
        mut error: ToolError,
        status: u16,
        body: &Value,
        text: &str,
        sent: &[Secret],
    ) -> ToolError {
        let code = first(body, self.code.as_deref(), &CODES);
        let message = first(body, self.message.as_deref(), &MESSAGES);
        if let Some(message) = message {
            error = error.detail("upstream_message", excerpt(&message, sent));
        } else if !text.trim().is_empty() {
            error = error.detail("upstream_body", excerpt(text, sent));
        }
        match code {
            Some(code) => error.upstream_code(excerpt(&code, sent)),
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

/// A bounded piece of an upstream's text, without what looks personal and without the credential that was sent.
pub(crate) fn excerpt(text: &str, sent: &[Secret]) -> String {
    let plain = text.chars();
    let plain: String = plain
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    // The cut comes last: half of a secret or of an address would not be recognised.
    let whole = scrub::error_text(&plain, sent);
    let looked_at: &str = match whole.char_indices().nth(LOOKED_AT_CHARS_MAX) {
        Some((end, _)) => {
            let piece = whole.get(..end).unwrap_or_default();
            let end = piece.rfind([' ', '"', ',', ';', '<', '>', '{', '}']);
            end.and_then(|end| piece.get(..end)).unwrap_or(piece)
        }
        None => &whole,
    };
    let is_shorter = looked_at.len() < whole.len();
    let scrubbed = Detector::new().scrub(looked_at).into_owned();
    let cut = scrubbed.char_indices().nth(EXCERPT_CHARS_MAX);
    let kept = cut.and_then(|(end, _)| scrubbed.get(..end));
    let mut kept = kept.unwrap_or(&scrubbed).to_owned();
    if cut.is_some() || is_shorter {
        kept.push('…');
    }
    kept
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
fn our_error(body: &Value, upstream: &str, sent: &[Secret]) -> ToolError {
    let own = body.get("error").and_then(Value::as_object);
    let empty = Map::new();
    let own = own.unwrap_or(&empty);
    let text = |name: &str| own.get(name).and_then(Value::as_str);
    let code = our_code(body).unwrap_or(ErrorCode::UpstreamError);
    let message: Wording = match text("message") {
        Some(message) if !message.is_empty() => bounded(message, sent).into(),
        _ => answered(upstream, code.http_status()).into(),
    };
    let mut made = ErrorBody::new(code, message).source(FaultSource::Upstream);
    if let Some(hint) = text("hint") {
        made = made.hint(bounded(hint, sent));
    }
    if let Some(field) = text("field") {
        made = made.field(bounded(field, sent));
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
        let value = match value {
            Value::String(text) => bounded(text, sent).into(),
            other => {
                let text = other.to_string();
                // A reply is no place for data; a tool that has more to say answers with it.
                if text.len() > DETAIL_BYTES_MAX {
                    continue;
                }
                let Ok(value) = serde_json::from_str::<Value>(&scrub::error_text(&text, sent))
                else {
                    continue;
                };
                value
            }
        };
        made = made.detail(bounded(name, sent), value);
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

/// Maximum size of a member of `details` that is not a string, as JSON.
const DETAIL_BYTES_MAX: usize = 2_000;

/// A text of a tool's author, bounded and without the credential that was sent.
fn bounded(text: &str, sent: &[Secret]) -> String {
    let seen: String = text.chars().filter(|c| !c.is_control()).collect();
    let seen = scrub::error_text(&seen, sent);
    seen.chars().take(EXCERPT_CHARS_MAX).collect()
}

/// Maps a status to an error. A code that leaves the effect open is used only if HTTP leaves it open.
fn by_status(upstream: &str, status: u16, headers: &HeaderMap) -> ToolError {
    let say = || answered(upstream, status);
    let of = |code: ErrorCode| ErrorBody::new(code, say()).source(FaultSource::Upstream);
    match status {
        401 | 403 | 407 => refused(upstream, status, Owner::Gateway),
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

/// The delay of `Retry-After`: seconds, or a date (RFC 9110), which counts from the `Date` of the answer, so that the clocks need
/// not agree. A date that is over is no delay.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let wait = text("retry-after")?;
    if let Ok(seconds) = wait.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let moment = |text: &str| rfc2822::parse(text).ok().map(|moment| moment.timestamp());
    let wait = moment(wait)?.duration_since(moment(text("date")?)?);
    Some(Duration::try_from(wait).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A12: seconds and dates, also where the clock of the service is another one.
    #[test]
    fn the_delay_is_read_in_both_forms() {
        let check = |wait: &str, date: Option<&str>, seconds: Option<u64>| {
            let mut headers = HeaderMap::new();
            headers.insert("retry-after", wait.parse().unwrap());
            if let Some(date) = date {
                headers.insert("date", date.parse().unwrap());
            }
            let expected = seconds.map(Duration::from_secs);
            assert_eq!(retry_after(&headers), expected, "{wait} {date:?}");
        };
        let date = Some("Sun, 06 Nov 1994 08:49:37 GMT");
        check("120", None, Some(120));
        check("Sun, 06 Nov 1994 08:51:37 GMT", date, Some(120));
        check("Sun, 06 Nov 1994 08:00:00 GMT", date, Some(0));
        check("Sun, 06 Nov 1994 08:51:37 GMT", None, None);
        check("soon", date, None);
    }
}
