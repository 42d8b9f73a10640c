//! The loop around a sequencer.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use super::{Error, Sequencer, Tick};
use crate::ledger::Disposal;

/// Delay before the next round while there is work.
const BUSY: Duration = Duration::from_millis(100);

/// Maximum delay before the next round while there is no work.
const IDLE: Duration = Duration::from_secs(1);

/// Interval of sweeps, and of looks at the clock.
const MAINTAIN_EVERY: Duration = Duration::from_secs(10);

/// Interval of removals; each leaves a record.
const DISPOSE_EVERY: Duration = Duration::from_mins(10);

impl Sequencer {
    /// Works until `stop` is done, and then once more, so that everything that was committed is signed. A failed round
    /// is repeated, also if the store does not continue what was signed: an operator may repair it. Meanwhile
    /// `NewestCheckpoint` reports for how long nothing could be signed.
    pub async fn run(mut self, stop: impl Future<Output = ()>) -> Result<(), Error> {
        let mut stop = std::pin::pin!(stop);
        let mut wait = Duration::ZERO;
        let mut maintained = self.parts.clock.monotonic();
        let mut disposed = None;
        self.parts.newest.works(maintained);
        let mut is_failing = false;
        let prompt = self.parts.prompt.clone();
        let mut answered = 0;
        loop {
            let mut asked = std::pin::pin!(prompt.asked(answered));
            let is_stopped = poll_fn(|cx| match stop.as_mut().poll(cx) {
                Poll::Ready(()) => Poll::Ready(true),
                Poll::Pending => asked.as_mut().poll(cx).map(|()| false),
            });
            if let Ok(true) = tokio::time::timeout(wait, is_stopped).await {
                break;
            }
            answered = prompt.begin();
            wait = match self.tick().await {
                Ok(tick) => {
                    if is_failing {
                        tracing::info!("the log is signed again");
                    }
                    is_failing = false;
                    self.tell_works(&tick).await;
                    prompt.done(answered);
                    match tick {
                        Tick::Grown { .. } => BUSY,
                        Tick::Idle | Tick::NotOurs => {
                            wait.max(BUSY / 2).saturating_mul(2).min(IDLE)
                        }
                    }
                }
                Err(error) => {
                    self.parts.newest.fails();
                    if !is_failing {
                        self.tell_fails(&error);
                    }
                    is_failing = true;
                    IDLE
                }
            };
            let now = self.parts.clock.monotonic();
            if now.saturating_sub(maintained) >= MAINTAIN_EVERY {
                maintained = now;
                let is_due = disposed.is_none_or(|at| now.saturating_sub(at) >= DISPOSE_EVERY);
                if is_due {
                    disposed = Some(now);
                }
                self.maintain_all(is_due).await;
            }
        }
        self.parts.store.flush().await?;
        self.tick().await.map(|_| ())
    }

    /// Reports that signing works. If another process signs, its checkpoints have to keep up with the tree.
    async fn tell_works(&mut self, tick: &Tick) {
        let is_behind = match tick {
            Tick::Grown { .. } | Tick::Idle => false,
            Tick::NotOurs => {
                let signed = self.known.as_ref().map_or(0, |known| known.size);
                let has_grown = signed > self.followed;
                self.followed = signed;
                let head = self.parts.store.head().await;
                !has_grown && head.is_ok_and(|head| head.size > signed)
            }
        };
        if !is_behind {
            self.parts.newest.works(self.parts.clock.monotonic());
        }
    }

    /// Logs a failure. Called once, not with each retry.
    fn tell_fails(&self, error: &Error) {
        let is_final = error.is_final();
        let error = error as &dyn std::error::Error;
        if is_final {
            self.parts.newest.stop();
            tracing::error!(
                error,
                "signing of the evidence log has stopped until an operator repairs the store; `countersign verify` checks the log"
            );
        } else {
            tracing::warn!(
                error,
                "the evidence log could not be signed; signing is retried"
            );
        }
    }

    /// Runs maintenance in up to 16 small steps, with other work in between; removes what is past its time if that is
    /// due.
    async fn maintain_all(&mut self, is_disposal_due: bool) {
        for _ in 0..16 {
            match self.maintain_once(is_disposal_due).await {
                Ok(true) => return,
                Ok(false) => tokio::task::yield_now().await,
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(
                        error,
                        "expired idempotency keys and payloads could not be removed; this is retried"
                    );
                    return;
                }
            }
        }
    }

    /// True if there is nothing left to do.
    async fn maintain_once(&mut self, is_disposal_due: bool) -> Result<bool, Error> {
        if !is_disposal_due {
            self.observe_time().await?;
            return Ok(self.sweep().await?.is_empty());
        }
        let done = self.maintain().await?;
        self.tell_clock(done.disposal);
        Ok(done.swept.is_empty() && done.disposal.disposed().is_empty())
    }

    /// Logs that nothing is removed, and that it goes on. Called with each disposal, logs once.
    fn tell_clock(&mut self, disposal: Disposal) {
        match disposal {
            Disposal::Stopped(passage) if !self.has_jumped => {
                self.has_jumped = true;
                tracing::error!(
                    "{passage}; nothing is removed until they agree, or `countersign store trust-clock` says that the clock is right"
                );
            }
            Disposal::Done(_) if self.has_jumped => {
                self.has_jumped = false;
                tracing::info!("the clock is believed; what is past its time is removed again");
            }
            Disposal::Stopped(_) | Disposal::Done(_) => {}
        }
    }
}
