//! `POST /v1/tools/{name}`: one call.

use std::borrow::Cow;
use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use countersign::ToolCall;
use countersign::contract::{ErrorCode, Language, ReplyEnvelope, Wording};
use countersign::observe::{Origin, Surface};
use http::HeaderMap;
use http::request::Parts;

use super::answer::{self, Refusal};
use super::headers::{self, Kind};
use super::members::Asked;
use super::{body, query};
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::metrics::OfCall;
use crate::nearest::nearest;
use crate::offer::{Meant, Own, OwnCall, meant};
use crate::words::Say;

pub(super) async fn call(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    name: Result<Path<String>, PathRejection>,
    // The whole request, because extracting its headers would copy them.
    request: Request,
) -> Result<Response, Refusal> {
    let name = query::segment(name)?;
    let (Parts { headers, .. }, body) = request.into_parts();
    let kind = headers::kind(&headers)?;
    let body = body::read(body, gateway.settings()).await?;
    let asked = asked(&headers, kind, &body)?;
    let (name, asked) = match behind(&gateway, &caller, name, asked).await {
        Ok(call) => call,
        Err(reply) => return Ok(answered(&reply)),
    };
    let call = made(&name, asked, &headers, &caller);
    let language = call.language();
    let mut reply = gateway.call(call).await;
    if is_unknown_tool(&gateway, &name, &reply) {
        // On the heap: every call has room for what waits here, and nearly none gets here.
        Box::pin(point_to_near_tool(
            &gateway,
            &caller,
            (&name, language),
            &mut reply,
        ))
        .await;
    }
    Ok(answered(&reply))
}

fn answered(reply: &ReplyEnvelope) -> Response {
    let mut response = answer::reply(reply);
    if !reply.ok {
        response.extensions_mut().insert(OfCall);
    }
    response
}

/// The call behind a call of `call_tool`, or the call itself; the reply, where it is one of the facade's own tools.
async fn behind<'b>(
    gateway: &Gateway,
    caller: &Caller,
    name: String,
    asked: Asked<'b>,
) -> Result<(String, Asked<'b>), Box<ReplyEnvelope>> {
    if Own::named(&name).is_none() {
        return Ok((name, asked));
    }
    let offer = gateway.offer(&caller.principal, None);
    let arguments = Arc::from(&*asked.arguments);
    match meant(&offer, &name, &arguments, &asked.envelope) {
        Meant::Direct => Ok((name, asked)),
        Meant::Behind(behind) => {
            let arguments = Cow::Owned(behind.arguments.to_string());
            Ok((behind.name, Asked { arguments, ..asked }))
        }
        Meant::Own(own, arguments) => {
            let call = OwnCall {
                own,
                arguments: &arguments,
                envelope: &asked.envelope,
                principal: &caller.principal,
            };
            Err(Box::new(Box::pin(gateway.own(&call)).await))
        }
        Meant::Nothing(error) => {
            let language = Language::of(asked.envelope.locale.as_deref());
            let request_id = asked.envelope.request_id;
            let request_id = request_id.unwrap_or_else(|| gateway.ids().request_id());
            let error = error.in_language(language);
            Err(Box::new(ReplyEnvelope::failure(request_id, error)))
        }
    }
}

/// Parses a request: its body, and its headers.
pub(super) fn asked<'b>(
    headers: &HeaderMap,
    kind: Kind,
    body: &'b Bytes,
) -> Result<Asked<'b>, Refusal> {
    let text = headers::utf8(body)?;
    let mut asked = match kind {
        Kind::Json => Asked::read(text)?,
        Kind::Text => Asked::bare(text),
    };
    headers::join(headers, &mut asked.envelope)?;
    Ok(asked)
}

/// Builds the call of a request.
pub(super) fn made(name: &str, asked: Asked<'_>, headers: &HeaderMap, caller: &Caller) -> ToolCall {
    let call = ToolCall::new(name, &*asked.arguments, caller.principal.clone());
    let origin = Origin {
        surface: Surface::Http,
        call_id: None,
    };
    let mut call = call
        .envelope(asked.envelope)
        .origin(origin)
        .wait_for_approval(headers::wait(headers));
    if let Some(trace) = headers::trace(headers) {
        call = call.trace(trace);
    }
    if let Some(state) = headers::trace_state(headers) {
        call = call.trace_state(state);
    }
    call
}

fn is_unknown_tool(gateway: &Gateway, name: &str, reply: &ReplyEnvelope) -> bool {
    let code = reply.error.as_ref().map(|error| error.code);
    code == Some(ErrorCode::NotFound) && gateway.executor().catalog().get(name).is_none()
}

/// Adds a hint with the tool that was probably meant, among those that the caller may call.
async fn point_to_near_tool(
    gateway: &Gateway,
    caller: &Caller,
    (name, language): (&str, Language),
    reply: &mut ReplyEnvelope,
) {
    let Some(error) = &mut reply.error else {
        return;
    };
    let Ok(tools) = gateway.executor().list(&caller.principal).await else {
        return;
    };
    let known = tools.iter().map(|entry| entry.name().as_str());
    if let Some(near) = nearest(name, known) {
        let hint = Wording::from(Say::DidYouMean {
            name: near.to_owned(),
        });
        error.details.hint = Some(hint.in_language(language));
        let extra = &mut error.details.extra;
        extra.insert("did_you_mean".to_owned(), near.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The future of every call is moved to the heap: what it rarely waits for must not make it large.
    #[test]
    fn the_future_of_a_call_is_small() {
        fn bytes<A, B, C, D, F>(_: impl Fn(A, B, C, D) -> F) -> usize {
            size_of::<F>()
        }
        let size = bytes(call);
        assert!(size < 4_096, "{size}");
    }
}
