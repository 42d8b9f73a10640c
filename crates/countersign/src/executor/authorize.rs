//! Step 2: authorization. The identity that the envelope claims must be the one that was proved (A3).

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use countersign_args::Arguments;
use countersign_contract::{Actor, ErrorBody, ErrorCode};
use serde_json::Value;

use super::bind::has_long_decimal;
use super::call::CallParts;
use super::envelope::is_name;
use super::resolve::Resolved;
use super::stop::Stop;
use super::trail::Trail;
use super::{Executor, gateway_fault};
use crate::authorize::{Conditions, DERIVE_WINDOW, Decision, Facts, Stage, UnkeyedWrites, Verdict};
use crate::catalog::Entry;
use crate::context::Request;
use crate::principal::Principal;
use crate::realm::normalized;
use crate::scribe::Circumstances;
use crate::words::Say;

/// A call that this principal may make.
pub(super) struct Allowed {
    pub(super) entry: Arc<Entry>,
    pub(super) request: Request,
    pub(super) call: Box<CallParts>,
    /// True if the policy requires the user to confirm, whatever the tool declares.
    pub(super) must_confirm: bool,
    pub(super) approval_valid_for: Option<Duration>,
    pub(super) four_eyes: bool,
    pub(super) cool_down: Option<Duration>,
    pub(super) unkeyed_writes: Option<UnkeyedWrites>,
    pub(super) unkeyed_window: Duration,
    /// Rules of the policy that look at the call; the step that binds the arguments decides the rest of them.
    pub(super) conditions: Option<Arc<dyn Conditions>>,
}

impl Executor {
    pub(super) async fn authorize(
        &self,
        resolved: Resolved,
        trail: &mut Trail,
    ) -> Result<Box<Allowed>, Stop> {
        let Resolved { entry, mut call } = resolved;
        let request = identify(&mut call, trail)?;
        let decision = self
            .decide(&named(&call.principal, &request), &entry)
            .await?;
        trail.record.policy_revision = Some(decision.policy_revision.to_string());
        let tool = entry.name().to_string();
        let (code, message, hint) = match decision.verdict {
            Verdict::Allow => {
                let mut allowed = Allowed {
                    entry,
                    request,
                    call,
                    must_confirm: decision.must_confirm,
                    approval_valid_for: decision.approval_valid_for,
                    four_eyes: decision.four_eyes,
                    cool_down: decision.cool_down,
                    unkeyed_writes: decision.unkeyed_writes,
                    unkeyed_window: decision.unkeyed_window.unwrap_or(DERIVE_WINDOW),
                    conditions: decision.conditions,
                };
                allowed.judge(Stage::Call, None, trail)?;
                return Ok(Box::new(allowed));
            }
            Verdict::Unauthorized { hint } => {
                (ErrorCode::Unauthorized, Say::NeedsCredential { tool }, hint)
            }
            Verdict::Forbid { hint } => (ErrorCode::Forbidden, Say::NotAllowed { tool }, hint),
        };
        Err(ErrorBody::new(code, message).hint(hint).into())
    }

    /// The one decision behind both the tool list and a call.
    pub(super) async fn decide(
        &self,
        principal: &Principal,
        entry: &Entry,
    ) -> Result<Decision, ErrorBody> {
        let decision = self.parts.authorizer.decide(principal, entry.spec());
        let mut decision = decision.await.map_err(|error| gateway_fault(&error))?;
        // No policy allows a credential more than it was made for.
        if decision.is_allowed() && !principal.effects.has(entry.spec().behaviour.effect) {
            let hint = Say::OtherEffect {
                effects: principal.effects.to_string(),
            };
            decision.verdict = Verdict::Forbid { hint: hint.into() };
        }
        if decision.is_allowed() && !principal.has_tool(entry.name()) {
            let hint = Say::OtherTools.into();
            decision.verdict = Verdict::Forbid { hint };
        }
        Ok(decision)
    }

    /// True if a rule that needs nothing of a call denies the tool to this principal now.
    pub(super) fn is_ruled_out(
        &self,
        decision: &Decision,
        principal: &Principal,
        entry: &Entry,
    ) -> bool {
        let Some(conditions) = &decision.conditions else {
            return false;
        };
        let names_user = principal.may_act_for_others;
        let facts = Facts {
            principal,
            proved: None,
            user_id: (!names_user).then_some(&*principal.user_id),
            tool: entry.spec(),
            upstream: entry.tool().upstream(),
            now: self.parts.clock.now(),
            session_id: None,
            currency: None,
            dry_run: false,
            arguments: &Value::Null,
            is_exact: true,
        };
        let judgement = conditions.judge(Stage::Listing, &facts);
        judgement.denial.is_some()
    }
}

impl Allowed {
    /// Decides the conditional rules of a stage, and makes the call subject to what they say.
    pub(super) fn judge(
        &mut self,
        stage: Stage,
        arguments: Option<&Arguments>,
        trail: &mut Trail,
    ) -> Result<(), Stop> {
        let Some(conditions) = self.conditions.clone() else {
            return Ok(());
        };
        let value = arguments.map_or(Value::Null, Arguments::to_value);
        let principal = self.named();
        let facts = self.facts(&principal, arguments, &value, trail);
        let judgement = conditions.judge(stage, &facts);
        drop(principal);
        trail.note_rules(judgement.ruled);
        self.must_confirm |= judgement.must_confirm;
        self.four_eyes |= judgement.four_eyes;
        let shortest = judgement
            .approval_valid_for
            .into_iter()
            .chain(self.approval_valid_for);
        self.approval_valid_for = shortest.min();
        match judgement.denial {
            None => Ok(()),
            Some(denial) => {
                let tool = self.entry.name().to_string();
                let body = ErrorBody::new(ErrorCode::Forbidden, Say::DeniedByRule { tool });
                Err(body.hint(denial.hint).detail("rule", &*denial.rule).into())
            }
        }
    }
}

impl Allowed {
    /// The principal, as conditions look at it.
    pub(super) fn named(&self) -> Cow<'_, Principal> {
        named(&self.call.principal, &self.request)
    }

    /// The parts of the call that a condition may look at.
    pub(super) fn facts<'a>(
        &'a self,
        principal: &'a Principal,
        arguments: Option<&Arguments>,
        value: &'a Value,
        trail: &Trail,
    ) -> Facts<'a> {
        let request = &self.request;
        let own = &*self.call.principal;
        Facts {
            principal,
            proved: (request.actor != own.actor).then_some(own),
            user_id: Some(&request.user_id),
            tool: self.entry.spec(),
            upstream: self.entry.tool().upstream(),
            now: trail.facts.at,
            session_id: request.session_id.as_deref(),
            currency: request.currency.as_deref(),
            dry_run: request.dry_run,
            arguments: value,
            is_exact: arguments.is_none_or(|it| !has_long_decimal(it.as_json())),
        }
    }
}

/// The principal with the actor that the envelope names, and the proved actor in its chain: the rules apply to both.
fn named<'a>(principal: &'a Principal, request: &Request) -> Cow<'a, Principal> {
    if request.actor == principal.actor {
        return Cow::Borrowed(principal);
    }
    let mut named = principal.clone();
    let proved = std::mem::replace(&mut named.actor, request.actor.clone());
    named.chain.insert(0, proved);
    Cow::Owned(named)
}

/// The whole request; actor and user are taken from the credential if the envelope names none.
fn identify(call: &mut CallParts, trail: &mut Trail) -> Result<Request, Stop> {
    let principal = &call.principal;
    let envelope = &mut call.envelope;
    let may_name = |id: &str| principal.may_act_for_others && principal.realm.has(id);
    let actor = match envelope.actor.take() {
        None => principal.actor.clone(),
        Some(actor) if actor == principal.actor => actor,
        Some(actor) => {
            let id = normalized(&actor.id).ok_or_else(|| unnamed("/actor/id"))?;
            if !may_name(&id) {
                return Err(forged("/actor", Say::OtherActor));
            }
            Actor { id, ..actor }
        }
    };
    let user_id = match envelope.user_id.take() {
        None => principal.user_id.clone(),
        Some(user_id) if user_id == principal.user_id => user_id,
        Some(user_id) => {
            let id = normalized(&user_id).ok_or_else(|| unnamed("/user_id"))?;
            if id != principal.user_id && !may_name(&id) {
                return Err(forged("/user_id", Say::OtherUser));
            }
            id
        }
    };
    // State is kept by user: nobody is a user that everybody without a name would share.
    if !is_name(&user_id) || !is_name(&actor.id) {
        return Err(nameless(principal));
    }
    if principal.may_act_for_others {
        trail.record.actor.clone_from(&actor);
        trail.record.user_id.clone_from(&user_id);
    }
    trail.facts.circumstances = Circumstances {
        session_id: trail.facts.circumstances.session_id.take(),
        locale: envelope.locale.clone(),
        currency: envelope.currency.clone(),
        timezone: envelope.timezone.clone(),
        client: envelope.client.clone(),
        ran_at: None,
    };
    Ok(Request {
        request_id: trail.record.request_id.clone(),
        actor,
        user_id,
        session_id: envelope.session_id.take(),
        locale: envelope.locale.take(),
        currency: envelope.currency.take(),
        timezone: envelope.timezone.take(),
        client: envelope.client.take(),
        dry_run: envelope.dry_run,
        idempotency_key: envelope.idempotency_key.take(),
    })
}

fn nameless(principal: &Principal) -> Stop {
    if principal.may_act_for_others {
        return ErrorBody::new(ErrorCode::InvalidArgument, Say::NoUser)
            .field("/user_id")
            .hint(Say::NameUser)
            .into();
    }
    ErrorBody::new(ErrorCode::Unauthorized, Say::NoUserInCredential)
        .hint(Say::UseUserCredential)
        .into()
}

fn unnamed(pointer: &str) -> Stop {
    ErrorBody::new(ErrorCode::InvalidArgument, Say::NoId)
        .field(pointer)
        .hint(Say::VisibleId)
        .into()
}

fn forged(pointer: &str, message: Say) -> Stop {
    ErrorBody::new(ErrorCode::Forbidden, message)
        .field(pointer)
        .hint(Say::ActForOthers)
        .into()
}
