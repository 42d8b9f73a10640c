//! Cancellation: a caller cancels, the executor and the tool are notified.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use tokio::sync::Notify;

/// A switch that is thrown once; clones share it. The default one can never be thrown and costs
/// nothing.
///
/// # Example
///
/// ```
/// use countersign::cancel::Cancellation;
///
/// let cancellation = Cancellation::new();
/// let heard = cancellation.clone();
/// cancellation.cancel();
/// assert!(heard.is_cancelled());
/// assert!(!Cancellation::never().is_cancelled());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Cancellation {
    switch: Option<Arc<Switch>>,
}

#[derive(Debug, Default)]
struct Switch {
    thrown: AtomicBool,
    waiting: Notify,
}

impl Cancellation {
    /// A switch that has not been thrown.
    pub fn new() -> Self {
        Self {
            switch: Some(Arc::default()),
        }
    }

    /// No switch at all.
    pub const fn never() -> Self {
        Self { switch: None }
    }

    /// Throws the switch; the second time changes nothing.
    pub fn cancel(&self) {
        if let Some(switch) = &self.switch {
            switch.thrown.store(true, Ordering::Release);
            switch.waiting.notify_waiters();
        }
    }

    /// Result of some work; `None` if the switch is thrown first, and then the work is dropped.
    pub async fn unless_cancelled<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        let mut thrown = pin!(self.cancelled());
        poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending => thrown.as_mut().poll(cx).map(|()| None),
        })
        .await
    }

    /// True if it has been thrown.
    pub fn is_cancelled(&self) -> bool {
        self.switch
            .as_ref()
            .is_some_and(|switch| switch.thrown.load(Ordering::Acquire))
    }

    /// Returns once it has been thrown.
    pub async fn cancelled(&self) {
        let Some(switch) = &self.switch else {
            return std::future::pending().await;
        };
        let mut woken = std::pin::pin!(switch.waiting.notified());
        // Listening starts before the look, so a throw in between is not missed.
        woken.as_mut().enable();
        if !self.is_cancelled() {
            woken.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use countersign_testkit::patience::within;

    use super::*;

    #[tokio::test]
    async fn it_is_heard_before_and_after_it_was_thrown() {
        let cancellation = Cancellation::new();
        let (waiting, thrower) = (cancellation.clone(), cancellation.clone());
        let thrown = async { tokio::join!(waiting.cancelled(), async move { thrower.cancel() }) };
        within(thrown).await;
        within(cancellation.cancelled()).await;
    }
}
