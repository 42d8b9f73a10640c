//! Tokens from an OAuth issuer: for the gateway itself, or in exchange for the caller's (RFC 8693).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::principal::BearerToken;
use countersign::{CallContext, ToolError};
use countersign_contract::{ErrorBody, ErrorCode, FaultSource};
use serde::{Deserialize, Deserializer};
use sha2::{Digest as _, Sha256};
use tokio::sync::Mutex as Turn;

use crate::http::fault;
use crate::http::service::Service;
use crate::http::style::escape;
use crate::manifest::{ClientAuth, ClientCredentials, Secret, TokenExchange};
use crate::words::Say;

/// A token and the end of its use, in the service's time.
#[derive(Clone)]
struct Token {
    value: Secret,
    until: Duration,
}

/// A place for one token. Only one request fetches it; the others wait for that one.
#[derive(Default)]
struct Slot {
    token: Mutex<Option<Token>>,
    turn: Turn<()>,
}

/// Time before its end at which a token is renewed.
const MARGIN: Duration = Duration::from_secs(30);

/// Use of a token whose issuer does not say for how long it is good.
const USUAL: Duration = Duration::from_mins(5);

/// Most bytes of a token answer.
const ANSWER_BYTES_MAX: usize = 256 * 1024;

/// Most callers whose tokens are kept.
const CALLERS_MAX: usize = 10_000;

impl Slot {
    fn fresh(&self, now: Duration) -> Option<Secret> {
        let token = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        let token = token.as_ref().filter(|token| now < token.until)?;
        Some(token.value.clone())
    }

    /// Forgets a token that was refused. A newer one that another call has fetched since then stays.
    fn clear(&self, refused: &Secret) {
        let mut token = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        token.take_if(|token| token.value.expose() == refused.expose());
    }

    async fn get(
        &self,
        service: &Service,
        ctx: &CallContext,
        grant: &Grant<'_>,
    ) -> Result<Secret, ToolError> {
        if let Some(token) = self.fresh(service.now()) {
            return Ok(token);
        }
        let _turn = self.turn.lock().await;
        // Whoever was first may have brought it.
        if let Some(token) = self.fresh(service.now()) {
            return Ok(token);
        }
        let asked = service.now();
        let answer = fetch(service, ctx, grant).await?;
        let good_for = answer.expires_in.map_or(USUAL, Duration::from_secs);
        let margin = MARGIN.min(good_for / 5);
        let token = Token {
            value: Secret::new(answer.access_token),
            until: asked.saturating_add(good_for.saturating_sub(margin)),
        };
        let value = token.value.clone();
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = Some(token);
        Ok(value)
    }
}

/// A token of the gateway itself.
pub(crate) struct ClientToken {
    settings: ClientCredentials,
    secret: Secret,
    slot: Slot,
}

impl ClientToken {
    pub(super) fn new(settings: ClientCredentials, secret: Secret) -> Self {
        Self {
            settings,
            secret,
            slot: Slot::default(),
        }
    }

    pub(super) fn token_url(&self) -> &str {
        &self.settings.token_url
    }

    pub(super) fn secret(&self) -> &Secret {
        &self.secret
    }

    pub(super) async fn token(
        &self,
        service: &Service,
        ctx: &CallContext,
    ) -> Result<Secret, ToolError> {
        let mut form = vec![("grant_type", "client_credentials".to_owned())];
        let scopes = self.settings.scopes.join(" ");
        if !scopes.is_empty() {
            form.push(("scope", scopes));
        }
        if let Some(audience) = &self.settings.audience {
            form.push(("audience", audience.clone()));
        }
        let grant = Grant {
            token_url: &self.settings.token_url,
            client_id: &self.settings.client_id,
            secret: &self.secret,
            client_auth: self.settings.client_auth,
            form,
        };
        self.slot.get(service, ctx, &grant).await
    }

    pub(super) fn forget(&self, refused: &Secret) -> bool {
        self.slot.clear(refused);
        true
    }
}

/// Tokens in exchange for those of callers.
pub(crate) struct Exchange {
    settings: TokenExchange,
    secret: Secret,
    /// Tokens by digest of the caller's token.
    slots: Mutex<HashMap<[u8; 32], Arc<Slot>>>,
}

impl Exchange {
    pub(super) fn new(settings: TokenExchange, secret: Secret) -> Self {
        Self {
            settings,
            secret,
            slots: Mutex::default(),
        }
    }

    pub(super) fn token_url(&self) -> &str {
        &self.settings.token_url
    }

    pub(super) fn secret(&self) -> &Secret {
        &self.secret
    }

    pub(super) async fn token(
        &self,
        service: &Service,
        ctx: &CallContext,
    ) -> Result<Secret, ToolError> {
        let Some(own) = ctx.caller_token() else {
            let upstream = service.name().to_owned();
            let error = ToolError::new(ErrorCode::Unauthorized, Say::NoCallerToken { upstream });
            return Err(error.hint(Say::CallWithToken).without_effect());
        };
        let settings = &self.settings;
        let mut form = vec![
            (
                "grant_type",
                "urn:ietf:params:oauth:grant-type:token-exchange".to_owned(),
            ),
            ("subject_token", own.expose().to_owned()),
            ("subject_token_type", settings.subject_token_type.clone()),
        ];
        let scopes = settings.scopes.join(" ");
        let optional = [
            ("scope", (!scopes.is_empty()).then_some(scopes)),
            ("audience", settings.audience.clone()),
            ("resource", settings.resource.clone()),
        ];
        form.extend(
            optional
                .into_iter()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        let grant = Grant {
            token_url: &settings.token_url,
            client_id: &settings.client_id,
            secret: &self.secret,
            client_auth: settings.client_auth,
            form,
        };
        self.slot(own).get(service, ctx, &grant).await
    }

    pub(super) fn forget(&self, ctx: &CallContext, refused: &Secret) -> bool {
        let own = ctx.caller_token();
        own.inspect(|own| self.slot(own).clear(refused)).is_some()
    }

    fn slot(&self, own: &BearerToken) -> Arc<Slot> {
        let digest: [u8; 32] = Sha256::digest(own.expose().as_bytes()).into();
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.len() >= CALLERS_MAX && !slots.contains_key(&digest) {
            slots.clear();
        }
        slots.entry(digest).or_default().clone()
    }
}

/// A request for a token.
struct Grant<'g> {
    token_url: &'g str,
    client_id: &'g str,
    secret: &'g Secret,
    client_auth: ClientAuth,
    form: Vec<(&'static str, String)>,
}

#[derive(Deserialize)]
struct TokenAnswer {
    access_token: String,
    #[serde(default)]
    token_type: Option<String>,
    #[serde(default, deserialize_with = "seconds")]
    expires_in: Option<u64>,
}

impl TokenAnswer {
    /// True if the token can be sent as `Bearer`. A token of another type needs a proof that is not made here (RFC 6749, section 7.1).
    fn is_bearer(&self) -> bool {
        let kind = self.token_type.as_deref().unwrap_or("bearer");
        kind.eq_ignore_ascii_case("bearer") || kind.eq_ignore_ascii_case("n_a")
    }
}

/// A number of seconds; some issuers write it as a text, or with decimals.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let value = Option::<serde_json::Value>::deserialize(deserializer)?;
    Ok(match value {
        Some(serde_json::Value::String(text)) => text.trim().parse().ok(),
        Some(serde_json::Value::Number(number)) => {
            let whole = number.to_string();
            whole.split('.').next().and_then(|it| it.parse().ok())
        }
        Some(_) | None => None,
    })
}

async fn fetch(
    service: &Service,
    ctx: &CallContext,
    grant: &Grant<'_>,
) -> Result<TokenAnswer, ToolError> {
    let failed = |why: Say| {
        let body = ErrorBody::new(ErrorCode::UpstreamError, why).source(FaultSource::Upstream);
        ToolError::from(body).hint(Say::SameLater).without_effect()
    };
    let upstream = || service.name().to_owned();
    let mut form = grant.form.clone();
    let mut request = service.client.post(grant.token_url);
    match grant.client_auth {
        ClientAuth::Basic => {
            let pair = format!(
                "{}:{}",
                escape(grant.client_id),
                escape(grant.secret.expose())
            );
            let value = format!("Basic {}", STANDARD.encode(pair));
            request = request.header("authorization", value);
        }
        ClientAuth::Post => {
            form.push(("client_id", grant.client_id.to_owned()));
            form.push(("client_secret", grant.secret.expose().to_owned()));
        }
    }
    let pairs: Vec<_> = form
        .iter()
        .map(|(k, v)| format!("{k}={}", escape(v)))
        .collect();
    let request = request
        .header("content-type", "application/x-www-form-urlencoded")
        .header("accept", "application/json")
        .header("traceparent", ctx.traceparent())
        .body(pairs.join("&"));
    let sent = request.send().await.map_err(|error| {
        fault::no_token(service.name()).with_source(error.without_url().to_string())
    })?;
    let status = sent.status();
    let mut response = sent;
    let mut bytes = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > ANSWER_BYTES_MAX {
            break;
        }
    }
    if !status.is_success() {
        let refused = matches!(status.as_u16(), 400 | 401 | 403);
        let why = Say::TokenRefused {
            upstream: upstream(),
            status: status.as_u16().to_string(),
        };
        if !refused {
            return Err(failed(why));
        }
        // The same request would be refused again.
        let mut body = ErrorBody::new(ErrorCode::UpstreamError, why).source(FaultSource::Upstream);
        body.details.retryable = false;
        return Err(ToolError::from(body.hint(Say::OperatorMends)).without_effect());
    }
    let answer = serde_json::from_slice::<TokenAnswer>(&bytes).ok();
    let usable = answer.filter(|answer| answer.is_bearer() && !answer.access_token.is_empty());
    usable.ok_or_else(|| fault::no_token(service.name()))
}
