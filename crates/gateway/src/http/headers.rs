//! Headers of a call: its idempotency key, its request id, its trace, and the type of its body.

use std::time::Duration;

use countersign::contract::{
    ErrorCode, Language, RequestEnvelope, RequestId, TraceContext, TraceState,
};
use http::header::{ACCEPT_LANGUAGE, CONTENT_ENCODING, CONTENT_TYPE, HeaderName};
use http::{HeaderMap, StatusCode};

use super::answer::{Refusal, X_REQUEST_ID};
use crate::words::Say;

pub(super) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const PREFER: HeaderName = HeaderName::from_static("prefer");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Type of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// An object with the members of the envelope and the arguments.
    Json,
    /// The arguments themselves, as a model wrote them.
    Text,
}

/// Returns the language that the client prefers.
pub(super) fn language(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(ACCEPT_LANGUAGE)?.to_str().ok()?;
    let first = text.split([',', ';']).next()?.trim();
    let is_tag = (2..=35).contains(&first.len())
        && first
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_alphanumeric());
    is_tag.then(|| first.to_owned())
}

/// Returns the language of the reader of the answer.
pub(super) fn reader(headers: &HeaderMap) -> Language {
    Language::of(language(headers).as_deref())
}

/// Returns the type of the body; without a content type it is JSON.
pub(super) fn kind(headers: &HeaderMap) -> Result<Kind, Refusal> {
    if !is_plain(headers) {
        let message = Say::BodyCompressed;
        return Err(Refusal::new(ErrorCode::InvalidArgument, message)
            .status(StatusCode::UNSUPPORTED_MEDIA_TYPE)
            .hint(Say::SendUncompressed));
    }
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let value = match (values.next(), values.next()) {
        (None, _) => return Ok(Kind::Json),
        (Some(value), None) => value,
        (Some(_), Some(_)) => {
            let message = Say::TwoTypes;
            return Err(Refusal::new(ErrorCode::InvalidArgument, message)
                .status(StatusCode::UNSUPPORTED_MEDIA_TYPE)
                .hint(Say::SendTypeOnce));
        }
    };
    let text = value.to_str().unwrap_or_default();
    let essence = text.split(';').next().unwrap_or_default().trim();
    let is = |known: &str| essence.eq_ignore_ascii_case(known);
    let has_suffix = || {
        let tail = essence.len().checked_sub("+json".len());
        let tail = tail.and_then(|at| essence.get(at..));
        tail.is_some_and(|tail| tail.eq_ignore_ascii_case("+json"))
    };
    // `curl -d` sends this type for everything.
    let is_form = is("application/x-www-form-urlencoded");
    if is("application/json") || has_suffix() || is_form {
        return Ok(Kind::Json);
    }
    if is("text/plain") {
        return Ok(Kind::Text);
    }
    let message = Say::OtherType;
    Err(Refusal::new(ErrorCode::InvalidArgument, message)
        .status(StatusCode::UNSUPPORTED_MEDIA_TYPE)
        .hint(Say::SendJson))
}

/// True if the body is not compressed.
fn is_plain(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(CONTENT_ENCODING).iter();
    codings.all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// Decodes the body as UTF-8.
pub(super) fn utf8(body: &[u8]) -> Result<&str, Refusal> {
    std::str::from_utf8(body).map_err(|error| {
        let message = Say::NotUtf8 {
            byte: error.valid_up_to().to_string(),
        };
        Refusal::new(ErrorCode::InvalidArgument, message).hint(Say::SendUtf8)
    })
}

/// Adds the headers to the envelope of the body. A request id in the body takes precedence over the header,
/// which proxies may set.
pub(super) fn join(headers: &HeaderMap, envelope: &mut RequestEnvelope) -> Result<(), Refusal> {
    join_key(headers, envelope)?;
    if envelope.request_id.is_none()
        && let Some(id) = headers.get(X_REQUEST_ID)
    {
        let id = id.to_str().ok().and_then(|id| RequestId::new(id).ok());
        let id = id.ok_or_else(|| {
            let message = Say::RequestIdForm;
            Refusal::new(ErrorCode::InvalidArgument, message).hint(Say::CorrectOrLeaveOut)
        })?;
        envelope.request_id = Some(id);
    }
    Ok(())
}

/// Adds the idempotency key of the headers. It may be given twice, but only with the same value.
pub(crate) fn join_key(headers: &HeaderMap, envelope: &mut RequestEnvelope) -> Result<(), Refusal> {
    let Some(key) = key(headers)? else {
        return Ok(());
    };
    match &envelope.idempotency_key {
        Some(said) if *said != key => {
            let message = Say::KeysDiffer;
            Err(Refusal::new(ErrorCode::InvalidArgument, message)
                .field("/idempotency_key")
                .hint(Say::SendKeyOnce))
        }
        Some(_) => Ok(()),
        None => {
            envelope.idempotency_key = Some(key);
            Ok(())
        }
    }
}

/// Returns the caller's trace. A malformed one is ignored, as W3C requires.
pub(super) fn trace(headers: &HeaderMap) -> Option<TraceContext> {
    headers.get(TRACEPARENT)?.to_str().ok()?.parse().ok()
}

/// Returns the time that the caller waits for a person's answer: `Prefer: wait=30` (RFC 7240). Other
/// preferences are ignored, as the standard says of unknown ones.
pub(super) fn wait(headers: &HeaderMap) -> Duration {
    let values = headers.get_all(PREFER).into_iter();
    let seconds = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','))
        .find_map(|preference| {
            let (name, value) = preference.split_once('=')?;
            let is_wait = name.trim().eq_ignore_ascii_case("wait");
            let value = value.split(';').next()?.trim().trim_matches('"');
            is_wait.then(|| value.parse().ok())?
        });
    Duration::from_secs(seconds.unwrap_or_default())
}

/// Returns the vendors' trace state; a malformed or too long one is ignored.
pub(super) fn trace_state(headers: &HeaderMap) -> Option<TraceState> {
    headers.get(TRACESTATE)?.to_str().ok()?.parse().ok()
}

/// Reads the idempotency key: plain text, or the quoted form of a structured field (RFC 8941).
fn key(headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).into_iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let text = value.to_str().ok().filter(|_| values.next().is_none());
    let key = text.map(str::trim).and_then(|text| {
        if text.starts_with('"') {
            return unquoted(text);
        }
        Some(text.to_owned()).filter(|key| !key.is_empty())
    });
    let key = key.ok_or_else(|| {
        let message = Say::KeyForm;
        Refusal::new(ErrorCode::InvalidArgument, message).hint(Say::SendKeyBare)
    })?;
    Ok(Some(key))
}

/// Parses the string of a structured field; nothing may follow it.
fn unquoted(text: &str) -> Option<String> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    let mut key = String::with_capacity(inner.len());
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => key.push(letters.next().filter(|next| matches!(next, '"' | '\\'))?),
            '"' => return None,
            letter => key.push(letter),
        }
    }
    Some(key).filter(|key| !key.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_in_both_forms_and_in_no_other() {
        let read = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(IDEMPOTENCY_KEY, text.parse().unwrap());
            key(&headers).map_err(|_| ())
        };
        let is = |text: &str| Ok(Some(text.to_owned()));
        assert_eq!(read("k_1"), is("k_1"));
        assert_eq!(read("\"k_1\""), is("k_1"));
        assert_eq!(read(r#""a\"b\\c""#), is(r#"a"b\c"#));
        for text in [
            "",
            " ",
            "\"\"",
            "\"",
            "\"a",
            "\"a\"b\"",
            "\"a\"; p=1",
            r#""a\"#,
            r#""a\x""#,
        ] {
            assert_eq!(read(text), Err(()), "{text:?}");
        }
    }

    #[test]
    fn a_caller_may_prefer_to_wait() {
        let read = |texts: &[&str]| {
            let mut headers = HeaderMap::new();
            for text in texts {
                headers.append(PREFER, text.parse().unwrap());
            }
            wait(&headers).as_secs()
        };
        for (texts, expected) in [
            (&["wait=30"][..], 30),
            (&["respond-async, Wait = 5"], 5),
            (&["return=minimal", "wait=7; x=1"], 7),
            (&["wait=\"9\""], 9),
            (&["wait"], 0),
            (&["wait=-1"], 0),
            (&["wait=1e9"], 0),
            (&["waiting=3"], 0),
            (&[], 0),
        ] {
            assert_eq!(read(texts), expected, "{texts:?}");
        }
    }

    #[test]
    fn a_body_is_json_or_text() {
        let read = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, text.parse().unwrap());
            kind(&headers).ok()
        };
        assert_eq!(kind(&HeaderMap::new()).ok(), Some(Kind::Json));
        for text in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/vnd.x+json",
            "application/x-www-form-urlencoded",
        ] {
            assert_eq!(read(text), Some(Kind::Json), "{text}");
        }
        assert_eq!(read("text/plain;charset=utf-8"), Some(Kind::Text));
        for text in ["", "text/html", "multipart/form-data", "+jsonx"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
