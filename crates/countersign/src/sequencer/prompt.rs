//! Asking a running sequencer for a round now: a process that has committed something can wait until it is signed.

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

/// Asks for rounds. Clones ask the same sequencer.
#[derive(Clone)]
pub struct Prompt(Arc<Rounds>);

struct Rounds {
    /// Number of rounds that were asked for.
    asked: watch::Sender<u64>,
    /// Number of them that are done.
    done: watch::Sender<u64>,
}

impl Default for Prompt {
    fn default() -> Self {
        let (asked, done) = (watch::Sender::new(0), watch::Sender::new(0));
        Self(Arc::new(Rounds { asked, done }))
    }
}

impl Prompt {
    /// Asks for a round, and returns when one that has begun after this is done. Never returns if no sequencer runs, or
    /// if the store fails: the caller has to set a deadline.
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

    /// Number of rounds that were asked for until now: a round that begins now answers all of them.
    pub(super) fn begin(&self) -> u64 {
        *self.0.asked.borrow()
    }

    /// Marks the round that has begun with this number as done.
    pub(super) fn done(&self, round: u64) {
        self.0.done.send_replace(round);
    }
}

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Prompt")
    }
}
