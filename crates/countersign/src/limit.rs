//! How many calls a user may make to a tool.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use countersign_contract::ToolName;

use crate::BoxFuture;
use crate::unavailable::Unavailable;

/// Lets a call in, or says when to come back.
pub trait Limiter: Send + Sync + 'static {
    /// Counts one call of a user to a tool, at this moment of the clock's monotonic time.
    fn admit<'a>(
        &'a self,
        user_id: &'a str,
        tool: &'a ToolName,
        now: Duration,
    ) -> BoxFuture<'a, Result<Admission, Unavailable>>;
}

/// What a limiter answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Come in.
    Admitted,
    /// The limit is used up.
    Limited {
        /// When the same call would be let in.
        retry_after_ms: u64,
    },
}

/// No limit.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unlimited;

impl Limiter for Unlimited {
    fn admit<'a>(
        &'a self,
        _: &'a str,
        _: &'a ToolName,
        _: Duration,
    ) -> BoxFuture<'a, Result<Admission, Unavailable>> {
        Box::pin(std::future::ready(Ok(Admission::Admitted)))
    }
}

/// So many calls a period for each user and tool, spread evenly with a burst at the start (the
/// generic cell rate algorithm: one number a user and tool, no timer).
///
/// # Example
///
/// ```
/// use std::time::Duration;
/// use countersign::limit::RateLimit;
///
/// let sixty_a_minute = RateLimit::new(60, Duration::from_secs(60));
/// ```
#[derive(Debug)]
pub struct RateLimit {
    /// Time that one call uses up.
    cost: Duration,
    /// How far ahead of an even pace a user may run.
    burst: Duration,
    users_max: usize,
    hasher: RandomState,
    shards: [Mutex<Shard>; SHARDS],
}

/// From user to tool to the moment at which the allowance is whole again.
type Shard = HashMap<String, HashMap<ToolName, Duration>>;

/// Users are spread over locks, so that they do not wait for each other.
const SHARDS: usize = 16;

impl RateLimit {
    /// `calls` a `period`, all of which may come at once.
    pub fn new(calls: u32, period: Duration) -> Self {
        Self {
            cost: period / calls.max(1),
            burst: period,
            users_max: 100_000,
            hasher: RandomState::new(),
            shards: std::array::from_fn(|_| Mutex::default()),
        }
    }

    /// How many users are remembered at once; beyond it those with a whole allowance are forgotten.
    pub fn users_max(mut self, users: usize) -> Self {
        self.users_max = users;
        self
    }

    fn count(&self, user_id: &str, tool: &ToolName, now: Duration) -> Admission {
        let index = self.hasher.hash_one(user_id) as usize % SHARDS;
        let Some(shard) = self.shards.get(index) else {
            return Admission::Admitted;
        };
        let mut users = shard.lock().unwrap_or_else(PoisonError::into_inner);
        if users.len() > self.users_max / SHARDS {
            users.retain(|_, tools| tools.values().any(|whole_at| *whole_at > now));
        }
        if !users.contains_key(user_id) {
            users.insert(user_id.to_owned(), HashMap::new());
        }
        let Some(tools) = users.get_mut(user_id) else {
            return Admission::Admitted;
        };
        let whole_at = match tools.get_mut(tool) {
            Some(whole_at) => whole_at,
            None => tools.entry(tool.clone()).or_insert(now),
        };
        let next = (*whole_at).max(now) + self.cost;
        let ahead = next.saturating_sub(now);
        if let Some(wait) = ahead.checked_sub(self.burst).filter(|wait| !wait.is_zero()) {
            // Rounded up: a caller that waits exactly this long is let in.
            let retry_after_ms = wait.as_micros().div_ceil(1_000) as u64;
            return Admission::Limited { retry_after_ms };
        }
        *whole_at = next;
        Admission::Admitted
    }
}

impl Limiter for RateLimit {
    fn admit<'a>(
        &'a self,
        user_id: &'a str,
        tool: &'a ToolName,
        now: Duration,
    ) -> BoxFuture<'a, Result<Admission, Unavailable>> {
        Box::pin(std::future::ready(Ok(self.count(user_id, tool, now))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_burst_is_used_up_and_comes_back_evenly() {
        let limit = RateLimit::new(2, Duration::from_secs(10));
        let tool = ToolName::new("a.b").unwrap();
        let at = |seconds| limit.count("u_1", &tool, Duration::from_secs(seconds));
        assert_eq!(at(0), Admission::Admitted);
        assert_eq!(at(0), Admission::Admitted);
        let retry_after_ms = 5_000;
        assert_eq!(at(0), Admission::Limited { retry_after_ms });
        assert_eq!(at(5), Admission::Admitted);
        assert_eq!(at(5), Admission::Limited { retry_after_ms });
        let other = limit.count("u_2", &tool, Duration::ZERO);
        assert_eq!(
            other,
            Admission::Admitted,
            "users do not share an allowance"
        );
    }

    #[test]
    fn users_with_a_whole_allowance_are_forgotten() {
        let limit = RateLimit::new(1, Duration::from_secs(1)).users_max(0);
        let tool = ToolName::new("a.b").unwrap();
        for user in 0..100 {
            limit.count(&format!("u_{user}"), &tool, Duration::from_secs(user * 10));
        }
        let remembered: usize = limit
            .shards
            .iter()
            .map(|shard| shard.lock().unwrap().len())
            .sum();
        assert!(remembered <= SHARDS, "{remembered}");
    }
}
