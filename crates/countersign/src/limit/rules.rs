//! The rate limits, and the counting of a call against all of them.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use countersign_contract::{Actor, ActorType, ToolName};

use super::cells::{CellKey, Cells};
use super::rate::{Rate, whole_ms};
use super::shared::{SharedPaces, unavailable};
use super::{Admission, Attempt, Known, LimitName, Limiter};
use crate::BoxFuture;
use crate::authorize::When;
use crate::ledger::{PaceAnswer, Paces};
use crate::pattern::ToolPattern;
use crate::unavailable::Unavailable;

/// The rate limits in force. A call has to satisfy every limit that covers it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LimitRules {
    /// The limits of each user, over all tools.
    pub user: Vec<Limit>,
    /// The limits of each agent or system, over all users and tools. A person who calls is counted as a user.
    pub agent: Vec<Limit>,
    /// The limits of each session, over all tools.
    pub session: Vec<Limit>,
    /// The limits of tools.
    pub tools: Vec<ToolLimit>,
}

/// A rate limit over all tools. No two of one list have the same condition, because they would share a count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// The rate.
    pub rate: Rate,
    /// The calls that it counts; `None` for all. Another condition is another count.
    pub when: Option<When>,
}

impl From<Rate> for Limit {
    fn from(rate: Rate) -> Self {
        Self { rate, when: None }
    }
}

/// The rate limit of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolLimit {
    /// The tools that it covers; each has an allowance of its own.
    pub tools: ToolPattern,
    /// The rate.
    pub rate: Rate,
    /// The callers that share the allowance.
    pub counted: Counted,
    /// The calls that it counts; `None` for all. Another condition is another count.
    pub when: Option<When>,
}

/// The callers that share the allowance of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Counted {
    /// All callers share one: for the capacity of an upstream.
    Together,
    /// Each user has one: for fairness.
    ForEachUser,
}

/// Counts calls against rate limits: in this process, and [shared](Rate::shared) ones in the store. If this process
/// refuses, the store is not asked.
///
/// # Example
///
/// ```
/// use std::time::Duration;
/// use countersign::limit::{LimitRules, Limits, Rate};
///
/// let rules = LimitRules {
///     user: vec![Rate::new(60, Duration::from_mins(1)).into()],
///     ..LimitRules::default()
/// };
/// let limits = Limits::new(rules);
/// // Later, while calls are counted:
/// limits.replace(LimitRules::default());
/// ```
#[derive(Debug)]
pub struct Limits {
    rules: ArcSwap<LimitRules>,
    /// Time at which each allowance is full again.
    cells: Cells<Duration>,
    /// The latest moment that was counted at, in nanoseconds.
    latest: AtomicU64,
}

/// Maximum number of allowances that are remembered; the least recently used ones are evicted and start full.
const CELLS_MAX: usize = 200_000;

impl Limits {
    /// Limits with nothing counted yet.
    pub fn new(rules: LimitRules) -> Self {
        Self {
            rules: ArcSwap::from_pointee(rules),
            cells: Cells::new(CELLS_MAX),
            latest: AtomicU64::new(0),
        }
    }

    /// Replaces the rules. Used allowances stay used.
    pub fn replace(&self, rules: LimitRules) {
        self.rules.store(Arc::new(rules));
    }

    /// The moment of a call, no earlier than that of any counted before: calls of one moment may overtake each other,
    /// and the last call of a burst must not be refused for that.
    fn moment(&self, now: Duration) -> Duration {
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.latest.fetch_max(now, Ordering::Relaxed).max(now))
    }

    /// Counts a call against all limits of this process, or none: a call that one limit refuses uses up none of the
    /// others. Shared limits are left to the store.
    fn count(&self, attempt: &Attempt<'_>) -> Result<Taken, Admission> {
        let rules = self.rules.load();
        let mut tally = Tally {
            limits: self,
            attempt,
            taken: Taken::default(),
            refused: None,
            undecided: None,
        };
        tally.count_caller(&rules);
        tally.count_session(&rules.session);
        tally.count_tool(&rules.tools);
        let Tally {
            taken,
            refused,
            undecided,
            ..
        } = tally;
        let admission = match (undecided, refused) {
            (None, None) => return Ok(taken),
            (Some(limit), _) => Admission::Undecided { limit },
            (None, Some((limit, wait))) => Admission::Limited {
                limit,
                retry_after_ms: whole_ms(wait),
            },
        };
        self.put_back(&taken);
        Err(admission)
    }

    /// Counts the call against the shared limits in the store.
    async fn count_shared(
        &self,
        taken: Taken,
        paces: &dyn Paces,
    ) -> Result<Admission, Unavailable> {
        let SharedPaces {
            names,
            paces: asked,
        } = &taken.shared;
        let answer = paces.keep_pace(asked).await;
        let (which, retry_after) = match answer {
            Ok(PaceAnswer::Admitted) => return Ok(Admission::Admitted),
            Ok(PaceAnswer::Limited { which, retry_after }) => (which, retry_after),
            Err(error) => {
                self.put_back(&taken);
                return Err(unavailable(error));
            }
        };
        self.put_back(&taken);
        let Some(limit) = names.get(which).copied() else {
            return Err(Unavailable::new(
                "store",
                "it names a rate limit that was not asked for",
            ));
        };
        Ok(Admission::Limited {
            limit,
            retry_after_ms: whole_ms(retry_after),
        })
    }

    fn put_back(&self, taken: &Taken) {
        for (rate, key) in &taken.here {
            self.cells.change(*key, |cell| rate.put_back(cell));
        }
    }

    pub(super) fn rules(&self) -> Arc<LimitRules> {
        self.rules.load_full()
    }

    /// The time until an allowance of this process is full again.
    pub(super) fn until_whole(&self, key: CellKey, now: Duration) -> Duration {
        let whole_at = self.cells.change(key, |cell| *cell);
        whole_at.saturating_sub(self.moment(now))
    }

    pub(super) fn of_user(&self, user_id: &str, when: Option<&When>) -> CellKey {
        self.key(LimitName::User, (user_id, when.map(When::source)))
    }

    pub(super) fn of_agent(&self, actor: &Actor, when: Option<&When>) -> CellKey {
        let of = (actor.kind, &actor.id, when.map(When::source));
        self.key(LimitName::Agent, of)
    }

    pub(super) fn of_tool(&self, limit: &ToolLimit, tool: &ToolName, user_id: &str) -> CellKey {
        let user_id = match limit.counted {
            Counted::Together => None,
            Counted::ForEachUser => Some(user_id),
        };
        let when = limit.when.as_ref().map(When::source);
        let of = (&limit.tools, tool.as_str(), user_id, when);
        self.key(LimitName::Tool, of)
    }

    fn key(&self, name: LimitName, of: impl std::hash::Hash) -> CellKey {
        self.cells.key((name, of))
    }
}

impl LimitRules {
    /// The conditions of the limits that cover a tool.
    fn conditions<'a>(&'a self, tool: &'a ToolName) -> impl Iterator<Item = &'a When> {
        let all = [&self.user, &self.agent, &self.session];
        let all = all.into_iter().flatten().map(|limit| &limit.when);
        let tools = self.tools.iter().filter(|limit| limit.tools.matches(tool));
        all.chain(tools.map(|limit| &limit.when)).flatten()
    }
}

impl Known<'_> {
    /// True if a limit with this condition counts the call; `None` if the condition cannot be decided.
    fn is_due(&self, when: Option<&When>) -> Option<bool> {
        let (facts, is_bound) = match self {
            Self::Nothing => return Some(when.is_none()),
            Self::Call(facts) => (facts, false),
            Self::Arguments(facts) => (facts, true),
        };
        match when {
            None => Some(!is_bound),
            Some(when) if when.needs_arguments() == is_bound => when.holds(facts),
            Some(_) => Some(false),
        }
    }
}

/// A call that is counted.
struct Tally<'a> {
    limits: &'a Limits,
    attempt: &'a Attempt<'a>,
    taken: Taken,
    /// The limit with the longest wait.
    refused: Option<(LimitName, Duration)>,
    /// The first limit whose condition cannot be decided.
    undecided: Option<LimitName>,
}

impl Tally<'_> {
    fn count_caller(&mut self, rules: &LimitRules) {
        let (limits, attempt) = (self.limits, self.attempt);
        for Limit { rate, when } in &rules.user {
            let (name, when) = (LimitName::User, when.as_ref());
            if self.is_due(name, when) {
                let shared = &mut self.taken.shared;
                match rate.shared_rule() {
                    Some(rule) => shared.add_of_user(name, rule, attempt, &[], when),
                    None => self.take(name, *rate, limits.of_user(attempt.user_id, when)),
                }
            }
        }
        let actor = attempt.proved_actor;
        let is_person = actor.kind == ActorType::User;
        for Limit { rate, when } in rules.agent.iter().filter(|_| !is_person) {
            let (name, when) = (LimitName::Agent, when.as_ref());
            if self.is_due(name, when) {
                match rate.shared_rule() {
                    Some(rule) => self.taken.shared.add_agent(rule, actor, when),
                    None => self.take(name, *rate, limits.of_agent(actor, when)),
                }
            }
        }
    }

    fn count_session(&mut self, rates: &[Limit]) {
        let (limits, attempt) = (self.limits, self.attempt);
        let Some(session_id) = attempt.session_id else {
            return;
        };
        let parts: [&[u8]; 2] = [b"session", session_id.as_bytes()];
        for Limit { rate, when } in rates {
            let (name, when) = (LimitName::Session, when.as_ref());
            if self.is_due(name, when) {
                let shared = &mut self.taken.shared;
                if let Some(rule) = rate.shared_rule() {
                    shared.add_of_user(name, rule, attempt, &parts, when);
                } else {
                    let of = (attempt.user_id, session_id, when.map(When::source));
                    self.take(name, *rate, limits.key(name, of));
                }
            }
        }
    }

    fn count_tool(&mut self, tools: &[ToolLimit]) {
        let (limits, attempt) = (self.limits, self.attempt);
        let (tool, user_id) = (attempt.tool, attempt.user_id);
        for limit in tools.iter().filter(|limit| limit.tools.matches(tool)) {
            let name = LimitName::Tool;
            if self.is_due(name, limit.when.as_ref()) {
                match limit.rate.shared_rule() {
                    Some(rule) => self.taken.shared.add_tool(rule, limit, attempt),
                    None => self.take(name, limit.rate, limits.of_tool(limit, tool, user_id)),
                }
            }
        }
    }

    fn is_due(&mut self, name: LimitName, when: Option<&When>) -> bool {
        let is_due = self.attempt.known.is_due(when);
        if is_due.is_none() {
            self.undecided.get_or_insert(name);
        }
        is_due == Some(true)
    }

    fn take(&mut self, name: LimitName, rate: Rate, key: CellKey) {
        let now = self.limits.moment(self.attempt.now);
        let cells = &self.limits.cells;
        match cells.change(key, |cell| rate.take(cell, now)) {
            Ok(()) => self.taken.here.push((rate, key)),
            Err(wait) if self.refused.is_none_or(|(_, longest)| wait > longest) => {
                self.refused = Some((name, wait));
            }
            Err(_) => {}
        }
    }
}

/// The allowances that a call has used in this process, and the ones that it has to request from the store.
#[derive(Debug, Default)]
struct Taken {
    here: Vec<(Rate, CellKey)>,
    shared: SharedPaces,
}

impl Limiter for Limits {
    fn admit<'a>(
        &'a self,
        attempt: &'a Attempt<'a>,
        paces: &'a dyn Paces,
    ) -> BoxFuture<'a, Result<Admission, Unavailable>> {
        match self.count(attempt) {
            Err(limited) => Box::pin(ready(Ok(limited))),
            Ok(taken) if taken.shared.paces.is_empty() => Box::pin(ready(Ok(Admission::Admitted))),
            Ok(taken) => Box::pin(self.count_shared(taken, paces)),
        }
    }

    fn needs_arguments(&self, tool: &ToolName) -> bool {
        let rules = self.rules.load();
        rules.conditions(tool).any(When::needs_arguments)
    }
}

#[cfg(test)]
mod tests {
    use countersign_evidence::seal::UserKey;

    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    fn tool_limit(tools: &str, calls: u32, counted: Counted) -> ToolLimit {
        ToolLimit {
            tools: ToolPattern::new(tools).unwrap(),
            rate: Rate::new(calls, MINUTE),
            counted,
            when: None,
        }
    }

    /// A call at second 0, as `user agent session tool`; `-` for none.
    fn count(limits: &Limits, call: &str) -> Option<&'static str> {
        count_at(limits, call, Duration::ZERO)
    }

    fn count_at(limits: &Limits, call: &str, now: Duration) -> Option<&'static str> {
        let [user_id, agent, session, tool] = *call.split(' ').collect::<Vec<_>>() else {
            panic!("{call}");
        };
        let actor = match agent {
            "-" => Actor {
                kind: ActorType::User,
                id: user_id.into(),
            },
            agent => Actor {
                kind: ActorType::Agent,
                id: agent.into(),
            },
        };
        let attempt = Attempt {
            user_id,
            keys: &UserKey::from_bytes(&[7; 32]),
            actor: &actor,
            proved_actor: &actor,
            session_id: Some(session).filter(|session| *session != "-"),
            tool: &ToolName::new(tool).unwrap(),
            now,
            known: Known::Nothing,
        };
        match limits.count(&attempt) {
            Ok(_) | Err(Admission::Admitted) => None,
            Err(Admission::Undecided { .. }) => Some("undecided"),
            Err(Admission::Limited { limit, .. }) => Some(limit.as_str()),
        }
    }

    #[track_caller]
    fn check(rules: LimitRules, calls: &[(&str, Option<&str>)]) {
        let limits = Limits::new(rules);
        for (call, refused_by) in calls {
            assert_eq!(count(&limits, call), *refused_by, "{call}");
        }
    }

    /// Calls of one moment overtake each other; the whole burst is admitted all the same.
    #[test]
    fn a_call_that_was_overtaken_pays_for_nobody() {
        let user = vec![Rate::new(2, MINUTE).into()];
        let limits = Limits::new(LimitRules {
            user,
            ..LimitRules::default()
        });
        let at = |now| count_at(&limits, "u1 a1 s1 x.a", now);
        assert_eq!(at(Duration::from_millis(10)), None);
        assert_eq!(at(Duration::ZERO), None);
        assert_eq!(at(Duration::from_millis(10)), Some("user"));
    }

    #[test]
    fn each_limit_counts_what_it_is_about() {
        let one = || vec![Rate::new(1, MINUTE).into()];
        check(
            LimitRules {
                user: one(),
                ..LimitRules::default()
            },
            &[
                ("u1 a1 s1 x.a", None),
                ("u1 a2 s2 x.b", Some("user")),
                ("u2 a1 s1 x.a", None),
            ],
        );
        check(
            LimitRules {
                agent: one(),
                ..LimitRules::default()
            },
            &[
                ("u1 a1 s1 x.a", None),
                ("u2 a1 s2 x.b", Some("agent")),
                ("u1 a2 s1 x.a", None),
                ("u1 - - x.a", None),
                ("u1 - - x.a", None),
            ],
        );
        check(
            LimitRules {
                session: one(),
                ..LimitRules::default()
            },
            &[
                ("u1 a1 s1 x.a", None),
                ("u1 a2 s1 x.b", Some("session")),
                // Another user's session may have the same name.
                ("u2 a1 s1 x.a", None),
                ("u1 a1 - x.a", None),
            ],
        );
        let tools = vec![
            tool_limit("x.*", 2, Counted::Together),
            tool_limit("x.a", 1, Counted::ForEachUser),
        ];
        check(
            LimitRules {
                tools,
                ..LimitRules::default()
            },
            &[
                ("u1 a1 s1 x.a", None),
                ("u1 a1 s1 x.a", Some("tool")),
                ("u2 a1 s1 x.a", None),
                ("u3 a1 s1 x.a", Some("tool")),
                ("u3 a1 s1 x.b", None),
                ("u3 a1 s1 y.a", None),
            ],
        );
    }

    /// A refused call uses up nothing; otherwise a limited tool would use up its user's allowance too.
    #[test]
    fn a_refused_call_uses_nothing_up() {
        let rules = LimitRules {
            user: vec![Rate::new(2, MINUTE).into()],
            tools: vec![tool_limit("x.a", 1, Counted::Together)],
            ..LimitRules::default()
        };
        check(
            rules,
            &[
                ("u1 - - x.a", None),
                ("u1 - - x.a", Some("tool")),
                ("u1 - - x.a", Some("tool")),
                ("u1 - - x.b", None),
                ("u1 - - x.b", Some("user")),
            ],
        );
    }

    #[test]
    fn other_rules_keep_the_count() {
        let rules = |calls| LimitRules {
            user: vec![Rate::new(calls, MINUTE).into()],
            ..LimitRules::default()
        };
        let limits = Limits::new(rules(2));
        assert_eq!(count(&limits, "u1 - - x.a"), None);
        assert_eq!(count(&limits, "u1 - - x.a"), None);
        limits.replace(rules(4));
        assert_eq!(count(&limits, "u1 - - x.a"), Some("user"));
        limits.replace(LimitRules::default());
        assert_eq!(count(&limits, "u1 - - x.a"), None);
    }
}
