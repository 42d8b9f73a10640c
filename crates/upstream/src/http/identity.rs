//! `Countersign-Identity`: one signed statement of who calls, on whose behalf, and what.

use countersign::CallContext;
use countersign::realm::realm_name;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::manifest::Secret;

/// The claims of the token.
#[derive(Debug, Serialize)]
struct Claims<'c> {
    iss: &'static str,
    aud: &'c str,
    sub: &'c str,
    realm: &'c str,
    act: Act<'c>,
    tool: &'c str,
    purpose: &'static str,
    request_id: &'c str,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<&'c str>,
    iat: i64,
    exp: i64,
    method: &'c str,
    target_sha256: String,
    body_sha256: String,
}

#[derive(Debug, Serialize)]
struct Act<'c> {
    #[serde(rename = "type")]
    kind: &'static str,
    id: &'c str,
}

/// Purpose of a request. It is signed, so that a look-up or a dry run cannot be sent again as a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The call itself, or its dry run.
    Call,
    /// The look-up of what became of a call.
    Reconcile,
}

/// The request that a statement is good for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'r> {
    pub(crate) method: &'r str,
    /// Path and query, as they are sent.
    pub(crate) target: &'r str,
    pub(crate) body: &'r [u8],
}

/// Signs who calls. HS256, so that a service can verify it with its standard library.
pub(crate) fn sign(
    ctx: &CallContext,
    secret: &Secret,
    upstream: &str,
    tool: &str,
    purpose: Purpose,
    of: Request<'_>,
) -> Result<String, jsonwebtoken::errors::Error> {
    let request = ctx.request();
    let kind = request.actor.kind.as_str();
    let now = ctx.now().as_second();
    // A call without a deadline still must not leave a token that is good for ever.
    let exp = ctx
        .deadline()
        .as_second()
        .clamp(now, now.saturating_add(DAY))
        + 1;
    let claims = Claims {
        iss: "countersign",
        aud: upstream,
        sub: &request.user_id,
        realm: realm_name(&request.user_id),
        act: Act {
            kind,
            id: &request.actor.id,
        },
        tool,
        purpose: match purpose {
            Purpose::Reconcile => "reconcile",
            Purpose::Call if ctx.is_dry_run() => "dry_run",
            Purpose::Call => "call",
        },
        request_id: request.request_id.as_str(),
        idempotency_key: ctx.downstream_key(),
        iat: now,
        exp,
        method: of.method,
        target_sha256: hex(&Sha256::digest(of.target)),
        body_sha256: hex(&Sha256::digest(of.body)),
    };
    let key = EncodingKey::from_secret(secret.expose().as_bytes());
    encode(&Header::new(Algorithm::HS256), &claims, &key)
}

const DAY: i64 = 24 * 60 * 60;

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
