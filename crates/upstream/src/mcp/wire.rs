//! HTTP requests of an MCP connection: the upstream's own client with its guard, its credential and its bounds, under the
//! protocol of `rmcp`.

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::stream::{BoxStream, Stream, StreamExt as _};
use http::{HeaderName, HeaderValue, StatusCode};
use rmcp::ErrorData;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, GetMeta as _, JsonRpcError,
    ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, SseError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};

use super::trouble::Trouble;
use crate::http::auth::Credentials;
use crate::http::guard::Refused;

/// The client of one connection. Clones share its credential.
#[derive(Clone)]
pub(super) struct Wire {
    client: reqwest::Client,
    credentials: Arc<Mutex<Credentials>>,
    headers: Arc<Vec<(HeaderName, HeaderValue)>>,
    send_context: bool,
    bytes_max: usize,
}

/// Failure of a request without an answer, as far as the transport knows.
#[derive(Debug, thiserror::Error)]
pub(super) enum WireError {
    /// The server cannot be reached, usually because it is down or its name does not resolve: nothing was sent.
    #[error("no connection: {0}")]
    Unreachable(reqwest::Error),
    /// The name resolves to a private address that `allow_private` does not list: nothing was sent.
    /// Usually the server runs on the same machine or in the same network.
    #[error("{0}")]
    Forbidden(reqwest::Error),
    /// The connection was lost, or the answer cannot be read.
    /// Usually the server was restarted, or the network failed.
    #[error("lost: {0}")]
    Lost(reqwest::Error),
    /// The server refuses the credential: nothing was done. Usually the token has expired.
    #[error("status {0}")]
    Refused(u16),
    /// The answer is longer than the bound. Usually a tool has answered with a whole file.
    #[error("the answer has more than {0} bytes")]
    TooLarge(usize),
    /// A header cannot be written: nothing was sent. Usually a secret ends with a line break.
    #[error("a header cannot be written")]
    Unwritable,
}

pub(super) type Failed = StreamableHttpError<WireError>;

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const BOTH: &str = "application/json, text/event-stream";
const SESSION: &str = "mcp-session-id";

impl Wire {
    pub(super) fn new(
        client: reqwest::Client,
        headers: Vec<(HeaderName, HeaderValue)>,
        send_context: bool,
        bytes_max: usize,
    ) -> Self {
        Self {
            client,
            credentials: Arc::default(),
            headers: Arc::new(headers),
            send_context,
            bytes_max,
        }
    }

    /// The credential of every further request.
    pub(super) fn set_credentials(&self, credentials: Credentials) {
        let mut own = self
            .credentials
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *own = credentials;
    }

    /// A request with everything that stands in front of its body.
    fn request(
        &self,
        method: reqwest::Method,
        uri: &str,
        session: Option<&str>,
        protocol: impl IntoIterator<Item = (HeaderName, HeaderValue)>,
    ) -> Result<reqwest::RequestBuilder, Failed> {
        let own = self
            .credentials
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let query = own.query.iter();
        let query: Vec<_> = query
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        // The address of an upstream has no query of its own.
        let joint = if query.is_empty() { "" } else { "?" };
        let uri = format!("{uri}{joint}{}", query.join("&"));
        let mut request = self.client.request(method, uri);
        for (name, value) in self.headers.iter() {
            request = request.header(name, value);
        }
        for (name, value) in protocol {
            request = request.header(name, value);
        }
        for (name, value) in &own.headers {
            let value = HeaderValue::from_str(value);
            let mut value = value.map_err(|_| Failed::Client(WireError::Unwritable))?;
            value.set_sensitive(true);
            request = request.header(name, value);
        }
        if let Some(session) = session {
            request = request.header(SESSION, session);
        }
        Ok(request)
    }

    /// Sends a request that stands alone. The caller reads the answer.
    pub(super) async fn ask(
        &self,
        uri: &str,
        body: Vec<u8>,
        protocol: impl IntoIterator<Item = (HeaderName, HeaderValue)>,
        trace: [(&'static str, Option<String>); 2],
    ) -> Result<Answered, Failed> {
        let mut request = self.request(reqwest::Method::POST, uri, None, protocol)?;
        request = request.header("accept", BOTH).header("content-type", JSON);
        for (name, value) in trace {
            if let Some(value) = value.filter(|_| self.send_context) {
                request = request.header(name, value);
            }
        }
        let response = request.body(body).send().await.map_err(failed)?;
        let status = response.status();
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(Failed::Client(WireError::Refused(status.as_u16())));
        }
        if status.is_success() && is_of(&response, EVENTS) {
            return Ok(Answered::Events(self.events(response)));
        }
        let error = status_error(&response);
        let body = self.body(response).await;
        if status.is_success() {
            return Ok(Answered::Text(body?));
        }
        // An error of the protocol is the answer, whatever the status is.
        let body = body.unwrap_or_default();
        match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
            Ok(ServerJsonRpcMessage::Error(own))
                if status != StatusCode::TOO_MANY_REQUESTS && !is_of_older_era(status, &own) =>
            {
                Ok(Answered::Text(body))
            }
            _ => Err(error.into()),
        }
    }

    async fn post(
        &self,
        uri: &str,
        message: &ClientJsonRpcMessage,
        session: Option<&str>,
        protocol: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let mut request = self.request(reqwest::Method::POST, uri, session, protocol)?;
        request = request.header("accept", BOTH);
        if self.send_context
            && let ClientJsonRpcMessage::Request(own) = message
        {
            let meta = own.request.get_meta();
            for (name, value) in [
                ("traceparent", meta.get_traceparent()),
                ("tracestate", meta.get_tracestate()),
            ] {
                if let Some(value) = value {
                    request = request.header(name, value);
                }
            }
        }
        let response = request.json(message).send().await.map_err(failed)?;
        let status = response.status();
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(Failed::Client(WireError::Refused(status.as_u16())));
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && session.is_some() {
            return Err(Failed::SessionExpired);
        }
        if status == StatusCode::TOO_MANY_REQUESTS {
            return Err(status_error(&response).into());
        }
        let given = response.headers().get(SESSION);
        let given = given.and_then(|id| Some(id.to_str().ok()?.to_owned()));
        if !status.is_success() {
            return self.rejection(message, session, response, given).await;
        }
        if is_of(&response, EVENTS) {
            return Ok(StreamableHttpPostResponse::Sse(
                self.events(response),
                given,
            ));
        }
        let waits = matches!(message, ClientJsonRpcMessage::Request(_));
        let body = self.body(response).await?;
        match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
            Ok(answer) => Ok(StreamableHttpPostResponse::Json(answer, given)),
            Err(_) if !waits => Ok(StreamableHttpPostResponse::Accepted),
            Err(error) => Err(Failed::Deserialize(error)),
        }
    }

    /// Reads a response whose status is not a success: a JSON-RPC error in it is the answer.
    async fn rejection(
        &self,
        message: &ClientJsonRpcMessage,
        session: Option<&str>,
        response: reqwest::Response,
        given: Option<String>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let status = response.status();
        let error = status_error(&response);
        let body = self.body(response).await.unwrap_or_default();
        let answer = match serde_json::from_slice(&body) {
            Ok(ServerJsonRpcMessage::Error(error)) => Some(error),
            _ => None,
        };
        // A server of an older era rejects the question for the newest one in its own way, without the id of the question.
        if let ClientJsonRpcMessage::Request(own) = message
            && matches!(own.request, ClientRequest::DiscoverRequest(_))
            && session.is_none()
            && status.is_client_error()
        {
            let why = format!("server/discover is answered with status {status}");
            let error = answer.map_or_else(|| ErrorData::invalid_request(why, None), |it| it.error);
            let answer = ServerJsonRpcMessage::error(error, Some(own.id.clone()));
            return Ok(StreamableHttpPostResponse::Json(answer, None));
        }
        // Without a session it may be a request of the newest era.
        let answer = answer.filter(|it| session.is_some() || !is_of_older_era(status, it));
        match answer {
            Some(answer) => Ok(StreamableHttpPostResponse::Json(
                ServerJsonRpcMessage::Error(answer),
                given,
            )),
            None => Err(error.into()),
        }
    }

    async fn get(
        &self,
        uri: &str,
        session: Option<&str>,
        last_event: Option<String>,
        protocol: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failed> {
        let mut request = self.request(reqwest::Method::GET, uri, session, protocol)?;
        request = request.header("accept", EVENTS);
        if let Some(last_event) = last_event {
            request = request.header("last-event-id", last_event);
        }
        let response = request.send().await.map_err(failed)?;
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => Err(Failed::ServerDoesNotSupportSse),
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                let why = AuthRequiredError::new(format!("status {status}"));
                Err(Failed::AuthRequired(why))
            }
            status if status.is_success() && is_of(&response, EVENTS) => Ok(self.events(response)),
            status if status.is_success() => Err(Failed::ServerDoesNotSupportSse),
            _ => Err(status_error(&response).into()),
        }
    }

    /// A body that is read to its end, or to the bound.
    async fn body(&self, mut response: reqwest::Response) -> Result<Vec<u8>, Failed> {
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if bytes.len() + chunk.len() > self.bytes_max {
                return Err(Failed::Client(WireError::TooLarge(self.bytes_max)));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    fn events(&self, response: reqwest::Response) -> BoxStream<'static, Result<Sse, SseError>> {
        let bounded = bounded(response.bytes_stream(), self.bytes_max);
        SseStream::from_bytes_stream(bounded).boxed()
    }
}

/// The answer to a request that stands alone.
pub(super) enum Answered {
    /// One message.
    Text(Vec<u8>),
    /// Messages, of which one is the answer.
    Events(BoxStream<'static, Result<Sse, SseError>>),
}

impl Answered {
    /// Reads messages until one of them is the answer.
    pub(super) async fn read<T>(
        self,
        mut answer: impl FnMut(&[u8]) -> Option<Result<T, Trouble>>,
    ) -> Result<T, Trouble> {
        let none = || Trouble::NotAnAnswer("no answer to what was asked".to_owned());
        let mut events = match self {
            Self::Text(text) => return answer(&text).unwrap_or_else(|| Err(none())),
            Self::Events(events) => events,
        };
        while let Some(event) = events.next().await {
            let event = event.map_err(|error| of_events(&error))?;
            let text = event.data.unwrap_or_default();
            // An event without data keeps the stream open.
            let given = (!text.is_empty())
                .then(|| answer(text.as_bytes()))
                .flatten();
            if let Some(given) = given {
                return given;
            }
        }
        Err(Trouble::Lost(
            "the stream ended before its answer".to_owned(),
        ))
    }
}

/// The failure of a stream of events.
fn of_events(error: &SseError) -> Trouble {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(at) = cause {
        if let Some(WireError::TooLarge(most)) = at.downcast_ref() {
            return Trouble::TooLarge(*most);
        }
        cause = at.source();
    }
    Trouble::Lost(error.to_string())
}

/// A stream of events, none of which is longer than the bound.
fn bounded(
    bytes: impl Stream<Item = reqwest::Result<Bytes>> + Send + 'static,
    most: usize,
) -> impl Stream<Item = Result<Bytes, WireError>> + Send + 'static {
    let mut size = 0_usize;
    let mut is_line_empty = true;
    bytes.map(move |chunk| {
        let chunk = chunk.map_err(WireError::Lost)?;
        for byte in &chunk {
            match byte {
                b'\r' => {}
                // An empty line ends an event.
                b'\n' if is_line_empty => size = 0,
                b'\n' => is_line_empty = true,
                _ => is_line_empty = false,
            }
            size += 1;
            if size > most {
                return Err(WireError::TooLarge(most));
            }
        }
        Ok(chunk)
    })
}

fn is_of(response: &reqwest::Response, kind: &str) -> bool {
    let own = response.headers().get("content-type");
    own.is_some_and(|own| own.as_bytes().starts_with(kind.as_bytes()))
}

fn status_error(response: &reqwest::Response) -> HttpStatusError {
    let wait = response.headers().get("retry-after");
    let wait = wait.and_then(|it| Some(it.to_str().ok()?.to_owned()));
    HttpStatusError::new(response.status().as_u16(), wait)
}

/// True if servers of the older eras refuse a request of the newest one so: with a status, and a code that says nothing more.
fn is_of_older_era(status: StatusCode, error: &JsonRpcError) -> bool {
    status == StatusCode::BAD_REQUEST && error.error.code == NO_SESSION
}

/// The code of the SDKs for a request without a session, or with a version that they do not know.
const NO_SESSION: ErrorCode = ErrorCode(-32_000);

/// Maps an error of the client to a failure.
fn failed(error: reqwest::Error) -> Failed {
    let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(at) = cause {
        if at.is::<Refused>() {
            return Failed::Client(WireError::Forbidden(error.without_url()));
        }
        cause = at.source();
    }
    Failed::Client(if error.is_builder() {
        WireError::Unwritable
    } else if error.is_connect() {
        WireError::Unreachable(error.without_url())
    } else {
        WireError::Lost(error.without_url())
    })
}

impl StreamableHttpClient for Wire {
    type Error = WireError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        self.post(&uri, &message, session_id.as_deref(), custom_headers)
            .await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failed> {
        let request = self.request(
            reqwest::Method::DELETE,
            &uri,
            Some(&session_id),
            custom_headers,
        )?;
        request.send().await.map_err(failed)?;
        Ok(())
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failed> {
        self.get(&uri, session_id.as_deref(), last_event_id, custom_headers)
            .await
    }
}
