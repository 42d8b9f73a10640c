//! A call that waits for its user as a task (SEP-2663), for clients that declare the extension.
//!
//! The task is the approval: it has the approval's id, and waits as long as the approval does. The client asks with
//! `tasks/get`. As long as there is no answer, the task is `working`, and its message says where the user answers. After the
//! answer, `tasks/get` makes the call as it was sent and gives the result.
//!
//! Tasks are kept in memory. After a restart, and on another replica, a task is not known: the client sends the call again,
//! and an answer that the user has given counts for that call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use countersign::Principal;
use countersign::contract::approval::{Approval, ApprovalState};
use countersign::contract::{ErrorBody, ReplyEnvelope};
use jiff::Timestamp;
use rmcp::ErrorData;
use rmcp::model::{CreateTaskResult, DetailedTask, JsonObject, Task, TaskPayload, TaskStatus};
use serde_json::Value;

use super::call::Sent;
use super::confirm;
use super::context::Context;
use super::handler::{self, Handler};

/// The most tasks that a server keeps; a call beyond them gets the plain answer.
const TASKS_MAX: usize = 1_000;

/// The most tasks of one user.
const TASKS_OF_USER_MAX: usize = 50;

/// The time after which a client may ask again.
const POLL_MS: u64 = 2_000;

/// The calls that wait.
#[derive(Default)]
pub(super) struct Tasks {
    waiting: Mutex<HashMap<String, Arc<Waiting>>>,
}

/// One call that waits.
pub(super) struct Waiting {
    sent: Sent,
    created: Timestamp,
    /// Until then the task is kept.
    ends: Timestamp,
    /// Held while the call runs, so that it runs once. Then its result.
    result: tokio::sync::Mutex<Option<JsonObject>>,
    message: String,
}

impl Tasks {
    /// Lets a call wait that needs its user; `None` if the client has no tasks, or the call needs no user.
    pub(super) fn wait(
        &self,
        sent: &Sent,
        reply: &ReplyEnvelope,
        context: &Context,
        now: Timestamp,
    ) -> Option<CreateTaskResult> {
        let has_tasks = context.capabilities.as_ref()?.supports_tasks();
        let approval_id = confirm::wanted(reply).filter(|_| has_tasks)?;
        self.add(sent, approval_id, reply.error.as_ref()?, now)
    }

    fn add(
        &self,
        sent: &Sent,
        approval_id: &str,
        error: &ErrorBody,
        now: Timestamp,
    ) -> Option<CreateTaskResult> {
        let ends = error.details.extra.get("expires_at")?.as_str()?;
        let task = Arc::new(Waiting {
            sent: sent.clone(),
            created: now,
            ends: ends.parse().ok()?,
            result: tokio::sync::Mutex::default(),
            message: said_to_user(error, approval_id),
        });
        let mut waiting = self.lock();
        waiting.retain(|_, task| task.ends > now);
        let is_users = |task: &&Arc<Waiting>| task.sent.principal.user_id == sent.principal.user_id;
        let of_user = waiting.values().filter(is_users).count();
        if waiting.len() >= TASKS_MAX || of_user >= TASKS_OF_USER_MAX {
            return None;
        }
        let seed = task.shown(approval_id, TaskStatus::Working, now);
        waiting.insert(approval_id.to_owned(), task);
        Some(CreateTaskResult::new(seed))
    }

    /// The task of this caller. One of another caller does not exist.
    fn of(&self, id: &str, principal: &Principal) -> Result<Arc<Waiting>, ErrorData> {
        let task = self.lock().get(id).cloned();
        let is_callers = |task: &Arc<Waiting>| {
            let owner = &task.sent.principal;
            owner.actor == principal.actor && owner.user_id == principal.user_id
        };
        task.filter(is_callers).ok_or_else(|| {
            let message = "no such task: send the call again; an answer of the user counts for it";
            ErrorData::invalid_params(message, None)
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Waiting>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn shown(&self, id: &str, status: TaskStatus, now: Timestamp) -> Task {
        let left = self.ends.as_millisecond() - self.created.as_millisecond();
        let task = Task::new(id, status, self.created.to_string(), now.to_string())
            .with_ttl_ms(u64::try_from(left).unwrap_or_default())
            .with_poll_interval_ms(POLL_MS);
        match status {
            TaskStatus::Working => task.with_status_message(self.message.clone()),
            _ => task,
        }
    }
}

impl Handler {
    /// The state of a task, and its result once the user has answered.
    pub(super) async fn task(
        &self,
        id: &str,
        context: &Context,
    ) -> Result<DetailedTask, ErrorData> {
        let (caller, _) = self.narrowed(context)?;
        let task = self.known_task(id, context)?;
        let approvals = self.shared.gateway.executor().approvals();
        let now = self.shared.gateway.executor().now();
        let working = || {
            let shown = task.shown(id, TaskStatus::Working, now);
            Ok(DetailedTask::new(shown, TaskPayload::Working))
        };
        let Ok(mut result) = task.result.try_lock() else {
            return working();
        };
        if result.is_none() {
            let approval = approvals.show(id, &caller.principal).await;
            if approval.is_ok_and(|approval| is_open(&approval)) {
                return working();
            }
            // The right to call is that of the credential that asks now: the one that sent the call may have ended.
            let sent = task.sent.by_caller(caller.principal.clone());
            let reply = self.run(&sent, context).await?;
            let made = self.result(&sent, reply, context)?;
            let Ok(Value::Object(made)) = serde_json::to_value(made) else {
                return Err(ErrorData::internal_error(
                    "the result cannot be written",
                    None,
                ));
            };
            *result = Some(made);
        }
        let shown = task.shown(id, TaskStatus::Completed, now);
        let result = result.clone().unwrap_or_default();
        Ok(DetailedTask::new(shown, TaskPayload::Completed { result }))
    }

    /// Forgets a task. The question stays: the user may still answer it, and the call be sent again.
    pub(super) fn end_task(&self, id: &str, context: &Context) -> Result<(), ErrorData> {
        self.known_task(id, context)?;
        self.shared.tasks.lock().remove(id);
        Ok(())
    }

    /// The task of the caller.
    pub(super) fn known_task(
        &self,
        id: &str,
        context: &Context,
    ) -> Result<Arc<Waiting>, ErrorData> {
        let caller = handler::caller(&context.extensions)?;
        self.shared.tasks.of(id, &caller.principal)
    }
}

/// The message of a task: why it waits, and the place where the user answers.
fn said_to_user(error: &ErrorBody, approval_id: &str) -> String {
    let page = error.details.extra.get("approval_url");
    match page.and_then(Value::as_str) {
        Some(url) => format!("{error}: the user answers {approval_id} at {url}"),
        None => {
            format!("{error}: the user answers {approval_id} with POST /v1/approvals/{approval_id}")
        }
    }
}

fn is_open(approval: &Approval) -> bool {
    match approval.state {
        ApprovalState::Pending => true,
        ApprovalState::Approved
        | ApprovalState::Denied
        | ApprovalState::Used
        | ApprovalState::Expired => false,
    }
}

#[cfg(test)]
mod tests {
    use countersign::contract::{Actor, ActorType, ErrorCode};

    use super::*;

    fn asked(ends: &str) -> ErrorBody {
        let mut error = ErrorBody::new(ErrorCode::NeedsUserConfirmation, "the user has to confirm");
        error
            .details
            .extra
            .insert("expires_at".to_owned(), ends.into());
        error
    }

    /// A task of another caller does not exist.
    #[test]
    fn a_task_is_its_callers() {
        let (tasks, now) = (Tasks::default(), Timestamp::UNIX_EPOCH);
        let ann = Principal::user("ann");
        let error = asked("1970-01-01T00:15:00Z");
        tasks
            .add(&Sent::by(ann.clone()), "ap_1", &error, now)
            .unwrap();
        assert!(tasks.of("ap_1", &ann).is_ok());
        assert!(tasks.of("ap_1", &Principal::user("bob")).is_err());
        assert!(
            tasks
                .of(
                    "ap_1",
                    &Principal::new(
                        Actor {
                            kind: ActorType::Agent,
                            id: "a_1".to_owned()
                        },
                        "ann"
                    )
                )
                .is_err()
        );
    }

    /// One user cannot fill the table, and what is over makes room.
    #[test]
    fn tasks_are_bounded_and_end() {
        let (tasks, start) = (Tasks::default(), Timestamp::UNIX_EPOCH);
        let error = asked("1970-01-01T00:15:00Z");
        let ann = Sent::by(Principal::user("ann"));
        for n in 0..TASKS_OF_USER_MAX {
            assert!(tasks.add(&ann, &format!("ap_{n}"), &error, start).is_some());
        }
        assert!(tasks.add(&ann, "ap_more", &error, start).is_none());
        let bob = Sent::by(Principal::user("bob"));
        assert!(tasks.add(&bob, "ap_bob", &error, start).is_some());
        let later = "1970-01-01T00:15:00Z".parse().unwrap();
        let error = asked("1970-01-01T00:30:00Z");
        assert!(tasks.add(&ann, "ap_more", &error, later).is_some());
        assert_eq!(tasks.lock().len(), 1);
    }
}
