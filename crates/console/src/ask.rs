//! Requests to the API from within, as the person who looks.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::{ACCEPT_LANGUAGE, CONTENT_TYPE};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::form_urlencoded;

use crate::answer::Stop;
use crate::session::Visit;

/// The longest answer that a page is made from.
const ANSWER_BYTES_MAX: usize = 32 << 20;

/// An answer of the API.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: StatusCode,
    pub(crate) tokens: Option<u64>,
    pub(crate) body: Bytes,
}

impl Visit {
    /// Reads the API's answer at a path as a type.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Stop> {
        self.ask(Method::GET, path, None).await?.read()
    }

    /// The same for a page that is for operators: a refusal says so in the reader's language.
    pub(crate) async fn get_as_operator<T: DeserializeOwned>(&self, path: &str) -> Result<T, Stop> {
        let got = self.get(path).await;
        got.map_err(|stop| match stop.status {
            StatusCode::FORBIDDEN => Stop::forbidden(self),
            _ => stop,
        })
    }

    /// Sends a body to the API and returns the answer.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &Value,
    ) -> Result<T, Stop> {
        self.ask(Method::POST, path, Some(body)).await?.read()
    }

    /// The same with whatever status it has.
    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answered, Stop> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(ACCEPT_LANGUAGE, self.words.tag);
        let body = match body {
            Some(body) => {
                request = request.header(CONTENT_TYPE, "application/json");
                Body::from(body.to_string())
            }
            None => Body::empty(),
        };
        let request = request.body(body).map_err(|_| Stop::not_found(self))?;
        let response = self.console.inside.ask(&self.caller, request).await;
        Answered::of(response).await
    }
}

impl Answered {
    async fn of(response: Response) -> Result<Self, Stop> {
        let tokens = response.headers().get("x-countersign-tokens");
        let tokens = tokens.and_then(|value| value.to_str().ok()?.parse().ok());
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX);
        let body = body.collect().await.map_err(|_| Stop::broken())?;
        Ok(Self {
            status,
            tokens,
            body: body.to_bytes(),
        })
    }

    /// The body as a type; a refusal ends the page.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, Stop> {
        if !self.status.is_success() {
            return Err(Stop::of(self.status, &self.body));
        }
        serde_json::from_slice(&self.body).map_err(|_| Stop::broken())
    }
}

/// A part of a path that holds any text.
pub(crate) fn segment(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// The same for an id of our own making: what needs no escape in a path stays readable.
pub(crate) fn plain_segment(id: &str) -> String {
    const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'_').remove(b'-');
    utf8_percent_encode(id, KEPT).to_string()
}

/// A path with the options that have a value.
pub(crate) fn with_query<'o>(
    path: &str,
    options: impl IntoIterator<Item = (&'o str, &'o str)>,
) -> String {
    let given = options.into_iter().filter(|(_, value)| !value.is_empty());
    let mut query = form_urlencoded::Serializer::new(String::new());
    let query = query.extend_pairs(given).finish();
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{path}{mark}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_without_a_value_are_left_out() {
        let of = |options: &[(&'static str, &'static str)]| {
            with_query("/in-doubt", options.iter().copied())
        };
        assert_eq!(of(&[("user", ""), ("age", "")]), "/in-doubt");
        let both = of(&[("user", "a&b"), ("age", ""), ("cursor", "1")]);
        assert_eq!(both, "/in-doubt?user=a%26b&cursor=1");
    }
}
