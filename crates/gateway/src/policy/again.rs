//! Recorded calls, decided again: what a draft of a policy would have done with them, beside what was done.
//!
//! A record does not have everything that a decision looks at. Scopes are not recorded. For `[[tools]]` entries, a caller counts as
//! holding every scope that the policy of that time names: the call was let through then. A call that a condition decides by the
//! scopes of its caller is left out. A call whose arguments were bound and not kept is bound again from its text.

use countersign::Principal;
use countersign::archive::OpenedCall;
use countersign::authorize::{Facts, is_exact};
use countersign::catalog::Entry;
use countersign::contract::evidence::{LinkRole, Payload};
use countersign::contract::{Actor, BindStatus, ErrorCode, EvidenceRecord};
use jiff::Timestamp;
use serde_json::Value;

use super::{Explanation, Policy, RecordedRule, Ruling};

/// A recorded call that can be decided again.
#[derive(Debug)]
pub struct PastCall<'a> {
    record: &'a EvidenceRecord,
    entry: &'a Entry,
    principal: Principal,
    /// The caller as the credential proved it, if the call named another actor.
    proved: Option<Principal>,
    session_id: Option<&'a str>,
    currency: Option<&'a str>,
    now: Timestamp,
    /// The bound arguments; `None` if the call ended before they were.
    arguments: Option<Value>,
    is_exact: bool,
    /// True if its tool has run, and not only as a dry run: a question would have been asked before.
    has_run: bool,
}

/// Why a recorded call is not decided again. The enum is exhaustive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Omitted {
    /// The record tells of no call, or of a part of one.
    NoCall,
    /// Its content is no longer kept, or never had what a decision needs.
    NotKept,
    /// It was refused for who called, which a record does not have in full.
    RefusedForTheCaller,
    /// A condition decides it by the scopes of the caller, which a record does not have.
    ByScopes,
}

impl<'a> PastCall<'a> {
    /// Reads a recorded call of a tool; `policy` is the one that decided it then.
    pub fn of(call: &'a OpenedCall, entry: &'a Entry, policy: &Policy) -> Result<Self, Omitted> {
        let record = &call.record;
        let reply = record.reply.as_ref().ok_or(Omitted::NoCall)?;
        let payload = call.payload.as_deref().ok_or(Omitted::NotKept)?;
        let is_refused = matches!(
            reply.code,
            Some(ErrorCode::Forbidden | ErrorCode::Unauthorized)
        );
        // Rules are decided, and recorded, only for a caller who may call the tool.
        let is_limited = record.act.get("limit").is_some();
        if is_refused && !is_limited && RecordedRule::all(record).is_empty() {
            return Err(Omitted::RefusedForTheCaller);
        }
        let actor = payload.actor.clone().or_else(|| {
            let actor = record.actor.as_ref()?;
            Some(Actor {
                kind: actor.kind,
                id: actor.id.clone(),
            })
        });
        let actor = actor.ok_or(Omitted::NotKept)?;
        let (arguments, is_exact) = arguments(record, payload, entry)?;
        let proved = record.principal.as_ref().map(|proved| Actor {
            kind: proved.kind,
            id: proved.id.clone(),
        });
        let user_id = &payload.user_id;
        let mut principal = principal(actor, user_id, policy);
        principal.chain.extend(proved.clone());
        Ok(Self {
            record,
            entry,
            proved: proved.map(|actor| Principal {
                actor,
                chain: Vec::new(),
                ..principal.clone()
            }),
            principal,
            session_id: payload.session_id.as_deref(),
            currency: payload.currency.as_deref(),
            now: record.at.parse().map_err(|_| Omitted::NotKept)?,
            arguments,
            is_exact,
            has_run: payload.ran_at.is_some() && !record.dry_run,
        })
    }

    /// Decides the call under a policy.
    pub fn under(&self, policy: &Policy) -> Result<Ruling, Omitted> {
        let ruling = policy.ruling_without_scopes(&self.facts(), self.arguments.is_some());
        ruling.ok_or(Omitted::ByScopes)
    }

    /// Decides the call under a policy, with the entries that looked at it.
    pub fn explain(&self, policy: &Policy) -> Explanation {
        policy.explain(&self.facts(), self.arguments.is_some())
    }

    /// The decision that the record shows. Where a call ended before it showed one (wrong arguments, a limit, a dry run, the
    /// answer of an earlier call), `policy` says what it would have been: it is the one that decided the call.
    pub fn recorded(&self, policy: &Policy) -> Result<Ruling, Omitted> {
        let record = self.record;
        let held = RecordedRule::all(record);
        let ruled = held.iter().filter_map(RecordedRule::ruling).max();
        let code = record.reply.as_ref().and_then(|reply| reply.code);
        if ruled == Some(Ruling::Deny) {
            return Ok(Ruling::Deny);
        }
        let then = self.under(policy)?;
        let asked = match then {
            Ruling::Allow | Ruling::Deny => Ruling::Confirm,
            Ruling::Confirm | Ruling::FourEyes => then,
        };
        let is_granted = record.act.get("grant_id").is_some();
        if code == Some(ErrorCode::NeedsUserConfirmation) || is_granted {
            return Ok(ruled.map_or(asked, |ruled| ruled.max(asked)));
        }
        let rests_on = |role| matches!(role, Some(LinkRole::RestsOn));
        // A call that was confirmed rests on the record of the approval.
        let may_be_confirmed = record.links.iter().any(|link| rests_on(link.role));
        let passed = ruled.unwrap_or(Ruling::Allow);
        Ok(match then {
            Ruling::Allow | Ruling::Deny => passed,
            Ruling::Confirm | Ruling::FourEyes if self.has_run && !may_be_confirmed => passed,
            Ruling::Confirm | Ruling::FourEyes => passed.max(then),
        })
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            principal: &self.principal,
            proved: self.proved.as_ref(),
            user_id: Some(&self.principal.user_id),
            tool: self.entry.spec(),
            upstream: self.entry.tool().upstream(),
            now: self.now,
            session_id: self.session_id,
            currency: self.currency,
            dry_run: self.record.dry_run,
            arguments: self.arguments.as_ref().unwrap_or(&Value::Null),
            is_exact: self.is_exact,
        }
    }
}

/// The bound arguments of a call, and whether every number is as it was sent; `None` if the call ended before they were bound.
fn arguments(
    record: &EvidenceRecord,
    payload: &Payload,
    entry: &Entry,
) -> Result<(Option<Value>, bool), Omitted> {
    if let Some(kept) = &payload.arguments {
        let value = kept.value().map_err(|_| Omitted::NotKept)?;
        return Ok((Some(value), is_exact(kept.text())));
    }
    let status = record.binding.as_ref().and_then(|binding| binding.status);
    if !status.is_some_and(BindStatus::is_executable) {
        return Ok((None, true));
    }
    let raw = payload.raw.as_deref().ok_or(Omitted::NotKept)?;
    let (locale, timezone) = (payload.locale.as_deref(), payload.timezone.as_deref());
    let bound = entry.arguments_in(raw, locale, timezone);
    let bound = bound.map_err(|_| Omitted::NotKept)?;
    Ok((Some(bound.to_value()), is_exact(bound.as_json())))
}

fn principal(actor: Actor, user_id: &str, policy: &Policy) -> Principal {
    let nobody = Principal::without_user(actor.clone());
    let principal = if nobody.user_id == user_id {
        nobody
    } else {
        Principal::new(actor, user_id)
    };
    policy
        .scopes()
        .into_iter()
        .fold(principal, Principal::scope)
}
