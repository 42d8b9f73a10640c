//! Calls that wait for an answer of their client between two of its requests.
//!
//! A server of the older eras asks while a call runs. A client of the newest era is not asked then: it gets the question as the result of its
//! request, and answers with the next one. Meanwhile the call goes on here, and ends by its own deadline if no answer comes.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use countersign::BoxFuture;
use countersign::cancel::Cancellation;
use countersign::contract::ReplyEnvelope;
use countersign::dialogue::Said;
use countersign::progress::Progress;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::confirm::VALID_FOR;

/// Most calls that wait at a time. Beyond it the server gets the answer that the user declines.
const PARKED_MAX: usize = 256;

/// A call on its way, apart from the request that it came with.
pub(super) struct Running {
    /// `None` if the server stops before the call has ended.
    pub(super) call: BoxFuture<'static, Option<ReplyEnvelope>>,
    pub(super) cancellation: Cancellation,
    pub(super) reports: Option<mpsc::Receiver<Progress>>,
    pub(super) said: Option<mpsc::Receiver<Said>>,
}

/// A question of a server, and the way of its answer. Dropped unanswered, it is declined.
pub(super) struct Question {
    pub(super) request: Value,
    pub(super) answer: oneshot::Sender<Value>,
}

struct Waiting {
    running: Running,
    answer: oneshot::Sender<Value>,
    until: Instant,
}

/// The calls that wait, by the ids in the states that their clients carry.
#[derive(Default)]
pub(super) struct Parked {
    waiting: Mutex<BTreeMap<String, Waiting>>,
}

impl Parked {
    /// Keeps a call until its client answers. The call itself goes on. Gives the call back where too many wait.
    pub(super) fn park(
        &self,
        id: String,
        mut running: Running,
        answer: oneshot::Sender<Value>,
    ) -> Result<(), Running> {
        let now = Instant::now();
        let mut waiting = self.waiting();
        waiting.retain(|_, own| own.until > now);
        if waiting.len() >= PARKED_MAX {
            return Err(running);
        }
        let ending = tokio::spawn(running.call);
        running.call = Box::pin(async move { ending.await.ok().flatten() });
        let own = Waiting {
            running,
            answer,
            until: now + VALID_FOR,
        };
        waiting.insert(id, own);
        Ok(())
    }

    /// Takes a call back, and gives it the answer; `None` if it does not wait here. Without an answer the question is declined.
    pub(super) fn resume(&self, id: &str, answer: Option<Value>) -> Option<Running> {
        let own = self.waiting().remove(id)?;
        if let Some(answer) = answer {
            // The call has ended meanwhile where this fails; its reply says so.
            let _ended = own.answer.send(answer);
        }
        Some(own.running)
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<String, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use countersign::contract::RequestId;
    use serde_json::json;

    use super::*;

    fn running(answered: oneshot::Receiver<Value>) -> Running {
        Running {
            call: Box::pin(async move {
                let data = answered.await.unwrap_or(json!("declined"));
                Some(ReplyEnvelope::success(
                    RequestId::new("req_1").unwrap(),
                    data,
                ))
            }),
            cancellation: Cancellation::new(),
            reports: None,
            said: None,
        }
    }

    /// A call gets its answer once; one without an answer, or that waits too long, is declined.
    #[tokio::test(start_paused = true)]
    async fn a_call_waits_for_its_answer() {
        let parked = Parked::default();
        let park = |id: &str| {
            let (answer, answered) = oneshot::channel();
            parked.park(id.to_owned(), running(answered), answer)
        };
        assert!(park("a").is_ok() && park("b").is_ok());
        for (id, given, expected) in [
            ("a", Some(json!(7)), json!(7)),
            ("b", None, json!("declined")),
        ] {
            let own = parked.resume(id, given).unwrap();
            assert_eq!(own.call.await.unwrap().data, expected);
            assert!(parked.resume(id, None).is_none());
        }
        assert!(park("old").is_ok());
        tokio::time::advance(VALID_FOR).await;
        assert!(park("new").is_ok());
        assert!(parked.resume("old", None).is_none());
    }

    #[tokio::test]
    async fn the_number_of_calls_that_wait_is_bounded() {
        let parked = Parked::default();
        let park = |number: usize| {
            let (answer, answered) = oneshot::channel();
            parked.park(number.to_string(), running(answered), answer)
        };
        assert!((0..PARKED_MAX).all(|number| park(number).is_ok()));
        assert!(park(PARKED_MAX).is_err());
    }
}
