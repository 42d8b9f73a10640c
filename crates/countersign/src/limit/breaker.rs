//! The breaker: stops a model that makes the very same call again and again.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use countersign_contract::Digest;

use super::Attempt;
use super::cells::Cells;
use super::rate::whole_ms;
use super::shared::identical;
use crate::ledger::{Error, Pace, PaceAnswer, PaceRule, Paces};
use crate::pattern::ToolPattern;

/// The limit of identical calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeats {
    /// Maximum number of identical calls, at least one.
    pub calls_max: u32,
    /// The window, from the first of them on.
    pub within: Duration,
    /// Tools that are meant to be called repeatedly, such as polling.
    pub except: Vec<ToolPattern>,
    /// True if they are counted in the store, for all processes that share it.
    pub is_shared: bool,
}

/// Counts identical calls: same session, same tool, same bound arguments. Calls without a session are
/// counted by user and actor.
///
/// # Example
///
/// ```
/// use std::time::Duration;
/// use countersign::limit::{Breaker, Repeats};
///
/// let breaker = Breaker::new(Repeats {
///     calls_max: 5,
///     within: Duration::from_mins(10),
///     except: Vec::new(),
///     is_shared: false,
/// });
/// // Later, while calls are counted:
/// breaker.replace(None);
/// ```
#[derive(Debug)]
pub struct Breaker {
    repeats: ArcSwapOption<Repeats>,
    cells: Cells<Cell>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    since: Duration,
    calls: u32,
}

/// The breaker's refusal: the same call was made too often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Repeated {
    pub(crate) calls: u32,
    pub(crate) within: Duration,
    pub(crate) retry_after_ms: u64,
}

/// Maximum number of different calls that are remembered; the least recently made ones are evicted and start anew.
const CELLS_MAX: usize = 200_000;

impl Default for Breaker {
    /// A breaker that admits everything until it is given a rule.
    fn default() -> Self {
        Self {
            repeats: ArcSwapOption::empty(),
            cells: Cells::new(CELLS_MAX),
        }
    }
}

impl Breaker {
    /// A breaker with nothing counted yet.
    pub fn new(repeats: Repeats) -> Self {
        let breaker = Self::default();
        breaker.replace(Some(repeats));
        breaker
    }

    /// Replaces the rule; `None` for none. The counts stay.
    pub fn replace(&self, repeats: Option<Repeats>) {
        self.repeats.store(repeats.map(Arc::new));
    }

    /// Counts a call whose arguments have this digest.
    pub(crate) async fn count(
        &self,
        attempt: &Attempt<'_>,
        digest: &Digest,
        is_dry_run: bool,
        paces: &dyn Paces,
    ) -> Result<Option<Repeated>, Error> {
        let Some(repeats) = self.repeats.load_full() else {
            return Ok(None);
        };
        let mut except = repeats.except.iter();
        if except.any(|tools| tools.matches(attempt.tool)) {
            return Ok(None);
        }
        let calls_max = repeats.calls_max.max(1);
        let within = repeats.within;
        if !repeats.is_shared {
            return Ok(self.count_here(&repeats, attempt, digest, is_dry_run));
        }
        let pace = Pace {
            key: identical(attempt, digest, is_dry_run),
            rule: PaceRule::Window { calls_max, within },
        };
        match paces.keep_pace(&[pace]).await? {
            PaceAnswer::Admitted => Ok(None),
            PaceAnswer::Limited { retry_after, .. } => Ok(Some(Repeated {
                calls: calls_max,
                within,
                retry_after_ms: whole_ms(retry_after),
            })),
        }
    }

    fn count_here(
        &self,
        repeats: &Repeats,
        attempt: &Attempt<'_>,
        digest: &Digest,
        is_dry_run: bool,
    ) -> Option<Repeated> {
        let actor = attempt.actor;
        let by_actor = (actor.kind, &actor.id);
        let by_actor = Some(by_actor).filter(|_| attempt.session_id.is_none());
        let who = (attempt.user_id, attempt.session_id, by_actor);
        let key = self
            .cells
            .key((who, attempt.tool.as_str(), digest.0, is_dry_run));
        self.cells.change(key, |cell| {
            let age = attempt.now.saturating_sub(cell.since);
            if cell.calls == 0 || age >= repeats.within {
                *cell = Cell {
                    since: attempt.now,
                    calls: 1,
                };
                return None;
            }
            if cell.calls < repeats.calls_max {
                cell.calls += 1;
                return None;
            }
            Some(Repeated {
                calls: cell.calls,
                within: repeats.within,
                retry_after_ms: whole_ms(repeats.within.saturating_sub(age)),
            })
        })
    }
}
