//! Credentials: what they prove, and how a missing or wrong one is answered.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use countersign::contract::ErrorBody;
use http::{HeaderMap, HeaderValue};

use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::operator::Operator;

/// Which credentials are accepted.
#[derive(Debug)]
pub struct Identity {
    local: Caller,
    operator: Option<Operator>,
}

/// Why a request has no caller.
#[derive(Debug)]
pub struct Refused {
    /// `UNAUTHORIZED`, with what to do.
    pub body: ErrorBody,
    /// The `WWW-Authenticate` header that tells a client how to get a credential.
    pub challenge: Option<HeaderValue>,
}

impl Identity {
    /// No credential: for a server that only this machine can reach.
    pub fn loopback() -> Self {
        Self {
            local: Caller::local(),
            operator: None,
        }
    }

    /// Whoever asks is this caller: for a server behind something that has checked already, and for tests.
    pub fn fixed(caller: Caller) -> Self {
        Self {
            local: caller,
            operator: None,
        }
    }

    /// The same, and the operator's token of this run.
    pub fn with_operator_token(mut self, operator: Operator) -> Self {
        self.operator = Some(operator);
        self
    }

    /// Who sent a request with these headers.
    pub async fn caller(&self, headers: &HeaderMap) -> Result<Caller, Refused> {
        if let Some(caller) = self
            .operator
            .as_ref()
            .and_then(|known| known.caller(headers))
        {
            return Ok(caller);
        }
        std::future::ready(Ok(self.local.clone())).await
    }
}

/// Puts the [`Caller`] into the extensions of a request, or answers in its place.
pub async fn layer(State(gateway): State<Gateway>, mut request: Request, next: Next) -> Response {
    match gateway.identity().caller(request.headers()).await {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(refused) => {
            let status = refused.body.code.http_status();
            let status = http::StatusCode::from_u16(status).unwrap_or_default();
            (status, axum::Json(refused.body)).into_response()
        }
    }
}
