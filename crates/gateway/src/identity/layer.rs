//! The identity layer: authenticates every request that needs a caller.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use countersign::contract::{ErrorBody, ErrorCode};
use http::StatusCode;
use http::header::WWW_AUTHENTICATE;

use super::challenge;
use super::refusal::Refused;
use crate::caller::{Caller, Proof};
use crate::gateway::Gateway;
use crate::http::answer::Refusal;
use crate::kept::Kept;
use crate::mcp;
use crate::operator::AtSocket;
use crate::words::Say;

/// In the extensions of a request that this process sends to itself for a caller whom it knows already. Nothing on the wire can put it
/// there.
#[derive(Debug, Clone)]
pub(crate) struct Known(pub(crate) Caller);

/// Puts the [`Caller`] into the extensions of a request, or answers in its place.
pub async fn layer(State(gateway): State<Gateway>, mut request: Request, next: Next) -> Response {
    let identity = gateway.identity();
    let by_socket = request.extensions().get::<AtSocket>();
    let operator = by_socket.and_then(|AtSocket| identity.at_socket());
    let known = request.extensions().get::<Known>();
    let caller = match operator.or_else(|| known.map(|Known(caller)| caller.clone())) {
        Some(caller) => Ok(caller),
        None => identity.caller(request.headers()).await,
    };
    match caller {
        Ok(caller) => {
            let Some(open) = gateway.quotas().request(&caller.principal) else {
                return too_many().into_response();
            };
            // An MCP client says its name in its messages, so there the offer is looked at with each of them.
            let is_asked_later = request.uri().path() == mcp::PATH;
            let caller = match caller.proof {
                Proof::ApiKey | Proof::Token | Proof::Loopback if !is_asked_later => {
                    gateway.offer(&caller.principal, None).narrow(caller)
                }
                // Commands of the operator see every tool.
                Proof::ApiKey | Proof::Token | Proof::Loopback | Proof::Operator => caller,
            };
            let asked = Asked::of(&gateway, &caller, &request);
            request.extensions_mut().insert(caller);
            let mut response = next.run(request).await;
            if response.status() == StatusCode::FORBIDDEN
                && let Some(asked) = asked
            {
                asked.challenge(&gateway, &mut response);
            }
            // The request counts as open until its answer was sent.
            response.map(|body| Body::new(Kept::new(body, open)))
        }
        Err(refused) => answer(&gateway, &request, refused),
    }
}

/// Refuses because the caller has its maximum number of requests open.
fn too_many() -> Refusal {
    ErrorBody::new(ErrorCode::RateLimited, Say::CallerHasItsShare)
        .retry_after_ms(SHARE_RETRY_MS)
        .hint(Say::WaitThenSameRequest)
        .into()
}

/// Retry interval for a caller that has reached its maximum, in milliseconds.
const SHARE_RETRY_MS: u64 = 1_000;

fn answer(gateway: &Gateway, request: &Request, refused: Refused) -> Response {
    let policy = gateway.identity().policy().current();
    let base = challenge::base_url(gateway.settings(), request.headers());
    let path = request.uri().path();
    let header = challenge::unauthorized(refused.reason, &policy, base.as_deref(), path);
    let refusal = Refusal::from(refused.body);
    let refusal = match header {
        Some(header) => refusal.header(WWW_AUTHENTICATE, header),
        None => refusal,
    };
    refusal.into_response()
}

/// Tool that a request asks for, for the challenge that comes with a refusal.
struct Asked {
    caller: Caller,
    tool: String,
    base: Option<String>,
    path: String,
}

impl Asked {
    /// `None` if no other credential would help, or if the request names no tool outside of its body.
    fn of(gateway: &Gateway, caller: &Caller, request: &Request) -> Option<Self> {
        match caller.proof {
            Proof::Loopback | Proof::Operator => return None,
            Proof::ApiKey | Proof::Token => {}
        }
        let path = request.uri().path();
        let in_header = || request.headers().get("mcp-name")?.to_str().ok();
        let in_path = ["/v1/tools/", "/acp/tools/", "/ucp/tools/"];
        let tool = match in_path.iter().find_map(|prefix| path.strip_prefix(prefix)) {
            Some(rest) => rest.split('/').next(),
            None => in_header(),
        }?;
        let entry = gateway.executor().catalog().get(tool)?;
        Some(Self {
            caller: caller.clone(),
            tool: entry.name().to_string(),
            base: challenge::base_url(gateway.settings(), request.headers()),
            path: path.to_owned(),
        })
    }

    fn challenge(&self, gateway: &Gateway, response: &mut Response) {
        let policy = gateway.identity().policy().current();
        let principal = &self.caller.principal;
        let base = self.base.as_deref();
        let header =
            challenge::insufficient_scope(principal, &self.tool, &policy, base, &self.path);
        if let Some(header) = header {
            response.headers_mut().insert(WWW_AUTHENTICATE, header);
        }
    }
}
