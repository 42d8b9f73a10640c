//! A future that runs to its end even if its waiter goes away.
//!
//! The waiter polls it, so that the usual case costs no task and no change of threads; it becomes a task of its
//! own only if the waiter goes away.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::FutureExt as _;
use futures_util::future::CatchUnwind;
use tokio::runtime::Handle;

/// The future has panicked. Its message is not passed on.
#[derive(Debug)]
pub(crate) struct Panicked;

/// A future that is run to its end.
pub(crate) struct Detach<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    running: Option<Pin<Box<CatchUnwind<AssertUnwindSafe<F>>>>>,
}

impl<F> Detach<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    /// Wraps a future, which does not begin before it is polled.
    pub(crate) fn new(future: F) -> Self {
        Self {
            running: Some(Box::pin(AssertUnwindSafe(future).catch_unwind())),
        }
    }
}

impl<F> Future for Detach<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    type Output = Result<F::Output, Panicked>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(running) = &mut self.running else {
            // Polling after the end gives nothing more.
            return Poll::Pending;
        };
        let Poll::Ready(ended) = running.as_mut().poll(cx) else {
            return Poll::Pending;
        };
        self.running = None;
        Poll::Ready(ended.map_err(|_: Box<dyn Any + Send>| Panicked))
    }
}

impl<F> Drop for Detach<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    fn drop(&mut self) {
        if let Some(running) = self.running.take()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(running);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use countersign_testkit::patience::within;
    use tokio::sync::{Notify, oneshot};

    use super::*;

    #[tokio::test]
    async fn whoever_waits_gets_the_result() {
        let sum = Detach::new(async {
            tokio::task::yield_now().await;
            1 + 1
        });
        assert_eq!(sum.await.unwrap(), 2);
    }

    #[tokio::test]
    async fn it_goes_on_when_nobody_waits() {
        let (open, (done, is_done)) = (Arc::new(Notify::new()), oneshot::channel());
        let gate = open.clone();
        let mut running = Box::pin(Detach::new(async move {
            gate.notified().await;
            done.send(()).unwrap();
        }));
        assert!(futures_util::poll!(running.as_mut()).is_pending());
        drop(running);
        open.notify_one();
        within(is_done).await.unwrap();
    }

    #[tokio::test]
    async fn a_panic_is_told_to_whoever_waits() {
        let running = Detach::new(async { panic!("a secret") });
        let panicked: Result<(), Panicked> = running.await;
        assert!(panicked.is_err());
    }
}
