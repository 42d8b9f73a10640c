//! Pages of a standard that are built from the answer of a tool, such as a checkout session from a draft order.
//! Requesting one is a call of that tool: the same rights apply, and it is recorded like every other.

use std::fmt;
use std::sync::Arc;

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, Request, State};
use axum::response::Response;
use countersign::ToolCall;
use countersign::contract::{ErrorBody, ErrorCode, FaultSource, ReplyEnvelope, RequestEnvelope};
use countersign::observe::{Origin, Surface};
use http::header::CACHE_CONTROL;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Value, json};

use super::outcome::Outcome;
use super::profile::Profile;
use super::{call, codes, outcome};
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::http::answer::Refusal;
use crate::http::headers;
use crate::http::query::{self, Options};
use crate::words::Say;

/// A page of a standard, built from the answer of a tool.
///
/// # Example
///
/// ```
/// use countersign_gateway::http::interop::{Profile, View};
///
/// // GET /acp/checkout_sessions/{id} calls notes.list with the id as `tag`.
/// let view = View::new(Profile::Acp, "checkout_sessions", "notes.list", "tag", |data, _| {
///     Ok(data.clone())
/// });
/// assert_eq!(view.profile(), Profile::Acp);
/// ```
#[derive(Clone)]
pub struct View {
    profile: Profile,
    resource: &'static str,
    tool: &'static str,
    argument: &'static str,
    body: Body,
}

type Body = Arc<dyn Fn(&Value, &Page) -> Result<Value, PageError> + Send + Sync>;

/// Reason why a page cannot be built; for the log.
pub type PageError = Box<dyn std::error::Error + Send + Sync>;

/// Context of a page besides its data.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// Address of the page where the user continues, if there is one.
    pub continue_url: Option<String>,
    /// Language that the client prefers.
    pub locale: Option<String>,
}

impl View {
    /// Serves `/{profile}/{resource}/{id}`: `tool` is called with the id as its `argument`, and `body` builds
    /// the page from the answer, or says why it cannot.
    pub fn new(
        profile: Profile,
        resource: &'static str,
        tool: &'static str,
        argument: &'static str,
        body: impl Fn(&Value, &Page) -> Result<Value, PageError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            profile,
            resource,
            tool,
            argument,
            body: Arc::new(body),
        }
    }

    /// Returns the standard that the page follows.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// Returns the tool that it calls.
    pub(super) fn tool(&self) -> &'static str {
        self.tool
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View")
            .field("profile", &self.profile)
            .field("resource", &self.resource)
            .field("tool", &self.tool)
            .finish_non_exhaustive()
    }
}

pub(super) async fn acp(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    asked: Result<Path<(String, String)>, PathRejection>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Result<Response, Refusal> {
    let asked = query::segment(asked)?;
    show(Profile::Acp, &gateway, &caller, asked, query, request).await
}

pub(super) async fn ucp(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    asked: Result<Path<(String, String)>, PathRejection>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Result<Response, Refusal> {
    let asked = query::segment(asked)?;
    show(Profile::Ucp, &gateway, &caller, asked, query, request).await
}

async fn show(
    profile: Profile,
    gateway: &Gateway,
    caller: &Caller,
    (resource, id): (String, String),
    query: Option<String>,
    request: Request,
) -> Result<Response, Refusal> {
    let mut headers = request.into_parts().0.headers;
    call::adopt_request_id(&mut headers);
    call::check_version(profile, &headers)?;
    let is_meant = |view: &&View| view.profile == profile && view.resource == resource;
    let Some(view) = gateway.views().iter().find(is_meant) else {
        let shown: String = resource.chars().take(80).collect();
        let message = Say::NoSuchView { name: shown };
        return Err(Refusal::new(ErrorCode::NotFound, message).hint(Say::ListOfPaths));
    };
    let options = Options::read(query.as_deref(), ["user_id"])?;
    let reply = gateway
        .call(view.call(&id, options.get("user_id"), &headers, caller)?)
        .await;
    let Some(error) = &reply.error else {
        return Ok(view.page(gateway, &id, headers::language(&headers), &reply));
    };
    let outcome = match profile {
        // A missing session is an unknown path; UCP reports it in a message.
        Profile::Acp if error.code == ErrorCode::NotFound => {
            Outcome::protocol(StatusCode::NOT_FOUND, "not_found")
        }
        Profile::Acp | Profile::Ucp => codes::outcome(profile, error),
    };
    Ok(call::failure(
        profile,
        gateway,
        &reply,
        (error, None),
        &outcome,
    ))
}

impl View {
    fn call(
        &self,
        id: &str,
        user_id: Option<&str>,
        headers: &HeaderMap,
        caller: &Caller,
    ) -> Result<ToolCall, Refusal> {
        let mut envelope = RequestEnvelope {
            user_id: user_id.map(str::to_owned),
            locale: headers::language(headers),
            ..RequestEnvelope::default()
        };
        headers::join(headers, &mut envelope)?;
        // Reading a page needs no idempotency key.
        envelope.idempotency_key = None;
        let arguments = json!({self.argument: id}).to_string();
        let origin = Origin {
            surface: Surface::Http,
            call_id: None,
        };
        let principal = caller.principal.clone();
        let call = ToolCall::new(self.tool, arguments, principal)
            .envelope(envelope)
            .origin(origin);
        Ok(match headers::trace(headers) {
            Some(trace) => call.trace(trace),
            None => call,
        })
    }

    fn page(
        &self,
        gateway: &Gateway,
        id: &str,
        locale: Option<String>,
        reply: &ReplyEnvelope,
    ) -> Response {
        let url = gateway.settings().checkout_url.as_ref();
        let page = Page {
            continue_url: url.map(|url| url.replace("{id}", id)),
            locale,
        };
        let body = match (self.body)(&reply.data, &page) {
            Ok(body) => body,
            Err(error) => return self.not_understood(gateway, reply, &*error),
        };
        let mut response = outcome::written(StatusCode::OK, &body);
        let headers = response.headers_mut();
        outcome::named(headers, &reply.request_id);
        // The page is about one person, and may change within a minute.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }

    /// Refuses because the tool's answer does not fit the page: a defect of the server, not of the caller.
    fn not_understood(
        &self,
        gateway: &Gateway,
        reply: &ReplyEnvelope,
        error: &(dyn std::error::Error + 'static),
    ) -> Response {
        let error = countersign::redact::error_text(error);
        tracing::error!(
            tool = self.tool,
            error,
            "the tool's answer could not be turned into a page"
        );
        let error = ErrorBody::new(ErrorCode::UpstreamError, "the page could not be made")
            .source(FaultSource::Tool);
        let outcome = codes::outcome(self.profile, &error);
        call::failure(self.profile, gateway, reply, (&error, None), &outcome)
    }
}
