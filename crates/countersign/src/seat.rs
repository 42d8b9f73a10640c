//! The seat of a running call: given up while the call waits for others.
//!
//! A server bounds the number of running calls. A call that waits for the same key, for a person or for its turn runs
//! nothing, so it must not keep others from running.

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use crate::BoxFuture;

/// A seat of the embedding server. A call without one simply waits.
pub trait Seat: fmt::Debug + Send + Sync + 'static {
    /// Gives the seat up; false if no more calls may wait, and then the seat is kept.
    fn leave(&self) -> bool;

    /// Gives the seat up even if no more calls may wait: for a call that has run and cannot be refused any more.
    fn leave_anyway(&self);

    /// Returns when the call has a seat again.
    fn take(&self) -> BoxFuture<'_, ()>;
}

/// The seat of one call.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallSeat(pub(crate) Option<Arc<dyn Seat>>);

impl CallSeat {
    /// Waits without a seat; `None` if no more calls may wait. A result that is ready at once needs no waiting.
    pub(crate) async fn unless_crowded<T>(&self, wait: impl Future<Output = T>) -> Option<T> {
        self.without(wait, <dyn Seat>::leave).await
    }

    /// Waits without a seat, however many calls wait.
    pub(crate) async fn left_for<T>(&self, wait: impl Future<Output = T>) -> Option<T> {
        let leave = |seat: &dyn Seat| {
            seat.leave_anyway();
            true
        };
        self.without(wait, leave).await
    }

    async fn without<T>(
        &self,
        wait: impl Future<Output = T>,
        leave: impl FnOnce(&dyn Seat) -> bool,
    ) -> Option<T> {
        let mut wait = pin!(wait);
        let Some(seat) = &self.0 else {
            return Some(wait.await);
        };
        let at_once = poll_fn(|cx| Poll::Ready(wait.as_mut().poll(cx))).await;
        if let Poll::Ready(done) = at_once {
            return Some(done);
        }
        if !leave(&**seat) {
            return None;
        }
        let done = wait.await;
        seat.take().await;
        Some(done)
    }
}
