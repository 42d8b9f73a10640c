//! The loop around a sequencer.

use std::time::Duration;

use super::{Error, Sequencer, Tick};

/// How soon there is a next round where there was something to do.
const BUSY: Duration = Duration::from_millis(100);

/// How long a round is waited for where nothing happens.
const IDLE: Duration = Duration::from_secs(1);

/// How often there is maintenance.
const MAINTAIN_EVERY: Duration = Duration::from_secs(10);

impl Sequencer {
    /// Works until `stop` is done, and then once more, so that everything that was committed is signed.
    /// A store that fails is tried again; one that is not what was signed ends this at once.
    pub async fn run(mut self, stop: impl Future<Output = ()>) -> Result<(), Error> {
        let mut stop = std::pin::pin!(stop);
        let mut wait = Duration::ZERO;
        let mut maintained = self.parts.clock.monotonic();
        loop {
            let slept = tokio::time::timeout(wait, stop.as_mut()).await;
            if slept.is_ok() {
                break;
            }
            wait = match self.tick().await {
                Ok(Tick::Grown { .. }) => BUSY,
                Ok(Tick::Idle | Tick::NotOurs) => wait.max(BUSY / 2).saturating_mul(2).min(IDLE),
                Err(error) if error.is_final() => return Err(error),
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "nothing is signed"
                    );
                    IDLE
                }
            };
            let now = self.parts.clock.monotonic();
            if now.saturating_sub(maintained) >= MAINTAIN_EVERY {
                maintained = now;
                self.maintain_all().await;
            }
        }
        self.parts.store.flush().await?;
        self.tick().await.map(|_| ())
    }

    /// A backlog is worked off in small steps, with others in between.
    async fn maintain_all(&self) {
        for _ in 0..16 {
            match self.maintain().await {
                Ok(done) if done.swept.is_empty() && done.pruned == 0 => return,
                Ok(_) => tokio::task::yield_now().await,
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(error, "claims and payloads are not maintained");
                    return;
                }
            }
        }
    }
}
