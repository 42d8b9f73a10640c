//! HTML or JSON, the headers of every answer, and the page of a refusal.

use askama::Template;
use axum::body::Body;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY, VARY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderValue, StatusCode};
use serde::Serialize;
use serde_json::Value;

use crate::frame::Frame;
use crate::session::Visit;

/// Nothing of another site, nothing inline, no frame around the page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The headers of every answer of the console.
pub(crate) async fn headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    let fixed: [(HeaderName, &'static str); 6] = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "same-origin"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (VARY, "Accept, Accept-Language, Cookie"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // A page is of one person and of this moment; only files of the program say otherwise.
    headers
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

/// A page, or its JSON twin.
pub(crate) fn page<P: Template + Serialize>(visit: &Visit, page: &P) -> Result<Response, Stop> {
    if visit.wants_json {
        return json(page);
    }
    html(page)
}

/// A page.
pub(crate) fn html(page: &impl Template) -> Result<Response, Stop> {
    let text = page.render().map_err(|error| {
        tracing::error!(%error, "a page could not be made");
        Stop::broken()
    })?;
    Ok(typed(text, "text/html; charset=utf-8"))
}

/// JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<Response, Stop> {
    let text = serde_json::to_vec_pretty(value).map_err(|_| Stop::broken())?;
    Ok(typed(text, "application/json"))
}

/// Bytes of a type.
pub(crate) fn typed(body: impl Into<Body>, kind: &'static str) -> Response {
    let mut response = Response::new(body.into());
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// Leads on to another page.
pub(crate) fn see_other(to: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    let to = HeaderValue::try_from(to).unwrap_or(HeaderValue::from_static("/"));
    response.headers_mut().insert(http::header::LOCATION, to);
    response
}

/// Reason why a page is not shown. [`crate::session::layer`] makes the page of it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Stop {
    #[serde(skip)]
    pub(crate) status: StatusCode,
    pub(crate) code: String,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
}

impl Stop {
    /// Message of a refusal by the API.
    pub(crate) fn of(status: StatusCode, body: &[u8]) -> Self {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let text = |pointer| body.pointer(pointer).and_then(Value::as_str);
        Self {
            status,
            code: text("/error/code").unwrap_or("UPSTREAM_ERROR").to_owned(),
            message: text("/error/message").unwrap_or_default().to_owned(),
            hint: text("/error/details/hint").map(str::to_owned),
        }
    }

    /// A refusal of our own.
    pub(crate) fn new(status: StatusCode, code: &str, message: &str) -> Self {
        Self {
            status,
            code: code.to_owned(),
            message: message.to_owned(),
            hint: None,
        }
    }

    /// Answer for a page that does not exist.
    pub(crate) fn not_found(visit: &Visit) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NOT_FOUND", visit.words.no_such_page)
    }

    /// Only for operators of the server.
    pub(crate) fn forbidden(visit: &Visit) -> Self {
        let mut stop = Self::new(
            StatusCode::FORBIDDEN,
            "FORBIDDEN",
            visit.words.for_operators,
        );
        stop.hint = Some(visit.words.for_operators_hint.to_owned());
        stop
    }

    /// Something of ours failed; the log says what. The page has the message in the reader's language.
    pub(crate) fn broken() -> Self {
        Self::new(StatusCode::BAD_GATEWAY, "UPSTREAM_ERROR", "")
    }

    /// The page of it.
    pub(crate) async fn page(mut self, visit: &Visit) -> Response {
        let status = self.status;
        if self.message.is_empty() {
            let message = match status {
                StatusCode::PAYLOAD_TOO_LARGE => visit.words.form_too_long,
                _ => visit.words.not_answered,
            };
            message.clone_into(&mut self.message);
        }
        let frame = visit.frame(visit.words.not_shown, "").await;
        let made = page(visit, &Stopped { frame, error: self });
        let mut response = made.unwrap_or_else(|_| typed("", "text/plain"));
        *response.status_mut() = status;
        response
    }
}

impl IntoResponse for Stop {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

#[derive(Template, Serialize)]
#[template(path = "stopped.html")]
struct Stopped {
    #[serde(skip)]
    frame: Frame,
    error: Stop,
}
