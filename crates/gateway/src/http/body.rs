//! A request's body while it arrives: limited in length and in time.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use countersign::contract::{ErrorBody, ErrorCode};
use http::StatusCode;
use http_body_util::BodyExt as _;
use hyper::body::{Frame, SizeHint};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, Sleep, sleep_until};

use super::answer::Refusal;
use super::headers;
use crate::gateway::Gateway;
use crate::settings::Settings;
use crate::strict;
use crate::words::Say;

/// A body that ends with an error if it is too long or too slow.
pub(super) struct Bounded {
    inner: Body,
    bytes_left: usize,
    /// Bytes in memory of this body; `held_by_all` counts those of all bodies that still arrive.
    held: usize,
    held_by_all: Arc<AtomicUsize>,
    held_max: usize,
    pace: Pace,
    /// Timer with its start, created at the first wait; most bodies arrive together with their head.
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

/// Minimum speed of a body.
#[derive(Debug, Clone, Copy)]
struct Pace {
    /// Time limit for the whole body.
    within: Duration,
    /// Time for which it may be slower than the minimum speed.
    grace: Duration,
    bytes_per_second_min: usize,
}

impl Pace {
    /// Returns the time limit for a body of which this many bytes have arrived, counted from the first wait.
    fn until(self, bytes: usize) -> (Duration, Unread) {
        let earned = bytes as u64 * 1_000 / (self.bytes_per_second_min.max(1) as u64);
        let slow = self.grace.saturating_add(Duration::from_millis(earned));
        if slow < self.within {
            (slow, Unread::TooSlow)
        } else {
            (self.within, Unread::TooLate)
        }
    }
}

/// Retry interval for a caller whose body found no room, in milliseconds.
const NO_ROOM_RETRY_MS: u64 = 1_000;

/// Reason why a body was not read to its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unread {
    #[error("the body is too long")]
    TooLong,
    #[error("the body took too long")]
    TooLate,
    #[error("the body arrives too slowly")]
    TooSlow,
    #[error("too many bytes are being received at once")]
    NoRoom,
    #[error("the body ended early")]
    Broken(#[source] axum::Error),
}

impl Bounded {
    /// Wraps a body in the limits; a body that has already arrived needs none.
    pub(super) fn wrap(body: Body, gateway: &Gateway, bytes_max: usize) -> Body {
        let settings = gateway.settings();
        if body.is_end_stream() {
            return body;
        }
        Body::new(Self {
            inner: body,
            bytes_left: bytes_max,
            held: 0,
            held_by_all: gateway.arriving_bytes().clone(),
            held_max: settings.arriving_bytes_max,
            pace: Pace {
                within: settings.read_timeout,
                grace: settings.body_grace,
                bytes_per_second_min: settings.body_bytes_per_second_min,
            },
            waiting: None,
        })
    }
}

impl Bounded {
    /// Ready if the rest of the body has taken too long.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<Unread> {
        let (until, late) = self.pace.until(self.held);
        let start = || {
            let now = Instant::now();
            (now, Box::pin(sleep_until(now + until)))
        };
        let (since, timer) = self.waiting.get_or_insert_with(start);
        // Bytes that have arrived since the last wait extend the time limit.
        if timer.deadline() != *since + until {
            timer.as_mut().reset(*since + until);
        }
        timer.as_mut().poll(cx).map(|()| late)
    }
}

impl HttpBody for Bounded {
    type Data = Bytes;
    type Error = Unread;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Unread>>> {
        let this = self.get_mut();
        // A body whose announced length is too long is not read at all.
        if this.inner.size_hint().lower() > this.bytes_left as u64 {
            return Poll::Ready(Some(Err(Unread::TooLong)));
        }
        let frame = match Pin::new(&mut this.inner).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => frame,
            Poll::Ready(Some(Err(error))) => {
                return Poll::Ready(Some(Err(Unread::Broken(error))));
            }
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => return this.wait(cx).map(|late| Some(Err(late))),
        };
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        match this.bytes_left.checked_sub(bytes) {
            Some(left) => this.bytes_left = left,
            None => return Poll::Ready(Some(Err(Unread::TooLong))),
        }
        this.held += bytes;
        let held_by_all = this.held_by_all.fetch_add(bytes, Ordering::Relaxed);
        if held_by_all.saturating_add(bytes) > this.held_max {
            return Poll::Ready(Some(Err(Unread::NoRoom)));
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for Bounded {
    fn drop(&mut self) {
        self.held_by_all.fetch_sub(self.held, Ordering::Relaxed);
    }
}

/// Reads the whole body.
pub(crate) async fn read(body: Body, settings: &Settings) -> Result<Bytes, Refusal> {
    match body.collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) => Err(refusal(&error, settings)),
    }
}

/// Reads the whole body as a JSON object; an empty body counts as an empty object. A body of another form is not quoted in
/// the refusal, because it may be personal.
pub(super) async fn json<T: DeserializeOwned>(
    body: Body,
    settings: &Settings,
    malformed: fn() -> Refusal,
) -> Result<T, Refusal> {
    let body = read(body, settings).await?;
    let text = match headers::utf8(&body)? {
        "" => "{}",
        text => text,
    };
    strict::from_str(text).map_err(|_| malformed())
}

fn refusal(error: &axum::Error, settings: &Settings) -> Refusal {
    // Every layer in between has wrapped the error once.
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(outer) = cause.filter(|cause| !cause.is::<Unread>()) {
        cause = outer.source();
    }
    match cause.and_then(|cause| cause.downcast_ref::<Unread>()) {
        Some(Unread::TooLong) => {
            let max = settings.body_bytes_max;
            let message = Say::BodyTooLong {
                max: max.to_string(),
            };
            Refusal::new(ErrorCode::InvalidArgument, message)
                .status(StatusCode::PAYLOAD_TOO_LARGE)
                .hint(Say::SendLessAtOnce)
        }
        Some(Unread::TooSlow) => {
            let (least, grace) = (settings.body_bytes_per_second_min, settings.body_grace);
            let seconds = grace.as_secs();
            let message = Say::BodyTooSlow {
                least: least.to_string(),
                seconds: seconds.to_string(),
            };
            Refusal::new(ErrorCode::Timeout, message)
                .status(StatusCode::REQUEST_TIMEOUT)
                .hint(Say::SendFaster)
        }
        Some(Unread::TooLate) => {
            let seconds = settings.read_timeout.as_secs();
            let message = Say::BodyTooLate {
                seconds: seconds.to_string(),
            };
            Refusal::new(ErrorCode::Timeout, message)
                .status(StatusCode::REQUEST_TIMEOUT)
                .hint(Say::NothingWasRun)
        }
        Some(Unread::NoRoom) => {
            let message = Say::NoRoomForBodies;
            let body =
                ErrorBody::new(ErrorCode::RateLimited, message).retry_after_ms(NO_ROOM_RETRY_MS);
            Refusal::from(body.hint(Say::WaitThenSameRequest))
        }
        Some(Unread::Broken(_)) | None => {
            Refusal::new(ErrorCode::InvalidArgument, Say::BodyEndedEarly).hint(Say::NothingWasRun)
        }
    }
}
