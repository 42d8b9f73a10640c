//! `POST /v1/providers/{provider}/calls`: takes a model's message as the provider's API returned it, and
//! returns the tool messages in the form that the API expects.
//!
//! The body is the message alone, or `{"message": …, "envelope": {…}}`. No provider has a message with a member
//! `envelope`, or one whose only member is `message`, so the two forms cannot be confused.

use std::fmt;
use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use countersign::ToolCall;
use countersign::contract::{
    Effect, ErrorBody, ErrorCode, Language, ReplyEnvelope, RequestEnvelope, RequestId,
};
use countersign::dialect::{DecodeError, Dialect, ProviderCall};
use countersign::session::Session;
use futures_util::{StreamExt as _, stream};
use http::header::WARNING;
use http::{HeaderMap, HeaderValue};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::answer::{self, Refusal};
use super::{body, headers, members, query};
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::nearest::nearest;
use crate::offer::{Meant, Offer, OwnCall, meant};
use crate::words::Say;

/// Providers whose messages are supported.
const PROVIDERS: [Dialect; 5] = [
    Dialect::OpenAi,
    Dialect::OpenAiResponses,
    Dialect::Anthropic,
    Dialect::Gemini,
    Dialect::Text,
];

/// Maximum number of concurrent reads of one message.
const READS_AT_ONCE: usize = 8;

pub(super) async fn calls(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    provider: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    let dialect = dialect(&query::segment(provider)?)?;
    headers::kind(&headers)?;
    let body = body::read(body, gateway.settings()).await?;
    let text = headers::utf8(&body)?;
    let (message, mut envelope) = split(text)?;
    headers::join(&headers, &mut envelope)?;
    let model: Option<Arc<str>> = dialect.model(message).map(Arc::from);
    let calls = dialect.calls(message).map_err(|error| {
        if error == DecodeError::CutOff {
            gateway.metrics().unfinished(model.as_deref());
        }
        unread(dialect, &error)
    })?;
    // A server without a parser leaves calls in the text.
    let is_missed = dialect == Dialect::OpenAi
        && calls.is_empty()
        && Dialect::Text
            .calls(message)
            .is_ok_and(|calls| !calls.is_empty());
    let answered = run(&gateway, &caller, &headers, (envelope, model), calls).await?;
    let answered: Vec<_> = answered
        .into_iter()
        .map(|(call, reply)| (call.written, gateway.for_model(reply)))
        .collect();
    let mut response = answer::json(&dialect.results(&answered));
    if is_missed {
        let headers = response.headers_mut();
        headers.insert(WARNING, HeaderValue::from_static(CALLS_IN_TEXT));
    }
    Ok(response)
}

/// The warning about a message whose calls its server has not read.
const CALLS_IN_TEXT: &str = "299 countersign \"the text of the message has calls in it; send it to /v1/providers/text/calls\"";

fn unread(dialect: Dialect, error: &DecodeError) -> Refusal {
    let refusal = Refusal::from(ErrorBody::from(error));
    match error {
        DecodeError::Provider { .. } => refusal.hint(Say::AskProvider),
        DecodeError::CutOff => refusal.hint(Say::RaiseTokens),
        DecodeError::TooLarge { .. }
        | DecodeError::NotJson { .. }
        | DecodeError::Missing { .. }
        | DecodeError::Expected { .. }
        | DecodeError::Unsupported { .. }
        | DecodeError::Contradiction { .. }
        | DecodeError::TooManyCalls => refusal.hint(Say::AsReturned {
            dialect: dialect.to_string(),
        }),
    }
}

/// Runs the calls of a message in its order: a write waits for the calls before it, because a model may rely on
/// them. Calls that only read do not wait.
async fn run(
    gateway: &Gateway,
    caller: &Caller,
    headers: &HeaderMap,
    (envelope, model): (RequestEnvelope, Option<Arc<str>>),
    calls: Vec<ProviderCall>,
) -> Result<Vec<(Called, ReplyEnvelope)>, Refusal> {
    let offer = gateway.offer(&caller.principal, None);
    let language = Language::of(envelope.locale.as_deref());
    let calls = calls
        .into_iter()
        .map(|call| Called::read(&offer, call, &envelope));
    let calls: Vec<Called> = calls.collect();
    let own_envelope = envelope.clone();
    let request_id = envelope.request_id.clone();
    let prefix = envelope.idempotency_key.clone();
    let session = Session::new(gateway.executor().clone(), caller.principal.clone());
    let session = session.envelope(envelope);
    let session = match prefix {
        Some(prefix) => session.key_prefix(prefix),
        None => session,
    };
    let (trace, state) = (headers::trace(headers), headers::trace_state(headers));
    let is_read = |call: &Called| {
        let entry = gateway.executor().catalog().get(&call.tool().name);
        entry.is_none_or(|entry| entry.spec().behaviour.effect == Effect::Read)
    };
    let at_once = if calls.iter().all(is_read) {
        READS_AT_ONCE
    } else {
        1
    };
    let mut running = Vec::new();
    for call in calls {
        let mut made = session.call(call.tool());
        if let Some(trace) = trace {
            made = made.trace(trace);
        }
        if let Some(state) = &state {
            made = made.trace_state(state.clone());
        }
        if let Some(model) = &model {
            made = made.model(model.clone());
        }
        let mut own_envelope = own_envelope.clone();
        if let Some(request_id) = &request_id {
            let numbered = numbered(request_id, call.written.index)?;
            own_envelope.request_id = Some(numbered.clone());
            made = made.requested_as(numbered);
        }
        let offer = &offer;
        running.push(async move {
            let envelope = (&own_envelope, language);
            let reply = answered(gateway, caller, offer, envelope, &call, made).await;
            (call, reply)
        });
    }
    Ok(stream::iter(running).buffered(at_once).collect().await)
}

/// A call as a model wrote it, and the call that it means.
struct Called {
    written: ProviderCall,
    meant: Meant,
    /// The call behind one of `call_tool`.
    behind: Option<ProviderCall>,
}

impl Called {
    fn read(offer: &Offer, written: ProviderCall, envelope: &RequestEnvelope) -> Self {
        // A call that was cut off, or has two readings, is refused as what it is, and never read.
        let meant = if written.refusal().is_some() {
            Meant::Direct
        } else {
            let arguments = Arc::from(written.arguments.text.as_str());
            meant(offer, &written.name, &arguments, envelope)
        };
        let behind = match &meant {
            Meant::Behind(behind) => {
                let mut call = written.clone();
                call.name.clone_from(&behind.name);
                call.arguments.text = behind.arguments.to_string();
                Some(call)
            }
            Meant::Direct | Meant::Own(..) | Meant::Nothing(_) => None,
        };
        Self {
            written,
            meant,
            behind,
        }
    }

    /// The call of a tool.
    fn tool(&self) -> &ProviderCall {
        self.behind.as_ref().unwrap_or(&self.written)
    }
}

async fn answered(
    gateway: &Gateway,
    caller: &Caller,
    offer: &Offer,
    (envelope, language): (&RequestEnvelope, Language),
    call: &Called,
    made: ToolCall,
) -> ReplyEnvelope {
    match &call.meant {
        Meant::Own(own, arguments) => {
            let call = OwnCall {
                own: *own,
                arguments,
                envelope,
                principal: &caller.principal,
            };
            gateway.own(&call).await
        }
        Meant::Nothing(error) => {
            let id = envelope.request_id.clone();
            let id = id.unwrap_or_else(|| gateway.ids().request_id());
            ReplyEnvelope::failure(id, ErrorBody::clone(error).in_language(language))
        }
        Meant::Direct | Meant::Behind(_) => {
            let mut reply = gateway.call(made).await;
            let name = &call.tool().name;
            if call.behind.is_some() {
                let named = (name.as_str(), &*caller.principal);
                gateway.point_to_search(named, language, &mut reply).await;
            }
            let short = gateway.shortened(offer, name, &reply, language);
            short.unwrap_or(reply)
        }
    }
}

/// Returns the request id of one call: those of a message are `r_1.1`, `r_1.2` and so on.
fn numbered(request_id: &RequestId, index: usize) -> Result<RequestId, Refusal> {
    RequestId::new(format!("{request_id}.{}", index + 1)).map_err(|_| {
        let message = Say::RequestIdTooLong;
        Refusal::new(ErrorCode::InvalidArgument, message)
            .field("/envelope/request_id")
            .hint(Say::ShorterRequestId)
    })
}

fn dialect(name: &str) -> Result<Dialect, Refusal> {
    let known = || PROVIDERS.map(Dialect::as_str);
    PROVIDERS
        .into_iter()
        .find(|dialect| dialect.as_str() == name)
        .ok_or_else(|| {
            let shown: String = name.chars().take(80).collect();
            Refusal::new(ErrorCode::NotFound, Say::NoProvider { name: shown })
                .hint(Say::KnownNames {
                    names: known().join(", "),
                })
                .did_you_mean(nearest(name, known()))
        })
}

/// Splits the body into the message and the envelope.
fn split(text: &str) -> Result<(&str, RequestEnvelope), Refusal> {
    if !text.trim_ascii_start().starts_with('{') {
        return Ok((text, RequestEnvelope::default()));
    }
    // The dialect reports invalid JSON, like every other fault of a message.
    let Ok(outer) = serde_json::from_str::<Outer<'_>>(text) else {
        return Ok((text, RequestEnvelope::default()));
    };
    if let Some(name) = outer.twice {
        let message = Say::OccursTwice {
            name: name.to_string(),
        };
        return Err(Refusal::new(ErrorCode::InvalidArgument, message).field(format!("/{name}")));
    }
    match outer {
        Outer {
            message: Some(message),
            envelope: None,
            other: None,
            ..
        } => Ok((message.get(), RequestEnvelope::default())),
        Outer { envelope: None, .. } => Ok((text, RequestEnvelope::default())),
        Outer {
            message: Some(message),
            envelope: Some(envelope),
            other: None,
            ..
        } => {
            let is_null = envelope.get() == "null";
            let envelope = if is_null { "{}" } else { envelope.get() };
            let envelope = members::envelope(envelope);
            Ok((
                message.get(),
                envelope.map_err(|refusal| refusal.under("/envelope"))?,
            ))
        }
        Outer {
            envelope: Some(_),
            message,
            other,
            ..
        } => {
            let message = match (message, other) {
                (None, _) => Say::NoMessage,
                (Some(_), other) => {
                    let other: String = other.unwrap_or_default().chars().take(80).collect();
                    Say::BesideMessage { name: other }
                }
            };
            Err(Refusal::new(ErrorCode::InvalidArgument, message).hint(Say::MessageAlone))
        }
    }
}

/// Outermost members of a body.
#[derive(Default)]
struct Outer<'b> {
    message: Option<&'b RawValue>,
    envelope: Option<&'b RawValue>,
    other: Option<String>,
    twice: Option<&'static str>,
}

impl<'de> Deserialize<'de> for Outer<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OuterVisitor)
    }
}

struct OuterVisitor;

impl<'de> Visitor<'de> for OuterVisitor {
    type Value = Outer<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Outer<'de>, A::Error> {
        let mut outer = Outer::default();
        while let Some(name) = map.next_key::<String>()? {
            let value: &'de RawValue = map.next_value()?;
            match name.as_str() {
                "message" => {
                    let is_twice = outer.message.replace(value).is_some();
                    outer.twice = outer.twice.or(is_twice.then_some("message"));
                }
                "envelope" => {
                    let is_twice = outer.envelope.replace(value).is_some();
                    outer.twice = outer.twice.or(is_twice.then_some("envelope"));
                }
                _ => {
                    outer.other.get_or_insert(name);
                }
            }
        }
        Ok(outer)
    }
}
