//! Step 5: the user's confirmation of exactly this call (A13). Approvals, and their state after a crash, are explained
//! in [`crate::approve`].

use std::time::Duration;

use countersign_args::Reading;
use countersign_contract::{BindStatus, Effect, ErrorBody, ErrorCode};
use serde_json::{Value, json};

use super::bind::{Bound, canonical_text, refusal_of};
use super::claim::Claimed;
use super::simulate::Stage;
use super::stop::Stop;
use super::trail::{Trail, micros};
use super::{Executor, gateway_fault, store_fault};
use crate::approve::{
    Answer, Confirm, Cut, Foreseen, SCOPE_ANSWER, Ticket, agreed, changes, narrowed,
};
use crate::authorize::Stage as RuleStage;
use crate::cancel::Cancellation;
use crate::grant::Fit;
use crate::ledger::HeldState;
use crate::seat::CallSeat;
use crate::unavailable::Unavailable;
use crate::words::Say;

/// A call that needs no confirmation, or has one.
pub(super) struct Confirmed {
    pub(super) bound: Bound,
    pub(super) approved: Option<Approved>,
    /// The standing grant that answered in the user's place, if one did.
    pub(super) granted: Option<Box<Fit>>,
}

/// A confirmation, and the question that it answers.
pub(super) struct Approved {
    question: Box<Confirm>,
    /// The ticket; `None` if the approver keeps none.
    pub(super) ticket: Option<Box<Ticket>>,
}

impl Executor {
    pub(super) async fn confirm(
        &self,
        mut bound: Bound,
        trail: &mut Trail,
    ) -> Result<Confirmed, Stop> {
        let behaviour = &bound.allowed.entry.spec().behaviour;
        // A dry run of a write changes nothing; one of a read would show what has to be confirmed.
        let is_harmless = bound.allowed.request.dry_run && behaviour.effect.changes_something();
        let is_asked = behaviour.confirmation.is_asked() || bound.allowed.must_confirm;
        // Boxed: most calls need none, and the future of every call would carry it.
        let granted = if is_asked {
            Box::pin(self.grant_for(&bound, is_harmless, trail)).await?
        } else {
            None
        };
        let approved = match (is_asked && granted.is_none(), is_harmless) {
            (false, _) => None,
            (true, false) => Some(Box::pin(self.ask(&mut bound, trail)).await?),
            (true, true) => {
                Box::pin(self.would_ask(&mut bound, trail)).await?;
                None
            }
        };
        Ok(Confirmed {
            bound,
            approved,
            granted,
        })
    }

    /// Reports the confirmation that the call itself would need, for a dry run. A refusal of the user is its answer; if
    /// the user has narrowed the call, the narrowed call is simulated.
    async fn would_ask(&self, bound: &mut Bound, trail: &mut Trail) -> Result<(), Stop> {
        let question = question(bound, trail);
        showable(&question)?;
        let message = match self.foresee(&question).await? {
            Foreseen::Approved(permit) => {
                if let Some(ticket) = permit.into_ticket() {
                    narrow(bound, &ticket.cuts, trail)?;
                }
                Say::WouldBeConfirmed
            }
            Foreseen::Pending => Say::WouldWait,
            Foreseen::Asked | Foreseen::Unknown => Say::WouldAsk,
            Foreseen::Denied(answer) => {
                return granted(&question, answer).map(drop).map_err(Stop::from);
            }
        };
        trail.warn("NEEDS_USER_CONFIRMATION", &message);
        Ok(())
    }

    async fn ask(&self, bound: &mut Bound, trail: &mut Trail) -> Result<Approved, Stop> {
        let mut question = Box::new(question(bound, trail));
        showable(&question)?;
        let mut answer = self.ask_once(&question, bound, trail).await?;
        if let Answer::Unasked = answer {
            let display = self.present(Stage::of_bound(bound), trail).await?;
            question.display = Some(display);
            answer = self.ask_once(&question, bound, trail).await?;
        }
        let ticket = granted(&question, answer)?;
        let link = ticket.as_ref().and_then(|ticket| ticket.link.clone());
        trail.facts.links.extend(link);
        if let Some(ticket) = &ticket {
            narrow(bound, &ticket.cuts, trail)?;
        }
        Ok(Approved { question, ticket })
    }

    /// Asks, and waits as long as the caller does.
    async fn ask_once(
        &self,
        question: &Confirm,
        bound: &Bound,
        trail: &mut Trail,
    ) -> Result<Answer, Stop> {
        let clock = &self.parts.clock;
        let asked = clock.monotonic();
        let cancellation = &bound.allowed.call.cancellation;
        let answer = self.patiently(question, &bound.allowed.call.patience, &trail.seat);
        let Some(answer) = cancellation.unless_cancelled(answer).await else {
            return Err(given_up(question));
        };
        let waited = clock.monotonic().saturating_sub(asked);
        trail.record.phases.awaiting_approval_us = micros(waited);
        Ok(answer.map_err(|error| gateway_fault(&error))?)
    }

    pub(super) async fn foresee(&self, question: &Confirm) -> Result<Foreseen, Stop> {
        let foreseen = self.parts.approver.foresee(question).await;
        Ok(foreseen.map_err(|error| gateway_fault(&error))?)
    }

    /// The approver's answer, at the latest when the caller's time limit ends; what was committed by then is found
    /// again.
    async fn patiently(
        &self,
        question: &Confirm,
        patience: &Cancellation,
        seat: &CallSeat,
    ) -> Result<Answer, Unavailable> {
        let approver = &self.parts.approver;
        if question.wait.is_zero() {
            return approver.ask(question).await;
        }
        let waiting = patience.unless_cancelled(approver.ask(question));
        match seat.unless_crowded(waiting).await.flatten() {
            Some(answer) => answer,
            None => approver.ask(&at_once(question)).await,
        }
    }

    /// Uses the approval of a call with an external effect, or looks at its grant once more: after its key was claimed,
    /// before the tool runs. If another call was faster, or the grant was revoked, the tool does not run, and the key is
    /// released.
    pub(super) async fn use_approval(
        &self,
        claimed: &mut Claimed,
        trail: &Trail,
    ) -> Result<(), Stop> {
        let is_elsewhere = match claimed.entry.spec().behaviour.effect {
            Effect::External => true,
            // The commit of the effect uses it up.
            Effect::Read | Effect::Write => false,
        };
        if is_elsewhere && let Some(fit) = &claimed.granted {
            claimed.barred = self.grant_is_over(fit, claimed.entry.name()).await;
            return Ok(());
        }
        let Some(approved) = claimed.approved.as_mut().filter(|_| is_elsewhere) else {
            return Ok(());
        };
        let ticket = approved.ticket.as_mut();
        let Some(using) = ticket.and_then(|ticket| ticket.using.take()) else {
            return Ok(());
        };
        let by = &approved.question.actor;
        let barred = match Box::pin(self.parts.approvals.use_up(using, by)).await {
            Ok(true) => return Ok(()),
            Ok(false) => Box::pin(self.ask_again(claimed, trail)).await,
            Err(error) => store_fault(&error),
        };
        claimed.barred = Some(barred);
        Ok(())
    }

    /// The error for a call whose approval another call has used.
    pub(super) async fn ask_again(&self, claimed: &mut Claimed, trail: &Trail) -> ErrorBody {
        let taken = |tool: String| {
            ErrorBody::new(
                ErrorCode::NeedsUserConfirmation,
                Say::ApprovalTaken { tool },
            )
            .hint(Say::SameAgain)
        };
        let Some(approved) = &claimed.approved else {
            return taken(claimed.entry.name().to_string());
        };
        let mut question = at_once(&approved.question);
        let mut answer = self.parts.approver.ask(&question).await;
        if let Ok(Answer::Unasked) = answer {
            match self.present(Stage::of_claimed(claimed), trail).await {
                Ok(display) => question.display = Some(display),
                Err(body) => return *body,
            }
            answer = self.parts.approver.ask(&question).await;
        }
        let granted = match answer {
            Ok(answer) => granted(&question, answer),
            Err(error) => return gateway_fault(&error),
        };
        match granted {
            Err(body) => *body,
            // It was answered anew in this very moment; the next call has it.
            Ok(_) => taken(question.tool.to_string()),
        }
    }
}

/// Gives the tool less than was asked for, if the approver has narrowed the call. The reply names the difference;
/// its key stays that of the call as it was sent, so that a repeat finds the answer.
fn narrow(bound: &mut Bound, cuts: &[Cut], trail: &mut Trail) -> Result<(), Stop> {
    if cuts.is_empty() {
        return Ok(());
    }
    let before = bound.arguments.to_value();
    let request = &bound.allowed.request;
    let reading = Reading::new(request.locale.as_deref(), request.timezone.as_deref());
    let binder = &bound.allowed.entry.binder;
    let again =
        narrowed(bound.arguments.as_json(), cuts).map(|text| binder.bind_with(&text, &reading));
    let (arguments, issues) = match again {
        Some(again) if again.status == BindStatus::Exact => (again.arguments, again.issues),
        Some(again) => (None, again.issues),
        None => (None, Vec::new()),
    };
    let Some(arguments) = arguments else {
        return Err(refusal_of(issues).into());
    };
    // What an approver has made smaller may be what a rule denies.
    bound
        .allowed
        .judge(RuleStage::Arguments, Some(&arguments), trail)?;
    trail.facts.given = Some(canonical_text(&arguments));
    bound.arguments = arguments;
    let changes = changes(&before, cuts);
    let changes = changes.iter().map(|change| {
        let [before, after] = [&change.before, &change.after].map(|value| {
            let text = value.to_string();
            let end = text.floor_char_boundary(CHANGE_BYTES_MAX);
            text.get(..end).unwrap_or_default().to_owned()
        });
        format!("{} {before} → {after}", change.pointer)
    });
    let changes = changes.collect::<Vec<_>>().join(", ");
    trail.warn("NARROWED", &Say::Narrowed { changes });
    Ok(())
}

/// Maximum bytes of a value that are shown, before and after a change.
const CHANGE_BYTES_MAX: usize = 200;

/// The same question for a caller who does not wait.
fn at_once(question: &Confirm) -> Confirm {
    Confirm {
        wait: Duration::ZERO,
        ..question.clone()
    }
}

/// Refuses a question that is too long to be shown to a person.
fn showable(question: &Confirm) -> Result<(), Stop> {
    let bytes = question.arguments.to_string().len();
    if bytes <= SHOWN_BYTES_MAX {
        return Ok(());
    }
    let (bytes, most) = (bytes.to_string(), SHOWN_BYTES_MAX.to_string());
    let body = ErrorBody::new(
        ErrorCode::InvalidArgument,
        Say::TooLongToConfirm { bytes, most },
    );
    Err(body.hint(Say::SendLess).into())
}

/// Maximum size of arguments that a person can be asked about, as JSON.
const SHOWN_BYTES_MAX: usize = 64 * 1024;

/// The question to the user: the arguments that the tool would be given, defaults included.
pub(super) fn question(bound: &Bound, trail: &Trail) -> Confirm {
    let allowed = &bound.allowed;
    let (request, entry) = (&allowed.request, &allowed.entry);
    let spec = entry.spec();
    // The same arguments in another currency or time zone are another matter.
    let mut circumstances = vec![json!(request.currency), json!(request.timezone)];
    // A number that a value would round is shown as it is spelled, and the answer counts for this spelling only.
    let arguments = match bound.arguments.to_spelled_value() {
        Some(spelled) => {
            circumstances.push(json!(bound.arguments.as_json()));
            spelled
        }
        None => bound.arguments.to_value(),
    };
    let circumstances = Value::from(circumstances);
    // Where only the policy asks, nothing less than all arguments has been declared.
    let agreed = agreed(&spec.behaviour.confirmation, &arguments, &circumstances);
    let mut arguments_redacted = arguments.clone();
    entry.redaction.apply(&mut arguments_redacted);
    let mut arguments = arguments;
    entry.redaction.apply_to_secrets(&mut arguments);
    let is_resumed = bound.key.as_ref().is_some_and(|key| {
        key.held.as_ref().is_some_and(|held| match held.state {
            HeldState::Running { .. } | HeldState::Abandoned | HeldState::InDoubt => true,
            HeldState::Released
            | HeldState::Succeeded(_)
            | HeldState::Failed(_)
            | HeldState::Expired => false,
        })
    });
    Confirm {
        request_id: request.request_id.clone(),
        is_id_chosen: trail.facts.is_id_chosen,
        retention: spec.behaviour.retention,
        actor: request.actor.clone(),
        principal: trail.facts.principal.actor.clone(),
        user_id: request.user_id.clone(),
        tool: entry.name().clone(),
        title: spec.title.clone(),
        description: spec.description.clone(),
        tool_version: spec.version.clone(),
        definition: entry.digest(),
        exact: agreed.exact,
        matter: agreed.matter,
        ceiling: agreed.ceiling,
        session_id: request.session_id.clone(),
        currency: request.currency.clone(),
        timezone: request.timezone.clone(),
        arguments,
        arguments_redacted,
        policy_revision: trail.record.policy_revision.clone().unwrap_or_default(),
        key: bound.key.as_ref().map(|key| key.scope.key),
        is_resumed,
        narrowable: spec.behaviour.narrowing.clone(),
        display: None,
        four_eyes: allowed.four_eyes,
        valid_for: allowed.approval_valid_for,
        cool_down: allowed.cool_down,
        wait: allowed.call.wait_for_approval,
    }
}

/// The ticket, or the error that the caller gets in its place.
fn granted(question: &Confirm, answer: Answer) -> Result<Option<Box<Ticket>>, Box<ErrorBody>> {
    let tool = question.tool.to_string();
    let body = match answer {
        Answer::Approved(permit) => return Ok(permit.into_ticket()),
        Answer::Pending {
            approval_id,
            expires_at,
            because,
            approvers,
        } => {
            let scope = SCOPE_ANSWER.to_owned();
            let (message, hint) = match approvers {
                (0, 2..) => (Say::MustConfirmTwice { tool }, Say::LetTwoConfirm { scope }),
                (1.., 2..) => (
                    Say::OneMoreApprover { tool },
                    Say::LetAnotherConfirm { scope },
                ),
                (_, 0 | 1) => (Say::MustConfirm { tool }, Say::LetUserConfirm),
            };
            let mut body = ErrorBody::new(ErrorCode::NeedsUserConfirmation, message)
                .hint(hint)
                .detail("approval_id", approval_id)
                .detail("expires_at", expires_at.to_string());
            if let (given, needed @ 2..) = approvers {
                body = body.detail("approvers", json!({"given": given, "needed": needed}));
            }
            match because {
                Some(because) => body.detail("asked_because", because.as_str()),
                None => body,
            }
        }
        // Who prepares what is shown asks again, so nobody is told this.
        Answer::Unasked => {
            ErrorBody::new(ErrorCode::NeedsUserConfirmation, Say::MustConfirm { tool })
                .hint(Say::SameAgain)
        }
        Answer::Cooling { approval_id, until } => {
            let at = until.to_string();
            ErrorBody::new(ErrorCode::Forbidden, Say::DeclinedBefore { tool, at })
                .hint(Say::TellUserDeclined)
                .detail("approval_id", approval_id)
                .detail("ask_again_at", until.to_string())
        }
        Answer::Denied { approval_id, until } => {
            ErrorBody::new(ErrorCode::Forbidden, Say::Declined { tool })
                .hint(Say::NotUnlessAsked)
                .detail("approval_id", approval_id)
                .detail("denied_until", until.to_string())
        }
        Answer::TooMany {
            pending_max,
            retry_after_ms,
        } => {
            let count = pending_max.to_string();
            ErrorBody::new(ErrorCode::RateLimited, Say::TooManyQuestions { count })
                .retry_after_ms(retry_after_ms)
                .hint(Say::AnswerThoseFirst)
        }
    };
    Err(Box::new(body))
}

fn given_up(question: &Confirm) -> Stop {
    let tool = question.tool.to_string();
    ErrorBody::new(ErrorCode::Timeout, Say::CancelledUnanswered { tool })
        .hint(Say::QuestionStaysOpen)
        .into()
}
