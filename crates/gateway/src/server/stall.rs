//! A write timeout for connections: a client that does not read is cut off. Otherwise answers that are never
//! read would hold their slot for ever.

use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::roster::Presence;

/// A stream on which a write may not wait longer than this.
pub(super) struct Stall<S> {
    inner: S,
    patience: Duration,
    /// Timer while a write waits; most writes never do.
    waiting: Option<Pin<Box<Sleep>>>,
    /// Roster entry that records whether a write waits.
    presence: Option<Arc<Presence>>,
}

impl<S> Stall<S> {
    pub(super) fn new(inner: S, patience: Duration) -> Self {
        Self {
            inner,
            patience,
            waiting: None,
            presence: None,
        }
    }

    /// Sets the roster entry that records whether a write waits.
    pub(super) fn told_to(mut self, presence: Arc<Presence>) -> Self {
        self.presence = Some(presence);
        self
    }

    fn tell(&self, is_sending: bool) {
        if let Some(presence) = &self.presence {
            presence.is_sending.store(is_sending, Ordering::Relaxed);
        }
    }

    /// Returns the result of a write; one that waits too long is an error.
    fn waited<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            if self.waiting.take().is_some() {
                self.tell(false);
            }
            return written;
        }
        self.tell(true);
        let patience = self.patience;
        let waiting = self
            .waiting
            .get_or_insert_with(|| Box::pin(sleep(patience)));
        match waiting.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stall<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stall<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.waited(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, parts);
        self.waited(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(cx);
        self.waited(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.inner).poll_shutdown(cx);
        self.waited(cx, shut)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    /// The test's clock is paused and moves only when nothing else can happen, so no real time passes.
    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_nothing_is_cut_off() {
        let (ours, theirs) = tokio::io::duplex(16);
        let mut stall = Stall::new(ours, Duration::from_secs(10));
        let error = stall.write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        drop(theirs);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_its_time_is_not() {
        let (ours, mut theirs) = tokio::io::duplex(16);
        let reader = tokio::spawn(async move {
            let mut read = 0;
            let mut buffer = [0; 16];
            while read < 64 {
                sleep(Duration::from_secs(9)).await;
                read += tokio::io::AsyncReadExt::read(&mut theirs, &mut buffer)
                    .await
                    .unwrap();
            }
        });
        let mut stall = Stall::new(ours, Duration::from_secs(10));
        stall.write_all(&[0; 64]).await.unwrap();
        reader.await.unwrap();
    }
}
