//! Asking a sequencer that runs for a round now: whoever has committed something can wait until it is signed.

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

/// Asks for rounds. Clones ask the same sequencer.
#[derive(Clone)]
pub struct Prompt(Arc<Rounds>);

struct Rounds {
    /// How many rounds were asked for.
    asked: watch::Sender<u64>,
    /// How many of them are done.
    done: watch::Sender<u64>,
}

impl Default for Prompt {
    fn default() -> Self {
        let (asked, done) = (watch::Sender::new(0), watch::Sender::new(0));
        Self(Arc::new(Rounds { asked, done }))
    }
}

impl Prompt {
    /// Asks for a round, and returns when one that has begun after this is done. Never returns where no sequencer
    /// runs, or where the store fails: whoever asks waits with a deadline.
    pub async fn round(&self) {
        let mut done = self.0.done.subscribe();
        let mut wanted = 0;
        self.0.asked.send_modify(|asked| {
            *asked += 1;
            wanted = *asked;
        });
        // The one who sends is held by ourselves.
        let _ = done.wait_for(|done| *done >= wanted).await;
    }

    /// Returns when a round was asked for after `answered`.
    pub(super) async fn asked(&self, answered: u64) {
        let mut asked = self.0.asked.subscribe();
        let _ = asked.wait_for(|asked| *asked > answered).await;
    }

    /// How many were asked for until now: a round that begins now answers all of them.
    pub(super) fn begin(&self) -> u64 {
        *self.0.asked.borrow()
    }

    /// The round that has begun with this is done.
    pub(super) fn done(&self, round: u64) {
        self.0.done.send_replace(round);
    }
}

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Prompt")
    }
}
