//! A call on its way: one attempt after the other, within the deadline and the breaker.

use std::sync::atomic::Ordering;
use std::time::Duration;

use countersign::{CallContext, ToolError};
use rmcp::model::{CallToolResult, JsonObject};
use tokio::sync::SemaphorePermit;
use tokio::time::timeout;

use super::fault;
use super::reach::NoConnection;
use super::server::{Approved, Server};
use super::trouble::Trouble;
use crate::http::auth::Credentials;
use crate::http::backoff;
use crate::http::breaker::Pass;
use crate::http::fault::Owner;
use crate::manifest::Secret;

/// A call, with its parameters.
pub(super) struct Sending<'s> {
    pub(super) ctx: &'s CallContext,
    /// The approved definition.
    pub(super) approved: &'s Approved,
    pub(super) arguments: JsonObject,
    pub(super) meta: JsonObject,
    /// True if the server may get the call more than once.
    pub(super) is_repeatable: bool,
    /// True if the call changes something.
    pub(super) is_write: bool,
}

/// The longest that a timer counts.
pub(super) const TIMER_MAX: Duration = Duration::from_hours(24);

impl Server {
    /// Sends a call until there is a result, or no further attempt is allowed. `sent` becomes the credential that was sent.
    pub(super) async fn send(
        &self,
        sending: &Sending<'_>,
        sent: &mut Credentials,
    ) -> Result<CallToolResult, ToolError> {
        let mut doubt = None;
        match self.send_within(sending, sent, &mut doubt).await {
            Ok(result) => Ok(result),
            // What a later attempt met does not undo what an earlier one may have done.
            Err(error) => Err(match doubt {
                Some(earlier) => self.told(&earlier, &sent.secrets),
                None => error,
            }),
        }
    }

    /// Attempts, one after the other. `doubt` becomes the first that may have had its effect.
    async fn send_within(
        &self,
        sending: &Sending<'_>,
        sent: &mut Credentials,
        doubt: &mut Option<Trouble>,
    ) -> Result<CallToolResult, ToolError> {
        let ctx = sending.ctx;
        let _slot = self
            .slot(ctx)
            .await
            .map_err(|trouble| self.told(&trouble, &[]))?;
        let mut attempt = 1;
        let mut renewed = false;
        let mut is_of_newest_era = false;
        loop {
            let pass = self.breaker.pass(self.now());
            let pass = pass.map_err(|wait| self.told(&Trouble::Open(wait), &[]))?;
            let trouble = match self
                .attempt(sending, sent, &mut is_of_newest_era, pass)
                .await
            {
                Ok(result) => return Ok(result),
                Err(NoConnection::Told(error)) => return Err(error),
                Err(NoConnection::Trouble(trouble)) => trouble,
            };
            // A token that was taken back: a new one is tried once, and nothing was done with the old one.
            let is_refused = matches!(trouble, Trouble::Credential(401));
            if is_refused && !renewed && self.forget_token(ctx, sent) {
                renewed = true;
                continue;
            }
            // A server that speaks another era since the connection was opened has not looked at the call.
            if is_of_newest_era && trouble.doubts_the_era() && self.has_older_era(ctx).await {
                continue;
            }
            let may_repeat = trouble.was_not_carried_out() || sending.is_repeatable;
            let wait = backoff::wait(&self.entry.retries, attempt, &ctx.new_id(""));
            let has_time = attempt < self.entry.retries.attempts_max && wait < ctx.remaining();
            if !(may_repeat && trouble.is_transport() && has_time) {
                return Err(self.told(&trouble, &sent.secrets));
            }
            if sending.is_write && !trouble.was_not_carried_out() {
                doubt.get_or_insert(trouble);
            }
            tokio::time::sleep(wait).await;
            attempt += 1;
        }
    }

    /// Waits for a slot. A server that the configuration has no more gives none.
    async fn slot(&self, ctx: &CallContext) -> Result<SemaphorePermit<'_>, Trouble> {
        let gone = || Trouble::NoConnection("the configuration has changed".to_owned());
        if self.is_retired.load(Ordering::Acquire) {
            return Err(gone());
        }
        let slot = timeout(ctx.remaining().min(TIMER_MAX), self.slots.acquire()).await;
        slot.map_err(|_| Trouble::Full)?.map_err(|_| gone())
    }

    /// True if the server, asked anew, speaks an older era than the newest. The next attempt then goes over a connection of that era.
    async fn has_older_era(&self, ctx: &CallContext) -> bool {
        let open = timeout(ctx.remaining().min(TIMER_MAX), self.connection(ctx)).await;
        matches!(open, Ok(Ok((connection, _))) if !connection.is_of_newest_era())
    }

    /// Builds the error that the caller gets.
    pub(super) fn told(&self, trouble: &Trouble, sent: &[Secret]) -> ToolError {
        fault::told(trouble, self.name(), Owner::of(&self.entry), sent)
    }

    /// Makes one attempt, and reports its outcome to the breaker. `is_of_newest_era` becomes the era of its connection.
    async fn attempt(
        &self,
        sending: &Sending<'_>,
        sent: &mut Credentials,
        is_of_newest_era: &mut bool,
        pass: Pass,
    ) -> Result<CallToolResult, NoConnection> {
        let guard = Settle {
            server: self,
            pass,
            is_settled: false,
        };
        let left = sending.ctx.remaining();
        let limit = Duration::from_millis(self.entry.timeouts.attempt_ms).min(left);
        let answer = async {
            let open = timeout(left.min(TIMER_MAX), self.connection(sending.ctx)).await;
            let opened = open.unwrap_or(Err(NoConnection::Trouble(Trouble::Full)))?;
            let connection;
            (connection, *sent) = opened;
            *is_of_newest_era = connection.is_of_newest_era();
            let approved = sending.approved;
            let tool = &approved.definition.name;
            if connection.has_other(tool, &approved.digest).await? {
                // The task that follows the server looks again at once, and tells the operator.
                self.changed.notify_one();
                return Err(NoConnection::Told(self.quarantined(&approved.name)));
            }
            let (arguments, meta) = (sending.arguments.clone(), sending.meta.clone());
            let limit = limit.min(TIMER_MAX);
            let call = connection.call(sending.ctx, approved, arguments, meta, limit);
            Ok(call.await?)
        };
        let answer: Result<_, NoConnection> = answer.await;
        guard.settle(&answer);
        answer
    }
}

/// Tells the breaker what came of an attempt, also where it is dropped.
struct Settle<'s> {
    server: &'s Server,
    pass: Pass,
    is_settled: bool,
}

impl Settle<'_> {
    fn settle(mut self, answer: &Result<CallToolResult, NoConnection>) {
        self.is_settled = true;
        let breaker = &self.server.breaker;
        match answer {
            Ok(_) => breaker.answered(),
            Err(NoConnection::Trouble(trouble)) if trouble.is_transport() => {
                breaker.failed(self.server.now());
            }
            Err(_) => breaker.given_up(self.pass),
        }
    }
}

impl Drop for Settle<'_> {
    fn drop(&mut self) {
        if !self.is_settled {
            self.server.breaker.given_up(self.pass);
        }
    }
}
