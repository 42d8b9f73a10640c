//! Counts that are kept in the store: under which keys.

use countersign_contract::{Actor, ActorType, Digest};

use super::{Attempt, Counted, LimitName, ToolLimit};
use crate::ledger::{self, Pace, PaceKey, PaceRule};
use crate::unavailable::Unavailable;

/// What a call is counted against in the store, and what each count is called.
#[derive(Debug, Default)]
pub(super) struct SharedPaces {
    pub(super) names: Vec<LimitName>,
    pub(super) paces: Vec<Pace>,
}

impl SharedPaces {
    /// Two rules may be about the same calls: then each counts for itself, so that both are kept.
    pub(super) fn add(&mut self, name: LimitName, rule: PaceRule, parts: &[&[u8]]) {
        let mut parts = parts.to_vec();
        let mut key = PaceKey::of(&parts);
        while self.paces.iter().any(|pace| pace.key == key) {
            parts.push(b"again");
            key = PaceKey::of(&parts);
        }
        self.names.push(name);
        self.paces.push(Pace { key, rule });
    }

    pub(super) fn add_agent(&mut self, rule: PaceRule, actor: &Actor) {
        let parts: [&[u8]; 3] = [b"agent", kind(actor), actor.id.as_bytes()];
        self.add(LimitName::Agent, rule, &parts);
    }

    pub(super) fn add_tool(&mut self, rule: PaceRule, limit: &ToolLimit, attempt: &Attempt<'_>) {
        let tools = limit.tools.to_string();
        let (tools, tool) = (tools.as_bytes(), attempt.tool.as_str().as_bytes());
        let user_id = attempt.user_id.as_bytes();
        let name = LimitName::Tool;
        match limit.counted {
            Counted::Together => self.add(name, rule, &[b"tool", tools, tool]),
            Counted::ForEachUser => self.add(name, rule, &[b"tool", tools, tool, b"of", user_id]),
        }
    }
}

/// The key of identical calls.
pub(super) fn identical(attempt: &Attempt<'_>, digest: &Digest, is_dry_run: bool) -> PaceKey {
    let what: &[u8] = if is_dry_run { b"dry run" } else { b"call" };
    let mut parts = vec![
        b"identical".as_slice(),
        what,
        attempt.tool.as_str().as_bytes(),
        digest.as_bytes(),
        attempt.user_id.as_bytes(),
    ];
    let actor = attempt.actor;
    match attempt.session_id {
        Some(session_id) => parts.extend([b"session".as_slice(), session_id.as_bytes()]),
        None => parts.extend([kind(actor), actor.id.as_bytes()]),
    }
    PaceKey::of(&parts)
}

/// A limiter that cannot ask the store cannot answer.
pub(super) fn unavailable(error: ledger::Error) -> Unavailable {
    match error {
        ledger::Error::Unavailable(unavailable) => unavailable,
        error @ (ledger::Error::DiskLow { .. }
        | ledger::Error::Full { .. }
        | ledger::Error::Damaged { .. }
        | ledger::Error::UnderHold { .. }
        | ledger::Error::Forked { .. }) => Unavailable::new("store", error),
    }
}

fn kind(actor: &Actor) -> &'static [u8] {
    match actor.kind {
        ActorType::User => b"user",
        ActorType::Agent => b"agent",
        ActorType::System => b"system",
    }
}
