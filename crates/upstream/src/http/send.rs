//! A request on its way: one attempt after the other, within the deadline, the breaker and the retry budget.

use std::error::Error;
use std::io;
use std::time::Duration;

use countersign::{CallContext, ToolError};
use reqwest::header::{COOKIE, HeaderMap, HeaderName, HeaderValue};
use tokio::time::timeout;
use url::Url;

use super::auth::Credentials;
use super::backoff;
use super::breaker::Pass;
use super::fault::{self, Failure, Faults};
use super::guard::Refused;
use super::identity::{self, Purpose};
use super::plan::Prepared;
use super::service::Service;
use crate::manifest::{Method, Secret};
use crate::scrub;

/// Answer of an upstream, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: AnswerBody,
    /// An earlier attempt of the same request that may have had its effect: an answer that refuses this attempt does not speak for
    /// that one.
    pub(crate) doubt: Option<Failure>,
    /// Secrets that were sent with the request, and those of the upstream's configuration. The body has none of them; quotations from
    /// headers must not repeat them either.
    pub(crate) sent: Vec<Secret>,
}

/// The body of an answer.
#[derive(Debug)]
pub(crate) enum AnswerBody {
    /// All of it.
    Whole(Vec<u8>),
    /// The body is longer than the upstream's bound, and was not read further.
    TooLarge,
    /// The body arrived and cannot be decompressed.
    Garbled,
}

impl AnswerBody {
    /// The bytes that were read and kept.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Whole(bytes) => bytes,
            Self::TooLarge | Self::Garbled => &[],
        }
    }

    /// Their number.
    pub(crate) fn len(&self) -> u64 {
        self.bytes().len() as u64
    }
}

/// A request, with its call and its purpose.
#[derive(Clone, Copy)]
pub(crate) struct Sending<'s> {
    pub(crate) ctx: &'s CallContext,
    pub(crate) tool: &'s str,
    pub(crate) purpose: Purpose,
    pub(crate) request: &'s Prepared,
    /// True if the upstream may get the request more than once.
    pub(crate) is_repeatable: bool,
    /// True if the call changes something, so that it carries its key.
    pub(crate) is_write: bool,
    /// Meaning of answers that are errors.
    pub(crate) faults: &'s Faults,
}

/// Most redirects of one request.
const HOPS_MAX: usize = 5;

impl Service {
    /// Sends a request until there is an answer, or no further attempt is allowed.
    pub(crate) async fn send(&self, sending: Sending<'_>) -> Result<Answer, ToolError> {
        let mut doubt = None;
        match self.send_within(sending, &mut doubt).await {
            Ok(answer) => Ok(Answer { doubt, ..answer }),
            // What a later attempt met does not undo what an earlier one may have done.
            Err(error) => Err(match doubt {
                Some(earlier) if sending.is_write => fault::told(&earlier, self.name()),
                Some(_) | None => error,
            }),
        }
    }

    /// Attempts, one after the other. `doubt` becomes the first that may have had its effect.
    async fn send_within(
        &self,
        sending: Sending<'_>,
        doubt: &mut Option<Failure>,
    ) -> Result<Answer, ToolError> {
        let ctx = sending.ctx;
        let late = || fault::told(&Failure::Waited, self.name());
        let slot = timeout(ctx.remaining().min(TIMER_MAX), self.slots.acquire()).await;
        let _slot = slot.map_err(|_| late())?;
        self.budget.earn();
        let mut attempt = 1;
        let mut renewed = false;
        loop {
            let pass = self.breaker.pass(self.now());
            let pass = pass.map_err(|wait| fault::told(&Failure::Open(wait), self.name()))?;
            let settle = Settle {
                service: self,
                pass,
                is_settled: false,
            };
            // Nothing has been sent to the upstream yet: what fails here leaves no doubt, and is not the upstream's fault.
            let credentials = self.credentials(ctx).await?;
            let answer = self.attempt(sending, &credentials, settle).await;
            // A token that was taken back: a new one is tried once, and nothing was done with the old one.
            if let Ok(answer) = &answer
                && answer.status == 401
                && !renewed
                && self.auth.forget(ctx, &credentials)
            {
                renewed = true;
                continue;
            }
            let (asked, may_repeat) = match &answer {
                Ok(answer) => match busy_for(answer) {
                    Some(asked) => (asked, sending.is_repeatable),
                    None => (Duration::ZERO, false),
                },
                Err(failure) => {
                    let may_repeat = failure.was_not_sent() || sending.is_repeatable;
                    (Duration::ZERO, may_repeat && failure.is_transport())
                }
            };
            let wait = (may_repeat && attempt < self.attempts_max())
                .then(|| self.backoff(ctx, attempt, asked))
                .flatten();
            let Some(wait) = wait else {
                return answer.map_err(|failure| fault::told(&failure, self.name()));
            };
            match answer {
                Err(failure) if !failure.was_not_sent() => {
                    doubt.get_or_insert(failure);
                }
                // Whoever answered may not know what became of the request.
                Ok(answer) if sending.faults.leaves_doubt(self.name(), &answer) => {
                    doubt.get_or_insert(Failure::Unclear(answer.status));
                }
                Ok(_) | Err(_) => {}
            }
            tokio::time::sleep(wait).await;
            attempt += 1;
        }
    }

    fn attempts_max(&self) -> u32 {
        self.entry.retries.attempts_max
    }

    /// The wait before the next attempt; `None` if there is no time or no budget for one.
    fn backoff(&self, ctx: &CallContext, attempt: u32, asked: Duration) -> Option<Duration> {
        let retries = &self.entry.retries;
        let wait = backoff::wait(retries, attempt, &ctx.new_id("")).max(asked);
        let most = Duration::from_millis(retries.backoff_max_ms.saturating_mul(2));
        (wait <= most && wait < ctx.remaining() && self.budget.take()).then_some(wait)
    }

    /// The credential for one attempt, within the time of one.
    async fn credentials(&self, ctx: &CallContext) -> Result<Credentials, ToolError> {
        let limit = Duration::from_millis(self.entry.timeouts.attempt_ms).min(ctx.remaining());
        let credentials = timeout(limit.min(TIMER_MAX), self.auth.credentials(self, ctx)).await;
        credentials.unwrap_or_else(|_| Err(fault::no_token(self.name())))
    }

    /// Makes one attempt, and reports its outcome to the breaker.
    async fn attempt(
        &self,
        sending: Sending<'_>,
        credentials: &Credentials,
        settle: Settle<'_>,
    ) -> Result<Answer, Failure> {
        let left = sending.ctx.remaining();
        let own = Duration::from_millis(self.entry.timeouts.attempt_ms);
        let limit = own.min(left).min(TIMER_MAX);
        let Ok(answer) = timeout(limit, self.exchange(sending, credentials)).await else {
            // A caller in a hurry says nothing about the upstream.
            if own <= left {
                settle.settle(&Err(Failure::Late));
            }
            return Err(Failure::Late);
        };
        settle.settle(&answer);
        answer
    }

    /// The request and its answer; redirects of reads are followed within the declared hosts.
    async fn exchange(
        &self,
        sending: Sending<'_>,
        credentials: &Credentials,
    ) -> Result<Answer, Failure> {
        let mut url = self.url(sending.request, credentials)?;
        let mut is_home = true;
        let mut sent = credentials.secrets.clone();
        sent.extend(self.secrets().cloned());
        for _ in 0..=HOPS_MAX {
            let own = is_home.then_some(credentials);
            let headers = self.headers(sending, &url, own)?;
            let statement = headers.get("countersign-identity");
            let statement = statement.and_then(|it| it.to_str().ok().map(str::to_owned));
            sent.extend(statement.map(Secret::new));
            let response = self.once(sending, &url, headers).await?;
            let status = response.status().as_u16();
            let target = response
                .headers()
                .get("location")
                .and_then(|it| it.to_str().ok());
            let is_redirect = matches!(status, 301 | 302 | 303 | 307 | 308);
            let Some(target) = target.filter(|_| is_redirect && sending.request.method.is_safe())
            else {
                let mut answer = self.read(response).await?;
                if let AnswerBody::Whole(bytes) = answer.body {
                    answer.body = AnswerBody::Whole(scrub::body(bytes, &sent));
                }
                answer.sent = sent;
                return Ok(answer);
            };
            let next = url.join(target).ok();
            let next = next.filter(|next| self.knows(next) && is_as_safe(next, &url));
            let next = next.ok_or(Failure::Redirected)?;
            self.guard.check(&next).map_err(|_| Failure::Redirected)?;
            is_home = next.origin() == self.base.origin();
            url = next;
        }
        Err(Failure::Redirected)
    }

    fn url(&self, request: &Prepared, credentials: &Credentials) -> Result<Url, Failure> {
        let mut url = self.base.clone();
        let path = format!("{}{}", self.base.path().trim_end_matches('/'), request.path);
        url.set_path(&path);
        let own = credentials.query.iter();
        let is_own = |name: &String| credentials.query.iter().any(|(own, _)| own == name);
        // The address of a next page may repeat the credential that was sent.
        let asked = request.query.iter().filter(|(name, _)| !is_own(name));
        let pairs = asked.chain(own);
        let query: Vec<_> = pairs
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        if !query.is_empty() {
            url.set_query(Some(&query.join("&")));
        }
        // Whatever the arguments were: the request goes to the upstream, and below its address.
        let base = self.base.path().trim_end_matches('/');
        let below = url.path().strip_prefix(base);
        let is_below = below.is_some_and(|it| it.starts_with('/'));
        if is_below && url.origin() == self.base.origin() {
            Ok(url)
        } else {
            Err(Failure::Redirected)
        }
    }

    async fn once(
        &self,
        sending: Sending<'_>,
        url: &Url,
        headers: HeaderMap,
    ) -> Result<reqwest::Response, Failure> {
        let method = method_of(sending.request.method);
        let mut request = reqwest::Request::new(method, url.clone());
        *request.headers_mut() = headers;
        if let Some(body) = &sending.request.body {
            *request.body_mut() = Some(body.bytes.clone().into());
        }
        let sent = self.client.execute(request).await;
        sent.map_err(failure_of)
    }

    fn headers(
        &self,
        sending: Sending<'_>,
        url: &Url,
        credentials: Option<&Credentials>,
    ) -> Result<HeaderMap, Failure> {
        let ctx = sending.ctx;
        let mut headers = HeaderMap::new();
        let mut set = |name: &str, value: &str, is_secret: bool| {
            let name = HeaderName::from_bytes(name.as_bytes());
            let value = HeaderValue::from_bytes(value.as_bytes());
            let (Ok(name), Ok(mut value)) = (name, value) else {
                return Err(Failure::Unwritable);
            };
            // There is one header of cookies; those of the arguments and the credential stand in it side by side.
            if let Some(before) = headers.get(&name).filter(|_| name == COOKIE) {
                let joined = [before.as_bytes(), b"; ", value.as_bytes()].concat();
                value = HeaderValue::from_bytes(&joined).map_err(|_| Failure::Unwritable)?;
            }
            value.set_sensitive(is_secret);
            headers.insert(name, value);
            Ok(())
        };
        for (name, value) in &self.entry.headers {
            set(name, value, false)?;
        }
        for (name, value) in &sending.request.headers {
            set(name, value, false)?;
        }
        if self.entry.send_context {
            for (name, value) in ctx.trace_headers() {
                set(name, &value, false)?;
            }
            set("x-request-id", ctx.request_id().as_str(), false)?;
            set("countersign-deadline", &ctx.deadline().to_string(), false)?;
        }
        if ctx.is_dry_run() {
            set("countersign-dry-run", "true", false)?;
        }
        if let Some(key) = ctx.downstream_key().filter(|_| sending.is_write) {
            set(&self.entry.idempotency_header, key, false)?;
        }
        let body = sending.request.body.as_ref();
        if let Some(body) = body {
            set("content-type", &body.content_type, false)?;
        }
        if let Some(credentials) = credentials {
            if let Some(secret) = &self.identity {
                let target = match url.query() {
                    Some(query) => format!("{}?{query}", url.path()),
                    None => url.path().to_owned(),
                };
                let method = method_of(sending.request.method);
                let of = identity::Request {
                    method: method.as_str(),
                    target: &target,
                    body: body.map_or(&[][..], |body| &body.bytes),
                };
                let Sending { tool, purpose, .. } = sending;
                let token = identity::sign(ctx, secret, self.name(), tool, purpose, of);
                let token = token.map_err(|_| Failure::Unwritable)?;
                set("countersign-identity", &token, true)?;
            }
            for (name, value) in &credentials.headers {
                set(name, value, true)?;
            }
        }
        Ok(headers)
    }

    /// Reads an answer to its end, or to the bound.
    async fn read(&self, mut response: reqwest::Response) -> Result<Answer, Failure> {
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let most = usize::try_from(self.entry.response_bytes_max).unwrap_or(usize::MAX);
        let mut bytes = Vec::new();
        let body = loop {
            match response.chunk().await {
                Ok(Some(chunk)) if bytes.len() + chunk.len() > most => break AnswerBody::TooLarge,
                Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
                Ok(None) => break AnswerBody::Whole(bytes),
                // The upstream has answered: that is no failure of the connection, and the next attempt would be answered alike.
                Err(error) if is_garbled(&error) => break AnswerBody::Garbled,
                Err(error) => return Err(failure_of(error)),
            }
        };
        Ok(Answer {
            status,
            headers,
            body,
            doubt: None,
            sent: Vec::new(),
        })
    }
}

fn method_of(method: Method) -> reqwest::Method {
    match method {
        Method::Get => reqwest::Method::GET,
        Method::Head => reqwest::Method::HEAD,
        Method::Post => reqwest::Method::POST,
        Method::Put => reqwest::Method::PUT,
        Method::Patch => reqwest::Method::PATCH,
        Method::Delete => reqwest::Method::DELETE,
        Method::Options => reqwest::Method::OPTIONS,
        Method::Trace => reqwest::Method::TRACE,
    }
}

/// Tells the breaker what came of an attempt, also where it is dropped.
struct Settle<'s> {
    service: &'s Service,
    pass: Pass,
    is_settled: bool,
}

impl Settle<'_> {
    fn settle(mut self, answer: &Result<Answer, Failure>) {
        self.is_settled = true;
        let breaker = &self.service.breaker;
        match answer {
            Ok(_) => breaker.answered(),
            Err(failure) if failure.is_transport() => {
                breaker.failed(self.service.now());
            }
            Err(_) => breaker.given_up(self.pass),
        }
    }
}

impl Drop for Settle<'_> {
    fn drop(&mut self) {
        if !self.is_settled {
            self.service.breaker.given_up(self.pass);
        }
    }
}

/// The longest that a timer counts.
const TIMER_MAX: Duration = Duration::from_hours(24);

/// A redirect must not give up encryption.
fn is_as_safe(next: &Url, url: &Url) -> bool {
    matches!(next.scheme(), "http" | "https")
        && (next.scheme() == "https" || url.scheme() == "http")
}

/// Delay that an upstream asks for before the next request; `None` if it asks for none.
fn busy_for(answer: &Answer) -> Option<Duration> {
    match answer.status {
        429 | 503 => Some(fault::retry_after(&answer.headers).unwrap_or_default()),
        502 | 504 => Some(Duration::ZERO),
        _ => None,
    }
}

/// True if a body arrived and cannot be decompressed. Every error of a body is one of decoding for the client; that of a codec comes
/// from no connection, but is an error of input by itself.
fn is_garbled(error: &reqwest::Error) -> bool {
    let cause = error.source();
    match cause.and_then(|it| it.downcast_ref()) {
        Some(inner) => is_garbled(inner),
        None => error.is_decode() && cause.is_some_and(<dyn Error>::is::<io::Error>),
    }
}

/// Maps an error of the client to a failure.
fn failure_of(error: reqwest::Error) -> Failure {
    let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(at) = cause {
        if at.is::<Refused>() {
            return Failure::Forbidden(error.without_url());
        }
        cause = at.source();
    }
    if error.is_connect() {
        Failure::Unreachable(error.without_url())
    } else if error.is_builder() {
        Failure::Unwritable
    } else if error.is_timeout() {
        Failure::Late
    } else {
        Failure::Lost(error.without_url())
    }
}
