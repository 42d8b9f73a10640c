//! Keys of the counts that are kept in the store.

use countersign_contract::{Actor, ActorType, Digest};

use super::{Attempt, Counted, LimitName, ToolLimit};
use crate::authorize::When;
use crate::ledger::{self, Pace, PaceKey, PaceRule};
use crate::unavailable::Unavailable;

/// The counts of a call in the store, and the name of each limit.
#[derive(Debug, Default)]
pub(super) struct SharedPaces {
    pub(super) names: Vec<LimitName>,
    pub(super) paces: Vec<Pace>,
}

impl SharedPaces {
    /// Adds a count that all users share.
    fn add(&mut self, name: LimitName, rule: PaceRule, parts: &[&[u8]], when: Option<&When>) {
        self.add_key(name, rule, PaceKey::of(&conditional(parts, when)));
    }

    /// Adds a count of the call's user.
    pub(super) fn add_of_user(
        &mut self,
        name: LimitName,
        rule: PaceRule,
        attempt: &Attempt<'_>,
        parts: &[&[u8]],
        when: Option<&When>,
    ) {
        self.add_key(name, rule, of_user(attempt, &conditional(parts, when)));
    }

    pub(super) fn add_agent(&mut self, rule: PaceRule, actor: &Actor, when: Option<&When>) {
        let parts: [&[u8]; 3] = [b"agent", kind(actor), actor.id.as_bytes()];
        self.add(LimitName::Agent, rule, &parts, when);
    }

    pub(super) fn add_tool(&mut self, rule: PaceRule, limit: &ToolLimit, attempt: &Attempt<'_>) {
        let tools = limit.tools.to_string();
        let tool = attempt.tool.as_str().as_bytes();
        let parts: [&[u8]; 3] = [b"tool", tools.as_bytes(), tool];
        let (name, when) = (LimitName::Tool, limit.when.as_ref());
        match limit.counted {
            Counted::Together => self.add(name, rule, &parts, when),
            Counted::ForEachUser => self.add_of_user(name, rule, attempt, &parts, when),
        }
    }

    /// Adds a count. Two rules may cover the same calls: then each gets a key of its own, so that both apply.
    fn add_key(&mut self, name: LimitName, rule: PaceRule, mut key: PaceKey) {
        while self.paces.iter().any(|pace| pace.key == key) {
            key = PaceKey::of(&[b"again", &key.0]);
        }
        self.names.push(name);
        self.paces.push(Pace { key, rule });
    }
}

/// The parts of a key, with the condition of the limit if it has one.
fn conditional<'a>(parts: &[&'a [u8]], when: Option<&'a When>) -> Vec<&'a [u8]> {
    let when = when.map(|when| [b"when".as_slice(), when.source().as_bytes()]);
    let parts = parts.iter().copied();
    parts.chain(when.into_iter().flatten()).collect()
}

/// The key of identical calls.
pub(super) fn identical(attempt: &Attempt<'_>, digest: &Digest, is_dry_run: bool) -> PaceKey {
    let what: &[u8] = if is_dry_run { b"dry run" } else { b"call" };
    let actor = attempt.actor;
    let (in_what, id) = match attempt.session_id {
        Some(session_id) => (b"session".as_slice(), session_id),
        None => (kind(actor), actor.id.as_str()),
    };
    let tool = attempt.tool.as_str().as_bytes();
    let parts = [
        b"identical",
        what,
        tool,
        digest.as_bytes(),
        in_what,
        id.as_bytes(),
    ];
    of_user(attempt, &parts)
}

/// A key under the user's own key: a reader of the store cannot search for a user, and the counts of an erased user
/// cannot be linked to anyone.
fn of_user(attempt: &Attempt<'_>, parts: &[&[u8]]) -> PaceKey {
    let mut of_user = vec![b"user".as_slice(), attempt.user_id.as_bytes()];
    of_user.extend(parts);
    PaceKey(attempt.keys.index(&PaceKey::of(&of_user).0))
}

/// The error of a limiter that cannot reach the store.
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use countersign_contract::ToolName;
    use countersign_evidence::seal::UserKey;

    use super::*;
    use crate::limit::{Known, Rate};
    use crate::pattern::ToolPattern;

    /// Every key that a call is counted under, as `user session` sends it.
    fn keys(user_id: &str, session_id: Option<&str>, secret: u8) -> Vec<PaceKey> {
        let actor = Actor {
            kind: ActorType::Agent,
            id: "a_1".into(),
        };
        let tool = ToolName::new("x.a").unwrap();
        let attempt = Attempt {
            user_id,
            keys: &UserKey::from_bytes(&[secret; 32]),
            actor: &actor,
            proved_actor: &actor,
            session_id,
            tool: &tool,
            now: Duration::ZERO,
            known: Known::Nothing,
        };
        let rate = Rate::new(1, Duration::from_mins(1)).shared();
        let rule = rate.shared_rule().unwrap();
        let mut shared = SharedPaces::default();
        shared.add_of_user(LimitName::User, rule, &attempt, &[], None);
        shared.add_agent(rule, &actor, None);
        for counted in [Counted::ForEachUser, Counted::Together] {
            let tools = ToolPattern::new("x.*").unwrap();
            let limit = ToolLimit {
                tools,
                rate,
                counted,
                when: None,
            };
            shared.add_tool(rule, &limit, &attempt);
        }
        let mut keys: Vec<PaceKey> = shared.paces.iter().map(|pace| pace.key).collect();
        for is_dry_run in [true, false] {
            keys.push(identical(&attempt, &Digest([1; 32]), is_dry_run));
        }
        keys
    }

    /// Counts of a user cannot be found by the user's name, and not at all when the user's key is gone (A21).
    #[test]
    fn counts_of_a_user_are_named_by_their_key() {
        let same = |first: &[PaceKey], second: &[PaceKey]| {
            let pairs = first.iter().zip(second);
            pairs.map(|(a, b)| a == b).collect::<Vec<_>>()
        };
        let first = keys("u_1", Some("s_1"), 1);
        assert_eq!(same(&first, &keys("u_1", Some("s_1"), 1)), [true; 6]);
        // The user, the agent, the tool of each user, the tool of all, and identical calls.
        let of_others = [false, true, false, true, false, false];
        assert_eq!(same(&first, &keys("u_1", Some("s_1"), 2)), of_others);
        assert_eq!(same(&first, &keys("u_2", Some("s_1"), 1)), of_others);
        let of_sessions = [true, true, true, true, false, false];
        assert_eq!(same(&first, &keys("u_1", Some("s_2"), 1)), of_sessions);
        assert_eq!(same(&first, &keys("u_1", None, 1)), of_sessions);
        let mut all = first;
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 6);
    }
}
