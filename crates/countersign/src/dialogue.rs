//! What a running call says to its caller before its answer, where the protocol between them has that: questions to the user, and
//! messages.
//!
//! The texts are JSON of the protocol (MCP). A tool that passes on what a server of that protocol asks has no use for another form,
//! and no other tool needs this: what a user has to confirm is asked by the executor.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

/// Most questions and messages that wait for the caller.
const WAITING_MAX: usize = 64;

/// Channel to the caller of a running call, for questions and messages. The surface (such as MCP) passes it in with
/// [`ToolCall::extension`](crate::ToolCall::extension), in an [`Arc`](std::sync::Arc).
///
/// # Example
///
/// ```
/// use countersign::dialogue::{Dialogue, Left, Questions};
/// use serde_json::json;
///
/// let dialogue = Dialogue::new(json!({"elicitation": {}}));
/// assert!(!dialogue.is_live());
/// dialogue.leave(Left::Questions(Questions::default()));
/// assert!(matches!(dialogue.take(), Some(Left::Questions(_))));
/// assert!(dialogue.take().is_none());
/// ```
#[derive(Debug)]
pub struct Dialogue {
    abilities: Value,
    log_level: Option<String>,
    answers: Option<Answers>,
    line: Option<(mpsc::Sender<Said>, Asks)>,
    left: Mutex<Option<Left>>,
}

/// Questions that are answered with the caller's next request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Questions {
    /// Requests of the protocol, by a name for each.
    pub requests: BTreeMap<String, Value>,
    /// A text that comes back with the answers.
    pub state: Option<String>,
}

/// Answers to earlier questions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answers {
    /// Results of the protocol, by the names of the questions.
    pub responses: BTreeMap<String, Value>,
    /// The text that came with the questions.
    pub state: Option<String>,
}

/// Result that a call leaves in place of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Left {
    /// Questions.
    Questions(Questions),
    /// An error of the protocol, which only the client can mend.
    Refusal {
        /// Its code.
        code: i32,
        /// Its text.
        message: String,
        /// Machine-readable details.
        data: Option<Value>,
    },
}

/// Moment at which a caller answers the questions of a running call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    /// At once, while the request runs.
    Now,
    /// With the next request. The call goes on meanwhile.
    Later,
}

/// Message of a running call.
#[derive(Debug)]
pub enum Said {
    /// A request of the protocol. A surface that cannot pass it on drops the sender.
    Question(Value, oneshot::Sender<Value>),
    /// A notification of the protocol.
    Message(Value),
}

impl Dialogue {
    /// The dialogue with a caller whose client has these abilities, in the words of the protocol.
    pub fn new(abilities: Value) -> Self {
        Self {
            abilities,
            log_level: None,
            answers: None,
            line: None,
            left: Mutex::default(),
        }
    }

    /// The same with answers to the questions of an earlier attempt.
    pub fn answered(mut self, answers: Option<Answers>) -> Self {
        self.answers = answers;
        self
    }

    /// The same for a caller who wants messages from this level on.
    pub fn logging(mut self, level: Option<String>) -> Self {
        self.log_level = level;
        self
    }

    /// The same with a line to the caller, who answers questions at this moment.
    pub fn line(mut self, asks: Asks) -> (Self, mpsc::Receiver<Said>) {
        let (sender, said) = mpsc::channel(WAITING_MAX);
        self.line = Some((sender, asks));
        (self, said)
    }

    /// The abilities of the caller's client.
    pub fn abilities(&self) -> &Value {
        &self.abilities
    }

    /// True if the client has this ability.
    pub fn has(&self, ability: &str) -> bool {
        self.abilities
            .get(ability)
            .is_some_and(|own| !own.is_null())
    }

    /// The lowest level of messages that the caller wants.
    pub fn log_level(&self) -> Option<&str> {
        self.log_level.as_deref()
    }

    /// Answers that the caller has brought.
    pub fn answers(&self) -> Option<&Answers> {
        self.answers.as_ref()
    }

    /// True if the caller answers while the request runs.
    pub fn is_live(&self) -> bool {
        self.line
            .as_ref()
            .is_some_and(|(_, asks)| *asks == Asks::Now)
    }

    /// Asks the caller, and waits for the answer, also over several requests. `None` if that cannot be, or there is no answer.
    pub async fn ask(&self, request: Value) -> Option<Value> {
        let (line, _) = self.line.as_ref()?;
        let (answer, answered) = oneshot::channel();
        line.send(Said::Question(request, answer)).await.ok()?;
        answered.await.ok()
    }

    /// Tells the caller something; a message that finds no room is left out.
    pub fn tell(&self, message: Value) {
        if let Some((line, _)) = &self.line {
            let _full = line.try_send(Said::Message(message));
        }
    }

    /// Leaves something in place of an answer. The call itself ends with an error that says what is missing.
    pub fn leave(&self, left: Left) {
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = Some(left);
    }

    /// Takes the result that was left; `None` the second time.
    pub fn take(&self) -> Option<Left> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.take()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A question finds its answer, and no call waits for a caller who cannot be asked or has gone.
    #[tokio::test]
    async fn a_question_is_answered_or_ends() {
        let (live, mut said) = Dialogue::new(json!({"elicitation": {}})).line(Asks::Now);
        assert!(live.has("elicitation") && !live.has("sampling"));
        let caller = async {
            match said.recv().await {
                Some(Said::Question(request, answer)) => answer.send(request).unwrap(),
                other => panic!("{other:?}"),
            }
        };
        let (answer, ()) = tokio::join!(live.ask(json!("name?")), caller);
        assert_eq!(answer, Some(json!("name?")));
        drop(said);
        assert_eq!(live.ask(json!("again?")).await, None);

        assert_eq!(Dialogue::new(json!({})).ask(json!("name?")).await, None);
        let (later, mut said) = Dialogue::new(json!({})).line(Asks::Later);
        assert!(!later.is_live());
        later.tell(json!("a note"));
        assert!(matches!(said.recv().await, Some(Said::Message(_))));
    }
}
